// Reports uncaught exceptions of microtasks, timers and event listeners. deno_core would end
// whatever runs then, and V8 would forget the promises that are about to continue, so that calls of
// other extensions would never settle. In the isolate of extensions such an exception is only
// reported; a worker or a script ends with it, as in Node.
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

/** Whether this is not the isolate of the extensions, but that of a worker or a forked script. */
export let isOtherIsolate = false;

/** The exception of a timer, and the async context of the timer. */
let thrown: { error: unknown; context: unknown } | undefined;

// Called by timers (`snapshot/corrections.rs`) just before they leave their context.
internals.timerThrew = (error: unknown) => {
  thrown = { error, context: getAsyncContext() };
};

// Called for exceptions of system callbacks (`snapshot/corrections`), which have no caller. A
// parser would take the exception for an error of its own.
internals.reportUncaught = (error: unknown) => reportException(error);

/** Runs in the context of the code that threw. */
function reportUncaught(error: unknown): void {
  if (internals.isExit(error)) return;
  op_uncaught(error);
  internals.uncaught?.(error);
}

/** Runs in the context of the code that threw: listeners run in it, too, as in Node. */
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
    if (!isOtherIsolate && (isOpen || internals.isOthers())) reportUncaught(error);
    return isOtherIsolate && isOpen;
  } finally {
    setAsyncContext(before);
  }
}

/** Runs in the context of the promise. The runtime ends at the first rejection that is not prevented. */
function dispatchRejection(target: unknown, event: Event & { type: string }): boolean {
  const isOpen = dispatch(target, event);
  if (isOtherIsolate || event.type !== "unhandledrejection") return isOpen;
  // Listeners of `process` run once only.
  if (!isPrevented(event)) internals.nodeProcessUnhandledRejectionCallback?.(event);
  if (!isPrevented(event) || internals.isOthers()) reportUncaught(reasonOf(event));
  prevent(event);
  return false;
}

// deno_core dispatches every such exception here as an event first; `false` means that it is
// handled. Listeners of extensions, and of `process`, may have handled it.
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

/** Marks an isolate that is not that of the extensions. */
export function markOtherIsolate(): void {
  isOtherIsolate = true;
}
