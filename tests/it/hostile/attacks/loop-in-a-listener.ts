// Spins in a listener that another extension's code calls.
export default (pi) => {
  pi.events.on("poke", () => {
    for (;;);
  });
};
