// Hears of what happens, and changes what may be changed; `/log` tells all of it.
const log: unknown[] = [];

export default function (pi) {
  const note = (event, ...members) => log.push([event.type, ...members.map((name) => event[name] ?? null)]);
  pi.on("thinking_level_select", (event) => note(event, "level", "previousLevel"));
  pi.on("session_info_changed", (event) => note(event, "name"));
  pi.on("session_compact_failed", (event) =>
    note(event, "reason", "errorMessage", "aborted", "willRetry", "fromExtension"));
  pi.on("session_before_compact", (event) => {
    note(event, "reason", "willRetry");
    if (event.customInstructions === "no") return { cancel: true };
  });
  pi.on("agent_settled", (event) => note(event, "aborted"));
  pi.on("ui_prompt_start", (event) => note(event, "reason", "kind", "title"));
  pi.on("ui_prompt_end", (event) => note(event, "reason", "kind", "title"));
  pi.on("input", (event) => note(event, "text", "source", "streamingBehavior"));
  pi.on("before_provider_headers", (event) => {
    event.headers["x-added"] = "by an extension";
    event.headers["x-left-out"] = null;
  });
  pi.on("before_agent_start", (event) => {
    const { systemPromptOptions: options } = event;
    note({ ...event, tools: options.selectedTools, folder: options.cwd === process.cwd() }, "tools", "folder");
    options.promptGuidelines.push("Be brave.");
    options.appendSystemPrompt = "This is the end.";
  });
  const off = pi.on("turn_start", (event) => {
    note(event, "turnIndex");
    off();
  });
  for (const name of ["session_switch", "project_trust", "tool_cal", "tool_cal"]) pi.on(name, () => log.push(name));

  pi.registerFlag("own", { type: "string", default: "first" });
  pi.registerCommand("ask", { handler: async (_args, ctx) => void (await ctx.ui.confirm("Sure?", "really")) });
  pi.registerCommand("say", {
    handler: async (text) => pi.sendUserMessage(text, { expandPromptTemplates: true }),
  });
  pi.registerCommand("know", {
    handler: async (_args, ctx) => {
      const component = () => {};
      ctx.ui.setEditorComponent(component);
      ctx.ui.setWorkingVisible(false);
      ctx.ui.addAutocompleteProvider(() => ({}));
      ctx.ui.notify(JSON.stringify({
        theme: pi.getSettings().theme,
        scoped: ctx.scopedModels.map((one) => [one.model.id, one.thinkingLevel]),
        trusted: ctx.isProjectTrusted(),
        session: ctx.sessionManager.sessionId === ctx.sessionManager.getSessionId(),
        mode: ctx.mode,
        thinking: ctx.thinkingLevel,
        editor: ctx.ui.getEditorComponent() === component,
        options: Object.keys(ctx.getSystemPromptOptions()).sort(),
        snippet: typeof ctx.getSystemPromptOptions().toolSnippets.bash,
        flag: pi.getFlag("own"),
        there: ["registerMcpServer", "registerVirtualModel"].filter((name) => name in pi),
      }));
    },
  });
  pi.registerCommand("log", { handler: async (_args, ctx) => ctx.ui.notify(JSON.stringify(log.splice(0))) });
}
