// Changes the queued events for all extensions.
export default (pi) => {
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    (Object.prototype as any).step = "polluted";
  });
  pi.on("agent_start", () => {});
};
