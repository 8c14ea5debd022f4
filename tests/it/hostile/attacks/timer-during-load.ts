// Spins while another extension loads.
export default () => {
  setTimeout(() => {
    for (;;);
  }, 50);
};
