// Colours of the terminal by purpose, as escape sequences.
import { env } from "pi:node.ts";
import { BACKGROUNDS, type ColorValue, FALLBACKS } from "pi:pi-coding-agent/theme/colors.ts";

export type ColorMode = "truecolor" | "256color";
type Paint = (text: string) => string;

export function colorMode(): ColorMode {
  const colorterm = env("COLORTERM");
  if (colorterm === "truecolor" || colorterm === "24bit" || env("WT_SESSION")) return "truecolor";
  const term = env("TERM") ?? "";
  const limited = ["", "dumb", "linux"].includes(term) || /^screen($|[-.])/.test(term) ||
    env("TERM_PROGRAM") === "Apple_Terminal";
  return limited ? "256color" : "truecolor";
}

const CUBE = [0, 95, 135, 175, 215, 255];
const GRAYS = Array.from({ length: 24 }, (_, i) => 8 + i * 10);

function nearest(value: number, among: number[]): number {
  let best = 0;
  for (let i = 1; i < among.length; i++) {
    if (Math.abs(value - among[i]) < Math.abs(value - among[best])) best = i;
  }
  return best;
}

/** The visible distance between two colours: the eye sees green best, blue worst. */
function distance(a: number[], b: number[]): number {
  const [red, green, blue] = a.map((value, i) => (value - b[i]) ** 2);
  return red * 0.299 + green * 0.587 + blue * 0.114;
}

/** The index of the closest of the 256 colours. Tinted colours stay tinted. */
function indexOf(rgb: number[]): number {
  const cube = rgb.map((value) => nearest(value, CUBE));
  const index = 16 + 36 * cube[0] + 6 * cube[1] + cube[2];
  if (Math.max(...rgb) - Math.min(...rgb) >= 10) return index;
  const gray = nearest(Math.round(0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]), GRAYS);
  const level = GRAYS[gray];
  const closer = distance(rgb, [level, level, level]) < distance(rgb, cube.map((i) => CUBE[i]));
  return closer ? 232 + gray : index;
}

function rgbOf(color: string): number[] {
  const digits = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color);
  if (!digits) throw new Error(`Invalid color value: ${color}`);
  return digits.slice(1).map((pair) => parseInt(pair, 16));
}

/** The escape sequence that sets `color`; `layer` is 38 for text, 48 for backgrounds. */
function sequence(color: ColorValue, layer: 38 | 48, mode: ColorMode): string {
  if (color === "") return `\x1b[${layer + 1}m`;
  if (typeof color === "number") return `\x1b[${layer};5;${color}m`;
  const rgb = rgbOf(color);
  return mode === "truecolor"
    ? `\x1b[${layer};2;${rgb.join(";")}m`
    : `\x1b[${layer};5;${indexOf(rgb)}m`;
}

/** The text may end the style itself, and lines are cut, so the style is started again. */
function styled(on: number, off: number): Paint {
  const [start, end] = [`\x1b[${on}m`, `\x1b[${off}m`];
  return (text) => {
    // Extensions in JavaScript pass numbers.
    text = String(text);
    if (text === "") return "";
    const inner = text.replaceAll(end, end + start).replace(/\r?\n/g, `${end}$&${start}`);
    return start + inner + end;
  };
}

const BORDERS: Readonly<Record<string, string>> = {
  off: "thinkingOff",
  minimal: "thinkingMinimal",
  low: "thinkingLow",
  medium: "thinkingMedium",
  high: "thinkingHigh",
  xhigh: "thinkingXhigh",
  max: "thinkingMax",
};

export interface ThemeOptions {
  name?: string;
  sourcePath?: string;
  sourceInfo?: unknown;
}

export class Theme {
  readonly name?: string;
  readonly sourcePath?: string;
  sourceInfo?: unknown;
  private fgColors: Map<string, string>;
  private bgColors: Map<string, string>;
  private mode: ColorMode;

  constructor(
    fgColors: Record<string, ColorValue>,
    bgColors: Record<string, ColorValue>,
    mode: ColorMode,
    options: ThemeOptions = {},
  ) {
    this.name = options.name;
    this.sourcePath = options.sourcePath;
    this.sourceInfo = options.sourceInfo;
    this.mode = mode;
    const sequences = (colors: Record<string, ColorValue>, layer: 38 | 48) =>
      new Map(Object.entries(colors).map(([name, color]) => [name, sequence(color, layer, mode)]));
    this.fgColors = sequences(fgColors, 38);
    this.bgColors = sequences(bgColors, 48);
    for (const [newer, older] of FALLBACKS) {
      const colors = BACKGROUNDS.has(newer) ? this.bgColors : this.fgColors;
      const color = colors.get(older);
      if (color !== undefined && !colors.has(newer)) colors.set(newer, color);
    }
  }

  fg(color: string, text: string): string {
    return `${this.getFgAnsi(color)}${text}\x1b[39m`;
  }

  bg(color: string, text: string): string {
    return `${this.getBgAnsi(color)}${text}\x1b[49m`;
  }

  bold(text: string): string {
    return styled(1, 22)(text);
  }

  italic(text: string): string {
    return styled(3, 23)(text);
  }

  underline(text: string): string {
    return styled(4, 24)(text);
  }

  inverse(text: string): string {
    return styled(7, 27)(text);
  }

  strikethrough(text: string): string {
    return styled(9, 29)(text);
  }

  getFgAnsi(color: string): string {
    const found = this.fgColors.get(color);
    if (found === undefined) throw new Error(`Unknown theme color: ${color}`);
    return found;
  }

  getBgAnsi(color: string): string {
    const found = this.bgColors.get(color);
    if (found === undefined) throw new Error(`Unknown theme background color: ${color}`);
    return found;
  }

  getColorMode(): ColorMode {
    return this.mode;
  }

  getThinkingBorderColor(level: string): Paint {
    return (text) => this.fg(BORDERS[level] ?? BORDERS.off, text);
  }

  getBashModeBorderColor(): Paint {
    return (text) => this.fg("bashMode", text);
  }
}
