// Not while it is called, but when another one is the last that was.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    setTimeout(() => {
      Promise.prototype.then = () => new Promise(() => {});
    }, 200);
  });
