//! Native addons of packages: which are refused, and access to descriptors that the others open.

use std::process::Command;

use model_server::ModelServer;
use serde_json::json;

use crate::support::{Home, prompt};

/// cbor-x builds such an addon where a compiler is installed. The call ended the whole program.
#[tokio::test]
async fn an_addon_that_calls_v8_is_refused_when_it_is_loaded() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let addon = addon(
        &home,
        "v8",
        "void *_ZN2v87Isolate10GetCurrentEv(void);\n\
         void *napi_register_module_v1(void *env, void *exports) {\n\
         return _ZN2v87Isolate10GetCurrentEv() ? exports : 0; }",
    );
    home.extension(
        "ext.ts",
        &format!(
            r#"import {{ createRequire }} from "node:module";
            export default (pi) => pi.registerCommand("go", {{ handler: async (_args, ctx) => {{
                try {{
                    createRequire(import.meta.url)({addon:?});
                }} catch ({{ code, message }}) {{
                    ctx.ui.notify(`${{code}}: ${{message.split(": ")[1]}}`);
                }}
            }} }});"#
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(
        "ERR_DLOPEN_FAILED: it calls _ZN2v87Isolate10GetCurrentEv, which only Node has. Addons that \
         keep to Node-API can be loaded",
    )
    .await;
}

/// fs-native-extensions calls some functions of libuv. The first call ended the whole program.
#[tokio::test]
async fn an_addon_may_call_the_simple_functions_of_libuv() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let simple = addon(
        &home,
        "simple",
        "typedef struct { char *base; unsigned long len; } buf;\n\
         int uv_get_osfhandle(int); int uv_translate_sys_error(int); char *uv_err_name(int);\n\
         buf uv_buf_init(char *, unsigned); char *uv_err_name_r(int, char *, unsigned long);\n\
         int napi_create_string_utf8(void *, char *, unsigned long, void **);\n\
         static char text[64];\n\
         void *napi_register_module_v1(void *env, void *exports) {\n\
         buf room = uv_buf_init(text, 64);\n\
         char *name = uv_err_name(uv_translate_sys_error(uv_get_osfhandle(2)));\n\
         uv_err_name_r(-22, room.base, room.len);\n\
         text[6] = ','; for (int at = 0; (text[7 + at] = name[at]); at++);\n\
         napi_create_string_utf8(env, room.base, -1, &exports); return exports; }",
    );
    let strange = addon(
        &home,
        "strange",
        "int uv_spawn(void *, void *, void *);\n\
         void *napi_register_module_v1(void *env, void *exports) {\n\
         uv_spawn(0, 0, 0); return exports; }",
    );
    home.extension(
        "ext.ts",
        &format!(
            r#"import {{ createRequire }} from "node:module";
            const require = createRequire(import.meta.url);
            export default (pi) => pi.registerCommand("go", {{ handler: async (_args, ctx) => {{
                ctx.ui.notify(require({simple:?}));
                try {{ require({strange:?}); }} catch ({{ code, message }}) {{
                    ctx.ui.notify(`${{code}}: ${{message.split(": ")[1].split(",")[0]}}`);
                }}
            }} }});"#
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified("EINVAL,ENOENT").await;
    rpc.notified("ERR_DLOPEN_FAILED: it calls uv_spawn").await;
}

/// node-pty writes with `fs.write` to the terminal that its addon has opened.
#[tokio::test]
async fn a_terminal_of_an_addon_can_be_written_to() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let addon = addon(
        &home,
        "terminal",
        "int napi_create_int32(void *env, int value, void **result);\n\
         int posix_openpt(int); int grantpt(int); int unlockpt(int);\n\
         void *napi_register_module_v1(void *env, void *exports) {\n\
         int fd = posix_openpt(2); grantpt(fd); unlockpt(fd);\n\
         napi_create_int32(env, fd, &exports); return exports; }",
    );
    home.extension(
        "ext.ts",
        &format!(
            r#"import {{ createRequire }} from "node:module";
            import {{ write, writeSync }} from "node:fs";
            import {{ ReadStream }} from "node:tty";
            import {{ promisify }} from "node:util";
            export default (pi) => pi.registerCommand("go", {{ handler: async (_args, ctx) => {{
                const terminal = createRequire(import.meta.url)({addon:?});
                const stream = new ReadStream(terminal);
                let echo = "";
                stream.on("data", (data) => echo += data);
                writeSync(terminal, "one ");
                const {{ bytesWritten }} = await promisify(write)(terminal, Buffer.from("two "));
                while (!echo.includes("two")) await new Promise((resolve) => setTimeout(resolve, 5));
                let other;
                try {{ writeSync(900, "x"); }} catch ({{ code }}) {{ other = code; }}
                ctx.ui.notify([echo, bytesWritten, other].join());
                stream.destroy();
            }} }});"#
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified("one two ,4,EBADF").await;
}

/// serialport reads and writes with `node:fs` what its addon has opened. Descriptors of the program
/// could be closed or read in the same way.
#[tokio::test]
async fn descriptors_of_addons_are_usable_those_of_pi_are_not() {
    // On a thread O_CLOEXEC marks descriptors of the program, so the addon opens without it; in a
    // process the program keeps no files open, and @nicknisi/pi-relay opens with it.
    for (host, flags) in [("thread", "2"), ("process", "2 | 02000000")] {
        opened_by_an_addon(host, flags).await;
    }
}

async fn opened_by_an_addon(host: &str, flags: &str) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionHost": host }));
    home.file("opened.txt", "of the addon");
    let addon = addon(
        &home,
        "opens",
        &format!(
            "int napi_create_int32(void *env, int value, void **result);\n\
             int open(const char *, int, ...); char *getenv(const char *);\n\
             void *napi_register_module_v1(void *env, void *exports) {{\n\
             int fd = open(getenv(\"OPENED\"), {flags}); napi_create_int32(env, fd, &exports); return exports; }}"
        ),
    );
    home.extension(
        "ext.ts",
        &format!(
            r#"import {{ createRequire }} from "node:module";
            import fs from "node:fs";
            const failure = (action) => {{ try {{ return action(); }} catch ({{ code, syscall }}) {{ return `${{code}} ${{syscall}}`; }} }};
            const isOwn = (fd) => {{
                const [, flags] = /flags:\s+(\d+)/.exec(fs.readFileSync(`/proc/self/fdinfo/${{fd}}`, "utf8"));
                return (parseInt(flags, 8) & 0o2000000) !== 0;
            }};
            export default (pi) => pi.registerCommand("go", {{ handler: async (_args, ctx) => {{
                const others = fs.readdirSync("/proc/self/fd").map(Number)
                    .filter((fd) => fd > 2 && failure(() => isOwn(fd)) === true);
                const reached = others.filter((fd) => failure(() => fs.fstatSync(fd)) !== "EBADF fstat"
                    || failure(() => fs.closeSync(fd)) !== "EBADF close");
                process.env.OPENED = "opened.txt";
                const fd = createRequire(import.meta.url)({addon:?});
                const buffer = Buffer.alloc(2);
                const told = [
                    fs.fstatSync(fd).size, fs.readSync(fd, buffer), String(buffer), fs.readFileSync(fd, "utf8"),
                    fs.writeSync(fd, "!"), await new Promise((done) => fs.read(fd, buffer, 0, 2, 0, (_error, count) => done(count))),
                    fs.closeSync(fd), failure(() => fs.fstatSync(fd)), failure(() => fs.closeSync(fd)), fs.readFileSync("opened.txt", "utf8"),
                ];
                ctx.ui.notify(JSON.stringify([others.length > 3, reached, ...told]));
            }} }});"#
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(
        "[true,[],12,2,\"of\",\" the addon\",1,2,null,\"EBADF fstat\",\"EBADF close\",\"of the addon!\"]",
    )
    .await;
    // Reports are not ordered with the output of the command and may come later.
    let is_report = |line: &serde_json::Value| line["type"] == "extension_error";
    let (_, report) = rpc.find(0, "the report", is_report).await;
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains(": it is the program's own, none that the extension has opened"),
        "{host}: {error}"
    );
}

/// Compiles an addon, which is loaded by its path.
fn addon(home: &Home, name: &str, source: &str) -> std::path::PathBuf {
    let source = home.file(&format!("{name}.c"), source);
    let addon = source.with_extension("node");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&addon, &source])
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cc is there");
    addon
}
