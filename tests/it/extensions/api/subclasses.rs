//! Subclasses of exported classes with members of everyday names: private members of the classes do
//! not collide with them.

use serde_json::{Value, json};

use crate::support::with_extension;

const EXTENSION: &str = r#"
import {
  AssistantMessageComponent,
  AuthStorage,
  BashExecutionComponent,
  BorderedLoader,
  BranchSummaryMessageComponent,
  CompactionSummaryMessageComponent,
  CustomMessageComponent,
  ExtensionInputComponent,
  ExtensionSelectorComponent,
  getMarkdownTheme,
  getSettingsListTheme,
  ModelRegistry,
  RpcClient,
  SessionManager,
  SettingsManager,
  ThinkingSelectorComponent,
  ToolExecutionComponent,
  UserMessageSelectorComponent,
} from "@mariozechner/pi-coding-agent";
import { CancellableLoader, Image, Input, Loader, Markdown, SelectList, SettingsList, Text } from "@mariozechner/pi-tui";
import { Agent } from "@mariozechner/pi-agent-core";
import { AssistantMessageEventStream, fauxAssistantMessage, registerFauxProvider } from "@mariozechner/pi-ai";

const DOWN = "\x1b[B";
const ENTER = "\r";
const same = (text) => text;
const ui = { requestRender() {}, terminal: { columns: 80, rows: 24 } };
const listTheme = { selectedPrefix: same, selectedText: same, description: same, scrollInfo: same, noMatch: same };
const items = ["a", "b"].map((value) => ({ value, label: value }));
const plain = (lines) => lines.map((line) => line.replace(/\x1b\[[0-9;]*m/g, "").trimEnd());

async function agentWith(Class) {
  const faux = registerFauxProvider({ models: [{ id: "a" }] });
  faux.setResponses([fauxAssistantMessage("hey")]);
  return new Class({ initialState: { model: faux.getModel(), systemPrompt: "" } });
}

const NAMED = {
  text() {
    class Log extends Text {
      lines = [];
      rendered = 0;
      add(line) {
        this.lines.push(line);
        this.setText(this.lines.join("\n"));
      }
      render(width) {
        this.rendered += 1;
        return super.render(width);
      }
    }
    const log = new Log("", 0, 0);
    log.add("a");
    log.add("b");
    log.render(5);
    return [log.render(5), log.rendered];
  },
  markdown() {
    class Shown extends Markdown {
      lines = ["mine"];
    }
    const shown = new Shown("a", 0, 0, getMarkdownTheme());
    return [plain(shown.render(10)), shown.lines];
  },
  loader() {
    class Hidden extends Loader {
      shown = 0;
      show() {
        this.shown += 1;
      }
    }
    const loader = new Hidden(ui, same, same, "busy");
    loader.setMessage("done");
    loader.stop();
    return [plain(loader.render(20))[1].slice(-4), loader.shown];
  },
  list() {
    class Moved extends SelectList {
      row = 3;
      moved = 0;
      move(by) {
        this.moved += by;
      }
    }
    const list = new Moved(items, 3, listTheme);
    list.handleInput(DOWN);
    return [list.getSelectedItem().value, list.moved, list.row, plain(list.render(20)).length];
  },
  input() {
    class Field extends Input {
      visible = true;
      line = "mine";
    }
    const input = new Field();
    input.handleInput("abc");
    return [input.getValue(), plain(input.render(10)), input.visible, input.line];
  },
  settings() {
    class Found extends SettingsList {
      hint = "mine";
      search(query) {
        return `found ${query}`;
      }
    }
    const setting = { id: "a", label: "a", currentValue: "1", values: ["1", "2"] };
    const list = new Found([setting], 3, getSettingsListTheme(), () => {}, () => {});
    list.handleInput(ENTER);
    return [setting.currentValue, list.hint, list.search("x"), list.render(30).length > 1];
  },
  tool() {
    class Row extends ToolExecutionComponent {
      output = "mine";
      images = [];
      context = 1;
    }
    const row = new Row("bash", "1", { command: "ls" }, {}, undefined, ui, "/tmp");
    row.updateResult({ content: [{ type: "text", text: "a.txt" }], isError: false });
    return [row.output, plain(row.render(30)).join().includes("a.txt")];
  },
  async agent() {
    class Bot extends Agent {
      config = { mine: true };
      heard = [];
      async run(task) {
        await this.prompt(task);
        return "ran";
      }
      fail(message) {
        this.heard.push(message);
      }
      begin() {
        this.heard.push("begin");
      }
    }
    const bot = await agentWith(Bot);
    return [await bot.run("x"), bot.state.messages.length, bot.heard, bot.config];
  },
  async client() {
    class Asking extends RpcClient {
      asked = [];
      waiting = true;
      async prompt(message) {
        this.asked.push(message);
        return super.prompt(message);
      }
      async getState() {
        return { mine: await super.getState().catch((error) => error.message) };
      }
    }
    const client = new Asking({});
    const refused = await client.promptAndWait("hi", undefined, 1).catch((error) => error.message);
    const { abort } = RpcClient.prototype;
    RpcClient.prototype.abort = async () => "patched";
    const patched = await client.abort();
    RpcClient.prototype.abort = abort;
    return [client.asked, refused, await client.getState(), patched, client.waiting];
  },
};

const EVERYDAY = [
  "lines", "rendered", "run", "config", "show", "row", "move", "line", "visible", "hint", "search", "output",
  "begin", "confirm", "context", "controller", "current", "drawn", "events", "fail", "filter", "finish", "folded",
  "frame", "images", "list", "load", "markdown", "model", "notify", "open", "pasted", "plain", "primary", "refresh",
  "renderers", "select", "selected", "settle", "shown", "submenu", "thinking", "timer", "title", "truncation", "wake",
];

/** A subclass whose everyday names throw when the base class reads or writes them. */
function guarded(Class) {
  class Guarded extends Class {}
  const refuse = (name) => () => {
    throw new Error(`somebody uses ${name}`);
  };
  for (const name of EVERYDAY) {
    Object.defineProperty(Guarded.prototype, name, { get: refuse(name), set: refuse(name) });
  }
  return Guarded;
}

/** All of the names are fields. */
function filled(Class) {
  return class extends Class {
    constructor(...args) {
      super(...args);
      for (const name of EVERYDAY) Object.defineProperty(this, name, { value: "mine", configurable: true });
    }
  };
}

function used(component) {
  const first = component.render(40);
  component.handleInput?.(DOWN);
  component.handleInput?.("x");
  component.setExpanded?.(true);
  component.invalidate?.();
  const second = component.render(40);
  component.handleInput?.(ENTER);
  component.stop?.();
  component.dispose?.();
  return JSON.stringify([first, second, component.render(40)]);
}

const nothing = () => {};
const message = { role: "user", content: "hi", timestamp: 1 };
const summary = { summary: "short", tokensBefore: 5000, timestamp: 1 };
const UNMOVED = {
  Text: [Text, "hello", 1, 1],
  Markdown: [Markdown, "hello **there**", 1, 1, getMarkdownTheme, { bold: true }],
  Loader: [Loader, ui, same, same, "busy"],
  CancellableLoader: [CancellableLoader, ui, same, same, "busy"],
  Input: [Input],
  SelectList: [SelectList, items, 3, listTheme],
  SettingsList: [SettingsList, [{ id: "a", label: "a", currentValue: "1" }], 3, getSettingsListTheme, nothing, nothing, { enableSearch: true }],
  Image: [Image, "AAAA", "image/png", { fallbackColor: same }],
  AssistantMessageComponent: [AssistantMessageComponent, fauxAssistantMessage("hello")],
  BashExecutionComponent: [BashExecutionComponent, "ls", ui],
  BorderedLoader: [BorderedLoader, ui, { fg: (_, text) => text }, "busy"],
  BranchSummaryMessageComponent: [BranchSummaryMessageComponent, summary],
  CompactionSummaryMessageComponent: [CompactionSummaryMessageComponent, summary],
  CustomMessageComponent: [CustomMessageComponent, { ...message, customType: "c" }],
  ExtensionInputComponent: [ExtensionInputComponent, "Name", "", nothing, nothing],
  ExtensionSelectorComponent: [ExtensionSelectorComponent, "Which", ["a", "b"], nothing, nothing],
  ThinkingSelectorComponent: [ThinkingSelectorComponent, "low", ["off", "low"], nothing, nothing],
  ToolExecutionComponent: [ToolExecutionComponent, "read", "1", { path: "a" }, {}, undefined, ui, "/tmp"],
  UserMessageSelectorComponent: [UserMessageSelectorComponent, [{ id: "1", text: "hi" }], nothing, nothing],
};

function moved() {
  const failures = [];
  for (const [name, [Class, ...given]] of Object.entries(UNMOVED)) {
    const args = given.map((arg) => (arg === getMarkdownTheme || arg === getSettingsListTheme ? arg() : arg));
    const expected = used(new Class(...args));
    for (const [how, change] of Object.entries({ guarded, filled })) {
      try {
        if (used(new (change(Class))(...args)) !== expected) failures.push(`${name} ${how}: draws something else`);
      } catch (error) {
        failures.push(`${name} ${how}: ${error.message}`);
      }
    }
  }
  return failures;
}

async function others() {
  const failures = [];
  for (const change of [guarded, filled]) {
    try {
      const agent = await agentWith(change(Agent));
      await agent.prompt("x");
      if (agent.state.messages.length !== 2) failures.push("the agent said nothing");
      const stream = new (change(AssistantMessageEventStream))();
      stream.push({ type: "done", message: "m" });
      if ((await stream.result()) !== "m") failures.push("the stream has no result");
    } catch (error) {
      failures.push(error.message);
    }
  }
  return failures;
}

/** Methods are where extensions patch them, and wrapped objects work. */
function managers(ctx) {
  const missing = [
    [SessionManager, "getEntries", "getCwd", "buildSessionContext", "appendMessage"],
    [ModelRegistry, "find", "getAll", "getAvailable", "refresh"],
    [AuthStorage, "list", "has", "getAll", "getOAuthProviders"],
    [SettingsManager, "getGlobalSettings", "getProjectSettings", "getTheme"],
    [RpcClient, "prompt", "getState", "getCommands", "getLastAssistantText"],
  ].flatMap(([Class, ...names]) => names.filter((name) => typeof Class.prototype[name] !== "function"));
  const session = SessionManager.inMemory(ctx.cwd);
  const { getEntries } = SessionManager.prototype;
  SessionManager.prototype.getEntries = function () {
    return [...getEntries.call(this), "patched"];
  };
  const wrapped = new Proxy(session, {});
  wrapped.appendMessage(message);
  const entries = wrapped.getEntries().map((entry) => entry.type ?? entry);
  SessionManager.prototype.getEntries = getEntries;
  const models = Object.create(ctx.modelRegistry, { getError: { value: () => "mine" } });
  const isSame = models.getAll().length === ctx.modelRegistry.getAll().length;
  return [missing, entries, session.getEntries().length, isSame, models.getError()];
}

/** Somebody listens in, or replaces a member. */
async function wrapped() {
  const text = new Proxy(new Text("a", 0, 0), {});
  text.setText("b");
  const list = Object.create(new SelectList(items, 5, listTheme));
  list.handleInput(DOWN);
  const stream = new Proxy(new AssistantMessageEventStream(), {});
  stream.push({ type: "text_delta", contentIndex: 0, delta: "x" });
  stream.end();
  const heard = [];
  for await (const { delta } of stream) heard.push(delta);
  const settings = Object.create(SettingsManager.inMemory({ theme: "x" }), { getTheme: { value: () => "y" } });
  const agent = new Proxy(await agentWith(Agent), {});
  await agent.prompt("go");
  return [
    plain(text.render(5)), list.getSelectedItem().value, heard,
    settings.getGlobalSettings().theme, settings.getTheme(), agent.state.messages.length,
  ];
}

export default function (pi) {
  pi.registerCommand("subclasses", {
    handler: async (_args, ctx) => {
      const named = {};
      for (const [name, run] of Object.entries(NAMED)) {
        named[name] = await Promise.resolve().then(run).catch((error) => error.message);
      }
      const answer = { named, moved: moved(), others: await others(), managers: managers(ctx), wrapped: await wrapped() };
      ctx.ui.notify(JSON.stringify(answer));
    },
  });
}
"#;

#[tokio::test]
async fn subclasses_may_use_everyday_names() {
    let (_server, _home, mut rpc) = with_extension(EXTENSION).await;
    rpc.ok(json!({"type": "prompt", "message": "/subclasses"}))
        .await;
    let told = rpc.ui("notify").await;
    let results: Value = serde_json::from_str(told["message"].as_str().unwrap()).unwrap();
    assert_eq!(
        results,
        json!({
            "named": {
                "text": [["a    ", "b    "], 2],
                "markdown": [["a"], ["mine"]],
                "loader": ["done", 0],
                "list": ["b", 0, 3, 2],
                "input": ["abc", ["> abc"], true, "mine"],
                "settings": ["2", "mine", "found x", true],
                "tool": ["mine", true],
                "agent": ["ran", 2, [], {"mine": true}],
                "client": [
                    ["hi"], "Client not started", {"mine": "Client not started"}, "patched", true,
                ],
            },
            "moved": [],
            "others": [],
            "managers": [[], ["message", "patched"], 1, true, "mine"],
            "wrapped": [["b"], "b", ["x"], "x", "y", 2],
        })
    );
}
