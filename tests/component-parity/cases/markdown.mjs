// Markdown of all kinds, in a theme that shows which function painted each part.
const wrap = (on, off) => (text) => `\x1b[${on}m${text}\x1b[${off}m`;

const THEME = {
  heading: wrap(33, 39),
  link: wrap(34, 39),
  linkUrl: wrap(90, 39),
  code: wrap(35, 39),
  codeBlock: wrap(32, 39),
  codeBlockBorder: wrap(90, 39),
  quote: wrap(37, 39),
  quoteBorder: wrap(90, 39),
  hr: wrap(90, 39),
  listBullet: wrap(31, 39),
  bold: wrap(1, 22),
  italic: wrap(3, 23),
  underline: wrap(4, 24),
  strikethrough: wrap(9, 29),
};

export const MARKDOWN = {
  paragraphs: "First paragraph\nwith a soft break.\n\nSecond paragraph, which is long enough to be wrapped at every width that we try here, certainly.",
  headings: "# One `code` in *it*\ntext\n## Two\n\n### Three **bold**\n\n#### Four\ntext\n\nSetext\n======\n\nOther\n---\n\nend",
  emphasis: "Some *italic*, **bold**, ***both***, ~~gone~~, ~not gone~, `code`, __bold__, _italic_ and snake_case_name.",
  nested: "**bold with *italic* and `code` inside** and *italic with **bold** inside*",
  "inline over lines": "**bold that\ngoes over\nlines** and `code` after",
  links: "A [link](https://example.com), an [https://example.com](https://example.com), <https://auto.example.com>, <me@example.com> and [ref][r].\n\n[r]: https://ref.example.com\n",
  addresses: "Bare https://example.com/path?q=1&x=2, and (http://example.org/a_(b)). Mail me@example.com. Visit www.example.com!",
  lists: "- one\n- two **bold**\n- three which is a long item that will be wrapped when the terminal is narrow\n\nafter",
  "ordered lists": "1. one\n2. two\n3. three\n\n7. seven\n8. eight",
  "nested lists": "- a\n  - b\n    - c\n    - d\n  - e\n- f\n  1. g\n  2. h",
  "loose lists": "- one\n\n- two\n\n  more of two\n\n- three",
  "lists of code": "- item\n  ```js\n  const a = 1;\n  ```\n- next",
  "list after text": "Text before\n- a\n- b\nlazy\n\nText after",
  "two lists": "- a\n- b\n\n* c\n* d",
  "code blocks": "Before\n```ts\nconst a = 1;\n\nfunction f() {}\n```\nAfter\n\n```\nplain\n```\n\n~~~python\nprint(1)\n~~~",
  "indented code": "Text\n\n    indented code\n      more\n\nend",
  "unclosed code": "Text\n\n```js\nconst a = 1;\nconst b",
  quotes: "> A quote\n> over lines with **bold** and `code`, which is long enough to be wrapped everywhere.\n>\n> second paragraph\n\nafter",
  "nested quotes": "> outer\n> > inner\n>\n> - list\n> - in it\n\nend",
  "quoted code": "> text\n> ```\n> code\n> ```\n\nend",
  rules: "above\n\n---\n\nbelow\n***\nend",
  tables: "| Name | Value |\n|------|------:|\n| a | 1 |\n| longer name | `2` **b** |\n\nafter",
  "wide tables": "| Column with a long title | Another column | Third |\n|---|---|---|\n| some text that is long enough to wrap | short | averyveryverylongwordthatcannotbebrokenanywhere |\n| x | y with more words in it than fit | z |",
  "narrow tables": "| a | b | c | d | e | f | g | h | i | j |\n|-|-|-|-|-|-|-|-|-|-|\n| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 |\ntext",
  "wide characters": "| \u65e5\u672c | \u8a9e |\n|---|---|\n| \u{1f600} | \u4e2d\u6587\u6df7\u6392 |\n\n- \u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\n",
  html: "<div>\n<b>block</b>\n</div>\n\ntext with <span>inline</span> html<br>end\n\n<!-- comment -->",
  "line breaks": "one  \ntwo\\\nthree",
  escapes: "\\*not italic\\* and \\`not code\\` and 1\\. and a\\_b",
  entities: "a &amp; b &lt; c &copy; d & e < f",
  images: "An ![alt text](https://example.com/x.png) image",
  "blank lines": "\n\n\nstart\n\n\n\nmiddle\n\n\n",
  "indented lines": "Files:\n    src/a.rs\n      src/b.rs, which is **bold\n   over** lines\n\n   moved\n\nhard  \n   break",
  "items that begin with a tag": "1. <kbd>Ctrl</kbd> key\n2. <T>generic\n\n- <b>html</b>\n- in <i>the</i> midst",
  dialect: "- item\n> quote\n\nwords\n\n- item\n  2. two\n\nwords\n\n- [ ] task",
  tabs: "a\tb\n\n-\titem\twith\ttabs",
  "only spaces": "   \n  ",
  mixed: "# Plan\n\nFirst **do** this:\n\n1. Read `src/main.rs`\n   - and *its* tests\n2. Write\n\n```rust\nfn main() {}\n```\n\n> Note: it works\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nDone.",
  ansi: "text with \x1b[31mred\x1b[0m in **bold \x1b[32mgreen\x1b[0m more** end",
};

export function markdownCases({ tui }) {
  const { Markdown } = tui;
  const cases = {};
  for (const [name, text] of Object.entries(MARKDOWN)) {
    cases[`Markdown ${name}`] = () => new Markdown(text, 1, 0, THEME);
  }
  const style = { color: wrap(36, 39), bgColor: wrap(44, 49), italic: true };
  for (const name of ["emphasis", "headings", "quotes", "mixed", "html", "links"]) {
    cases[`Markdown styled ${name}`] = () => new Markdown(MARKDOWN[name], 2, 1, THEME, style);
  }
  cases["Markdown with links"] = (width) => {
    tui.setCapabilities({ images: null, trueColor: true, hyperlinks: true });
    const lines = new Markdown(MARKDOWN.links, 0, 0, THEME).render(width);
    tui.setCapabilities({ images: null, trueColor: true, hyperlinks: false });
    return lines;
  };
  cases["Markdown highlighted"] = () =>
    new Markdown(MARKDOWN["code blocks"], 0, 0, {
      ...THEME,
      codeBlockIndent: "    ",
      highlightCode: (code, lang) => code.split("\n").map((line) => `[${lang}]${line}`),
    });
  cases["Markdown after setText"] = () => {
    const markdown = new Markdown("old", 0, 0, THEME);
    markdown.render(10);
    markdown.setText("**new**");
    return markdown;
  };
  return cases;
}
