// Classes of the original that extensions do not use but patch: they replace methods of the
// prototype. The program has no such objects, so that nothing calls what they put there.
import { hostSync } from "pi:host.ts";

/**
 * A class whose prototype can be read and changed. The first use of the prototype is reported
 * once, since the patch has no effect; making an instance throws. `reason` says what there is instead.
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
      // There are none, and to ask is no use of the prototype.
      if (key === Symbol.hasInstance) return () => false;
      if (key === "prototype") report();
      return Reflect.get(target, key, receiver);
    },
  });
}
