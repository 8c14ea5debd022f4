// `ctx.sessionManager`: the session that is open, to be read.
import { hostSync } from "ext:js_runtime/host.ts";
import { createView } from "pi:pi-coding-agent/session-view.ts";
import { SessionManager } from "pi:pi-coding-agent/session-manager.ts";
import type { Since } from "pi:pi-coding-agent/session-view.ts";

/** The program writes to it, so that what it knows of it stays true. */
const refusals = Object.fromEntries(
  Object.getOwnPropertyNames(SessionManager.prototype)
    .filter((name) => name !== "constructor")
    .map((name) => [
      name,
      () => {
        throw new Error(
          `ctx.sessionManager.${name}() is not supported: the open session is read-only here. ` +
            "Use pi.sendMessage(), pi.appendEntry(), pi.setLabel(), pi.setSessionName(), or " +
            "ctx.newSession({ setup }), whose sessionManager can be written to",
        );
      },
    ]),
);

/** `hostSync` may be that of a visit, see context.ts. */
export function openSession(ask = hostSync) {
  const view = createView(
    (id, since) => ask<Since>("session.since", { id, since }),
    () => ask("session.context"),
  );
  return { ...refusals, ...view };
}
