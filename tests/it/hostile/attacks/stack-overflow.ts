// Overflows the stack, also through native code.
export default (pi) => {
  const deeper = () => deeper() + 1;
  const nested = "[".repeat(1e5) + "]".repeat(1e5);
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    try {
      JSON.stringify(JSON.parse(nested));
    } catch {
      // Once more.
    }
    return deeper();
  });
};
