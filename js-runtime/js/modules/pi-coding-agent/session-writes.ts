// What may be written to a session that runs beside another, by its session manager: the
// program writes it, so that what it knows of the session stays true.

type Entry = { type: string; [member: string]: unknown };
type Ask = <T>(question: string, args: object) => T;

const CALLS: Record<string, string> = {
  message: "appendMessage",
  thinking_level_change: "appendThinkingLevelChange",
  model_change: "appendModelChange",
  compaction: "appendCompaction",
  context_edit: "appendContextEdit",
};

/** Gives the entry's id. */
export function writing(ask: Ask): (entry: Entry) => string {
  return ({ type, customType, data, content, display, details, name, targetId, label }) => {
    switch (type) {
      case "custom":
        return ask("appendEntry", { customType, data });
      case "custom_message":
        return ask("appendMessage", { message: { customType, content, display, details } });
      case "session_info":
        return ask("appendName", { name });
      case "label":
        return ask("setLabel", { entryId: targetId, label });
      default:
        throw new Error(
          `sessionManager.${CALLS[type] ?? type}() is not supported of a session that createAgentSession has begun: the ` +
            "session belongs to the agent. Use prompt(), setModel(), compact() and the like",
        );
    }
  };
}
