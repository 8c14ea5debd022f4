//! Components inside pi without a terminal, which the comparison with the original
//! (`component_parity.rs`) does not cover.

use serde_json::{Value, json};

use crate::support::with_extension;

const EXTENSION: &str = r#"
import { AssistantMessageComponent, createLsToolDefinition, CustomEditor, CustomMessageComponent, getMarkdownTheme, readToolDefinition, ToolExecutionComponent, UserMessageComponent } from "@mariozechner/pi-coding-agent";
import { Container, Editor, getKeybindings, Markdown, ProcessTerminal, Text, TUI } from "@earendil-works/pi-tui";
import { writeFileSync } from "node:fs";

const plain = (lines) => lines.map((line) => line.replace(/\x1b\[[0-9;]*m/g, "").trimEnd());

/** Asks until it is so; the test has the patience. */
async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

const CASES = {
  "an edit is shown before it is made": async (cwd) => {
    writeFileSync(`${cwd}/a.txt`, "one\ntwo\n");
    let drawn = 0;
    const ui = { requestRender: () => (drawn += 1) };
    const rows = [["two", "three"], ["none", "x"]].map(([oldText, newText]) => {
      const args = { path: "a.txt", edits: [{ oldText, newText }] };
      return new ToolExecutionComponent("edit", "id", args, {}, undefined, ui, cwd);
    });
    for (const row of rows) row.setArgsComplete();
    await until(() => drawn >= 4);
    return rows.map((row) => plain(row.render(60)).filter(Boolean).map((line) => line.trim()));
  },
  "definitions of the tools draw": (cwd) => {
    const ui = { requestRender() {} };
    const definitions = [createLsToolDefinition(cwd), readToolDefinition];
    return definitions.map((definition) => {
      const row = new ToolExecutionComponent("wrapped", "id", { path: "/x" }, {}, definition, ui, cwd);
      row.updateResult({ content: [{ type: "text", text: "output" }] });
      return plain(row.render(30)).map((line) => line.trim()).filter(Boolean);
    });
  },
  "an editor of its own keeps its names": async () => {
    class Loud extends CustomEditor {
      text = "mine";
      rows = 7;
      handleInput(data) {
        super.handleInput(data.toUpperCase());
      }
    }
    const tui = { requestRender() {}, terminal: { rows: 24 } };
    const theme = { borderColor: (text) => text, selectList: {} };
    const editor = new Loud(tui, theme, getKeybindings());
    for (const key of "hey") editor.handleInput(key);
    return [editor.getText(), editor.text, editor.rows, editor instanceof Editor, plain(editor.render(10))];
  },
  "a terminal of its own is drawn on": async () => {
    const written = [];
    const terminal = new Proxy({ columns: 20, rows: 5 }, {
      get: (target, name) => target[name] ?? ((data) => name === "write" && written.push(data)),
    });
    const tui = new TUI(terminal);
    tui.addChild(new Text("hello", 0, 0));
    tui.addChild({ render: () => ["x".repeat(50)], invalidate() {} });
    tui.start();
    await until(() => written.length > 0);
    tui.stop();
    return [written[0].includes("hello"), written[0].includes("x".repeat(20)), written[0].includes("x".repeat(21))];
  },
  "the terminal is pi's": () => {
    try {
      new ProcessTerminal().start(() => {}, () => {});
    } catch (error) {
      return error.message;
    }
  },
  "nothing is too much": async () => {
    const theme = getMarkdownTheme();
    const sources = [
      "> ".repeat(300) + "deep",
      "- ".repeat(1000) + "deep",
      "*".repeat(5000),
      "[".repeat(1000) + "](".repeat(1000),
      `|${"a|".repeat(500)}\n|${"-|".repeat(500)}\n|${"b|".repeat(500)}`,
      "```\n" + '{"a":'.repeat(2000) + "\n```",
      "\x1b[31m".repeat(2000) + "\ud800 \u0000 \u202e",
      "long ".repeat(5000),
    ];
    const answers = [];
    for (const source of sources) {
      const lines = new Markdown(source, 1, 0, theme).render(40);
      answers.push(lines.length > 0 && lines.every((line) => typeof line === "string"));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return answers;
  },
  "odd things are no reason to end": () => {
    const container = new Container();
    container.addChild(new Text(undefined));
    container.addChild(new Markdown(undefined, 0, 0, getMarkdownTheme()));
    return [container.render(0), container.render(-5), new Text("wide", 3, 0).render(1).length > 0];
  },
  "messages have room on both sides": () => {
    const told = [];
    const bare = (row) => plain(row.render(20)).map((line) => line.replace(/\x1b\][^\x07]*\x07/g, "")).filter((line) => line.trim());
    const theme = getMarkdownTheme();
    const answer = new AssistantMessageComponent({ content: [{ type: "text", text: "hi" }], stopReason: "error", errorMessage: "no" },
      false, theme, undefined, 3);
    const said = new UserMessageComponent("hi", theme, 2);
    const custom = new CustomMessageComponent({ customType: "x", content: "" }, (_message, { outputPad }) => {
      told.push(outputPad);
      return new Text("mine", 0, 0);
    }, theme, 4);
    const before = [bare(answer), bare(said), bare(new UserMessageComponent("hi"))];
    for (const row of [answer, said, custom]) row.setOutputPad(0);
    return [before, [bare(answer), bare(said)], told];
  },
};

export default function (pi) {
  pi.registerCommand("draw", {
    handler: async (_args, ctx) => {
      const results = {};
      for (const [name, run] of Object.entries(CASES)) results[name] = await run(ctx.cwd);
      ctx.ui.notify(JSON.stringify(results));
    },
  });
}
"#;

#[tokio::test]
async fn components_work_without_a_terminal() {
    let (_server, _home, mut rpc) = with_extension(EXTENSION).await;
    rpc.ok(json!({"type": "prompt", "message": "/draw"})).await;
    let told = rpc.ui("notify").await;
    let results: Value = serde_json::from_str(told["message"].as_str().unwrap()).unwrap();
    assert_eq!(
        results,
        json!({
            "an edit is shown before it is made": [
                ["edit a.txt", "1 one", "-2 two", "+2 three"],
                ["edit a.txt", "Could not find the exact text in a.txt. The old text must", "match exactly including all whitespace and newlines."],
            ],
            "definitions of the tools draw": [["ls /x", "output"], ["read /x", "output"]],
            "an editor of its own keeps its names": [
                "HEY", "mine", 7, true,
                ["\u{2500}".repeat(10), "HEY", "\u{2500}".repeat(10)],
            ],
            "a terminal of its own is drawn on": [true, true, false],
            "the terminal is pi's":
                "ProcessTerminal cannot be used in an extension: standard input and output belong \
                 to pi. Show components with ctx.ui.custom(), or give TUI a terminal object of \
                 your own.",
            "nothing is too much": [true, true, true, true, true, true, true, true],
            "odd things are no reason to end": [[], [], true],
            "messages have room on both sides": [
                [["   hi", "   Error: no"], ["  hi"], [" hi"]],
                [["hi", "Error: no"], ["hi"]],
                [4, 0],
            ],
        })
    );
}
