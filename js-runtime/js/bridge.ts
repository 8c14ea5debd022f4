// The JavaScript half of the bridge, evaluated while the snapshot is made. The
// runtime takes the functions from `globalThis.__pi` when it starts and removes
// the property, before any extension runs.
// @ts-ignore: provided by the runtime
import { op_load_ext_script } from "ext:core/ops";
import * as calls from "ext:js_runtime/bridge/calls.ts";
import { missingEssential } from "ext:js_runtime/bridge/essentials.ts";
import { exit } from "ext:js_runtime/bridge/exit.ts";
import {
  abortLogin,
  abortStream,
  answerLogin,
  callSignIn,
  forgetStreams,
  login,
  streamProvider,
} from "ext:js_runtime/bridge/providers.ts";
import { becomeGuest } from "ext:js_runtime/uncaught.ts";

/**
 * deno_core completes its ops when the first of its late scripts is asked for, and takes
 * the whole program down if it is stopped in the midst of that.
 */
function finishOps(): void {
  op_load_ext_script("ext:deno_web/02_timers.js");
}

Object.defineProperty(globalThis, "__pi", {
  configurable: true,
  enumerable: false,
  value: {
    ...calls,
    missingEssential,
    abortLogin,
    abortStream,
    answerLogin,
    becomeGuest,
    callSignIn,
    exit,
    finishOps,
    forgetStreams,
    login,
    streamProvider,
  },
});
