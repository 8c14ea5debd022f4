// Functions over a large corpus. Each case maps arguments to results.
import { OFF, RED, TEXTS, WIDTHS } from "./texts.mjs";

const LETTERS = [..."acmz019-[\\;/+@_"];
const NAMES = ["escape", "return", "tab", "space", "backspace", "delete", "clear", "home", "pageUp", "up", "left", "f1", "f5", "f12"];
const MODIFIERS = ["", "ctrl+", "shift+", "alt+", "super+", "ctrl+alt+", "shift+ctrl+"];
const KEY_IDS = MODIFIERS.flatMap((modifier) => [...LETTERS, ...NAMES].map((name) => modifier + name));

function keySequences() {
  const sequences = new Set();
  for (let code = 0; code < 256; code++) {
    sequences.add(String.fromCharCode(code));
    sequences.add(`\x1b${String.fromCharCode(code)}`);
  }
  for (const letter of "ABCDEFHPQRSZabcdefM") {
    sequences.add(`\x1b[${letter}`);
    sequences.add(`\x1bO${letter}`);
    for (const modifier of [2, 3, 4, 5, 6, 7, 8, 9, 65, 130]) {
      sequences.add(`\x1b[1;${modifier}${letter}`);
      sequences.add(`\x1b[1;${modifier}:3${letter}`);
    }
  }
  for (let number = 1; number < 35; number++) {
    for (const end of "~$^@") sequences.add(`\x1b[${number}${end}`);
    for (const modifier of [2, 3, 5, 6]) sequences.add(`\x1b[${number};${modifier}~`);
  }
  const codes = [9, 13, 27, 32, 39, 45, 46, 48, 57, 59, 61, 65, 91, 92, 93, 97, 99, 112, 122, 127, 228, 1089, 57399, 57409, 57414, 57417, 57426, 57441];
  for (const code of codes) {
    sequences.add(`\x1b[${code}u`);
    for (const modifier of [1, 2, 3, 4, 5, 6, 7, 8, 9, 65, 69, 133]) {
      sequences.add(`\x1b[${code};${modifier}u`);
      sequences.add(`\x1b[${code};${modifier}:2u`);
      sequences.add(`\x1b[${code};${modifier}:3u`);
      sequences.add(`\x1b[${code}:65;${modifier}u`);
      sequences.add(`\x1b[${code}::99;${modifier}u`);
      sequences.add(`\x1b[27;${modifier};${code}~`);
    }
  }
  for (const prefix of ["[[A", "[[B", "[[C", "[[D", "[[E", "[Z", "[200~x", "]8;;x"]) sequences.add(`\x1b${prefix}`);
  for (const text of ["", "ab", "\u00e4", "\u65e5", "\u{1f600}"]) sequences.add(text);
  return [...sequences];
}

export function functionCases({ tui, agent }) {
  const cases = {};
  const sequences = keySequences();
  const table = (keys, answer) => () => Object.fromEntries(keys.map((key) => [key, answer(key) ?? null]));
  for (const kitty of [false, true]) {
    const mode = kitty ? "with Kitty's protocol" : "of old terminals";
    const withMode = (answer) => (key) => {
      tui.setKittyProtocolActive(kitty);
      try {
        return answer(key);
      } finally {
        tui.setKittyProtocolActive(false);
      }
    };
    cases[`parseKey ${mode}`] = table(sequences, withMode((data) => tui.parseKey(data)));
    cases[`matchesKey ${mode}`] = table(sequences, withMode((data) => KEY_IDS.filter((id) => tui.matchesKey(data, id))));
  }
  cases["isKeyRelease"] = table(sequences, (data) => [tui.isKeyRelease(data), tui.isKeyRepeat(data)]);
  cases["decodeKittyPrintable"] = table(sequences, (data) => tui.decodeKittyPrintable(data));

  const texts = [...Object.values(TEXTS), ...Object.values(TEXTS).map((text) => `${RED}${text}${OFF}`), ...Object.values(TEXTS).flatMap((text) => text.split(" "))];
  cases["visibleWidth"] = table(texts, (text) => tui.visibleWidth(text));
  for (const width of WIDTHS) {
    cases[`truncateToWidth ${width}`] = table(texts, (text) => [
      tui.truncateToWidth(text, width),
      tui.truncateToWidth(text, width, "\u2026", true),
      tui.truncateToWidth(text, width, ""),
    ]);
    if (width > 0) cases[`wrapTextWithAnsi ${width}`] = table(texts, (text) => tui.wrapTextWithAnsi(text, width));
  }
  const queries = ["", "a", "hello", "hw", "src main", "MAIN", "zz", "1a", "a1", "m/a"];
  const items = ["hello world", "src/main.rs", "src/lib.rs", "README.md", "main", "a1", "World Hello", "m/n/a"];
  cases["fuzzyMatch"] = table(queries, (query) => items.map((item) => tui.fuzzyMatch(query, item)));
  cases["fuzzyFilter"] = table(queries, (query) => tui.fuzzyFilter(items, query, (item) => item));
  cases["keybindings"] = () => {
    const keys = new tui.KeybindingsManager(tui.TUI_KEYBINDINGS, { "tui.input.submit": ["ctrl+j", "enter", "enter"], "tui.editor.undo": [], "tui.select.up": "ctrl+j", unknown: "x" });
    return [keys.getResolvedBindings(), keys.getConflicts(), keys.getKeys("tui.input.submit"), keys.matches("\n", "tui.input.submit"), keys.getUserBindings()];
  };
  cases["images"] = () => [
    tui.encodeKitty("AAAA", { columns: 3, rows: 2, imageId: 5 }),
    tui.encodeKitty("A".repeat(9000)),
    tui.encodeITerm2("AAAA", { width: 10, height: "auto", name: "n\u00e4me.png", preserveAspectRatio: false }),
    tui.deleteKittyImage(3),
    tui.deleteAllKittyImages(),
    tui.calculateImageRows({ widthPx: 100, heightPx: 50 }, 20),
    tui.imageFallback("image/png", { widthPx: 1, heightPx: 2 }, "f"),
    tui.imageFallback("image/png"),
    tui.hyperlink("text", "https://example.com"),
    tui.getCellDimensions(),
    tui.renderImage("AAAA", { widthPx: 1, heightPx: 1 }),
  ];
  cases["image sizes"] = () => {
    const base64 = (bytes) => btoa(String.fromCharCode(...bytes));
    const zeros = (count) => Array(count).fill(0);
    const ascii = (text) => [...text].map((c) => c.charCodeAt(0));
    const files = [
      base64([0x89, 0x50, 0x4e, 0x47, ...zeros(12), 0, 0, 1, 2, 0, 0, 3, 4]),
      base64([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 17, 8, 0, 100, 0, 200, ...zeros(20)]),
      base64([...ascii("GIF89a"), 10, 0, 20, 0, ...zeros(10)]),
      base64([...ascii("RIFF"), ...zeros(4), ...ascii("WEBPVP8X"), ...zeros(8), 99, 0, 0, 49, 0, 0, ...zeros(4)]),
      base64([...ascii("RIFF"), ...zeros(4), ...ascii("WEBPVP8L"), ...zeros(4), 0x2f, 0x63, 0xc0, 0x18, 0, ...zeros(8)]),
      base64([...ascii("RIFF"), ...zeros(4), ...ascii("WEBPVP8 "), ...zeros(10), 16, 0, 32, 0, ...zeros(4)]),
      "", "!!!!", "AAAA",
    ];
    return files.map((file) => ["png", "jpeg", "gif", "webp", "bmp"].map((type) => tui.getImageDimensions(file, `image/${type}`)));
  };
  cases["completions"] = async () => {
    const provider = new tui.CombinedAutocompleteProvider(
      [
        { name: "model", description: "choose", argumentHint: "<name>", getArgumentCompletions: (prefix) => [{ value: `${prefix}x`, label: "x" }] },
        { name: "compact", description: "shorten" },
        { value: "plain", label: "plain" },
      ],
      "/usr",
    );
    const answers = {};
    for (const line of ["/", "/m", "/model ", "/model a", "/compact x", "/zz", "lo", "./", "lib/../li", "/usr/l", "say \"/us", "@lo", "", "a ", "~x"]) {
      for (const force of [false, true]) {
        const options = { signal: new AbortController().signal, force };
        const found = await provider.getSuggestions([line], 0, line.length, options);
        const first = found?.items[0];
        answers[`${line} ${force}`] = [found, first && provider.applyCompletion([line], 0, line.length, first, found.prefix), provider.shouldTriggerFileCompletion([line], 0, line.length)];
      }
    }
    return answers;
  };
  if (agent.renderDiff) Object.assign(cases, agentFunctions(agent));
  return cases;
}

// Few cases, because a debug build takes a second for the first line of each language.
const CODE = {
  none: ["no language", undefined],
  unknown: ["some text\nin nothing known", "nolanguage"],
  json: ['{"name": "pi", "list": [1, true, null, "x"], "deep": {"a": -1.5e3}}', "json"],
  rust: ["fn main() {\n    let x: u32 = 5; // note\n    println!(\"{}\", x);\n}", "rust"],
};

function agentFunctions(agent) {
  const highlighted = (name) => () => agent.highlightCode(...CODE[name]);
  const colours = Object.keys(CODE).map((name) => [`highlightCode ${name}`, highlighted(name)]);
  // Removing the colours leaves the code unchanged.
  const plain = (name) => () => highlighted(name)().map((line) => line.replace(/\x1b\[[0-9;]*m/g, ""));
  const texts = Object.keys(CODE).map((name) => [`highlightCode text of ${name}`, plain(name)]);
  return {
    ...Object.fromEntries([...colours, ...texts]),
    languages: () => ["a.ts", "b.py", "Dockerfile", "x.unknown", "noext", "a.b.rs", "X.JSON"].map((path) => agent.getLanguageFromPath(path) ?? null),
  };
}
