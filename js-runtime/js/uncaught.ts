// What is thrown in a microtask, a timer or an event listener, and caught by nobody.
// deno_core ends whatever runs then, and V8 forgets the promises that are about to go
// on: calls of other extensions would never be answered. Here it is told, and that is
// all; a worker or a script ends with it, as in Node.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_uncaught } from "ext:core/ops";

const {
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectPrototypeIsPrototypeOf,
  uncurryThis,
} = primordials;
const { ErrorEvent, EventTarget } = core.loadExtScript("ext:deno_web/02_event.js");

const dispatch: (target: unknown, event: Event) => boolean = uncurryThis(
  EventTarget.prototype.dispatchEvent,
);
const errorOf: (event: Event) => unknown = uncurryThis(
  ObjectGetOwnPropertyDescriptor(ErrorEvent.prototype, "error").get,
);

let isGuest = false;

// Every such exception is dispatched here as an event first; `false` says that it is
// dealt with. Listeners of extensions, and of `process`, may have done that.
ObjectDefineProperty(globalThis, "dispatchEvent", {
  configurable: true,
  enumerable: false,
  writable: true,
  value: function dispatchEvent(this: unknown, event: Event): boolean {
    const isOpen = dispatch(this ?? globalThis, event);
    if (isGuest || !isOpen || !ObjectPrototypeIsPrototypeOf(ErrorEvent.prototype, event)) {
      return isOpen;
    }
    op_uncaught(errorOf(event));
    return false;
  },
});

/** This isolate is not that of the extensions. */
export function becomeGuest(): void {
  isGuest = true;
}
