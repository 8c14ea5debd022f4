//! Applies the proposals of `turn_end` and `agent_before_settle` handlers: entries for the session,
//! and another request to the model.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::AgentSession;
use crate::activity::Work;
use crate::run::NewRun;
use crate::run::hooks::Hooks;
use crate::state::State;
use pi_agent::event::{Event, WrittenEntry};
use pi_agent::run::{RunHooks, TurnEnd};
use pi_ai::message::StopReason;
use pi_compaction::estimate_context;
use pi_extensions::{Draft, Proposal};
use pi_session::{Entry, EntryKind, SessionError};

const SETTLE: &str = "agent_before_settle";

/// Additional members of `turn_end` for handlers: the entries of the turn in the session, and its
/// outcome.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndedTurn {
    message_entry_id: String,
    tool_result_entry_ids: Vec<String>,
    outcome: &'static str,
}

impl State {
    /// Returns the entries and the outcome of the last turn.
    pub(crate) fn last_turn(&self) -> EndedTurn {
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

    /// Returns how the last answer ended.
    fn outcome(&self) -> &'static str {
        let mut answers = self.context.iter().rev();
        match answers.find_map(|message| message.as_assistant()) {
            Some(answer) if answer.stop_reason == StopReason::Aborted => "aborted",
            Some(answer) if answer.stop_reason == StopReason::Error => "error",
            _ => "completed",
        }
    }

    /// Returns whether the context ends with a message that a model can answer.
    fn can_continue(&self) -> bool {
        let mut messages = self.context.iter().rev();
        let last = messages.find(|message| message.to_llm().is_some());
        last.is_some_and(|message| message.as_assistant().is_none())
    }

    /// Returns the line that stores the entry.
    fn entry_line(&self, draft: &Draft) -> String {
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
    pub(crate) fn validate_draft(&self, draft: &Draft) -> Result<(), SessionError> {
        let state = self.state.lock();
        state.session.check_external(&state.entry_line(draft))
    }

    /// Returns the entries and the context that these drafts would produce, and the queued
    /// messages.
    pub(crate) fn preview_drafts(&self, drafts: &[Draft]) -> Value {
        let state = self.state.lock();
        let lines: Vec<String> = drafts.iter().map(|draft| state.entry_line(draft)).collect();
        json!({
            "entries": state.session.projection(&lines),
            "pending": state.prompts.queues.all(),
        })
    }

    /// Emits `entry_appended` for an entry of an extension.
    pub(crate) fn emit_entry_appended(&self, entry: &Entry) {
        let entry = WrittenEntry(entry.raw.clone());
        self.emit_to_mode_soon(Event::EntryAppended { entry });
    }

    /// Emits `agent_before_settle`, and begins another run if handlers propose it.
    pub(crate) async fn emit_before_settle(&self, run: &Work, hooks: &Hooks<'_>) {
        if run.is_aborted() || !self.extensions.has_handlers(SETTLE) {
            return;
        }
        let switch_cancel = self.switcher.cancel.token();
        let outcome = {
            let state = self.state.lock();
            // Other work follows anyway.
            if state.work.is_working() || state.prompts.queues.need_run() {
                return;
            }
            state.outcome()
        };
        let event = || json!({ "outcome": outcome });
        let emission = self.extensions.deliver(SETTLE, event, &switch_cancel).await;
        let Some(proposal) = emission.proposal else {
            return;
        };
        let end = hooks.apply_proposal(SETTLE, proposal).await;
        if !end.continues || switch_cancel.is_cancelled() {
            return;
        }
        let more = NewRun {
            system_prompt: self.state.lock().system_prompt.run_text.clone(),
            ..NewRun::with_prompts(Vec::new())
        };
        // An error means that another run has begun, which includes the new messages.
        let _ = self.start_run(more);
    }
}

impl Hooks<'_> {
    /// Appends and emits the proposed messages and entries, in order.
    pub(crate) async fn apply_proposal(&self, event: &str, proposal: Proposal) -> TurnEnd {
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
                    self.notify_appended(stored).await;
                }
                Draft::Entry(_) => {
                    let stored = {
                        let mut state = session.state.lock();
                        let line = state.entry_line(&draft);
                        state
                            .writable()
                            .and_then(|session| session.append_external(&line))
                    };
                    match stored {
                        Ok(entry) => {
                            edited |= changes_context(&entry.kind);
                            self.notify_appended(Some(entry.id.clone())).await;
                        }
                        Err(error) => self.report_proposal_error(event, error.to_string()).await,
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
            end.continues =
                proposal.continues && (state.can_continue() || !state.prompts.queues.is_empty());
        }
        if proposal.continues && !end.continues {
            let problem = "`continue: true` has no effect: the last message is the model's answer. \
                           Return a custom_message in `entries`, too";
            self.report_proposal_error(event, problem.to_owned()).await;
        }
        end
    }

    async fn notify_appended(&self, id: Option<String>) {
        let Some(id) = id else { return };
        match &self.session.child_link.hooks {
            Some(hooks) => hooks.appended(id).await,
            None => {
                let entry = self.session.state.lock().session.entry(&id).cloned();
                if let Some(entry) = entry {
                    self.session.emit_entry_appended(&entry);
                }
            }
        }
    }

    async fn report_proposal_error(&self, event: &str, problem: String) {
        match &self.session.child_link.hooks {
            // A child session reports errors to the extension that started it.
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
