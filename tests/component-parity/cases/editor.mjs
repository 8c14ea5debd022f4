// The editor after sequences of keys.
import { press } from "./simple.mjs";
import { TEXTS } from "./texts.mjs";

const identity = (text) => text;
const THEME = {
  borderColor: (text) => `\x1b[90m${text}\x1b[39m`,
  selectList: {
    selectedPrefix: identity,
    selectedText: (text) => `\x1b[1m${text}\x1b[22m`,
    description: identity,
    scrollInfo: identity,
    noMatch: identity,
  },
};

const TUI = { requestRender() {}, terminal: { rows: 24, columns: 80 } };
const PASTE = (text) => `\x1b[200~${text}\x1b[201~`;
const WORDS = [..."some words, and (more) words of text"];
const LONG = [...TEXTS.prose, " ", ...TEXTS.path];
const LINES = (count) => Array.from({ length: count }, (_, i) => `line ${i}`).join("\n");

const SEQUENCES = {
  empty: [],
  typed: WORDS,
  wrapped: LONG,
  "wrapped wide": [TEXTS.cjk, TEXTS.emoji],
  "cursor in the middle": [...LONG, "up", "up", "left", "left"],
  "cursor on a wide character": [TEXTS.cjk, "left", "left", "left"],
  "cursor by words": [...WORDS, "\x1bb", "\x1bb", "\x1bb", "X", "\x1bf", "Y"],
  "home and end": [...WORDS, "home", "<", "end", ">"],
  "new lines": [..."one", "\n", ..."two", "\x1b\r", ..."three", "\x1b[13;2~", ..."four"],
  "backslash enter": [..."one\\", "enter", ..."two"],
  "words deleted": [...WORDS, "\x17", "\x17", "\x17"],
  "words deleted forward": [...WORDS, "home", "\x1bd", "\x1bd"],
  "killed to the end": [...WORDS, "\x1bb", "\x1bb", "\x0b"],
  "killed to the start": [...WORDS, "\x1bb", "\x15"],
  "killed over lines": [..."one", "\n", ..."two", "home", "\x15", "\x15", "\x19"],
  yanked: [...WORDS, "\x17", "\x17", "left", "\x19", "\x19"],
  "yank popped": [...WORDS, "\x17", "left", "\x17", "right", "\x15", "\x19", "\x1by", "\x1by"],
  "yank popped over lines": [..."a", "\n", ..."b", "\x15", "\x15", "\x15", ..."xy", "\x15", "\x19", "\x1by"],
  undone: [...WORDS, "\x1f", "\x1f"],
  "undone to nothing": [...WORDS, ...Array(20).fill("\x1f")],
  "undo after kill": [...WORDS, "\x15", "\x1f"],
  backspace: [...WORDS, "backspace", "backspace", "home", "delete", "delete"],
  "backspace joins lines": [..."one", "\n", ..."two", "home", "backspace"],
  "delete joins lines": [..."one", "\n", ..."two", "up", "end", "delete"],
  "backspace of emoji": [TEXTS.emoji, "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace"],
  "sticky column": [..."a long first line", "\n", "b", "\n", ..."a long third line", "up", "up", "|", "down", "down", "|"],
  "sticky column back": [..."a long first line", "\n", "b", "\n", ..."a long third line", "up", "down", "|"],
  "up to the start": [...WORDS, "up", "|"],
  "down to the end": [...WORDS, "home", "down", "|"],
  pasted: [PASTE("pasted text")],
  "pasted lines": [..."before ", PASTE("one\r\ntwo\tthree\rfour"), ..." after"],
  "pasted path": [..."see", PASTE("/usr/bin/env")],
  "pasted in pieces": ["\x1b[200~in ", "two pie", "ces\x1b[201~ and more"],
  "large paste": [..."before ", PASTE(LINES(20)), ..." after"],
  "large paste of characters": [PASTE("x".repeat(1500)), "left", "|"],
  "large paste deleted": [..."a ", PASTE(LINES(12)), "backspace", "backspace"],
  "over a marker": [..."ab ", PASTE(LINES(12)), ..." cd", "\x1bb", "\x1bb", "|"],
  "marker wrapped": [...WORDS, PASTE(LINES(12)), ...WORDS, "up", "up"],
  "two markers": [PASTE(LINES(12)), " ", PASTE(LINES(13)), "left", "left", "left", "|"],
  scrolled: [PASTE(LINES(9)), ..."\n\n\n\n\n".split("")],
  "scrolled up": [PASTE(LINES(9)), ...Array(12).fill("\n"), "pageUp", "pageUp", "|"],
  "scrolled down": [PASTE(LINES(9)), ...Array(12).fill("\n"), "pageUp", "pageUp", "pageUp", "pageDown"],
  "jumped forward": [...WORDS, "home", "\x1d", "w", "|"],
  "jumped backward": [...WORDS, "\x1b\x1d", "w", "|"],
  "jump cancelled": [...WORDS, "home", "\x1d", "\x1d", "x"],
  "control characters": ["a", "\x00", "\x02", "\x1b[99~", "b"],
  kitty: ["\x1b[97u", "\x1b[98;2u", "\x1b[32;2u", "\x1b[13;2u", "c"],
};

const PROVIDER = {
  async getSuggestions(lines, row, col) {
    const before = lines[row].slice(0, col);
    if (!before.startsWith("/")) return null;
    const all = ["help", "hello", "history", "model"].map((name) => ({ value: name, label: name, description: `about ${name}` }));
    return { items: all.filter(({ value }) => value.startsWith(before.slice(1))), prefix: before };
  },
  applyCompletion(lines, row, col, item, prefix) {
    const line = `${lines[row].slice(0, col - prefix.length)}/${item.value} ${lines[row].slice(col)}`;
    return { lines: lines.map((old, i) => (i === row ? line : old)), cursorLine: row, cursorCol: item.value.length + 2 };
  },
};

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

export function editorCases({ tui, agent }) {
  const { Editor } = tui;
  const make = (options) => {
    const editor = new Editor(TUI, THEME, options);
    editor.focused = true;
    return editor;
  };
  const cases = {};
  for (const [name, keys] of Object.entries(SEQUENCES)) {
    // Rendered once before the keys, since moving up and down depends on the width.
    cases[`Editor ${name}`] = (width) => {
      const editor = make();
      editor.render(width);
      const { line, col } = press(editor, keys).getCursor();
      return [...editor.render(width), `${line}:${col}`, editor.getText(), String(editor.getExpandedText().length)];
    };
  }
  cases["Editor with padding"] = () => press(make({ paddingX: 3 }), LONG);
  cases["Editor without focus"] = () => {
    const editor = press(make(), WORDS);
    editor.focused = false;
    return editor;
  };
  cases["Editor set"] = () => {
    const editor = make();
    editor.setText("set\r\ntext\twith tab");
    editor.insertTextAtCursor(" and inserted\nlines");
    return editor;
  };
  cases["Editor events"] = () => {
    const events = [];
    const editor = make();
    editor.onChange = (text) => events.push(`change ${text}`);
    editor.onSubmit = (text) => events.push(`submit ${text}`);
    press(editor, [..."ab", "backspace", "\x15", PASTE(LINES(12)), "enter", ..."x", "\n", "y", "enter", "enter"]);
    return events;
  };
  cases["Editor history"] = (width) => {
    const editor = make();
    for (const text of ["first", "second\nwith lines", "second\nwith lines", "  third  "]) editor.addToHistory(text);
    const seen = [];
    for (const key of ["up", "up", "up", "up", "up", "down", "down", "down", "down", "down"]) {
      press(editor, [key]);
      editor.render(width);
      seen.push(`${key} ${editor.getText()} ${JSON.stringify(editor.getCursor())}`);
    }
    return seen;
  };
  const completed = (keys, after = []) => async (width) => {
    const editor = make({ autocompleteMaxVisible: 3 });
    editor.setAutocompleteProvider(PROVIDER);
    for (const key of keys) {
      press(editor, [key]);
      await settled();
    }
    press(editor, after);
    await settled();
    return [...editor.render(width), String(editor.isShowingAutocomplete())];
  };
  cases["Editor suggestions"] = completed(["/"]);
  cases["Editor suggestions narrowed"] = completed(["/", "h", "e"]);
  cases["Editor suggestions chosen"] = completed(["/", "h"], ["down", "tab"]);
  cases["Editor suggestions confirmed"] = completed(["/", "h"], ["enter"]);
  cases["Editor suggestions cancelled"] = completed(["/", "h"], ["escape"]);
  cases["Editor suggestions deleted"] = completed(["/", "h", "x", "backspace"]);
  cases["Editor suggestions by tab"] = completed(["/", "m", "escape", "tab"]);

  cases["CustomEditor"] = () => {
    const events = [];
    const keys = tui.getKeybindings();
    const editor = new agent.CustomEditor(TUI, THEME, keys);
    editor.onAction("app.clear", () => events.push("clear"));
    editor.onEscape = () => events.push("escape");
    editor.onCtrlD = () => events.push("exit");
    editor.onPasteImage = () => events.push("image");
    editor.onExtensionShortcut = (data) => data === "\x1bz" && events.push("shortcut") > 0;
    press(editor, ["\x04", "a", "\x04", "escape", "\x03", "\x16", "\x1bz", "b"]);
    return [...events, editor.getText(), ...editor.render(40)];
  };
  return cases;
}
