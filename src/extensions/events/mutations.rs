//! What handlers of a queued event have made of the member that counts.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::extensions::bridge::{BridgeResult, parse_stored};
use crate::extensions::diagnostics::results::{self, Fit};
use crate::tools::tool::ToolOutput;

/// What the bridge tells of an event that the agent listens to.
#[derive(Clone, Copy, Serialize)]
pub struct Change {
    /// Under which it tells it.
    pub number: u64,
    /// The member that handlers may change; at the end of a turn they propose something.
    pub member: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub enum Changed {
    Message(Arc<AgentMessage>),
    /// Of a call of a tool.
    Args(Value),
    Result(Box<ToolOutput>),
}

impl Changed {
    pub fn put_into(&self, event: &mut Event) {
        match (self, event) {
            (
                Self::Message(changed),
                Event::MessageStart { message } | Event::MessageEnd { message },
            ) => *message = changed.clone(),
            (Self::Args(changed), Event::ToolExecutionStart { args, .. }) => {
                *args = changed.clone();
            }
            (Self::Result(changed), Event::ToolExecutionEnd { result, .. }) => {
                *result = ToolOutput::clone(changed);
            }
            _ => {}
        }
    }
}

/// The last one that could be used.
#[derive(Default)]
pub struct Changes(Mutex<Option<(u64, Changed)>>);

#[derive(Deserialize)]
struct Told {
    change: u64,
    member: String,
    /// Of a message as it was.
    #[serde(default)]
    role: String,
    /// Absent if the handler has taken the member away.
    #[serde(default)]
    value: Value,
}

impl Changes {
    /// What was told under this number. A handler that nobody waited for may have left
    /// another one.
    pub fn take(&self, number: u64) -> Option<Changed> {
        let (_, changed) = self.0.lock().take().filter(|(of, _)| *of == number)?;
        Some(changed)
    }

    /// Answers with what is wrong, if the change cannot be used.
    pub(in crate::extensions) fn serve(&self, method: &str, args: &str) -> Option<BridgeResult> {
        if method != "event.mutated" {
            return None;
        }
        let told = parse_stored::<Told>(method, args);
        Some(told.map(|told| {
            let number = told.change;
            match read(told) {
                Ok(changed) => {
                    *self.0.lock() = Some((number, changed));
                    Value::Null
                }
                Err(problem) => Value::String(problem),
            }
        }))
    }
}

fn read(told: Told) -> Result<Changed, String> {
    let Told { member, value, .. } = told;
    match member.as_str() {
        "message" => {
            let message = results::message(&told.role, &value)?;
            Ok(Changed::Message(Arc::new(message)))
        }
        "args" => match results::object(&member, value) {
            Fit::All(args) => Ok(Changed::Args(args)),
            Fit::Part(_, problem) | Fit::Nothing(problem) => Err(problem),
        },
        _ => {
            let result = results::read::<ToolOutput>(&member, &value)?;
            Ok(Changed::Result(Box::new(result)))
        }
    }
}
