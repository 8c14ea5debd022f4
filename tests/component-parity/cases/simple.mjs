// Components without much behaviour: texts, boxes, lists, lines to type into.
import { OFF, RED, TEXTS } from "./texts.mjs";

const green = (text) => `\x1b[42m${text}\x1b[49m`;
const mark = (name) => (text) => `<${name}>${text}</${name}>`;

const LIST_THEME = {
  selectedPrefix: mark("p"),
  selectedText: (text) => `\x1b[1m${text}\x1b[22m`,
  description: (text) => `\x1b[2m${text}\x1b[22m`,
  scrollInfo: (text) => `\x1b[3m${text}\x1b[23m`,
  noMatch: (text) => `\x1b[9m${text}\x1b[29m`,
};
const SETTINGS_THEME = {
  label: (text, selected) => (selected ? `\x1b[1m${text}\x1b[22m` : text),
  value: (text, selected) => (selected ? `\x1b[4m${text}\x1b[24m` : text),
  description: (text) => `\x1b[2m${text}\x1b[22m`,
  cursor: "> ",
  hint: (text) => `\x1b[2m${text}\x1b[22m`,
};

export const KEYS = {
  up: "\x1b[A",
  down: "\x1b[B",
  right: "\x1b[C",
  left: "\x1b[D",
  home: "\x1b[H",
  end: "\x1b[F",
  enter: "\r",
  escape: "\x1b",
  tab: "\t",
  backspace: "\x7f",
  delete: "\x1b[3~",
  pageUp: "\x1b[5~",
  pageDown: "\x1b[6~",
};

/** Feeds keys, one array element each. */
export function press(component, keys) {
  for (const key of keys) component.handleInput(KEYS[key] ?? key);
  return component;
}

const ITEMS = Array.from({ length: 14 }, (_, i) => ({
  value: `value-${i}`,
  label: i % 4 === 3 ? `a label that is much too long for its column ${i}` : `label ${i}`,
  description: i % 3 === 0 ? undefined : `description ${i} ${"of some length ".repeat(i % 5)}`,
}));

const SETTINGS = () => [
  { id: "a", label: "Short", currentValue: "on", values: ["on", "off"], description: "What it does, at some length, so that it wraps in narrow terminals" },
  { id: "b", label: "A rather long label that is cut", currentValue: "a value that is long, too, and needs to be cut somewhere" },
  { id: "c", label: "\u65e5\u672c\u8a9e", currentValue: "\u5024", values: ["\u5024", "x"] },
  ...Array.from({ length: 9 }, (_, i) => ({ id: `n${i}`, label: `Number ${i}`, currentValue: String(i), values: ["1", "2", "3"] })),
];

export function simpleCases({ tui }) {
  const { Box, Container, Image, Input, Loader, SelectList, SettingsList, Spacer, Text, TruncatedText } = tui;
  const cases = {};
  for (const [name, text] of Object.entries(TEXTS)) {
    cases[`Text ${name}`] = () => new Text(text);
    cases[`Text with background ${name}`] = () => new Text(text, 2, 0, green);
    cases[`TruncatedText ${name}`] = () => new TruncatedText(text, 1, 0);
  }
  cases["Text after setText"] = () => {
    const text = new Text("before", 0, 0);
    text.render(20);
    text.setText("after");
    text.setCustomBgFn(green);
    return text;
  };
  cases["TruncatedText padded"] = () => new TruncatedText(`${RED}colour and\nmore${OFF}`, 3, 1);
  cases["Spacer"] = () => new Spacer(3);
  cases["Container"] = () => {
    const container = new Container();
    const gone = new Text("gone");
    for (const child of [new Text("a", 0, 0), gone, new Spacer(1), new Text(TEXTS.prose, 0, 0)]) container.addChild(child);
    container.removeChild(gone);
    return container;
  };
  cases["Box"] = () => {
    const box = new Box(2, 1, green);
    box.addChild(new Text(TEXTS.prose, 0, 0));
    box.addChild(new Text(TEXTS.ansi, 0, 0));
    return box;
  };
  cases["Box empty"] = () => new Box(2, 1, green);
  cases["Loader"] = () => {
    const loader = new Loader({ requestRender() {} }, mark("s"), mark("m"), "Working on it");
    loader.stop();
    return loader;
  };
  cases["Image without support"] = () =>
    new Image("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAHCAYAAAA", "image/png", { fallbackColor: mark("f") }, { filename: "x.png" });
  cases["Image of unknown size"] = () => new Image("AAAA", "image/bmp", { fallbackColor: mark("f") });
  for (const protocol of ["kitty", "iterm2"]) {
    cases[`Image for ${protocol}`] = (width) => {
      tui.setCapabilities({ images: protocol, trueColor: true, hyperlinks: true });
      const image = new Image("iVBORw0KGgo".repeat(900), "image/png", { fallbackColor: mark("f") }, { maxWidthCells: 40, imageId: 7 }, { widthPx: 400, heightPx: 300 });
      const lines = image.render(width);
      tui.setCapabilities({ images: null, trueColor: true, hyperlinks: false });
      return lines;
    };
  }

  // `process.stdout.columns` without a terminal, and what is computed from heights.
  cases["Text without a width"] = () => new Text(TEXTS.prose).render(undefined);
  cases["Box without a width"] = () => {
    const box = new Box(1, 1, green);
    box.addChild(new Text("some words", 0, 0));
    return box.render(undefined);
  };
  cases["heights that are no whole numbers"] = () => [
    new Spacer(8.5), new Spacer(NaN), new Spacer(null), new Spacer(-1),
    new Text("abc", 0, 1.5), new Text("abc", null, null), new TruncatedText("abc", 0, 0.5),
  ].map((made) => made.render(5).length);

  const list = (keys, items = ITEMS, layout) => () => press(new SelectList(items, 5, LIST_THEME, layout), keys);
  cases["SelectList"] = list([]);
  cases["SelectList down"] = list(["down", "down", "down"]);
  cases["SelectList wrapped around"] = list(["up"]);
  cases["SelectList in the middle"] = list(Array(8).fill("down"));
  cases["SelectList short"] = list([], ITEMS.slice(0, 2));
  cases["SelectList empty"] = list([], []);
  cases["SelectList with layout"] = list(["down"], ITEMS, { minPrimaryColumnWidth: 12, maxPrimaryColumnWidth: 40 });
  cases["SelectList filtered"] = () => {
    const made = new SelectList(ITEMS, 5, LIST_THEME);
    made.setFilter("value-1");
    made.setSelectedIndex(2);
    return made;
  };
  cases["SelectList without match"] = () => {
    const made = new SelectList(ITEMS, 5, LIST_THEME);
    made.setFilter("zzz");
    return made;
  };
  cases["SelectList with wide labels"] = list([], [
    { value: "1", label: TEXTS.cjk, description: TEXTS.cjk },
    { value: "2", label: TEXTS.emoji, description: "line\nbreaks\nin it" },
  ]);

  const settings = (keys, options) => () =>
    press(new SettingsList(SETTINGS(), 6, SETTINGS_THEME, () => {}, () => {}, options), keys);
  cases["SettingsList"] = settings([]);
  cases["SettingsList changed"] = settings(["enter", "down", "down", " "]);
  cases["SettingsList from the end"] = settings(["up"]);
  cases["SettingsList searching"] = settings(["n", "u", "m"], { enableSearch: true });
  cases["SettingsList without match"] = settings(["q", "q"], { enableSearch: true });
  cases["SettingsList empty"] = () => new SettingsList([], 6, SETTINGS_THEME, () => {}, () => {});
  cases["SettingsList submenu"] = () => {
    const items = [{ id: "s", label: "Sub", currentValue: "x", submenu: (value) => new Text(`submenu of ${value}`) }];
    return press(new SettingsList(items, 6, SETTINGS_THEME, () => {}, () => {}), ["enter"]);
  };

  const input = (keys, prepare = () => {}) => () => {
    const made = new Input();
    made.focused = true;
    prepare(made);
    return press(made, keys);
  };
  const typed = [..."hello wide world"];
  cases["Input empty"] = input([]);
  cases["Input typed"] = input(typed);
  cases["Input moved"] = input([...typed, "left", "left", "\x1bb", "X"]);
  cases["Input at the start"] = input([...typed, "\x01", "\x1bf", "-"]);
  cases["Input killed and yanked"] = input([...typed, "\x17", "\x17", "\x19", "\x19"]);
  cases["Input yank popped"] = input([...typed, "\x17", "left", "\x15", "\x19", "\x1by"]);
  cases["Input undone"] = input([...typed, "\x1f", "\x1f"]);
  cases["Input pasted"] = input(["\x1b[200~two\nlines\tand tab\x1b[201~after"]);
  cases["Input long"] = input([..."0123456789".repeat(12)]);
  cases["Input long in the middle"] = input([..."0123456789".repeat(12), ...Array(55).fill("left")]);
  cases["Input wide"] = input([...TEXTS.cjk, ...Array(20).fill("left")]);
  cases["Input emoji"] = input([TEXTS.emoji, "left", "left", "backspace", "delete"]);
  cases["Input set"] = input(["end", "!"], (made) => made.setValue("preset"));
  cases["Input ignores sequences"] = input(["\x1b[99~", "a", "\x1b[97u", "\x1b[98;2u", "\x00"]);
  return cases;
}
