// Sessions and agents that an extension runs itself: each check says what came of it.
import * as fs from "node:fs";
import * as path from "node:path";
import { Agent, agentLoop, agentLoopContinue, runAgentLoop, streamProxy } from "@mariozechner/pi-agent-core";
import { createAssistantMessageEventStream, Type } from "@mariozechner/pi-ai";
import {
  AgentSession,
  createAgentSession,
  createAgentSessionFromServices,
  createAgentSessionRuntime,
  createAgentSessionServices,
  createExtensionRuntime,
  createReadTool,
  DefaultResourceLoader,
  formatSkillsForPrompt,
  getAgentDir,
  loadProjectContextFiles,
  loadSkills,
  loadSkillsFromDir,
  parseSkillBlock,
  RpcClient,
  SessionManager,
} from "@mariozechner/pi-coding-agent";

const said = (messages) =>
  messages.map((message) => {
    const { content = [] } = message;
    return `${message.role}: ${typeof content === "string" ? content : content.map((block) => block.text ?? block.name).join("|")}`;
  });
const failure = (work) =>
  Promise.resolve().then(work).then((value) => `no error: ${JSON.stringify(value)}`, (error) => error.message);

const echo = {
  name: "echo",
  label: "Echo",
  description: "Says it again",
  promptSnippet: "Echo of the extension",
  parameters: Type.Object({ text: Type.String() }),
  prepareArguments: (args) => ("what" in args ? { text: args.what } : args),
  async execute(_id, { text }, signal, onUpdate, ctx) {
    onUpdate?.({ content: [{ type: "text", text: "soon" }], details: {} });
    if (text === "wait") {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("was aborted"))));
    }
    if (text === "throw") throw new Error("thrown by echo");
    return { content: [{ type: "text", text: `echo ${text} ${ctx?.hasUI}` }], details: { text } };
  },
};

const skill = "---\nname: dig\ndescription: digs holes\n---\nTake a spade.";

const checks = {
  async session(ctx) {
    const sessionManager = SessionManager.inMemory(ctx.cwd);
    const { session, extensionsResult, modelFallbackMessage } = await createAgentSession({
      cwd: ctx.cwd,
      model: ctx.model,
      thinkingLevel: "low",
      tools: ["read", "echo"],
      customTools: [echo],
      sessionManager,
      resourceLoader: {
        getSystemPrompt: () => "You are small.",
        getAppendSystemPrompt: () => ["And quick."],
        getAgentsFiles: () => ({ agentsFiles: [{ path: "/x/AGENTS.md", content: "Be kind." }] }),
        getSkills: () => ({ skills: [], diagnostics: [] }),
        getPrompts: () => ({ prompts: [], diagnostics: [] }),
        getThemes: () => ({ themes: [], diagnostics: [] }),
        getExtensions: () => ({ extensions: [], errors: [], runtime: createExtensionRuntime() }),
      },
    });
    const events = [];
    const streaming = [];
    const off = session.subscribe((event) => {
      events.push(event.type);
      if (event.type.startsWith("agent")) streaming.push(session.isStreaming);
    });
    const before = [session.isStreaming, session.thinkingLevel, session.model.id, session.getActiveToolNames()];
    await session.prompt("first");
    const seen = [...new Set(events)];
    off();
    const ended = events.length;
    await session.prompt("second");
    session.setThinkingLevel("high");
    session.setSessionName("Beside");
    session.setActiveToolsByName(["echo"]);
    await session.sendCustomMessage({ customType: "note", content: "noted", display: false });
    const state = {
      is: session instanceof AgentSession,
      before,
      seen: seen.filter((type) => !type.includes("update")),
      streaming,
      silent: events.length === ended,
      messages: said(session.messages),
      last: session.getLastAssistantText(),
      thinking: session.thinkingLevel,
      levels: session.getAvailableThinkingLevels(),
      name: sessionManager.getSessionName(),
      entries: sessionManager.getEntries().filter((entry) => entry.type === "message").length,
      active: session.getActiveToolNames(),
      tool: session.getAllTools().find((tool) => tool.name === "echo").sourceInfo.source,
      stats: session.getSessionStats().userMessages,
      forkable: session.getUserMessagesForForking().map(({ text }) => text),
      bash: (await session.executeBash("echo shell")).output,
      prompt: session.systemPrompt.split("\n").filter(Boolean).slice(0, 2),
      noModel: await failure(() => session.setModel({ provider: "none", id: "none" })),
      written: await failure(() => sessionManager.appendModelChange("p", "m")),
      errors: extensionsResult.errors,
      fallback: modelFallbackMessage ?? null,
    };
    const waiting = session.prompt("third");
    await new Promise((resolve) => {
      const stop = session.subscribe((event) => {
        if (event.type === "tool_execution_update") resolve(stop());
      });
    });
    const busy = await failure(() => session.prompt("busy"));
    await session.steer("later");
    const queued = [session.pendingMessageCount, session.getSteeringMessages(), session.clearQueue().steering];
    await session.abort();
    await waiting;
    const aborted = said(session.messages).filter((line) => line.includes("aborted"));
    const look = () =>
      JSON.stringify([said(session.messages), session.getLastAssistantText(), session.getSessionStats(),
        session.sessionManager.getEntries(), session.sessionManager.buildSessionContext(), session.model,
        session.isStreaming, session.state]);
    const alive = look();
    session.dispose();
    const kept = look() === alive || [alive, look()];
    const gone = await failure(() => session.prompt("more"));
    return { ...state, busy: busy.slice(0, 27), queued, aborted, kept, gone };
  },

  async quick(ctx) {
    const { session } = await createAgentSession({
      cwd: ctx.cwd,
      model: ctx.model,
      tools: [],
      sessionManager: SessionManager.inMemory(ctx.cwd),
    });
    let asked = false;
    session.subscribe(({ type, message }) => {
      if (asked || type !== "message_end" || message.role !== "assistant") return;
      asked = true;
      void session.followUp("more");
    });
    await session.prompt("first");
    const messages = said(session.messages);
    const waiting = failure(() => session.prompt("never mind"));
    await session.abort();
    const aborted = await waiting;
    session.dispose();
    return { messages, aborted };
  },

  async services(ctx) {
    const dir = fs.mkdtempSync(path.join(ctx.cwd, "sessions-"));
    const create = async ({ cwd, agentDir, sessionManager }) => {
      const services = await createAgentSessionServices({ cwd, agentDir });
      const created = await createAgentSessionFromServices({ services, sessionManager, model: ctx.model });
      return { ...created, services, diagnostics: services.diagnostics };
    };
    const sessionManager = SessionManager.create(ctx.cwd, dir);
    const runtime = await createAgentSessionRuntime(create, { cwd: ctx.cwd, agentDir: getAgentDir(), sessionManager });
    await runtime.session.prompt("stored");
    const file = runtime.session.sessionFile;
    await runtime.newSession();
    const fresh = [runtime.session.sessionFile !== file, runtime.session.messages.length];
    await runtime.switchSession(file);
    const back = said(runtime.session.messages);
    await runtime.dispose();
    return { inside: path.dirname(file) === dir, lines: fs.readFileSync(file, "utf8").trim().split("\n").length > 2, fresh, back };
  },

  async resources(ctx) {
    const folder = path.join(ctx.cwd, "more/dig");
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(folder, "SKILL.md"), skill);
    fs.writeFileSync(path.join(ctx.cwd, "AGENTS.md"), "Be kind.");
    const { skills } = loadSkillsFromDir({ dir: path.join(ctx.cwd, "more"), source: "test" });
    const loader = new DefaultResourceLoader({
      cwd: ctx.cwd,
      additionalSkillPaths: [path.join(ctx.cwd, "more")],
      systemPromptOverride: () => "Mine.",
    });
    await loader.reload();
    return {
      skills: skills.map(({ name, description, filePath }) => [name, description, path.relative(ctx.cwd, filePath)]),
      none: loadSkills({ cwd: ctx.cwd, includeDefaults: false }).skills.length,
      gone: loadSkillsFromDir({ dir: path.join(ctx.cwd, "gone"), source: "test" }).diagnostics,
      block: formatSkillsForPrompt(skills).includes("digs holes"),
      empty: formatSkillsForPrompt([]),
      files: loadProjectContextFiles({ cwd: ctx.cwd }).map(({ content }) => content),
      parsed: parseSkillBlock('<skill name="dig" location="/d">\nTake it.\n</skill>\n\nnow'),
      unparsed: parseSkillBlock("dig"),
      loader: [loader.getSystemPrompt(), loader.getSkills().skills.length, loader.getAgentsFiles().agentsFiles.length],
      runtime: await failure(() => createExtensionRuntime().sendMessage()),
    };
  },

  async agent(ctx) {
    const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { total: 0 } };
    const asked = [];
    const answers = [];
    const answer = (content, stopReason = "stop") => ({
      role: "assistant", content, stopReason, api: "own", provider: "own", model: "own", usage, timestamp: 1,
    });
    const call = (id, args) => ({ type: "toolCall", id, name: "echo", arguments: args });
    const text = (text) => ({ type: "text", text });
    const streamFn = (_model, context, options) => {
      asked.push({ messages: said(context.messages), system: context.systemPrompt, key: options.apiKey ?? null, extra: Object.keys(options).sort() });
      const stream = createAssistantMessageEventStream();
      const message = answers.shift();
      if (!message) throw new Error("nothing left to say");
      stream.push({ type: "start", partial: { ...message, content: [] } });
      stream.push({ type: "text_delta", contentIndex: 0, delta: "x", partial: message });
      stream.push({ type: "done", reason: message.stopReason, message });
      return stream;
    };
    const agent = new Agent({
      initialState: { systemPrompt: "S", model: { id: "own", api: "own", provider: "own" }, tools: [echo] },
      streamFn,
      getApiKey: () => "key",
      beforeToolCall: async ({ args }) => (args.text === "forbidden" ? { block: true, reason: "not that" } : undefined),
      afterToolCall: async ({ args }) => (args.text === "change" ? { content: [text("changed")] } : undefined),
    });
    const events = [];
    agent.subscribe((event) => void events.push(event.type));
    answers.push(
      answer([call("1", { what: "a" }), call("2", { text: "forbidden" }), call("3", { text: "change" }), call("4", {})], "toolUse"),
      answer([text("steered")]),
      answer([text("followed")]),
    );
    agent.steer({ role: "user", content: "faster", timestamp: 1 });
    agent.followUp({ role: "user", content: "more", timestamp: 1 });
    await agent.prompt("go");
    const first = {
      said: said(agent.state.messages),
      asked: asked.map(({ messages }) => messages.length),
      options: asked[0].extra,
      key: asked[0].key,
      events: [...new Set(events)],
      updates: events.filter((type) => type === "tool_execution_update").length,
      idle: [agent.state.isStreaming, agent.hasQueuedMessages(), agent.state.pendingToolCalls.size],
    };
    const cannot = await failure(() => agent.continue());
    answers.push(answer([call("5", { text: "wait" })], "toolUse"), answer([], "aborted"));
    const running = agent.prompt("wait for it");
    const stop = agent.subscribe((event) => {
      if (event.type === "tool_execution_update") queueMicrotask(() => agent.abort());
    });
    const twice = await failure(() => agent.prompt("again"));
    await running;
    stop();
    const aborted = said(agent.state.messages).slice(-2);
    await agent.prompt("fails");
    const failed = [agent.state.errorMessage, agent.state.messages.at(-1).stopReason];
    agent.reset();

    // The same loop by itself, and with a model of the program.
    const config = { model: ctx.model, convertToLlm: (messages) => messages, getApiKey: async () => (await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model)).apiKey };
    const user = { role: "user", content: "hello", timestamp: 1 };
    const kinds = new Set();
    const stream = agentLoop([user], { systemPrompt: "", messages: [] }, config);
    for await (const event of stream) kinds.add(event.type);
    const looped = said(await stream.result());
    const context = { systemPrompt: "", messages: [user], tools: [] };
    answers.push(answer([text("went on")]));
    const continued = said(await agentLoopContinue(context, config, undefined, streamFn).result());
    answers.push(answer([text("ran")]));
    const ran = said(await runAgentLoop([user], { systemPrompt: "", messages: [] }, config, () => {}, undefined, streamFn));
    const proxied = await streamProxy(ctx.model, { messages: [] }, { authToken: "t", proxyUrl: "http://127.0.0.1:1" }).result();
    return {
      ...first, cannot, twice: twice.slice(0, 27), aborted, failed, reset: agent.state.messages.length, loop: [...kinds].filter((kind) => !kind.includes("update")),
      looped, continued, grown: context.messages.length, ran, proxied: proxied.stopReason,
      empty: await failure(() => agentLoopContinue({ messages: [] }, config)),
    };
  },

  async client(ctx) {
    const client = new RpcClient({ cwd: ctx.cwd, args: ["--no-extensions", "--no-session"] });
    await client.start();
    const events = await client.promptAndWait("from a child");
    const state = await client.getState();
    const answer = {
      model: state.model.id,
      text: await client.getLastAssistantText(),
      ended: events.at(-1).type,
      messages: (await client.getMessages()).length,
      bash: (await client.bash("echo c")).output,
      refused: await failure(() => client.setModel("none", "none")),
    };
    await client.stop();
    return { ...answer, stopped: await failure(() => client.getState()) };
  },

  async file(ctx) {
    fs.writeFileSync(path.join(ctx.cwd, "one.txt"), "ONE");
    const { session } = await createAgentSession({
      model: ctx.model,
      tools: [createReadTool(ctx.cwd)],
      sessionManager: SessionManager.inMemory(ctx.cwd),
    });
    await session.prompt("read it");
    const messages = said(session.messages);
    session.dispose();
    return { messages, cwd: process.cwd() === ctx.cwd };
  },
};

export default (pi) => {
  for (const [name, check] of Object.entries(checks)) {
    pi.registerCommand(name, {
      handler: async (_args, ctx) => ctx.ui.notify(JSON.stringify(await check(ctx))),
    });
  }
};
