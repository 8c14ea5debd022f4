//! Commands of RPC mode beyond a plain conversation.

use std::fs;

use model_server::{Answer, MODEL, ModelServer, PROVIDER};
use serde_json::{Value, json};

use crate::support::{
    Home, PIXEL, command, idle, is_running, message_end, prompt, text_of, until_ended, until_exists,
};

#[tokio::test]
async fn a_new_session_has_its_initial_state() {
    let (_server, _home, mut rpc) = idle().await;
    let state = rpc.ok(command("get_state")).await;
    assert_eq!(state["model"]["id"], MODEL);
    assert_eq!(state["model"]["provider"], PROVIDER);
    assert!(state["sessionId"].is_string(), "{state}");
    assert!(state["sessionFile"].is_string(), "{state}");
    let rest = crate::support::without(&state, &["model", "sessionId", "sessionFile"]);
    assert_eq!(
        rest,
        json!({
            "thinkingLevel": "medium", "isStreaming": false, "isCompacting": false,
            "steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time",
            "autoCompactionEnabled": true, "messageCount": 0, "pendingMessageCount": 0,
            "queueMode": "one-at-a-time", "queuedMessageCount": 0,
            "version": concat!("0.87.1+rs.", env!("CARGO_PKG_VERSION")),
        })
    );
}

#[tokio::test]
async fn the_state_reports_streaming() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.received(1).await;
    assert_eq!(rpc.ok(command("get_state")).await["isStreaming"], true);
    rpc.ok(command("abort")).await;
    assert_eq!(rpc.ok(command("get_state")).await["isStreaming"], false);
}

#[tokio::test]
async fn models_are_listed_and_chosen() {
    let (_server, home, mut rpc) = idle().await;
    let models = rpc.ok(command("get_available_models")).await["models"].clone();
    let ours = models
        .as_array()
        .unwrap()
        .iter()
        .find(|model| model["id"] == MODEL);
    let ours = ours.expect("the one of models.json").clone();
    let choose = |id: &str| json!({"type": "set_model", "provider": PROVIDER, "modelId": id});
    assert_eq!(
        rpc.refused(choose("gone")).await,
        "Model not found: scripted/gone"
    );
    assert_eq!(rpc.ok(choose(MODEL)).await, ours);
    rpc.close().await;
    let settings = std::fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings["defaultModel"], MODEL);
}

#[tokio::test]
async fn thinking_levels_are_clamped_to_those_of_the_model() {
    let (_server, _home, mut rpc) = idle().await;
    for (requested, got) in [("off", "off"), ("high", "high"), ("xhigh", "high")] {
        rpc.ok(json!({"type": "set_thinking_level", "level": requested}))
            .await;
        assert_eq!(rpc.ok(command("get_state")).await["thinkingLevel"], got);
    }
}

#[tokio::test]
async fn bash_runs_and_its_output_joins_the_context() {
    let (server, _home, mut rpc) = idle().await;
    let result = rpc
        .ok(json!({"type": "bash", "command": "echo out; echo err >&2; exit 3"}))
        .await;
    assert_eq!(
        result,
        json!({"output": "out\nerr\n", "exitCode": 3, "cancelled": false, "truncated": false})
    );
    server.push(Answer::text("I see."));
    rpc.run("what happened?").await;
    let request = server.last_request().body.to_string();
    assert!(request.contains("Command exited with code 3"), "{request}");
}

#[tokio::test]
async fn aborting_bash_ends_its_whole_process_tree() {
    let (_server, home, mut rpc) = idle().await;
    let script = "(sleep 600 & echo $! > child.part; mv child.part child; wait) & wait";
    rpc.send(&json!({"type": "bash", "command": script, "id": "long"}).to_string())
        .await;
    let child = home.cwd().join("child");
    until_exists(&child).await;
    let child = std::fs::read_to_string(child).unwrap();
    let child = child.trim().parse().unwrap();
    assert!(is_running(child));
    rpc.ok(command("abort_bash")).await;
    let result = rpc
        .wait("the aborted command", |line| line["id"] == "long")
        .await;
    let expected = json!({"output": "", "cancelled": true, "truncated": false});
    assert_eq!(result["data"], expected);
    until_ended(child, "the child").await;
}

#[tokio::test]
async fn a_new_session_has_no_messages() {
    let (server, home, mut rpc) = idle().await;
    server.push(Answer::text("one"));
    server.push(Answer::text("two"));
    rpc.run("about apples").await;
    let before = rpc.ok(command("get_state")).await;
    assert_eq!(
        rpc.ok(command("new_session")).await,
        json!({"cancelled": false})
    );
    let after = rpc.ok(command("get_state")).await;
    assert_eq!(after["messageCount"], 0);
    assert_ne!(after["sessionId"], before["sessionId"]);
    rpc.run("about pears").await;
    let request = server.last_request().body.to_string();
    assert!(!request.contains("about apples"), "{request}");
    assert_eq!(home.sessions().len(), 2);
}

#[tokio::test]
async fn the_last_answer_and_statistics_are_returned() {
    let (server, _home, mut rpc) = idle().await;
    assert_eq!(rpc.ok(command("get_last_assistant_text")).await, json!({}));
    server.push(Answer::tool("bash", json!({"command": "true"})).usage(100, 10));
    server.push(Answer::text("  the end \n").usage(200, 20));
    rpc.run("go").await;
    let last = rpc.ok(command("get_last_assistant_text")).await;
    assert_eq!(last, json!({"text": "the end"}));
    let stats = rpc.ok(command("get_session_stats")).await;
    assert_eq!(
        stats["tokens"],
        json!({"input": 300, "output": 30, "cacheRead": 0, "cacheWrite": 0, "total": 330})
    );
    let counts = [
        "userMessages",
        "assistantMessages",
        "toolCalls",
        "toolResults",
        "totalMessages",
    ];
    assert_eq!(
        counts.map(|name| stats[name].as_u64().unwrap()),
        [1, 2, 1, 1, 4]
    );
    let cost = stats["cost"].as_f64().unwrap();
    assert!((cost - 0.000_36).abs() < 1e-9, "{cost}");
    assert_eq!(stats["contextUsage"]["contextWindow"], 200_000);
}

#[tokio::test]
async fn get_messages_equals_the_events() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::tool("bash", json!({"command": "echo hi"})));
    server.push(Answer::text("done"));
    let events = rpc.run("go").await;
    let ends = events.iter().filter(|event| event["type"] == "message_end");
    let announced: Vec<Value> = ends.map(|event| event["message"].clone()).collect();
    let messages = rpc.ok(command("get_messages")).await;
    assert_eq!(messages["messages"], Value::Array(announced));
}

#[tokio::test]
async fn a_prompt_during_a_run_needs_a_streaming_behavior() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.received(1).await;
    assert_eq!(
        rpc.refused(prompt("and now?")).await,
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue \
         the message."
    );
}

#[tokio::test]
async fn steering_joins_after_the_turn_and_follow_ups_at_the_end() {
    let (server, home, mut rpc) = idle().await;
    let wait_for_go = "touch started; until [ -e go ]; do sleep 0.01; done";
    server.push(Answer::tool("bash", json!({"command": wait_for_go})));
    server.push(Answer::text("steered"));
    server.push(Answer::text("followed"));
    rpc.ok(prompt("begin")).await;
    until_exists(&home.cwd().join("started")).await;
    let later = json!({"type": "prompt", "message": "LATER", "streamingBehavior": "followUp"});
    rpc.ok(later).await;
    rpc.ok(json!({"type": "steer", "message": "SOONER"})).await;
    let full = rpc.wait("the full queues", |event| {
        event["type"] == "queue_update"
            && *event
                == json!({"type": "queue_update", "steering": ["SOONER"], "followUp": ["LATER"]})
    });
    full.await;
    assert_eq!(rpc.ok(command("get_state")).await["pendingMessageCount"], 2);
    home.file("go", "");
    rpc.event("agent_end").await;
    let requests = server.requests();
    let requested: Vec<(bool, bool)> = requests
        .iter()
        .map(|request| request.body.to_string())
        .map(|body| (body.contains("SOONER"), body.contains("LATER")))
        .collect();
    assert_eq!(requested, [(false, false), (true, false), (true, true)]);
}

#[tokio::test]
async fn images_of_a_prompt_reach_the_model() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::text("A dot."));
    let mut command = prompt("what is it?");
    command["images"] = json!([{"type": "image", "data": PIXEL, "mimeType": "image/png"}]);
    rpc.ok(command).await;
    let user = rpc.wait("the prompt", message_end("user")).await;
    assert_eq!(text_of(&user["message"]), "what is it?");
    rpc.event("agent_end").await;
    let request = server.last_request().body.to_string();
    assert!(request.contains(PIXEL), "{request}");
}

#[tokio::test]
async fn blocked_images_do_not_reach_the_model() {
    let (server, home, mut rpc) = idle().await;
    let picture = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    let mut look = prompt("what are they?");
    look["images"] = json!([picture, picture]);
    server.push(Answer::text("Dots."));
    rpc.ok(look).await;
    rpc.event("agent_end").await;
    assert!(server.last_request().body.to_string().contains(PIXEL));
    // The setting applies from the next request on.
    home.settings(json!({"images": {"blockImages": true}}));
    rpc.ok(command("reload")).await;
    server.push(Answer::text("What dots?"));
    rpc.ok(prompt("and now?")).await;
    rpc.event("agent_end").await;
    let request = server.last_request().body.to_string();
    assert!(!request.contains(PIXEL), "{request}");
    assert_eq!(request.matches("Image reading is disabled.").count(), 1);
}

#[tokio::test]
async fn models_of_the_scope_come_with_their_thinking_level() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let path = home.agent_dir().join("models.json");
    let mut models: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let all = models["providers"][PROVIDER]["models"]
        .as_array_mut()
        .unwrap();
    for id in ["thinker", "thinker2"] {
        let mut thinker = all[0].clone();
        thinker["id"] = json!(id);
        thinker["reasoning"] = json!(true);
        all.push(thinker);
    }
    fs::write(&path, models.to_string()).unwrap();
    let scope = format!("{PROVIDER}/thinker:high,{PROVIDER}/thinker2:low");
    let mut rpc = home.rpc(&["--models", &scope]);
    let mut levels = Vec::new();
    for _ in 0..3 {
        let cycled = rpc.ok(command("cycle_model")).await;
        levels.push((
            cycled["model"]["id"].clone(),
            cycled["thinkingLevel"].clone(),
        ));
    }
    assert_eq!(
        json!(levels),
        json!([
            ["thinker2", "low"],
            ["thinker", "high"],
            ["thinker2", "low"]
        ])
    );
}

#[tokio::test]
async fn reload_without_extensions_is_fine() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.ok(command("reload")).await;
    assert_eq!(
        rpc.ok(command("get_commands")).await,
        json!({"commands": []})
    );
}

/// Clients show stderr to users.
#[tokio::test]
async fn without_a_model_the_state_and_the_response_say_so() {
    let home = Home::bare();
    let mut rpc = home.rpc(&[]);
    let state = rpc.ok(command("get_state")).await;
    assert_eq!(state.get("model"), None);
    let why = state["modelError"].as_str().unwrap();
    assert!(why.starts_with("No models available."), "{why}");
    let refused = rpc.request(prompt("hello")).await;
    assert_eq!(refused["errorCode"], "no_model");
    assert_eq!(refused["error"], why);
    assert_eq!(rpc.stderr(), "");
    rpc.close().await;

    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    let state = rpc.ok(command("get_state")).await;
    assert_eq!(state["model"]["id"], "demo");
    assert_eq!(state.get("modelError"), None);
    rpc.close().await;
}

#[tokio::test]
async fn a_model_of_a_newer_version_is_chosen_by_name() {
    let home = Home::bare();
    for (name, provider) in [
        ("openai/gpt-6.1-sol", "openai"),
        ("azure/gpt-6.1-sol", "azure"),
        ("azure-openai-responses/gpt-5.2", "azure-openai-responses"),
        ("deepseek/deepseek-v4-pro", "deepseek"),
    ] {
        let mut rpc = home.rpc(&["-ne", "--no-session", "--model", name, "--api-key", "k"]);
        let model = rpc.ok(command("get_state")).await["model"].clone();
        assert_eq!(model["provider"], provider, "{model}");
        assert!(model["cost"]["input"].as_f64() > Some(0.0), "{model}");
        rpc.close().await;
    }
}

/// The settings were once taken over only when the program started.
#[tokio::test]
async fn a_reload_takes_over_queue_modes_and_retries() {
    let (server, home, mut rpc) = idle().await;
    let path = home.agent_dir().join("settings.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    settings["steeringMode"] = json!("all");
    settings["followUpMode"] = json!("all");
    settings["retry"]["maxRetries"] = json!(1);
    fs::write(&path, settings.to_string()).unwrap();
    rpc.ok(command("reload")).await;
    let state = rpc.ok(command("get_state")).await;
    assert_eq!(
        [&state["steeringMode"], &state["followUpMode"]],
        ["all", "all"]
    );
    for _ in 0..2 {
        server.push(Answer::text("half a thought").then_error("Overloaded"));
    }
    rpc.ok(prompt("try")).await;
    assert_eq!(rpc.event("auto_retry_start").await["maxAttempts"], 1);
    assert_eq!(rpc.event("auto_retry_end").await["success"], false);
}
