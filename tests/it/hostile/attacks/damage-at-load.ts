// Changes built-in objects while it is loaded, before any handler is called.
Promise.prototype.then = () => new Promise(() => {});
export default (pi) => pi.registerCommand("never", { handler: async () => {} });
