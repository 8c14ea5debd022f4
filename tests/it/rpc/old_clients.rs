//! Clients of all versions of the protocol: the names of 0.16, the images of 0.51, and additions
//! since 0.67.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, PIXEL, Rpc, command, idle, message_end, prompt, text_of};

#[tokio::test]
async fn a_client_of_0_16_finds_its_commands() {
    let (server, _home, mut rpc) = idle().await;
    // Queued while the session is idle, so it waits for the next run.
    let queued = rpc
        .request(json!({"type": "queue_message", "message": "in addition"}))
        .await;
    assert_eq!(queued["command"], "queue_message");
    rpc.ok(json!({"type": "set_queue_mode", "mode": "all"}))
        .await;
    let state = rpc.ok(command("get_state")).await;
    assert_eq!(
        (&state["queueMode"], &state["queuedMessageCount"]),
        (&json!("all"), &json!(1))
    );
    assert_eq!(state["steeringMode"], "all");
    server.push(Answer::text("one"));
    server.push(Answer::text("two"));
    rpc.run("about apples").await;
    rpc.run("about pears").await;
    let messages = rpc.ok(command("get_branch_messages")).await;
    let messages = messages["messages"].as_array().unwrap();
    let texts: Vec<_> = messages.iter().map(|message| &message["text"]).collect();
    assert_eq!(texts, ["about apples", "in addition", "about pears"]);
    let wrong = json!({"type": "branch", "entryIndex": 9999});
    let refused = rpc.request(wrong).await;
    assert_eq!(refused["errorCode"], "invalid_entry");
    let branch = json!({"type": "branch", "entryIndex": messages[2]["entryIndex"]});
    let branched = rpc.ok(branch).await;
    assert_eq!(branched, json!({"text": "about pears", "cancelled": false}));
    assert_eq!(rpc.ok(command("get_state")).await["messageCount"], 3);
    let reset = rpc.request(command("reset")).await;
    assert_eq!(reset["command"], "reset");
    assert_eq!(reset["data"], json!({"cancelled": false}));
    assert_eq!(rpc.ok(command("get_state")).await["messageCount"], 0);
}

#[tokio::test]
async fn images_are_accepted_in_every_shape() {
    let (server, _home, mut rpc) = idle().await;
    let shapes = [
        json!({"images": [{"type": "image", "source":
            {"type": "base64", "mediaType": "image/png", "data": PIXEL}}]}),
        json!({"attachments": [{"id": "a", "type": "image", "fileName": "p.png", "size": 70,
            "mimeType": "image/png", "content": PIXEL, "extractedText": null, "preview": null}]}),
    ];
    for mut command in shapes {
        command["type"] = json!("prompt");
        command["message"] = json!("what is it?");
        server.push(Answer::text("A dot."));
        rpc.ok(command).await;
        let user = rpc.wait("the prompt", message_end("user")).await;
        assert_eq!(text_of(&user["message"]), "what is it?");
        let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
        assert_eq!(user["message"]["content"][1], image);
        rpc.event("agent_settled").await;
    }
    let url = json!({"type": "prompt", "message": "?", "images":
        [{"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/"}}]});
    let refused = rpc.request(url).await;
    assert_eq!(refused["errorCode"], "invalid_command");
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("\"url\""), "{error}");
}

/// Some clients cannot request these events themselves.
#[tokio::test]
async fn an_environment_variable_enables_old_events() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": 1, "reserveTokens": 199_000}}));
    let mut pi = home.command(env!("CARGO_BIN_EXE_pi"));
    pi.args(["--mode", "rpc"])
        .env("PI_RPC_CAPABILITIES", "autoCompactionEvents, deltaUpdates");
    let mut rpc = Rpc::start(pi);
    server.push(Answer::text("one").usage(10, 1));
    rpc.run("first").await;
    server.push(Answer::text("two").usage(50_000, 1));
    server.repeat(Answer::text("What was said."));
    rpc.run("second").await;
    rpc.event("auto_compaction_end").await;
    let lines = rpc.lines();
    let kinds: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .filter(|kind| kind.contains("compaction"))
        .collect();
    assert_eq!(
        kinds,
        [
            "compaction_start",
            "auto_compaction_start",
            "compaction_end",
            "auto_compaction_end"
        ]
    );
    let ends: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"].as_str().unwrap().ends_with("compaction_end"))
        .collect();
    assert_eq!(ends[0]["result"], ends[1]["result"]);
    assert_eq!(ends[1]["willRetry"], false);
    let mut updates = lines.iter().filter(|line| line["type"] == "message_update");
    assert!(updates.all(|update| update.get("message").is_none() && update["usage"].is_object()));
    assert!(lines.iter().all(|line| line.get("seq").is_none()));
}

#[tokio::test]
async fn commands_of_later_versions_work() {
    let (server, _home, mut rpc) = idle().await;
    let levels = rpc.ok(command("get_available_thinking_levels")).await;
    assert_eq!(
        levels,
        json!({"levels": ["off", "minimal", "low", "medium", "high"]})
    );
    server.push(Answer::stall());
    let started = rpc.ok(prompt("go")).await;
    assert_eq!(started, json!({"disposition": "started"}));
    server.received(1).await;
    let steered = rpc.ok(json!({"type": "steer", "message": "SOONER"})).await;
    assert_eq!(steered, json!({"disposition": "queued"}));
    let later = json!({"type": "prompt", "message": "LATER", "streamingBehavior": "followUp"});
    assert_eq!(rpc.ok(later).await, json!({"disposition": "queued"}));
    assert_eq!(
        rpc.ok(command("clear_queue")).await,
        json!({"steering": ["SOONER"], "followUp": ["LATER"]})
    );
    rpc.ok(command("abort")).await;
    let settled = rpc.event("agent_settled").await;
    assert_eq!(settled, json!({"type": "agent_settled", "aborted": true}));
    let state = rpc.ok(command("get_state")).await;
    assert_eq!(
        (&state["isStreaming"], &state["pendingMessageCount"]),
        (&json!(false), &json!(0))
    );
}

#[tokio::test]
async fn bash_output_is_emitted_and_may_be_kept_from_the_model() {
    let (server, home, mut rpc) = idle().await;
    let script = "echo one; touch printed; until [ -e go ]; do sleep 0.01; done; echo two";
    let bash = json!({"type": "bash", "command": script, "excludeFromContext": true, "id": "b"});
    rpc.send(&bash.to_string()).await;
    let update = rpc.event("bash_execution_update").await;
    assert_eq!(
        update,
        json!({"type": "bash_execution_update", "id": "b", "delta": "one\n"})
    );
    home.file("go", "");
    let done = rpc.wait("the response", |line| line["command"] == "bash");
    assert_eq!(done.await["data"]["output"], "one\ntwo\n");
    let lines = rpc.lines();
    let reported: String = lines
        .iter()
        .filter(|line| line["type"] == "bash_execution_update")
        .filter_map(|line| line["delta"].as_str())
        .collect();
    assert_eq!(reported, "one\ntwo\n");
    server.push(Answer::text("Hello."));
    rpc.run("hello").await;
    let request = server.last_request().body.to_string();
    assert!(!request.contains("touch printed"), "{request}");
}

#[tokio::test]
async fn an_extension_may_handle_a_prompt() {
    let (_server, _home, mut rpc) = crate::support::with_extension(
        r#"export default (pi) => {
            pi.registerCommand("hello", { description: "greets", handler: async () => {} });
            pi.on("input", (event) => event.text === "mine" ? { action: "handled" } : undefined);
        };"#,
    )
    .await;
    for text in ["/hello", "mine"] {
        let handled = rpc.ok(prompt(text)).await;
        assert_eq!(handled, json!({"disposition": "handled"}), "{text}");
    }
    let commands = rpc.ok(command("get_commands")).await;
    let hello = &commands["commands"][0];
    assert_eq!(hello["location"], "user");
    assert_eq!(hello["path"], hello["sourceInfo"]["path"]);
}
