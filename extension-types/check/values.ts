// Every value that the types promise exists in the modules of the runtime, and no
// module offers a value that the types leave out. The modules are written for the
// bridge's plain data; only names and kinds are compared here.
import type * as agentTypes from "../index.d.ts";
import type * as aiTypes from "../pi-ai.d.ts";
import type * as tuiTypes from "../pi-tui.d.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as agent from "pi:pi-coding-agent.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as ai from "pi:pi-ai.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as tui from "pi:pi-tui.ts";

/** Names whose use throws have the type `any`. */
type Offered<M> = { [K in keyof M as 0 extends 1 & M[K] ? never : K]: true };
type Same<A, B> = [Exclude<keyof A, keyof B>, Exclude<keyof B, keyof A>];

// Types, not values, have names of their own: a failing line shows what differs.
const agentDiffers: Same<Offered<typeof agent>, typeof agentTypes> = [] as never;
const aiDiffers: Same<Offered<typeof ai>, typeof aiTypes> = [] as never;
const tuiDiffers: Same<Offered<typeof tui>, typeof tuiTypes> = [] as never;

/** Fails to compile unless both lists are empty. */
function equal<T extends [never, never]>(_differs: T): void {}
equal(agentDiffers);
equal(aiDiffers);
equal(tuiDiffers);
