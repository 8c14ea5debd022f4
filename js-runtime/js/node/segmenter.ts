// Makes `Intl.Segmenter` objects on first use: V8 looks at all of ICU's locales for the first one
// of a process (8 to 18 ms), and many modules make one that most sessions never need. Invalid
// arguments still throw in the constructor.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { primordials } from "ext:core/mod.js";

const {
  ObjectDefineProperty,
  ObjectGetPrototypeOf,
  ObjectPrototype,
  ReflectOwnKeys,
  RegExpPrototypeExec,
  SymbolToStringTag,
} = primordials;

const Eager = Intl.Segmenter;
const { resolvedOptions, segment } = Eager.prototype;
const call = <T>(method: (...args: any[]) => T, self: object, ...args: unknown[]): T =>
  primordials.ReflectApply(method, self, args);

type Options = { granularity?: "grapheme" | "word" | "sentence" };

/** Such a locale is never refused, however little ICU has for it. */
const isLocale = (locales: unknown) =>
  locales === undefined ||
  (typeof locales === "string" && RegExpPrototypeExec(/^[a-z]{2,3}(?:-[A-Z]{2})?$/, locales) !== null);

/** Copies plain options; `undefined` if V8 has to check them. */
function plain(options: unknown): Options | undefined {
  if (options === undefined) return {};
  if (options === null || typeof options !== "object") return undefined;
  const prototype = ObjectGetPrototypeOf(options);
  if (prototype !== ObjectPrototype && prototype !== null) return undefined;
  const keys = ReflectOwnKeys(options);
  if (keys.length === 0) return {};
  if (keys.length > 1 || keys[0] !== "granularity") return undefined;
  const { granularity } = options as Options;
  const isKnown = granularity === "grapheme" || granularity === "word" || granularity === "sentence";
  return isKnown ? { granularity } : undefined;
}

class Segmenter {
  #locales?: string;
  #options?: Options;
  #made?: Intl.Segmenter;

  constructor(...[locales, options]: [locales?: string, options?: Options]) {
    this.#options = isLocale(locales) ? plain(options) : undefined;
    this.#locales = locales;
    if (!this.#options) this.#made = new Eager(locales, options);
  }

  get #segmenter() {
    return (this.#made ??= new Eager(this.#locales, this.#options));
  }

  segment(input: string) {
    return call(segment, this.#segmenter, input);
  }

  resolvedOptions() {
    return call(resolvedOptions, this.#segmenter);
  }

  static supportedLocalesOf = Eager.supportedLocalesOf;
}

ObjectDefineProperty(Segmenter, "supportedLocalesOf", { __proto__: null, enumerable: false });
ObjectDefineProperty(Segmenter.prototype, SymbolToStringTag, {
  __proto__: null,
  value: "Intl.Segmenter",
  configurable: true,
});
ObjectDefineProperty(Intl, "Segmenter", { __proto__: null, value: Segmenter });
