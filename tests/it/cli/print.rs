//! The command line: print and JSON mode, stdin, errors and exit codes.

use model_server::{Answer, Block, MODEL, ModelServer, PROVIDER};
use serde_json::{Value, json};

use crate::support::{Home, text_of};

async fn set_up() -> (ModelServer, Home) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    (server, home)
}

#[tokio::test]
async fn version_and_help() {
    let home = Home::bare();
    let version = home.run(&["--version"], "").await;
    let whole = concat!("pi 0.87.1+rs.", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(version.stderr, whole);
    // Programs parse this output, so it has only digits and dots.
    assert_eq!(version.ok(), "0.87.1\n");
    let help = home.run(&["--help"], "").await;
    let output = help.stderr.clone() + help.ok().as_str();
    for flag in [
        "--mode",
        "--print",
        "--continue",
        "--session",
        "--extension",
        "--model",
    ] {
        assert!(output.contains(flag), "{flag} is missing: {output}");
    }
}

#[tokio::test]
async fn print_prints_the_text_of_the_last_answer() {
    let (server, home) = set_up().await;
    server.push(Answer::text("Wait.").then_tool("bash", json!({"command": "echo noise"})));
    let block = |text: &str| Block::Text(vec![text.into()]);
    server.push(Answer::blocks([block("One."), block("Two.")]));
    assert_eq!(home.run(&["-p", "go"], "").await.ok(), "One.\nTwo.\n");
}

#[tokio::test]
async fn several_prompts_are_sent_one_after_another() {
    let (server, home) = set_up().await;
    server.push(Answer::text("One."));
    server.push(Answer::text("Two."));
    assert_eq!(
        home.run(&["-p", "first", "second"], "").await.ok(),
        "Two.\n"
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn piped_stdin_goes_before_the_prompt() {
    let (server, home) = set_up().await;
    server.push(Answer::text("ok"));
    home.run(&["and this"], "  from a pipe\n").await.ok();
    assert_eq!(prompt_of(&server), "from a pipeand this");
}

#[tokio::test]
async fn files_go_before_the_prompt() {
    let (server, home) = set_up().await;
    let file = home.file("notes.txt", "buy milk\n");
    let file = file.canonicalize().unwrap();
    server.push(Answer::text("ok"));
    home.run(&["@notes.txt", "-p", "what?"], "").await.ok();
    let expected = format!(
        "<file name=\"{}\">\nbuy milk\n\n</file>\nwhat?",
        file.display()
    );
    assert_eq!(prompt_of(&server), expected);
    let missing = home.run(&["@gone.txt", "-p", "what?"], "").await.failed(1);
    assert!(missing.contains("Error: File not found: "), "{missing}");
}

/// The text of the only message of the only request.
fn prompt_of(server: &ModelServer) -> String {
    text_of(&server.last_request().body["messages"][0])
}

#[tokio::test]
async fn print_shows_errors_and_fails() {
    let (server, home) = set_up().await;
    server.push(Answer::error(400, "the dog ate it"));
    let finished = home.run(&["-p", "go"], "").await;
    assert_eq!(finished.stdout, "");
    let error = finished.failed(1);
    assert!(error.contains("the dog ate it"), "{error}");
}

#[tokio::test]
async fn json_mode_is_a_header_and_events() {
    let (server, home) = set_up().await;
    server.push(Answer::text("Hi."));
    let stdout = home.run(&["--mode", "json", "go"], "").await.ok();
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["version"]),
        (&json!("session"), &json!(3))
    );
    assert_eq!(lines[0], home.entries()[0]);
    let types: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        (types[1], *types.last().unwrap()),
        ("agent_start", "agent_end")
    );
}

#[tokio::test]
async fn json_mode_exits_with_zero_after_an_error_of_the_model() {
    let (server, home) = set_up().await;
    server.push(Answer::error(400, "the dog ate it"));
    let stdout = home.run(&["--mode", "json", "go"], "").await.ok();
    assert!(stdout.contains("the dog ate it"), "{stdout}");
}

#[tokio::test]
async fn unknown_options_are_named() {
    let (_server, home) = set_up().await;
    for option in ["--frobnicate", "-Q"] {
        let error = home.run(&[option], "").await.failed(1);
        assert!(
            error.contains(&format!("Unknown option: {option}")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn contradictory_options_are_refused() {
    let (_server, home) = set_up().await;
    home.file("notes.txt", "x");
    let error = home
        .run(&["--mode", "rpc", "@notes.txt"], "")
        .await
        .failed(1);
    assert!(
        error.contains("@file arguments are not supported in RPC mode"),
        "{error}"
    );
}

#[tokio::test]
async fn the_error_without_a_key_names_the_demo() {
    let home = Home::bare();
    let error = home.run(&["-p", "go"], "").await.failed(1);
    assert!(error.contains("No models available."), "{error}");
    assert!(error.contains("demo"), "{error}");
}

#[tokio::test]
async fn the_demo_needs_no_key_and_uses_tools() {
    let home = Home::bare();
    home.file("violets.txt", "violets are blue\n");
    let arguments = ["--provider", "demo", "--model", "demo", "--mode", "json"];
    let listed = home
        .run(&[&arguments[..], &["list the files"]].concat(), "")
        .await
        .ok();
    assert!(
        listed.contains(r#""type":"tool_execution_end""#),
        "{listed}"
    );
    assert!(listed.contains("violets.txt"), "{listed}");
    let read = home
        .run(&[&arguments[..], &["read violets.txt"]].concat(), "")
        .await
        .ok();
    assert!(read.contains("violets are blue"), "{read}");
}

#[tokio::test]
async fn the_log_has_no_secrets() {
    let (server, home) = set_up().await;
    server.push(Answer::error(400, "the dog ate it"));
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.args(["-p", "go"]).env("PI_LOG", "trace");
    drop(command.output().await.unwrap());
    let mut logs = String::new();
    for file in std::fs::read_dir(home.agent_dir().join("logs"))
        .unwrap()
        .map(|file| file.unwrap().path())
    {
        if file.extension().is_some_and(|extension| extension == "log") {
            logs += &std::fs::read_to_string(file).unwrap();
        }
    }
    for (what, text) in [
        ("the request", "a request is sent"),
        ("where it went", "/v1/messages"),
        ("the status", "status=400"),
        ("the end", "agent_end"),
    ] {
        assert!(logs.contains(text), "{what}: {logs}");
    }
    assert!(!logs.contains("scripted-key"), "{logs}");
}

#[tokio::test]
async fn extensions_can_be_named_or_left_out() {
    let (server, home) = set_up().await;
    let announce = |name: &str| {
        format!(
            r#"export default (pi) => pi.on("before_agent_start", (event) =>
                ({{ systemPrompt: event.systemPrompt + "\n{name} was here" }}));"#
        )
    };
    home.extension("found.ts", &announce("FOUND"));
    home.file("named.ts", &announce("NAMED"));
    let run = async |arguments: &[&str]| {
        server.push(Answer::text("ok"));
        home.run(arguments, "").await.ok();
        let system = server.last_request().body["system"].to_string();
        ["FOUND was here", "NAMED was here"].map(|text| system.contains(text))
    };
    assert_eq!(run(&["-p", "go"]).await, [true, false]);
    assert_eq!(run(&["-p", "go", "-e", "named.ts"]).await, [true, true]);
    assert_eq!(
        run(&["-p", "go", "-ne", "-e", "./named.ts"]).await,
        [false, true]
    );
}

/// A prompt for a model of the broken file went to another provider without a warning.
#[tokio::test]
async fn a_broken_models_file_is_reported_at_the_start() {
    let home = Home::bare();
    std::fs::create_dir_all(home.agent_dir()).unwrap();
    std::fs::write(home.agent_dir().join("models.json"), "{\"providers\":{").unwrap();
    let finished = home
        .run(
            &["--provider", "demo", "--model", "demo", "-p", "hello"],
            "",
        )
        .await;
    assert!(
        finished.stderr.contains("models.json"),
        "{}",
        finished.stderr
    );
    finished.ok();
}

/// The key is for one provider, and the default model may be another provider's.
#[tokio::test]
async fn an_api_key_without_a_model_is_refused() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let finished = home.run(&["-p", "--api-key", "secret", "hello"], "").await;
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("--api-key needs a model"),
        "{}",
        finished.stderr
    );
    assert_eq!(server.requests().len(), 0);
    server.push(Answer::text("Hi."));
    let model = format!("{PROVIDER}/{MODEL}");
    let arguments = ["-p", "--model", &model, "--api-key", "secret", "hello"];
    assert!(home.run(&arguments, "").await.status.success());
    assert_eq!(server.last_request().headers["x-api-key"], "secret");
}

#[tokio::test]
async fn an_argument_error_stands_alone_on_stderr() {
    let (_server, home) = set_up().await;
    let finished = home.run(&["--bogus", "hello"], "").await;
    assert_eq!(finished.stderr, "Error: Unknown option: --bogus\n");
    let finished = home.run(&["-p"], "").await;
    assert!(
        finished.stderr.contains("nothing was asked"),
        "{}",
        finished.stderr
    );
}

#[tokio::test]
async fn an_extension_message_does_not_replace_the_answer() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "summary.ts",
        r#"export default (pi) => {
            pi.on("agent_end", async () => {
                await new Promise((resolve) => setTimeout(resolve, 20));
                pi.sendMessage({ customType: "summary", content: "1 file changed", display: true });
            });
            pi.registerCommand("say", { handler: async () => {
                pi.sendMessage({ customType: "said", content: "said", display: true });
            } });
        };"#,
    );
    server.push(Answer::text("The answer."));
    assert_eq!(home.run(&["-p", "go"], "").await.ok(), "The answer.\n");
    server.push(Answer::error(400, "No."));
    let error = home.run(&["-p", "go"], "").await.failed(1);
    assert!(error.contains("No."), "{error}");
    // An answer of an earlier run is not printed.
    assert_eq!(home.run(&["-c", "-p", "/say"], "").await.ok(), "");
}
