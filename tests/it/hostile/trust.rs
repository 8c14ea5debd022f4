//! Answers about projects: of extensions, of `pi trust`, and of the user in a session; and writes
//! to protected places.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, Terminal, command, prompt};

/// An extension of a project that says that it was loaded.
const THEIRS: &str = "export default (pi) => pi.on('session_start', (event, ctx) => \
    ctx.ui.notify(`theirs ${ctx.isProjectTrusted()} ${event.reason}`));";
/// An extension of the user that says whether the project is trusted.
const MINE: &str = "export default (pi) => pi.on('session_start', (event, ctx) => \
    ctx.ui.notify(`mine ${ctx.isProjectTrusted()} ${event.reason}`));";

fn home(server: &ModelServer) -> Home {
    let home = Home::new(server);
    home.settings(json!({"defaultProjectTrust": "ask"}));
    home
}

/// An extension of the user that answers, and says what it was asked.
fn decides(result: &str) -> String {
    format!(
        "export default (pi) => pi.on('project_trust', (event, ctx) => {{
            ctx.ui.notify(`asked ${{event.type}} ${{event.cwd === ctx.cwd}} ${{ctx.mode}} ${{ctx.hasUI}}`);
            return {result};
        }});"
    )
}

fn asks(rpc: &Rpc) -> bool {
    let lines = rpc.lines();
    lines
        .iter()
        .any(|line| line["type"] == "project_trust_request")
}

fn has_loaded(rpc: &Rpc, who: &str) -> bool {
    let lines = rpc.lines();
    lines.iter().any(|line| {
        line["method"] == "notify"
            && line["message"]
                .as_str()
                .is_some_and(|text| text.starts_with(who))
    })
}

fn recorded(home: &Home) -> Value {
    let text = fs::read_to_string(home.agent_dir().join("trust.json"));
    text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn extensions_of_the_user_decide() {
    for (result, trusted, remembered) in [
        ("{ trusted: 'yes' }", true, false),
        ("{ trusted: 'no' }", false, false),
        ("{ trusted: 'yes', remember: true }", true, true),
        ("{ trusted: 'no', remember: true }", false, true),
    ] {
        let server = ModelServer::start().await;
        let home = home(&server);
        home.file(".pi/extensions/theirs.ts", THEIRS);
        // A project does not decide about itself.
        home.file(".pi/extensions/decides.ts", &decides("{ trusted: 'yes' }"));
        home.extension("decides.ts", &decides(result));
        home.extension("mine.ts", MINE);
        let mut rpc = home.rpc(&[]);
        rpc.notified("asked project_trust true rpc true").await;
        rpc.notified(&format!("mine {trusted} startup")).await;
        rpc.ok(command("get_state")).await;
        assert_eq!(has_loaded(&rpc, "theirs"), trusted, "{result}");
        assert!(!asks(&rpc), "{result}");
        rpc.close().await;
        let project = home.cwd().canonicalize().unwrap().display().to_string();
        let expected = match remembered {
            true => json!({ project: trusted }),
            false => Value::Null,
        };
        assert_eq!(recorded(&home), expected, "{result}");
    }
}

#[tokio::test]
async fn an_undecided_extension_leaves_it_to_the_user() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.file(".pi/extensions/theirs.ts", THEIRS);
    home.extension("decides.ts", &decides("{ trusted: 'undecided' }"));
    let mut rpc = home.rpc(&[]);
    let question = rpc.ui("select").await;
    assert!(!has_loaded(&rpc, "theirs"));
    rpc.reply(&question, json!({"value": "Trust (this session only)"}))
        .await;
    rpc.notified("theirs true startup").await;
    assert_eq!(recorded(&home), Value::Null);
    rpc.close().await;
}

#[tokio::test]
async fn an_extension_with_a_wrong_answer_decides_nothing() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.file(".pi/extensions/theirs.ts", THEIRS);
    home.extension("decides.ts", &decides("{ trusted: true }"));
    let mut rpc = home.rpc(&[]);
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"cancelled": true})).await;
    rpc.ok(command("get_state")).await;
    assert!(!has_loaded(&rpc, "theirs"));
    rpc.close().await;
}

#[tokio::test]
async fn a_client_that_goes_away_gets_no_project() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.file(".pi/extensions/theirs.ts", THEIRS);
    let mut rpc = home.rpc(&[]);
    rpc.ui("select").await;
    rpc.close_stdin();
    assert!(rpc.end().await.success());
    assert!(!has_loaded(&rpc, "theirs"));
}

#[tokio::test]
async fn folders_without_resources_are_not_asked_about() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.file("AGENTS.md", "Hello.");
    home.extension("mine.ts", MINE);
    let mut rpc = home.rpc(&[]);
    rpc.notified("mine true startup").await;
    assert!(!asks(&rpc));
    rpc.close().await;
}

#[tokio::test]
async fn what_the_model_writes_for_the_user_is_loaded() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.extension("mine.ts", MINE);
    let mut rpc = home.rpc(&[]);
    rpc.notified("mine true startup").await;
    let write = json!({"path": ".pi/extensions/theirs.ts", "content": THEIRS});
    server.push(Answer::tool("write", write));
    server.push(Answer::text("Written."));
    rpc.ok(prompt("write an extension")).await;
    let reported = rpc.ui("notify").await;
    assert!(
        reported["message"]
            .as_str()
            .unwrap()
            .contains("protected place"),
        "{reported}"
    );
    rpc.event("agent_settled").await;
    rpc.ok(command("reload")).await;
    rpc.notified("theirs true reload").await;
    assert!(!asks(&rpc));
    // Someone else's change is asked about.
    home.file(".pi/extensions/theirs.ts", &format!("{THEIRS}\n"));
    rpc.begin("reload", command("reload")).await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": "Do not trust"})).await;
    rpc.response("reload").await;
    rpc.notified("mine false reload").await;
    rpc.close().await;
}

#[tokio::test]
async fn protected_places_can_need_an_answer() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.settings(json!({"protectedPaths": "ask"}));
    // A project cannot make it looser.
    home.file(".pi/settings.json", r#"{"protectedPaths": "off"}"#);
    let hook = home.cwd().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let calls = || {
        server.push(Answer::tool(
            "bash",
            json!({"command": "echo x > .git/hooks/pre-commit"}),
        ));
        server.push(Answer::text("Done."));
    };
    for line in [
        "echo x > .git/hooks/pre-commit",
        "echo x | tee .git/hooks/pre-commit",
        "sh -c 'cd .git && touch hooks/pre-commit'",
        // The grammar does not know this redirection.
        "exec 3<>.git/hooks/pre-commit",
    ] {
        server.push(Answer::tool("bash", json!({ "command": line })));
        server.push(Answer::text("Done."));
        home.run(&["-p", "go"], "").await.ok();
        assert!(!hook.exists(), "{line}");
        let result = server.last_request().body["messages"].to_string();
        assert!(result.contains("protected place"), "{result}");
    }
    for (answer, written) in [("Do not write it", false), ("Write it", true)] {
        calls();
        let mut rpc = home.rpc(&[]);
        rpc.ok(prompt("go")).await;
        let question = rpc.ui("select").await;
        assert!(
            question["title"].as_str().unwrap().contains("pre-commit"),
            "{question}"
        );
        rpc.reply(&question, json!({ "value": answer })).await;
        rpc.event("agent_end").await;
        assert_eq!(hook.exists(), written);
        rpc.close().await;
    }
}

#[tokio::test]
async fn changed_extensions_of_the_user_are_listed_once() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = home(&server);
    home.extension("mine.ts", MINE);
    let stderr = async || home.run(&["-p", "hi"], "").await.stderr;
    assert!(!stderr().await.contains("since the last session"));
    home.extension("mine.ts", &format!("{MINE}\n"));
    home.extension("new.ts", MINE);
    let output = stderr().await;
    assert!(
        output.contains("changed mine.ts") && output.contains("added new.ts"),
        "{output}"
    );
    assert!(!stderr().await.contains("since the last session"));
}

#[tokio::test]
async fn line_mode_can_ask_again() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.file(".pi/extensions/theirs.ts", THEIRS);
    let mut terminal = Terminal::open(&home, "xterm-256color", &[]);
    terminal.see("Trust this project folder?");
    terminal.see("> ");
    terminal.line("4");
    terminal.see("/help lists the commands.");
    terminal.see("> ");
    terminal.line("/trust");
    terminal.see("Trust this project folder?");
    terminal.see("1-5> ");
    terminal.line("1");
    terminal.see_both("theirs true reload", "The project is trusted");
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
    let project = home.cwd().canonicalize().unwrap().display().to_string();
    assert_eq!(recorded(&home), json!({ project: true }));
}

#[tokio::test]
async fn the_command_shows_and_changes_answers() {
    let server = ModelServer::start().await;
    let home = home(&server);
    home.file(".pi/extensions/theirs.ts", THEIRS);
    let pi = async |arguments: &[&str]| home.run(arguments, "").await.ok();
    let output = pi(&["trust"]).await;
    assert!(
        output.contains(".pi/extensions/theirs.ts") && output.contains("not used"),
        "{output}"
    );
    assert!(pi(&["trust", "allow"]).await.contains("It is trusted"));
    home.file(".pi/extensions/theirs.ts", &format!("{THEIRS}\n// more"));
    let output = pi(&["trust", "status", "--json"]).await;
    let output: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        (&output["trusted"], &output["needsTrust"]),
        (&json!(false), &json!(true))
    );
    assert!(pi(&["trust", "diff"]).await.contains("+// more"));
    pi(&["trust", "deny"]).await;
    assert!(pi(&["trust", "list"]).await.starts_with("not trusted "));
    pi(&["trust", "forget"]).await;
    assert_eq!(pi(&["trust", "list"]).await, "There are no answers.\n");
    home.run(&["trust", "allow", "nowhere"], "").await.failed(1);
}
