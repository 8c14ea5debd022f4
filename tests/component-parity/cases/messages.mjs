// Messages, tool rows, diffs and code as pi-coding-agent draws them.
import { MARKDOWN } from "./markdown.mjs";
import { TEXTS } from "./texts.mjs";

const UI = { requestRender() {} };
const LINES = (count) => Array.from({ length: count }, (_, i) => `output line ${i}`).join("\n");
const text = (value) => ({ type: "text", text: value });

/** Removes the colours of code, which functions.mjs compares once. */
const PLAIN = (markdown) => markdown.replace("```rust", "```none");

const DIFFS = {
  "one line": "  1 const x = 1;\n- 2 const answer = 41;\n+ 2 const answer = 42; // now right\n  3 end",
  "many lines": " 10 a\n-11 old one\n-12 old two\n+11 new one\n+12 new two\n+13 new three\n    ...\n 20 z",
  added: "+ 1 first\n+ 2 second\n  3 third",
  removed: "- 1 first\n- 2 second",
  tabs: "- 1 \tif (a) {\n+ 1 \t\tif (a && b) {",
  words: "-1 the quick brown fox jumps over\n+1 the slow brown cat jumps under",
  unlike: "-1 nothing in common here\n+1 42",
  spaces: "-1   indented   twice\n+1 indented twice",
  calls: '-7 foo(bar, "baz", 12)\n+7 foo(bar, qux(12), "baz")',
  "no diff": "just text\nof any kind",
  "blank lines": "  1 \n- 2 \n+ 2 x\n",
};

const ASSISTANT = {
  text: { content: [text("Hello **world**\n\n- a\n- b")], stopReason: "stop" },
  thinking: { content: [{ type: "thinking", thinking: "Let me *think*\n\nabout it" }, text("Answer")], stopReason: "stop" },
  "thinking alone": { content: [{ type: "thinking", thinking: "hm" }], stopReason: "stop" },
  tools: { content: [text("Calling"), { type: "toolCall", id: "1", name: "read", arguments: {} }], stopReason: "toolUse" },
  empty: { content: [], stopReason: "stop" },
  blank: { content: [text("  \n ")], stopReason: "stop" },
  aborted: { content: [text("partial")], stopReason: "aborted", errorMessage: "Request was aborted" },
  "aborted with reason": { content: [], stopReason: "aborted", errorMessage: "Aborted after 2 retry attempts" },
  error: { content: [], stopReason: "error", errorMessage: "it broke" },
  "error without words": { content: [text("x")], stopReason: "error" },
};

/** Tool, arguments, result. */
const TOOLS = {
  "read": ["read", { path: "/tmp/a.txt" }, { content: [text(LINES(3))] }],
  "read range": ["read", { path: "/tmp/a.txt", offset: 5, limit: 10 }, { content: [text(LINES(20))] }],
  "read truncated": ["read", { file_path: "/tmp/a" }, { content: [text(LINES(30))], details: { truncation: { truncated: true, truncatedBy: "lines", outputLines: 30, totalLines: 99, maxLines: 30 } } }],
  "read long line": ["read", { path: "/tmp/a" }, { content: [text("x")], details: { truncation: { truncated: true, firstLineExceedsLimit: true } } }],
  "read image": ["read", { path: "a.png" }, { content: [text("Read image"), { type: "image", data: "AAAA", mimeType: "image/png" }] }],
  "read error": ["read", { path: "nowhere" }, { content: [text("ENOENT: no such file")], isError: true }],
  "read nothing yet": ["read", {}, undefined],
  "read wrong": ["read", { path: 7 }, undefined],
  "write": ["write", { path: "/tmp/a.txt", content: LINES(4) }, { content: [text("Successfully wrote")] }],
  "write long": ["write", { path: "/tmp/a.unknown", content: `${LINES(25)}\n\n\n` }, undefined],
  "write wrong": ["write", { path: "a", content: { a: 1 } }, undefined],
  "write error": ["write", { path: "/x", content: "a" }, { content: [text("EACCES")], isError: true }],
  "bash": ["bash", { command: "ls -la" }, { content: [text(LINES(3))] }],
  "bash long": ["bash", { command: "seq 100", timeout: 30 }, { content: [text(LINES(40))] }],
  "bash truncated": ["bash", { command: "seq" }, { content: [text(LINES(8))], details: { truncation: { truncated: true, truncatedBy: "lines", outputLines: 8, totalLines: 900 }, fullOutputPath: "/tmp/full.log" } }],
  "bash with colours": ["bash", { command: "x" }, { content: [text("\x1b[31mred\x1b[0m\r\nplain \x07bell")] }],
  "bash error": ["bash", { command: "false" }, { content: [text("Command exited with code 1")], isError: true }],
  "bash wrapped": ["bash", { command: `echo ${"word ".repeat(40)}` }, { content: [text(`${"a long line of output ".repeat(20)}\nend`)] }],
  "grep": ["grep", { pattern: "foo", path: "src", glob: "*.ts", limit: 5 }, { content: [text(LINES(20))], details: { matchLimitReached: 5, linesTruncated: true } }],
  "grep nothing": ["grep", { pattern: "foo" }, { content: [text("No matches found")] }],
  "find": ["find", { pattern: "*.ts", limit: 3 }, { content: [text(LINES(30))], details: { resultLimitReached: 3 } }],
  "ls": ["ls", { path: "/tmp" }, { content: [text(LINES(30))], details: { truncation: { truncated: true, maxBytes: 51200 }, entryLimitReached: 500 } }],
  "ls wrong": ["ls", { path: [] }, undefined],
  "edit": ["edit", { path: "/tmp/a.ts", edits: [{ oldText: "a", newText: "b" }] }, { content: [text("Edited")], details: { diff: DIFFS["one line"], firstChangedLine: 2 } }],
  "edit error": ["edit", { path: "/tmp/a.ts", oldText: "a", newText: "b" }, { content: [text("Text not found")], isError: true }],
  "edit nothing yet": ["edit", { path: "/tmp/a.ts" }, undefined],
  "unknown tool": ["mystery", { a: 1, b: ["x"] }, { content: [text("some output")] }],
  "unknown tool without result": ["mystery", {}, undefined],
};

const BASH = {
  running: (row) => row.appendOutput("one\ntwo"),
  done: (row) => {
    row.appendOutput("one\r\ntw");
    row.appendOutput("o\n");
    row.setComplete(0, false);
  },
  failed: (row) => {
    row.appendOutput("\x1b[31moops\x1b[0m");
    row.setComplete(3, false);
  },
  cancelled: (row) => row.setComplete(undefined, true),
  long: (row) => {
    row.appendOutput(LINES(50));
    row.setComplete(0, false, { truncated: true }, "/tmp/full.log");
  },
  expanded: (row) => {
    row.appendOutput(LINES(50));
    row.setComplete(0, false);
    row.setExpanded(true);
  },
};

export function messageCases({ tui, agent }) {
  const cases = {};
  for (const [name, message] of Object.entries(ASSISTANT)) {
    cases[`AssistantMessage ${name}`] = () => new agent.AssistantMessageComponent(message);
  }
  cases["AssistantMessage hidden thinking"] = () => {
    const row = new agent.AssistantMessageComponent(ASSISTANT.thinking, true, undefined, "Pondering...");
    row.setHiddenThinkingLabel("Still pondering");
    return row;
  };
  cases["AssistantMessage invalidated"] = () => {
    const row = new agent.AssistantMessageComponent();
    row.updateContent(ASSISTANT.text);
    row.invalidate();
    return row;
  };
  for (const name of ["mixed", "wide tables", "quotes", "nested lists", "headings"]) {
    cases[`UserMessage ${name}`] = () => new agent.UserMessageComponent(PLAIN(MARKDOWN[name]));
  }
  const message = { customType: "note", content: "A **note** of an extension", display: true };
  cases["CustomMessage"] = () => new agent.CustomMessageComponent(message);
  cases["CustomMessage of blocks"] = () =>
    new agent.CustomMessageComponent({ ...message, content: [text("one"), { type: "image" }, text("two")] });
  cases["CustomMessage rendered"] = () => {
    const row = new agent.CustomMessageComponent(message, (given, { expanded }) => new tui.Text(`${given.customType} ${expanded}`, 1, 1));
    row.setExpanded(true);
    return row;
  };
  cases["CustomMessage failing"] = () =>
    new agent.CustomMessageComponent(message, () => {
      throw new Error("no");
    });
  const folded = {
    BranchSummaryMessageComponent: { summary: "## Goal\nTo *try* it" },
    CompactionSummaryMessageComponent: { summary: "What **happened**", tokensBefore: 123456 },
    SkillInvocationMessageComponent: { name: "a-skill", location: "/x", content: "# Skill\n\nDo `this`." },
  };
  for (const [name, given] of Object.entries(folded)) {
    cases[name] = () => new agent[name](given);
    cases[`${name} open`] = () => {
      const row = new agent[name](given);
      row.setExpanded(true);
      return row;
    };
  }

  for (const [name, [tool, args, result]] of Object.entries(TOOLS)) {
    const row = (expanded, isPartial) => () => {
      const made = new agent.ToolExecutionComponent(tool, "id", args, {}, undefined, UI, "/tmp");
      if (result) made.updateResult(result, isPartial);
      made.setExpanded(expanded);
      return made;
    };
    cases[`Tool ${name}`] = row(false, false);
    cases[`Tool ${name} expanded`] = row(true, false);
    if (result) cases[`Tool ${name} partial`] = row(false, true);
  }
  const definition = {
    name: "mine",
    renderCall: (args, theme, context) => new tui.Text(`${theme.bold("mine")} ${args.a} ${context.expanded} ${context.cwd}`, 0, 0),
    renderResult: (result, options, theme) => new tui.Text(theme.fg("success", `${result.content[0].text} ${JSON.stringify(options)}`), 0, 0),
  };
  const own = (name, definition) => () => {
    const row = new agent.ToolExecutionComponent(name, "id", { a: 1, path: "/tmp/x" }, {}, definition, UI, "/tmp");
    row.updateResult({ content: [text("result")], details: {} });
    return row;
  };
  cases["Tool of an extension"] = own("mine", definition);
  cases["Tool with a shell of its own"] = own("mine", { ...definition, renderShell: "self" });
  cases["Tool that fails to draw"] = own("mine", { renderCall: () => { throw new Error("no"); }, renderResult: () => { throw new Error("no"); } });
  cases["Tool without renderers"] = own("mine", { name: "mine" });
  cases["Tool that replaces read"] = own("read", { renderResult: definition.renderResult });

  for (const [name, use] of Object.entries(BASH)) {
    for (const excluded of [false, true]) {
      cases[`BashExecution ${name}${excluded ? " excluded" : ""}`] = (width) => {
        const row = new agent.BashExecutionComponent("ls -la", UI, excluded);
        use(row);
        const lines = row.render(width);
        row.setComplete(0, false);
        return [...lines, row.getCommand(), row.getOutput()];
      };
    }
  }
  for (const [name, diff] of Object.entries(DIFFS)) cases[`renderDiff ${name}`] = () => agent.renderDiff(diff).split("\n");
  for (const [name, value] of Object.entries(TEXTS)) {
    cases[`truncateToVisualLines ${name}`] = (width) => agent.truncateToVisualLines(value, 2, width, 1);
  }
  cases["Markdown in the theme of pi"] = () => new tui.Markdown(PLAIN(MARKDOWN.mixed), 1, 0, agent.getMarkdownTheme());
  cases["Theme"] = () => {
    const theme = new agent.Theme({ a: "#ff8800", b: 12, c: "" }, { d: "#102030", e: "" }, "256color", { name: "n" });
    const colours = ["a", "b", "c"].map((name) => theme.fg(name, "x"));
    return [...colours, theme.bg("d", "y"), theme.bg("e", "z"), theme.bold("b"), theme.italic("i"), theme.underline("u"), theme.inverse("r"), theme.strikethrough("s"), theme.name, theme.getColorMode(), theme.getFgAnsi("a")];
  };
    return cases;
}
