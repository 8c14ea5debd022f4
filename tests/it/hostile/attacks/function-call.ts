// The runtime calls its ops with it.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => undefined;
  });
