// Run by Node and by pi in its place: both print the same answers. Tests bodies in encodings,
// headers, and dispatchers.
import http from "node:http";
import net from "node:net";
import { Readable } from "node:stream";
import zlib from "node:zlib";

const answers = {};
const listening = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));

const said = "hello ".repeat(5000);
const encoders = {
  gzip: zlib.gzipSync,
  "x-gzip": zlib.gzipSync,
  deflate: zlib.deflateSync,
  raw: zlib.deflateRawSync,
  br: zlib.brotliCompressSync,
};
const server = http.createServer((request, response) => {
  const { searchParams } = new URL(request.url, "http://host");
  const given = searchParams.getAll("as");
  let body = given.reduce((body, name) => encoders[name]?.(body) ?? body, Buffer.from(said));
  if (searchParams.has("cut")) body = body.subarray(0, -4);
  const encoding = given.map((name) => name.replace("raw", "deflate")).join(", ");
  for (let count = Number(searchParams.get("headers")); count > 0; count -= 1) response.setHeader(`x-${count}`, "1");
  response.writeHead(200, { "content-encoding": encoding, date: "now" });
  // The body comes in two parts, the first of which is one byte.
  response.write(body.subarray(0, 1));
  setTimeout(() => response.end(body.subarray(1)), 5);
});
const port = await listening(server);
const ask = (query, init) => fetch(`http://127.0.0.1:${port}/?${query}`, init);
const answer = async (query, init) => {
  try {
    const response = await ask(query, init);
    const text = await response.text();
    return [response.headers.get("content-encoding"), text === said ? "whole" : text.length];
  } catch ({ name, message, cause }) {
    return [name, message, cause?.code];
  }
};
answers.encodings = [];
for (const query of [
  "as=gzip",
  "as=x-gzip",
  "as=deflate",
  "as=raw",
  "as=br",
  "as=gzip&as=br",
  "as=br&as=gzip",
  "as=raw&as=gzip&as=deflate&as=br&as=gzip",
  "as=raw&cut",
  "as=gzip&as=deflate&cut",
  "as=identity",
]) answers.encodings.push([query, await answer(query)]);
answers.encodings.push(await answer("as=deflate", { headers: { "accept-encoding": "deflate" } }));
answers.encodings.push((await (await ask("as=deflate", { method: "HEAD" })).text()).length);

const response = await ask("as=deflate");
const copy = response.clone();
const kinds = new Set();
for await (const chunk of response.body) kinds.add(chunk.constructor.name);
answers.streamed = [[...kinds], (await copy.arrayBuffer()).byteLength];
const given = await ask("as=deflate");
await given.body.cancel();
answers.given = "up";
const abort = new AbortController();
const late = await ask("as=deflate", { signal: abort.signal });
abort.abort();
answers.aborted = await late.text().catch(({ name }) => name);

answers.headers = [
  [...(await ask("headers=400")).headers].length,
  await new Promise((done) =>
    http.get(`http://127.0.0.1:${port}/?headers=400`, (response) => done(Object.keys(response.headers).length))
  ),
];
server.close();
server.closeAllConnections();

// Several members, truncated data, damaged data, and two header lines with encodings.
const two = Buffer.concat([zlib.gzipSync("abc"), zlib.gzipSync("def")]);
const damaged = {
  members: [["gzip"], two],
  cutMember: [["gzip"], two.subarray(0, -4)],
  cut: [["gzip"], zlib.gzipSync("hello ".repeat(1000)).subarray(0, -20)],
  padded: [["gzip"], Buffer.concat([two, Buffer.alloc(10)])],
  empty: [["gzip"], Buffer.alloc(0)],
  upper: [["GZIP"], zlib.gzipSync("upper")],
  lines: [["gzip", "br"], zlib.brotliCompressSync(zlib.gzipSync("lines"))],
  unknownLine: [["gzip", "what"], zlib.gzipSync("lines")],
  cutBrotli: [["br"], zlib.brotliCompressSync("hello ".repeat(1000)).subarray(0, -2)],
  more: [["deflate"], Buffer.concat([zlib.deflateSync("tail"), Buffer.from("junk")])],
};
const heard = [];
const raw = http.createServer((request, response) => {
  const [encodings, body] = damaged[request.url.slice(1)] ?? [[], Buffer.from("no")];
  heard.push(request);
  for (const encoding of encodings) response.appendHeader("content-encoding", encoding);
  response.write(body.subarray(0, 3));
  setTimeout(() => response.end(body.subarray(3)), 3);
});
const place = `http://127.0.0.1:${await listening(raw)}/`;
answers.damaged = [];
for (const name of Object.keys(damaged)) {
  const response = await fetch(place + name);
  answers.damaged.push([name, response.headers.get("content-encoding"), (await response.text()).slice(0, 9)]);
}
const leaves = new AbortController();
const left = await fetch(place + "members", { signal: leaves.signal });
leaves.abort();
answers.damaged.push(await left.text().catch(({ name }) => name));

// Headers that describe the client.
heard.length = 0;
for (
  const init of [
    {},
    { headers: { "Accept-Encoding": "x", "user-agent": "me" } },
    { headers: { range: "bytes=0-1" } },
    { method: "POST", body: "text" },
    { method: "POST" },
    { method: "PUT", body: new URLSearchParams({ a: 1 }) },
    { method: "POST", body: Readable.from(["a", "b"]), duplex: "half" },
  ]
) await (await fetch(place, init)).text();
answers.asked = heard.map(({ headers: { host, connection, ...others } }) =>
  Object.entries(others).map((header) => header.join(": ")).sort()
);
raw.close();
raw.closeAllConnections();

// A dispatcher sends the requests; its handlers are called with the interface of old undici
// versions or new ones.
const bodyText = async (body) => typeof body === "string" || body === null ? body : Buffer.from(await new Response(body).arrayBuffer()).toString();
class Mock {
  constructor(prefersNew) {
    this.isNew = prefersNew;
    this.asked = [];
  }
  dispatch(options, handler) {
    const { origin, path, method, headers, body } = options;
    const isNew = handler.onRequestStart && (this.isNew || !handler.onConnect);
    const controller = { abort: (reason) => isNew ? handler.onResponseError(controller, reason) : handler.onError(reason), pause() {}, resume() {} };
    const fail = (error) => isNew ? handler.onResponseError(controller, error) : handler.onError(error);
    isNew ? handler.onRequestStart(controller, {}) : handler.onConnect(controller.abort);
    (async () => {
      const names = Array.isArray(headers)
        ? headers.filter((_, index) => index % 2 === 0).map(String)
        : Object.keys(headers);
      this.asked.push([origin, path, method, names.map((name) => name.toLowerCase()).sort(), await bodyText(body)]);
      if (path === "/fails") return fail(Object.assign(new Error("mocked away"), { code: "EMOCK" }));
      if (path === "/never") return setTimeout(() => this.gone.abort(), 5);
      const [status, fields, text] = path === "/moved"
        ? [302, { location: "/there" }, ""]
        : path === "/breaks"
        ? [203, {}, "half of it"]
        : [203, { "X-Own": "yes", "set-cookie": ["a=1", "b=2"], "content-encoding": "gzip" }, zlib.gzipSync("mocked")];
      if (isNew) {
        handler.onResponseStart(controller, status, fields, "So");
        handler.onResponseData(controller, Buffer.from(text));
        if (path === "/breaks") return setTimeout(() => fail(new Error("broken off")), 5);
        handler.onResponseEnd(controller, {});
      } else {
        const list = Object.entries(fields).flatMap(([name, values]) => [values].flat().flatMap((value) => [Buffer.from(name), Buffer.from(value)]));
        handler.onHeaders(status, list, () => {}, "So");
        handler.onData(Buffer.from(text));
        if (path === "/breaks") return setTimeout(() => fail(new Error("broken off")), 5);
        handler.onComplete([]);
      }
    })();
    return true;
  }
}
const told = async (url, init) => {
  try {
    const response = await fetch(url, init);
    const { status, statusText, redirected, headers } = response;
    return [status, statusText, redirected, headers.get("x-own"), headers.getSetCookie(), await response.text()];
  } catch ({ name, message, cause }) {
    return [name, message, cause?.message, cause?.code];
  }
};
answers.dispatched = [];
for (const prefersNew of [false, true]) {
  const dispatcher = new Mock(prefersNew);
  const gone = dispatcher.gone = new AbortController();
  answers.dispatched.push([
    await told("http://mock.test/a?b=c", { dispatcher }),
    await told("http://mock.test/moved", { dispatcher }),
    await told("http://mock.test/p", { dispatcher, method: "POST", body: "sent", headers: { "X-A": "1" } }),
    await told("http://mock.test/p", { dispatcher, method: "POST", body: new Blob(["of a blob"]) }),
    await told("http://mock.test/fails", { dispatcher }),
    await told("http://mock.test/breaks", { dispatcher }),
    await told("http://mock.test/never", { dispatcher, signal: gone.signal }),
    dispatcher.asked,
  ]);
}
const everybodys = Symbol.for("undici.globalDispatcher.1");
const before = globalThis[everybodys];
globalThis[everybodys] = new Mock(false);
answers.dispatched.push(await told("http://mock.test/everybody"));
globalThis[everybodys] = before;

// Mocks of connections (nock, msw) also get the requests of `fetch`.
const mocked = http.createServer(async (request, response) => {
  response.end(`${request.method} ${request.headers["x-own"]} ${await bodyText(Readable.toWeb(request))}`);
});
const { port: mockedPort } = await new Promise((done) => mocked.listen(0, "127.0.0.1", () => done(mocked.address())));
const { connect } = net.Socket.prototype;
let connections = 0;
net.Socket.prototype.connect = function (...args) {
  connections += 1;
  return connect.apply(this, args);
};
answers.mocked = [];
for (const init of [{}, { method: "POST", body: "text" }, { method: "POST", body: Readable.from(["a", "b"]), duplex: "half" }]) {
  const response = await fetch(`http://127.0.0.1:${mockedPort}/`, { ...init, headers: { "x-own": "1" } });
  answers.mocked.push([response.status, await response.text(), connections > 0]);
}
net.Socket.prototype.connect = connect;
let attempts = 0;
await new Promise((done) => {
  const socket = net.connect(mockedPort, "localhost", () => socket.destroy());
  socket.on("connectionAttempt", () => attempts += 1).on("close", done);
});
const channel = new BroadcastChannel("x");
answers.mocked.push([attempts > 0, typeof channel.ref(), typeof channel.unref()]);
mocked.close();
mocked.closeAllConnections();

// Invalid requests and responses.
answers.wrong = [];
for (
  const action of [
    () => fetch("nowhere"),
    () => fetch("ftp://a.example/"),
    () => fetch("http://user:word@a.example/"),
    () => fetch("http://127.0.0.1:25/"),
    () => fetch("http://a.example/", { method: "TRACE" }),
    () => fetch("http://a.example/", { body: "x" }),
    () => new Response("x", { status: 204 }),
    () => new Response("x", { status: 99 }),
    async () => {
      const response = new Response("x");
      await response.text();
      await response.text();
    },
  ]
) {
  try {
    await action();
    answers.wrong.push("nothing");
  } catch ({ name, message, cause }) {
    answers.wrong.push([name, message, cause?.message, cause?.code]);
  }
}

for (const [name, answer] of Object.entries(answers)) console.log(name, JSON.stringify(answer, null, 1));
process.exit();
