use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::apis::wire_api;
use crate::classify::is_retryable;
use crate::message::{AssistantMessage, StopReason};
use crate::model::Model;
use crate::stream::{AssistantEvent, StreamHooks, StreamItem};
use crate::testing::{Reply, Server, collect, model, request, request_for, user};

#[test]
fn back_off_doubles() {
    for (attempt, longest) in [(0, 500), (1, 1000)] {
        let longest = Duration::from_millis(longest);
        let delay = backoff_delay(attempt);
        assert!(
            delay <= longest && delay >= longest.mul_f64(0.75),
            "{delay:?}"
        );
    }
}

#[test]
fn header_names_ignore_case_and_appear_in_errors() {
    let mut headers = HeaderMap::new();
    set_header(&mut headers, "X-Api-Key", "a").unwrap();
    set_header(&mut headers, "x-api-key", " b\n").unwrap();
    assert_eq!(headers.len(), 1);
    assert_eq!(headers["x-api-key"], "b");
    assert!(headers["x-api-key"].is_sensitive());
    let error = set_header(&mut headers, "x-bad", "secret\u{7}").unwrap_err();
    assert!(error.to_string().contains("x-bad"));
    assert!(!error.to_string().contains("secret"));
}

const HTTP_APIS: [&str; 3] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
];

/// Returns the smallest answer of each API, with or without its last events.
fn beginning(api: &str) -> Vec<&'static str> {
    match api {
        "anthropic-messages" => vec![
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"r1\",\"usage\":{}}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
        ],
        "openai-completions" => {
            vec!["data: {\"id\":\"r1\",\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n"]
        }
        _ => vec![
            "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\"}}\n\n",
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"}}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hi\"}\n\n",
        ],
    }
}

fn ending(api: &str) -> &'static str {
    match api {
        "anthropic-messages" => {
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\n\
             event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
        }
        "openai-completions" => {
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
        _ => {
            "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\"}}\n\n"
        }
    }
}

fn whole(api: &str) -> Reply {
    let mut chunks = beginning(api);
    chunks.push(ending(api));
    Reply::events(&chunks)
}

fn outcome(message: &AssistantMessage) -> (Vec<&str>, StopReason, Option<&str>) {
    (
        message.texts().collect(),
        message.stop_reason,
        message.error_message.as_deref(),
    )
}

async fn answer_to(api_name: &str, replies: Vec<Reply>) -> (AssistantMessage, Server) {
    let server = Server::start(replies).await;
    let request = request(api_name, &server, vec![user("hello")]);
    let (message, _) = collect(wire_api(api_name).unwrap().stream(request)).await;
    (message, server)
}

#[tokio::test]
async fn overload_is_retried_before_the_first_byte() {
    for name in HTTP_APIS {
        let busy = || Reply::status(529, "{}").header("retry-after-ms", "1");
        let replies = vec![
            busy(),
            Reply::status(429, "").header("retry-after", "0"),
            whole(name),
        ];
        let (message, server) = answer_to(name, replies).await;
        assert_eq!(outcome(&message), (vec!["Hi"], StopReason::Stop, None));
        assert_eq!(message.response_id.as_deref(), Some("r1"));
        let path = match name {
            "anthropic-messages" => "/v1/messages",
            "openai-completions" => "/chat/completions",
            _ => "/responses",
        };
        assert!(server.requests().iter().all(|request| request.path == path));
        let bodies: Vec<Value> = server.requests().into_iter().map(|r| r.body).collect();
        assert_eq!(bodies.len(), 3);
        assert!(bodies.iter().all(|body| *body == bodies[0]));
    }
}

#[tokio::test]
async fn the_last_refusal_is_shown_with_status_and_text() {
    let text = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#;
    for name in HTTP_APIS {
        let refuse = || Reply::status(429, text).header("retry-after-ms", "1");
        let (message, server) = answer_to(name, vec![refuse(), refuse(), refuse()]).await;
        let shown = match name {
            "anthropic-messages" => format!("429 {text}"),
            _ => "429 Slow down".to_owned(),
        };
        let expected = (vec![], StopReason::Error, Some(shown.as_str()));
        assert_eq!(outcome(&message), expected);
        assert!(is_retryable(&shown));
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test]
async fn too_long_a_delay_prevents_the_retry() {
    for name in HTTP_APIS {
        let refuse = || Reply::status(429, "Slow down").header("retry-after", "61");
        let (message, server) = answer_to(name, vec![refuse()]).await;
        let shown = "The server asks for a wait of 61 s, which is longer than retry.maxDelayMs \
                     in settings.json allows. 429 Slow down";
        let expected = (vec![], StopReason::Error, Some(shown));
        assert_eq!(outcome(&message), expected);
        assert!(!is_retryable(shown));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_bad_request_is_not_repeated() {
    for name in HTTP_APIS {
        let (message, server) = answer_to(name, vec![Reply::status(413, "")]).await;
        let expected = (vec![], StopReason::Error, Some("413 status code (no body)"));
        assert_eq!(outcome(&message), expected);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn servers_decide_by_x_should_retry() {
    let refused = Reply::status(503, "down").header("x-should-retry", "false");
    let (message, server) = answer_to("openai-completions", vec![refused]).await;
    let expected = (vec![], StopReason::Error, Some("503 down"));
    assert_eq!(outcome(&message), expected);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_cut_connection_keeps_the_text_and_is_retryable() {
    for name in HTTP_APIS {
        let (message, _) = answer_to(name, vec![Reply::events(&beginning(name)).cut()]).await;
        let error = message.error_message.as_deref().unwrap();
        assert!(
            error.starts_with("Connection lost: the answer was cut off"),
            "{error}"
        );
        assert!(is_retryable(error));
        let expected = (vec!["Hi"], StopReason::Error, Some(error));
        assert_eq!(outcome(&message), expected);
    }
}

#[tokio::test]
async fn a_stream_without_its_end_is_an_error() {
    for (name, missing) in [
        ("anthropic-messages", "message_stop"),
        ("openai-completions", "a finish_reason"),
        ("openai-responses", "response.completed"),
    ] {
        let (message, _) = answer_to(name, vec![Reply::events(&beginning(name))]).await;
        let error = format!("Connection lost: the stream ended without {missing}");
        assert!(is_retryable(&error));
        let expected = (vec!["Hi"], StopReason::Error, Some(error.as_str()));
        assert_eq!(outcome(&message), expected);
    }
}

#[tokio::test]
async fn a_cut_after_the_end_of_the_answer_loses_nothing() {
    for name in HTTP_APIS {
        let (message, _) = answer_to(name, vec![whole(name).cut()]).await;
        assert_eq!(outcome(&message), (vec!["Hi"], StopReason::Stop, None));
    }
}

#[tokio::test]
async fn any_cut_into_chunks_gives_the_same_answer() {
    for name in HTTP_APIS {
        let text = beginning(name).concat().replace("Hi", "Grüß 🦀") + ending(name);
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        let (message, _) = answer_to(name, vec![Reply::bytes(&chunks)]).await;
        assert_eq!(outcome(&message), (vec!["Grüß 🦀"], StopReason::Stop, None));
    }
}

#[tokio::test]
async fn malformed_events_end_the_answer_with_a_sentence() {
    for name in HTTP_APIS {
        let event = match name {
            "anthropic-messages" => "event: content_block_delta\ndata: {\"type\":\n\n",
            _ => "data: {\"type\":\n\n",
        };
        let mut chunks = beginning(name);
        chunks.insert(0, "garbage\n\n: \u{0}\nfoo: bar\n\n");
        chunks.push(event);
        let (message, _) = answer_to(name, vec![Reply::events(&chunks)]).await;
        let error = "Malformed event in the answer: EOF while parsing a value at line 1 column 8: {\"type\":";
        let expected = (vec!["Hi"], StopReason::Error, Some(error));
        assert_eq!(outcome(&message), expected);
    }
}

#[tokio::test]
async fn events_of_the_wrong_shape_never_panic() {
    let shapes = [
        "null",
        "[]",
        "1",
        "\"x\"",
        "{}",
        "{\"type\":1}",
        "{\"choices\":{}}",
        "{\"choices\":[null]}",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[null,{}],\"content\":[1],\"reasoning_details\":[1]}}]}",
        "{\"type\":\"message_start\"}",
        "{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"input\":3}}",
        "{\"type\":\"content_block_delta\",\"index\":-1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":7}}",
        "{\"type\":\"content_block_stop\",\"index\":9}",
        "{\"type\":\"message_delta\",\"usage\":{\"input_tokens\":-4}}",
        "{\"type\":\"response.output_item.added\",\"item\":{\"type\":\"function_call\",\"arguments\":{}}}",
        "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"content\":{}}}",
        "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"summary\":[1]}}",
    ];
    for name in HTTP_APIS {
        let mut text: String = shapes
            .iter()
            .map(|shape| format!("data: {shape}\n\n"))
            .collect();
        text.push_str(ending(name));
        let (message, _) = answer_to(name, vec![Reply::events(&[&text])]).await;
        assert_eq!(
            (
                message.stop_reason == StopReason::Error,
                &message.error_message
            ),
            (false, &None),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_page_instead_of_events_is_shown() {
    for name in HTTP_APIS {
        let page = Reply::status(200, "<h1>Welcome</h1>").header("content-type", "text/html");
        let (message, _) = answer_to(name, vec![page]).await;
        let error =
            "The server did not answer with an event stream but with text/html: <h1>Welcome</h1>";
        assert_eq!(outcome(&message), (vec![], StopReason::Error, Some(error)));
    }
}

#[tokio::test]
async fn abort_in_the_middle_drops_the_connection() {
    for name in HTTP_APIS {
        let server = Server::start(vec![Reply::events(&beginning(name)).hang()]).await;
        let request = request(name, &server, vec![user("hello")]);
        let cancel = request.cancel.clone();
        let mut stream = wire_api(name).unwrap().stream(request);
        let message = loop {
            match stream.next().await.unwrap() {
                StreamItem::Event {
                    event: AssistantEvent::TextDelta { .. },
                    ..
                } => cancel.cancel(),
                StreamItem::Event { .. } => {}
                StreamItem::Done(message) => break message,
            }
        };
        let expected = (
            vec!["Hi"],
            StopReason::Aborted,
            Some("Request was aborted."),
        );
        assert_eq!(outcome(&message), expected);
        assert!(stream.next().await.is_none());
        server.disconnected().await;
    }
}

#[tokio::test]
async fn abort_ends_the_wait_for_a_retry() {
    let busy = Reply::status(503, "").header("retry-after", "50");
    let server = Server::start(vec![busy]).await;
    let request = request("openai-responses", &server, vec![user("hello")]);
    let cancel = request.cancel.clone();
    let stream = wire_api("openai-responses").unwrap().stream(request);
    server.answered(1).await;
    cancel.cancel();
    let (message, _) = collect(stream).await;
    assert_eq!(message.stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn a_reader_that_goes_away_drops_the_connection() {
    let name = "openai-completions";
    let server = Server::start(vec![Reply::events(&beginning(name)).hang()]).await;
    let mut stream = wire_api(name)
        .unwrap()
        .stream(request(name, &server, vec![user("hello")]));
    assert!(stream.next().await.is_some());
    drop(stream);
    server.disconnected().await;
}

#[tokio::test]
async fn no_server_is_a_connection_error() {
    let server = Server::start(vec![]).await;
    let mut request = request("anthropic-messages", &server, vec![user("hello")]);
    // No server listens on port 1 of the loopback address.
    Arc::make_mut(&mut request.model).base_url = "http://127.0.0.1:1".into();
    let (message, _) = collect(wire_api("anthropic-messages").unwrap().stream(request)).await;
    let error = message.error_message.unwrap();
    assert!(
        error.starts_with("Connection error. http://127.0.0.1:1: "),
        "{error}"
    );
    assert!(is_retryable(&error));
}

#[tokio::test]
async fn an_impossible_address_is_named_and_not_retried() {
    let mut request = request_for(model("openai-completions"), vec![user("hello")]);
    Arc::make_mut(&mut request.model).base_url = "localhost/v1".into();
    let (message, _) = collect(wire_api("openai-completions").unwrap().stream(request)).await;
    let error = "Cannot send a request to localhost/v1/chat/completions: relative URL without a base. \
                 Check the base URL of the model.";
    assert_eq!(message.error_message.as_deref(), Some(error));
    assert!(!is_retryable(error));
}

#[tokio::test]
async fn without_a_key_nothing_is_sent_unless_a_header_authorises() {
    for name in HTTP_APIS {
        let server = Server::start(vec![whole(name)]).await;
        let mut request = request(name, &server, vec![user("hello")]);
        request.options.api_key = Some(" ".into());
        let (message, _) = collect(wire_api(name).unwrap().stream(request.clone())).await;
        let error = message.error_message.unwrap();
        assert!(
            error.starts_with("No API key for provider: test."),
            "{error}"
        );
        let token = ("Authorization".to_owned(), "Bearer x".to_owned());
        request.options.headers.extend([token]);
        let (message, _) = collect(wire_api(name).unwrap().stream(request)).await;
        assert_eq!(message.stop_reason, StopReason::Stop);
        assert_eq!(server.requests()[0].headers["authorization"], "Bearer x");
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<(u16, Option<String>)>>);

#[async_trait]
impl StreamHooks for Recorder {
    async fn payload(&self, _: &Model, mut payload: Value) -> Result<Value, String> {
        payload["added"] = json!(true);
        Ok(payload)
    }

    async fn response(
        &self,
        _: &Model,
        status: u16,
        headers: &IndexMap<String, String>,
    ) -> Result<(), String> {
        self.0.lock().push((status, headers.get("x-test").cloned()));
        Ok(())
    }
}

#[tokio::test]
async fn hooks_change_the_payload_and_see_every_response() {
    for name in HTTP_APIS {
        let busy = Reply::status(429, "").header("retry-after", "0");
        let reply = whole(name).header("X-Test", "a").header("x-test", "b");
        let server = Server::start(vec![busy, reply]).await;
        let mut request = request(name, &server, vec![user("hello")]);
        let hooks = Arc::new(Recorder::default());
        request.options.hooks = Some(hooks.clone());
        collect(wire_api(name).unwrap().stream(request)).await;
        assert!(server.requests().iter().all(|r| r.body["added"] == true));
        let seen = vec![(429, None), (200, Some("a, b".to_owned()))];
        assert_eq!(*hooks.0.lock(), seen);
    }
}

#[tokio::test]
async fn without_retries_the_first_error_is_final() {
    let server = Server::start(vec![Reply::status(529, "busy"), whole(HTTP_APIS[0])]).await;
    let mut request = request(HTTP_APIS[0], &server, vec![user("hello")]);
    request.options.max_retries = Some(0);
    let (message, _) = collect(wire_api(HTTP_APIS[0]).unwrap().stream(request)).await;
    assert_eq!(message.stop_reason, StopReason::Error);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_answer_that_does_not_begin_in_time_is_given_up() {
    // This server accepts connections and sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let model = Model {
        base_url: format!("http://{}", silent.local_addr().unwrap()),
        ..model(HTTP_APIS[0])
    };
    let mut request = request_for(model, vec![user("hello")]);
    request.options.timeout_ms = Some(30);
    request.options.max_retries = Some(0);
    let answer = collect(wire_api(HTTP_APIS[0]).unwrap().stream(request));
    // Without the limit the request would never end.
    let answer = tokio::time::timeout(Duration::from_secs(20), answer).await;
    let (message, _) = answer.expect("the limit was not looked at");
    assert_eq!(
        message.error_message.as_deref(),
        Some("Request timed out. There was no answer within 30 ms (timeoutMs).")
    );
}
