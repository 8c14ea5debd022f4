//! What robust clients need: a greeting in which both sides say what they can, a sign
//! of life, and the events that were missed. Answered by the thread that writes, so
//! that the numbers in the answers are those of the events before them.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::answers::{Answer, Greeting, Pong, Server};
use super::command::{COMMANDS, Hello};
use super::handle::response;
use crate::app::{AgentSession, ErrorCode, Refusal};
use crate::modes::output::Output;
use crate::modes::wire::{Agreed, Gone, Missed};
use pi_base::{VERSION, compared_version};

/// Of our own part of the protocol; the rest is named by the original's versions. It
/// grows when a client that knows the one before could misunderstand something.
pub const PROTOCOL: u32 = 1;

/// The methods of `ctx.ui` that become requests, by their names there.
const UI: [&str; 9] = [
    "select",
    "confirm",
    "input",
    "editor",
    "notify",
    "setStatus",
    "setWidget",
    "setTitle",
    "setEditorText",
];

pub fn hello(
    session: &Arc<AgentSession>,
    output: &Output,
    id: Option<Value>,
    name: String,
    hello: Hello,
) {
    tracing::info!(
        client = hello.client,
        protocol = hello.protocol_version,
        "a client says hello"
    );
    session.set_ui_methods(hello.ui.map(|methods| {
        // As it is called in the request.
        let known = |method: String| match method.as_str() {
            "set_editor_text" => "setEditorText".to_owned(),
            _ => method,
        };
        methods.into_iter().map(known).collect()
    }));
    let wanted = hello.capabilities.unwrap_or_default();
    let agreed = Agreed::of(wanted.iter().map(String::as_str));
    output.ask(move |wire| {
        wire.agree(agreed);
        let greeting = Greeting {
            protocol_version: PROTOCOL,
            server: Server {
                name: "pi",
                version: VERSION,
                compatible_with: compared_version(),
            },
            capabilities: Agreed::NAMES.to_vec(),
            enabled: agreed.names(),
            ui: UI,
            commands: COMMANDS.to_vec(),
            seq: wire.seq(),
        };
        response(id, name, Ok(Some(Answer::Hello(greeting))))
    });
}

pub fn ping(output: &Output, id: Option<Value>, name: String) {
    let pong = move |seq| response(id, name, Ok(Some(Answer::Ping(Pong { seq }))));
    output.ask(move |wire| pong(wire.seq()));
}

pub fn events(output: &Output, id: Option<Value>, name: String, since: u64) {
    output.ask(move |wire| {
        let answer = match wire.missed(since) {
            Ok(missed) => written(&missed).map(|events| Some(Answer::GetEvents(events))),
            Err(gone) => Err(refusal(since, gone)),
        };
        response(id, name, answer)
    });
}

fn written(missed: &Missed<'_>) -> Result<Box<RawValue>, Refusal> {
    let mut text = b"{\"events\":[".to_vec();
    text.extend(missed.events.join(&b','));
    text.extend(format!("],\"latest\":{}}}", missed.latest).bytes());
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    RawValue::from_string(text).map_err(|error| Refusal::from(error.to_string()))
}

fn refusal(since: u64, gone: Gone) -> Refusal {
    let Gone { oldest, latest } = gone;
    let text = match oldest {
        _ if since > latest => format!("There is no event {since} yet: the last one is {latest}"),
        Some(oldest) => format!(
            "The events after {since} are not kept any more: the oldest is {oldest}, the last \
             {latest}. Ask for the state instead"
        ),
        None => format!(
            "The events after {since} were not kept; the last one is {latest}. They are kept from \
             a hello with the capability \"seq\" on"
        ),
    };
    Refusal::new(ErrorCode::EventsGone, text)
}
