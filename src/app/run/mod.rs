//! A run of the agent in this session: its configuration, and retries after failed answers.

pub(crate) mod approval;
mod decision_log;
pub(crate) mod hooks;
mod permission_question;
mod permission_rules;
pub(crate) mod protected;
mod provider_hooks;
pub(crate) mod retry;
pub(crate) mod settle;
mod turn_end;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use crate::activity::Work;
use crate::prompt::{Accepted, PromptError};
use crate::run::hooks::Hooks;
use crate::state::State;
use pi_agent::AgentMessage;
use pi_agent::run::{RunConfig, run};
use pi_ai::message::StopReason;

impl AgentSession {
    /// Begins a run as soon as the caller drops the result.
    pub(crate) fn start_run(&self, new: NewRun) -> Result<Accepted, PromptError> {
        let run_prompt = new.system_prompt.clone();
        let config = self.run_config(new.system_prompt)?;
        let mut prompts = new.prompts;
        let active = {
            let mut state = self.state.lock();
            if new.cancel.is_some_and(|cancel| cancel.is_cancelled()) {
                return Err(PromptError::Aborted);
            }
            if !state.work.may_begin() {
                return Err(PromptError::Busy);
            }
            if new.prompted {
                // The waiting messages follow the user's own one and precede those of handlers.
                let at = prompts.len().min(1);
                prompts.splice(at..at, state.prompts.next_turn.drain(..));
            }
            state.system_prompt.run_text = run_prompt;
            state.retry.attempt = 0;
            state.prompts.is_run_pending = false;
            state.work.begin_run()
        };
        let (accepted, go) = Accepted::gate();
        let guard = RunGuard {
            session: self.arc(),
            run: active.id,
        };
        self.handle.spawn(async move {
            // The sender is dropped; no value is ever sent.
            let _ = go.await;
            let session = guard.session.clone();
            // A handler of `agent_end` may begin the next run before the events of the end are
            // emitted.
            let order = session.event_order.lock().await;
            session.drive(prompts, &config, &active).await;
            drop(order);
            session.emit_settled(&active).await;
            drop(guard);
        });
        Ok(accepted)
    }

    fn run_config(&self, system_prompt: Option<String>) -> Result<RunConfig, PromptError> {
        let state = self.state.lock();
        let model = state.model.clone().ok_or_else(|| self.no_model())?;
        let api = self
            .models
            .api(&model.api)
            .ok_or_else(|| PromptError::UnknownApi {
                model: model.reference(),
                api: model.api.clone(),
            })?;
        Ok(RunConfig {
            system_prompt: system_prompt.unwrap_or_else(|| state.system_prompt.text.clone()),
            model,
            api,
        })
    }

    /// Runs the agent, again after transient failures, and again after a compaction if the context
    /// had overflowed.
    async fn drive(&self, mut prompts: Vec<Arc<AgentMessage>>, config: &RunConfig, active: &Work) {
        let cancel = &active.cancel;
        if let Err(error) = self.acquire_session_lock(cancel).await {
            return self.report("<session>", "append", error).await;
        }
        let thinking = self.state.lock().thinking;
        loop {
            let hooks = Hooks {
                session: self,
                config,
                thinking,
                system: Mutex::default(),
            };
            let mut context = self.state.lock().context.clone();
            run(
                &mut context,
                std::mem::take(&mut prompts),
                config,
                &hooks,
                cancel,
            )
            .await;
            let again = match self.begin_retry(cancel).await {
                Some((delay, wait)) => self.wait_for_retry(delay, wait).await,
                None => false,
            };
            if !again && !self.compact_after_run(active).await {
                self.emit_before_settle(active, &hooks).await;
                return;
            }
        }
    }
}

/// The arguments of [`AgentSession::start_run`].
#[derive(Clone)]
pub(crate) struct NewRun {
    pub prompts: Vec<Arc<AgentMessage>>,
    /// Replaces the session's system prompt.
    pub system_prompt: Option<String>,
    /// The first message is a user's, so the waiting messages of `PromptQueue::next_turn` join it.
    pub prompted: bool,
    /// Cancelled when the caller does not want the run any more.
    pub cancel: Option<CancellationToken>,
}

impl NewRun {
    pub fn with_prompts(prompts: Vec<Arc<AgentMessage>>) -> Self {
        Self {
            prompts,
            system_prompt: None,
            prompted: false,
            cancel: None,
        }
    }
}

/// Marks the session idle when the run is over, also when it panics.
struct RunGuard {
    session: Arc<AgentSession>,
    run: u64,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        state.finish_closing(self.run);
        state.work.end_run_task(self.run);
    }
}

impl State {
    /// Returns the index of the last answer, unless other messages than those of extensions follow
    /// it.
    fn last_answer(&self) -> Option<usize> {
        let is_answer = |message: &Arc<AgentMessage>| message.as_assistant().is_some();
        let last = self.context.iter().rposition(is_answer)?;
        let mut since = self.context[last + 1..].iter();
        since
            .all(|message| matches!(**message, AgentMessage::Custom(_)))
            .then_some(last)
    }

    pub fn ended_without_error(&self) -> bool {
        let mut answers = self.context.iter().rev();
        // Tool results may follow the last answer.
        let last = answers.find_map(|message| message.as_assistant());
        last.is_some_and(|answer| {
            !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        })
    }
}

impl AgentSession {
    pub(crate) fn run_cancel(&self) -> CancellationToken {
        let run = self.state.lock().work.run();
        run.map(|run| run.cancel).unwrap_or_default()
    }
}

pub(crate) fn json_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
