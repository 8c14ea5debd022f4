//! `hello`, `ping` and `get_events`, for clients that negotiate capabilities and connect
//! again. The writer thread answers them, so that the numbers in the responses are those of
//! the events before them.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::command::{COMMANDS, Hello};
use super::handle::response;
use super::responses::{Greeting, Pong, ResponseData, Server};
use crate::output::Output;
use crate::wire::{Capabilities, Evicted, MissedEvents};
use pi_app::{AgentSession, CommandError, ErrorCode};
use pi_base::{VERSION, compared_version};

/// Version of the part of the protocol that the original does not have. It grows when a
/// client that knows the version before could misunderstand something.
pub const PROTOCOL_VERSION: u32 = 1;

/// The methods of `ctx.ui` that become requests to the client, by their names in `ctx.ui`.
const UI_METHODS: [&str; 9] = [
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
        // The request has this name in another spelling.
        let known = |method: String| match method.as_str() {
            "set_editor_text" => "setEditorText".to_owned(),
            _ => method,
        };
        methods.into_iter().map(known).collect()
    }));
    let requested = hello.capabilities.unwrap_or_default();
    let capabilities = Capabilities::from_names(requested.iter().map(String::as_str));
    session.set_permission_requests(capabilities.permission_requests);
    output.computed_line(move |events| {
        events.set_capabilities(capabilities);
        let greeting = Greeting {
            protocol_version: PROTOCOL_VERSION,
            server: Server {
                name: "pi",
                version: VERSION,
                compatible_with: compared_version(),
            },
            capabilities: Capabilities::NAMES.to_vec(),
            enabled: capabilities.names(),
            ui: UI_METHODS,
            commands: COMMANDS.to_vec(),
            seq: events.seq(),
        };
        response(id, name, &Ok(Some(ResponseData::Hello(greeting))))
    });
}

pub fn ping(output: &Output, id: Option<Value>, name: String) {
    let pong = move |seq| response(id, name, &Ok(Some(ResponseData::Ping(Pong { seq }))));
    output.computed_line(move |events| pong(events.seq()));
}

pub fn get_events(output: &Output, id: Option<Value>, name: String, since: u64) {
    output.computed_line(move |events| {
        let data = match events.events_after(since) {
            Ok(missed) => events_json(&missed).map(|events| Some(ResponseData::Json(events))),
            Err(evicted) => Err(evicted_error(since, evicted)),
        };
        response(id, name, &data)
    });
}

fn events_json(missed: &MissedEvents<'_>) -> Result<Box<RawValue>, CommandError> {
    let mut text = b"{\"events\":[".to_vec();
    text.extend(missed.events.join(&b','));
    text.extend(format!("],\"latest\":{}}}", missed.latest).bytes());
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    RawValue::from_string(text).map_err(|error| CommandError::from(error.to_string()))
}

fn evicted_error(since: u64, evicted: Evicted) -> CommandError {
    let Evicted { oldest, latest } = evicted;
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
    CommandError::new(ErrorCode::EventsGone, text)
}
