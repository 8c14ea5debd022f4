// The current theme. Extensions get it as `ctx.ui.theme`, as an argument of their renderers, and
// inside components.
import { hostSync } from "pi:host.ts";
import { Theme } from "pi:pi-coding-agent/theme/theme-class.ts";
import { builtIn, chosenTheme, findTheme } from "pi:pi-coding-agent/theme/available.ts";

export { Theme };

let current: Theme | undefined;

/** Makes the theme `name` the current one; `dark` if it cannot be read. */
export function initTheme(name?: string): void {
  if (name === undefined) {
    current = undefined;
    return;
  }
  try {
    current = findTheme(name);
  } catch {
    // The file is no valid theme.
    current = undefined;
  }
  current ??= builtIn("dark");
}

/** Changes the theme; one that is passed by name is saved in the settings. */
export function changeTheme(to: string | Theme): { success: boolean; error?: string } {
  if (to instanceof Theme) {
    // The proxy that stands for the current theme is no theme of its own.
    if (to !== theme) current = to;
    return { success: true };
  }
  try {
    const found = findTheme(to);
    if (!found) return { success: false, error: `Theme not found: ${to}` };
    hostSync("themes.set", { name: to });
    current = found;
    return { success: true };
  } catch (error) {
    return { success: false, error: error instanceof Error ? error.message : String(error) };
  }
}

function currentTheme(): Theme {
  if (current) return current;
  const { theme, isFinal } = chosenTheme();
  if (isFinal) current = theme;
  return theme;
}

/** Stands for the theme that is current at the time of use. */
export const theme: Theme = new Proxy(Object.create(Theme.prototype) as Theme, {
  get: (_target, key) => Reflect.get(currentTheme(), key),
  has: (_target, key) => Reflect.has(currentTheme(), key),
});
