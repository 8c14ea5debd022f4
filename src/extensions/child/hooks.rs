//! Hooks of a child session: `beforeToolCall` and `afterToolCall` of its agent, and
//! handlers of extensions that are passed as functions, which may change messages, requests
//! and entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::ChildEvent;
use super::tools::JsCalls;
use crate::api::session_api::SessionApi;
use crate::events::dispatch::Emission;
use crate::events::turn_end::{Proposal, parse_drafts};
use crate::registry::ExtensionId;
use pi_agent::run::{Refusal, ToolOutcome};
use pi_ai::json::depth::{self, Origin};
use pi_ai::message::{ContentBlock, ToolCall};
use pi_tools::tool::ToolError;

pub struct ChildHooks {
    calls: Arc<JsCalls>,
    before: AtomicBool,
    after: AtomicBool,
    turn_end: AtomicBool,
    /// Names of events that handlers may change.
    changes: Mutex<Vec<String>>,
}

/// Changes of hooks; absent members stay.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HookChanges {
    before: Option<bool>,
    after: Option<bool>,
    turn_end: Option<bool>,
    changes: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct TurnEndResult {
    entries: Vec<Value>,
    #[serde(rename = "continue")]
    continues: bool,
}

#[derive(Deserialize)]
struct BeforeResult {
    blocked: Option<Blocked>,
    args: Value,
}

#[derive(Deserialize)]
struct Blocked {
    reason: String,
    terminate: bool,
}

/// Absent members stay.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AfterResult {
    content: Option<Vec<ContentBlock>>,
    details: Option<Value>,
    is_error: Option<bool>,
    terminate: Option<bool>,
    usage: Option<Value>,
}

fn refusal(error: &ToolError) -> Refusal {
    Refusal {
        reason: error.to_string(),
        terminate: false,
    }
}

impl ChildHooks {
    pub(super) fn new(calls: Arc<JsCalls>) -> Self {
        Self {
            calls,
            before: AtomicBool::new(false),
            after: AtomicBool::new(false),
            turn_end: AtomicBool::new(false),
            changes: Mutex::default(),
        }
    }

    pub(super) fn set(&self, set: &HookChanges) {
        let hooks = [
            (&self.before, set.before),
            (&self.after, set.after),
            (&self.turn_end, set.turn_end),
        ];
        for (hook, is_set) in hooks {
            if let Some(is_set) = is_set {
                hook.store(is_set, Ordering::Relaxed);
            }
        }
        if let Some(names) = &set.changes {
            self.changes.lock().clone_from(names);
        }
    }

    /// Returns whether functions handle an event of the table.
    pub(crate) fn has_handlers(&self, name: &str) -> bool {
        match name {
            "turn_end" => self.turn_end.load(Ordering::Relaxed),
            _ => self.changes.lock().iter().any(|one| one == name),
        }
    }

    /// Calls the functions of an event, and adds to `emission` what they have made of it. An
    /// error is reported in the parent extension, and changes nothing.
    pub(crate) async fn handle(
        &self,
        name: &'static str,
        mut emission: Emission,
        actions: Option<Arc<dyn SessionApi>>,
        cancel: &CancellationToken,
    ) -> Emission {
        let mut event = Value::Object(emission.event.clone());
        event["type"] = name.into();
        let handled = match (name, actions) {
            ("turn_end", Some(actions)) => {
                let proposed = self.end_turn(event, &*actions, cancel).await;
                proposed.map(|more| {
                    emission.proposal = Proposal::merge(emission.proposal.take(), Some(more));
                })
            }
            // The session is over.
            ("turn_end", None) => Ok(()),
            _ => {
                let changed = self.change(name, event, cancel).await;
                changed.map(|(event, messages)| {
                    emission.event = event;
                    // The messages belong to no loaded extension.
                    let messages = messages.into_iter();
                    let messages = messages.map(|it| ("message", ExtensionId::MAX, it));
                    emission.collected.extend(messages);
                })
            }
        };
        if let Err(error) = handled
            // The result of an aborted call is ignored.
            && !cancel.is_cancelled()
        {
            self.report_error(format!("{name}: {error}")).await;
        }
        emission
    }

    /// Returns the event as its functions leave it, and the messages that they add.
    async fn change(
        &self,
        name: &'static str,
        event: Value,
        cancel: &CancellationToken,
    ) -> Result<(Map<String, Value>, Vec<Value>), String> {
        let changed = self.call_hook(name, "change", event, cancel).await;
        let mut changed: Map<String, Value> = changed.map_err(|error| error.to_string())?;
        let added = match name {
            "before_agent_start" => changed.remove("messages"),
            _ => None,
        };
        match added {
            Some(Value::Array(messages)) => Ok((changed, messages)),
            _ => Ok((changed, Vec::new())),
        }
    }

    async fn call_hook<T: DeserializeOwned>(
        &self,
        hook: &str,
        task: &'static str,
        args: Value,
        cancel: &CancellationToken,
    ) -> Result<T, ToolError> {
        let call = self.calls.next_number();
        let result = self.calls.call_until(call, hook, task, args, cancel);
        let result = result.await?;
        let unusable =
            |why: String| ToolError::new(format!("What {hook} gave cannot be used: {why}"));
        // An event may contain stored entries, which may be nested deeper.
        let of = match task {
            "change" => Origin::SessionLine,
            _ => Origin::CallArguments,
        };
        match depth::value_depth_problem(&result, of) {
            Some(problem) => Err(unusable(problem)),
            None => serde_json::from_value(result).map_err(|error| unusable(error.to_string())),
        }
    }

    /// Calls `beforeToolCall`. An error blocks the tool, because the hook may be a gate.
    pub(crate) async fn before_tool_call(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<(), Refusal> {
        if !self.before.load(Ordering::Relaxed) {
            return Ok(());
        }
        let input = json!({ "toolCall": call, "args": args });
        let result = self.call_hook::<BeforeResult>("beforeToolCall", "before", input, cancel);
        let result = result.await.map_err(|error| refusal(&error))?;
        if let Some(Blocked { reason, terminate }) = result.blocked {
            return Err(Refusal { reason, terminate });
        }
        *args = result.args;
        Ok(())
    }

    /// Calls `afterToolCall`. An error replaces the outcome.
    pub(crate) async fn after_tool_call(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut ToolOutcome,
        cancel: &CancellationToken,
    ) {
        if !self.after.load(Ordering::Relaxed) {
            return;
        }
        let input = json!({
            "toolCall": call,
            "args": args,
            "result": outcome.output,
            "isError": outcome.is_error,
        });
        match self
            .call_hook::<AfterResult>("afterToolCall", "after", input, cancel)
            .await
        {
            Ok(result) => {
                let AfterResult {
                    content,
                    details,
                    is_error,
                    terminate,
                    usage,
                } = result;
                let output = &mut outcome.output;
                output.content = content.unwrap_or_else(|| std::mem::take(&mut output.content));
                output.details = details.or_else(|| output.details.take());
                output.terminate = terminate.unwrap_or(output.terminate);
                if let Some(usage) = usage {
                    output.other.insert("usage".into(), usage);
                }
                outcome.is_error = is_error.unwrap_or(outcome.is_error);
            }
            Err(error) => *outcome = refusal(&error).into(),
        }
    }

    /// Returns the proposal of `turn_end` handlers; `Err` says why it is rejected.
    async fn end_turn(
        &self,
        event: Value,
        actions: &dyn SessionApi,
        cancel: &CancellationToken,
    ) -> Result<Proposal, String> {
        let result = self.call_hook::<TurnEndResult>("turn_end", "turnEnd", event, cancel);
        let TurnEndResult { entries, continues } =
            result.await.map_err(|error| error.to_string())?;
        let drafts = parse_drafts(entries, actions)?;
        Ok(Proposal { drafts, continues })
    }

    /// Throws an error in the parent extension.
    pub async fn report_error(&self, problem: String) {
        let _ = self.calls.events.send(ChildEvent::Error { problem }).await;
    }

    /// Tells listeners of the session that an entry was appended.
    pub async fn appended(&self, id: String) {
        // Here and above: the session may be disposed.
        let _ = self.calls.events.send(ChildEvent::Appended { id }).await;
    }
}
