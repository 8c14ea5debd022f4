//! Conversations with a model in each of the three wire APIs.

use model_server::{Answer, Api, MODEL, ModelServer, PROVIDER, Stop};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, blocks, message_end, prompt, text_of};

/// Runs each of the tests once per API.
macro_rules! in_each_api {
    ($($story:ident),+ $(,)?) => {$(
        mod $story {
            use model_server::Api;

            #[tokio::test]
            async fn anthropic_messages() {
                super::$story(Api::AnthropicMessages).await;
            }

            #[tokio::test]
            async fn openai_completions() {
                super::$story(Api::OpenAiCompletions).await;
            }

            #[tokio::test]
            async fn openai_responses() {
                super::$story(Api::OpenAiResponses).await;
            }
        }
    )+};
}

in_each_api!(
    text_is_streamed,
    thinking_comes_apart_from_text,
    several_tools_in_one_turn,
    arguments_grow_while_they_stream,
    arguments_that_are_no_object_are_refused,
    an_abort_keeps_what_came_and_hangs_up,
    too_many_requests_then_success,
    overloaded_then_success,
    a_cut_connection_is_tried_again,
    an_error_in_the_stream_is_tried_again,
    retries_come_to_an_end,
    malformed_events_are_an_error_and_no_more,
    a_refused_request_is_an_error_and_no_more,
    an_answer_cut_short_by_its_length_says_so,
    bytes_may_come_in_any_pieces,
    the_key_is_sent,
    a_conversation_is_repeated_to_the_model,
);

async fn talk(api: Api) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, api);
    let rpc = home.rpc(&[]);
    (server, home, rpc)
}

/// The assistant's messages in the order in which they ended.
fn answers(events: &[Value]) -> Vec<&Value> {
    let ends = events
        .iter()
        .filter(|event| message_end("assistant")(event));
    ends.map(|event| &event["message"]).collect()
}

fn deltas(events: &[Value], kind: &str) -> String {
    let updates = events.iter().map(|event| &event["assistantMessageEvent"]);
    let deltas = updates.filter(|update| update["type"] == kind);
    deltas
        .filter_map(|update| update["delta"].as_str())
        .collect()
}

async fn text_is_streamed(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::text("A text that comes in several pieces."));
    let events = rpc.run("say something").await;
    let mut types: Vec<&str> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    types.retain(|kind| *kind != "response");
    types.dedup();
    assert_eq!(
        types,
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
        ]
    );
    assert_eq!(
        deltas(&events, "text_delta"),
        "A text that comes in several pieces."
    );
    let [answer] = answers(&events)[..] else {
        panic!("one answer");
    };
    assert_eq!(text_of(answer), "A text that comes in several pieces.");
    assert_eq!(answer["stopReason"], "stop");
    assert_eq!(
        [&answer["api"], &answer["provider"], &answer["model"]],
        [api.name(), PROVIDER, MODEL]
    );
    let usage = &answer["usage"];
    let tokens = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"];
    assert_eq!(
        tokens.map(|name| usage[name].as_u64().unwrap()),
        [10, 5, 0, 0, 15]
    );
    let cost = usage["cost"]["total"].as_f64().unwrap();
    assert!((cost - 0.000_02).abs() < 1e-9, "{cost}");
    let last = events.last().unwrap();
    assert_eq!(last["messages"].as_array().unwrap().len(), 2);
}

async fn thinking_comes_apart_from_text(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::thinking("Now what does that mean?").then_text("Nothing."));
    let events = rpc.run("explain").await;
    // The responses API sends parts, which a blank line separates.
    let streamed = deltas(&events, "thinking_delta");
    assert_eq!(streamed.trim_end(), "Now what does that mean?");
    let answer = answers(&events)[0];
    assert_eq!(
        blocks(&answer["content"], "thinking"),
        "Now what does that mean?"
    );
    assert_eq!(text_of(answer), "Nothing.");
}

async fn several_tools_in_one_turn(api: Api) {
    let (server, home, mut rpc) = talk(api).await;
    home.file("poem.txt", "roses are red\n");
    server.push(
        Answer::text("Let me see.")
            .then_tool("bash", json!({"command": "sleep 0.3; echo slow"}))
            .then_tool("read", json!({"path": "poem.txt"}))
            .then_tool(
                "write",
                json!({"path": "new/file.txt", "content": "violets"}),
            ),
    );
    server.push(Answer::text("All done."));
    let events = rpc.run("work").await;
    let tool_events: Vec<(&str, &str)> = events
        .iter()
        .filter(|event| event["toolCallId"].is_string() && event["type"] != "tool_execution_update")
        .map(|event| {
            (
                event["type"].as_str().unwrap(),
                event["toolName"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        tool_events,
        [
            ("tool_execution_start", "bash"),
            ("tool_execution_start", "read"),
            ("tool_execution_start", "write"),
            ("tool_execution_end", "bash"),
            ("tool_execution_end", "read"),
            ("tool_execution_end", "write"),
        ]
    );
    let results: Vec<String> = events
        .iter()
        .filter(|event| message_end("toolResult")(event))
        .map(|event| text_of(&event["message"]))
        .collect();
    let written = "Successfully wrote 7 bytes to new/file.txt";
    assert_eq!(results, ["slow\n", "roses are red\n", written]);
    assert_eq!(
        std::fs::read_to_string(home.cwd().join("new/file.txt")).unwrap(),
        "violets"
    );
    let reported = server.last_request().body.to_string();
    for result in ["slow", "roses are red", written] {
        assert!(reported.contains(result), "{reported}");
    }
    assert_eq!(text_of(answers(&events)[1]), "All done.");
}

async fn arguments_grow_while_they_stream(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    let arguments = json!({"command": "echo 'a command that is somewhat longer'"});
    server.push(Answer::tool("bash", arguments.clone()));
    server.push(Answer::text("Good."));
    let events = rpc.run("work").await;
    assert_eq!(deltas(&events, "toolcall_delta"), arguments.to_string());
    let commands: Vec<&str> = events
        .iter()
        .filter(|event| event["assistantMessageEvent"]["type"] == "toolcall_delta")
        .filter_map(|event| event["message"]["content"][0]["arguments"]["command"].as_str())
        .collect();
    assert!(commands.len() > 2, "{commands:?}");
    for (earlier, later) in commands.iter().zip(&commands[1..]) {
        assert!(later.starts_with(earlier), "{commands:?}");
    }
    assert_eq!(answers(&events)[0]["content"][0]["arguments"], arguments);
    assert_eq!(answers(&events)[0]["stopReason"], "toolUse");
}

/// The arguments became `{}`, and the tool ran without any.
async fn arguments_that_are_no_object_are_refused(api: Api) {
    let (server, home, mut rpc) = talk(api).await;
    let list = json!([{"command": "touch ran"}]);
    server.push(Answer::tool("bash", list.clone()));
    server.push(Answer::text("I see."));
    let events = rpc.run("work").await;
    let call = &answers(&events)[0]["content"][0];
    assert_eq!(call["arguments"], json!({}));
    let error = call["argumentsError"].as_str().unwrap_or_default();
    assert!(error.ends_with(&list.to_string()), "{call}");
    let end = events
        .iter()
        .find(|event| event["type"] == "tool_execution_end")
        .unwrap();
    assert_eq!(end["isError"], true);
    let reported = text_of(&end["result"]);
    assert!(
        reported.contains("must be a JSON object") && reported.contains("touch ran"),
        "{reported}"
    );
    assert!(!home.cwd().join("ran").exists());
}

async fn an_abort_keeps_what_came_and_hangs_up(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::deltas(9, "tick ").stall_after(2));
    server.push(Answer::text("Awake."));
    rpc.ok(prompt("count")).await;
    rpc.wait("two ticks", |event| {
        text_of(&event["message"]) == "tick tick "
    })
    .await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc
        .wait("the end of the answer", message_end("assistant"))
        .await;
    assert_eq!(end["message"]["stopReason"], "aborted");
    assert_eq!(text_of(&end["message"]), "tick tick ");
    rpc.event("agent_end").await;
    server.hung_up(1).await;
    assert_eq!(rpc.answer_to("still there?").await, "Awake.");
}

async fn too_many_requests_then_success(api: Api) {
    busy_then_success(api, 429).await;
}

async fn overloaded_then_success(api: Api) {
    busy_then_success(api, 529).await;
}

async fn busy_then_success(api: Api, status: u16) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::error(status, "come back later").with_header("retry-after", "0"));
    server.push(Answer::text("Here I am."));
    rpc.ok(prompt("hello")).await;
    answered(&mut rpc, "Here I am.").await;
    assert_eq!(server.requests().len(), 2);
}

/// Waits for an answer, however many attempts it takes.
async fn answered(rpc: &mut Rpc, text: &str) {
    rpc.wait(&format!("the answer {text:?}"), |event| {
        message_end("assistant")(event)
            && event["message"]["stopReason"] == "stop"
            && text_of(&event["message"]) == text
    })
    .await;
}

async fn a_cut_connection_is_tried_again(api: Api) {
    tried_again(api, Answer::deltas(5, "half a thought ").cut_after(2)).await;
}

async fn an_error_in_the_stream_is_tried_again(api: Api) {
    tried_again(api, Answer::text("half a thought").then_error("Overloaded")).await;
}

async fn tried_again(api: Api, broken: Answer) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(broken);
    server.push(Answer::text("Whole."));
    rpc.ok(prompt("think")).await;
    let broken = rpc
        .wait("the broken answer", message_end("assistant"))
        .await;
    assert_eq!(broken["message"]["stopReason"], "error");
    let start = rpc.event("auto_retry_start").await;
    let numbers = ["attempt", "maxAttempts", "delayMs"].map(|name| start[name].as_u64().unwrap());
    assert_eq!(numbers, [1, 3, 1]);
    assert_eq!(start["errorMessage"], broken["message"]["errorMessage"]);
    answered(&mut rpc, "Whole.").await;
    let end = rpc.event("auto_retry_end").await;
    assert_eq!(
        end,
        json!({"type": "auto_retry_end", "success": true, "attempt": 1})
    );
    let second = server.last_request().body.to_string();
    assert!(
        !second.contains("half a thought"),
        "what failed is not repeated: {second}"
    );
}

async fn retries_come_to_an_end(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.repeat(Answer::deltas(3, "x").cut_after(1));
    rpc.ok(prompt("try")).await;
    let end = rpc.event("auto_retry_end").await;
    assert_eq!(
        (&end["success"], &end["attempt"]),
        (&json!(false), &json!(3))
    );
    assert!(end["finalError"].is_string(), "{end}");
    assert_eq!(server.requests().len(), 4);
    server.push(Answer::text("At last."));
    assert_eq!(rpc.answer_to("again").await, "At last.");
}

async fn malformed_events_are_an_error_and_no_more(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.repeat(Answer::malformed(
        "event: message_start\ndata: {\"type\": oops\n\n",
    ));
    rpc.ok(prompt("go")).await;
    let end = rpc
        .wait("the failed answer", message_end("assistant"))
        .await;
    assert_eq!(end["message"]["stopReason"], "error");
    assert_ne!(end["message"]["errorMessage"].as_str().unwrap(), "");
    rpc.ok(json!({"type": "abort"})).await;
    server.push(Answer::text("Fine again."));
    rpc.ok(prompt("go on")).await;
    answered(&mut rpc, "Fine again.").await;
}

async fn a_refused_request_is_an_error_and_no_more(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::error(400, "the dog ate it"));
    server.push(Answer::text("Fine again."));
    let events = rpc.run("go").await;
    let answer = answers(&events)[0];
    assert_eq!(answer["stopReason"], "error");
    let error = answer["errorMessage"].as_str().unwrap();
    assert!(
        error.starts_with("400 ") && error.contains("the dog ate it"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1, "that is not worth a retry");
    assert_eq!(rpc.answer_to("go on").await, "Fine again.");
}

async fn an_answer_cut_short_by_its_length_says_so(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::text("And then").stop(Stop::Length));
    let events = rpc.run("tell me everything").await;
    assert_eq!(answers(&events)[0]["stopReason"], "length");
}

async fn bytes_may_come_in_any_pieces(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    for size in [1, 2, 3, 7] {
        server.push(Answer::text("naïve café 🦀, \u{2028}日本").in_pieces_of(size));
        assert_eq!(rpc.answer_to("go").await, "naïve café 🦀, \u{2028}日本");
    }
}

async fn the_key_is_sent(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::text("Welcome."));
    rpc.run("hello").await;
    let headers = server.last_request().headers;
    match api {
        Api::AnthropicMessages => {
            assert_eq!(headers["x-api-key"], "scripted-key");
            assert_eq!(headers["anthropic-version"], "2023-06-01");
        }
        Api::OpenAiCompletions | Api::OpenAiResponses => {
            assert_eq!(headers["authorization"], "Bearer scripted-key");
        }
    }
}

async fn a_conversation_is_repeated_to_the_model(api: Api) {
    let (server, _home, mut rpc) = talk(api).await;
    server.push(Answer::thinking("A name!").then_text("Hello Ann."));
    server.push(Answer::text("Ann."));
    rpc.run("I am Ann").await;
    rpc.run("who am I?").await;
    let body = server.last_request().body;
    let list = match api {
        Api::OpenAiResponses => &body["input"],
        Api::AnthropicMessages | Api::OpenAiCompletions => &body["messages"],
    };
    let list = list.to_string();
    let places = ["I am Ann", "Hello Ann.", "who am I?"].map(|text| list.find(text));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{list}"
    );
}
