// Allocates four gigabytes at once.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    new WebAssembly.Memory({ initial: 65536 });
  });
