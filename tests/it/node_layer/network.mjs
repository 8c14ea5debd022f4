// Run by Node and by pi in its place: both print the same answers. Of bodies in encodings
// and of many headers.
import http from "node:http";
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
  // In two parts, of which the first is a byte.
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

for (const [name, answer] of Object.entries(answers)) console.log(name, JSON.stringify(answer, null, 1));
process.exit();
