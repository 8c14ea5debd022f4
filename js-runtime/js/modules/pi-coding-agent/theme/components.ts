// The current theme in the form that the components of pi-tui expect.
import { highlightCode } from "pi:pi-coding-agent/theme/highlight.ts";
import { theme } from "pi:pi-coding-agent/theme/index.ts";
import type { ColorName } from "pi:pi-coding-agent/theme/colors.ts";

type Paint = (text: string) => string;

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
    highlightCode,
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

export function getEditorTheme() {
  return { borderColor: color("borderMuted"), selectList: getSelectListTheme() };
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
