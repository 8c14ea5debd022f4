//! Trust in a project beyond the question at the start: changes that tools make out of sight, files
//! that are new since the last session, and the question over RPC.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, command, prompt, text_of};

/// An extension that says `text` at each start of a session.
fn says(text: &str) -> String {
    format!(
        "export default (pi) => pi.on('session_start', (event, ctx) => ctx.ui.notify('{text} ' + event.reason));"
    )
}

/// An extension with a command that loads everything again.
const AGAIN: &str =
    "export default (pi) => pi.registerCommand('again', { handler: (_, ctx) => ctx.reload() });";

fn notices(rpc: &Rpc, text: &str) -> usize {
    let lines = rpc.lines();
    let is_notice = |line: &&Value| {
        let message = line["message"].as_str().unwrap_or_default();
        line["method"] == "notify" && message.contains(text)
    };
    lines.iter().filter(is_notice).count()
}

/// Plants a script that changes `file` when a tool runs it. Its line does not show the write.
fn plant(home: &Home, server: &ModelServer, file: &std::path::Path, text: &str) {
    home.file("payload", text);
    let file = file.display();
    home.file(
        "install.sh",
        &format!("cp payload tmp && mv tmp '{file}'\n"),
    );
    server.push(Answer::tool("bash", json!({"command": "sh install.sh"})));
    server.push(Answer::text("Done."));
}

#[tokio::test]
async fn hidden_writes_are_asked_about_before_they_load() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"protectedPaths": "ask", "extensionWatch": true}));
    let mine = home.extension("mine.ts", &says("mine 1"));
    let theirs = home.file(".pi/extensions/theirs.ts", &says("theirs 1"));
    let mut rpc = home.rpc(&[]);
    // Extensions of the project come first.
    rpc.notified("theirs 1 startup").await;
    rpc.notified("mine 1 startup").await;
    for (file, source, answer) in [
        (&mine, says("mine 2"), "Do not load it"),
        (&theirs, says("theirs 2"), "Do not load it"),
        (&theirs, says("theirs 3"), "Load it"),
    ] {
        plant(&home, &server, file, &source);
        rpc.ok(prompt("install it")).await;
        let question = rpc.ui("select").await;
        let title = question["title"].as_str().unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(
            title.contains("protected place") && title.contains(name),
            "{title}"
        );
        assert_eq!(notices(&rpc, "theirs 2") + notices(&rpc, "theirs 3"), 0);
        rpc.reply(&question, json!({ "value": answer })).await;
        let reported = match answer {
            "Load it" => "theirs 3 reload",
            _ => "the user does not allow it",
        };
        rpc.wait(reported, |line| {
            line["message"]
                .as_str()
                .is_some_and(|text| text.contains(reported))
        })
        .await;
    }
    // A refused file stays out when the user asks for everything again, and is asked about.
    rpc.begin("again", command("reload")).await;
    let question = rpc.ui("select").await;
    assert!(
        question["title"].as_str().unwrap().contains("mine.ts"),
        "{question}"
    );
    rpc.reply(&question, json!({"value": "Do not load it"}))
        .await;
    let report = rpc.response("again").await;
    assert!(
        report["data"]["kept"].to_string().contains("mine.ts"),
        "{report}"
    );
    assert_eq!(notices(&rpc, "mine 2"), 0);
    assert_eq!(notices(&rpc, "theirs 2"), 0);
    assert!(notices(&rpc, "mine 1 reload") > 0);
    rpc.close().await;
}

/// A process in the background wrote after the time of its tool, and the file was loaded.
#[tokio::test]
async fn writes_of_a_process_left_behind_are_asked_about() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"protectedPaths": "ask", "extensionWatch": true}));
    let mine = home.extension("mine.ts", &says("mine 1"));
    let mut rpc = home.rpc(&[]);
    rpc.notified("mine 1 startup").await;
    home.file("payload", &says("mine 2"));
    // Longer than the tolerance after the end of a tool. A file's time cannot be set to a later one.
    let script = format!("sleep 4\ncp payload tmp && mv tmp '{}'\n", mine.display());
    home.file("install.sh", &script);
    let line = "sh install.sh >/dev/null 2>&1 &";
    server.push(Answer::tool("bash", json!({ "command": line })));
    server.push(Answer::text("Done."));
    rpc.run("install it").await;
    let question = rpc.ui("select").await;
    let title = question["title"].as_str().unwrap();
    assert!(title.contains("mine.ts"), "{title}");
    rpc.reply(&question, json!({"value": "Do not load it"}))
        .await;
    rpc.wait("the line", |line| {
        let message = line["message"].as_str();
        message.is_some_and(|text| text.contains("the user does not allow it"))
    })
    .await;
    assert_eq!(notices(&rpc, "mine 2"), 0);
    rpc.close().await;
}

#[tokio::test]
async fn visible_writes_are_asked_about_once() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"protectedPaths": "ask", "extensionWatch": true}));
    home.extension("mine.ts", &says("mine"));
    let mut rpc = home.rpc(&[]);
    rpc.notified("mine startup").await;
    let write = json!({"path": ".pi/extensions/theirs.ts", "content": says("theirs")});
    server.push(Answer::tool("write", write));
    server.push(Answer::text("Done."));
    rpc.ok(prompt("write it")).await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": "Write it"})).await;
    rpc.notified("theirs reload").await;
    let lines = rpc.lines();
    let questions = lines.iter().filter(|line| line["method"] == "select");
    assert_eq!(questions.count(), 1);
    rpc.close().await;
}

#[tokio::test]
async fn hidden_writes_without_a_user_are_not_loaded() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"protectedPaths": "ask"}));
    home.extension("again.ts", AGAIN);
    let marker = home.cwd().join("ran");
    let source = format!(
        "import {{ writeFileSync }} from 'node:fs'; writeFileSync('{}', ''); export default () => {{}};",
        marker.display()
    );
    fs::create_dir_all(home.cwd().join(".pi/extensions")).unwrap();
    let theirs = home.cwd().join(".pi/extensions/theirs.ts");
    plant(&home, &server, &theirs, &source);
    let finished = home.run(&["-p", "install it", "/again"], "").await;
    assert!(theirs.exists());
    assert!(!marker.exists());
    let output = &finished.stderr;
    assert!(
        output.contains("theirs.ts") && output.contains("no user is here to allow it"),
        "{output}"
    );
    // Without the setting it is loaded.
    home.settings(json!({}));
    home.run(&["-p", "/again"], "").await;
    assert!(marker.exists());
}

#[tokio::test]
async fn hidden_changes_of_settings_are_not_loaded() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"protectedPaths": "ask", "extensionWatch": true}));
    home.extension("mine.ts", &says("mine"));
    let outside = home.file("outside.ts", &says("outside"));
    let mut rpc = home.rpc(&[]);
    rpc.notified("mine startup").await;
    let file = home.agent_dir().join("settings.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    settings["extensions"] = json!([outside]);
    plant(&home, &server, &file, &settings.to_string());
    rpc.ok(prompt("install it")).await;
    let question = rpc.ui("select").await;
    assert!(
        question["title"]
            .as_str()
            .unwrap()
            .contains("settings.json"),
        "{question}"
    );
    rpc.reply(&question, json!({"value": "Do not load it"}))
        .await;
    rpc.wait("the line", |line| {
        let message = line["message"].as_str();
        message.is_some_and(|text| text.starts_with("Not loaded: "))
    })
    .await;
    rpc.begin("again", command("reload")).await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": "Do not load it"}))
        .await;
    let refused = rpc.response("again").await;
    assert_eq!(refused["success"], false, "{refused}");
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("protectedPaths"),
        "{refused}"
    );
    assert_eq!(notices(&rpc, "outside"), 0);
    rpc.begin("again 2", command("reload")).await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": "Load it"})).await;
    assert_eq!(rpc.response("again 2").await["success"], true);
    rpc.notified("outside reload").await;
    rpc.close().await;
}

#[tokio::test]
async fn changed_files_of_a_trusted_project_are_listed_once() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    let named = home.agent_dir().join("../../dev/named.ts");
    fs::create_dir_all(named.parent().unwrap().join("lib")).unwrap();
    fs::write(&named, format!("import './lib/part'; {}", says("named"))).unwrap();
    let part = named.with_file_name("lib").join("part.ts");
    fs::write(&part, "export {};").unwrap();
    home.settings(json!({"extensions": [named]}));
    home.file(".pi/extensions/theirs.ts", &says("theirs"));
    let stderr = async || home.run(&["-p", "hi"], "").await.stderr;
    let lists = |output: &str| output.matches("since the last session").count();
    let output = stderr().await;
    assert_eq!(lists(&output), 0, "{output}");
    home.file(".pi/extensions/theirs.ts", &format!("{}\n", says("theirs")));
    home.file(
        ".pi/skills/s/SKILL.md",
        "---\nname: s\ndescription: d\n---\n",
    );
    fs::write(&part, "export const changed = 1;").unwrap();
    let output = stderr().await;
    assert!(
        output.contains("changed .pi/extensions/theirs.ts")
            && output.contains("added .pi/skills/s/SKILL.md")
            && output.contains("dev/lib/part.ts"),
        "{output}"
    );
    let output = stderr().await;
    assert_eq!(lists(&output), 0, "{output}");
    // A project that is left out loads nothing that could be listed.
    home.settings(json!({"defaultProjectTrust": "never"}));
    home.file(".pi/extensions/theirs.ts", &says("theirs again"));
    let output = stderr().await;
    assert_eq!(lists(&output), 0, "{output}");
}

#[tokio::test]
async fn the_first_extension_of_a_user_is_listed() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.run(&["-p", "hi"], "").await.ok();
    home.extension("first.ts", &says("first"));
    let output = home.run(&["-p", "hi"], "").await.stderr;
    assert!(output.contains("added first.ts"), "{output}");
}

#[tokio::test]
async fn trust_can_be_changed_over_rpc() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"defaultProjectTrust": "ask"}));
    let mut rpc = home.rpc(&[]);
    let trust = json!({"type": "trust"});
    let nothing = json!({"needsTrust": false, "answered": false, "trusted": true});
    assert_eq!(rpc.ok(trust.clone()).await, nothing);
    rpc.close().await;

    home.file(".pi/extensions/theirs.ts", &says("theirs"));
    let mut rpc = home.rpc(&[]);
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": "Do not trust"})).await;
    rpc.ok(command("get_state")).await;
    assert_eq!(notices(&rpc, "theirs"), 0);
    for (answer, answered, trusted) in [
        (json!({"cancelled": true}), false, false),
        (json!({"value": "Trust"}), true, true),
        (json!({"value": "Do not trust"}), true, false),
    ] {
        rpc.begin("trust", trust.clone()).await;
        let request = rpc.event("project_trust_request").await;
        assert_eq!(request["resources"][0]["name"], ".pi/extensions/theirs.ts");
        let question = rpc.ui("select").await;
        rpc.reply(&question, answer).await;
        if trusted {
            rpc.notified("theirs reload").await;
        }
        let response = rpc.wait("the response", |line| line["id"] == "trust").await;
        let expected = json!({"needsTrust": true, "answered": answered, "trusted": trusted});
        assert_eq!(response["data"], expected, "{response}");
    }
    let recorded = fs::read_to_string(home.agent_dir().join("trust.json")).unwrap();
    assert!(recorded.contains("false"), "{recorded}");
    assert_eq!(notices(&rpc, "theirs"), 1);
    rpc.close().await;
}

/// Settings of a project that was left out at the start must not come in with another session or a
/// reload.
#[tokio::test]
async fn refused_settings_stay_out_of_later_sessions() {
    for (default, arguments, answer) in [
        ("never", &[][..], None),
        ("always", &["--no-approve"][..], None),
        ("ask", &[][..], Some("Do not trust for this session")),
        ("ask", &[][..], Some("Do not trust")),
        // Otherwise they hold.
        ("always", &[][..], None),
    ] {
        let server = ModelServer::start().await;
        server.repeat(Answer::text("Fine."));
        let home = Home::new(&server);
        home.settings(json!({"defaultProjectTrust": default}));
        let marker = home.cwd().join("ran");
        let theirs = json!({
            "steeringMode": "all", "followUpMode": "all", "defaultThinkingLevel": "high",
            "defaultModel": "theirs", "compaction": {"enabled": false}, "retry": {"enabled": false},
            "sessionDir": "theirs", "shellCommandPrefix": format!("touch {};", marker.display()),
            "permissions": {"deny": ["bash"]},
        });
        home.file(".pi/settings.json", &theirs.to_string());
        let mut rpc = home.rpc(arguments);
        if let Some(answer) = answer {
            let question = rpc.ui("select").await;
            rpc.reply(&question, json!({ "value": answer })).await;
        }
        if default == "always" && arguments.is_empty() {
            let state = rpc.ok(command("get_state")).await;
            assert_eq!(state["thinkingLevel"], "high", "{state}");
            assert_eq!(state["steeringMode"], "all", "{state}");
            rpc.close().await;
            continue;
        }
        rpc.answer_to("hi").await;
        let state = rpc.ok(command("get_state")).await;
        assert_eq!(state["thinkingLevel"], "medium", "{state}");
        let first = state["sessionFile"].clone();
        let messages = rpc.ok(command("get_fork_messages")).await;
        let entry = messages["messages"][0]["entryId"].clone();
        for cause in [
            command("reload"),
            command("new_session"),
            json!({"type": "switch_session", "sessionPath": first}),
            json!({"type": "fork", "entryId": entry}),
            command("reload"),
        ] {
            rpc.ok(cause.clone()).await;
            let now = rpc.ok(command("get_state")).await;
            for member in [
                "steeringMode",
                "followUpMode",
                "thinkingLevel",
                "autoCompactionEnabled",
                "model",
            ] {
                assert_eq!(now[member], state[member], "{default} {answer:?} {cause}");
            }
            let file = now["sessionFile"].as_str().unwrap();
            let own = home.agent_dir().join("sessions").canonicalize().unwrap();
            assert!(std::path::Path::new(file).starts_with(own), "{file}");
            server.push(Answer::tool("bash", json!({"command": "echo it ran"})));
            server.push(Answer::text("Done."));
            let events = rpc.run("go").await;
            let mut ends = events
                .iter()
                .filter(|event| event["type"] == "tool_execution_end");
            assert_eq!(text_of(&ends.next().unwrap()["result"]).trim(), "it ran");
            assert!(!marker.exists(), "{default} {answer:?} {cause}");
        }
        rpc.close().await;
    }
}
