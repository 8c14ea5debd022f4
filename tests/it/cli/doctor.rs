//! `pi doctor` and the files that move when a session starts.

use std::fs;
use std::path::PathBuf;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Reference, read_jsonl};

fn agent_file(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.agent_dir().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn doctor_finds_nothing_wrong_with_a_new_installation() {
    let home = Home::bare();
    let output = home.run(&["doctor"], "").await.ok();
    assert!(output.ends_with("\nNothing is wrong.\n"), "{output}");
    let own = env!("CARGO_PKG_VERSION");
    let versions = format!(
        "pi 0.87.1+rs.{own}: program {own}, with the extension API and the RPC protocol of 0.87.1\n"
    );
    assert!(output.starts_with(&versions), "{output}");
    assert!(output.contains("ok       extensions\n"), "{output}");
    assert_eq!(
        fs::read_dir(home.agent_dir()).unwrap().count(),
        0,
        "nothing is made"
    );
    let report: Value =
        serde_json::from_str(&home.run(&["doctor", "--json"], "").await.ok()).unwrap();
    assert_eq!(
        (&report["errors"], &report["warnings"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        (&report["program"], &report["compared"]),
        (&json!(own), &json!("0.87.1"))
    );
    let error = home.run(&["doctor", "--what"], "").await.failed(1);
    assert!(
        error.starts_with("Unknown option --what for \"doctor\"."),
        "{error}"
    );
}

#[tokio::test]
async fn doctor_names_each_broken_file_and_its_repair() {
    let home = Home::bare();
    let marker = home.cwd().join("an-extension-ran");
    let runs = format!(
        "require('fs').writeFileSync({:?}, ''); export default () => {{}};",
        marker.display().to_string()
    );
    let good = home.extension("good.ts", &runs);
    let wrong = home.extension("wrong.ts", "export default (\n  => {}");
    let settings = agent_file(
        &home,
        "settings.json",
        r#"{"defaultProjectTrust": "always", "retry": {"enabled": "yes"}, "typo": 1, "theme": "gone", "packages": ["git:h.org/u/r", "./nowhere"],
            "defaultProvider": "anthropic", "defaultModel": "gone", "shellPath": "/no/such/shell"}"#,
    );
    let project = home.file(
        ".pi/settings.json",
        "{\n  \"theme\": \"dark\"\n  \"x\": 1\n}",
    );
    let auth = agent_file(
        &home,
        "auth.json",
        r#"{"anthropic": {"type": "api_key"}, "openai": {"type": "api_key", "key": "k"}}"#,
    );
    let models = agent_file(&home, "models.json", "{\"providers\": {\"x\": {}}}");
    let keys = agent_file(
        &home,
        "keybindings.json",
        r#"{"app.clear": "hyper+x", "app.exit": "f1", "app.suspend": "F1"}"#,
    );
    let theme = agent_file(
        &home,
        "themes/t.json",
        r#"{"name": "t", "colors": {"accent": 300}}"#,
    );
    let skill = agent_file(&home, "skills/s/SKILL.md", "no description");
    let prompt = agent_file(&home, "prompts/p.md", "---\na: [\n---\n");
    let lock = home.agent_dir().join("auth.json.lock");
    fs::create_dir(&lock).unwrap();
    fs::File::open(&lock)
        .unwrap()
        .set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(600))
        .unwrap();
    let tools = agent_file(&home, "tools/mine.ts", "")
        .parent()
        .unwrap()
        .to_owned();

    let output = home.run(&["doctor", "--json"], "").await;
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let has = |level: &str, path: &PathBuf, part: &str| {
        let found = findings.iter().any(|finding| {
            finding["level"] == level
                && finding["path"] == json!(path)
                && finding["message"].as_str().unwrap().contains(part)
                && finding["fix"].as_str().is_some_and(|fix| !fix.is_empty())
        });
        assert!(found, "{level} {}: {part}\n{report:#}", path.display());
    };
    has("warning", &settings, "\"retry.enabled\" is ignored");
    has("note", &settings, "\"typo\"");
    has("warning", &settings, "The theme \"gone\"");
    has("warning", &settings, "anthropic/gone");
    has("error", &settings, "git:h.org/u/r is not installed");
    has("error", &settings, "./nowhere is not installed");
    has("error", &settings, "/no/such/shell");
    has("error", &project, "line 3 column 3");
    has("warning", &auth, "mode 644");
    has("warning", &auth, "The entry of anthropic");
    has("error", &models, "Provider x");
    has("warning", &keys, "\"hyper+x\" is no key");
    has("warning", &keys, "f1 is bound to app.exit and app.suspend");
    has("warning", &theme, "300 is no color");
    has("warning", &skill, "needs a description");
    has("warning", &prompt, "cannot be read");
    has("error", &wrong, "line 2, column 3");
    has("warning", &lock, "Its owner has died");
    has("warning", &tools, "custom tools");
    assert_eq!(report["errors"], 6, "{report:#}");
    assert!(
        !findings
            .iter()
            .any(|finding| finding["path"] == json!(good)),
        "{report:#}"
    );
    assert!(!marker.exists());
    assert!(lock.exists(), "nothing is changed");

    let words = home.run(&["doctor"], "").await;
    assert_eq!(words.status.code(), Some(1));
    let expected = format!("  error: {}\n    line 2, column 3: ", wrong.display());
    assert!(words.stdout.contains(&expected), "{}", words.stdout);
    assert!(
        words.stdout.contains("    -> pi install git:h.org/u/r\n"),
        "{}",
        words.stdout
    );
    assert!(words.stdout.contains("\n6 errors, "), "{}", words.stdout);
    // The keys themselves appear nowhere.
    assert!(!words.stdout.contains("\"k\""));
}

#[cfg(unix)]
#[tokio::test]
async fn doctor_reports_unusable_folders() {
    let home = Home::bare();
    agent_file(&home, "sessions", "a file where the folder should be");
    let output = home.run(&["doctor"], "").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        output.stdout.contains("sessions is no folder"),
        "{}",
        output.stdout
    );
}

#[tokio::test]
async fn files_of_earlier_versions_move_as_in_the_original() {
    let mut trees = Vec::new();
    for ours in [true, false] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        let settings = json!({"apiKeys": {"openai": "k"}, "defaultProjectTrust": "always", "defaultProvider": model_server::PROVIDER,
            "defaultModel": model_server::MODEL});
        agent_file(
            &home,
            "settings.json",
            &serde_json::to_string_pretty(&settings).unwrap(),
        );
        agent_file(
            &home,
            "oauth.json",
            r#"{"anthropic": {"refresh": "r", "access": "a", "expires": 1}}"#,
        );
        let header = r#"{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w/x"}"#;
        agent_file(&home, "2026_a.jsonl", &format!("{header}\n"));
        agent_file(&home, "tools/fd", "fd");
        agent_file(&home, "commands/old.md", "Old $1");
        agent_file(
            &home,
            "keybindings.json",
            r#"{"zzz": "x", "clear": "ctrl+x", "cursorUp": ["up"]}"#,
        );
        home.file(".pi/commands/here.md", "Here");
        server.push(Answer::text("ok"));
        let arguments = ["-p", "--no-session", "/old thing"];
        match ours {
            true => home.run(&arguments, "").await.ok(),
            false => {
                Reference::install();
                home.run_original(&arguments).await.ok()
            }
        };
        let request = server.last_request().body.to_string();
        assert!(request.contains("Old thing"), "{request}");
        let read = |name: &str| {
            let text = fs::read_to_string(home.agent_dir().join(name));
            text.unwrap_or_else(|error| format!("{name}: {error}"))
        };
        let auth: Value = serde_json::from_str(&read("auth.json")).unwrap();
        let settings: Value = serde_json::from_str(&read("settings.json")).unwrap();
        let moved = read_jsonl(&home.agent_dir().join("sessions/--w-x--/2026_a.jsonl"));
        assert_eq!(moved[0]["id"], "a");
        let gone = ["oauth.json", "2026_a.jsonl", "tools/fd", "commands"];
        let left = gone.map(|name| home.agent_dir().join(name).exists());
        trees.push((
            auth,
            settings,
            read("keybindings.json"),
            [
                read("oauth.json.migrated"),
                read("bin/fd"),
                read("prompts/old.md"),
            ],
            left,
            home.cwd().join(".pi/prompts/here.md").exists(),
        ));
    }
    assert_eq!(trees[0], trees[1]);
    assert_eq!(trees[0].4, [false; 4]);
    assert_eq!(trees[0].1.get("apiKeys"), None);
}

/// One wrong limit discarded all others, and an unknown event name was not reported.
#[tokio::test]
async fn a_wrong_event_limit_is_named_and_the_others_hold() {
    let home = Home::bare();
    home.settings(json!({"extensionTimeouts": {"events": {
        "tool_cal": 500, "tool_call": "x", "session_switch": 5, "agent_start": 200,
    }}}));
    home.extension(
        "hangs.ts",
        "export default (pi) => pi.on(\"agent_start\", () => new Promise((done) => setTimeout(done, 5000)));",
    );
    let unknown = "\"extensionTimeouts.events.tool_cal\" has no effect: There is no event \
                   \"tool_cal\". Is \"tool_call\" meant? The events are: resources_discover, session_start, ";
    let former = "\"extensionTimeouts.events.session_switch\" has no effect: The event \
                  \"session_switch\" is no more: use session_start";
    let wrong = "\"extensionTimeouts.events.tool_call\" is ignored: invalid type: string \"x\", \
                 expected a whole number of milliseconds, at least 1";
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.ok(json!({"type": "get_state"})).await;
    let is_warning = |line: &Value| line["type"] == "extension_warning";
    rpc.ok(json!({"type": "reload"})).await;
    let reported: Vec<Value> = rpc.lines().into_iter().filter(is_warning).collect();
    let output = rpc.stderr();
    for text in [unknown, former, wrong] {
        assert!(output.contains(text), "{text}: {output}");
        let again = |line: &Value| {
            line["message"]
                .as_str()
                .is_some_and(|message| message.contains(text))
        };
        assert!(reported.iter().any(again), "{text}: {reported:#?}");
    }
    // The valid limit holds although another one is invalid.
    rpc.send(&json!({"type": "prompt", "message": "hello"}).to_string())
        .await;
    let is_late =
        |line: &Value| line["type"] == "extension_error" && line["event"] == "agent_start";
    let late = rpc.wait("the deadline", is_late).await;
    assert!(
        late["error"].as_str().unwrap().contains("within 0.2 s"),
        "{late}"
    );
    let from = late["error"].as_str().unwrap();
    assert!(from.contains("pi continues without it"), "{from}");
    rpc.close().await;
    let output = home.run(&["doctor"], "").await.stdout;
    for text in [unknown, former, wrong] {
        assert!(output.contains(text), "{text}: {output}");
    }
}
