// Replaces the Promise constructor by one that creates nothing.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    globalThis.Promise = class {
      constructor() {
        throw new Error("no promises");
      }
    } as any;
  });
