// `ctx.sessionManager`: the open session, read-only.
import { hostSync } from "ext:js_runtime/bridge/host.ts";
import { createView } from "pi:pi-coding-agent/session-manager/view.ts";
import { SessionManager } from "pi:pi-coding-agent/session-manager/index.ts";
import type { NewEntries } from "pi:pi-coding-agent/session-manager/view.ts";

/**
 * These methods append through the program, so that its view of the session stays complete. They
 * return the entry's id.
 */
const appending = (call: typeof hostSync) => ({
  appendCustomEntry: (customType: string, data?: unknown) => call("pi.appendEntry", { customType, data }),
  appendCustomMessageEntry: (customType: string, content: unknown, display: unknown, details?: unknown) =>
    call("session.appendMessage", { message: { customType, content, display, details } }),
  appendLabelChange: (entryId: string, label?: string) => call("pi.setLabel", { entryId, label }),
  appendSessionInfo: (name: string) => call("pi.setSessionName", { name }),
});

/** The session manager is read-only, because the agent writes to the session as well. */
const refusals = Object.fromEntries(
  Object.getOwnPropertyNames(SessionManager.prototype)
    .filter((name) => name !== "constructor")
    .map((name) => [
      name,
      () => {
        throw new Error(
          `ctx.sessionManager.${name}() is not supported: the open session belongs to the agent. ` +
            "Use pi.sendMessage(), pi.appendEntry(), ctx.navigateTree(), or ctx.newSession({ setup }), " +
            "whose sessionManager can be written to",
        );
      },
    ]),
);

/** `call` belongs to a stale call in a callback that outlives its generation, see context.ts. */
export function openSession(call = hostSync) {
  const view = createView(
    (id, since) => call<NewEntries>("session.since", { id, since }),
    () => call("session.context"),
  );
  return {
    ...refusals,
    ...appending(call),
    ...view,
    // Extensions read this private field of the original.
    get sessionId() {
      return view.getSessionId();
    },
  };
}
