//! Implements [`SessionApi`], the operations that extensions have on the session.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::AgentSession;
use super::error::CommandError;
use super::models::ModelChangeSource;
use super::prompt::tickets::Ticket;
use super::prompt::{Behavior, PromptError, PromptRequest, Source};
use super::run::NewRun;
use super::switch::fork::ForkPosition;
use super::ui::dialog_events::DialogEvents;
use pi_agent::AgentMessage;
use pi_agent::event::{Event, UiMethod};
use pi_agent::queue::Delivery;
use pi_ai::message::{ContentBlock, ImageContent, UserContent};
use pi_ai::model::{Model, ThinkingLevel};
use pi_compaction::Compacted;
use pi_extensions::Draft;
use pi_extensions::api::session_api::{
    ActionError, ActionResult, Cancelled, ContextUsage, DeliverAs, NavigateOptions, Navigated,
    SendOptions, SessionApi,
};
use pi_extensions::api::session_manager;
use pi_extensions::child::{ChildConfig, ChildExtensions, ChildExtensionsRequest, ChildSession};
use pi_extensions::registry::ExtensionId;
use pi_session::message::CustomMessage;
use pi_session::{Entry, SessionError, UnlockedSession};
use pi_tools::ToolOptions;

#[async_trait]
impl SessionApi for AgentSession {
    async fn emit(&self, event: Event) {
        self.emit_to_mode(event).await;
    }

    fn show(&self, method: UiMethod) {
        AgentSession::show(self, method);
    }

    fn clear_ui(&self) {
        AgentSession::clear_ui(self);
    }

    fn has_ui(&self) -> bool {
        self.config.has_ui
    }

    fn ui_supports(&self, method: &str) -> bool {
        self.ui.supports(method)
    }

    fn is_project_trusted(&self) -> bool {
        let paths = self.config.paths.with_cwd(&self.cwd());
        !paths.ignores_project()
    }

    fn fetches_models(&self) -> bool {
        // One prompt is over before the list has been fetched.
        let is_one_prompt = ["print", "json"].contains(&self.config.mode);
        !is_one_prompt && !super::is_offline()
    }

    fn mode(&self) -> &'static str {
        self.config.mode
    }

    fn cwd(&self) -> String {
        AgentSession::cwd(self).display().to_string()
    }

    fn model(&self) -> Option<Arc<Model>> {
        AgentSession::model(self)
    }

    /// A prompt of an extension counts from the call on: its run may be over before an extension
    /// that polls checks again.
    fn is_idle(&self) -> bool {
        !self.is_busy() && !self.intake.of_extensions.is_waiting()
    }

    fn has_pending_messages(&self) -> bool {
        let (steering, follow_up) = self.state.lock().prompts.queues.texts();
        !steering.is_empty() || !follow_up.is_empty()
    }

    fn current_run(&self) -> Option<u64> {
        self.run_id()
    }

    fn mark_idle(&self, run: u64) {
        AgentSession::mark_idle(self, run);
    }

    fn abort(&self) {
        self.cancel_run();
    }

    fn shutdown(&self) {
        self.shutdown_request.send();
    }

    fn context_usage(&self) -> Option<ContextUsage> {
        self.usage()
    }

    fn system_prompt(&self) -> String {
        self.system_prompt_text()
    }

    fn send_message(&self, message: CustomMessage, options: SendOptions) -> ActionResult<()> {
        let message = Arc::new(self.custom_message(message));
        let session = self.arc();
        if options.deliver_as == Some(DeliverAs::NextTurn) {
            self.state.lock().prompts.next_turn.push(message);
            return Ok(());
        }
        let delivery = options.deliver_as.and_then(DeliverAs::delivery);
        let delivery = delivery.unwrap_or(Delivery::Steer);
        // Also with `triggerTurn`: a run that is ending for handlers still takes the message.
        let answered = options.trigger_turn == Some(true);
        let unanswered = options.trigger_turn == Some(false);
        let begins = answered || (options.deliver_as.is_some() && !unanswered);
        let queued = self
            .queue_if_ending(delivery, message, begins)
            .or_else(|message| match unanswered {
                true => self.queue_quietly_if_busy(message),
                false => self.queue_if_busy(delivery, message),
            });
        let message = match queued {
            Ok(()) => return Ok(()),
            Err(message) => message,
        };
        let message = match answered {
            true => match self.queue_if_starting(delivery, message) {
                Ok(()) => return Ok(()),
                Err(message) => message,
            },
            false => message,
        };
        if answered && self.is_summarizing() {
            let switch_cancel = self.switcher.cancel.token();
            let from = self.sender(options.from);
            let start = async move {
                session
                    .start_after_compaction(message, switch_cancel, from)
                    .await
            };
            self.spawn(start);
            return Ok(());
        }
        // The answer would belong to a session that is being replaced.
        if answered && !self.state.lock().work.is_replacing {
            return self
                .start_run(NewRun::with_prompts(vec![message]))
                .map(drop)
                .map_err(|error| ActionError::new(error.to_string()));
        }
        self.state
            .lock()
            .append(message.clone())
            .map_err(|error| ActionError::new(error.to_string()))?;
        self.emit_message_in_order(message);
        Ok(())
    }

    fn send_user_message(&self, content: UserContent, options: SendOptions) -> ActionResult<()> {
        let (text, images) = match content {
            UserContent::Text(text) => (text, Vec::new()),
            UserContent::Blocks(blocks) => split_blocks(blocks),
        };
        let delivery = options.deliver_as.and_then(DeliverAs::delivery);
        // A run that goes on takes the message at once, unless handlers must be asked first.
        if !options.expand_prompt_templates && !self.extensions.has_handlers("input") {
            let session = self.arc();
            match delivery {
                Some(delivery) if self.state.lock().work.ending_run().is_none() => {
                    let message = self.user_message_now(&text, &images);
                    let message = Arc::new(AgentMessage::User(message));
                    if self.queue_if_busy(delivery, message).is_ok() {
                        self.emit_first(async move { session.queue_changed().await });
                        return Ok(());
                    }
                }
                None if self.is_busy() => {
                    let from = self.sender(options.from);
                    self.emit_first(async move {
                        session
                            .report_undelivered(&from, Err(PromptError::Busy))
                            .await;
                    });
                    return Ok(());
                }
                _ => {}
            }
        }
        let request = PromptRequest {
            text,
            images,
            source: Source::Extension,
            while_busy: delivery.map_or(Behavior::Refuse, Behavior::Queue),
            commands: options.expand_prompt_templates,
        };
        let steers = delivery == Some(Delivery::Steer) && !options.expand_prompt_templates;
        let is_early = delivery.is_none() && self.is_ending();
        // An error means that the session has ended.
        let _ = self.intake.extension_messages.send(QueuedUserMessage {
            _steered: steers.then(|| self.intake.steering.take()),
            _pending: self.intake.of_extensions.take(),
            request,
            from: self.sender(options.from),
            switch_cancel: self.switcher.cancel.token(),
            is_early,
            _task: self.detached_tasks.lock().token(),
        });
        Ok(())
    }

    fn append_entry(&self, custom_type: &str, data: Option<Value>) -> ActionResult<String> {
        let appended = {
            let mut state = self.state.lock();
            let session = state.writable().map_err(store_error)?;
            session.append_custom(custom_type, data.as_ref())
        };
        if let Ok(entry) = &appended {
            self.emit_entry_appended(entry);
        }
        entry_id(appended)
    }

    fn append_message(&self, mut message: CustomMessage) -> ActionResult<String> {
        self.check_images(&mut message.content);
        let mut state = self.state.lock();
        let session = state.writable().map_err(store_error)?;
        entry_id(session.append_custom_message(
            &message.custom_type,
            &message.content,
            message.display,
            message.details.as_ref(),
        ))
    }

    fn check_draft(&self, draft: &Draft) -> ActionResult<()> {
        let checked = self.validate_draft(draft);
        checked.map_err(|error| ActionError::new(error.to_string()))
    }

    fn preview(&self, drafts: &[Draft]) -> Value {
        self.preview_drafts(drafts)
    }

    fn set_session_name(&self, name: &str) -> ActionResult<String> {
        self.rename(name).map_err(ActionError::new)
    }

    fn session_name(&self) -> Option<String> {
        self.state.lock().session.name().map(str::to_string)
    }

    fn set_label(&self, entry: &str, label: Option<&str>) -> ActionResult<String> {
        let mut state = self.state.lock();
        let session = state.writable().map_err(store_error)?;
        entry_id(session.append_label(entry, label))
    }

    fn settings(&self) -> Value {
        Value::Object(self.settings.merged())
    }

    fn scoped_models(&self) -> Value {
        let scope = self.state.lock().scope.clone();
        let scoped = scope.iter().map(|one| match one.thinking {
            Some(level) => json!({ "model": one.model, "thinkingLevel": level }),
            None => json!({ "model": one.model }),
        });
        scoped.collect()
    }

    fn system_prompt_options(&self) -> Value {
        json!(self.state.lock().system_prompt.options)
    }

    fn ui_prompt(&self, method: &UiMethod) -> Box<dyn Send> {
        Box::new(DialogEvents::open(
            self.extensions.clone(),
            &self.ui.open_dialogs,
            method,
        ))
    }

    fn tool_options(&self) -> ToolOptions {
        AgentSession::tool_options(self)
    }

    fn active_tools(&self) -> Vec<String> {
        self.state.lock().tools.active.clone()
    }

    fn set_active_tools(&self, names: Vec<String>) {
        self.activate_tools(names);
    }

    fn all_tools(&self) -> Value {
        self.describe_tools()
    }

    fn commands(&self) -> Value {
        json!(AgentSession::commands(self))
    }

    fn tools_changed(&self) {
        self.refresh_tools();
    }

    fn thinking_level(&self) -> ThinkingLevel {
        AgentSession::thinking_level(self)
    }

    fn set_thinking_level(&self, level: ThinkingLevel) {
        AgentSession::set_thinking_level(self, level);
    }

    fn session_since(&self, id: &str, since: usize) -> String {
        let state = self.state.lock();
        let session = &state.session;
        let path = session.path();
        // A session in memory has no folder.
        let dir = path.and_then(|path| path.parent()).unwrap_or(Path::new(""));
        session_manager::entries_since(session, path, dir, id, since)
    }

    fn session_context(&self) -> String {
        self.state.lock().session.context_json()
    }

    fn models_changed(&self) {
        self.refresh_model();
    }

    async fn set_model(
        &self,
        provider: &str,
        id: &str,
        provided: Option<Value>,
        queued: bool,
    ) -> ActionResult<bool> {
        if !self.models.has_auth(provider) {
            return Ok(false);
        }
        // A model that lacks members is looked up by its id.
        let provided = provided.and_then(|provided| serde_json::from_value::<Model>(provided).ok());
        let model = match provided {
            Some(provided) => Arc::new(provided),
            None => self.usable_model(provider, id).map_err(ActionError::new)?,
        };
        let source = match queued {
            true => ModelChangeSource::InHandler,
            false => ModelChangeSource::Set,
        };
        let set = self.use_model(model, None, source).await;
        set.map(|()| true).map_err(ActionError::new)
    }

    fn themes(&self) -> Value {
        self.describe_themes()
    }

    fn set_theme(&self, name: &str) -> ActionResult<()> {
        let set = self.settings.set_theme(name);
        set.map_err(|error| ActionError::new(error.to_string()))
    }

    async fn wait_for_idle(&self) {
        loop {
            self.intake.of_extensions.wait_empty().await;
            self.wait_idle().await;
            if !self.intake.of_extensions.is_waiting() {
                return;
            }
        }
    }

    async fn wait_for_run(&self) {
        while self.is_busy() {
            self.wait_activity(|activity| !activity.has_run_task())
                .await;
        }
    }

    fn is_replacing(&self, for_navigation: bool) -> bool {
        self.switcher.lock.try_lock().is_err() || for_navigation && self.is_summarizing()
    }

    // Operations that replace the session run as tasks of their own, because they must finish even
    // if the calling extension is unloaded.

    async fn new_session(&self, parent: Option<String>) -> ActionResult<Cancelled> {
        let session = self.arc();
        let parent = parent.map(PathBuf::from);
        cancelled(
            self.run_detached(async move { session.new_session(parent).await })
                .await,
        )
    }

    async fn switch_session(&self, path: String) -> ActionResult<Cancelled> {
        let session = self.arc();
        let switch = async move { session.switch_session(path.as_ref(), None).await };
        cancelled(self.run_detached(switch).await)
    }

    async fn prepare_session(
        &self,
        parent: Option<String>,
    ) -> ActionResult<Option<UnlockedSession>> {
        let parent = parent.map(PathBuf::from);
        let prepared = AgentSession::prepare_session(self, parent).await;
        prepared.map_err(ActionError::new)
    }

    async fn enter_session(&self, prepared: UnlockedSession) -> ActionResult<()> {
        let session = self.arc();
        let enter = async move { AgentSession::enter_session(&session, prepared).await };
        self.run_detached(enter).await.map_err(ActionError::new)
    }

    async fn fork(&self, entry: String, position: Option<String>) -> ActionResult<Cancelled> {
        let position = position.as_deref().unwrap_or("before");
        let position = ForkPosition::parse(position).ok_or_else(|| {
            ActionError::new(format!(
                "ctx.fork(): there is no position \"{position}\": use \"before\" or \"at\""
            ))
        })?;
        let session = self.arc();
        let fork = async move { session.fork(&entry, position).await };
        cancelled(self.run_detached(fork).await.map(|forked| forked.is_some()))
    }

    async fn compact(&self, focus: Option<String>) -> ActionResult<Compacted> {
        let session = self.arc();
        let compact = async move { session.compact(focus.as_deref()).await };
        self.run_detached(compact).await.map_err(ActionError::new)
    }

    async fn navigate_tree(
        &self,
        target: String,
        options: NavigateOptions,
    ) -> ActionResult<Navigated> {
        let session = self.arc();
        let navigate = async move { session.navigate(&target, options).await };
        self.run_detached(navigate).await.map_err(ActionError::new)
    }

    async fn reload(&self) -> ActionResult<()> {
        let session = self.arc();
        let reload = async move { session.reload().await.map(|_| ()) };
        self.run_detached(reload).await.map_err(ActionError::new)
    }

    async fn load_child_extensions(
        &self,
        begin: ChildExtensionsRequest,
    ) -> ActionResult<ChildExtensions> {
        let session = self.arc();
        let load = async move { Ok::<_, String>(session.load_child_extensions(begin).await) };
        self.run_detached(load).await.map_err(ActionError::new)
    }

    async fn open_child_session(&self, begin: ChildConfig) -> ActionResult<Arc<dyn ChildSession>> {
        let session = self.arc();
        let open = async move {
            session
                .open_child_session(begin)
                .await
                .map_err(|error| error.0)
        };
        self.run_detached(open).await.map_err(ActionError::new)
    }
}

/// A prompt of an extension that waits for its turn.
pub(super) struct QueuedUserMessage {
    request: PromptRequest,
    /// The file of the extension.
    from: String,
    /// Taken from the session that the prompt is for.
    switch_cancel: CancellationToken,
    /// The run is ending and the extension did not say how to deliver the prompt.
    is_early: bool,
    /// Keeps the session from being settled.
    _task: TaskTrackerToken,
    /// The next model request waits for this ticket.
    _steered: Option<Ticket>,
    /// Keeps the prompt in `PromptIntake::of_extensions` until it is dropped.
    _pending: Ticket,
}

/// Sends prompts of extensions, one after the other.
pub(super) async fn send_extension_messages(
    session: Weak<AgentSession>,
    mut queued: mpsc::UnboundedReceiver<QueuedUserMessage>,
) {
    while let Some(QueuedUserMessage {
        request,
        from,
        switch_cancel,
        is_early,
        _task,
        _steered,
        _pending,
    }) = queued.recv().await
    {
        let Some(session) = session.upgrade() else {
            return;
        };
        // A command may itself send a prompt and wait for the run, so later prompts do not wait for
        // it.
        if request.commands && session.is_command(&request.text) {
            let own = session.clone();
            session.spawn(async move {
                let _task = _task;
                own.wait_not_ending().await;
                if !switch_cancel.is_cancelled() {
                    let ran = own.prompt_in(request, Some(switch_cancel)).await.map(drop);
                    own.report_undelivered(&from, ran).await;
                }
            });
            continue;
        }
        let prompted = match is_early {
            true => Err(PromptError::Busy),
            false => {
                // Prompts of `agent_end` handlers are for the next run.
                session.wait_not_ending().await;
                if switch_cancel.is_cancelled() {
                    continue;
                }
                session
                    .prompt_in(request, Some(switch_cancel))
                    .await
                    .map(drop)
            }
        };
        session.report_undelivered(&from, prompted).await;
    }
}

/// The error of a prompt during a run without `deliverAs`.
const BUSY: &str = "Agent is already processing. Specify deliverAs ('steer' or 'followUp') to \
                    queue the message.";

impl AgentSession {
    /// Reports why a prompt of the extension at `from` did not reach the agent.
    async fn report_undelivered(&self, from: &str, prompted: Result<(), PromptError>) {
        let text = match prompted {
            Ok(()) => return,
            Err(PromptError::Busy) => BUSY.to_string(),
            Err(error) => error.to_string(),
        };
        self.report(from, "send_user_message", text).await;
    }

    fn sender(&self, extension: Option<ExtensionId>) -> String {
        extension.map_or_else(|| "<runtime>".to_string(), |id| self.extensions.path_of(id))
    }

    /// Starts a tracked task on the runtime of the program, because calls of extensions come from
    /// other threads.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        let work = self.detached_tasks.lock().track_future(work);
        self.handle.spawn(work)
    }

    /// Begins a run with a message that came during a compaction.
    async fn start_after_compaction(
        &self,
        message: Arc<AgentMessage>,
        switch_cancel: CancellationToken,
        from: String,
    ) {
        loop {
            if self.wait_for_compaction(&switch_cancel).await.is_err() {
                return;
            }
            let message = match self.queue_if_busy(Delivery::Steer, message.clone()) {
                Ok(()) => return,
                Err(message) => message,
            };
            let new = NewRun {
                cancel: Some(switch_cancel.clone()),
                ..NewRun::with_prompts(vec![message])
            };
            match self.start_run(new).map(drop) {
                Ok(()) | Err(PromptError::Aborted) => return,
                Err(PromptError::Busy) if self.is_working() => {}
                Err(error) => return self.report(&from, "send_message", error).await,
            }
        }
    }

    async fn run_detached<T: Send + 'static, E: From<String> + Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E> {
        self.spawn(work)
            .await
            .unwrap_or_else(|error| Err(error.to_string().into()))
    }
}

fn entry_id(result: Result<Arc<Entry>, SessionError>) -> ActionResult<String> {
    result.map(|entry| entry.id.clone()).map_err(store_error)
}

fn store_error(error: SessionError) -> ActionError {
    ActionError::new(error.to_string())
}

fn cancelled(done: Result<bool, CommandError>) -> ActionResult<Cancelled> {
    done.map(|done| Cancelled { cancelled: !done })
        .map_err(ActionError::new)
}

/// Returns the texts joined with newlines, and the images.
fn split_blocks(blocks: Vec<ContentBlock>) -> (String, Vec<ImageContent>) {
    let text = pi_ai::message::join_text(&blocks);
    let images = blocks.into_iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image.block),
        ContentBlock::Text(_) | ContentBlock::Other(_) => None,
    });
    (text, images.collect())
}
