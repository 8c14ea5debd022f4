// Guards the functions of Node's API that make sockets, terminals and children from the number of a
// file descriptor. Every API that takes such a number ends in one of these functions, and they
// refuse the program's own descriptors (ext/src/node/fd/ownership.rs).
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals, primordials } from "ext:core/mod.js";
import {
  op_descriptor_drop,
  op_descriptor_give,
  op_descriptor_to_copy,
  op_descriptor_to_take,
  op_tty_check_fd_permission,
  // @ts-ignore: provided by the runtime
} from "ext:core/ops";

const {
  ArrayPrototypeMap,
  ObjectCreate,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ObjectPrototypeIsPrototypeOf,
  Proxy,
  ReflectApply,
  ReflectConstruct,
} = primordials;

const { Pipe } = core.loadExtScript("ext:deno_node/internal_binding/pipe_wrap.ts");
const { TCP } = core.loadExtScript("ext:deno_node/internal_binding/tcp_wrap.ts");
const { UDP } = core.loadExtScript("ext:deno_node/internal_binding/udp_wrap.ts");

/** The error number is libuv's. */
const EBADF = -9;

/**
 * Replaces `open` of a handle, which returns an error number, for good: otherwise deno_core would
 * put its own back when the first module is read as text.
 */
function guardOpen(prototype: any, user: string): void {
  const { open } = prototype;
  const guarded = function (this: object, descriptor: number): number {
    let taken: number;
    try {
      taken = op_descriptor_to_take(descriptor, user);
    } catch {
      return EBADF;
    }
    const status = ReflectApply(open, this, [taken]);
    if (status !== 0 && taken !== descriptor) op_descriptor_drop(taken);
    return status;
  };
  ObjectDefineProperty(prototype, "open", { __proto__: null, value: guarded, configurable: false, writable: false });
}

guardOpen(Pipe.prototype, "a socket");
guardOpen(TCP.prototype, "a socket");
guardOpen(UDP.prototype, "a UDP socket");

/** The descriptor of a connected pipe: children may get a copy. */
const numberOfPipe = ObjectGetOwnPropertyDescriptor(Pipe.prototype, "fd");
ObjectDefineProperty(Pipe.prototype, "fd", {
  ...numberOfPipe,
  __proto__: null,
  get(this: object): number {
    const descriptor = ReflectApply(numberOfPipe.get, this, []);
    if (descriptor >= 0) op_descriptor_give(descriptor, true);
    return descriptor;
  },
});

/** A copy of the descriptor of a handle, which is sent to another process and closed. */
const copies = [Pipe, TCP, UDP].map(({ prototype }) => ({ prototype, copy: prototype.fdForIpc }));

/** `handle` may be anything. */
internals.descriptorToSend = (handle: unknown): number => {
  for (const { prototype, copy } of copies) {
    if (ObjectPrototypeIsPrototypeOf(prototype, handle)) return ReflectApply(copy, handle, []);
  }
  return -1;
};

/** A handle is made of a descriptor that another process has sent. */
internals.descriptorReceived = (descriptor: unknown): void => {
  if (typeof descriptor === "number") op_descriptor_give(descriptor, false);
};

/** Guards the class of `process.binding("tty_wrap")`, which ends the process for a negative number. */
internals.guardedTerminal = (TTY: any): any => {
  const { isTTY } = TTY;
  const guarded: any = new Proxy(TTY, {
    __proto__: null,
    construct(target: any, args: any[], newTarget: any) {
      const descriptor = args[0] | 0;
      op_tty_check_fd_permission(descriptor);
      return ReflectConstruct(target, [descriptor, args[1]], newTarget);
    },
  });
  TTY.isTTY = (descriptor: number): boolean => (descriptor | 0) >= 0 && isTTY(descriptor | 0);
  ObjectDefineProperty(TTY.prototype, "constructor", { __proto__: null, value: guarded });
  return guarded;
};

type Stream = string | number;
type Child = { rid: number; [stream: string]: unknown };

const copied = (stream: Stream): Stream =>
  typeof stream === "number" ? op_descriptor_to_copy(stream, "a child process") : stream;

const STREAMS = ["stdin", "stdout", "stderr"];

/**
 * Returns the arguments of a child process with copies of the descriptors for its streams. The
 * program's own input (0) is passed on as it is.
 */
function withOwnStreams(options: any): any {
  const args = { ...options, __proto__: null };
  for (const name of STREAMS) {
    if (!(name === "stdin" && args.stdin === 0)) args[name] = copied(args[name]);
  }
  if (args.extraStdio) args.extraStdio = ArrayPrototypeMap(args.extraStdio, copied);
  return args;
}

const NUMBERS = ["stdinFd", "stdoutFd", "stderrFd"];

/**
 * Whether the program terminates children. This needs to know which extension started them
 * (src/base/process_tree.rs).
 */
const endsChildren = (): boolean => core.build.os === "linux";

/**
 * Wraps the operations that start children. The program terminates children of a dropped isolate,
 * with their descendants: `unref` affects only the event loop, and Deno kills none.
 */
internals.operationsOfChildren = (ops: any): any => {
  const { op_spawn_child_ref, op_spawn_child_unref } = ops;
  const guarded = ObjectCreate(ops);
  const started = (child: Child): Child => {
    if (endsChildren()) op_spawn_child_unref(child.rid);
    return child;
  };
  guarded.op_spawn_child = (args: any, api: string) => started(ops.op_spawn_child(withOwnStreams(args), api));
  guarded.op_node_spawn_child = (args: any, api: string) => {
    const child = started(ops.op_node_spawn_child(withOwnStreams(args), api));
    for (const name of NUMBERS) internals.descriptorReceived(child[name]);
    ArrayPrototypeMap(child.extraPipeFds, internals.descriptorReceived);
    return child;
  };
  guarded.op_spawn_sync = (args: any) => ops.op_spawn_sync(withOwnStreams(args));
  guarded.op_run = (args: any) => ops.op_run(withOwnStreams(args));
  guarded.op_spawn_child_ref = (rid: number) => endsChildren() || op_spawn_child_ref(rid);
  guarded.op_spawn_child_unref = (rid: number) => endsChildren() || op_spawn_child_unref(rid);
  return guarded;
};
