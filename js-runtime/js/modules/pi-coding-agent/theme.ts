// Colours of the terminal by purpose. Extensions get the current theme as
// `ctx.ui.theme`, as an argument of their renderers, and inside the functions below.
import { env, fs, path } from "pi:node.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import {
  BACKGROUNDS,
  BUILT_IN,
  type ColorName,
  type ColorValue,
  type ThemeFile,
} from "pi:pi-coding-agent/theme-colors.ts";

export type ColorMode = "truecolor" | "256color";
type Paint = (text: string) => string;

function colorMode(): ColorMode {
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

/** How far apart two colours look: the eye sees green best, blue worst. */
function distance(a: number[], b: number[]): number {
  const [red, green, blue] = a.map((value, i) => (value - b[i]) ** 2);
  return red * 0.299 + green * 0.587 + blue * 0.114;
}

/** The index of the 256 colours that comes closest. Tinted colours stay tinted. */
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

/** The escape sequence that switches `color` on; `layer` is 38 for text, 48 for backgrounds. */
function sequence(color: ColorValue, layer: 38 | 48, mode: ColorMode): string {
  if (color === "") return `\x1b[${layer + 1}m`;
  if (typeof color === "number") return `\x1b[${layer};5;${color}m`;
  const rgb = rgbOf(color);
  return mode === "truecolor"
    ? `\x1b[${layer};2;${rgb.join(";")}m`
    : `\x1b[${layer};5;${indexOf(rgb)}m`;
}

const styled = (on: number, off: number): Paint => (text) =>
  text === "" ? "" : `\x1b[${on}m${text}\x1b[${off}m`;

const BORDERS: Readonly<Record<string, string>> = {
  off: "thinkingOff",
  minimal: "thinkingMinimal",
  low: "thinkingLow",
  medium: "thinkingMedium",
  high: "thinkingHigh",
  xhigh: "thinkingXhigh",
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

/** Follows references into `vars`. */
function resolve(value: ColorValue, vars: Record<string, ColorValue>): ColorValue {
  const seen = new Set<string>();
  while (typeof value === "string" && value !== "" && !value.startsWith("#")) {
    if (seen.has(value)) throw new Error(`Circular variable reference detected: ${value}`);
    if (!(value in vars)) throw new Error(`Variable reference not found: ${value}`);
    seen.add(value);
    value = vars[value];
  }
  return value;
}

function build(file: ThemeFile, sourcePath?: string): Theme {
  const needed = Object.keys(BUILT_IN.dark.colors) as ColorName[];
  const absent = needed.filter((name) => file.colors?.[name] === undefined);
  if (absent.length > 0) {
    throw new Error(`Invalid theme "${file.name}": these colors are missing: ${absent.join(", ")}`);
  }
  const fg: Record<string, ColorValue> = {};
  const bg: Record<string, ColorValue> = {};
  for (const [name, value] of Object.entries(file.colors)) {
    (BACKGROUNDS.has(name) ? bg : fg)[name] = resolve(value, file.vars ?? {});
  }
  return new Theme(fg, bg, colorMode(), { name: file.name, sourcePath });
}

function load(name: string): Theme {
  if (name === "dark" || name === "light") return build({ name, ...BUILT_IN[name] });
  const file = path().join(getAgentDir(), "themes", `${name}.json`);
  if (!fs().existsSync(file)) throw new Error(`Theme not found: ${name}`);
  return build(JSON.parse(fs().readFileSync(file, "utf8")) as ThemeFile, file);
}

/** Terminals that tell their colours do it as "foreground;background". */
function defaultName(): "dark" | "light" {
  const background = Number.parseInt(env("COLORFGBG")?.split(";").at(-1) ?? "", 10);
  return background >= 8 ? "light" : "dark";
}

let current: Theme | undefined;

/** Makes the theme `name` the current one; `dark` if it cannot be read. */
export function initTheme(name?: string): void {
  try {
    current = load(name ?? defaultName());
  } catch {
    current = load("dark");
  }
}

function currentTheme(): Theme {
  if (!current) initTheme();
  return current as Theme;
}

/** The current theme, whichever that is when it is used. */
export const theme: Theme = new Proxy(Object.create(Theme.prototype) as Theme, {
  get: (_target, key) => Reflect.get(currentTheme(), key),
  has: (_target, key) => Reflect.has(currentTheme(), key),
});

const color = (name: ColorName): Paint => (text) => theme.fg(name, text);

export function getMarkdownTheme() {
  return {
    heading: color("mdHeading"),
    link: color("mdLink"),
    linkUrl: color("mdLinkUrl"),
    code: color("mdCode"),
    codeBlock: color("mdCodeBlock"),
    codeBlockBorder: color("mdCodeBlockBorder"),
    quote: color("mdQuote"),
    quoteBorder: color("mdQuoteBorder"),
    hr: color("mdHr"),
    listBullet: color("mdListBullet"),
    bold: (text: string) => theme.bold(text),
    italic: (text: string) => theme.italic(text),
    underline: (text: string) => theme.underline(text),
    strikethrough: (text: string) => theme.strikethrough(text),
  };
}

export function getSelectListTheme() {
  return {
    selectedPrefix: color("accent"),
    selectedText: color("accent"),
    description: color("muted"),
    scrollInfo: color("muted"),
    noMatch: color("muted"),
  };
}

export function getSettingsListTheme() {
  return {
    label: (text: string, selected: boolean) => (selected ? theme.fg("accent", text) : text),
    value: (text: string, selected: boolean) => theme.fg(selected ? "accent" : "muted", text),
    description: color("dim"),
    cursor: theme.fg("accent", "\u2192 "),
    hint: color("dim"),
  };
}
