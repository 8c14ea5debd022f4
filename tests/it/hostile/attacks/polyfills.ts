// No attack: shims, assertion libraries and instrumentations must keep working.
const { then } = Promise.prototype;
const { stringify } = JSON;
let thens = 0;
let texts = 0;

Promise.prototype.then = function (...args) {
  thens += 1;
  return then.apply(this, args);
};
JSON.stringify = (...args) => {
  texts += 1;
  return (stringify as any)(...args);
};
globalThis.Promise = class extends (Promise as any) {} as any;
(Array.prototype as any).last = function () {
  return this[this.length - 1];
};
Object.defineProperty(Object.prototype, "should", { configurable: true, get: () => "be" });
(Map.prototype as any).getOrInsert ??= function (key, value) {
  if (!this.has(key)) this.set(key, value);
  return this.get(key);
};

export default (pi) =>
  pi.registerCommand("shims", {
    handler: async (args, ctx) => {
      JSON.stringify(await Promise.resolve(1).then((one) => one));
      const works = thens > 0 && texts > 0 && ([1, 2] as any).last() === 2 && ({} as any).should === "be";
      ctx.ui.notify("shims " + works);
    },
  });
