//! The end of a turn, and the moment before the session rests: what handlers of `turn_end`
//! and `agent_before_settle` want is put into the session, and the model asked once more.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::AgentSession;
use super::run::NewRun;
use super::run_hooks::Hooks;
use super::state::{Run, State};
use crate::agent::event::{Event, WrittenEntry};
use crate::agent::run::{RunHooks, TurnEnd};
use crate::ai::message::StopReason;
use crate::compaction::estimate_context;
use crate::extensions::child::ChildHooks;
use crate::extensions::{Draft, Proposal};
use crate::session::{Entry, EntryKind, SessionError};

const SETTLE: &str = "agent_before_settle";

/// What handlers of `turn_end` are told besides: where its messages are in the session, and
/// how it went.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndedTurn {
    message_entry_id: String,
    tool_result_entry_ids: Vec<String>,
    outcome: &'static str,
}

impl State {
    /// The turn that was said last.
    pub(super) fn last_turn(&self) -> EndedTurn {
        let mut turn = EndedTurn {
            message_entry_id: String::new(),
            tool_result_entry_ids: Vec::new(),
            outcome: self.outcome(),
        };
        let mut next = self.session.leaf_id();
        while let Some(entry) = next.and_then(|id| self.session.entry(id)) {
            match &entry.kind {
                EntryKind::Message { role } if role == "assistant" => {
                    turn.message_entry_id = entry.id.clone();
                    break;
                }
                EntryKind::Message { role } if role == "toolResult" => {
                    turn.tool_result_entry_ids.insert(0, entry.id.clone());
                }
                _ => {}
            }
            next = entry.parent_id.as_deref();
        }
        turn
    }

    /// How the last answer ended.
    fn outcome(&self) -> &'static str {
        let mut answers = self.context.iter().rev();
        match answers.find_map(|message| message.as_assistant()) {
            Some(answer) if answer.stop_reason == StopReason::Aborted => "aborted",
            Some(answer) if answer.stop_reason == StopReason::Error => "error",
            _ => "completed",
        }
    }

    /// Whether a model may be asked about what was said: it has not had the last word.
    fn can_go_on(&self) -> bool {
        let mut told = self.context.iter().rev();
        let last = told.find(|message| message.to_llm().is_some());
        last.is_some_and(|message| message.as_assistant().is_none())
    }

    /// The entry as it is stored.
    fn line_of(&self, draft: &Draft) -> String {
        let mut entry = match draft {
            Draft::Entry(entry) => entry.clone(),
            Draft::Message(message) => {
                let mut entry = serde_json::to_value(message).unwrap_or_default();
                entry["type"] = "custom_message".into();
                entry
            }
        };
        if entry["type"] == "compaction" {
            entry["tokensBefore"] = estimate_context(&self.context).tokens.into();
            entry["fromHook"] = true.into();
        }
        entry.to_string()
    }
}

impl AgentSession {
    pub(super) fn check(&self, draft: &Draft) -> Result<(), SessionError> {
        let state = self.state.lock();
        state.session.check_external(&state.line_of(draft))
    }

    /// What the model would be told with these entries, and what waits to be said.
    pub(super) fn preview_of(&self, drafts: &[Draft]) -> Value {
        let state = self.state.lock();
        let lines: Vec<String> = drafts.iter().map(|draft| state.line_of(draft)).collect();
        json!({
            "entries": state.session.projection(&lines),
            "pending": state.queues.all(),
        })
    }

    /// The entry of an extension is stored.
    pub(super) fn tell_of_entry(&self, entry: &Entry) {
        let entry = WrittenEntry(entry.raw.clone());
        self.tell_soon(Event::EntryAppended { entry });
    }

    /// The last thing before the session rests: gives it more to do if handlers want that.
    pub(super) async fn ask_before_rest(&self, run: &Run, hooks: &Hooks<'_>) {
        if run.cancel.is_cancelled() || !self.extensions.has_handlers(SETTLE) {
            return;
        }
        let here = self.here.lock().clone();
        let outcome = {
            let state = self.state.lock();
            // Somebody has more to do already.
            if state.run.is_some() || state.summary.is_some() || state.queues.need_run() {
                return;
            }
            state.outcome()
        };
        let told = || json!({ "type": SETTLE, "outcome": outcome });
        let asked = self.extensions.notify_turn_end(SETTLE, told, &here);
        let Some(proposal) = asked.await else {
            return;
        };
        let end = hooks.commit(SETTLE, proposal).await;
        if !end.continues || here.is_cancelled() {
            return;
        }
        let more = NewRun {
            system_prompt: self.state.lock().run_prompt.clone(),
            ..NewRun::of(Vec::new())
        };
        // An error means that somebody else has begun one, which sees what was said.
        let _ = self.start_run(more);
    }
}

impl Hooks<'_> {
    /// What handlers want is said and stored, in order.
    pub(super) async fn commit(&self, event: &str, proposal: Proposal) -> TurnEnd {
        let session = self.session;
        let mut end = TurnEnd::default();
        let mut edited = false;
        for draft in proposal.drafts {
            match draft {
                Draft::Message(message) => {
                    let message = Arc::new(session.custom_message(message));
                    let start = Event::MessageStart {
                        message: message.clone(),
                    };
                    self.emit(start).await;
                    end.appended.push(self.finish_message(message).await);
                    let stored = session.state.lock().session.leaf_id().map(str::to_owned);
                    self.appended(stored).await;
                }
                Draft::Entry(_) => {
                    let stored = {
                        let mut state = session.state.lock();
                        let line = state.line_of(&draft);
                        state
                            .writable()
                            .and_then(|session| session.append_external(&line))
                    };
                    match stored {
                        Ok(entry) => {
                            edited |= changes_context(&entry.kind);
                            self.appended(Some(entry.id.clone())).await;
                        }
                        Err(error) => self.complain(event, error.to_string()).await,
                    }
                }
            }
        }
        {
            let mut state = session.state.lock();
            if edited {
                state.context = state.session.build_context().messages;
                end.context = Some(state.context.clone());
            }
            end.continues = proposal.continues && (state.can_go_on() || !state.queues.is_empty());
        }
        if proposal.continues && !end.continues {
            let problem = "A handler wants to go on, but the model has had the last word: `entries` \
                           must have a custom_message, too";
            self.complain(event, problem.to_owned()).await;
        }
        end
    }

    /// What the extensions want that a session beside another is given as functions.
    pub(super) async fn end_second_turn(
        &self,
        hooks: &ChildHooks,
        ended: impl Serialize,
    ) -> Option<Proposal> {
        let told = || json!(ended);
        let cancel = self.session.run_cancel();
        match hooks.end_turn(told, self.session, &cancel).await {
            Ok(proposal) => proposal,
            // What was aborted is not waited for.
            Err(_) if cancel.is_cancelled() => None,
            Err(problem) => {
                hooks.report_error(format!("turn_end: {problem}")).await;
                None
            }
        }
    }

    async fn appended(&self, id: Option<String>) {
        let Some(id) = id else { return };
        match &self.session.beside.hooks {
            Some(hooks) => hooks.appended(id).await,
            None => {
                let entry = self.session.state.lock().session.entry(&id).cloned();
                if let Some(entry) = entry {
                    self.session.tell_of_entry(&entry);
                }
            }
        }
    }

    async fn complain(&self, event: &str, problem: String) {
        match &self.session.beside.hooks {
            // Nobody else hears of its errors.
            Some(hooks) => hooks.report_error(format!("{event}: {problem}")).await,
            None => self.session.report("<session>", event, problem).await,
        }
    }
}

fn changes_context(kind: &EntryKind) -> bool {
    matches!(
        kind,
        EntryKind::ContextEdit { .. } | EntryKind::Compaction { .. }
    )
}
