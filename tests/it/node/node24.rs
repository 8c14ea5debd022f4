//! Parts of Node's API that are newer than the Node versions of `parity.rs`: the expected results
//! are those of Node 24.

use crate::support::{prompt, with_extension};

async fn answers(body: &str, answer: &str) {
    let (_server, _home, mut rpc) = with_extension(&format!(
        "export default (pi) => pi.registerCommand(\"go\", {{ handler: async (_args, ctx) => {{
           const answer = await (async () => {{ {body} }})();
           ctx.ui.notify(String(answer));
         }} }});"
    ))
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified(answer).await;
}

#[tokio::test]
async fn matches_glob_depends_on_the_kind_of_path() {
    answers(
        r#"const posix = await import("node:path/posix");
        const { matchesGlob } = await import("node:path/win32");
        return [posix.matchesGlob("/a/b", "/a/*"), matchesGlob("a\\b", "a/*"), matchesGlob("a\\b\\c", "a/*")].join();"#,
        "true,true,false",
    )
    .await;
}

#[tokio::test]
async fn url_patterns_are_those_of_the_web() {
    answers(
        r#"const { URLPattern } = await import("node:url");
        const { pathname } = new URLPattern({ pathname: "/:kind/*" }).exec("https://a.example/b/c");
        return [URLPattern === globalThis.URLPattern, pathname.groups.kind].join();"#,
        "true,b",
    )
    .await;
}

/// Programs that may be bundled into one file ask at their start.
#[tokio::test]
async fn no_script_is_a_single_executable() {
    answers(
        r#"const sea = await import("node:sea");
        const { builtinModules, createRequire, isBuiltin } = await import("node:module");
        const refused = (action) => { try { action(); } catch ({ code }) { return code; } };
        return [
            sea.isSea(), createRequire(import.meta.url)("node:sea").isSea(), refused(() => sea.getAsset("x")),
            refused(() => sea.getAsset(1)), isBuiltin("node:sea"), isBuiltin("sea"), builtinModules.includes("node:sea"),
        ].join();"#,
        "false,false,ERR_NOT_IN_SINGLE_EXECUTABLE_APPLICATION,ERR_INVALID_ARG_TYPE,true,false,true",
    )
    .await;
}

/// The package `sqlite` resolved to Node's module of that name.
#[tokio::test]
async fn packages_may_have_names_of_node_only_modules() {
    answers(
        r#"const { mkdirSync, writeFileSync } = await import("node:fs");
        const { createRequire } = await import("node:module");
        mkdirSync("node_modules/sqlite", { recursive: true });
        writeFileSync("node_modules/sqlite/package.json", '{"type": "module", "exports": {"import": "./esm.js", "require": "./own.cjs"}}');
        writeFileSync("node_modules/sqlite/own.cjs", "exports.own = 'required';");
        writeFileSync("node_modules/sqlite/esm.js", "export const own = 'imported';");
        writeFileSync("uses.mjs", "export { own } from 'sqlite';");
        const { own } = createRequire(`${process.cwd()}/x.js`)("sqlite");
        return [own, (await import(`${process.cwd()}/uses.mjs`)).own, typeof (await import("node:sqlite")).DatabaseSync].join();"#,
        "required,imported,function",
    )
    .await;
}

/// `import "tsx"` registers such hooks, and JSON was then compiled as JavaScript.
#[tokio::test]
async fn json_is_data_despite_module_hooks() {
    answers(
        r#"const { writeFileSync } = await import("node:fs");
        const { createRequire, registerHooks } = await import("node:module");
        const require = createRequire(`${process.cwd()}/x.js`);
        const seen = [];
        const hooks = registerHooks({
            load(url, context, next) {
                const loaded = next(url, context);
                seen.push(`${url.split("/").pop()} ${context.format} ${loaded.format}`);
                return loaded;
            },
        });
        try {
            writeFileSync("data.json", '{"kept": "data"}');
            writeFileSync("code.cjs", "module.exports = require('./data.json').kept + '!';");
            writeFileSync("own.text", "text");
            require.extensions[".text"] = (module) => { module.exports = "a text"; };
            return [require("./data.json").kept, require("./code.cjs"), require("./own.text"), ...seen].join();
        } finally {
            hooks.deregister();
            delete require.extensions[".text"];
        }"#,
        "data,data!,a text,data.json json json,code.cjs commonjs commonjs",
    )
    .await;
}

#[tokio::test]
async fn zstd_bodies_are_decoded_and_broken_ones_are_errors() {
    answers(
        r#"const { createServer } = await import("node:http");
        const { gzipSync, zstdCompressSync } = await import("node:zlib");
        const server = createServer((request, response) => {
            const text = request.url === "/" ? zstdCompressSync(gzipSync("hello")) : "no such thing";
            const encoding = request.url === "/" ? "gzip, zstd" : request.url.slice(1);
            response.writeHead(200, { "content-encoding": encoding }).end(text);
        });
        await new Promise((done) => server.listen(0, "127.0.0.1", done));
        const ask = (path) => fetch(`http://127.0.0.1:${server.address().port}${path}`).then((response) => response.text());
        const told = [await ask("/")];
        for (const encoding of ["zstd", "deflate", "gzip", "br"]) {
            told.push(await ask(`/${encoding}`).catch(({ name, message }) => `${name} ${message}`));
        }
        server.close();
        return told.join();"#,
        "hello,TypeError terminated,TypeError terminated,TypeError terminated,TypeError terminated",
    )
    .await;
}

/// Truncated data ended without an error, and errors had no code.
#[tokio::test]
async fn truncated_or_broken_zstd_data_are_errors() {
    answers(
        r#"const zlib = await import("node:zlib");
        const { promisify } = await import("node:util");
        const { pipeline } = await import("node:stream/promises");
        const { Readable } = await import("node:stream");
        const packed = zlib.zstdCompressSync("hello ".repeat(100));
        const told = async (action) => {
            try { return String((await action()).length); } catch ({ code, errno, message }) { return `${code} ${errno} ${message}`; }
        };
        const streamed = (...chunks) => pipeline(Readable.from(chunks), zlib.createZstdDecompress(), async (all) => Buffer.concat(await all.toArray()));
        const cut = packed.subarray(0, -3);
        return (await Promise.all([
            () => zlib.zstdDecompressSync(packed),
            () => zlib.zstdDecompressSync(packed, { chunkSize: 64 }),
            () => zlib.zstdDecompressSync(Buffer.concat([packed, packed])),
            () => streamed(packed.subarray(0, 5), packed.subarray(5)),
            () => streamed(packed, packed),
            () => zlib.zstdDecompressSync(cut),
            () => promisify(zlib.zstdDecompress)(cut),
            () => streamed(cut),
            () => zlib.zstdDecompressSync(Buffer.alloc(0)),
            () => zlib.zstdDecompressSync(cut, { finishFlush: zlib.constants.ZSTD_e_flush }),
            () => zlib.zstdDecompressSync(Buffer.from("garbage!!")),
        ].map(told))).join();"#,
        "600,600,600,600,1200,Z_BUF_ERROR -5 unexpected end of file,\
         Z_BUF_ERROR -5 unexpected end of file,Z_BUF_ERROR -5 unexpected end of file,\
         Z_BUF_ERROR -5 unexpected end of file,0,ZSTD_error_prefix_unknown 10 Unknown frame descriptor",
    )
    .await;
}

/// Packages took another code path, because `Deno`, `self` and `Window` existed.
#[tokio::test]
async fn globals_are_those_of_node() {
    answers(
        r#"const { Worker } = await import("node:worker_threads");
        const { execFileSync } = await import("node:child_process");
        const names = ["Deno", "self", "window", "Window", "location", "caches", "close", "name", "GPU", "EventSource", "addEventListener"];
        const look = `[${JSON.stringify(names)}.filter((name) => globalThis[name] !== undefined), typeof process.versions.deno,
            navigator.userAgent.split("/")[0], String(globalThis), globalThis.constructor === Object,
            Object.keys(globalThis).filter((name) => /^[A-Z]|process/.test(name))].join("|")`;
        const worker = new Worker(`require("node:worker_threads").parentPort.postMessage([typeof globalThis.Deno, typeof process.versions.deno].join())`, { eval: true });
        const ofWorker = await new Promise((done) => worker.once("message", done));
        const ofScript = execFileSync(process.execPath, ["-p", look], { encoding: "utf8" }).trim();
        const own = (0, eval)(look);
        return [own, ofScript === own, ofWorker].join();"#,
        "|undefined|Node.js|[object global]|true|,true,undefined,undefined",
    )
    .await;
}

/// openai and @anthropic-ai/sdk reported another runtime to their servers, and @prisma/client
/// refused it.
#[tokio::test]
async fn the_name_deno_is_not_visible() {
    answers(
        r#"const { mkdirSync, writeFileSync } = await import("node:fs");
        const { createRequire } = await import("node:module");
        const require = createRequire(`${process.cwd()}/x.js`);
        const looks = "typeof Deno !== 'undefined' && Deno.build != null";
        for (const [name, type, code] of [
            ["esm", "module", `export const found = ${looks};\n// the end`],
            ["cjs", "commonjs", `"use strict"; exports.found = ${looks}`],
            ["own", "module", `const Deno = { build: 1 }; export const found = ${looks};`],
            ["required", "commonjs", `const { Deno } = { Deno: { build: 1 } }; exports.found = ${looks};`],
        ]) {
            mkdirSync(`node_modules/${name}`, { recursive: true });
            writeFileSync(`node_modules/${name}/package.json`, JSON.stringify({ name, type, exports: "./i.js" }));
            writeFileSync(`node_modules/${name}/i.js`, code);
        }
        writeFileSync("uses.mts", `export { found } from "esm"; export const own: boolean = ${looks};`);
        const { found, own } = await import(`${process.cwd()}/uses.mts`);
        return [found, own, typeof Deno, require("cjs").found, require("esm").found, require("own").found, require("required").found].join();"#,
        "false,false,undefined,false,false,true,true",
    )
    .await;
}

/// A lost connection had the close code 0.
#[tokio::test]
async fn a_closed_web_socket_has_the_close_code_of_node() {
    answers(
        r#"const { createHash } = await import("node:crypto");
        const { createServer } = await import("node:net");
        const CLOSE = 0x88;
        const TEXT = 0x81;
        const endings = { "/none": [CLOSE, 0], "/normal": [CLOSE, 2, 0x03, 0xe8], "/own": [TEXT, 1, 0x78, CLOSE, 4, 0x0f, 0xa0, 0x6f, 0x6b] };
        const server = createServer((socket) => {
            socket.on("error", () => {});
            socket.once("data", (head) => {
                const [, path] = /^GET (\S+)/.exec(head);
                const [, key] = /sec-websocket-key: (\S+)/i.exec(head);
                const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
                socket.write(["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
                    `Sec-WebSocket-Accept: ${accept}`, "", ""].join("\r\n"));
                if (!endings[path]) return socket.end();
                socket.write(Buffer.from(endings[path]));
                socket.once("data", () => socket.end());
            });
        });
        await new Promise((done) => server.listen(0, "127.0.0.1", done));
        const told = [];
        for (const path of [...Object.keys(endings), "/lost"]) {
            const socket = new WebSocket(`ws://127.0.0.1:${server.address().port}${path}`);
            // A message event has an origin.
            socket.onmessage = ({ data, origin }) => told.push([data, origin === `ws://127.0.0.1:${server.address().port}`].join(" "));
            told.push(await new Promise((done) => {
                socket.onclose = ({ code, reason, wasClean }) => done([path, code, reason, wasClean].join(" "));
            }));
        }
        server.close();
        return told.join();"#,
        "/none 1005  true,/normal 1000  true,x true,/own 4000 ok true,/lost 1006  false",
    )
    .await;
}
