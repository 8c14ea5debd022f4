//! What handlers of `turn_end` and `agent_before_settle` want before the agent goes on or
//! rests: entries of the session, and one more request (extensions.md of 1.5.2).

use std::sync::Arc;

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::extensions::api::session_api::Actions;
use crate::extensions::bridge::{BridgeResult, parse};
use crate::session::message::CustomMessage;

/// An entry that is to be appended.
#[derive(Clone, Debug)]
pub enum Draft {
    /// Said to the model.
    Message(CustomMessage),
    /// Any other, as it stands in a session file but for its place there.
    Entry(Value),
}

/// What the handlers of one event want together.
#[derive(Debug, Default)]
pub struct Proposal {
    pub drafts: Vec<Draft>,
    /// The model is asked once more, if nothing else makes it so.
    pub go_on: bool,
}

impl Proposal {
    /// What both want.
    pub fn and(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(mut both), Some(second)) => {
                both.drafts.extend(second.drafts);
                both.go_on |= second.go_on;
                Some(both)
            }
            (first, second) => first.or(second),
        }
    }
}

const TYPES: [&str; 4] = ["custom", "custom_message", "context_edit", "compaction"];

impl Draft {
    fn read(entry: Value) -> Result<Self, String> {
        let kind = entry.get("type").and_then(Value::as_str).unwrap_or("");
        if !TYPES.contains(&kind) {
            return Err(format!(
                "`type` is {}, not {}",
                TYPES.map(|one| format!("{one:?}")).join(" or "),
                entry.get("type").unwrap_or(&Value::Null),
            ));
        }
        if kind != "custom_message" {
            return Ok(Self::Entry(entry));
        }
        let message = serde_json::from_value(entry);
        message
            .map(Self::Message)
            .map_err(|error| error.to_string())
    }
}

/// The proposal of the event that is being told.
#[derive(Default)]
pub struct Proposals(Mutex<Option<(u64, Proposal)>>);

#[derive(Deserialize)]
struct Proposed {
    #[serde(default)]
    change: u64,
    entries: Vec<Value>,
    #[serde(default, rename = "continue")]
    go_on: bool,
}

/// The entries as the session could take them.
pub fn drafts(entries: Vec<Value>, actions: &dyn Actions) -> Result<Vec<Draft>, String> {
    let numbered = entries.into_iter().enumerate();
    let drafts = numbered.map(|(index, entry)| {
        let draft = Draft::read(entry).and_then(|draft| {
            let checked = actions.check_draft(&draft);
            checked.map(|()| draft).map_err(|error| error.0)
        });
        draft.map_err(|problem| format!("entries[{index}]: {problem}"))
    });
    drafts.collect()
}

impl Proposals {
    /// What the handlers have proposed under this number.
    pub fn take(&self, change: u64) -> Option<Proposal> {
        // A handler that nobody waited for may have left another one.
        let (_, proposal) = self.0.lock().take_if(|(number, _)| *number == change)?;
        Some(proposal)
    }

    /// Answers with what is wrong, or with what the model would be told.
    pub(in crate::extensions) fn serve(
        &self,
        method: &str,
        args: &str,
        actions: impl FnOnce() -> Result<Arc<dyn Actions>, HostError>,
    ) -> Option<BridgeResult> {
        let answer = |given: fn(&Self, Proposed, &dyn Actions) -> BridgeResult| {
            let given = || given(self, parse(method, args)?, &*actions()?);
            given()
        };
        match method {
            "turnEnd.propose" => Some(answer(Self::propose)),
            "turnEnd.preview" => Some(answer(|_, proposed, actions| {
                let drafts = drafts(proposed.entries, actions).map_err(HostError::new)?;
                Ok(actions.preview(&drafts))
            })),
            _ => None,
        }
    }

    fn propose(&self, proposed: Proposed, actions: &dyn Actions) -> BridgeResult {
        let (change, go_on) = (proposed.change, proposed.go_on);
        Ok(match drafts(proposed.entries, actions) {
            Ok(drafts) => {
                *self.0.lock() = Some((change, Proposal { drafts, go_on }));
                Value::Null
            }
            Err(problem) => Value::String(problem),
        })
    }
}
