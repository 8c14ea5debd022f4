// `event.context` of `turn_end` and `agent_before_settle`: the context that the model would get
// with the proposed entries. The whole conversation is fetched only when the property is read.
import { convertToLlm } from "pi:pi-coding-agent/messages.ts";

interface Message {
  role: string;
}

export interface Preview {
  entries: { sourceEntry: object; messages: Message[] }[];
  pending: Message[];
}

export function turnEndContext(fetchPreview: () => Preview): object {
  let cached: Preview | undefined;
  const preview = () => (cached ??= fetchPreview());
  const messages = () => preview().entries.flatMap((entry) => entry.messages);
  return {
    get contextEntries() {
      return preview().entries;
    },
    get contextMessages() {
      return messages();
    },
    get llmMessages() {
      return convertToLlm(messages());
    },
    get pendingMessages() {
      return preview().pending;
    },
    get canContinue() {
      const last = convertToLlm(messages()).at(-1) as Message | undefined;
      return preview().pending.length > 0 || (last !== undefined && last.role !== "assistant");
    },
  };
}
