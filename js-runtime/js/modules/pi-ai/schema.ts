// Schemas of tool parameters, and the arguments of models.
import { type TUnsafe, Type } from "pi:npm/sinclair-typebox/index.js";
import { hostSync } from "pi:host.ts";

interface Tool {
  name: string;
  parameters: unknown;
}

interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
  /** The reason why the model's text is invalid. */
  argumentsError?: string;
}

/** A choice of strings in the form that every provider understands. */
export function StringEnum<T extends readonly string[]>(
  values: T,
  options: { description?: string; default?: T[number] } = {},
): TUnsafe<T[number]> {
  const { description, default: chosen } = options;
  return Type.Unsafe<T[number]>({
    type: "string",
    enum: values,
    ...(description ? { description } : {}),
    ...(chosen ? { default: chosen } : {}),
  });
}

/** Converts arguments to the tool's schema; throws an error that a model understands. */
export function validateToolArguments(tool: Tool, toolCall: ToolCall): Record<string, unknown> {
  if (toolCall.argumentsError) {
    throw new Error(`Invalid arguments for tool "${toolCall.name}", so it did not run. ${toolCall.argumentsError}`);
  }
  return hostSync("tools.validate", {
    name: toolCall.name,
    parameters: tool.parameters,
    arguments: toolCall.arguments,
  });
}

export function validateToolCall(tools: Tool[], toolCall: ToolCall): Record<string, unknown> {
  const tool = tools.find(({ name }) => name === toolCall.name);
  if (!tool) throw new Error(`Tool "${toolCall.name}" not found`);
  return validateToolArguments(tool, toolCall);
}

/** Parses JSON that is still being written; an empty object if there is nothing to parse yet. */
export function parseStreamingJson(partialJson: string | undefined): unknown {
  if (!partialJson?.trim()) return {};
  try {
    return JSON.parse(partialJson);
  } catch {
    return hostSync("ai.parse_partial_json", { text: partialJson }) ?? {};
  }
}

/** Parses the complete text of a call's arguments; `argumentsError` describes invalid ones. */
export function readToolArguments(text: string): { arguments: unknown; argumentsError?: string } {
  return hostSync("ai.read_tool_arguments", { text });
}

/** Parses JSON as models write it: line breaks in strings and stray backslashes are repaired. */
export function parseJsonWithRepair<T = unknown>(json: string): T {
  try {
    return JSON.parse(json);
  } catch (error) {
    const repaired = repair(json);
    if (repaired === json) throw error;
    return JSON.parse(repaired);
  }
}

const CONTROL_ESCAPES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

function repair(json: string): string {
  let repaired = "";
  let inString = false;
  for (let at = 0; at < json.length; at += 1) {
    const sign = json[at];
    if (!inString) {
      inString = sign === '"';
      repaired += sign;
    } else if (sign === '"') {
      inString = false;
      repaired += sign;
    } else if (sign === "\\") {
      const escape = /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.exec(json.slice(at, at + 6));
      repaired += escape ? escape[0] : "\\\\";
      at += escape ? escape[0].length - 1 : 0;
    } else if (sign < " ") {
      repaired += CONTROL_ESCAPES[sign] ?? `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
    } else {
      repaired += sign;
    }
  }
  return repaired;
}
