// Asks before the agent runs a command that is hard to undo. Patterns do not know every way to
// write one: this prevents mistakes and is no protection against a model that means harm.
//
// A `tool_call` handler may block a tool; the `reason` that it returns goes to the model. Without a
// user (`pi -p`), such commands are blocked.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { isToolCallEventType } from "@mariozechner/pi-coding-agent";

const RISKS: [pattern: RegExp, what: string][] = [
  [/\brm\b[^|;&\n]*\s(-\w*[rR]|--recursive\b)/, "deletes folders"],
  [/\bfind\b[^|;&\n]*\s-delete\b/, "deletes files"],
  [/\bgit\s+push\b.*(--force\b|\s-f\b|\s\+\S)/, "rewrites a remote branch"],
  [/\bgit\s+(reset\s+--hard|clean\s+-\w*f|checkout\s+(--\s+)?\.)/, "throws away changes"],
  [/\bsudo\b/, "runs as another user"],
  [/\b(mkfs|dd)\b.*\/dev\//, "writes to a device"],
];

const ONCE = "Run it";
const ALWAYS = "Run it, and do not ask about this command again";
const NEVER = "Do not run it";

export default function (pi: ExtensionAPI) {
  // Lasts until the extension is loaded again: after a reload, and in another session.
  const allowed = new Set<string>();

  pi.on("tool_call", async (event, ctx) => {
    if (!isToolCallEventType("bash", event)) return;
    const { command } = event.input;
    const risk = RISKS.find(([pattern]) => pattern.test(command));
    if (!risk || allowed.has(command)) return;
    const [, what] = risk;
    if (!ctx.hasUI) return { block: true, reason: `This ${what}, and no user can confirm it` };

    const answer = await ctx.ui.select(`This ${what}:\n${command}`, [ONCE, ALWAYS, NEVER]);
    if (answer === ALWAYS) allowed.add(command);
    if (answer === ONCE || answer === ALWAYS) return;
    // `undefined` means that the dialog was cancelled.
    return { block: true, reason: "The user does not want this command to run" };
  });
}
