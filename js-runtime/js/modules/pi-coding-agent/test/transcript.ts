// Renders events as a text that is equal every time: without ids, times and folders.
import type { RpcEvent } from "pi:pi-coding-agent/test/connection.ts";
import { shown } from "pi:pi-coding-agent/test/ui.ts";
import type { Dialog } from "pi:pi-coding-agent/test/ui.ts";

type Block = { type: string } & Record<string, unknown>;

/** The texts of a content; images are named. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as Block[])
    .filter(({ type }) => type === "text" || type === "image")
    .map((block) => (block.type === "text" ? String(block.text) : `[${block.mimeType}]`))
    .join("\n");
}

/** Further lines are indented below the first one. */
const entry = (what: string, text: string): string => {
  const lines = text.trimEnd().split("\n");
  if (lines.length === 1) return lines[0] === "" ? what : `${what} ${lines[0]}`;
  return [what, ...lines.map((line) => `  ${line}`.trimEnd())].join("\n");
};

// deno-lint-ignore no-explicit-any
function message({ role, content, ...rest }: any): string[] {
  switch (role) {
    case "user":
      return [entry("user:", textOf(content))];
    case "custom":
      return [entry(`message ${rest.customType}:`, textOf(content))];
    case "assistant": {
      const lines = (content as Block[]).flatMap((block) => {
        if (block.type === "thinking") return [entry("model thinks:", String(block.thinking))];
        if (block.type === "text") return [entry("model:", String(block.text))];
        return [];
      });
      if (rest.stopReason === "error") lines.push(entry("model failed:", rest.errorMessage ?? ""));
      if (rest.stopReason === "aborted") lines.push("model was aborted");
      return lines;
    }
    default:
      return [];
  }
}

/** Reports something that stays visible until it is removed. Removing what is not there reports nothing. */
function lasting(visible: Set<string>, what: string, shows: boolean, show: () => string): string[] {
  if (shows) {
    visible.add(what);
    return [show()];
  }
  return visible.delete(what) ? [`${what} is gone`] : [];
}

function ui(event: RpcEvent, visible: Set<string>): string[] {
  switch (event.method as string) {
    case "notify":
      return [entry(`notify ${event.notifyType ?? "info"}:`, event.message)];
    case "setStatus": {
      const what = `status ${event.statusKey}`;
      return lasting(visible, what, event.statusText !== undefined, () => entry(`${what}:`, event.statusText));
    }
    case "setWidget": {
      const what = `widget ${event.widgetKey}`;
      const lines = () => event.widgetLines.map((line: string) => `\n  ${line}`.trimEnd()).join("");
      return lasting(visible, what, event.widgetLines !== undefined, () => `${what}:${lines()}`);
    }
    case "setTitle":
      return [entry("title:", event.title)];
    case "set_editor_text":
      return [entry("editor:", event.text)];
    default: {
      const dialog = event.dialog as Dialog | undefined;
      if (!dialog) return [];
      const answer = dialog.answer === undefined
        ? "no answer"
        : dialog.answer === null
        ? "cancelled"
        : JSON.stringify(dialog.answer);
      return [`dialog ${shown(dialog)} -> ${answer}`];
    }
  }
}

export function transcript(events: RpcEvent[]): string {
  const args = new Map<string, unknown>();
  const visible = new Set<string>();
  const lines = events.flatMap((event): string[] => {
    switch (event.type) {
      case "message_end":
        return message(event.message);
      case "tool_execution_start":
        args.set(event.toolCallId, event.args);
        return [];
      case "tool_execution_end": {
        const call = `tool ${event.toolName} ${JSON.stringify(args.get(event.toolCallId) ?? {})}`;
        return [entry(`${call} ${event.isError ? "failed:" : "->"}`, textOf(event.result?.content))];
      }
      case "compaction_end":
        return [event.result ? entry("compacted:", event.result.summary) : "compaction ended without a result"];
      case "extension_warning":
        return [entry(`warning in ${event.event}:`, String(event.message).split("\n")[0])];
      case "extension_error":
        return [entry(`error in ${event.event}:`, String(event.error).split("\n")[0])];
      case "extension_ui_request":
        return ui(event, visible);
      case "test_mark":
        return [`-- ${event.what}`];
      default:
        return [];
    }
  });
  return lines.map((line) => `${line}\n`).join("");
}
