//! `beforeToolCall` and `afterToolCall`, which an extension sets on the agent of its
//! session, and what the extensions that the session is given as functions change: of what
//! is said, sent and stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::SecondNews;
use super::tools::Calls;
use crate::agent::run::{Outcome, Refusal};
use crate::ai::message::{ContentBlock, ToolCall};
use crate::ai::nesting::{self, Of};
use crate::extensions::api::session_api::Actions;
use crate::extensions::events::turn_end::{Proposal, parse_drafts};
use crate::tools::tool::ToolError;

pub struct SecondHooks {
    calls: Arc<Calls>,
    before: AtomicBool,
    after: AtomicBool,
    turn_end: AtomicBool,
    /// Events of which handlers may change something.
    changes: Mutex<Vec<String>>,
}

/// Which of them there are; what is not named stays.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetHooks {
    before: Option<bool>,
    after: Option<bool>,
    turn_end: Option<bool>,
    changes: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Ended {
    entries: Vec<Value>,
    #[serde(rename = "continue")]
    continues: bool,
}

#[derive(Deserialize)]
struct Before {
    blocked: Option<Blocked>,
    args: Value,
}

#[derive(Deserialize)]
struct Blocked {
    reason: String,
    terminate: bool,
}

/// What is not given stays.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct After {
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

impl SecondHooks {
    pub(super) fn new(calls: Arc<Calls>) -> Self {
        Self {
            calls,
            before: AtomicBool::new(false),
            after: AtomicBool::new(false),
            turn_end: AtomicBool::new(false),
            changes: Mutex::default(),
        }
    }

    pub(super) fn set(&self, set: &SetHooks) {
        let hooks = [
            (&self.before, set.before),
            (&self.after, set.after),
            (&self.turn_end, set.turn_end),
        ];
        for (hook, there) in hooks {
            if let Some(there) = there {
                hook.store(there, Ordering::Relaxed);
            }
        }
        if let Some(names) = &set.changes {
            self.changes.lock().clone_from(names);
        }
    }

    /// Whether handlers may change something of that event.
    pub fn changes(&self, name: &str) -> bool {
        self.changes.lock().iter().any(|one| one == name)
    }

    /// The event as its handlers leave it; `None` if there are none, or if that failed, which
    /// is told in the extension whose session it is.
    pub async fn change(
        &self,
        name: &'static str,
        members: Value,
        cancel: &CancellationToken,
    ) -> Option<Map<String, Value>> {
        if !self.changes(name) {
            return None;
        }
        let mut event = members;
        event["type"] = name.into();
        match self.ask(name, "change", event, cancel).await {
            Ok(changed) => Some(changed),
            // What was aborted is not waited for.
            Err(_) if cancel.is_cancelled() => None,
            Err(error) => {
                self.complain(format!("{name}: {error}")).await;
                None
            }
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        hook: &str,
        task: &'static str,
        about: Value,
        cancel: &CancellationToken,
    ) -> Result<T, ToolError> {
        let call = self.calls.number();
        let answer = self.calls.put_until(call, hook, task, about, cancel);
        let answer = answer.await?;
        let unusable =
            |why: String| ToolError::new(format!("What {hook} gave cannot be used: {why}"));
        // An event may hand on what the session has.
        let of = match task {
            "change" => Of::Line,
            _ => Of::Arguments,
        };
        match nesting::value_too_deep(&answer, of) {
            Some(problem) => Err(unusable(problem)),
            None => serde_json::from_value(answer).map_err(|error| unusable(error.to_string())),
        }
    }

    /// A hook that fails blocks the tool: it may be a gate.
    pub async fn before(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<(), Refusal> {
        if !self.before.load(Ordering::Relaxed) {
            return Ok(());
        }
        let about = json!({ "toolCall": call, "args": args });
        let said = self.ask::<Before>("beforeToolCall", "before", about, cancel);
        let said = said.await.map_err(|error| refusal(&error))?;
        if let Some(Blocked { reason, terminate }) = said.blocked {
            return Err(Refusal { reason, terminate });
        }
        *args = said.args;
        Ok(())
    }

    pub async fn after(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut Outcome,
        cancel: &CancellationToken,
    ) {
        if !self.after.load(Ordering::Relaxed) {
            return;
        }
        let about = json!({
            "toolCall": call,
            "args": args,
            "result": outcome.output,
            "isError": outcome.is_error,
        });
        match self
            .ask::<After>("afterToolCall", "after", about, cancel)
            .await
        {
            Ok(said) => {
                let After {
                    content,
                    details,
                    is_error,
                    terminate,
                    usage,
                } = said;
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

    /// What handlers of `turn_end` want; `Err` says why that cannot be had.
    pub async fn end_turn(
        &self,
        event: impl FnOnce() -> Value,
        actions: &dyn Actions,
        cancel: &CancellationToken,
    ) -> Result<Option<Proposal>, String> {
        if !self.turn_end.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let asked = self.ask::<Ended>("turn_end", "turnEnd", event(), cancel);
        let Ended { entries, continues } = asked.await.map_err(|error| error.to_string())?;
        let drafts = parse_drafts(entries, actions)?;
        Ok(Some(Proposal { drafts, continues }))
    }

    /// Thrown in the extension whose session it is.
    pub async fn complain(&self, problem: String) {
        let _ = self.calls.news.send(SecondNews::Error { problem }).await;
    }

    /// Who listens to the session hears of an entry that was wanted.
    pub async fn appended(&self, id: String) {
        // Here and above: it may have been disposed of.
        let _ = self.calls.news.send(SecondNews::Appended { id }).await;
    }
}
