//! Changes that handlers of a queued event make to the member that counts.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bridge::{BridgeResult, parse_stored};
use crate::diagnostics::results::{self, Accepted};
use pi_agent::AgentMessage;
use pi_agent::event::Event;
use pi_tools::tool::ToolOutput;

/// Tells the bridge to report changes of an event, or proposals.
#[derive(Clone, Copy, Serialize)]
pub struct MutationSlot {
    /// The number that the bridge sends with its report.
    pub number: u64,
    /// The member that handlers may change; `None` for the end of a turn, where they make
    /// proposals.
    pub member: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub enum Mutation {
    Message(Arc<AgentMessage>),
    /// Arguments of a tool call.
    Args(Value),
    Result(Box<ToolOutput>),
}

impl Mutation {
    pub fn apply_to(&self, event: &mut Event) {
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

/// The last usable change, with its number.
#[derive(Default)]
pub struct Mutations(Mutex<Option<(u64, Mutation)>>);

#[derive(Deserialize)]
struct MutatedArgs {
    change: u64,
    member: String,
    /// Role of the original message.
    #[serde(default)]
    role: String,
    /// Absent if the handler has removed the member.
    #[serde(default)]
    value: Value,
}

impl Mutations {
    /// Returns the change with this number. An abandoned handler may have left another one.
    pub fn take(&self, number: u64) -> Option<Mutation> {
        let (_, changed) = self.0.lock().take().filter(|(of, _)| *of == number)?;
        Some(changed)
    }

    /// Stores a change. The result names the problem if the change cannot be used.
    pub(crate) fn serve(&self, method: &str, json: &str) -> Option<BridgeResult> {
        if method != "event.mutated" {
            return None;
        }
        let args = parse_stored::<MutatedArgs>(method, json);
        Some(args.map(|args| {
            let number = args.change;
            match parse_mutation(args) {
                Ok(changed) => {
                    *self.0.lock() = Some((number, changed));
                    Value::Null
                }
                Err(problem) => Value::String(problem),
            }
        }))
    }
}

fn parse_mutation(args: MutatedArgs) -> Result<Mutation, String> {
    let MutatedArgs { member, value, .. } = args;
    match member.as_str() {
        "message" => {
            let message = results::read_replacement(&args.role, &value)?;
            Ok(Mutation::Message(Arc::new(message)))
        }
        "args" => match results::check_object(&member, value) {
            Accepted::All(args) => Ok(Mutation::Args(args)),
            Accepted::Part(_, problem) | Accepted::Nothing(problem) => Err(problem),
        },
        _ => {
            let result = results::read_member::<ToolOutput>(&member, &value)?;
            Ok(Mutation::Result(Box::new(result)))
        }
    }
}
