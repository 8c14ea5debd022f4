//! A scripted server on loopback, and short constructors for messages, for the tests of the wire
//! APIs. The server uses raw HTTP, so that it can misbehave.

pub(super) mod histories;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::message::{
    AssistantBlock, AssistantMessage, ContentBlock, ImageContent, Message, StopReason, TextContent,
    ThinkingContent, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use super::model::{Modality, Model, ModelCost};
use super::stream::{
    AssistantEvent, AssistantStream, Request, StreamItem, StreamOptions, ToolSpec,
};

/// One scripted response.
pub(super) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    end: End,
}

enum End {
    Clean,
    Cut,
    Hang,
}

impl Reply {
    pub(super) fn bytes(chunks: &[&[u8]]) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".into(), "text/event-stream".into())],
            chunks: chunks.iter().map(|chunk| chunk.to_vec()).collect(),
            end: End::Clean,
        }
    }

    pub(super) fn events(chunks: &[&str]) -> Self {
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        Self::bytes(&chunks)
    }

    /// Sends each value as `data:` of an event with the value's `type` as its name.
    pub(super) fn typed_events(events: &[Value]) -> Self {
        let chunks: Vec<String> = events
            .iter()
            .map(|event| match event["type"].as_str() {
                Some(name) => format!("event: {name}\ndata: {event}\n\n"),
                None => format!("data: {event}\n\n"),
            })
            .collect();
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        Self::events(&chunks)
    }

    pub(super) fn status(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: Vec::new(),
            chunks: vec![body.as_bytes().to_vec()],
            end: End::Clean,
        }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Closes the connection in the middle of the body.
    pub(super) fn cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }

    /// Sends no more, and waits until the client closes the connection.
    pub(super) fn hang(mut self) -> Self {
        self.end = End::Hang;
        self
    }
}

#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub path: String,
    pub headers: IndexMap<String, String>,
    pub body: Value,
}

pub(super) struct Server {
    pub url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<Recorded>>,
    answered: AtomicUsize,
    changed: Notify,
    disconnected: Notify,
}

impl Server {
    /// Answers one request after the other; connections are closed in between.
    pub(super) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let server = Self {
            url,
            state: Arc::clone(&state),
        };
        tokio::spawn(async move {
            for reply in replies {
                let (connection, _) = listener.accept().await.unwrap();
                serve(connection, reply, &state).await;
            }
        });
        server
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.state.requests.lock().clone()
    }

    /// Waits until `count` responses were written.
    pub(super) async fn answered(&self, count: usize) {
        while self.state.answered.load(Ordering::SeqCst) < count {
            self.state.changed.notified().await;
        }
    }

    /// Waits until the client has closed the connection of a [`Reply::hang`].
    pub(super) async fn disconnected(&self) {
        self.state.disconnected.notified().await;
    }
}

async fn serve(connection: TcpStream, reply: Reply, state: &State) {
    connection.set_nodelay(true).unwrap();
    let mut connection = BufReader::new(connection);
    let mut line = String::new();
    connection.read_line(&mut line).await.unwrap();
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let mut headers = IndexMap::new();
    loop {
        line.clear();
        connection.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    connection.read_exact(&mut body).await.unwrap();
    state.requests.lock().push(Recorded {
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap(),
    });

    let mut head = format!(
        "HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\nconnection: close\r\n",
        reply.status
    );
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut parts = vec![head.into_bytes()];
    for chunk in reply.chunks.iter().filter(|chunk| !chunk.is_empty()) {
        parts.push([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    if matches!(reply.end, End::Clean) {
        parts.push(b"0\r\n\r\n".to_vec());
    }
    for part in parts {
        // A client may disconnect when it has seen enough.
        if connection.write_all(&part).await.is_err() || connection.flush().await.is_err() {
            break;
        }
    }
    state.answered.fetch_add(1, Ordering::SeqCst);
    state.changed.notify_one();
    if matches!(reply.end, End::Hang) {
        // The read ends with 0 bytes or an error when the client has disconnected.
        let _ = connection.read_to_end(&mut Vec::new()).await;
        state.disconnected.notify_one();
    }
}

pub(super) fn model(api: &str) -> Model {
    Model {
        id: "test-model".into(),
        name: "Test".into(),
        api: api.into(),
        provider: "test".into(),
        base_url: "http://test".into(),
        reasoning: true,
        input: vec![Modality::Text, Modality::Image],
        cost: ModelCost {
            input: 1.0,
            output: 2.0,
            cache_read: 4.0,
            cache_write: 8.0,
            tiers: Vec::new(),
        },
        context_window: 200_000,
        max_tokens: 64_000,
        headers: None,
        thinking_level_map: None,
        sampling_params: None,
        sampling_params_by_thinking_level: None,
        compat: None,
    }
}

pub(super) fn request_for(model: Model, messages: Vec<Message>) -> Request {
    Request {
        model: Arc::new(model),
        system_prompt: Some("Be brief.".into()),
        messages,
        tools: None,
        options: StreamOptions {
            api_key: Some("key".into()),
            ..StreamOptions::default()
        },
        cancel: CancellationToken::new(),
    }
}

pub(super) fn request(api: &str, server: &Server, messages: Vec<Message>) -> Request {
    let model = Model {
        base_url: server.url.clone(),
        ..model(api)
    };
    request_for(model, messages)
}

/// Sends a prompt over `api` with `key` and returns the answer.
pub(super) async fn send_prompt(server: &Server, api: &str, key: &str) -> AssistantMessage {
    let mut request = request(api, server, vec![user("hello")]);
    request.options.api_key = Some(key.into());
    let api = super::apis::wire_api(api).expect("the API is known");
    collect(api.stream(request)).await.0
}

/// Returns the message, and the steps before it with the message at each step.
pub(super) async fn collect(
    mut stream: AssistantStream,
) -> (AssistantMessage, Vec<(AssistantEvent, AssistantMessage)>) {
    let mut steps = Vec::new();
    loop {
        match stream.next().await.expect("Done comes last") {
            StreamItem::Event { event, partial } => {
                steps.push((event, partial.message()));
            }
            StreamItem::Done(message) => return (Arc::unwrap_or_clone(message), steps),
        }
    }
}

pub(super) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("The tool {name}"),
        parameters: serde_json::json!({
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        }),
    }
}

pub(super) fn user(text: &str) -> Message {
    Message::User(UserMessage::new(text, vec![]))
}

pub(super) fn picture() -> ImageContent {
    ImageContent {
        data: "AAAA".into(),
        mime_type: "image/png".into(),
    }
}

pub(super) fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text(TextContent {
        text: text.into(),
        text_signature: None,
    })
}

pub(super) fn thinking(thinking: &str, signature: Option<&str>) -> AssistantBlock {
    AssistantBlock::Thinking(ThinkingContent {
        thinking: thinking.into(),
        thinking_signature: signature.map(str::to_owned),
        redacted: None,
    })
}

pub(super) fn call(id: &str, name: &str, arguments: Value) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        arguments,
        arguments_error: None,
        thought_signature: None,
        partial_json: None,
    })
}

/// Makes an earlier answer of `model`.
pub(super) fn answer_of(model: &Model, content: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        content,
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        response_id: None,
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 0,
    }
}

pub(super) fn answer(model: &Model, content: Vec<AssistantBlock>) -> Message {
    Message::Assistant(answer_of(model, content))
}

pub(super) fn result(id: &str, content: Vec<ContentBlock>) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.into(),
        tool_name: "read".into(),
        content,
        details: None,
        usage: None,
        is_error: false,
        timestamp: 0,
    })
}
