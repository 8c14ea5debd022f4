// Code of authors in the set-up of README.md: with each of the packages that provide schemas, and
// no other.
import { Type as Other, StringEnum, clampThinkingLevel, complete, getModel, registerApiProvider } from "@mariozechner/pi-ai";
import type { Api, Context, Model, OpenAICompletionsCompat, StreamOptions, Tool } from "@mariozechner/pi-ai";
import { createAssistantMessageEventStream, parseStreamingJson, validateToolArguments } from "@mariozechner/pi-ai";
import { streamAnthropic, streamGoogle, streamOpenAIResponses } from "@mariozechner/pi-ai";
import { createAgentSession, createBashTool, defineTool, DefaultResourceLoader, RpcClient } from "@mariozechner/pi-coding-agent";
import type { BashOperations, ExtensionAPI, SettingsManager, ToolDefinition } from "@mariozechner/pi-coding-agent";
import { StdinBuffer, Text } from "@mariozechner/pi-tui";
import { type Static, Type } from "typebox";

/** Accepts only the identical type: `any` is another one. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_yes: Same<A, B>): void {}

const schema = Type.Object({
  count: Type.Optional(Type.Number()),
  kind: StringEnum(["one", "two"] as const, { description: "Which" }),
  list: Type.Array(Type.Object({ name: Type.String() })),
  when: Type.Optional(StringEnum(["now", "later"])),
});
const nothing = { content: [], details: undefined };
const greet = defineTool({
  name: "greet",
  label: "Greet",
  description: "Greets",
  parameters: Type.Object({ name: Type.String() }),
  async execute(_id, { name }) {
    return { content: [{ type: "text", text: name }], details: { name } };
  },
});

export function tools(pi: ExtensionAPI) {
  pi.registerTool({
    name: "count",
    label: "Count",
    description: "Counts",
    parameters: schema,
    async execute(_id, params) {
      same<typeof params.count, number | undefined>(true);
      same<typeof params.kind, "one" | "two">(true);
      same<typeof params.when, "now" | "later" | undefined>(true);
      same<(typeof params.list)[0]["name"], string>(true);
      // @ts-expect-error: not in the schema
      params.nothing;
      return nothing;
    },
    renderCall(args, _theme, context) {
      context.state.count = (context.state.count ?? 0) + 1;
      return new Text(args.kind + context.args.kind);
    },
    renderResult(_result, _options, _theme, context) {
      return new Text(String(context.state.count));
    },
  });
  pi.registerTool({
    name: "other",
    label: "Other",
    description: "With the Type of pi-ai",
    parameters: Other.Object({ path: Other.String() }),
    async execute(_id, { path }) {
      same<typeof path, string>(true);
      return nothing;
    },
  });
  pi.registerTool(greet);
  const bash = createBashTool("/");
  pi.registerTool({ ...bash, label: "Mine", execute: (id, params) => bash.execute(id, { command: params.command }) });
  const all: ToolDefinition[] = [greet];
  const plain: Tool = { name: "plain", description: "", parameters: schema };
  const command: Static<typeof bash.parameters> = { command: "ls" };
  return [all, validateToolArguments(plain, { type: "toolCall", id: "", name: "", arguments: command }).count];
}

export function levels(pi: ExtensionAPI) {
  pi.on("session_start", (_event, ctx) => {
    const level = ctx.thinkingLevel ?? "off";
    pi.setThinkingLevel(level);
    if (ctx.model) pi.setThinkingLevel(clampThinkingLevel(ctx.model, level));
    const { model, thinkingLevel } = ctx;
    void createAgentSession({ model, thinkingLevel, scopedModels: [...ctx.scopedModels] });
  });
  pi.on("thinking_level_select", (event) => pi.setThinkingLevel(event.previousLevel));
  // @ts-expect-error: no level
  pi.setThinkingLevel("hihg");
}

const compat: OpenAICompletionsCompat = { supportsStore: false };
const rest = { id: "x", name: "x", provider: "x", baseUrl: "", reasoning: false, contextWindow: 1, maxTokens: 1 };
const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const model: Model<"openai-completions"> = { ...rest, cost, input: ["text"], api: "openai-completions", compat };
export function models(pi: ExtensionAPI, some: Model) {
  const any: Model[] = [model, { ...some, compat }, { ...some, compat: { ofTheProvider: true } }];
  const stores: (boolean | undefined)[] = [model.compat?.supportsStore, some.compat?.supportsStore];
  // @ts-expect-error: no boolean
  ({ ...model, compat: { supportsStore: "yes" } }) satisfies Model<"openai-completions">;
  pi.registerProvider("mine", { models: [{ ...rest, cost, input: ["text"], compat }] });
  return [any, stores, complete(getModel("anthropic", "claude-sonnet-4-5"), { messages: [] }), ask(model)];
}
function ask<T extends Api>(model: Model<T>) {
  return complete(model, { messages: [] });
}
interface Options extends StreamOptions {
  depth?: number;
}
registerApiProvider({
  api: "mine",
  stream: (_model: Model<"mine">, _context: Context, _options?: Options) => createAssistantMessageEventStream(),
  streamSimple: (_model: Model<"mine">, _context: Context) => createAssistantMessageEventStream(),
});
export const asked = [
  streamOpenAIResponses(getModel("openai", "gpt-5.4"), { messages: [] }, {
    reasoningSummary: "detailed",
    serviceTier: "flex",
    cacheRetention: "long",
    metadata: { user_id: "u" },
  }),
  streamGoogle(getModel("google", "gemini-2.5-pro"), { messages: [] }, { thinking: { enabled: true, level: "LOW" } }),
  // @ts-expect-error: no such time
  complete(getModel("openai", "gpt-5.4"), { messages: [] }, { cacheRetention: "forever" }),
  // @ts-expect-error: no such display
  streamAnthropic(getModel("anthropic", "claude-sonnet-4-5"), { messages: [] }, { thinkingDisplay: "loud" }),
];
export const count: number = parseStreamingJson<{ count: number }>("{").count;

export function settings(manager: SettingsManager) {
  manager.setShellPath(undefined);
  manager.setEnabledModels(undefined);
  const { compaction, theme, packages } = manager.getGlobalSettings();
  same<typeof theme, string | undefined>(true);
  same<NonNullable<typeof compaction>["enabled"], boolean | undefined>(true);
  // @ts-expect-error: no text
  manager.setShellPath(1);
  return packages?.map(String);
}

export async function sessions(operations: BashOperations) {
  const resourceLoader = new DefaultResourceLoader({ promptsOverride: (base) => base, themesOverride: (base) => base });
  const { session, extensionsResult } = await createAgentSession({ resourceLoader });
  await session.bindExtensions({ onError: ({ error }) => console.error(error) });
  await session.executeBash("ls", undefined, { operations });
  const { cancelled } = await session.navigateTree("id", { summarize: true });
  // @ts-expect-error: throws
  session.state.systemPrompt = "";
  const client = new RpcClient();
  // @ts-expect-error: no such command
  client.getStat();
  const [event] = await client.promptAndWait("hello");
  const { exitCode } = await client.bash("ls");
  new StdinBuffer().once("data", (data) => data.length).removeAllListeners();
  return [extensionsResult.extensions.map(({ path }) => path), cancelled, event.type, exitCode];
}

export function renderers(pi: ExtensionAPI) {
  pi.registerEntryRenderer<{ text: string }>("note", (entry) => new Text(entry.data?.text));
  pi.on("before_agent_start", ({ systemPromptOptions: options }) => {
    options.skills = options.skills.filter((skill) => !skill.disableModelInvocation);
  });
}
