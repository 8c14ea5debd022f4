// A stream of events that one side pushes and the other iterates over, with a result
// at its end.

export class EventStream<T, R = T> implements AsyncIterable<T> {
  private isComplete: (event: T) => boolean;
  private extractResult: (event: T) => R;
  private queue: T[] = [];
  private _ended = false;
  private _wake: (() => void)[] = [];
  private _final = Promise.withResolvers<R>();

  constructor(isComplete: (event: T) => boolean, extractResult: (event: T) => R) {
    this.isComplete = isComplete;
    this.extractResult = extractResult;
  }

  push(event: T): void {
    if (this._ended) return;
    this.queue.push(event);
    if (this.isComplete(event)) {
      this._ended = true;
      this._final.resolve(this.extractResult(event));
    }
    this._notify();
  }

  end(result?: R): void {
    this._ended = true;
    if (result !== undefined) this._final.resolve(result);
    this._notify();
  }

  private _notify(): void {
    for (const wake of this._wake.splice(0)) wake();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      while (this.queue.length > 0) yield this.queue.shift() as T;
      if (this._ended) return;
      await new Promise<void>((resolve) => this._wake.push(resolve));
    }
  }

  result(): Promise<R> {
    return this._final.promise;
  }
}

/** An event of a provider's stream; `done` and `error` carry the finished message. */
export interface AssistantMessageEvent {
  type: string;
  reason?: string;
  message?: unknown;
  error?: unknown;
}

export class AssistantMessageEventStream extends EventStream<AssistantMessageEvent, unknown> {
  constructor() {
    super(
      ({ type }) => type === "done" || type === "error",
      (event) => (event.type === "done" ? event.message : event.error),
    );
  }
}

export function createAssistantMessageEventStream(): AssistantMessageEventStream {
  return new AssistantMessageEventStream();
}
