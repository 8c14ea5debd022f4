// Texts that are hard to measure, wrap and cut.
export const RED = "\x1b[31m";
export const BG = "\x1b[48;2;1;2;3m";
export const OFF = "\x1b[0m";

export const TEXTS = {
  empty: "",
  blank: "   ",
  short: "hello",
  prose: "The quick brown fox jumps over the lazy dog, and then it sleeps for a very long time indeed.",
  lines: "one\ntwo\n\nfour\n",
  long: "a".repeat(137),
  path: "/usr/local/share/some/very/long/path/that/does/not/end/anywhere/soon/file.txt and more",
  tabs: "a\tb\tc\td\te and\tmore\ttabs than\tfit",
  cjk: "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u306f\u5e45\u304c\u5e83\u3044\u306e\u3067\u6298\u308a\u8fd4\u3057\u304c\u96e3\u3057\u3044\u3067\u3059\u3002 abc \u4e2d\u6587\u6df7\u6392",
  korean: "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8\ub3c4 \ub113\uc740 \uae00\uc790\uc785\ub2c8\ub2e4",
  emoji: "\u{1f600} smile \u{1f44d}\u{1f3fd} thumb \u{1f468}\u200d\u{1f469}\u200d\u{1f467} family \u{1f1e9}\u{1f1ea} flag \u2764\ufe0f heart",
  combining: "e\u0301tude na\u0308ive \u0e01\u0e33 Z\u0351\u036b\u0343algo",
  ansi: `${RED}red text that goes on${OFF} and plain and \x1b[1;4mbold underlined words that wrap around\x1b[22;24m end`,
  background: `${BG}a background that is longer than the width of the line${OFF} after`,
  link: "see \x1b]8;;https://example.com/a\x1b\\the linked words that are long\x1b]8;;\x1b\\ here",
  spaces: "  indented   and   spaced    out     words   ",
  zeroWidth: "zero\u200bwidth\u200djoiner\ufeffmark",
};

export const WIDTHS = [0, 1, 2, 3, 5, 8, 13, 20, 40, 80];
