//! The server: receives requests, records them, and plays the next answer.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame as BodyFrame, Incoming};
use hyper::{Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::answer::{Answer, Ending, Kind};
use crate::api::Api;
use crate::render::{Frame, frames};

/// The provider and the model that [`ModelServer::models_json`] describes.
pub const PROVIDER: &str = "scripted";
pub const MODEL: &str = "scripted-1";

/// Time limit of tests for things that are bound to happen.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The scripted server. Dropping it stops it and breaks all connections.
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

/// A received request.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    pub api: Api,
    pub path: String,
    /// Headers with names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

#[derive(Default)]
struct State {
    script: Mutex<Script>,
    progress: watch::Sender<Progress>,
}

/// Answers a request by its content.
type Rule = Arc<dyn Fn(&Received) -> Option<Answer> + Send + Sync>;

#[derive(Default)]
struct Script {
    /// A rule that is tried before the script.
    rule: Option<Rule>,
    answers: VecDeque<Answer>,
    /// The answer once the script is at its end.
    last: Option<Answer>,
    received: Vec<Received>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    received: usize,
    hung_up: usize,
    /// Whether held answers go on.
    released: bool,
}

impl ModelServer {
    /// Starts the server on a free port of 127.0.0.1.
    pub async fn start() -> Self {
        Self::start_on(0).await.expect("loopback has a free port")
    }

    pub async fn start_on(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::default());
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state)));
        Ok(Self {
            address,
            state,
            accepting,
        })
    }

    /// Appends an answer to the script.
    pub fn push(&self, answer: Answer) {
        self.state.script().answers.push_back(answer);
    }

    /// Sets the answer to every request once the script is at its end. Without one, such requests
    /// get status 400, which no client retries.
    pub fn repeat(&self, answer: Answer) {
        self.state.script().last = Some(answer);
    }

    /// Requests for which `rule` has an answer get that answer, all others the next of the script.
    /// For clients that send several requests at a time, in any order.
    pub fn answer_by(&self, rule: impl Fn(&Received) -> Option<Answer> + Send + Sync + 'static) {
        self.state.script().rule = Some(Arc::new(rule));
    }

    /// Lets all held answers go on, also those that are requested later.
    pub fn release(&self) {
        self.state.progress.send_modify(|now| now.released = true);
    }

    /// Number of answers in the script that were not requested.
    pub fn unasked(&self) -> usize {
        self.state.script().answers.len()
    }

    /// All requests so far, in order.
    pub fn requests(&self) -> Vec<Received> {
        self.state.script().received.clone()
    }

    /// The newest request. Panics if there is none.
    pub fn last_request(&self) -> Received {
        let script = self.state.script();
        script.received.last().expect("a request").clone()
    }

    /// Waits, without a limit, until this many requests have arrived in total.
    pub async fn wait_until_received(&self, count: usize) {
        let mut progress = self.state.progress.subscribe();
        let reached = progress.wait_for(|now| now.received >= count).await;
        reached.expect("the sender lives as long as the server");
    }

    /// Waits until this many requests have arrived in total; panics after a time limit.
    pub async fn received(&self, count: usize) {
        self.wait_for("requests", |progress| progress.received >= count)
            .await;
    }

    /// Waits until this many clients have hung up in the middle of an answer.
    pub async fn hung_up(&self, count: usize) {
        self.wait_for("clients that hung up", |progress| progress.hung_up >= count)
            .await;
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A `models.json` with one provider ([`PROVIDER`]) and one model
    /// ([`MODEL`]) that this server plays.
    pub fn models_json(&self, api: Api) -> String {
        let models = json!({"providers": {PROVIDER: {
            "baseUrl": format!("{}{}", self.url(), api.base_path()),
            "apiKey": "scripted-key",
            "api": api.name(),
            "models": [{
                "id": MODEL,
                "name": "Scripted 1",
                "reasoning": true,
                "input": ["text", "image"],
                "contextWindow": 200_000,
                "maxTokens": 32_000,
                "cost": {"input": 1.0, "output": 2.0, "cacheRead": 0.1, "cacheWrite": 1.25},
            }],
        }}});
        format!("{models:#}\n")
    }

    async fn wait_for(&self, what: &str, reached: impl Fn(&Progress) -> bool) {
        let mut progress = self.state.progress.subscribe();
        let waited =
            tokio::time::timeout(RECEIVE_TIMEOUT, progress.wait_for(|now| reached(now))).await;
        if waited.is_err() {
            let now = *self.state.progress.borrow();
            panic!("the model server waited in vain for {what}: {now:?}");
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl State {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("nothing panics while it is held")
    }

    /// Records a request and takes its answer; the number counts requests from 1.
    fn next(&self, request: Received) -> (Option<Answer>, usize) {
        let mut script = self.script();
        let ruled = script.rule.as_ref().and_then(|rule| rule(&request));
        script.received.push(request);
        let number = script.received.len();
        let answer = ruled
            .or_else(|| script.answers.pop_front())
            .or_else(|| script.last.clone());
        drop(script);
        self.progress.send_modify(|now| now.received = number);
        (answer, number)
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Dropping this future drops the set, and with it every connection.
    let mut connections = JoinSet::new();
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = hyper::service::service_fn(|request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(respond(request, state).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service);
            // The connection ends with an error whenever a test breaks off an answer.
            let _ = connection.await;
        });
    }
}

type Body = StreamBody<BoxStream<'static, Result<BodyFrame<Bytes>, Broken>>>;

/// An error that ends a body, so that hyper closes the connection.
#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("cut as the script says")
    }
}

impl std::error::Error for Broken {}

async fn respond(request: Request<Incoming>, state: Arc<State>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let Some(api) = Api::of_path(&path) else {
        let message = format!("model-server: nothing is at {path}");
        return plain(404, Api::OpenAiResponses.error_body(404, &message));
    };
    let Ok(body) = body.collect().await else {
        return plain(400, api.error_body(400, "the request broke off"));
    };
    let body: Value = match serde_json::from_slice(&body.to_bytes()) {
        Ok(body) => body,
        Err(error) => return plain(400, api.error_body(400, &format!("not JSON: {error}"))),
    };
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let headers: BTreeMap<_, _> = headers.collect();
    if !headers.contains_key("x-api-key") && !headers.contains_key("authorization") {
        return plain(401, api.error_body(401, "no key"));
    }
    if let Err(message) = api.check(&body) {
        return plain(400, api.error_body(400, &message));
    }
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let (answer, number) = state.next(Received {
        api,
        path,
        headers,
        body,
    });
    let Some(answer) = answer else {
        return plain(400, api.error_body(400, "model-server: no answer is left"));
    };
    let mut response = match answer.kind {
        Kind::Status {
            status,
            message,
            body,
        } => plain(
            status,
            body.unwrap_or_else(|| api.error_body(status, &message)),
        ),
        Kind::Raw(bytes) => event_stream(stream::iter([Ok(bytes)]).boxed()),
        Kind::Stream(reply) => {
            let frames = frames(api, &reply, number, &model);
            let pieces = in_pieces(frames, answer.piece);
            let release = answer.is_held.then(|| state.progress.subscribe());
            let guard = HangUp {
                state,
                finished: false,
            };
            let body = play(pieces, release, answer.delay, reply.ending, guard);
            event_stream(body)
        }
    };
    for (name, value) in answer.headers {
        let name = header::HeaderName::try_from(name).expect("the script's header names are valid");
        let value = header::HeaderValue::try_from(value).expect("… and their values");
        response.headers_mut().insert(name, value);
    }
    response
}

/// Detects that a body is dropped before its end.
struct HangUp {
    state: Arc<State>,
    finished: bool,
}

impl Drop for HangUp {
    fn drop(&mut self) {
        if !self.finished {
            self.state.progress.send_modify(|now| now.hung_up += 1);
        }
    }
}

fn play(
    pieces: Vec<(Bytes, bool)>,
    release: Option<watch::Receiver<Progress>>,
    delay: Duration,
    ending: Ending,
    guard: HangUp,
) -> BoxStream<'static, Result<Bytes, Broken>> {
    let state = (pieces.into_iter(), guard);
    stream::unfold(state, move |(mut pieces, mut guard)| {
        let ending = ending.clone();
        let mut release = release.clone();
        async move {
            if let Some((bytes, is_delta)) = pieces.next() {
                if is_delta && let Some(release) = &mut release {
                    let released = release.wait_for(|now| now.released).await;
                    released.expect("the guard keeps the sender");
                }
                if is_delta && !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                return Some((Ok(bytes), (pieces, guard)));
            }
            match ending {
                // When the stream is polled a second time, nothing is left.
                Ending::Cut(_) if !guard.finished => {
                    guard.finished = true;
                    // Earlier data has to reach the client first.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Some((Err(Broken), (pieces, guard)))
                }
                Ending::Stall(_) => std::future::pending().await,
                _ => {
                    guard.finished = true;
                    drop(guard);
                    None
                }
            }
        }
    })
    .boxed()
}

/// The pieces to send, each with whether a delta begins in it.
fn in_pieces(frames: Vec<Frame>, size: usize) -> Vec<(Bytes, bool)> {
    if size == 0 {
        let whole = |frame: Frame| (Bytes::from(frame.text), frame.is_delta);
        return frames.into_iter().map(whole).collect();
    }
    let bytes: Vec<u8> = frames
        .into_iter()
        .flat_map(|frame| frame.text.into_bytes())
        .collect();
    let piece = |piece: &[u8]| (Bytes::copy_from_slice(piece), true);
    bytes.chunks(size).map(piece).collect()
}

fn event_stream(body: BoxStream<'static, Result<Bytes, Broken>>) -> Response<Body> {
    let body = StreamBody::new(body.map(|bytes| bytes.map(BodyFrame::data)).boxed());
    let mut response = Response::new(body);
    let kind = header::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn plain(status: u16, body: Value) -> Response<Body> {
    let mut response = event_stream(stream::iter([Ok(Bytes::from(body.to_string()))]).boxed());
    *response.status_mut() = StatusCode::from_u16(status).expect("the script's status is valid");
    let kind = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
