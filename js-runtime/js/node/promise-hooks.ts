// Makes `v8.promiseHooks` cover contexts of `node:vm`, including those that are made later
// (`snapshot/corrections.rs`). V8 has hooks per context.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_promise_hooks } from "ext:core/ops";

type Hook = (promise: Promise<unknown>, parent?: Promise<unknown>) => void;

/** Returns an object created in the context of `contextified`. */
type Evaluate = (contextified: object) => object;

let hooks: Hook[] | undefined;
let evaluate: Evaluate;
/** Objects that `node:vm` made a context of. */
let contexts: WeakRef<object>[] = [];
let sweepAt = 64;

const living = (reference: WeakRef<object>) => primordials.WeakRefPrototypeDeref(reference);
const setIn = (object: object) => op_promise_hooks(evaluate(object), ...hooks!);

internals.promiseHooks = (...added: Hook[]): void => {
  hooks = added;
  core.setPromiseHooks(...added);
  for (let index = 0; index < contexts.length; index += 1) {
    const object = living(contexts[index]);
    if (object) setIn(object);
  }
};

internals.contextMade = (object: object, how: Evaluate): void => {
  evaluate = how;
  if (hooks) return void setIn(object);
  if (contexts.length >= sweepAt) {
    contexts = primordials.ArrayPrototypeFilter(contexts, living);
    sweepAt = 64 + 2 * contexts.length;
  }
  contexts[contexts.length] = new primordials.SafeWeakRef(object);
};
