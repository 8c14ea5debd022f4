// Detects capabilities of the terminal beyond text, from its environment.
import { env } from "pi:node.ts";

export type ImageProtocol = "kitty" | "iterm2" | null;

export interface TerminalCapabilities {
  images: ImageProtocol;
  trueColor: boolean;
  hyperlinks: boolean;
}

export interface CellDimensions {
  widthPx: number;
  heightPx: number;
}

interface Terminal {
  /** `TERM_PROGRAM`, or what `TERM` contains. */
  name: string;
  /** A variable that only this terminal sets. */
  variable?: string;
  images: ImageProtocol;
}

const KNOWN_TERMINALS: readonly Terminal[] = [
  { name: "kitty", variable: "KITTY_WINDOW_ID", images: "kitty" },
  { name: "ghostty", variable: "GHOSTTY_RESOURCES_DIR", images: "kitty" },
  { name: "wezterm", variable: "WEZTERM_PANE", images: "kitty" },
  { name: "iterm.app", variable: "ITERM_SESSION_ID", images: "iterm2" },
  { name: "vscode", images: null },
  { name: "alacritty", images: null },
];

export function detectCapabilities(): TerminalCapabilities {
  const lower = (name: string) => env(name)?.toLowerCase() ?? "";
  const [program, term] = [lower("TERM_PROGRAM"), lower("TERM")];
  const trueColor = ["truecolor", "24bit"].includes(lower("COLORTERM"));
  // Both drop links and images by default, whatever the outer terminal supports.
  const wrapped = Boolean(env("TMUX")) || /^(tmux|screen)/.test(term);
  const known = wrapped ? undefined : KNOWN_TERMINALS.find(({ name, variable }) =>
    program === name || (variable && env(variable)) || (name === "ghostty" && term.includes(name))
  );
  // A terminal that ignores links hides their address: only known ones get them.
  return known
    ? { images: known.images, trueColor: true, hyperlinks: true }
    : { images: null, trueColor, hyperlinks: false };
}

let capabilities: TerminalCapabilities | undefined;
let cell: CellDimensions = { widthPx: 9, heightPx: 18 };

export function getCapabilities(): TerminalCapabilities {
  return (capabilities ??= detectCapabilities());
}

export function setCapabilities(value: TerminalCapabilities): void {
  capabilities = value;
}

export function resetCapabilitiesCache(): void {
  capabilities = undefined;
}

export function getCellDimensions(): CellDimensions {
  return cell;
}

export function setCellDimensions(dimensions: CellDimensions): void {
  cell = dimensions;
}

/** `text` as a link that terminals can open (OSC 8). */
export function hyperlink(text: string, url: string): string {
  return `\x1b]8;;${url}\x1b\\${text}\x1b]8;;\x1b\\`;
}
