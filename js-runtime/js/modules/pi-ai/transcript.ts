// The system prompt and the tools in the form of newer versions: messages with the role `system`,
// which are read in order (`context_with_system`).

interface Text {
  type: string;
  text?: string;
}

interface Tool {
  name: string;
  description?: string;
  parameters?: unknown;
}

export interface SystemMessage {
  role: "system";
  content: string | Text[];
  /** `null` removes a section. */
  sections?: Record<string, string | null>;
  toolsAdded?: Tool[];
  toolsRemoved?: { name: string }[];
  timestamp: number;
}

type Message = SystemMessage | { role: string };

interface Context {
  systemPrompt?: string;
  tools?: Tool[];
  messages: Message[];
}

/** The key under which a list of messages has its context. */
export const CONTEXT = Symbol("context");

const isSystem = (message: Message): message is SystemMessage => message?.role === "system";

function textOf(content: SystemMessage["content"] | undefined): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("\n");
}

/** Builds the text as the program does. */
export function getSystemMessageText({ content, sections }: SystemMessage): string {
  let text = textOf(content);
  for (const section of Object.values(sections ?? {})) {
    if (section === null) continue;
    if (text !== "" && !section.startsWith("\n")) text += "\n\n";
    text += section;
  }
  return text;
}

/**
 * The result of all system messages together; `undefined` if there is none. The `streamSimple` of a
 * provider gets the prompt and the tools in the context, as in 0.67; the list of messages refers to
 * it (`bridge/providers.ts`).
 */
export function getCurrentSystemMessage(messages: readonly Message[]): SystemMessage | undefined {
  const systemMessages = messages.filter(isSystem);
  if (systemMessages.length === 0) {
    const context = (messages as { [CONTEXT]?: Context })[CONTEXT];
    return context && fromContext(context);
  }
  const sections: Record<string, string> = {};
  const tools = new Map<string, Tool>();
  const content: string[] = [];
  for (const message of systemMessages) {
    content.push(textOf(message.content));
    for (const [name, text] of Object.entries(message.sections ?? {})) {
      if (text === null) delete sections[name];
      else sections[name] = text;
    }
    for (const { name } of message.toolsRemoved ?? []) tools.delete(name);
    for (const tool of message.toolsAdded ?? []) tools.set(tool.name, tool);
  }
  return {
    role: "system",
    content: content.filter((text) => text !== "").join("\n\n"),
    sections,
    toolsAdded: [...tools.values()],
    timestamp: systemMessages[0].timestamp,
  };
}

export function getCurrentSystemPrompt(messages: readonly Message[]): string {
  const current = getCurrentSystemMessage(messages);
  return current ? getSystemMessageText(current) : "";
}

export function getCurrentTools(messages: readonly Message[]): Tool[] {
  return getCurrentSystemMessage(messages)?.toolsAdded ?? [];
}

function fromContext({ systemPrompt, tools = [], messages }: Context): SystemMessage | undefined {
  if (!systemPrompt && tools.length === 0) return undefined;
  const { timestamp = 0 } = (messages[0] ?? {}) as { timestamp?: number };
  return { role: "system", content: systemPrompt ?? "", toolsAdded: tools, timestamp };
}

/** Combines all system messages into the first message. */
export function collapseSystemMessages({ messages }: Context): { messages: Message[] } {
  const head = getCurrentSystemMessage(messages);
  const rest = messages.filter((message) => !isSystem(message));
  return { messages: head ? [head, ...rest] : rest };
}

/** Moves the prompt and the tools out of the messages, as the program expects. */
export function withoutSystemMessages(value: unknown): unknown {
  const context = value as Partial<Context> | null | undefined;
  if (!Array.isArray(context?.messages) || !context.messages.some(isSystem)) return value;
  const { messages } = context;
  const prompts = [context.systemPrompt, getCurrentSystemPrompt(messages)].filter(Boolean);
  const tools = [...(context.tools ?? []), ...getCurrentTools(messages)];
  return {
    ...context,
    systemPrompt: prompts.join("\n\n") || undefined,
    tools: tools.length > 0 ? tools : undefined,
    messages: messages.filter((message) => !isSystem(message)),
  };
}
