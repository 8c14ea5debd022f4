const never = () => {
  throw new Error("from a getter");
};

export default (pi) => {
  pi.on("context", () => ({ get messages() { return never(); } }));
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") return new Proxy({}, { get: never, ownKeys: never, has: never });
  });
};
