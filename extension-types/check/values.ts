// Every value that the types declare is exported by the modules of the runtime, and the other way
// round. The modules are typed for the bridge's plain data, so only names are compared here; tests
// cover their behaviour.
import type * as agentTypes from "../index.d.ts";
import type * as coreTypes from "../pi-agent-core.d.ts";
import type * as aiTypes from "../pi-ai.d.ts";
import type * as oauthTypes from "../pi-ai/oauth.d.ts";
import type * as tuiTypes from "../pi-tui.d.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as agent from "pi:pi-coding-agent.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as core from "pi:pi-agent-core.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as ai from "pi:pi-ai.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as oauth from "pi:pi-ai/oauth.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as tui from "pi:pi-tui.ts";

/** Names whose use throws have the type `any`; whether they have types does not matter. */
type Offered<M> = { [K in keyof M as 0 extends 1 & M[K] ? never : K]: true };
interface Compared<M, T> {
  offeredWithoutType: Exclude<keyof Offered<M>, keyof T>;
  typedWithoutValue: Exclude<keyof T, keyof M>;
}

/** Fails to compile unless both lists are empty, and names the differences. */
function equal<_T extends { offeredWithoutType: never; typedWithoutValue: never }>(): void {}
equal<Compared<typeof agent, typeof agentTypes>>();
equal<Compared<typeof core, typeof coreTypes>>();
equal<Compared<typeof ai, typeof aiTypes>>();
equal<Compared<typeof oauth, typeof oauthTypes>>();
equal<Compared<typeof tui, typeof tuiTypes>>();
