//! The handle of one session, which modes hold, with its parts.

use pi_base::process_tree;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::{Activity, ActivityWatch, Work};
use super::cancel::ResettableCancel;
use super::child::session::ChildLink;
use super::compaction::summary_lock::SummaryLock;
use super::error::{CommandError, ErrorCode};
use super::log_events::log_event;
use super::prompt::intake::PromptIntake;
use super::prompt::resources::PromptResources;
use super::redaction::redact_text;
use super::run::approval::Approvals;
use super::shutdown::ShutdownRequest;
use super::startup::config::AppConfig;
use super::state::State;
use super::switch::Switcher;
use super::tools::Tools;
use super::ui::UserInterface;
use super::user_commands::UserCommands;
use pi_agent::AgentMessage;
use pi_agent::event::{Event, ExtensionError, UiAnswer, UiMethod, UiRequest};
use pi_agent::queue::{Delivery, QueueMode};
use pi_ai::message::StopReason;
use pi_ai::models::registry::ModelRegistry;
use pi_extensions::diagnostics::error_context::explain;
use pi_extensions::{Extensions, LoadReport};
use pi_resources::settings::{Settings, SettingsError};
use pi_session::Warning;

/// How long an aborted run may take when the program ends.
const END_GRACE: Duration = Duration::from_secs(5);

/// How long an event waits for work that was started with [`AgentSession::emit_first`].
const EMIT_FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// The receiver of the session's events: the mode, or the extension that runs a child session.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Accepts events in order and drops none: a slow receiver makes the session wait.
    async fn send(&self, event: Arc<Event>);

    /// Returns when clients have had a moment to read the files that the announced tool calls are
    /// about to change. Only clients that show changes need it.
    async fn before_files_change(&self) {}
}

/// One conversation with everything it needs. The handle is cheap to share and lives until the last
/// mode drops it.
pub struct AgentSession {
    pub(super) this: Weak<Self>,
    pub(super) config: Arc<AppConfig>,
    /// Data that only a child session has; the default in a session of the user.
    pub(super) child_link: ChildLink,
    pub(super) settings: Arc<Settings>,
    pub(super) models: Arc<ModelRegistry>,
    pub(super) extensions: Arc<Extensions>,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) tools: Arc<Tools>,
    pub(super) mode: Arc<dyn EventSink>,
    /// Cancelled by an abort outside any run: ends the wait for handlers.
    pub(super) handler_cancel: ResettableCancel,
    pub(super) user_commands: UserCommands,
    /// Waits for changes of the activity, which [`State`] owns.
    pub(super) activity: ActivityWatch,
    pub(super) summary_lock: SummaryLock,
    pub(super) intake: PromptIntake,
    /// Locked by the run that emits events: the next run emits its first event after the last one of
    /// the run before.
    pub(super) event_order: tokio::sync::Mutex<()>,
    pub(super) shutdown_request: ShutdownRequest,
    /// The runtime of the program. Extensions call from threads that have another one or none.
    pub(super) handle: Handle,
    pub(super) switcher: Switcher,
    /// Tasks started for extensions that no caller waits for.
    pub(super) detached_tasks: Mutex<TaskTracker>,
    pub(super) prompt_resources: Arc<PromptResources>,
    /// Warnings collected outside of a run, until the mode shows them.
    pub(super) pending_warnings: Mutex<Vec<String>>,
    pub(super) ui: Arc<UserInterface>,
    pub(super) approvals: Approvals,
    /// The context that the extension which runs this child session received last.
    pub(super) last_delivered_messages: Mutex<Vec<Arc<AgentMessage>>>,
    pub(super) last_load: Mutex<LoadReport>,
}

impl AgentSession {
    pub(super) fn arc(&self) -> Arc<Self> {
        self.this
            .upgrade()
            .expect("the caller of a method holds the session")
    }

    /// Sends an event to the mode, and waits while the mode is slow.
    pub(super) async fn emit_to_mode(&self, event: Event) {
        emit(&*self.mode, event).await;
    }

    /// Emits events that an extension caused, from code that cannot wait. The event that is being
    /// handled is emitted after them.
    pub(super) fn emit_first(&self, emitting: impl Future<Output = ()> + Send + 'static) {
        let ticket = self.ui.emit_first.take();
        let task = self.detached_tasks.lock().track_future(async move {
            emitting.await;
            drop(ticket);
        });
        spawn_started(&self.handle, task);
    }

    /// Returns when everything given to [`Self::emit_first`] so far was emitted, or after
    /// [`EMIT_FIRST_TIMEOUT`].
    pub(super) async fn wait_emit_first(&self) {
        if self.ui.emit_first.is_waiting() {
            self.ui.emit_first.drain(EMIT_FIRST_TIMEOUT).await;
        }
    }

    /// Does what [`Self::emit_to_mode`] does, from code that cannot wait. The mode has the event
    /// when this returns, unless the mode is slow.
    pub(super) fn emit_to_mode_soon(&self, event: Event) {
        let session = self.arc();
        spawn_started(
            &self.handle,
            async move { session.emit_to_mode(event).await },
        );
    }

    pub(super) async fn report(&self, path: &str, event: &str, error: impl ToString) {
        let error = ExtensionError::new(path, event, error.to_string());
        self.report_error(error).await;
    }

    pub(super) async fn report_error(&self, error: ExtensionError) {
        report_error(&*self.mode, error).await;
    }

    /// [`Self::report`] for a problem that does not stop anything.
    pub(super) async fn warn(&self, path: &str, event: &str, message: impl ToString) {
        let warning = ExtensionError::new(path, event, message.to_string()).as_warning();
        self.report_error(warning).await;
    }

    /// Takes the warnings that were collected since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.pending_warnings.lock())
    }

    pub(super) fn add_warnings(&self, warnings: Vec<Warning>) {
        let mut pending_warnings = self.pending_warnings.lock();
        pending_warnings.extend(warnings.iter().map(ToString::to_string));
    }

    /// `context` says why the settings were read.
    pub(super) fn add_settings_warnings(&self, context: &str) {
        let warnings = self.settings.take_warnings();
        let mut pending_warnings = self.pending_warnings.lock();
        pending_warnings.extend(warnings.iter().map(|warning| warning.describe(context)));
    }

    /// Returns the result of the latest load of extensions.
    pub fn load_report(&self) -> LoadReport {
        self.last_load.lock().clone()
    }

    pub fn keybindings_path(&self) -> PathBuf {
        self.config.paths.keybindings()
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn models(&self) -> &ModelRegistry {
        &self.models
    }

    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Shows a dialog of pi itself to the user, like the dialogs of extensions.
    pub async fn show_dialog(&self, method: UiMethod) -> UiAnswer {
        self.extensions.request_dialog(self, method).await
    }

    /// Puts `text` into the user's editor.
    pub async fn set_editor_text(&self, text: String) {
        self.show(UiMethod::SetEditorText { text }).await;
    }

    /// Shows a message of pi itself to the user. `kind` is `info`, `warning` or `error`.
    pub(super) async fn notify(&self, message: String, kind: &str) {
        let notify_type = Some(kind.to_owned());
        self.show(UiMethod::Notify {
            message,
            notify_type,
        })
        .await;
    }

    /// Sends what pi itself shows to the mode. No answer is expected.
    pub(super) async fn show(&self, method: UiMethod) {
        let id = uuid::Uuid::new_v4().to_string();
        let request = UiRequest { id, method };
        self.emit_to_mode(Event::ExtensionUiRequest(request)).await;
    }

    /// Returns whether a run is active.
    pub fn is_busy(&self) -> bool {
        self.state.lock().work.is_running()
    }

    /// Returns whether a run is active or a summary is being written.
    pub fn is_working(&self) -> bool {
        self.state.lock().work.is_working()
    }

    /// Returns when no run is active and no summary is being written.
    pub async fn wait_idle(&self) {
        self.activity.wait(Activity::is_idle).await;
    }

    /// Returns the id of the active run.
    pub(super) fn run_id(&self) -> Option<u64> {
        self.state.lock().work.run().map(|run| run.id)
    }

    /// Returns when `run`, which the caller has aborted, is over and no summary is being written;
    /// or when another run has begun, which the caller did not abort.
    pub(super) async fn wait_work_end(&self, run: Option<u64>) {
        if self.activity.wait_run_end(run).await {
            self.summary_lock.wait_free().await;
        }
    }

    /// Returns when the session is idle, queued events are delivered and their handlers have not
    /// caused new work.
    pub async fn wait_settled(&self) {
        let mut prompts = self.intake.subscribe();
        loop {
            // An error means that the session is gone.
            let _ = prompts.wait_for(|under_way| *under_way == 0).await;
            // A session that is being replaced is not idle.
            drop(self.switcher.lock.lock().await);
            self.wait_idle().await;
            let runs = self.state.lock().work.last_id;
            self.extensions.wait_drained().await;
            let detached_tasks = std::mem::take(&mut *self.detached_tasks.lock());
            detached_tasks.close();
            detached_tasks.wait().await;
            let is_prompted = *prompts.borrow() > 0;
            if !self.is_working() && !is_prompted && self.state.lock().work.last_id == runs {
                return;
            }
        }
    }

    /// Returns when an extension has asked for the end of the program and the agent is idle. From
    /// the call on, and not only once the future is polled, such a request keeps runs from
    /// beginning: a prompt may be in progress before the first poll.
    pub fn wait_shutdown_request(&self) -> impl Future<Output = ()> + Send {
        let mut is_requested = self.shutdown_request.listen();
        async move {
            // An error means that the session is gone.
            let _ = is_requested.wait_for(|is_requested| *is_requested).await;
            self.wait_idle().await;
        }
    }

    /// Returns whether the program is about to end. No run begins any more.
    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutdown_request.is_active()
    }

    /// Stops the run, the wait for a retry, a compaction or branch summary, and every wait for
    /// extensions. Returns at once; see [`Self::wait_idle`].
    pub fn abort(&self) {
        self.handler_cancel.cancel();
        self.switcher.cancel.cancel();
        let run = {
            let state = self.state.lock();
            state
                .work
                .run()
                .or_else(|| state.work.ending_run())
                .map(|run| run.id)
        };
        // The run is aborted first: it would go on once its handlers are no longer waited for.
        self.abort_run();
        self.extensions.abort(run);
        self.abort_summary();
        // Queued messages wait for the next prompt.
        self.state.lock().prompts.is_run_pending = false;
    }

    /// Stops only the run: a caller may itself be one of the waits that [`Self::abort`] ends.
    pub fn abort_run(&self) {
        let ending = self.state.lock().work.ending_run();
        self.cancel_work(ending);
        self.cancel_run();
    }

    /// Like [`Self::abort_run`], except that `agent_end` handlers of a run that is ending are still
    /// waited for.
    pub(super) fn cancel_run(&self) {
        let run = self.state.lock().work.run();
        self.cancel_work(run);
    }

    /// Also fires the `AbortSignal` that extensions hold for this work.
    pub(super) fn cancel_work(&self, work: Option<Work>) {
        if let Some(work) = work {
            work.begin_abort();
            let extensions = self.extensions.clone();
            // The signal is sent before any event about the end of the run.
            spawn_started(&self.handle, async move {
                extensions.abort_run(work.id).await;
            });
            work.cancel.cancel();
        }
    }

    /// Delivers the answer to an `extension_ui_request`. Answers to unknown or closed dialogs are
    /// ignored.
    pub fn answer_ui(&self, id: &str, answer: UiAnswer) {
        self.extensions.answer_dialog(id, answer);
    }

    /// Returns whether the dialog expects yes or no.
    pub fn ui_confirms(&self, id: &str) -> bool {
        self.extensions.is_confirm_dialog(id)
    }

    /// Returns the first line of the session file.
    pub fn header(&self) -> Box<serde_json::value::RawValue> {
        let raw = self.state.lock().session.header().raw.to_string();
        serde_json::value::RawValue::from_string(raw).expect("a header was parsed from its line")
    }

    pub fn messages(&self) -> Vec<Arc<AgentMessage>> {
        self.state.lock().context.clone()
    }

    /// Returns the text of the last answer, trimmed.
    pub fn last_assistant_text(&self) -> Option<String> {
        let state = self.state.lock();
        let mut answers = state
            .context
            .iter()
            .rev()
            .filter_map(|it| it.as_assistant());
        // An answer that was aborted before its first content does not count; a failed one does.
        let last =
            answers.find(|it| it.stop_reason != StopReason::Aborted || !it.content.is_empty())?;
        let text = last.texts().collect::<String>();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Queues a message for the active run, or for the next one.
    pub(super) async fn enqueue(&self, delivery: Delivery, message: AgentMessage) {
        self.state
            .lock()
            .prompts
            .queues
            .push(delivery, Arc::new(message));
        self.queue_changed().await;
    }

    pub(super) async fn queue_changed(&self) {
        let (steering, follow_up) = self.state.lock().prompts.queues.texts();
        self.emit_to_mode(Event::QueueUpdate {
            steering,
            follow_up,
        })
        .await;
    }

    /// Empties both queues and returns the texts of their messages.
    pub(super) async fn clear_queue(&self) -> (Vec<String>, Vec<String>) {
        let texts = {
            let mut state = self.state.lock();
            let texts = state.prompts.queues.texts();
            state.prompts.queues.clear();
            texts
        };
        self.queue_changed().await;
        texts
    }

    pub(super) fn set_queue_mode(&self, delivery: Delivery, mode: QueueMode) {
        let saved = match delivery {
            Delivery::Steer => {
                self.state.lock().prompts.queues.steering_mode = mode;
                self.settings.set_steering_mode(mode)
            }
            Delivery::FollowUp => {
                self.state.lock().prompts.queues.follow_up_mode = mode;
                self.settings.set_follow_up_mode(mode)
            }
        };
        self.report_save_error(saved);
    }

    /// Reports that a setting could not be stored. The new value applies nevertheless.
    pub(super) fn report_save_error(&self, result: Result<(), SettingsError>) {
        let Err(error) = result else { return };
        let session = self.arc();
        spawn_started(&self.handle, async move {
            let text = format!(
                "{error}. The value holds for this session, and pi stores it together with the next \
                 setting that it can store"
            );
            session.report("<session>", "settings", text).await;
        });
    }

    /// Names the session. Waits up to [`LOCK_TIMEOUT`](super::session_lock::LOCK_TIMEOUT) for
    /// another process that writes to its file.
    pub(super) async fn set_session_name(&self, name: &str) -> Result<(), CommandError> {
        check_session_name(name)?;
        self.acquire_session_lock(&CancellationToken::new()).await?;
        self.rename(name)?;
        Ok(())
    }

    /// Names the session. Fails at once if another process writes to its file.
    pub(super) fn set_session_name_now(&self, name: &str) -> Result<(), CommandError> {
        check_session_name(name)?;
        self.rename(name)?;
        Ok(())
    }

    /// Sets which methods of `ctx.ui` the client supports from now on.
    pub fn set_ui_methods(&self, methods: Option<HashSet<String>>) {
        self.ui.set_methods(methods);
    }

    /// Sets the name; an empty one removes it. Returns the id of the new entry.
    pub(super) fn rename(&self, name: &str) -> Result<String, String> {
        let (entry, name) = {
            let mut state = self.state.lock();
            let session = state.writable().map_err(|error| error.to_string())?;
            let appended = session.append_session_info(name);
            let entry = appended.map_err(|error| error.to_string())?;
            (entry, state.session.name().map(str::to_string))
        };
        let event = || match &name {
            Some(name) => json!({ "name": name }),
            None => json!({}),
        };
        self.extensions.deliver_soon("session_info_changed", event);
        self.emit_to_mode_soon(Event::SessionInfoChanged { name });
        Ok(entry.id.to_string())
    }

    /// Ends all shell commands of the user. Later ones are cancelled at once.
    pub fn cancel_commands(&self) {
        self.user_commands.cancel.cancel();
    }

    /// Ends the session in order: the agent stops, extensions get `session_shutdown` within its
    /// deadline, and what they hold is closed. `code` is the program's exit code as listeners of
    /// `exit` and signals see it; returns the code that the program ends with.
    ///
    /// Ends in bounded time, even if extensions, tools or the mode's reader hang.
    pub async fn shutdown(&self, code: u8) -> u8 {
        // A successor process waits for the session lock until this one has ended, and then reads
        // its last entries, too.
        let _keeps_lock = self.mark_preparing();
        if self.extensions.has_handlers("session_shutdown")
            && let Err(error) = self.state.lock().lock_file()
        {
            tracing::info!("another process goes on with the session: {error}");
        }
        self.extensions.close_dialogs();
        self.abort();
        self.cancel_commands();
        self.user_commands.tasks.close();
        let work = futures::future::join(self.wait_idle(), self.user_commands.tasks.wait());
        // A tool that does not stop must not keep the program from ending.
        let _ = tokio::time::timeout(END_GRACE, work).await;
        let is_left = self.extensions.emit_signal(code).await;
        let rest = async {
            self.store_deferred_user_commands().await;
            if !is_left {
                self.extensions.shut_down("quit", None).await;
            }
            // Handlers of `session_shutdown` may have appended messages.
            self.append_unsaved().await;
        };
        let limit = self.settings.values().extension_timeouts.shutdown * 2 + END_GRACE;
        let _ = tokio::time::timeout(limit, rest).await;
        let code = self.extensions.stop(code).await;
        self.state.lock().session.release_id();
        // After a child session the program goes on.
        if !self.child_link.is_child {
            process_tree::finish_terminations().await;
        }
        code
    }
}

/// Sends an event to the mode, and waits while the mode is slow.
pub(super) async fn emit(mode: &dyn EventSink, event: Event) {
    log_event(&event);
    mode.send(Arc::new(event)).await;
}

pub(super) async fn report_error(mode: &dyn EventSink, mut error: ExtensionError) {
    redact_text(&mut error.error);
    let details = &mut error.details;
    for text in [&mut details.stack, &mut details.code_frame] {
        text.iter_mut().for_each(redact_text);
    }
    let (path, event) = (&error.extension_path, &error.event);
    tracing::warn!(path, event, "{}", error.error);
    explain(&mut error, None);
    emit(mode, error.into()).await;
}

/// Runs `work` as a task of its own. The part before its first wait has run when this returns, so
/// that events emitted there precede the caller's next ones.
pub(super) fn spawn_started(handle: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    let _here = handle.enter();
    let begun = (work.as_mut()).poll(&mut Context::from_waker(Waker::noop()));
    if begun.is_pending() {
        // The runtime polls it again, with a waker.
        handle.spawn(work);
    }
}

fn check_session_name(name: &str) -> Result<(), CommandError> {
    if name.trim().is_empty() {
        let text = "Session name cannot be empty";
        return Err(CommandError::new(ErrorCode::InvalidName, text));
    }
    Ok(())
}
