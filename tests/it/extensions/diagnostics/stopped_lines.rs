//! Reports about extensions that hang name the line.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, command, prompt};

/// Loops in line 6 of `wait.ts`, which line 7 of the extension calls.
const WAIT: &str = "interface Nothing {
  of: this;
}

export function wait(until: number): void {
  while (Date.now() < until);
}
";
const CALLER: &str = r#"import { wait } from "./parts/wait";
type No = never;

export default (pi: any) => {
  pi.on("before_agent_start", async () => {
    await null;
    wait(Infinity);
  });
};
"#;

async fn stopped(rpc: &mut Rpc) -> Value {
    let is_it = |line: &Value| line["type"] == "extension_error";
    match rpc.lines().into_iter().find(is_it) {
        Some(error) => error,
        None => rpc.wait("an extension_error", is_it).await,
    }
}

#[tokio::test]
async fn a_handler_that_spins_is_reported_with_its_line() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"spin": 700}}));
    let ext = home.extension("ext.ts", CALLER);
    std::fs::create_dir_all(ext.with_file_name("parts")).unwrap();
    let wait = ext.with_file_name("parts").join("wait.ts");
    std::fs::write(&wait, WAIT).unwrap();
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Anyway."));
    rpc.send(&prompt("go").to_string()).await;
    let error = stopped(&mut rpc).await;
    assert_eq!(error["event"], "before_agent_start");
    let place = &error["location"];
    assert_eq!(place["file"].as_str(), wait.to_str(), "{error}");
    assert_eq!(place["line"], 6, "{error}");
    let frame = error["codeFrame"].as_str().unwrap();
    assert!(
        frame.contains("> 6 |   while (Date.now() < until);"),
        "{error}"
    );
    let text = error["error"].as_str().unwrap();
    let begin = format!("The extension was stopped at {}:6:", wait.display());
    assert!(text.starts_with(&begin), "{error}");
    let stack = error["stack"].as_str().unwrap();
    let caller = format!("    at {}:7:5", ext.display());
    assert!(stack.ends_with(&caller), "{error}");
    rpc.event("agent_end").await;

    // Reloading the extension unchanged reports it again.
    let refused = rpc.ok(command("reload")).await;
    let again = refused.to_string();
    assert!(
        !again.contains("wait.ts:6:") || again.contains("quarantined"),
        "{again}"
    );
}

#[tokio::test]
async fn a_load_that_spins_is_reported_with_its_line() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"load": 1500}}));
    let ext = home.extension(
        "ext.ts",
        "interface Removed { byTheCompiler: boolean }\nlet n = 0;\n\nfor (;;) n += 1;\n\
         export default () => {};\n",
    );
    let mut rpc = home.rpc(&[]);
    let error = stopped(&mut rpc).await;
    assert_eq!(error["event"], "load");
    assert_eq!(error["location"]["file"].as_str(), ext.to_str(), "{error}");
    assert_eq!(error["location"]["line"], 4, "{error}");
    let output = home.run(&["ext", "check", ext.to_str().unwrap()], "").await;
    assert_eq!(output.status.code(), Some(1));
    let output = output.stdout;
    assert!(output.contains("> 4 | for (;;) n += 1;"), "{output}");
}

/// An author of a hundred handlers finds the right one by its line.
#[tokio::test]
async fn a_handler_that_never_settles_is_reported_with_its_line() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"handler": 1000}}));
    let ext = home.extension(
        "ext.ts",
        r#"type No = never;
export default (pi: any) => {
  pi.on("before_agent_start", async () => {
    await new Promise(() => {});
  });
  pi.on("turn_start", () => new Promise(() => {}));
};
"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Anyway."));
    let events = rpc.run("go").await;
    let errors: Vec<&Value> = events
        .iter()
        .filter(|line| line["type"] == "extension_error")
        .collect();
    let places: Vec<Value> = errors
        .iter()
        .map(|error| error["location"].clone())
        .collect();
    let at = |line: u32, column: u32| json!({"file": ext, "line": line, "column": column});
    assert_eq!(places, [at(3, 31), at(6, 23)], "{errors:#?}");
    assert!(errors[0]["codeFrame"].as_str().unwrap().contains("> 3 |"));
}
