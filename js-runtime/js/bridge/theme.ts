// The colours that `ctx.ui.theme` gives to components.
import { theme } from "pi:pi-coding-agent/theme.ts";

export function currentTheme(): unknown {
  return theme;
}
