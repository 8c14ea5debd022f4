// Called by another extension's code.
export default (pi) => {
  pi.events.on("poke", () => {
    for (;;);
  });
};
