// The themes that `ctx.ui` returns and changes.
export { changeTheme, type Theme, theme } from "pi:pi-coding-agent/theme/index.ts";
export { availableThemes, findTheme } from "pi:pi-coding-agent/theme/available.ts";
