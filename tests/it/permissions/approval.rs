//! Calls that rules deny, ask about and allow, in each mode.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, Terminal, read_jsonl, text_of};

/// Returns a server that calls `bash` with each line in turn, and a home with these rules.
async fn set_up(permissions: Value, lines: &[&str]) -> (ModelServer, Home) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "permissions": permissions }));
    for line in lines {
        server.push(Answer::tool("bash", json!({ "command": line })));
        server.push(Answer::text("Done."));
    }
    (server, home)
}

/// Returns the text of the last tool result that the model got.
fn last_result(events: &[Value]) -> String {
    let mut ends = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_end");
    text_of(&ends.next_back().expect("a tool result")["result"])
}

fn decisions(home: &Home) -> Vec<Value> {
    read_jsonl(&home.agent_dir().join("logs/decisions.jsonl"))
}

async fn hello(rpc: &mut Rpc) {
    let hello = json!({ "type": "hello", "capabilities": ["permissionRequests"] });
    rpc.ok(hello).await;
}

/// Answers the next `permission_request`, and returns it.
async fn answer(rpc: &mut Rpc, option: &str) -> Value {
    let requested = rpc.event("permission_request").await;
    let answer = json!({
        "type": "permission_response", "id": requested["id"], "option": option, "reason": "not today",
    });
    rpc.send(&answer.to_string()).await;
    requested
}

/// Sends a prompt without waiting for its end.
async fn start(rpc: &mut Rpc) {
    rpc.ok(crate::support::prompt("go")).await;
}

async fn finish(rpc: &mut Rpc) -> String {
    let end = rpc.event("tool_execution_end").await;
    rpc.event("agent_settled").await;
    text_of(&end["result"])
}

#[tokio::test]
async fn nothing_is_asked_or_logged_without_rules() {
    let (_server, home) = set_up(json!({}), &["echo ran"]).await;
    let events = home.rpc(&[]).run("go").await;
    assert_eq!(last_result(&events).trim(), "ran");
    assert!(!home.agent_dir().join("logs/decisions.jsonl").exists());
}

#[tokio::test]
async fn denied_calls_give_the_model_the_reason() {
    let rules = json!({ "deny": ["bash(touch *)"] });
    let (_server, home) = set_up(rules, &["echo a; sh -c 'touch made'"]).await;
    let events = home.rpc(&[]).run("go").await;
    let result = last_result(&events);
    assert!(result.contains("the rule bash(touch *) denies"), "{result}");
    assert!(!home.cwd().join("made").exists());
    let logged = decisions(&home);
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0]["allowed"], false);
    assert_eq!(logged[0]["decidedBy"], "rule");
    assert_eq!(logged[0]["rule"], "bash(touch *)");
    assert_eq!(logged[0]["previous"], "");
}

#[tokio::test]
async fn a_question_is_answered_over_rpc() {
    let rules = json!({ "ask": ["bash(touch *)", "write"] });
    let lines = [
        "touch a", "touch a", "touch b", "touch c", "touch c", "touch d",
    ];
    let (server, home) = set_up(rules, &lines).await;
    let mut rpc = home.rpc(&[]);
    hello(&mut rpc).await;

    start(&mut rpc).await;
    let requested = answer(&mut rpc, "allow_once").await;
    assert_eq!(requested["tool"], "bash");
    assert_eq!(requested["input"]["command"], "touch a");
    assert_eq!(requested["title"], "bash: touch a");
    let all = json!(["allow_once", "allow_session", "allow_always", "deny"]);
    assert_eq!(requested["options"], all);
    assert_eq!(requested["rules"], json!(["bash(touch a)"]));
    assert!(
        requested["reason"]
            .as_str()
            .unwrap()
            .contains("bash(touch *)")
    );
    finish(&mut rpc).await;
    assert!(home.cwd().join("a").exists());

    // The answer `allow_once` holds for one call.
    start(&mut rpc).await;
    answer(&mut rpc, "deny").await;
    let result = finish(&mut rpc).await;
    assert!(
        result.contains("denied this call of bash: not today"),
        "{result}"
    );

    start(&mut rpc).await;
    answer(&mut rpc, "allow_always").await;
    finish(&mut rpc).await;
    assert!(home.cwd().join("b").exists());
    let settings = std::fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings["permissions"]["allow"], json!(["bash(touch b)"]));

    start(&mut rpc).await;
    answer(&mut rpc, "allow_session").await;
    finish(&mut rpc).await;
    let questions = |rpc: &Rpc| {
        let lines = rpc.lines();
        let requested = lines
            .iter()
            .filter(|line| line["type"] == "permission_request");
        requested.count()
    };
    assert_eq!(questions(&rpc), 4);
    start(&mut rpc).await;
    finish(&mut rpc).await;
    assert_eq!(questions(&rpc), 4, "the session has the answer");

    // An abort withdraws the question.
    start(&mut rpc).await;
    let requested = rpc.event("permission_request").await;
    rpc.ok(json!({ "type": "abort" })).await;
    let ended = rpc.event("permission_request_end").await;
    assert_eq!(ended["id"], requested["id"]);
    rpc.event("agent_settled").await;
    assert!(!home.cwd().join("d").exists());

    let logged = decisions(&home);
    let answers: Vec<&Value> = logged.iter().map(|line| &line["answer"]).collect();
    let expected = ["allow_once", "deny", "allow_always", "allow_session"];
    assert_eq!(
        answers[..4],
        expected.map(|answer| json!(answer)).each_ref()[..]
    );
    assert_eq!(logged.len(), 6);
    assert_eq!(logged[5]["decidedBy"], "aborted");
    assert_eq!(logged[5]["allowed"], false);
    drop(server);
}

#[tokio::test]
async fn a_change_of_a_file_is_shown_with_its_diff() {
    let (server, home) = set_up(json!({ "ask": ["edit(*.txt)"] }), &[]).await;
    home.file("a.txt", "one\ntwo\n");
    let path = home.cwd().join("a.txt");
    server.push(Answer::tool(
        "write",
        json!({ "path": "a.txt", "content": "one\nthree\n" }),
    ));
    server.push(Answer::text("Done."));
    let mut rpc = home.rpc(&[]);
    hello(&mut rpc).await;
    start(&mut rpc).await;
    let requested = answer(&mut rpc, "deny").await;
    assert_eq!(requested["title"], "write a.txt");
    let canonical = std::fs::canonicalize(home.cwd()).unwrap().join("a.txt");
    assert_eq!(requested["locations"], json!([{ "path": canonical }]));
    let diff = requested["diff"].as_str().unwrap();
    assert!(diff.contains("-two\n+three\n"), "{diff}");
    assert_eq!(requested["annotations"]["destructiveHint"], true);
    finish(&mut rpc).await;
    assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
}

#[tokio::test]
async fn old_clients_are_asked_in_a_dialog() {
    let rules = json!({ "ask": ["bash(touch *)"] });
    let (_server, home) = set_up(rules, &["touch a", "touch b"]).await;
    let mut rpc = home.rpc(&[]);
    start(&mut rpc).await;
    let requested = rpc.ui("select").await;
    assert!(
        requested["title"]
            .as_str()
            .unwrap()
            .starts_with("Allow bash: touch a?")
    );
    assert_eq!(requested["options"][0], "Allow once");
    rpc.reply(&requested, json!({ "value": "Allow once" }))
        .await;
    finish(&mut rpc).await;
    assert!(home.cwd().join("a").exists());
    start(&mut rpc).await;
    let requested = rpc.ui("select").await;
    rpc.reply(&requested, json!({ "cancelled": true })).await;
    finish(&mut rpc).await;
    assert!(!home.cwd().join("b").exists());
}

#[tokio::test]
async fn calls_are_refused_where_no_user_can_be_asked() {
    for mode in [&["-p"][..], &["--mode", "json"]] {
        let rules = json!({ "ask": ["bash(touch *)"] });
        let (server, home) = set_up(rules, &["touch a"]).await;
        let arguments = [mode, &["go"][..]].concat();
        home.run(&arguments, "").await.ok();
        assert!(!home.cwd().join("a").exists());
        let request = server.last_request().body.to_string();
        assert!(request.contains("no user can be asked"), "{request}");
        assert_eq!(decisions(&home)[0]["decidedBy"], "nobody");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn line_mode_asks_at_the_prompt() {
    let rules = json!({ "ask": ["bash(touch *)"] });
    let (_server, home) = set_up(rules, &["touch a"]).await;
    let mut terminal = Terminal::open(&home, "xterm", &[]);
    terminal.see("/help lists the commands.");
    terminal.see("> ");
    terminal.line("go");
    terminal.see("Allow bash: touch a?");
    terminal.see("1-4> ");
    terminal.line("1");
    terminal.see("Done.");
    assert!(home.cwd().join("a").exists());
}

#[tokio::test]
async fn a_project_can_only_tighten() {
    let (_server, home) = set_up(
        json!({ "deny": ["bash(touch a)"] }),
        &["touch a", "touch b"],
    )
    .await;
    std::fs::create_dir_all(home.cwd().join(".pi")).unwrap();
    home.file(
        ".pi/settings.json",
        r#"{"permissions": {"allow": ["bash"], "deny": ["bash(touch b)"], "default": "allow"}}"#,
    );
    let mut rpc = home.rpc(&["--approve"]);
    for name in ["a", "b"] {
        let events = rpc.run("go").await;
        assert!(last_result(&events).contains("denies"));
        assert!(!home.cwd().join(name).exists());
    }
}

/// A rule that cannot be read may have been one to deny.
#[tokio::test]
async fn with_a_broken_rule_calls_are_asked_about() {
    let (_server, home) = set_up(json!({ "deny": ["bash(touch * && x)"] }), &["touch a"]).await;
    let mut rpc = home.rpc(&[]);
    hello(&mut rpc).await;
    start(&mut rpc).await;
    let requested = answer(&mut rpc, "deny").await;
    assert!(
        requested["reason"]
            .as_str()
            .unwrap()
            .contains("cannot be used"),
        "{requested}"
    );
    finish(&mut rpc).await;
    let mut lines = rpc.lines().into_iter();
    let reported = lines
        .find(|line| line["type"] == "extension_error")
        .unwrap();
    let file = home.agent_dir().join("settings.json");
    let ending = format!("correct \"permissions\" in {}", file.display());
    assert!(
        reported["error"].as_str().unwrap().ends_with(&ending),
        "{reported}"
    );
}

/// The extension changes the input that was approved, and tries to answer the question itself.
#[tokio::test]
async fn a_handler_that_changes_the_input_causes_a_new_question() {
    let rules = json!({ "ask": ["bash(touch *)"] });
    let (_server, home) = set_up(rules, &["touch a"]).await;
    home.extension(
        "swap.ts",
        r#"export default (pi) => {
  pi.on("tool_call", (event) => { event.input.command = "touch b"; });
  for (const name of ["permission_request", "ui_prompt_start"]) {
    try { pi.on(name, () => pi.sendMessage({ customType: "seen", content: name, display: true })); } catch {}
  }
};"#,
    );
    let mut rpc = home.rpc(&[]);
    hello(&mut rpc).await;
    start(&mut rpc).await;
    let first = answer(&mut rpc, "allow_once").await;
    assert_eq!(first["input"]["command"], "touch a");
    let second = answer(&mut rpc, "deny").await;
    assert_eq!(second["input"]["command"], "touch b");
    finish(&mut rpc).await;
    assert!(!home.cwd().join("a").exists() && !home.cwd().join("b").exists());
    let lines = rpc.raw_lines();
    assert!(
        !lines
            .iter()
            .any(|line| line.contains(r#""customType":"seen""#))
    );
}

/// The tool grep leaves out the file that a rule denies, and the shell does not read it either.
#[tokio::test]
async fn a_search_does_not_read_denied_files() {
    let rules = json!({ "deny": ["read(.env)"] });
    let (server, home) = set_up(rules, &[]).await;
    home.file(".env", "KEY=hunter2");
    home.file("a.txt", "KEY=public");
    let call = async |tool: &str, input: Value| {
        server.push(Answer::tool(tool, input));
        server.push(Answer::text("Done."));
        let arguments = ["--mode", "json", "--tools", "bash,grep", "go"];
        let lines = home.run(&arguments, "").await.ok();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        last_result(&lines.collect::<Vec<_>>())
    };
    let found = call("grep", json!({ "pattern": "KEY" })).await;
    assert!(found.starts_with("a.txt:1: KEY=public\n"), "{found}");
    assert!(found.contains("1 file or folder was left out"), "{found}");
    for line in ["grep -r KEY .", "cat *.txt .e*", "tar c . | cat"] {
        let refused = call("bash", json!({ "command": line })).await;
        assert!(
            refused.contains("which the rule read(.env) denies"),
            "{line}: {refused}"
        );
    }
    let allowed = call(
        "bash",
        json!({ "command": "grep -r KEY --include='*.txt' ." }),
    )
    .await;
    assert_eq!(allowed.trim(), "./a.txt:KEY=public");
    let seen = server
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect::<String>();
    assert!(!seen.contains("hunter2"), "{seen}");
}

/// A variable, and the history of a repository, gave what a rule denies.
#[tokio::test]
async fn files_that_only_the_shell_knows_are_not_read() {
    let rules = json!({ "deny": ["read(.env)"] });
    let (server, home) = set_up(rules, &[]).await;
    let files = [(".env", "KEY=hunter2"), ("a.txt", "KEY=public")];
    crate::support::registry::commit(&home.cwd(), &files);
    let call = async |line: &str| {
        server.push(Answer::tool("bash", json!({ "command": line })));
        server.push(Answer::text("Done."));
        let lines = home.run(&["--mode", "json", "go"], "").await.ok();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        last_result(&lines.collect::<Vec<_>>())
    };
    for line in [
        "FILE=$(ls -a | grep env); cat \"$FILE\"",
        "cat \"$(echo .env)\"",
        "for file in $(git ls-files); do cat $file; done",
        "git show HEAD:.env",
        "git cat-file -p HEAD:.env",
        "git show",
        "git log -p",
        "git diff -- .env",
        "git grep KEY",
        "git cat-file -p $(git rev-parse HEAD:.env)",
    ] {
        let refused = call(line).await;
        assert!(refused.contains("the rule read(.env)"), "{line}: {refused}");
    }
    for line in [
        "FILE=a.txt; cat $FILE",
        "for file in *.txt; do cat $file; done",
        "git show HEAD:a.txt",
        "git cat-file -p HEAD:a.txt",
    ] {
        assert_eq!(call(line).await.trim(), "KEY=public", "{line}");
    }
    let seen = server
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect::<String>();
    assert!(!seen.contains("hunter2"), "{seen}");
}

/// An extension may replace the tool grep, or read files with a tool of its own.
#[tokio::test]
async fn rules_about_reading_hold_for_extensions_as_the_docs_say() {
    let rules = json!({ "deny": ["read(.env)", "view(path:*secret*)"] });
    let (server, home) = set_up(rules, &[]).await;
    home.extension(
        "tools.ts",
        r#"export default (pi) => {
  for (const name of ["grep", "view"]) {
    pi.registerTool({
      name, label: name, description: name,
      parameters: { type: "object", properties: { path: { type: "string" } } },
      async execute(id, { path }) { return { content: [{ type: "text", text: `${name} ran on ${path}` }] }; },
    });
  }
};"#,
    );
    for (tool, path, runs) in [
        ("grep", ".env", false),
        ("grep", ".", true),
        ("view", ".env", true),
        ("view", "a/secret.txt", false),
    ] {
        server.push(Answer::tool(tool, json!({ "path": path })));
        server.push(Answer::text("Done."));
        let arguments = ["--mode", "json", "--tools", "grep,view", "go"];
        let lines = home.run(&arguments, "").await.ok();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let result = last_result(&lines.collect::<Vec<_>>());
        let ran = result == format!("{tool} ran on {path}");
        assert_eq!(ran, runs, "{tool} {path}: {result}");
    }
}

/// The question of a child session goes to the client of its parent.
#[tokio::test]
async fn a_child_session_asks_in_the_session_of_the_user() {
    let rules = json!({ "ask": ["bash(touch *)"] });
    let (server, home) = set_up(rules, &[]).await;
    home.extension(
        "child.ts",
        r#"import { createAgentSession, SessionManager } from "@mariozechner/pi-coding-agent";
export default (pi) => {
  pi.registerCommand("child", {
    handler: async (line, ctx) => {
      const { session } = await createAgentSession({
        cwd: ctx.cwd, model: ctx.model, sessionManager: SessionManager.inMemory(ctx.cwd), tools: ["bash"],
      });
      session.setSessionName("helper");
      await session.prompt(line);
      session.dispose();
    },
  });
};"#,
    );
    let mut rpc = home.rpc(&[]);
    hello(&mut rpc).await;
    for (file, option) in [("a", "allow_session"), ("b", "deny")] {
        server.push(Answer::tool(
            "bash",
            json!({ "command": format!("touch {file}") }),
        ));
        server.push(Answer::text("Done."));
        rpc.begin(file, crate::support::prompt("/child go")).await;
        let requested = answer(&mut rpc, option).await;
        assert_eq!(requested["childSession"], "helper", "{requested}");
        assert_eq!(
            requested["title"],
            format!("bash: touch {file} (child session helper)")
        );
        rpc.response(file).await;
    }
    // The answer for the session holds in another child session.
    server.push(Answer::tool("bash", json!({ "command": "touch a" })));
    server.push(Answer::text("Done."));
    rpc.ok(crate::support::prompt("/child go")).await;
    assert!(home.cwd().join("a").exists() && !home.cwd().join("b").exists());
    let authors: Vec<Value> = decisions(&home)
        .iter()
        .map(|it| it["decidedBy"].clone())
        .collect();
    assert_eq!(authors, ["user", "user", "rule"]);
}
