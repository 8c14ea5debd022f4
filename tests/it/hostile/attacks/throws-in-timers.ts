// Throws values without a stack after other extensions have been called.
import { EventEmitter } from "node:events";

const fail = (way: string) => () => {
  throw `from ${way}`;
};

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    setTimeout(fail("a timeout"), 100);
    const interval = setInterval(() => {
      clearInterval(interval);
      fail("an interval")();
    }, 100);
    setTimeout(() => setImmediate(fail("an immediate")), 100);
    setTimeout(() => queueMicrotask(fail("a microtask")), 100);
    setTimeout(() => process.nextTick(fail("a tick")), 100);
    setTimeout(() => void Promise.resolve().then(fail("a promise")), 150);
    setTimeout(() => new EventEmitter().on("x", fail("an emitter")).emit("x"), 100);
    setTimeout(() => {
      const target = new EventTarget();
      target.addEventListener("x", fail("a target"));
      target.dispatchEvent(new Event("x"));
    }, 100);
    setTimeout(() => {
      throw undefined;
    }, 200);
  });
