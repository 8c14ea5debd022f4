// `node:test`: a script and a worker run their tests, and write TAP as Node 20 does where
// there is no terminal. In the midst of a session there is nobody who could read that.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { internals } from "ext:core/mod.js";
import { isGuest } from "ext:js_runtime/uncaught.ts";

/** Of `test()` and `describe()` (`snapshot/corrections`). Throws in an extension. */
internals.runsTests = (): boolean => {
  if (isGuest) return true;
  throw new Error(
    'node:test does not run tests in an extension: start them with process.execPath and the path of the script. ' +
      'Tests of the extension itself are x.test.ts beside it, for "pi test"',
  );
};
