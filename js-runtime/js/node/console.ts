// Prints as Node's console does: Deno's formats objects differently, and users compare, and
// programs parse, the output. The console is made when something is first printed.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
// @ts-ignore: provided by the runtime
import { windowOrWorkerGlobalScope } from "ext:runtime/98_global_scope_shared.js";

const { ArrayPrototypeForEach, ArrayPrototypeUnshift, ErrorCaptureStackTrace, ObjectKeys, ReflectApply } = primordials;
const { Console } = core.loadExtScript("ext:deno_node/internal/console/constructor.mjs");
const { formatWithOptions } = core.loadExtScript("ext:deno_node/internal/util/inspect.mjs");
const { getStderrNoColor, getStdoutNoColor } = core.loadExtScript("ext:deno_web/01_console.js");

type Write = (text: string, isError: boolean) => void;
type Method = (...args: unknown[]) => void;

/** The members of a stream that Node's console uses. */
const streamOf = (isError: boolean, write: Write) => ({
  get isTTY(): boolean {
    return !(isError ? getStderrNoColor() : getStdoutNoColor());
  },
  write: (text: string) => write(text, isError),
  listenerCount: () => 0,
  once() {},
  removeListener() {},
});

/** The methods of a console. None of them needs the object as `this`. */
function consoleOf(write: Write): Record<string, Method> {
  let made: any;
  const node = () =>
    made ??= new Console({ stdout: streamOf(false, write), stderr: streamOf(true, write) });
  const methods: Record<string, Method> = {};
  ArrayPrototypeForEach(ObjectKeys(Console.prototype), (name: string) => {
    methods[name] = (...args) => ReflectApply(node()[name], made, args);
  });
  // Deno's `assert` turns its arguments into text before formatting them.
  methods.assert = (holds, ...args) => {
    if (holds) return;
    if (typeof args[0] === "string") args[0] = `Assertion failed: ${args[0]}`;
    else ArrayPrototypeUnshift(args, "Assertion failed");
    ReflectApply(node().warn, made, args);
  };
  // The stack begins with the caller.
  methods.trace = function trace(...args) {
    const error: any = { name: "Trace", message: formatWithOptions({}, ...args) };
    ErrorCaptureStackTrace(error, trace);
    node().error(error.stack);
  };
  return methods;
}

internals.consoleOf = consoleOf;

const { value } = windowOrWorkerGlobalScope.console;
const methods = consoleOf((text, isError) => core.print(text, isError));
ArrayPrototypeForEach(ObjectKeys(methods), (name: string) => {
  value[name] = methods[name];
});
// The member held the state of Deno's console.
delete value.indentLevel;
