// Turns every awaited object into a promise that never settles.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    (Object.prototype as any).then = () => {};
  });
