// The interface of a terminal. The real one belongs to pi.

export interface Terminal {
  start(onInput: (data: string) => void, onResize: () => void): void;
  stop(): void;
  /** Reads and drops pending input, so that it does not reach the shell. */
  drainInput(maxMs?: number, idleMs?: number): Promise<void>;
  write(data: string): void;
  readonly columns: number;
  readonly rows: number;
  readonly kittyProtocolActive: boolean;
  /** Moves up if the number is negative. */
  moveBy(lines: number): void;
  hideCursor(): void;
  showCursor(): void;
  clearLine(): void;
  clearFromCursor(): void;
  clearScreen(): void;
  setTitle(title: string): void;
}

function refuse(): never {
  throw new Error(
    "ProcessTerminal cannot be used in an extension: standard input and output belong to pi. " +
      "Show components with ctx.ui.custom(), or give TUI a terminal object of your own.",
  );
}

/**
 * Importing and constructing it is harmless; a method that would touch the terminal throws an error
 * with the reason.
 */
export class ProcessTerminal implements Terminal {
  get kittyProtocolActive(): boolean {
    return false;
  }

  get columns(): number {
    return 80;
  }

  get rows(): number {
    return 24;
  }

  start(_onInput: (data: string) => void, _onResize: () => void): void {
    refuse();
  }

  stop(): void {
    // The terminal was never started.
  }

  async drainInput(_maxMs?: number, _idleMs?: number): Promise<void> {
    // There is no input.
  }

  write(_data: string): void {
    refuse();
  }

  moveBy(_lines: number): void {
    refuse();
  }

  hideCursor(): void {
    refuse();
  }

  showCursor(): void {
    refuse();
  }

  clearLine(): void {
    refuse();
  }

  clearFromCursor(): void {
    refuse();
  }

  clearScreen(): void {
    refuse();
  }

  setTitle(_title: string): void {
    refuse();
  }
}
