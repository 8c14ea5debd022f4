// Whatever is sent to the program is this.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Object.defineProperty(Object.prototype, "toJSON", { value: () => "polluted" });
  });
