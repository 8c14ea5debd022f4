// Code of authors for both originals, in the set-up of README.md: names and shapes that real
// extensions need. names.mjs compares the names with an installed original.
import type { AuthEvent, AuthInteraction, AuthPrompt, AuthResult, Credential, CredentialInfo } from "@earendil-works/pi-ai";
import type { AssistantMessageEvent } from "@earendil-works/pi-ai";
import type { CreateProviderOptions, JsonObject, JsonValue, ModelAuth, ModelThinkingLevel } from "@earendil-works/pi-ai";
import type { OAuthCredential, ProviderHeaders, RefreshModelsContext, ToolChoice, Usage } from "@earendil-works/pi-ai";
import type { AnthropicOptions, OpenAICompletionsOptions, SimpleStreamOptions, TextSignatureV1 } from "@earendil-works/pi-ai";
import { createProvider, envApiKeyAuth, openAIResponsesApi, streamOpenAICompletions } from "@earendil-works/pi-ai";
import { stream } from "@earendil-works/pi-ai/compat";
import { getOAuthProvider, type OAuthLoginCallbacks } from "@earendil-works/pi-ai/oauth";
import { getBuiltinModel } from "@earendil-works/pi-ai/providers/all";
import { streamAnthropic } from "@mariozechner/pi-ai/anthropic";
import type { AgentMessage, AgentTool, AgentToolUpdateCallback, CustomMessage, QueueMode } from "@earendil-works/pi-agent-core";
import { createExtensionRuntime, createLocalBashOperations, createWriteTool, getShellConfig } from "@earendil-works/pi-coding-agent";
import { resizeImage, SessionManager, type ToolExecutionComponent } from "@earendil-works/pi-coding-agent";
import type { AgentSession, AgentSessionEvent } from "@earendil-works/pi-coding-agent";
import type { AgentBeforeSettleEventResult, BoundaryState, CompactionEntryDraft, TurnEndEventResult } from "@earendil-works/pi-coding-agent";
import type { AppKeybinding, BuildSystemPromptOptions, CompactionSettings, EntryRenderOptions } from "@earendil-works/pi-coding-agent";
import type { Extension, ExtensionAPI, ExtensionContext, ExtensionFlag, ExtensionMode } from "@earendil-works/pi-coding-agent";
import type { ExtensionRuntime, ExtensionShortcut, InlineExtension, MarkdownTransformer } from "@earendil-works/pi-coding-agent";
import type { ProviderModelConfig } from "@earendil-works/pi-coding-agent";
import type { ModelSelectSource, NormalizedBuildSystemPromptOptions, PathMetadata } from "@earendil-works/pi-coding-agent";
import type { ProjectedSessionEntry, RegisteredCommand, RegisteredTool, ResolvedCommand } from "@earendil-works/pi-coding-agent";
import type { ResolveModelScopeResult, ResourceLoader, ScopedModel, SessionEntry } from "@earendil-works/pi-coding-agent";
import type { RpcCommand, RpcExtensionUIRequest, RpcExtensionUIResponse, RpcResponse, RpcSessionState } from "@earendil-works/pi-coding-agent";
import type { SettingsManagerCreateOptions, UIPromptEndEvent, UIPromptKind, UIPromptStartEvent } from "@earendil-works/pi-coding-agent";
import { Markdown, Text, type AutocompleteProvider, type MarkdownTheme, type StackChild, type StackOptions } from "@earendil-works/pi-tui";
import type { Keybinding, Keybindings, KeybindingsManager, ScrollViewOptions, TUI, TuiInputListener } from "@earendil-works/pi-tui";

declare module "@earendil-works/pi-agent-core" {
  interface CustomAgentMessages {
    note: { role: "note"; text: string; timestamp: number };
  }
}
export const note: AgentMessage = { role: "note", text: "mine", timestamp: 0 };

/** Names that are not used above. */
export type Names = [
  CredentialInfo, CreateProviderOptions, RefreshModelsContext, ToolChoice, TextSignatureV1, CustomMessage, QueueMode,
  AgentBeforeSettleEventResult, BoundaryState, AppKeybinding, EntryRenderOptions, Extension, ExtensionShortcut,
  InlineExtension, MarkdownTransformer, ModelSelectSource, PathMetadata, ProjectedSessionEntry, RegisteredTool,
  ResolveModelScopeResult, SettingsManagerCreateOptions, UIPromptEndEvent, UIPromptKind, UIPromptStartEvent, StackChild,
  StackOptions, ScrollViewOptions, TuiInputListener, ModelThinkingLevel, ExtensionRuntime, ScopedModel,
];

/** Contexts that an extension declares itself, with the members that it needs. */
interface Needs {
  mode?: "tui" | "rpc" | "json" | "print";
  thinkingLevel?: ModelThinkingLevel;
}
export const needs = (ctx: ExtensionContext, mode: ExtensionMode): Needs[] => [ctx, { mode, thinkingLevel: ctx.thinkingLevel }];

export function events(pi: ExtensionAPI) {
  pi.on("turn_end", ({ outcome, context }): TurnEndEventResult | undefined => {
    const [first] = context.contextEntries;
    const draft: CompactionEntryDraft = { type: "compaction", summary: outcome, firstKeptEntryId: first?.sourceEntry.id ?? null };
    return context.canContinue ? { entries: [draft], continue: true } : undefined;
  });
  pi.on("tool_result", ({ usage }) => usage && { usage: { ...usage, cacheWrite1h: usage.cacheWrite1h ?? 0 } });
  pi.on("before_agent_start", ({ systemPromptOptions }) => prompt(systemPromptOptions));
  pi.on("project_trust", async ({ cwd }, { hasUI, ui }) => {
    if (hasUI && (await ui.confirm("Trust?", cwd))) return { trusted: "yes", remember: true };
    return { trusted: "undecided" };
  });
}
function prompt(options: BuildSystemPromptOptions | NormalizedBuildSystemPromptOptions): void {
  options.appendSystemPrompt = options.cwd;
}

export function registered(flag: ExtensionFlag, command: ResolvedCommand): RegisteredCommand | string {
  return flag.default === true ? command : command.invocationName + flag.name;
}
export const provider = (...[name, config]: Parameters<ExtensionAPI["registerProvider"]>) => ({ name, ...config, title: config.name });
export const models: ProviderModelConfig[] = [{
  id: "m", name: "M", baseUrl: "http://localhost", reasoning: false, input: ["text"], contextWindow: 1, maxTokens: 1,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, promptCache: { short: 300 },
}];
export const compaction: CompactionSettings = { reserveTokens: 1 };
export const loader: Partial<ResourceLoader> = {
  getExtensions: () => ({ extensions: [], errors: [], runtime: createExtensionRuntime() }),
  getSystemPromptSource: () => undefined,
  reload: async (options) => void (await options?.resolveProjectTrust?.({ extensionsResult: { extensions: [], errors: [] } })),
};

/** Headers of newer versions fit older ones and the other way round. */
export function headers(auth: ModelAuth, given: SimpleStreamOptions): [SimpleStreamOptions, Record<string, string>] {
  const all: ProviderHeaders = { ...auth.headers, ...given.headers, "x-not": null };
  return [{ headers: all }, { ...given.headers }];
}
export async function credentials(ctx: ExtensionContext, stored: Credential): Promise<AuthResult | OAuthCredential | undefined> {
  if (!ctx.model) return undefined;
  const found = await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model);
  if (stored.type === "oauth") return stored;
  return found.ok ? { auth: found, env: found.env ?? stored.env } : ctx.modelRegistry.getProviderAuth(ctx.model.provider);
}
export function signIn({ prompt, notify }: AuthInteraction, callbacks: OAuthLoginCallbacks) {
  const question: AuthPrompt = { type: "select", message: "Which?", options: [{ id: "a", label: "A" }] };
  const news: AuthEvent = { type: "info", message: "Hello", links: [{ url: "https://example.org" }] };
  notify(news);
  return [prompt(question), getOAuthProvider("anthropic")?.login(callbacks)];
}
export function ask(choice: OpenAICompletionsOptions["toolChoice"], effort: AnthropicOptions) {
  const model = getBuiltinModel("openai", "gpt-4o");
  streamAnthropic(model, { messages: [] }, { ...effort, toolChoice: { type: "tool", name: "read" } });
  // @ts-expect-error: no such effort
  streamOpenAICompletions(model, { messages: [] }, { reasoningEffort: "a lot" });
  return [stream(model, { messages: [] }, { signal: undefined }), choice];
}

export function usageOf(entry: SessionEntry): Usage | undefined {
  if (entry.type === "compaction" || entry.type === "branch_summary") return entry.usage;
  return entry.type === "message" && entry.message.role === "toolResult" ? entry.message.usage : undefined;
}
export function lines(response: RpcResponse, asked: RpcExtensionUIRequest): RpcCommand | RpcExtensionUIResponse | RpcSessionState | string {
  if (!response.success) return response.error;
  if (response.command === "get_state") return response.data;
  if (asked.method === "select") return { type: "extension_ui_response", id: asked.id, value: asked.options[0] ?? "" };
  return { id: response.id, type: "prompt", message: "Hello" };
}

export const json: JsonValue[] = [1, "a", null, { list: [true] } satisfies JsonObject];
export const completions: Pick<AutocompleteProvider, "triggerCharacters"> = { triggerCharacters: ["@"] };
export const markdown = (theme: MarkdownTheme) => new Markdown("*a*", 0, 0, theme, undefined, { renderLatex: true });
export const chunks = (said: Buffer[]) => createLocalBashOperations().exec("ls", "/", { onData: (data) => void said.push(data) });
export const any = (tool: AgentTool, update: AgentToolUpdateCallback) => [tool, update({ content: [], details: { any: "thing" } })];
export const small = (bytes: Buffer) => [resizeImage(bytes, "image/png", { maxWidth: 9 }), resizeImage({ data: "", mimeType: "" })];
export const child = () => SessionManager.create("/", undefined, { parentSession: "/a.jsonl" });

/** A member of a union can be extracted by its name, and fits a record. */
export const text = (event: Extract<AssistantMessageEvent, { type: "text_delta" }>): string => event.delta;
export const record = (event: AgentSessionEvent | AssistantMessageEvent): Readonly<Record<string, unknown>> => event;
/** An extension may accept only some of the actions that have keys. */
interface Keys {
  matches(data: string, keybinding: Extract<Keybinding, "tui.select.up" | "app.interrupt">): boolean;
}
export const isUp = (keys: Keys) => keys.matches("", "tui.select.up");
export const narrow = (keys: KeybindingsManager): boolean => isUp(keys) || keys.matches("", "mine.own");
declare module "@earendil-works/pi-tui" {
  interface Keybindings {
    "mine.jump": true;
  }
}
export const jump: keyof Keybindings = "mine.jump";

/** Members that only newer versions have can be read. */
export function asked(entry: SessionEntry, ctx: ExtensionContext, tui: TUI) {
  const pending = entry.type === "message" && entry.message.role === "assistant" && entry.message.stopReason === "pending";
  const prices = (ctx.model?.cost.tiers ?? []).map(({ input }) => input);
  return [pending, prices, tui.mode === "fullscreen", getShellConfig().commandTransport === "stdin"];
}
export async function wrapped(row: ToolExecutionComponent, result: { content: { type: string }[]; details?: unknown; isError: boolean }) {
  row.updateResult(result, true);
  const { details } = await createWriteTool("/").execute("1", { path: "a", content: "" });
  return { ...(details as object), more: true };
}
export const some = createProvider({
  id: "some",
  auth: { apiKey: envApiKeyAuth("A key", ["SOME_KEY"]) },
  models: [],
  api: { "openai-responses": openAIResponsesApi() },
});
export function drawn(pi: ExtensionAPI) {
  pi.registerMessageRenderer("note", (message, { outputPad }) => new Text(" ".repeat(outputPad) + message.content));
}
export const bound = (session: AgentSession) =>
  session.bindExtensions({
    mode: "tui",
    commandContextActions: {
      waitForIdle: () => session.waitForIdle(),
      newSession: async () => ({ cancelled: true }),
      fork: async () => ({ cancelled: true }),
      navigateTree: async (targetId, options) => await session.navigateTree(targetId, options),
      switchSession: async () => ({ cancelled: true }),
      reload: async () => {},
    },
    shutdownHandler() {},
  });
