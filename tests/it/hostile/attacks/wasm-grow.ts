// Grows one memory in small steps, so that no call spins.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    const memory = new WebAssembly.Memory({ initial: 1 });
    setInterval(() => {
      const end = memory.buffer.byteLength;
      memory.grow(64);
      new Uint8Array(memory.buffer, end).fill(1);
    }, 1);
  });
