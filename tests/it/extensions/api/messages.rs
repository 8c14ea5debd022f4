//! Messages that extensions send: when the model answers them, and which failures are reported.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, prompt, text_of};

#[tokio::test]
async fn a_message_without_a_turn_is_stored() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "notes.ts",
        include_str!("fixtures/messages/a-message-without-a-turn-is-stored.ts"),
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::tool("bash", json!({"command": "echo hi"})));
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    assert_eq!(server.requests().len(), 2, "nobody asked for another turn");
    // A message at the end of a run is for the next one, as in the original.
    server.push(Answer::text("Again."));
    rpc.run("again").await;
    let second = server.requests()[1].body.to_string();
    assert!(second.contains("note 1"), "the run goes on: {second}");
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    let notes: Vec<&str> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "custom")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(notes, ["note 1", "note 2", "at the end", "note 3"]);
    // The messages are in the file as well.
    rpc.close().await;
    let mut rpc = home.rpc(&["-c"]);
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    assert!(messages.to_string().contains("at the end"), "{messages}");
}

#[tokio::test]
async fn an_early_user_message_is_reported_with_its_extension() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let path = home.extension(
        "early.ts",
        r#"export default (pi) => {
            let said = false;
            pi.on("turn_start", () => {
                if (!said) pi.sendUserMessage("and this");
                said = true;
            });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::tool("bash", json!({"command": "sleep 0.2"})));
    server.push(Answer::text("Done."));
    rpc.ok(prompt("go")).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["extensionPath"], path.display().to_string());
    assert_eq!(error["event"], "send_user_message");
    let text = error["error"].as_str().unwrap();
    assert!(
        text.contains("Specify deliverAs ('steer' or 'followUp')"),
        "{error}"
    );
}

/// Such a message started a run, so that loops that both originals end ran for ever.
#[tokio::test]
async fn a_user_message_in_agent_end_is_refused_before_an_await() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "loop.ts",
        r#"export default (pi) => {
            let runs = 0;
            pi.on("agent_end", async () => {
                runs += 1;
                if (runs === 1) pi.sendUserMessage("at once");
                if (runs > 1) return;
                await new Promise((resolve) => setTimeout(resolve, 5));
                pi.sendUserMessage("after a wait");
            });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("One."));
    server.push(Answer::text("Two."));
    rpc.ok(prompt("go")).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["event"], "send_user_message", "{error}");
    let text = error["error"].as_str().unwrap();
    assert!(text.starts_with("Agent is already processing."), "{error}");
    rpc.event("agent_settled").await;
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let reported = requests[1].body["messages"].to_string();
    assert!(
        reported.contains("after a wait") && !reported.contains("at once"),
        "{reported}"
    );
}

/// `pi -c` continued that session instead of the last conversation.
#[tokio::test]
async fn entries_before_the_first_message_create_no_session() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "mark.ts",
        r#"export default (pi) => pi.on("session_start", (_, ctx) => {
            pi.appendEntry("mark", { at: 1 });
            pi.setSessionName("work");
            pi.sendMessage({ customType: "banner", content: "welcome", display: true });
            pi.setLabel(ctx.sessionManager.getLeafId(), "here");
        });"#,
    );
    server.push(Answer::text("Hello."));
    let mut rpc = home.rpc(&[]);
    rpc.run("hi").await;
    let first = rpc.ok(json!({"type": "get_state"})).await["sessionFile"].clone();
    rpc.close().await;
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    rpc.close().await;
    let mut rpc = home.rpc(&["-c"]);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["sessionFile"], first);
    let text = std::fs::read_to_string(first.as_str().unwrap()).unwrap();
    // Entries from before the first message are in its file.
    for kept in [r#""at":1"#, "welcome", r#""label":"here""#, "Hello."] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

/// Both originals accept values that are no booleans, and missing names; their files could not be
/// read here.
#[tokio::test]
async fn loosely_typed_messages_are_taken_as_in_the_original() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Hello."));
    let home = Home::new(&server);
    home.extension(
        "loose.ts",
        r#"export default (pi) => pi.registerCommand("say", { handler: async () => {
            pi.sendMessage({ customType: "card", content: "a card", display: { type: "content" } });
            pi.sendMessage({ content: "nameless", display: 1 });
            pi.sendMessage({ customType: "quiet", content: "quiet", display: "" });
        } });"#,
    );
    let texts = ["a card", "nameless", "quiet", "hi"];
    for original in [true, false] {
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        rpc.ok(prompt("/say")).await;
        rpc.run("hi").await;
        let reported = server.last_request().body["messages"].to_string();
        assert!(
            texts.iter().all(|text| reported.contains(text)),
            "{reported}"
        );
        let state = rpc.ok(json!({"type": "get_state"})).await;
        rpc.close().await;
        let file = state["sessionFile"].as_str().unwrap();
        let mut rpc = home.rpc(&["--session", file]);
        let messages = rpc.ok(json!({"type": "get_messages"})).await;
        let messages = messages["messages"].as_array().unwrap();
        let found: Vec<_> = messages.iter().map(text_of).take(4).collect();
        assert_eq!(found, texts, "original: {original}");
        let shown: Vec<_> = messages[..3].iter().map(|it| &it["display"]).collect();
        assert_eq!(shown, [true, true, false]);
        rpc.close().await;
    }
}

#[tokio::test]
async fn a_message_without_content_is_not_sent_to_the_model() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Hello."));
    let home = Home::new(&server);
    home.extension(
        "empty.ts",
        r#"export default (pi) => pi.on("session_start", () => {
            pi.sendMessage({ customType: "empty", content: null, display: true });
            pi.sendMessage({ customType: "empty", display: true });
        });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.run("hi").await;
    let messages = server.last_request().body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 1, "{messages}");
    assert_eq!(text_of(&messages[0]), "hi");
}

/// Extensions reach behind the types of `ctx.sessionManager`, which the originals allow.
#[tokio::test]
async fn the_open_session_takes_entries_of_extensions() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        server.repeat(Answer::text("Hello."));
        let home = Home::new(&server);
        home.extension(
            "writes.ts",
            include_str!("fixtures/messages/the-open-session-takes-entries-of-extensions.ts"),
        );
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        rpc.ok(prompt("/write")).await;
        let reported = rpc.ui("notify").await;
        let expected = r#"[{"x":1},"note","for later",true,{"y":1},"here","Named"]"#;
        assert_eq!(reported["message"], expected, "original: {original}");
        rpc.run("hi").await;
        let now = server.last_request().body["messages"].to_string();
        assert!(!now.contains("for later"), "original: {original}: {now}");
        rpc.close().await;
        let mut rpc = home.rpc(&["-c"]);
        rpc.run("and now?").await;
        let later = server.last_request().body["messages"].to_string();
        assert!(later.contains("for later"), "{later}");
    }
}
