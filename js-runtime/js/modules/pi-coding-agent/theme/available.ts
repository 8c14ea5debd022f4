// Finds themes: the built-in ones, those that the program has loaded and, before it can be called,
// those in the folder of the user.
import { hostSync } from "pi:host.ts";
import { env, fs, path } from "pi:node.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { colorMode, Theme } from "pi:pi-coding-agent/theme/theme-class.ts";
import {
  BACKGROUNDS,
  BUILT_IN,
  type ColorName,
  type ColorValue,
  type ThemeFile,
} from "pi:pi-coding-agent/theme/colors.ts";

/** A theme that the program has loaded, with its variables resolved. */
export interface LoadedTheme extends ThemeFile {
  path: string;
  sourceInfo: unknown;
}

interface Themes {
  /** The value of the setting. */
  current?: string;
  themes: LoadedTheme[];
}

/** `undefined` while extensions load, and without a session. */
function askProgram(): Themes | undefined {
  try {
    return hostSync<Themes>("themes.list");
  } catch {
    return undefined;
  }
}

/** Resolves references into `vars`. */
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

function build(file: ThemeFile, sourcePath?: string, sourceInfo?: unknown): Theme {
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
  return new Theme(fg, bg, colorMode(), { name: file.name, sourcePath, sourceInfo });
}

export function themeOf(loaded: LoadedTheme): Theme {
  return build(loaded, loaded.path, loaded.sourceInfo);
}

function fromFile(name: string): Theme | undefined {
  const file = path().join(getAgentDir(), "themes", `${path().basename(name)}.json`);
  if (!fs().existsSync(file)) return undefined;
  return build(JSON.parse(fs().readFileSync(file, "utf8").replace(/^\ufeff/, "")) as ThemeFile, file);
}

export interface ThemeInfo {
  name: string;
  path?: string;
}

export function availableThemes(): ThemeInfo[] {
  const themes = new Map<string, ThemeInfo>();
  for (const name of Object.keys(BUILT_IN)) themes.set(name, { name });
  // A file takes precedence over a built-in theme of the same name.
  for (const { name, path } of askProgram()?.themes ?? []) themes.set(name, { name, path });
  return [...themes.values()].sort((a, b) => a.name.localeCompare(b.name));
}

export function findTheme(name: string): Theme | undefined {
  const answer = askProgram();
  const themes = answer?.themes ?? [];
  const loaded = themes.find((theme) => theme.name === name) ??
    themes.find((theme) => path().basename(theme.path) === `${name}.json`);
  if (loaded) return themeOf(loaded);
  if (name === "dark" || name === "light") return build({ name, ...BUILT_IN[name] });
  return answer ? undefined : fromFile(name);
}

/** Terminals report their colours as "foreground;background". */
function defaultName(): "dark" | "light" {
  const background = Number.parseInt(env("COLORFGBG")?.split(";").at(-1) ?? "", 10);
  return background >= 8 ? "light" : "dark";
}

/** The theme of the settings, and whether the settings could be read. */
export function chosenTheme(): { theme: Theme; isFinal: boolean } {
  const answer = askProgram();
  let theme: Theme | undefined;
  try {
    theme = findTheme(answer?.current ?? defaultName());
  } catch {
    // The file is no valid theme.
  }
  return { theme: theme ?? builtIn("dark"), isFinal: answer !== undefined };
}

export function builtIn(name: "dark" | "light"): Theme {
  return build({ name, ...BUILT_IN[name] });
}
