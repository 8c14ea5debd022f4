// The JavaScript half of the bridge, evaluated while the snapshot is made. The
// runtime takes the functions from `globalThis.__pi` when it starts and removes
// the property, before any extension runs.
import * as calls from "ext:js_runtime/bridge/calls.ts";
import { missingEssential } from "ext:js_runtime/bridge/intrinsics-guard.ts";
import { exit, signal } from "ext:js_runtime/bridge/exit.ts";
import {
  abortLogin,
  abortStream,
  answerLogin,
  callSignIn,
  forgetStreams,
  login,
  streamProvider,
} from "ext:js_runtime/bridge/providers.ts";
import { abandon, currentHandler, abortBatch, notify, whenAbandonedSettled } from "ext:js_runtime/bridge/queue.ts";
import { release } from "ext:js_runtime/bridge/release.ts";
import { becomeNode } from "ext:js_runtime/node/globals.ts";
import { markOtherIsolate } from "ext:js_runtime/node/uncaught.ts";

const functions = {
  ...calls,
  missingEssential,
  abandon,
  abortLogin,
  abortStream,
  answerLogin,
  markOtherIsolate,
  callSignIn,
  currentHandler,
  exit,
  forgetStreams,
  abortBatch,
  login,
  notify,
  release,
  signal,
  streamProvider,
  whenAbandonedSettled,
};

Object.defineProperty(globalThis, "__pi", {
  configurable: true,
  enumerable: false,
  get: () => {
    becomeNode();
    return functions;
  },
});
