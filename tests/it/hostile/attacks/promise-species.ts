// Replaces the promise constructor through Symbol.species.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Object.defineProperty(Promise, Symbol.species, {
      get() {
        throw new Error("species");
      },
    });
  });
