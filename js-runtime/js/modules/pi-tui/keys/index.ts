// Names of keys, and what terminals send for them: plain bytes, xterm and rxvt
// sequences, xterm's modifyOtherKeys and the Kitty keyboard protocol.
import { env } from "pi:node.ts";
import { LEGACY_SEQUENCES } from "pi:pi-tui/keys/sequences.ts";

export type KeyId = string;

const SHIFT = 1;
const ALT = 2;
const CTRL = 4;
const SUPER = 8;
/** Caps Lock and Num Lock: reported like modifiers, but never part of a key binding. */
const LOCKS = 64 + 128;
/** Modifiers in the order in which they appear in names. */
const MODIFIERS: readonly [string, number][] = [
  ["shift", SHIFT],
  ["ctrl", CTRL],
  ["alt", ALT],
  ["super", SUPER],
];

const SYMBOLS = "`-=[]\\;',./!@#$%^&*()_+|~{}:<>?";
const isLetter = (name: string) => /^[a-z]$/.test(name);
const isDigit = (name: string) => /^[0-9]$/.test(name);
const isSymbol = (name: string) => name.length === 1 && SYMBOLS.includes(name);
const isCharacter = (name: string) => isLetter(name) || isDigit(name) || isSymbol(name);

const combine =
  (...modifiers: string[]) =>
  (key: string): KeyId =>
    [...modifiers, key].join("+");

/** Key names for code completion: `Key.escape`, `Key.ctrl("c")`. */
export const Key = {
  escape: "escape",
  esc: "esc",
  enter: "enter",
  return: "return",
  tab: "tab",
  space: "space",
  backspace: "backspace",
  delete: "delete",
  insert: "insert",
  clear: "clear",
  home: "home",
  end: "end",
  pageUp: "pageUp",
  pageDown: "pageDown",
  up: "up",
  down: "down",
  left: "left",
  right: "right",
  f1: "f1",
  f2: "f2",
  f3: "f3",
  f4: "f4",
  f5: "f5",
  f6: "f6",
  f7: "f7",
  f8: "f8",
  f9: "f9",
  f10: "f10",
  f11: "f11",
  f12: "f12",
  backtick: "`",
  hyphen: "-",
  equals: "=",
  leftbracket: "[",
  rightbracket: "]",
  backslash: "\\",
  semicolon: ";",
  quote: "'",
  comma: ",",
  period: ".",
  slash: "/",
  exclamation: "!",
  at: "@",
  hash: "#",
  dollar: "$",
  percent: "%",
  caret: "^",
  ampersand: "&",
  asterisk: "*",
  leftparen: "(",
  rightparen: ")",
  underscore: "_",
  plus: "+",
  pipe: "|",
  tilde: "~",
  leftbrace: "{",
  rightbrace: "}",
  colon: ":",
  lessthan: "<",
  greaterthan: ">",
  question: "?",
  ctrl: combine("ctrl"),
  shift: combine("shift"),
  alt: combine("alt"),
  super: combine("super"),
  ctrlShift: combine("ctrl", "shift"),
  shiftCtrl: combine("shift", "ctrl"),
  ctrlAlt: combine("ctrl", "alt"),
  altCtrl: combine("alt", "ctrl"),
  shiftAlt: combine("shift", "alt"),
  altShift: combine("alt", "shift"),
  ctrlSuper: combine("ctrl", "super"),
  superCtrl: combine("super", "ctrl"),
  shiftSuper: combine("shift", "super"),
  superShift: combine("super", "shift"),
  altSuper: combine("alt", "super"),
  superAlt: combine("super", "alt"),
  ctrlShiftAlt: combine("ctrl", "shift", "alt"),
  ctrlShiftSuper: combine("ctrl", "shift", "super"),
} as const;

let kittyActive = false;

/** Sets whether the terminal uses the Kitty keyboard protocol, which changes the meaning of some bytes. */
export function setKittyProtocolActive(active: boolean): void {
  kittyActive = active;
}

export function isKittyProtocolActive(): boolean {
  return kittyActive;
}

/** Events other than a press; pasted text may look like one. */
function hasEventType(data: string, type: RegExp): boolean {
  return !data.includes("\x1b[200~") && type.test(data);
}

export function isKeyRelease(data: string): boolean {
  return hasEventType(data, /:3[u~ABCDHF]/);
}

export function isKeyRepeat(data: string): boolean {
  return hasEventType(data, /:2[u~ABCDHF]/);
}

/** Keys of the Kitty protocol by code point, the keypad as what it types. */
const NAME_OF_CODE: ReadonlyMap<number, string> = new Map([
  [27, "escape"],
  [9, "tab"],
  [13, "enter"],
  [32, "space"],
  [127, "backspace"],
  ...[..."0123456789./*-+"].map((name, i): [number, string] => [57399 + i, name]),
  [57414, "enter"],
  [57415, "="],
  [57416, ","],
  ...["left", "right", "up", "down", "pageUp", "pageDown", "home", "end", "insert", "delete"].map(
    (name, i): [number, string] => [57417 + i, name],
  ),
]);
const NAME_OF_LETTER: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  H: "home",
  F: "end",
};
const NAME_OF_NUMBER: Readonly<Record<string, string>> = {
  2: "insert",
  3: "delete",
  5: "pageUp",
  6: "pageDown",
  7: "home",
  8: "end",
};

function nameOfCode(code: number): string | undefined {
  const special = NAME_OF_CODE.get(code);
  if (special) return special;
  return code > 32 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
}

/** A key press that the terminal spelled out. */
interface Report {
  /** The name, or the character that the key types. */
  name: string;
  /** The key of the US layout in the same place. */
  baseName?: string;
  modifiers: number;
}

const CSI_U = /^\x1b\[(\d+)(?::(\d*))?(?::(\d+))?(?:;(\d+))?(?::(\d+))?u$/;
const CSI_LETTER = /^\x1b\[1;(\d+)(?::\d+)?([ABCDHF])$/;
const CSI_NUMBER = /^\x1b\[(\d+)(?:;(\d+))?(?::\d+)?~$/;
const OTHER_KEYS = /^\x1b\[27;(\d+);(\d+)~$/;

const modifiersOf = (text: string | undefined): number => (text ? Number(text) - 1 : 0);

function kittyReport(data: string): Report | undefined {
  let match = CSI_U.exec(data);
  if (match) {
    const name = nameOfCode(Number(match[1]));
    const baseName = match[3] ? nameOfCode(Number(match[3])) : undefined;
    if (!name && !baseName) return undefined;
    return { name: name ?? "", baseName, modifiers: modifiersOf(match[4]) & ~LOCKS };
  }
  match = CSI_LETTER.exec(data);
  if (match) return { name: NAME_OF_LETTER[match[2]], modifiers: modifiersOf(match[1]) & ~LOCKS };
  match = CSI_NUMBER.exec(data);
  const name = match && NAME_OF_NUMBER[match[1]];
  return name ? { name, modifiers: modifiersOf(match?.[2]) & ~LOCKS } : undefined;
}

function otherKeysReport(data: string): Report | undefined {
  const match = OTHER_KEYS.exec(data);
  const code = match ? Number(match[2]) : 0;
  // The numbers of keypad keys are Kitty's own.
  const name = code < 57344 ? nameOfCode(code) : undefined;
  return match && name ? { name, modifiers: modifiersOf(match[1]) } : undefined;
}

/** Windows Terminal sends backspace for Ctrl+Backspace; others for the key itself. */
function isWindowsTerminal(): boolean {
  return Boolean(env("WT_SESSION")) &&
    !["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].some((name) => env(name));
}

/** The control character that a key sends with Ctrl. */
function controlCharacter(key: string): string | undefined {
  if (key === "-") return "\x1f";
  if (!isLetter(key) && !"[\\]_".includes(key)) return undefined;
  return String.fromCharCode(key.charCodeAt(0) & 0x1f);
}

interface KeyPattern {
  name: string;
  modifiers: number;
}

const KEY_NAMES: ReadonlyMap<string, string> = new Map(
  [
    "escape", "enter", "tab", "space", "backspace", "delete", "insert", "clear", "home", "end",
    "pageUp", "pageDown", "up", "down", "left", "right",
    "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
  ].map((name): [string, string] => [name.toLowerCase(), name]),
);
const SYNONYMS: Readonly<Record<string, string>> = { esc: "escape", return: "enter" };

function parseKeyId(id: string): KeyPattern | undefined {
  const lower = id.toLowerCase();
  // The key "+" itself: "+", "ctrl++".
  const parts = lower.endsWith("+") ? [...lower.slice(0, -1).split("+"), "+"] : lower.split("+");
  const key = parts.at(-1) ?? "";
  const name = KEY_NAMES.get(SYNONYMS[key] ?? key) ?? (isCharacter(key) ? key : undefined);
  if (!name) return undefined;
  const pressed = MODIFIERS.filter(([modifier]) => parts.slice(0, -1).includes(modifier));
  return { name, modifiers: pressed.reduce((sum, [, bit]) => sum | bit, 0) };
}

/** Whether `data`, as it came from the terminal, is the key `keyId` ("ctrl+c", "escape"). */
export function matchesKey(data: string, keyId: KeyId): boolean {
  const wanted = parseKeyId(keyId);
  if (!wanted) return false;
  const { name, modifiers } = wanted;
  if (name === "escape" && modifiers !== 0) return false;
  if (matchesPlain(data, name, modifiers)) return true;
  if (/^f\d|^clear$/.test(name)) return false;

  const kitty = kittyReport(data);
  if (kitty && kitty.modifiers === modifiers) {
    if (kitty.name === name) return true;
    // A key of another script (Ctrl+Cyrillic es) means the Latin key in its place; a remapped Latin
    // layout counts as reported.
    if (kitty.baseName === name && !isLetter(kitty.name) && !isSymbol(kitty.name)) return true;
  }
  const other = otherKeysReport(data);
  const typed = modifiers === 0 && !["escape", "space", "backspace"].includes(name);
  return other?.name === name && other.modifiers === modifiers && !typed;
}

/** Bytes and sequences that do not spell out their modifiers. */
function matchesPlain(data: string, name: string, modifiers: number): boolean {
  if (isCharacter(name)) {
    const control = controlCharacter(name);
    switch (modifiers) {
      case 0:
        return data === name;
      case SHIFT:
        return isLetter(name) && data === name.toUpperCase();
      case CTRL:
        return control !== undefined && data === control;
      case ALT:
        return !kittyActive && !isSymbol(name) && data === `\x1b${name}`;
      case CTRL | ALT:
        return !kittyActive && control !== undefined && data === `\x1b${control}`;
      default:
        return false;
    }
  }
  return plainKeys(data).some((key) => key.name === name && key.modifiers === modifiers);
}

/** Meanings of `data` that are no character keys. */
function plainKeys(data: string): KeyPattern[] {
  const legacy = LEGACY_SEQUENCES.get(data);
  if (legacy) return [legacy];
  const key = (name: string, modifiers = 0): KeyPattern[] => [{ name, modifiers }];
  switch (data) {
    case "\x1b":
      return key("escape");
    case " ":
      return key("space");
    case "\0":
      return kittyActive ? [] : key("space", CTRL);
    case "\x1b ":
      return kittyActive ? [] : key("space", ALT);
    case "\t":
      return key("tab");
    case "\x1b[Z":
      return key("tab", SHIFT);
    case "\r":
    case "\x1bOM":
      return key("enter");
    // With the Kitty protocol only user-made mappings send these.
    case "\n":
      return key("enter", kittyActive ? SHIFT : 0);
    case "\x1b\r":
      return key("enter", kittyActive ? SHIFT : ALT);
    case "\x7f":
      return key("backspace");
    case "\b":
      return key("backspace", isWindowsTerminal() ? CTRL : 0);
    case "\x1b\x7f":
    case "\x1b\b":
      return key("backspace", ALT);
    case "\x1bB":
      return kittyActive ? [] : key("left", ALT);
    case "\x1bF":
      return kittyActive ? [] : key("right", ALT);
    default:
      return [];
  }
}

function format(name: string, modifiers: number): KeyId | undefined {
  if (modifiers & ~(SHIFT | ALT | CTRL | SUPER)) return undefined;
  const pressed = MODIFIERS.filter(([, bit]) => modifiers & bit);
  return [...pressed.map(([modifier]) => modifier), name].join("+");
}

/** The name of the key that `data` is, or `undefined` if it is none that has a name. */
export function parseKey(data: string): KeyId | undefined {
  const report = kittyReport(data) ?? otherKeysReport(data);
  if (report) {
    const name = isCharacter(report.name) ? report.name : (report.baseName ?? report.name);
    const known = isCharacter(name) || KEY_NAMES.has(name.toLowerCase());
    return known ? format(name, report.modifiers & ~LOCKS) : undefined;
  }
  if (data === "\0") return "ctrl+space";
  const [key] = plainKeys(data);
  if (key) return format(key.name, key.modifiers);
  return parseCharacter(data);
}

function parseCharacter(data: string): KeyId | undefined {
  const escaped = data.length === 2 && data[0] === "\x1b";
  const character = escaped ? data[1] : data;
  if (character.length !== 1) return undefined;
  const code = character.charCodeAt(0);
  const modifier = escaped ? "ctrl+alt+" : "ctrl+";
  // Ctrl+[ is Escape itself, unless Alt is pressed as well.
  if (code >= 27 && code <= 31 && code !== 30) {
    return code === 27 && !escaped ? undefined : modifier + { 27: "[", 28: "\\", 29: "]", 31: "-" }[code];
  }
  if (escaped && kittyActive) return undefined;
  if (code >= 1 && code <= 26) return modifier + String.fromCharCode(code + 96);
  if (escaped) return isLetter(character) || isDigit(character) ? `alt+${character}` : undefined;
  return code >= 32 && code <= 126 ? character : undefined;
}

/** The character that a Kitty sequence types, if it types one. */
export function decodeKittyPrintable(data: string): string | undefined {
  const match = CSI_U.exec(data);
  if (!match) return undefined;
  const modifiers = modifiersOf(match[4]) & ~LOCKS;
  if (modifiers & ~SHIFT) return undefined;
  const code = Number(modifiers & SHIFT && match[2] ? match[2] : match[1]);
  const name = NAME_OF_CODE.get(code);
  if (code >= 57399 && name) return name.length === 1 ? name : undefined;
  return code >= 32 && code <= 0x10ffff ? String.fromCodePoint(code) : undefined;
}
