// Whoever makes a promise gets nothing.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    globalThis.Promise = class {
      constructor() {
        throw new Error("no promises");
      }
    };
  });
