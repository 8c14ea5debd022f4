//! `--inspect-brk`: a debugger finds the source of the extension, stops in it, and reads its
//! variables.

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Home, TIMEOUT, finish};

const EXTENSION: &str = "\
interface Removed { byTheCompiler: boolean }
interface Also { removed: true }
export default function (pi: any): void {
  pi.registerCommand(\"add\", {
    handler: async (args: string, ctx: any) => {
      const sum: number = args.length + 40;
      ctx.ui.notify(`the sum is ${sum}`);
    },
  });
}
";

/// A client of V8's debugger protocol, as in DevTools.
const DEBUGGER: &str = r#"
const [url, file] = process.argv.slice(2);
const socket = new WebSocket(url);
const answers = new Map();
const scripts = [];
const pauses = [];
let next = 1, wake = () => {};
const send = (method, params = {}) => new Promise((resolve) => {
  answers.set(next, resolve);
  socket.send(JSON.stringify({ id: next++, method, params }));
});
const paused = async () => {
  while (pauses.length === 0) await new Promise((resolve) => (wake = resolve));
  return pauses.shift();
};
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) answers.get(message.id)(message.result ?? message.error);
  if (message.method === "Debugger.scriptParsed") scripts.push(message.params);
  if (message.method === "Debugger.paused") { pauses.push(message.params); wake(); }
};
await new Promise((resolve) => (socket.onopen = resolve));
await send("Runtime.enable");
await send("Debugger.enable");
await send("Runtime.runIfWaitingForDebugger");
const first = await paused();
const script = scripts.find((script) => script.url.split("?")[0].endsWith(file));
const { scriptSource } = await send("Debugger.getScriptSource", { scriptId: script.scriptId });
const lineNumber = scriptSource.split("\n").findIndex((line) => line.includes("the sum is"));
const set = await send("Debugger.setBreakpointByUrl", { url: script.url, lineNumber });
await send("Debugger.resume");
console.log("READY");
const second = await paused();
const { callFrameId } = second.callFrames[0];
const sum = await send("Debugger.evaluateOnCallFrame", { callFrameId, expression: "sum" });
await send("Debugger.resume");
console.log(JSON.stringify({
  first: scripts.find((one) => one.scriptId === first.callFrames[0].location.scriptId).url,
  map: script.sourceMapURL,
  breakpoints: set.locations.length, sum: sum.result.value,
}));
process.exit(0);
"#;

#[tokio::test]
async fn a_debugger_stops_in_the_source_of_an_extension() {
    let home = Home::bare();
    home.extension("adder.ts", EXTENSION);
    let script = home.file("debugger.mjs", DEBUGGER);
    let mut rpc = home.rpc(&[
        "--inspect-brk=localhost:0",
        "--provider",
        "demo",
        "--model",
        "demo",
    ]);
    let url = rpc.stderr_line("ws://").await;
    let url = url
        .split_whitespace()
        .find(|word| word.starts_with("ws://"))
        .unwrap()
        .to_owned();

    let mut debugger = home.command(env!("CARGO_BIN_EXE_pi"));
    debugger
        .env("PI_CODING_AGENT", "true")
        .arg(script)
        .arg(url)
        .arg("adder.ts");
    let debugger = tokio::spawn(finish(debugger, ""));
    // The debugger lets the extension load and waits for the command.
    let command = json!({"type": "prompt", "message": "/add 12"});
    rpc.send(&command.to_string()).await;
    rpc.notified("the sum is 42").await;

    let seen = timeout(TIMEOUT, debugger).await.unwrap().unwrap().ok();
    let seen: Value = serde_json::from_str(seen.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&seen["sum"], &seen["breakpoints"]),
        (&json!(42), &json!(1)),
        "{seen}"
    );
    assert!(
        seen["first"]
            .as_str()
            .is_some_and(|url| url.contains("adder.ts")),
        "{seen}"
    );
    let map = seen["map"].as_str().unwrap();
    let map = map.strip_prefix("data:application/json;base64,").unwrap();
    let map = base64::engine::general_purpose::STANDARD
        .decode(map)
        .unwrap();
    let map: Value = serde_json::from_slice(&map).unwrap();
    assert_eq!(map["sourcesContent"], json!([EXTENSION]));
    assert!(
        map["sources"][0].as_str().unwrap().ends_with("adder.ts"),
        "{map}"
    );
    rpc.close().await;
}

#[tokio::test]
async fn a_wrong_debugging_address_is_refused() {
    let home = Home::bare();
    let output = home
        .run(&["-p", "hi", "--inspect=here"], "")
        .await
        .failed(1);
    assert!(
        output.contains("--inspect takes an address and a port"),
        "{output}"
    );
}

/// The list said "deno" and did not name the session.
#[tokio::test]
async fn the_list_of_the_debugger_names_the_session() {
    let home = Home::bare();
    home.extension("adder.ts", EXTENSION);
    let mut rpc = home.rpc(&[
        "--inspect=localhost:0",
        "--provider",
        "demo",
        "--model",
        "demo",
    ]);
    let output = rpc.stderr_line("ws://").await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    let address = output
        .split("ws://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let list = reqwest::get(format!("http://{address}/json/list")).await;
    let list: Value = serde_json::from_str(&list.unwrap().text().await.unwrap()).unwrap();
    let title = list[0]["title"].as_str().unwrap();
    let name = format!(
        "pi, session {} in {}",
        state["sessionId"].as_str().unwrap(),
        home.cwd().canonicalize().unwrap().display()
    );
    assert!(title.contains(&name), "{title}");
    rpc.close().await;
}

/// A client that had sent a command before kept the program waiting without end.
#[tokio::test]
async fn waiting_for_a_debugger_ends_with_the_client() {
    let home = Home::bare();
    home.extension("adder.ts", EXTENSION);
    let mut rpc = home.rpc(&[
        "--inspect-brk=localhost:0",
        "--provider",
        "demo",
        "--model",
        "demo",
    ]);
    rpc.stderr_line("ws://").await;
    rpc.send(&json!({"type": "get_state", "id": "1"}).to_string())
        .await;
    rpc.close_stdin();
    assert!(rpc.end().await.success());
    let lines = rpc.lines();
    let answered = |line: &&Value| line["type"] == "response" && line["id"] == "1";
    assert_eq!(lines.iter().filter(answered).count(), 1, "{lines:#?}");
}
