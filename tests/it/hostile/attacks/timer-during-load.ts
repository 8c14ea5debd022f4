// Spins while another one loads.
export default () => {
  setTimeout(() => {
    for (;;);
  }, 50);
};
