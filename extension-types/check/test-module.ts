// The module of `pi test` exports all values that its types declare. Checked separately, because it
// may use Node's types and modules of the snapshot may not.
import type * as types from "../test.d.ts";
// @ts-ignore: resolved by the paths of check.mjs
import type * as offered from "pi:pi-coding-agent/test.ts";

type Same<A, B> = [Exclude<keyof A, keyof B>, Exclude<keyof B, keyof A>];
const differs: Same<typeof offered, typeof types> = [] as never;
function equal<T extends [never, never]>(_differs: T): void {}
equal(differs);

// The module for tests matches its types.
export const test: typeof types.test = {} as typeof offered.test;
export const call: typeof types.call = {} as typeof offered.call;
export const fail: typeof types.fail = {} as typeof offered.fail;
export const say: typeof types.say = {} as typeof offered.say;
export const think: typeof types.think = {} as typeof offered.think;
