//! Careless code of extensions: a text cut in the middle of an emoji, a missing argument, a thrown
//! string, use of a replaced session. The code works, or the error explains the mistake in the
//! extension's terms.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, blocks, prompt, text_of, with_extension};

const HALVES: &str = include_str!("fixtures/loose-code/halves.ts");

#[tokio::test]
async fn half_an_emoji_breaks_nothing() {
    let (server, home, mut rpc) = with_extension(HALVES).await;
    let cut = "cut \u{fffd}";
    server.push(Answer::tool("cut", json!({})));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let errors = events.iter().filter(|one| one["type"] == "extension_error");
    assert_eq!(errors.count(), 0, "{events:#?}");
    let end = |one: &&Value| one["type"] == "tool_execution_end";
    let result = &events.iter().find(end).unwrap()["result"];
    assert_eq!(text_of(result), format!("{cut}{cut}"));
    assert_eq!(result["details"], json!({"S": cut, cut: "\\ud83d"}));
    let first = server.requests()[0].body.to_string();
    // Tool, prompt, instructions, the handler's message and the message for the model alone.
    assert_eq!(first.matches(cut).count(), 5, "{first}");

    rpc.send(r#"{"type": "prompt", "message": "/say", "id": "\ud83d"}"#)
        .await;
    assert_eq!(rpc.ui("setStatus").await["statusText"], cut);
    assert_eq!(rpc.ui("setWidget").await["widgetLines"], json!([cut]));
    let question = rpc.ui("select").await;
    assert_eq!(question["options"], json!([cut]));
    rpc.reply(&question, json!({"value": cut})).await;
    rpc.notified(&[cut; 3].join(",")).await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["sessionName"], cut);

    rpc.ok(json!({"type": "set_model", "provider": "split", "modelId": "m"}))
        .await;
    let events = rpc.run("stream").await;
    let deltas = events
        .iter()
        .filter_map(|one| one["assistantMessageEvent"]["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), "hi \u{1f600} and \u{fffd}x");
    let answer = &events.last().unwrap()["messages"];
    let answer = answer.as_array().unwrap().last().unwrap();
    assert_eq!(text_of(answer), "hi \u{1f600} and \u{fffd}x");
    rpc.close().await;

    // The file has the original's form.
    let file = home.session();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(cut, r"cut \ud83d")).unwrap();
    let mut rpc = home.rpc(&["--session", file.to_str().unwrap()]);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["sessionName"], cut);
    let messages = rpc.ok(json!({"type": "get_messages"})).await["messages"].take();
    let output: Vec<String> = messages.as_array().unwrap().iter().map(text_of).collect();
    let expected = [
        &format!("go {cut}"),
        cut,
        "",
        &format!("{cut}{cut}"),
        "Done.",
        cut,
        "stream",
        cut,
        "hi \u{1f600} and \u{fffd}x",
    ];
    assert_eq!(output, expected);
    assert_eq!(rpc.stderr(), "");
    rpc.close().await;
}

const LOOSE: &str = include_str!("fixtures/loose-code/loose.ts");

#[tokio::test]
async fn arguments_are_converted_as_in_javascript() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("loose.ts", LOOSE);
    let mut rpc = home.rpc(&["--count", "4"]);
    rpc.send(&prompt("/loose").to_string()).await;
    let error = rpc.ui("notify").await;
    assert_eq!(error["message"], "Error: an error");
    assert_eq!(rpc.ui("notify").await["message"], "undefined");
    assert_eq!(rpc.ui("setStatus").await["statusText"], "5");
    let widget = rpc.ui("setWidget").await;
    assert_eq!(widget["widgetLines"], json!(["1", "null"]));
    let question = rpc.ui("confirm").await;
    assert_eq!(question["message"], "");
    rpc.reply(&question, json!({"confirmed": true})).await;
    let seen = rpc.ui("notify").await;
    let seen: Value = serde_json::from_str(seen["message"].as_str().unwrap()).unwrap();
    let expected = json!({
        "sure": true,
        "stdout": "1 true\n",
        "count": "4",
        "wrong": "ctx.ui.setWidget: content must be an array of strings, not an object",
        "argv": ["--mode", "rpc", "--count", "4"],
    });
    assert_eq!(seen, expected);

    server.push(Answer::tools([
        ("text", json!({})),
        ("nothing", json!({})),
        ("cause", json!({})),
        ("updates", json!({})),
    ]));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let of = |kind: &str, member: &str| -> Vec<String> {
        let events = events.iter().filter(|one| one["type"] == kind);
        let texts = events.map(|one| blocks(&one[member]["content"], "text"));
        texts.collect()
    };
    let mut results = of("tool_execution_end", "result");
    results.sort();
    assert_eq!(results, ["", "a text", "done", "outer"]);
    let updates = of("tool_execution_update", "partialResult");
    assert_eq!(updates.last().unwrap(), "half way");
    rpc.close().await;
}

/// In Node this would be an uncaught exception of the program.
#[tokio::test]
async fn an_unhandled_error_of_a_worker_is_reported() {
    let (_server, _home, mut rpc) = with_extension(
        r#"import { writeFileSync } from "node:fs";
        import { Worker } from "node:worker_threads";
        export default (pi) => pi.registerCommand("work", { handler: async (listens, ctx) => {
          const source = `${import.meta.dirname}/work.mjs`;
          writeFileSync(source, "setTimeout(() => {\n  throw new TypeError('in worker');\n}, 1)");
          const worker = new Worker(source);
          if (listens) worker.on("error", (error) => ctx.ui.notify(`heard ${error.message} ${error.stack.split("\n")[1].includes("work.mjs:2:9")}`));
          worker.on("exit", (code) => ctx.ui.notify(`exit ${code}`));
        } });"#,
    )
    .await;
    rpc.ok(prompt("/work")).await;
    rpc.notified("exit 1").await;
    rpc.ok(prompt("/work listens")).await;
    rpc.notified("heard in worker true").await;
    rpc.notified("exit 1").await;
    // The notification does not wait for the report.
    let is_error = |line: &Value| line["type"] == "extension_error";
    rpc.find(0, "the report of the error", is_error).await;
    let lines = rpc.lines();
    let errors = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let errors: Vec<&Value> = errors.collect();
    let [error] = errors[..] else {
        panic!("{errors:?}")
    };
    let output = error["error"].as_str().unwrap();
    assert!(output.contains("in worker"), "{error}");
    assert_eq!(error["location"]["line"], 2, "{error}");
    let path = error["extensionPath"].to_string();
    assert!(path.contains("ext.ts"), "{error}");
}

#[tokio::test]
async fn newer_names_and_other_iterables_are_accepted() {
    let (_server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/loose-code/newer-names-and-other-iterables-are-accepted.ts"
    ))
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"[["read","bash"],true,"a\nb","c",false,true,true,36]"#)
        .await;
}

#[tokio::test]
async fn wrong_arguments_are_named_in_the_extensions_terms() {
    let (_server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/loose-code/wrong-arguments-are-named-in-the-extensions-terms.ts"
    ))
    .await;
    rpc.ok(prompt("/slip")).await;
    let output = rpc
        .wait("the words", |line| line["method"] == "notify")
        .await;
    let words: Vec<&str> = output["message"].as_str().unwrap().lines().collect();
    assert_eq!(
        words,
        [
            "TypeError pi.sendMessage: message.content: it must be a text, or an array of blocks of \
             text and pictures",
            "TypeError pi.sendMessage: message: invalid type: string \"hello\", expected an object",
            "TypeError pi.sendMessage: content[0].type: unknown value `txt`, is `text` meant?",
            "TypeError pi.sendUserMessage: content[0].type: unknown value `txt`, is `text` meant?",
            "Error pi.registerProvider: config.baseUrl: invalid type: integer `1`, expected a string",
            "TypeError pi.exec: args must be an array of strings, not \"hi\" (write [\"hi\"])",
        ]
    );
}

/// Code that looks for an optional package recognises these words: jiti asks `require`.
#[tokio::test]
async fn a_missing_package_has_the_error_of_require() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("slip", { handler: async (_, ctx) => {
            const { code, message } = await import("nope-pkg").catch((error) => error);
            ctx.ui.notify(`${code} ${message.startsWith("Cannot find module 'nope-pkg' ")}`);
        } });"#,
    )
    .await;
    rpc.ok(prompt("/slip")).await;
    rpc.notified("MODULE_NOT_FOUND true").await;
}

/// The model read a bare `42` as the result of the tool.
#[tokio::test]
async fn an_error_of_a_gate_says_that_the_tool_did_not_run() {
    let (server, home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.on("session_start", () => pi.appendEntry("state", null));
            pi.on("tool_call", ({ input }) => {
                if (input.command === "one") throw 42;
                if (input.command === "two") throw new Error("");
                throw new Error("no such thing");
            });
            pi.on("context", (event) => { event.messages = []; });
        };"#,
    )
    .await;
    for command in ["one", "two", "three"] {
        server.push(Answer::tool("bash", json!({"command": command})));
    }
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let messages = server.last_request().body["messages"].to_string();
    for output in [
        "Extension failed, blocking execution: 42",
        "Extension failed, blocking execution: an error without a message",
        "no such thing",
    ] {
        assert!(messages.contains(output), "{output}: {messages}");
    }
    let state = |entry: &&Value| entry["customType"] == "state";
    let entries = home.entries();
    let state = entries.iter().find(state).expect("the state is stored");
    assert_eq!(state.get("data"), Some(&Value::Null));
}

/// Such errors were responses with status `400`, raw lines on stderr, or silent.
#[tokio::test]
async fn errors_of_network_handlers_are_reported() {
    let source = r#"import dgram from "node:dgram";
        import http from "node:http";
        import net from "node:net";
        import { once } from "node:events";
        export default (pi) => pi.registerCommand("slip", { handler: async (_, ctx) => {
            const there = async (server) => (server.listen(0, "127.0.0.1"), await once(server, "listening"), server.address().port);
            const web = http.createServer((request, response) => {
                setTimeout(() => response.end("late"), 20);
                throw new Error("request");
            });
            web.on("upgrade", (_request, socket) => { socket.destroy(); throw new Error("upgrade") });
            const port = await there(web);
            const answer = await fetch(`http://127.0.0.1:${port}/`);
            const text = `${answer.status} ${await answer.text()}`;
            const up = http.get({ port, headers: { connection: "upgrade", upgrade: "x" } });
            await once(up, "error").catch(() => {});
            const tcp = net.createServer((socket) => { socket.end(); throw new Error("connection") });
            const at = await there(tcp);
            net.connect(at, "127.0.0.1", () => { throw new Error("connect") });
            net.connect(at, "127.0.0.1").resume().on("close", () => { throw new Error("close") });
            const udp = dgram.createSocket("udp4");
            udp.on("message", () => { udp.close(); throw new Error("message") });
            udp.bind(0, "127.0.0.1", () => udp.send("x", udp.address().port, "127.0.0.1"));
            ctx.ui.notify(text);
        } });"#;
    let (_server, _home, mut rpc) = with_extension(source).await;
    rpc.ok(prompt("/slip")).await;
    rpc.notified("200 late").await;
    let failed = |rpc: &Rpc| {
        let mut lines = rpc.lines();
        lines.retain(|line| line["type"] == "extension_error");
        lines
    };
    // Some reports came earlier; there are two connections.
    while failed(&rpc).len() < 7 {
        rpc.event("extension_error").await;
    }
    let mut reported = Vec::new();
    for error in failed(&rpc) {
        assert_eq!(error["extension"]["name"], "ext", "{error}");
        assert!(error["location"]["line"].is_number(), "{error}");
        reported.push(error["error"].as_str().unwrap().to_owned());
    }
    reported.sort();
    assert_eq!(
        reported,
        [
            "close",
            "connect",
            "connection",
            "connection",
            "message",
            "request",
            "upgrade"
        ]
    );
}

/// The JSON was run as JavaScript.
#[tokio::test]
async fn json_is_not_run_as_javascript() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let folder = home.agent_dir().join("extensions");
    home.extension(
        "reads.ts",
        r#"import good from "./good.json";
        export default (pi) => pi.on("session_start", (_event, ctx) =>
            ctx.ui.notify(`${Object.keys(good)} ${good.a} ${good instanceof Array}`));"#,
    );
    fs::write(
        folder.join("good.json"),
        "\u{feff}{\"__proto__\": [], \"a\": \"x\u{2028}\"}",
    )
    .unwrap();
    home.extension(
        "runs.ts",
        "import data from './code.json'; export default () => data;",
    );
    fs::write(
        folder.join("code.json"),
        "{\n  \"a\": globalThis.ran = 1\n}",
    )
    .unwrap();
    let mut rpc = home.rpc(&[]);
    let error = rpc.event("extension_error").await;
    let text = error["error"].as_str().unwrap();
    assert!(
        text.contains("This is not JSON: ") && text.ends_with("code.json:2:8)"),
        "{text}"
    );
    rpc.notified("__proto__,a x\u{2028} false").await;
}

/// Compatible with Node: retries look for these words, readers take all data, and code that finds a
/// storage takes pi for a browser.
#[tokio::test]
async fn broken_bodies_and_streams_behave_as_in_node() {
    let source = r#"import http from "node:http";
        import { once } from "node:events";
        import { Readable } from "node:stream";
        export default (pi) => pi.registerCommand("slip", { handler: async (_, ctx) => {
            const server = http.createServer((request, response) => {
                response.writeHead(200, { "content-length": 100 });
                response.write("part");
                setTimeout(() => request.socket.destroy(), 10);
            });
            server.listen(0, "127.0.0.1");
            await once(server, "listening");
            const broken = async (read) => {
                const { name, message, cause } = await fetch(`http://127.0.0.1:${server.address().port}/`)
                    .then(read).catch((error) => error);
                return `${name} ${message} ${cause?.code}`;
            };
            const told = [await broken((response) => response.text()),
                await broken(async ({ body }) => { for await (const _ of body); })];
            const stream = new Readable({ read() {} });
            stream.push("a");
            stream.push("b");
            const globals = ["localStorage", "sessionStorage", "Storage", "alert", "confirm", "prompt"];
            ctx.ui.notify([...told, stream.read(), globals.filter((name) => name in globalThis).length].join(", "));
        } });"#;
    let (_server, _home, mut rpc) = with_extension(source).await;
    rpc.ok(prompt("/slip")).await;
    let terminated = "TypeError terminated UND_ERR_SOCKET";
    rpc.notified(&format!("{terminated}, {terminated}, ab, 0"))
        .await;
}

/// The report was `[object Object]`, and for a command it did not name the extension.
#[tokio::test]
async fn a_thrown_value_is_shown_with_its_extension() {
    let (_server, home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.on("agent_start", async () => { throw { code: 5 }; });
            pi.registerCommand("slip", { handler: async () => { throw "text"; } });
        };"#,
    )
    .await;
    rpc.ok(prompt("go")).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["error"], "{ code: 5 }");
    let output = home.run(&["-p", "/slip"], "").await.stderr;
    assert!(
        output.contains("Extension error (command:slip of ext): text"),
        "{output}"
    );
}

/// Only the model got the message, and the source position was missing.
#[tokio::test]
async fn an_error_of_a_tool_is_reported_with_its_position() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            const tool = (name, execute) => pi.registerTool({ name, label: name, description: name,
                parameters: { type: "object", properties: {} }, execute });
            tool("unreachable", () => fetch("http://127.0.0.1:9/"));
            tool("invalid", async () => { throw new Error("No such city"); });
            tool("slip", async (_id, params) => {
                const { city } = params;
                return { content: [{ type: "text", text: city.name }] };
            });
        };"#,
    )
    .await;
    for tool in ["unreachable", "invalid", "slip"] {
        server.push(Answer::tool(tool, json!({})));
    }
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let failed = server.requests()[3].body.to_string();
    for reported in [
        "fetch failed",
        "No such city",
        "Cannot read properties of undefined (reading 'name')",
    ] {
        assert!(failed.contains(reported), "{failed}");
    }
    // The run does not wait for the report.
    let is_told = |line: &Value| line["type"] == "extension_error";
    rpc.find(0, "the report of the slip", is_told).await;
    let lines = rpc.lines();
    let errors: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "extension_error")
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["event"], "tool:slip");
    assert_eq!(errors[0]["location"]["line"], 8);
    let frame = errors[0]["codeFrame"].as_str().unwrap();
    assert!(frame.contains("text: city.name"), "{frame}");
}
