// `node:sea`, for programs that are a single file with Node in it. No script is one here, as with
// Node itself: https://nodejs.org/docs/latest-v24.x/api/single-executable-applications.html
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core } from "ext:core/mod.js";

const { validateString } = core.loadExtScript("ext:deno_node/internal/validators.mjs");

export const isSea = (): boolean => false;

function notAvailable(): Error {
  const error = new Error("Operation cannot be invoked when not in a single-executable application");
  return Object.assign(error, { code: "ERR_NOT_IN_SINGLE_EXECUTABLE_APPLICATION" });
}

export function getAsset(key: string, encoding?: string): never {
  validateString(key, "key");
  if (encoding !== undefined) validateString(encoding, "encoding");
  throw notAvailable();
}

export function getRawAsset(key: string): never {
  validateString(key, "key");
  throw notAvailable();
}

export function getAssetAsBlob(key: string, _options?: object): never {
  validateString(key, "key");
  throw notAvailable();
}

export function getAssetKeys(): never {
  throw notAvailable();
}

export default { isSea, getAsset, getRawAsset, getAssetAsBlob, getAssetKeys };
