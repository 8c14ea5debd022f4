// The themes that `ctx.ui` gives out and changes.
export { changeTheme, type Theme, theme } from "pi:pi-coding-agent/theme.ts";
export { availableThemes, findTheme } from "pi:pi-coding-agent/themes.ts";
