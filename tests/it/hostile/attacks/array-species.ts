// Replaces the constructor that `map` and `filter` use.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Object.defineProperty(Array, Symbol.species, {
      get() {
        throw new Error("species");
      },
    });
  });
