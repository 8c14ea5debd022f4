//! Proposals of `turn_end` and `agent_before_settle` handlers: entries to append to the
//! session, and one more request to the model.

use std::sync::Arc;

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::api::session_api::SessionApi;
use crate::bridge::{BridgeResult, parse};
use pi_session::message::CustomMessage;

/// An entry to append.
#[derive(Clone, Debug)]
pub enum Draft {
    /// A message that the model sees.
    Message(CustomMessage),
    /// Any other entry, in the format of session files without `id` and `parentId`.
    Entry(Value),
}

/// The merged proposals of all handlers of one event.
#[derive(Debug, Default)]
pub struct Proposal {
    pub drafts: Vec<Draft>,
    /// Whether to send one more request, if nothing else causes one.
    pub continues: bool,
}

impl Proposal {
    /// Merges two proposals.
    pub fn merge(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (first, second) {
            (Some(mut both), Some(second)) => {
                both.drafts.extend(second.drafts);
                both.continues |= second.continues;
                Some(both)
            }
            (first, second) => first.or(second),
        }
    }
}

const ENTRY_TYPES: [&str; 4] = ["custom", "custom_message", "context_edit", "compaction"];

impl Draft {
    fn read(entry: Value) -> Result<Self, String> {
        let kind = entry.get("type").and_then(Value::as_str).unwrap_or("");
        if !ENTRY_TYPES.contains(&kind) {
            return Err(format!(
                "`type` is {}, not {}",
                ENTRY_TYPES.map(|one| format!("{one:?}")).join(" or "),
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

/// The proposal of the event that is being emitted, with its number.
#[derive(Default)]
pub struct Proposals(Mutex<Option<(u64, Proposal)>>);

#[derive(Deserialize)]
struct ProposalArgs {
    #[serde(default)]
    change: u64,
    entries: Vec<Value>,
    #[serde(default, rename = "continue")]
    continues: bool,
}

/// Parses entries and checks that the session accepts them.
pub fn parse_drafts(entries: Vec<Value>, actions: &dyn SessionApi) -> Result<Vec<Draft>, String> {
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
    /// Returns the proposal with this number.
    pub fn take(&self, change: u64) -> Option<Proposal> {
        // An abandoned handler may have left another one.
        let (_, proposal) = self.0.lock().take_if(|(number, _)| *number == change)?;
        Some(proposal)
    }

    /// Serves `turnEnd.propose`, whose result names the problem if there is one, and
    /// `turnEnd.preview`, whose result is the context with the entries.
    pub(crate) fn serve(
        &self,
        method: &str,
        args: &str,
        actions: impl FnOnce() -> Result<Arc<dyn SessionApi>, HostError>,
    ) -> Option<BridgeResult> {
        let serve = |handle: fn(&Self, ProposalArgs, &dyn SessionApi) -> BridgeResult| {
            let call = || handle(self, parse(method, args)?, &*actions()?);
            call()
        };
        match method {
            "turnEnd.propose" => Some(serve(Self::propose)),
            "turnEnd.preview" => Some(serve(|_, proposed, actions| {
                let drafts = parse_drafts(proposed.entries, actions).map_err(HostError::new)?;
                Ok(actions.preview(&drafts))
            })),
            _ => None,
        }
    }

    fn propose(&self, proposed: ProposalArgs, actions: &dyn SessionApi) -> BridgeResult {
        let (change, continues) = (proposed.change, proposed.continues);
        Ok(match parse_drafts(proposed.entries, actions) {
            Ok(drafts) => {
                *self.0.lock() = Some((change, Proposal { drafts, continues }));
                Value::Null
            }
            Err(problem) => Value::String(problem),
        })
    }
}
