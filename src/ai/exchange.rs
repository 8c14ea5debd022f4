//! The part that all HTTP APIs share: send the request, try again where that is
//! harmless, read the events, and turn whatever goes wrong into the end of the
//! answer.

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use bytes::Bytes;
use indexmap::IndexMap;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use serde_json::value::RawValue;

use super::accumulate::Answer;
use super::failure::{Envelope, Failure, http_text};
use super::frames::FrameDecoder;
use super::half_characters;
use super::http;
use super::retry_delay::asked_delay;
use super::sse::{SseDecoder, SseEvent};
use super::stream::{AssistantStream, Request};

/// As the SDKs of the providers do; the agent has its own, slower retries above.
const RETRIES: u32 = 2;
/// As Gemini CLI does.
const RETRIES_OF_CODE_ASSIST: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// For the text of an error, and for the end of a body after the last event.
const TAIL_TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_ERROR_BODY: usize = 64 * 1024;

/// A request, ready to be sent.
pub(super) struct Call {
    pub url: String,
    pub headers: HeaderMap,
    pub body: Value,
    pub envelope: Envelope,
    /// What goes over the wire, where extensions are shown something else: what the
    /// provider's SDK takes.
    pub encode: Option<fn(Value) -> Value>,
    /// What proves who asks, where it depends on the body.
    pub sign: Option<Sign>,
}

/// Of the address, the headers that it adds to, and the body.
pub(super) type Sign =
    Box<dyn Fn(&str, &mut HeaderMap, &[u8]) -> Result<(), Failure> + Send + Sync>;

/// How the events of an answer are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Sse,
    Amazon,
}

enum Frames {
    Sse(SseDecoder),
    Amazon(FrameDecoder),
}

impl Frames {
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

    /// What the end of the body completes.
    fn finish(&mut self) -> Option<SseEvent> {
        match self {
            Self::Sse(decoder) => decoder.finish(),
            Self::Amazon(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    More,
    /// Nothing that matters can follow.
    Complete,
}

/// Reads the events of one answer.
pub(super) trait Decoder: Send + Sized + 'static {
    const FRAMING: Framing = Framing::Sse;

    /// The events that a whole answer stands for, from a server that does not stream although
    /// it was asked to; none for a body that is no answer.
    fn events_of_whole(_body: Value) -> Vec<Value> {
        Vec::new()
    }

    fn event(
        &mut self,
        event: SseEvent,
        answer: &mut Answer,
    ) -> impl Future<Output = Result<Flow, Failure>> + Send;

    /// After [`Flow::Complete`] or when the stream ends, however it ends. Fails
    /// with [`Failure::Lost`] if the answer is not complete.
    fn end(&mut self, answer: &mut Answer) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Runs a request in a task of its own.
pub(super) fn stream<D: Decoder>(
    request: Request,
    prepare: fn(&Request) -> Result<(Call, D), Failure>,
) -> AssistantStream {
    let (items, stream) = AssistantStream::channel();
    tokio::spawn(async move {
        let mut answer = Answer::new(&request.model, items, request.cancel.clone());
        let result = run(&request, prepare, &mut answer).await;
        if let Err(failure) = &result {
            tracing::debug!(model = request.model.reference(), %failure, "the answer failed");
        }
        answer.finish(result).await;
    });
    stream
}

async fn run<D: Decoder>(
    request: &Request,
    prepare: fn(&Request) -> Result<(Call, D), Failure>,
    answer: &mut Answer,
) -> Result<(), Failure> {
    let (mut call, mut decoder) = prepare(request)?;
    if let Some(hooks) = &request.options.hooks {
        let body = call.body.take();
        call.body = answer
            .interruptible(hooks.payload(&request.model, body))
            .await?
            .map_err(Failure::Hook)?;
    }
    if let Some(encode) = call.encode {
        call.body = encode(call.body.take());
    }
    let response = open(&call, request, answer).await?;
    // Less to keep while the answer takes its minutes.
    drop(call);
    answer.start().await?;
    read(response, request, &mut decoder, answer).await
}

/// Sends until there is an answer, or a refusal that is final.
async fn open(call: &Call, request: &Request, answer: &Answer) -> Result<Response, Failure> {
    let client = http::client()?;
    let body = Bytes::from(call.body.to_string());
    let retries = request.options.max_retries.unwrap_or(match call.envelope {
        Envelope::CodeAssist => RETRIES_OF_CODE_ASSIST,
        _ => RETRIES,
    });
    let limit = request.options.timeout_ms.map(Duration::from_millis);
    let mut attempt = 0;
    loop {
        let sent = Instant::now();
        tracing::debug!(
            model = request.model.reference(),
            url = call.url.split('?').next(),
            bytes = body.len(),
            attempt,
            "a request is sent"
        );
        let mut headers = call.headers.clone();
        if let Some(sign) = &call.sign {
            sign(&call.url, &mut headers, &body)?;
        }
        let sending = client
            .post(&call.url)
            .headers(headers)
            .body(body.clone())
            .send();
        let delay = match answer.interruptible(within(limit, sending)).await? {
            None if attempt == retries => {
                let limit = limit.unwrap_or_default().as_millis();
                let text = format!("There was no answer within {limit} ms (timeoutMs).");
                return Err(Failure::Timeout(text));
            }
            None => back_off(attempt),
            Some(Ok(response)) => {
                tracing::debug!(
                    status = response.status().as_u16(),
                    milliseconds = sent.elapsed().as_millis(),
                    "the provider answers"
                );
                tell_hooks(&response, request, answer).await?;
                if response.status().is_success() {
                    return Ok(response);
                }
                let last = attempt == retries || !may_retry(&response);
                let asked = refused(response, last, call, request, answer).await?;
                asked.unwrap_or_else(|| back_off(attempt))
            }
            Some(Err(error)) if attempt == retries || error.is_builder() => {
                return Err(Failure::sending(&error, &call.url));
            }
            Some(Err(error)) => {
                tracing::debug!("the request was not sent: {}", error.without_url());
                back_off(attempt)
            }
        };
        attempt += 1;
        answer.interruptible(tokio::time::sleep(delay)).await?;
    }
}

/// `None` if it takes longer.
async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await.ok(),
        None => Some(work.await),
    }
}

async fn read<D: Decoder>(
    mut response: Response,
    request: &Request,
    decoder: &mut D,
    answer: &mut Answer,
) -> Result<(), Failure> {
    let hooks = request.options.hooks.as_ref();
    let hooks = hooks.filter(|hooks| hooks.wants_events());
    let mut sse = Frames::new(D::FRAMING);
    let mut seen = Seen::new(&response);
    loop {
        let (events, ended) = match answer.interruptible(response.chunk()).await? {
            Ok(Some(chunk)) => {
                seen.chunk(&chunk);
                (sse.push(&chunk), None)
            }
            Ok(None) => {
                let mut events: Vec<SseEvent> = sse.finish().into_iter().collect();
                if !seen.events && events.is_empty() {
                    events = seen.whole::<D>();
                }
                (events, Some(None))
            }
            Err(error) => (Vec::new(), Some(Some(Failure::receiving(&error)))),
        };
        for event in events {
            seen.events = true;
            if let Some(hooks) = hooks
                && let Some(data) = raw(&event, D::FRAMING)
            {
                let telling = hooks.event(&request.model, data);
                answer.interruptible(telling).await?;
            }
            if decoder.event(event, answer).await? == Flow::Complete {
                tokio::spawn(drain(response));
                return decoder.end(answer).await;
            }
        }
        if let Some(cut) = ended {
            return match (decoder.end(answer).await, cut) {
                (Err(Failure::Lost(_)), Some(cut)) => Err(cut),
                (Err(Failure::Lost(reason)), None) => Err(seen.explain(reason)),
                (result, _) => result,
            };
        }
    }
}

/// What the provider's SDK would give; none where it is no JSON, like `[DONE]`.
fn raw(event: &SseEvent, framing: Framing) -> Option<Box<RawValue>> {
    let text = match framing {
        Framing::Sse => event.data.clone(),
        Framing::Amazon => format!("{{{}:{}}}", Value::from(event.name.as_str()), event.data),
    };
    RawValue::from_string(text).ok()
}

/// A connection can only be used again when its body was read to the end, which
/// is usually in the same packet as the last event.
async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // Both outcomes are fine: the connection is kept or closed.
    let _ = tokio::time::timeout(TAIL_TIMEOUT, rest).await;
}

/// Remembers the body as long as no event came, for servers that answer something else.
struct Seen {
    content_type: String,
    start: Vec<u8>,
    events: bool,
}

impl Seen {
    /// More than a whole answer has, with what it quotes.
    const LONGEST: usize = 32 * 1024 * 1024;
    /// Bytes that are shown.
    const SHOWN: usize = 500;

    fn new(response: &Response) -> Self {
        let content_type = response.headers().get(reqwest::header::CONTENT_TYPE);
        Self {
            content_type: content_type
                .and_then(|value| value.to_str().ok())
                .unwrap_or("no content type")
                .to_owned(),
            start: Vec::new(),
            events: false,
        }
    }

    fn chunk(&mut self, chunk: &[u8]) {
        if !self.events {
            let room = Self::LONGEST - self.start.len();
            self.start
                .extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
    }

    /// The events that the body stands for, if it is a whole answer in JSON.
    fn whole<D: Decoder>(&self) -> Vec<SseEvent> {
        let body = str::from_utf8(&self.start).ok();
        let body = body.and_then(|body| half_characters::from_str(body).ok());
        let events = body.map(D::events_of_whole).unwrap_or_default();
        let events = events.into_iter().map(|event| SseEvent {
            name: String::new(),
            data: event.to_string(),
        });
        events.collect()
    }

    fn explain(self, reason: String) -> Failure {
        let start = &self.start[..self.start.len().min(Self::SHOWN)];
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

async fn tell_hooks(
    response: &Response,
    request: &Request,
    answer: &Answer,
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

/// How long the server wants to be left alone, if it says so; an error if it is not to be
/// asked again.
async fn refused(
    response: Response,
    last: bool,
    call: &Call,
    request: &Request,
    answer: &Answer,
) -> Result<Option<Duration>, Failure> {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let is_too_long = |asked: Duration| request.options.is_too_long(asked);
    let asked = asked_delay(&headers, "", call.envelope);
    let in_text = asked.is_none() && call.envelope == Envelope::CodeAssist;
    if !last && !in_text && !asked.is_some_and(is_too_long) {
        return Ok(asked);
    }
    let text = error_text(response, answer).await?;
    let refusal = http_text(status, &text, call.envelope);
    if last {
        return Err(Failure::Http(refusal));
    }
    match asked_delay(&headers, &text, call.envelope) {
        Some(delay) if is_too_long(delay) => Err(Failure::TooBusy { delay, refusal }),
        asked => Ok(asked),
    }
}

/// What came with a refusal.
async fn error_text(mut response: Response, answer: &Answer) -> Result<String, Failure> {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < LONGEST_ERROR_BODY
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    // What has arrived until then is shown.
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

/// Doubles, less up to a quarter, so that clients that failed together do not
/// come back together.
fn back_off(attempt: u32) -> Duration {
    // A hasher's keys are random; a generator for this alone is not worth a crate.
    let random = RandomState::new().hash_one(attempt) % 256;
    (FIRST_DELAY * 2u32.pow(attempt)).mul_f64(1.0 - random as f64 / 1024.0)
}

pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Replaces the header, whatever case its name was written in.
pub(super) fn set_header(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), Failure> {
    let invalid = || Failure::Header(name.to_owned());
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| invalid())?;
    value.set_sensitive(matches!(key.as_str(), "authorization" | "x-api-key"));
    headers.insert(key, value);
    Ok(())
}
