// Dispatchers of undici, which Node's `fetch` asks to send its requests. Here requests are
// not JavaScript's to send, so that one that sends them elsewhere (a proxy, a mock) or trusts
// others than everybody does is refused: a request must not go past it. What an `Agent` says
// of time limits and of connections that are kept may be left out.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { internals, primordials } from "ext:core/mod.js";

const {
  ArrayPrototypeFind,
  ArrayPrototypeIncludes,
  ObjectGetOwnPropertySymbols,
  ObjectGetPrototypeOf,
  ObjectKeys,
  SymbolFor,
  SymbolPrototypeGetDescription,
  TypeError,
} = primordials;

// https://github.com/nodejs/undici: lib/global.js. undici 8 wraps everybody's for its older
// versions, and has it under another name.
const EVERYBODYS = [SymbolFor("undici.globalDispatcher.2"), SymbolFor("undici.globalDispatcher.1")];
/** What of an `Agent`'s `connect` changes neither who is spoken to nor what is trusted. */
const HARMLESS = [
  "allowH2",
  "autoSelectFamily",
  "autoSelectFamilyAttemptTimeout",
  "keepAlive",
  "keepAliveInitialDelay",
  "maxCachedSessions",
  "noDelay",
  "timeout",
];

const kindOf = (it: any): string => it?.constructor?.name ?? "Agent";

/** What of an `Agent` cannot be left out. */
function special(agent: any): string | undefined {
  // Composed of interceptors, it is a proxy of the `Agent`.
  if (agent.dispatch !== ObjectGetPrototypeOf(agent).dispatch) return "interceptors";
  const options = ArrayPrototypeFind(
    ObjectGetOwnPropertySymbols(agent),
    (symbol: symbol) => SymbolPrototypeGetDescription(symbol) === "options",
  );
  const connect = agent[options]?.connect;
  if (typeof connect === "function") return "connect";
  const name = ArrayPrototypeFind(
    ObjectKeys(connect ?? {}),
    (name: string) => connect[name] != null && !ArrayPrototypeIncludes(HARMLESS, name),
  );
  return name === undefined || (name === "rejectUnauthorized" && connect[name]) ? undefined : `connect.${name}`;
}

/** Why `fetch` cannot do what it is given, if it cannot. */
internals.refusedDispatcher = (given: any): Error | undefined => {
  const everybodys = globalThis[EVERYBODYS[0]] ?? globalThis[EVERYBODYS[1]];
  // An object asks everybody's for it (@google/genai, for time limits).
  const asksEverybodys = !given || kindOf(given) === "Object" || kindOf(given) === "Dispatcher1Wrapper";
  const dispatcher = asksEverybodys ? everybodys : given;
  const kind = kindOf(dispatcher);
  if (dispatcher == null || kind === "EnvHttpProxyAgent") return undefined;
  const what = kind === "Agent" ? special(dispatcher) : "";
  if (what === undefined) return undefined;
  const of = what === "" ? "" : ` (${what})`;
  return new TypeError(
    `The global fetch of pi cannot use the ${kind} of undici${of}: call the fetch that undici exports` +
      (kind === "ProxyAgent" ? ", or set HTTP_PROXY" : ""),
  );
};
