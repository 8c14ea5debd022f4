// Classes of the original that extensions do not use but patch, by replacing methods of the
// prototype. The program has no such objects, so the replacements are never called.
import { hostSync } from "pi:host.ts";

/**
 * A class whose prototype can be read and changed. The first use of the prototype is reported once,
 * because the patch has no effect; creating an instance throws. `reason` names the alternative.
 */
// deno-lint-ignore no-explicit-any
export function patchedClass(name: string, module: string, reason: string): any {
  const absent = `"${name}" of ${module} is not available in this version of pi: ${reason}`;
  let isReported = false;
  const report = () => {
    if (isReported) return;
    isReported = true;
    const error = `${absent}. Nothing calls the methods of its prototype; the rest of this extension works.`;
    hostSync("report", { event: "load", error: `${new Error(error).stack}`, plain: error, warning: true });
  };
  const { [name]: original } = { [name]: class {} };
  return new Proxy(original, {
    construct() {
      throw new Error(`${absent}.`);
    },
    get(target, key, receiver) {
      // There are no instances, and the check does not use the prototype.
      if (key === Symbol.hasInstance) return () => false;
      if (key === "prototype") report();
      return Reflect.get(target, key, receiver);
    },
  });
}
