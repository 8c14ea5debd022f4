//! The part that all HTTP APIs share: sends the request, retries where that is harmless, reads
//! the events, and turns failures into the end of the answer.

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use indexmap::IndexMap;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;

use super::aws_event_stream::FrameDecoder;
use super::retry_delay::requested_delay;
use super::sse::{SseDecoder, SseEvent};
use crate::failure::{Envelope, Failure, http_text};
use crate::http;
use crate::json::surrogates;
use crate::stream::message_builder::MessageBuilder;
use crate::stream::{AssistantStream, Request};

/// Number of retries, as in the providers' SDKs. The agent has its own, slower retries.
const RETRIES: u32 = 2;
/// Number of retries for Code Assist, as in Gemini CLI.
const CODE_ASSIST_RETRIES: u32 = 3;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
/// Time limit for reading the text of an error, and the end of a body after the last event.
const TAIL_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// A request that is ready to be sent.
pub(crate) struct HttpRequest {
    pub url: String,
    pub headers: HeaderMap,
    pub body: Value,
    pub envelope: Envelope,
    /// Converts the payload to the wire format, for APIs whose payload extensions see in the
    /// format of the provider's SDK.
    pub encode: Option<fn(Value) -> Value>,
    /// Adds authentication that depends on the body.
    pub sign: Option<Box<dyn SignRequest>>,
}

/// Authentication that depends on the request.
#[async_trait]
pub(crate) trait SignRequest: Send + Sync {
    /// Adds the headers that authenticate a request to `url` with this body.
    async fn sign(&self, url: &str, headers: &mut HeaderMap, body: &[u8]) -> Result<(), Failure>;
}

/// The format in which events are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Sse,
    Amazon,
}

enum FrameReader {
    Sse(SseDecoder),
    Amazon(FrameDecoder),
}

impl FrameReader {
    fn new(framing: Framing) -> Self {
        match framing {
            Framing::Sse => Self::Sse(SseDecoder::default()),
            Framing::Amazon => Self::Amazon(FrameDecoder::default()),
        }
    }

    fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        match self {
            Self::Sse(decoder) => decoder.push(chunk),
            Self::Amazon(decoder) => decoder.push(chunk),
        }
    }

    /// Returns the event that the end of the body completes.
    fn finish(&mut self) -> Option<SseEvent> {
        match self {
            Self::Sse(decoder) => decoder.finish(),
            Self::Amazon(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// No event that matters can follow.
    Complete,
}

/// Decodes the events of one answer.
pub(crate) trait Decoder: Send + Sized + 'static {
    const FRAMING: Framing = Framing::Sse;

    /// Returns the events that a whole answer stands for, from a server that ignores the request
    /// to stream. Returns no events for a body that is no answer.
    fn events_of_whole(_body: Value) -> Vec<Value> {
        Vec::new()
    }

    fn event(
        &mut self,
        event: SseEvent,
        answer: &mut MessageBuilder,
    ) -> impl Future<Output = Result<Flow, Failure>> + Send;

    /// Called after [`Flow::Complete`] or at the end of the stream, with or without an error.
    /// Fails with [`Failure::Lost`] if the answer is not complete.
    fn end(
        &mut self,
        answer: &mut MessageBuilder,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Runs a request in its own task.
pub(crate) fn stream<D: Decoder>(
    request: Request,
    build_request: fn(&Request) -> Result<(HttpRequest, D), Failure>,
) -> AssistantStream {
    let (items, stream) = AssistantStream::channel();
    tokio::spawn(async move {
        let mut answer = MessageBuilder::new(&request.model, items, request.cancel.clone());
        let result = run(&request, build_request, &mut answer).await;
        if let Err(failure) = &result {
            tracing::debug!(model = request.model.reference(), %failure, "the answer failed");
        }
        answer.finish(result).await;
    });
    stream
}

async fn run<D: Decoder>(
    request: &Request,
    build_request: fn(&Request) -> Result<(HttpRequest, D), Failure>,
    answer: &mut MessageBuilder,
) -> Result<(), Failure> {
    let (mut http_request, mut decoder) = build_request(request)?;
    if let Some(hooks) = &request.options.hooks {
        let body = http_request.body.take();
        http_request.body = answer
            .interruptible(hooks.payload(&request.model, body))
            .await?
            .map_err(Failure::Hook)?;
    }
    if let Some(encode) = http_request.encode {
        http_request.body = encode(http_request.body.take());
    }
    let response = open(&http_request, request, answer).await?;
    // The payload is freed before the answer, which may take minutes.
    drop(http_request);
    answer.start().await?;
    read(response, request, &mut decoder, answer).await
}

/// Sends the request until the server accepts it or refuses it for good.
async fn open(
    http_request: &HttpRequest,
    request: &Request,
    answer: &MessageBuilder,
) -> Result<Response, Failure> {
    let client = http::client()?;
    let body = Bytes::from(http_request.body.to_string());
    let retries = request
        .options
        .max_retries
        .unwrap_or(match http_request.envelope {
            Envelope::CodeAssist => CODE_ASSIST_RETRIES,
            _ => RETRIES,
        });
    let limit = request.options.timeout_ms.map(Duration::from_millis);
    let mut attempt = 0;
    loop {
        let sent = Instant::now();
        tracing::debug!(
            model = request.model.reference(),
            url = http_request.url.split('?').next(),
            bytes = body.len(),
            attempt,
            "a request is sent"
        );
        let mut headers = http_request.headers.clone();
        if let Some(sign) = &http_request.sign {
            let signing = sign.sign(&http_request.url, &mut headers, &body);
            answer.interruptible(signing).await??;
        }
        let sending = client
            .post(&http_request.url)
            .headers(headers)
            .body(body.clone())
            .send();
        let delay = match answer.interruptible(with_timeout(limit, sending)).await? {
            None if attempt == retries => {
                let limit = limit.unwrap_or_default().as_millis();
                let text = format!("There was no answer within {limit} ms (timeoutMs).");
                return Err(Failure::Timeout(text));
            }
            None => backoff_delay(attempt),
            Some(Ok(response)) => {
                tracing::debug!(
                    status = response.status().as_u16(),
                    milliseconds = sent.elapsed().as_millis(),
                    "the provider answers"
                );
                call_response_hook(&response, request, answer).await?;
                if response.status().is_success() {
                    return Ok(response);
                }
                let last = attempt == retries || !may_retry(&response);
                let requested =
                    handle_error_status(response, last, http_request, request, answer).await?;
                requested.unwrap_or_else(|| backoff_delay(attempt))
            }
            Some(Err(error)) if attempt == retries || error.is_builder() => {
                return Err(Failure::sending(&error, &http_request.url));
            }
            Some(Err(error)) => {
                tracing::debug!("the request was not sent: {}", error.without_url());
                backoff_delay(attempt)
            }
        };
        attempt += 1;
        answer.interruptible(tokio::time::sleep(delay)).await?;
    }
}

/// Returns `None` if `work` takes longer than `limit`.
async fn with_timeout<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

async fn read<D: Decoder>(
    mut response: Response,
    request: &Request,
    decoder: &mut D,
    answer: &mut MessageBuilder,
) -> Result<(), Failure> {
    let hooks = request.options.hooks.as_ref();
    let hooks = hooks.filter(|hooks| hooks.wants_events());
    let mut frames = FrameReader::new(D::FRAMING);
    let mut start = BodyStart::new(&response);
    loop {
        let (events, ended) = match answer.interruptible(response.chunk()).await? {
            Ok(Some(chunk)) => {
                start.chunk(&chunk);
                (frames.push(&chunk), None)
            }
            Ok(None) => {
                let mut events: Vec<SseEvent> = frames.finish().into_iter().collect();
                if !start.events && events.is_empty() {
                    events = start.whole::<D>();
                }
                (events, Some(None))
            }
            Err(error) => (Vec::new(), Some(Some(Failure::receiving(&error)))),
        };
        for event in events {
            start.events = true;
            if let Some(hooks) = hooks
                && let Some(data) = raw_event(&event, D::FRAMING)
            {
                let hook = hooks.event(&request.model, data);
                answer.interruptible(hook).await?;
            }
            if decoder.event(event, answer).await? == Flow::Complete {
                tokio::spawn(drain(response));
                return decoder.end(answer).await;
            }
        }
        if let Some(cut) = ended {
            return match (decoder.end(answer).await, cut) {
                (Err(Failure::Lost(_)), Some(cut)) => Err(cut),
                (Err(Failure::Lost(reason)), None) => Err(start.explain(reason)),
                (result, _) => result,
            };
        }
    }
}

/// Returns the event as the provider's SDK gives it; `None` if it is no JSON, such as `[DONE]`.
fn raw_event(event: &SseEvent, framing: Framing) -> Option<Box<RawValue>> {
    let text = match framing {
        Framing::Sse => event.data.clone(),
        Framing::Amazon => format!("{{{}:{}}}", Value::from(event.name.as_str()), event.data),
    };
    RawValue::from_string(text).ok()
}

/// Reads the body to its end, because the connection can be used again only then. The end is
/// usually in the same packet as the last event.
async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // Both outcomes are fine: the connection is kept or closed.
    let _ = tokio::time::timeout(TAIL_TIMEOUT, rest).await;
}

/// Keeps the start of the body until the first event comes, for servers that send something else.
struct BodyStart {
    content_type: String,
    bytes: Vec<u8>,
    events: bool,
}

impl BodyStart {
    /// Maximum number of bytes kept. A whole answer, with the text that it quotes, has fewer.
    const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;
    /// Bytes that an error message shows.
    const SHOWN_BYTES: usize = 500;

    fn new(response: &Response) -> Self {
        let content_type = response.headers().get(reqwest::header::CONTENT_TYPE);
        Self {
            content_type: content_type
                .and_then(|value| value.to_str().ok())
                .unwrap_or("no content type")
                .to_owned(),
            bytes: Vec::new(),
            events: false,
        }
    }

    fn chunk(&mut self, chunk: &[u8]) {
        if !self.events {
            let room = Self::MAX_KEPT_BYTES - self.bytes.len();
            self.bytes
                .extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
    }

    /// Returns the events that the body stands for, if it is a whole answer in JSON.
    fn whole<D: Decoder>(&self) -> Vec<SseEvent> {
        let body = str::from_utf8(&self.bytes).ok();
        let body = body.and_then(|body| surrogates::from_str(body).ok());
        let events = body.map(D::events_of_whole).unwrap_or_default();
        let events = events.into_iter().map(|event| SseEvent {
            name: String::new(),
            data: event.to_string(),
        });
        events.collect()
    }

    fn explain(self, reason: String) -> Failure {
        let start = &self.bytes[..self.bytes.len().min(Self::SHOWN_BYTES)];
        let start = String::from_utf8_lossy(start);
        if self.events || start.trim().is_empty() {
            return Failure::Lost(reason);
        }
        Failure::Provider(format!(
            "The server did not answer with an event stream but with {}: {}",
            self.content_type,
            start.trim()
        ))
    }
}

async fn call_response_hook(
    response: &Response,
    request: &Request,
    answer: &MessageBuilder,
) -> Result<(), Failure> {
    let Some(hooks) = &request.options.hooks else {
        return Ok(());
    };
    let mut headers: IndexMap<String, String> = IndexMap::new();
    for (name, value) in response.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers
            .entry(name.as_str().to_owned())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    let status = response.status().as_u16();
    answer
        .interruptible(hooks.response(&request.model, status, &headers))
        .await?
        .map_err(Failure::Hook)
}

/// Returns the time for which the server asks to wait, if it gives one. Fails if the request must
/// not be sent again.
async fn handle_error_status(
    response: Response,
    last: bool,
    http_request: &HttpRequest,
    request: &Request,
    answer: &MessageBuilder,
) -> Result<Option<Duration>, Failure> {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let is_too_long = |requested: Duration| request.options.is_too_long(requested);
    let requested = requested_delay(&headers, "", http_request.envelope);
    let in_text = requested.is_none() && http_request.envelope == Envelope::CodeAssist;
    if !last && !in_text && !requested.is_some_and(is_too_long) {
        return Ok(requested);
    }
    let text = error_text(response, answer).await?;
    let refusal = http_text(status, &text, http_request.envelope);
    if last {
        return Err(Failure::Http(refusal));
    }
    match requested_delay(&headers, &text, http_request.envelope) {
        Some(delay) if is_too_long(delay) => Err(Failure::TooBusy { delay, refusal }),
        requested => Ok(requested),
    }
}

/// Returns the body of an error response.
async fn error_text(mut response: Response, answer: &MessageBuilder) -> Result<String, Failure> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < MAX_ERROR_BODY_BYTES
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    // After the time limit the part that has arrived is used.
    let _ = answer
        .interruptible(tokio::time::timeout(TAIL_TIMEOUT, reading))
        .await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn may_retry(response: &Response) -> bool {
    match header(response.headers(), "x-should-retry") {
        Some("true") => true,
        Some("false") => false,
        _ => {
            let status = response.status();
            status.is_server_error()
                || matches!(
                    status,
                    StatusCode::REQUEST_TIMEOUT
                        | StatusCode::CONFLICT
                        | StatusCode::TOO_MANY_REQUESTS
                )
        }
    }
}

/// Doubles with each attempt and is shortened by up to a quarter at random, so that clients that
/// failed together do not retry together.
fn backoff_delay(attempt: u32) -> Duration {
    // The keys of a hasher are random; a random number generator needs a crate.
    let random = RandomState::new().hash_one(attempt) % 256;
    (FIRST_RETRY_DELAY * 2u32.pow(attempt)).mul_f64(1.0 - random as f64 / 1024.0)
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Replaces a header, ignoring the case of its name.
pub(crate) fn set_header(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), Failure> {
    let invalid = || Failure::Header(name.to_owned());
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| invalid())?;
    value.set_sensitive(matches!(key.as_str(), "authorization" | "x-api-key"));
    headers.insert(key, value);
    Ok(())
}
