// Makes every `Map.prototype.get` find nothing.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Map.prototype.get = () => undefined;
  });
