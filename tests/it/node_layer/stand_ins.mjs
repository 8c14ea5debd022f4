// Run by Node and by pi in its place: both print the same answers. What pi loads when it
// is used (js-runtime/js/node/lazy-node.ts, segmenter.ts) is what it stands for.
import crypto, { createCipheriv, createDecipheriv, createHash, createHmac, KeyObject, X509Certificate } from "node:crypto";
import fs, { createReadStream, ReadStream, WriteStream } from "node:fs";
import { createRequire } from "node:module";
import { inspect, promisify } from "node:util";

const require = createRequire(import.meta.url);
const here = new URL(import.meta.url).pathname;
const answers = {};
const failure = (action) => {
  try {
    return ["no error", String(action())];
  } catch ({ name, code, message }) {
    return { name, code, message };
  }
};

const stream = createReadStream(here);
stream.destroy();
answers.stream = [stream instanceof ReadStream, stream.constructor === fs.ReadStream, stream.constructor.name];
answers.same = [
  fs.ReadStream === ReadStream,
  require("fs").WriteStream === WriteStream,
  require("crypto").createHash === createHash,
  fs.createReadStream === createReadStream,
];
answers.looks = [ReadStream, createReadStream, createHash].map((one) => [one.name, one.length, inspect(one)]);
answers.kinds = Object.keys(crypto).filter((name) => typeof crypto[name] !== "function").sort();

answers.withoutNew = ReadStream(here).destroy() instanceof ReadStream;
class Mine extends ReadStream {
  mine = 1;
}
let bytes = 0;
const mine = new Mine(here);
for await (const piece of mine) bytes += piece.length;
answers.mine = [mine.mine, mine instanceof Mine, mine instanceof ReadStream, bytes === fs.statSync(here).size];
function Old(path) {
  ReadStream.call(this, path);
}
Object.setPrototypeOf(Old.prototype, ReadStream.prototype);
Object.setPrototypeOf(Old, ReadStream);
const old = new Old(here);
answers.old = [old instanceof ReadStream, await new Promise((done) => old.once("data", (data) => done(data.length > 9)))];
old.destroy();
const descriptor = Object.getOwnPropertyDescriptor(KeyObject, "prototype");
const { length } = Object.getOwnPropertyDescriptors(crypto.pbkdf2);
answers.prototype = [length, descriptor.writable, descriptor.value === KeyObject.prototype];

const key = Buffer.alloc(32, 1);
const cipher = createCipheriv("aes-256-cbc", key, Buffer.alloc(16, 2));
const secret = cipher.update("hello", "utf8", "hex") + cipher.final("hex");
const decipher = createDecipheriv("aes-256-cbc", key, Buffer.alloc(16, 2));
const { publicKey, privateKey } = crypto.generateKeyPairSync("ed25519");
const signature = crypto.sign(null, Buffer.from("m"), privateKey);
answers.crypto = [
  createHash("sha256").update("a").digest("hex"),
  createHash("md5") instanceof crypto.Hash,
  createHmac("sha256", "k").update("x").digest("base64"),
  (await promisify(crypto.randomBytes)(8)).length,
  (await promisify(crypto.scrypt)("p", "s", 16)).toString("hex"),
  Object.keys(await promisify(crypto.generateKeyPair)("ed25519")),
  secret,
  decipher.update(secret, "hex", "utf8") + decipher.final("utf8"),
  [publicKey instanceof KeyObject, publicKey.type, crypto.verify(null, Buffer.from("m"), publicKey, signature)],
  crypto.createECDH("secp256k1").generateKeys("hex").length,
  crypto.createDiffieHellmanGroup("modp14").getPrime().length,
  typeof new crypto.Certificate().verifySpkac,
  failure(() => createHash(5)),
  failure(() => new X509Certificate("x")).name,
];
const hash = createHash("sha1");
await new Promise((done) => createReadStream(here).pipe(hash).on("finish", done));
answers.piped = hash.digest().equals(createHash("sha1").update(fs.readFileSync(here)).digest());

const { Segmenter } = Intl;
answers.segments = [
  Array.from(new Segmenter("en", { granularity: "word" }).segment("a b"), ({ segment }) => segment),
  new Segmenter().segment("abc").containing(1),
  new Segmenter("de-DE").resolvedOptions(),
  [String(new Segmenter()), Segmenter.name, Segmenter.length, Object.keys(Segmenter)],
  Segmenter.supportedLocalesOf(["de", "xx"]),
  new (class extends Segmenter {})() instanceof Segmenter,
  ["not a locale", "x", null].map((locale) => failure(() => new Segmenter(locale)).name),
  [{ granularity: "x" }, null, { localeMatcher: "x" }].map((options) => failure(() => new Segmenter("en", options))),
  failure(() => Segmenter()).name,
];

fs.ReadStream = class Patched {};
answers.patched = fs.ReadStream.name;

console.log(JSON.stringify(answers, null, 1));
