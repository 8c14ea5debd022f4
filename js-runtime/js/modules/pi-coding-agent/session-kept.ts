// What can still be asked of a session that was disposed of: the last answers.
import { hostSync } from "pi:host.ts";
import type { State } from "pi:pi-coding-agent/agent-session-types.ts";
import type { View } from "pi:pi-coding-agent/session-view.ts";

const KEPT = [
  "state",
  "messages",
  "systemPrompt",
  "scopedModels",
  "activeTools",
  "allTools",
  "queues",
  "thinkingLevels",
  "forkMessages",
  "stats",
  "contextUsage",
  "lastAssistantText",
  "atWork",
];

export function lastAnswers(token: number, ask: (question: string) => unknown, view: View): Map<string, unknown> {
  const kept = new Map<string, unknown>();
  for (const question of KEPT) kept.set(question, ask(question));
  kept.set("state", { ...(kept.get("state") as State), isStreaming: false, isCompacting: false });
  kept.set("context", view.buildSessionContext());
  const [id, since] = [view.getSessionId(), view.getEntries().length];
  kept.set("since", hostSync("second.since", { token, id, since }));
  return kept;
}
