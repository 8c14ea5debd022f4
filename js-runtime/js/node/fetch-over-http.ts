// Sends requests of `fetch` over `node:http` while a mocking library has replaced it
// (@mswjs/interceptors, on which nock is built), because no request may bypass the mock.
// deno-lint-ignore-file
// @ts-ignore: provided by the runtime
import { core, internals } from "ext:core/mod.js";

/** The result of `internals.dispatched` (js/node/undici-dispatcher.ts). */
interface Options {
  origin: string;
  path: string;
  method: string;
  headers: Record<string, string>;
  body: string | Uint8Array | AsyncIterable<Uint8Array> | null;
}

async function send(request: any, body: Options["body"]): Promise<void> {
  if (body !== null && typeof body === "object" && Symbol.asyncIterator in body) {
    for await (const chunk of body) request.write(chunk);
    request.end();
  } else {
    request.end(body ?? undefined);
  }
}

internals.overHttp = {
  dispatch({ origin, path, method, headers, body }: Options, handler: any): boolean {
    const name = origin.startsWith("https:") ? "node:https" : "node:http";
    const { request } = core.createLazyLoader(name)();
    let reply: any;
    const controller = {
      abort: (reason: unknown) => sent.destroy(reason),
      pause: () => reply?.pause(),
      resume: () => reply?.resume(),
    };
    const sent = request(`${origin}${path}`, { method, headers }, (response: any) => {
      reply = response;
      handler.onResponseStart(controller, response.statusCode, response.headersDistinct, response.statusMessage);
      response.on("data", (chunk: Uint8Array) => handler.onResponseData(controller, chunk));
      response.on("end", () => handler.onResponseEnd(controller, {}));
      response.on("error", (error: unknown) => handler.onResponseError(controller, error));
    });
    sent.on("error", (error: unknown) => handler.onResponseError(controller, error));
    handler.onRequestStart(controller, {});
    send(sent, body).catch((error) => sent.destroy(error));
    return true;
  },
};
