export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });
