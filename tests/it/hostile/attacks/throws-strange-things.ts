// Throws values that are no errors and that cannot be converted to text.
const strange = [
  undefined,
  null,
  Symbol("strange"),
  { get message() { throw this; }, toString() { throw this; } },
  new Proxy(new Error("x"), { get() { throw new Error("inner"); } }),
  Object.assign(new Error("own stack"), { stack: { toString: null } }),
];

export default (pi) => {
  for (const thing of strange) {
    pi.on("before_agent_start", (event) => {
      if (event.prompt === "attack") throw thing;
    });
  }
};
