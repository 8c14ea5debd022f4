// What is thrown in a microtask, a timer or an event listener, and caught by nobody.
// deno_core ends whatever runs then, and V8 forgets the promises that are about to go
// on: calls of other extensions would never be answered. Here it is told, and that is
// all; a worker or a script ends with it, as in Node.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { op_uncaught } from "ext:core/ops";

const {
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectPrototypeIsPrototypeOf,
  uncurryThis,
} = primordials;
const { getAsyncContext, setAsyncContext } = core;
const { ErrorEvent, Event, EventTarget, PromiseRejectionEvent, reportException } = core.loadExtScript(
  "ext:deno_web/02_event.js",
);

const dispatch: (target: unknown, event: Event) => boolean = uncurryThis(
  EventTarget.prototype.dispatchEvent,
);
const errorOf: (event: Event) => unknown = uncurryThis(
  ObjectGetOwnPropertyDescriptor(ErrorEvent.prototype, "error").get,
);

const reasonOf: (event: Event) => unknown = uncurryThis(
  ObjectGetOwnPropertyDescriptor(PromiseRejectionEvent.prototype, "reason").get,
);
const isPrevented: (event: Event) => boolean = uncurryThis(
  ObjectGetOwnPropertyDescriptor(Event.prototype, "defaultPrevented").get,
);
const prevent: (event: Event) => void = uncurryThis(Event.prototype.preventDefault);

export let isGuest = false;

/** What a timer threw, and the context of the timer. */
let thrown: { error: unknown; context: unknown } | undefined;

// Of timers (`snapshot/corrections.rs`), at once before they leave their context.
internals.thrown = (error: unknown) => {
  thrown = { error, context: getAsyncContext() };
};

// Of what the system calls back (`snapshot/corrections`): there is nobody above it who
// would hear of it, and a parser takes it for an error of its own.
internals.unheard = (error: unknown) => reportException(error);

/** In its context. */
function tell(error: unknown): void {
  if (internals.isExit(error)) return;
  op_uncaught(error);
  internals.uncaught?.(error);
}

/** In the context of whoever threw: listeners run in it, too, as in Node. */
function dispatchError(target: unknown, event: Event): boolean {
  const error = errorOf(event);
  const { context } = thrown !== undefined && thrown.error === error
    ? thrown
    : { context: getAsyncContext() };
  thrown = undefined;
  const before = getAsyncContext();
  setAsyncContext(context);
  try {
    const isOpen = dispatch(target, event);
    if (!isGuest && (isOpen || internals.isOthers())) tell(error);
    return isGuest && isOpen;
  } finally {
    setAsyncContext(before);
  }
}

/** In the context of the promise. The runtime ends at the first that nobody prevents. */
function dispatchRejection(target: unknown, event: Event & { type: string }): boolean {
  const isOpen = dispatch(target, event);
  if (isGuest || event.type !== "unhandledrejection") return isOpen;
  // Listeners of `process`; they are not asked again.
  if (!isPrevented(event)) internals.nodeProcessUnhandledRejectionCallback?.(event);
  if (!isPrevented(event) || internals.isOthers()) tell(reasonOf(event));
  prevent(event);
  return false;
}

// Every such exception is dispatched here as an event first; `false` says that it is
// dealt with. Listeners of extensions, and of `process`, may have done that.
ObjectDefineProperty(globalThis, "dispatchEvent", {
  configurable: true,
  enumerable: false,
  writable: true,
  value: function dispatchEvent(this: unknown, event: Event): boolean {
    const target = this ?? globalThis;
    if (ObjectPrototypeIsPrototypeOf(ErrorEvent.prototype, event)) {
      return dispatchError(target, event);
    }
    if (ObjectPrototypeIsPrototypeOf(PromiseRejectionEvent.prototype, event)) {
      return dispatchRejection(target, event);
    }
    return dispatch(target, event);
  },
});

/** This isolate is not that of the extensions. */
export function becomeGuest(): void {
  isGuest = true;
}
