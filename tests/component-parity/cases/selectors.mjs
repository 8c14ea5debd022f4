// Selectors, dialogs and the footer of pi-coding-agent.
import { press } from "./simple.mjs";

const UI = { requestRender() {}, terminal: { rows: 24, columns: 80 }, start() {}, stop() {} };
const none = () => {};
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

const MODELS = Array.from({ length: 14 }, (_, i) => ({ provider: `provider-${i % 3}`, id: `model-${i}`, name: `Model ${i}`, reasoning: i % 2 === 0, contextWindow: 200000 }));
const REGISTRY = {
  refresh: none,
  getError: () => undefined,
  getAvailable: async () => MODELS,
  find: (provider, id) => MODELS.find((model) => model.provider === provider && model.id === id),
  isUsingOAuth: () => true,
};
const SETTINGS = { setDefaultModelAndProvider: none };

const CONFIG = {
  autoCompact: true, showImages: true, autoResizeImages: true, blockImages: false, enableSkillCommands: true,
  steeringMode: "all", followUpMode: "one-at-a-time", transport: "sse", thinkingLevel: "low",
  availableThinkingLevels: ["off", "low", "high"], currentTheme: "dark", availableThemes: ["dark", "light"],
  hideThinkingBlock: false, collapseChangelog: false, enableInstallTelemetry: true, doubleEscapeAction: "tree",
  treeFilterMode: "default", showHardwareCursor: false, editorPaddingX: 1, autocompleteMaxVisible: 5, quietStartup: true, clearOnShrink: false,
};

const usage = (input, cost) => ({ input, output: input / 10, cacheRead: input * 3, cacheWrite: 0, cost: { total: cost } });
const entry = (value) => ({ type: "message", message: { role: "assistant", usage: value } });

const DAY = 24 * 60 * 60 * 1000;
/** Ages are half a unit off the edges, so that a slow machine shows the same. */
const session = (name, ageInDays, more = {}) => ({
  path: `/sessions/${name}.jsonl`,
  id: `id-${name}`,
  cwd: "/work/project",
  created: new Date(0),
  modified: new Date(Date.now() - (ageInDays + 0.5) * DAY),
  messageCount: 3,
  firstMessage: `first message of ${name}`,
  allMessagesText: `first message of ${name} and some needle in ${name}`,
  ...more,
});
const SESSIONS = [
  session("a", 0, { name: "Named one" }),
  session("b", 2, { parentSessionPath: "/sessions/a.jsonl" }),
  session("c", 3, { parentSessionPath: "/sessions/b.jsonl", firstMessage: "line\nbreaks and a title that is long enough to be cut off somewhere" }),
  session("d", 9, { parentSessionPath: "/sessions/a.jsonl" }),
  session("e", 40),
  session("f", 800, { name: "Old", cwd: "/elsewhere" }),
  ...Array.from({ length: 8 }, (_, i) => session(`n${i}`, 50 + i)),
];

const at = "2024-03-05T06:07:08.000Z";
let lastId = 0;
const node = (entry, children = [], more = {}) => ({ entry: { id: entry.id ?? `auto-${(lastId += 1)}`, timestamp: at, ...entry }, children, ...more });
const messageEntry = (id, role, content, more = {}) => ({ id, type: "message", message: { role, content, ...more } });
/** Sets the parents. */
function grown(tree, parentId = null) {
  for (const { entry, children } of tree) {
    entry.parentId = parentId;
    grown(children, entry.id);
  }
  return tree;
}
const calls = (id, name, args) => messageEntry(id, "assistant", [{ type: "toolCall", id: `call-${id}`, name, arguments: args }], { stopReason: "toolUse" });
const result = (id, callNumber) => messageEntry(id, "toolResult", [{ type: "text", text: "out" }], { toolCallId: `call-${callNumber}`, toolName: "x" });

const TREE = () => grown([
  node(messageEntry("u1", "user", "first question\nwith two lines"), [
    node(messageEntry("a1", "assistant", [{ type: "text", text: "an answer" }], { stopReason: "stop" }), [
      node(messageEntry("u2", "user", [{ type: "text", text: "second question" }]), [
        node(calls("c1", "read", { path: "/x/a.ts", offset: 3, limit: 4 }), [
          node(result("r1", "c1"), [
            node(calls("c2", "bash", { command: `echo ${"long ".repeat(20)}` }), [
              node(result("r2", "c2"), [
                node(messageEntry("a2", "assistant", [], { stopReason: "error", errorMessage: "it broke" })),
              ]),
            ]),
          ]),
        ]),
      ]),
      node(messageEntry("u3", "user", "other branch"), [
        node({ id: "m1", type: "model_change", provider: "p", modelId: "model-x" }, [
          node(messageEntry("a3", "assistant", [{ type: "text", text: "the other answer" }], { stopReason: "stop" }), [
            node(messageEntry("u4", "user", "deeper one")),
            node(messageEntry("u5", "user", "deeper two"), [
              node({ id: "cm", type: "custom_message", customType: "note", content: "of an extension", display: true }),
            ]),
          ], { label: "good", labelTimestamp: at }),
        ]),
      ]),
      node({ id: "s1", type: "branch_summary", summary: "what was there" }),
    ]),
    node({ id: "t1", type: "session_info", name: "title" }, [
      node({ id: "k1", type: "compaction", summary: "s", tokensBefore: 54321 }, [
        node(messageEntry("b1", "bashExecution", undefined, { command: "ls", output: "" })),
        node({ id: "l1", type: "label", targetId: "a1", label: "x" }),
      ]),
    ]),
  ]),
  node(messageEntry("v1", "user", "another root"), [node(calls("c3", "mine", { some: "arguments", that: "are long enough to be cut" }), [node(result("r3", "c3"))])]),
]);

export function selectorCases({ tui, agent }) {
  const cases = {};
  const selector = (keys) => () => press(new agent.ExtensionSelectorComponent("Choose **one**\nof these", ["first", "second", "a third option that is rather long and has to be wrapped somewhere"], none, none), keys);
  cases["ExtensionSelector"] = selector([]);
  cases["ExtensionSelector moved"] = selector(["down", "j", "j", "up"]);
  cases["ExtensionSelector with timeout"] = () => new agent.ExtensionSelectorComponent("Quick", ["a"], none, none, { tui: UI, timeout: 4500 });
  cases["ExtensionSelector chosen"] = () => {
    const events = [];
    press(new agent.ExtensionSelectorComponent("t", ["a", "b"], (value) => events.push(value), () => events.push("cancel")), ["down", "enter", "escape", "\n"]);
    return events;
  };
  cases["ExtensionInput"] = () => {
    const made = new agent.ExtensionInputComponent("Name?", "placeholder", none, none);
    made.focused = true;
    return press(made, [..."abc"]);
  };
  cases["ExtensionEditor"] = () => {
    const made = new agent.ExtensionEditorComponent(UI, tui.getKeybindings(), "Write", "prefilled\ntext", none, none, { paddingX: 1 });
    made.focused = true;
    return press(made, [..." more", "\x1b[13;2u", ..."line"]);
  };
  cases["ExtensionEditor submitted"] = () => {
    const events = [];
    const made = new agent.ExtensionEditorComponent(UI, tui.getKeybindings(), "Write", "text", (value) => events.push(value), () => events.push("cancel"));
    press(made, ["!", "enter", "escape"]);
    return events;
  };
  cases["ThinkingSelector"] = () => new agent.ThinkingSelectorComponent("medium", ["off", "minimal", "low", "medium", "high", "xhigh"], none, none);
  cases["ThinkingSelector used"] = () => {
    const events = [];
    const made = new agent.ThinkingSelectorComponent("low", ["off", "low", "high"], (level) => events.push(level), () => events.push("cancel"));
    press(made.getSelectList(), ["down", "enter", "escape"]);
    return events;
  };
  cases["ShowImagesSelector"] = () => new agent.ShowImagesSelectorComponent(false, none, none);
  cases["ThemeSelector"] = () => new agent.ThemeSelectorComponent("light", none, none, none);

  const models = (keys, { scoped = [], search, current = MODELS[4] } = {}) => async () => {
    const made = new agent.ModelSelectorComponent(UI, current, SETTINGS, REGISTRY, scoped, none, none, search);
    made.focused = true;
    await soon();
    return press(made, keys);
  };
  cases["ModelSelector"] = models([]);
  cases["ModelSelector moved"] = models(["down", "down", "up", "up", "up"]);
  cases["ModelSelector searched"] = models([..."el-1"]);
  cases["ModelSelector opened with a search"] = models([], { search: "provider-2" });
  cases["ModelSelector without match"] = models([..."zzz"]);
  cases["ModelSelector scoped"] = models([], { scoped: [{ model: MODELS[1] }, { model: MODELS[4] }] });
  cases["ModelSelector unscoped"] = models(["tab", "down"], { scoped: [{ model: MODELS[1] }] });
  cases["ModelSelector without current"] = models([], { current: undefined });

  const settings = (keys) => () => {
    const callbacks = new Proxy({}, { get: () => none });
    return press(new agent.SettingsSelectorComponent(CONFIG, callbacks).getSettingsList(), keys);
  };
  cases["SettingsSelector"] = () => new agent.SettingsSelectorComponent(CONFIG, {});
  cases["SettingsSelector from the end"] = settings(["up"]);
  cases["SettingsSelector submenu"] = settings(["up", "enter"]);
  cases["SettingsSelector thinking"] = settings(["up", "up", "enter", "down"]);
  cases["SettingsSelector searched"] = settings([..."image"]);
  cases["SettingsSelector events"] = () => {
    const events = [];
    const callbacks = new Proxy({}, { get: (_, name) => (...given) => events.push([name, ...given]) });
    const list = new agent.SettingsSelectorComponent(CONFIG, callbacks).getSettingsList();
    press(list, ["enter", ...Array(18).fill(["down", "enter"]).flat(), "down", "escape", "escape"]);
    return events;
  };
  cases["UserMessageSelector"] = () =>
    new agent.UserMessageSelectorComponent(Array.from({ length: 13 }, (_, i) => ({ id: String(i), text: `message ${i}\nwith ${"more text ".repeat(i)}` })), none, none);
  cases["UserMessageSelector moved"] = () => {
    const made = new agent.UserMessageSelectorComponent([{ id: "a", text: "one" }, { id: "b", text: "two" }, { id: "c", text: "three" }], none, none);
    press(made.getMessageList(), ["down", "down"]);
    return made;
  };

  const tree = (keys, { leaf = "u5", roots = TREE, selected, mode, height = 24 } = {}) => () =>
    press(new agent.TreeSelectorComponent(roots(), leaf, height, none, none, none, selected, mode), keys);
  const alone = () => TREE().slice(0, 1);
  cases["TreeSelector"] = tree([]);
  cases["TreeSelector one root"] = tree([], { roots: alone });
  cases["TreeSelector all"] = tree(["\x01"], { height: 60 });
  cases["TreeSelector one root all"] = tree(["\x01"], { roots: alone, height: 60 });
  cases["TreeSelector without tools"] = tree(["\x14"], { height: 60 });
  cases["TreeSelector users"] = tree(["\x15"], { roots: alone });
  cases["TreeSelector labels"] = tree(["\x0c"]);
  cases["TreeSelector label times"] = tree(["T"], { mode: "all", height: 60 });
  cases["TreeSelector cycled"] = tree(["\x0f", "\x0f", "\x0f", "\x0f"], { height: 60 });
  cases["TreeSelector searched"] = tree([..."other"], { height: 60 });
  cases["TreeSelector search undone"] = tree([..."other", "escape", "x", "backspace"]);
  cases["TreeSelector without match"] = tree([..."zzz"]);
  cases["TreeSelector moved"] = tree(["up", "up", "up"], { height: 60 });
  cases["TreeSelector paged"] = tree(["pageUp", "down"], { leaf: "a2" });
  cases["TreeSelector folded"] = tree(["\x1b[1;5D", "\x1b[1;5D", "\x1b[1;5D"], { height: 60 });
  cases["TreeSelector unfolded"] = tree(["\x1b[1;5D", "\x1b[1;5D", "\x1b[1;5D", "\x1b[1;5C", "\x1b[1;5C"], { height: 60 });
  cases["TreeSelector from elsewhere"] = tree([], { selected: "r1", height: 60 });
  cases["TreeSelector label edited"] = tree(["L", ..."new"], { leaf: "a3" });
  cases["TreeSelector label saved"] = tree(["L", ..."new", "enter"], { leaf: "u4", height: 60 });
  cases["TreeSelector without a leaf"] = tree([], { leaf: null, height: 60 });

  const sessions = (keys, { list = SESSIONS, current } = {}) => async () => {
    const options = { renameSession: async () => {}, keybindings: tui.getKeybindings() };
    const made = new agent.SessionSelectorComponent(async () => list, async () => [...list, session("z", 1, { cwd: "/other" })], none, none, none, none, options, current);
    made.focused = true;
    await soon();
    for (const key of keys) {
      press(made, [key]);
      await soon();
    }
    return made;
  };
  cases["SessionSelector"] = sessions([], { current: "/sessions/c.jsonl" });
  cases["SessionSelector moved"] = sessions(["down", "down", "pageDown", "up"]);
  cases["SessionSelector of all"] = sessions(["tab"]);
  cases["SessionSelector and back"] = sessions(["tab", "tab"]);
  cases["SessionSelector recent"] = sessions(["\x13"]);
  cases["SessionSelector named"] = sessions(["\x0e"]);
  cases["SessionSelector without names"] = sessions(["\x0e"], { list: SESSIONS.slice(1, 4) });
  cases["SessionSelector with paths"] = sessions(["\x10"]);
  cases["SessionSelector searched"] = sessions([..."needle n3"]);
  cases["SessionSelector phrase"] = sessions([...'"needle in e"']);
  cases["SessionSelector expression"] = sessions([..."re:n[0-3]$|Old"]);
  cases["SessionSelector bad expression"] = sessions([..."re:(("]);
  cases["SessionSelector renaming"] = sessions(["\x12", ..." x"]);
  cases["SessionSelector asked"] = sessions(["\x04"]);
  cases["SessionSelector not the current"] = sessions(["\x04"], { current: "/sessions/a.jsonl" });
  cases["SessionSelector empty"] = sessions([], { list: [] });

  const footer = (state, data = {}, entries = [], percent = 12.34) => (width) => {
    const session = {
      state,
      sessionManager: { getEntries: () => entries, getCwd: () => "/somewhere/in/a/folder", getSessionName: () => data.name },
      modelRegistry: { isUsingOAuth: () => data.oauth ?? false },
      getContextUsage: () => ({ tokens: 1, contextWindow: 200000, percent }),
    };
    const footerData = { getGitBranch: () => data.branch ?? null, getExtensionStatuses: () => new Map(data.statuses ?? []), getAvailableProviderCount: () => data.providers ?? 1 };
    const made = new agent.FooterComponent(session, footerData);
    if (data.manual) made.setAutoCompactEnabled(false);
    return made.render(width);
  };
  const model = MODELS[0];
  cases["Footer"] = footer({ model, thinkingLevel: "high" }, { branch: "main", name: "a session" }, [entry(usage(1234, 0.5)), entry(usage(2_000_000, 1))]);
  cases["Footer without model"] = footer({}, { manual: true });
  cases["Footer with statuses"] = footer({ model: MODELS[1] }, { statuses: [["b", "second\nstatus"], ["a", "\x1b[31mfirst\x1b[0m   status"]], providers: 3, oauth: true });
  cases["Footer nearly full"] = footer({ model, thinkingLevel: "off" }, { providers: 2 }, [], 95);
  cases["Footer warned"] = footer({ model }, {}, [entry(usage(999, 0.0001))], 75);
  cases["Footer after compaction"] = footer({ model }, {}, [], null);
  cases["Footer with a long model"] = footer({ model: { ...model, id: "a-model-with-a-name-that-is-much-too-long-for-any-terminal-at-all" } }, { providers: 2 }, [entry(usage(123456, 12.345))]);
  return cases;
}
