// Changes built-in objects in a timer, when another extension was called last.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    setTimeout(() => {
      Promise.prototype.then = () => new Promise(() => {});
    }, 200);
  });
