// The sequences that terminals without a modern keyboard protocol send for keys that type nothing.

interface Sequence {
  name: string;
  modifiers: number;
}

const SHIFT = 1;
const ALT = 2;
const CTRL = 4;

/** Name, then everything after ESC: xterm, VT and Linux console. */
const PLAIN: Readonly<Record<string, string>> = {
  up: "[A OA",
  down: "[B OB",
  right: "[C OC",
  left: "[D OD",
  home: "[H OH [1~ [7~",
  end: "[F OF [4~ [8~",
  insert: "[2~",
  delete: "[3~",
  pageUp: "[5~ [[5~",
  pageDown: "[6~ [[6~",
  clear: "[E OE",
  f1: "OP [11~ [[A",
  f2: "OQ [12~ [[B",
  f3: "OR [13~ [[C",
  f4: "OS [14~ [[D",
  f5: "[15~ [[E",
  f6: "[17~",
  f7: "[18~",
  f8: "[19~",
  f9: "[20~",
  f10: "[21~",
  f11: "[23~",
  f12: "[24~",
};

/** rxvt: Shift changes letters to lower case and "~" to "$". */
const SHIFTED: Readonly<Record<string, string>> = {
  up: "[a",
  down: "[b",
  right: "[c",
  left: "[d",
  clear: "[e",
  insert: "[2$",
  delete: "[3$",
  pageUp: "[5$",
  pageDown: "[6$",
  home: "[7$",
  end: "[8$",
};

/** rxvt: Ctrl changes "[" to "O" before lower case letters and "~" to "^". */
const WITH_CTRL: Readonly<Record<string, string>> = {
  up: "Oa",
  down: "Ob",
  right: "Oc",
  left: "Od",
  clear: "Oe",
  insert: "[2^",
  delete: "[3^",
  pageUp: "[5^",
  pageDown: "[6^",
  home: "[7^",
  end: "[8^",
};

/** Emacs' letters for Alt with an arrow, as macOS terminals send them. */
const WITH_ALT: Readonly<Record<string, string>> = { up: "p", down: "n", left: "b", right: "f" };

export const LEGACY_SEQUENCES: ReadonlyMap<string, Sequence> = new Map(
  [
    { table: PLAIN, modifiers: 0 },
    { table: SHIFTED, modifiers: SHIFT },
    { table: WITH_CTRL, modifiers: CTRL },
    { table: WITH_ALT, modifiers: ALT },
  ].flatMap(({ table, modifiers }) =>
    Object.entries(table).flatMap(([name, sequences]) =>
      sequences
        .split(" ")
        .map((sequence): [string, Sequence] => [`\x1b${sequence}`, { name, modifiers }])
    )
  ),
);
