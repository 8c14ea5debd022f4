// Allocates memory that is in neither the heap nor an array buffer.
export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    const all = [];
    for (;;) {
      const memory = new WebAssembly.Memory({ initial: 256 });
      new Uint8Array(memory.buffer).fill(1);
      all.push(memory);
    }
  });
