//! The session's handle: what modes hold, and what it is made of.

use pi_base::process_tree;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::actions::Said;
use super::config::AppConfig;
use super::refusal::{ErrorCode, Refusal};
use super::second::Beside;
use super::showing::Showing;
use super::state::{Run, State};
use super::texts::Texts;
use super::trace::trace;
use super::turns::Turns;
use crate::agent::AgentMessage;
use crate::agent::event::{Event, ExtensionError, UiAnswer, UiMethod, UiRequest};
use crate::agent::queue::{Delivery, QueueMode};
use crate::ai::message::StopReason;
use crate::ai::registry::ModelRegistry;
use crate::extensions::diagnostics::error_context::explain;
use crate::extensions::{Extensions, LoadReport};
use crate::resources::settings::{Settings, SettingsError};
use crate::session::Warning;

/// What an aborted run may take when the program ends.
const LAST_WORK: Duration = Duration::from_secs(5);

/// How long an event waits for [`AgentSession::tell_first`].
const TOLD_FIRST_DEADLINE: Duration = Duration::from_secs(1);

/// The mode, as the session sees it.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Takes events in order and loses none: it makes the session wait instead.
    async fn send(&self, event: Arc<Event>);

    /// Returns when those whom the mode serves have had a moment to read the files that the tool
    /// calls announced so far are about to change. Only clients that show changes read them.
    async fn before_files_change(&self) {}
}

/// Everything one conversation needs. Cheap to share; lives until the last mode
/// lets go of it.
pub struct AgentSession {
    pub(super) this: Weak<Self>,
    pub(super) config: AppConfig,
    /// Of a session beside another.
    pub(super) beside: Beside,
    pub(super) settings: Arc<Settings>,
    pub(super) models: Arc<ModelRegistry>,
    pub(super) extensions: Arc<Extensions>,
    pub(super) state: Mutex<State>,
    pub(super) mode: Arc<dyn EventSink>,
    /// Cancelled by an abort outside any run: ends the wait for handlers.
    pub(super) waiting: Mutex<CancellationToken>,
    /// Cancelled by the same, and when another session takes the place of this one:
    /// what was to be said here is not said there.
    pub(super) here: Mutex<CancellationToken>,
    /// While files of extensions are watched.
    pub(super) watching: Mutex<Option<DropGuard>>,
    /// Shell commands of the user; cancelled when the session ends.
    pub(super) commands: CancellationToken,
    /// They, until what they brought is stored.
    pub(super) at_work: TaskTracker,
    /// Whether the agent is at work.
    pub(super) busy: watch::Sender<bool>,
    /// How many questions of extensions the user has not answered.
    pub(super) questions: Arc<watch::Sender<usize>>,
    /// Prompts that are neither refused, dealt with nor begun yet.
    pub(super) prompts: watch::Sender<usize>,
    /// They, in the order in which they were said.
    pub(super) turns: Turns,
    /// Whether a run has said its last word and is not at rest yet.
    pub(super) ending: watch::Sender<bool>,
    /// Held by the run that tells what happens.
    pub(super) stage: tokio::sync::Mutex<()>,
    /// Whether a summary is being written.
    pub(super) summarising: watch::Sender<bool>,
    /// An extension asked for the end of the program.
    pub(super) leave: watch::Sender<bool>,
    /// Whether the mode ends then; the others answer what they were asked.
    pub(super) heeds_leave: AtomicBool,
    /// The program's threads; extensions call from their own.
    pub(super) handle: Handle,
    /// One replacement of the session, or reload, at a time.
    pub(super) replacing: tokio::sync::Mutex<()>,
    /// What extensions say in the user's place, in order. They may say it from
    /// where nothing can be awaited.
    pub(super) said: mpsc::UnboundedSender<Said>,
    /// What of it is to be heard before the next request.
    pub(super) steered: Turns,
    /// Prompts of extensions that have neither begun a run nor been queued or refused yet.
    /// The session is not idle for extensions while there are any.
    pub(super) pending_prompts: Turns,
    /// Orders messages that handlers cause before the event that is being handled.
    pub(super) told_first: Turns,
    /// What was begun for extensions, or is about to be, and nobody waits for.
    pub(super) asides: Mutex<TaskTracker>,
    pub(super) texts: Mutex<Texts>,
    /// Found while starting; the mode shows it.
    pub(super) notes: Mutex<Vec<String>>,
    pub(super) showing: Showing,
    /// The messages that the extension which runs this session was told of last.
    pub(super) told_messages: Mutex<Vec<Arc<AgentMessage>>>,
    /// Of `ctx.ui`, what the mode's other side can do; `None` if it did not say.
    pub(super) ui_methods: Mutex<Option<HashSet<String>>>,
    pub(super) loaded: Mutex<LoadReport>,
}

impl AgentSession {
    pub(super) fn arc(&self) -> Arc<Self> {
        self.this
            .upgrade()
            .expect("a method of a session runs while somebody holds the session")
    }

    /// Waits when the mode is slow.
    pub(super) async fn tell(&self, event: Event) {
        trace(&event);
        self.mode.send(Arc::new(event)).await;
    }

    /// Tells the mode of what an extension has done, from where nothing can be awaited. A
    /// handler's event is told after it.
    pub(super) fn tell_first(&self, telling: impl Future<Output = ()> + Send + 'static) {
        let turn = self.told_first.take();
        let told = self.asides.lock().track_future(async move {
            telling.await;
            drop(turn);
        });
        begin(&self.handle, told);
    }

    /// Returns when the mode was told of what extensions have done by now, or after
    /// [`TOLD_FIRST_DEADLINE`].
    pub(super) async fn wait_told_first(&self) {
        if self.told_first.is_waiting() {
            self.told_first.settle(TOLD_FIRST_DEADLINE).await;
        }
    }

    /// [`Self::tell`] for those who cannot wait: before this returns, unless the mode is slow.
    pub(super) fn tell_soon(&self, event: Event) {
        let session = self.arc();
        begin(&self.handle, async move { session.tell(event).await });
    }

    pub(super) async fn report(&self, path: &str, event: &str, error: impl ToString) {
        let error = ExtensionError::new(path, event, error.to_string());
        self.report_error(error).await;
    }

    pub(super) async fn report_error(&self, mut error: ExtensionError) {
        let (path, event) = (&error.extension_path, &error.event);
        tracing::warn!(path, event, "{}", error.error);
        explain(&mut error, None);
        self.tell(error.into()).await;
    }

    /// [`Self::report`] of what works all the same.
    pub(super) async fn warn(&self, path: &str, event: &str, message: impl ToString) {
        let warning = ExtensionError::new(path, event, message.to_string()).as_warning();
        self.report_error(warning).await;
    }

    /// Warnings of the start, once.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock())
    }

    pub(super) fn note_warnings(&self, warnings: Vec<Warning>) {
        let mut notes = self.notes.lock();
        notes.extend(warnings.iter().map(ToString::to_string));
    }

    /// `context` says what the settings were read for.
    pub(super) fn note_settings(&self, context: &str) {
        let warnings = self.settings.take_warnings();
        let mut notes = self.notes.lock();
        notes.extend(warnings.iter().map(|warning| warning.describe(context)));
    }

    /// What the last load of the extensions brought.
    pub fn load_report(&self) -> LoadReport {
        self.loaded.lock().clone()
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

    /// Puts a question of pi itself to the user, as extensions put theirs.
    pub async fn ask_user(&self, method: UiMethod) -> UiAnswer {
        self.extensions.request_dialog(self, method).await
    }

    /// A text for the user to go on with.
    pub async fn suggest(&self, text: String) {
        let request = UiRequest {
            id: uuid::Uuid::new_v4().to_string(),
            method: UiMethod::SetEditorText { text },
        };
        self.tell(Event::ExtensionUiRequest(request)).await;
    }

    /// The agent runs.
    pub fn is_busy(&self) -> bool {
        self.state.lock().run.is_some()
    }

    /// The agent runs, or a summary is being written.
    pub fn is_working(&self) -> bool {
        let state = self.state.lock();
        state.run.is_some() || state.summary.is_some()
    }

    /// Returns when nothing is at work.
    pub async fn wait_idle(&self) {
        let mut busy = self.busy.subscribe();
        loop {
            // An error means that the session is gone.
            let _ = busy.wait_for(|busy| !busy).await;
            self.wait_summary().await;
            // A run may have begun meanwhile.
            if !*busy.borrow_and_update() {
                return;
            }
        }
    }

    /// The number of the run that is going on.
    pub fn run_id(&self) -> Option<u64> {
        self.state.lock().run.as_ref().map(|run| run.id)
    }

    /// Returns when `run`, which was there before somebody ended it, is over and no summary
    /// is being written; or when another run has begun, which nobody has ended.
    pub async fn wait_over(&self, run: Option<u64>) {
        if self.wait_run_over(run).await {
            self.wait_summary().await;
        }
    }

    /// `false` if another run has begun.
    pub(super) async fn wait_run_over(&self, run: Option<u64>) -> bool {
        let mut busy = self.busy.subscribe();
        while *busy.borrow_and_update() {
            let now = self.run_id();
            // An error means that the session is gone.
            if now.is_some() && now != run || busy.changed().await.is_err() {
                return false;
            }
        }
        true
    }

    /// Returns when nothing is at work, extensions have heard of all that happened,
    /// and nothing came of that.
    pub async fn wait_settled(&self) {
        let mut prompts = self.prompts.subscribe();
        loop {
            // An error means that the session is gone.
            let _ = prompts.wait_for(|under_way| *under_way == 0).await;
            // A session that is being replaced is not idle.
            drop(self.replacing.lock().await);
            self.wait_idle().await;
            let runs = self.state.lock().runs;
            self.extensions.wait_drained().await;
            let asides = std::mem::take(&mut *self.asides.lock());
            asides.close();
            asides.wait().await;
            let is_prompted = *prompts.borrow() > 0;
            if !self.is_working() && !is_prompted && self.state.lock().runs == runs {
                return;
            }
        }
    }

    /// Returns when an extension has asked for the end of the program and the
    /// agent is idle. From the call on, and not only once the future is polled, a request to
    /// end keeps runs from beginning: a prompt may be at work before the first poll.
    pub fn asked_to_leave(&self) -> impl Future<Output = ()> + Send {
        self.heeds_leave.store(true, Ordering::Relaxed);
        let mut leave = self.leave.subscribe();
        async move {
            // An error means that the session is gone.
            let _ = leave.wait_for(|leave| *leave).await;
            self.wait_idle().await;
        }
    }

    /// The program is about to end, and begins nothing any more.
    pub(super) fn is_leaving(&self) -> bool {
        self.heeds_leave.load(Ordering::Relaxed) && *self.leave.borrow()
    }

    /// Stops the run, the wait for a retry, a compaction or the summary of a branch,
    /// and whatever waits for extensions. Returns at once; see [`Self::wait_idle`].
    pub fn abort(&self) {
        std::mem::take(&mut *self.waiting.lock()).cancel();
        std::mem::take(&mut *self.here.lock()).cancel();
        let run = {
            let state = self.state.lock();
            let ending = state.ending.as_ref().map(|ending| ending.run.id);
            state.run.as_ref().map(|run| run.id).or(ending)
        };
        self.extensions.abort(run);
        self.abort_run();
        self.abort_summary();
        // What is queued waits for the next prompt.
        self.state.lock().owed = false;
    }

    /// The run alone: whoever asks for it may be what an abort would end.
    pub fn abort_run(&self) {
        let ending = self.state.lock().ending.as_ref().map(|one| one.run.clone());
        self.cancel(ending);
        self.abort_work();
    }

    /// The same without the wait for handlers that know of the end already.
    pub(super) fn abort_work(&self) {
        let run = self.state.lock().run.clone();
        self.cancel(run);
    }

    /// Also fires the signal that extensions hold of it.
    pub(super) fn cancel(&self, work: Option<Run>) {
        if let Some(work) = work {
            let extensions = self.extensions.clone();
            // It is on its way before whatever is told of the end of the run.
            begin(&self.handle, async move {
                extensions.abort_run(work.id).await;
            });
            work.cancel.cancel();
        }
    }

    /// Ends the wait for a retry, and with it the run; one that is at work goes on.
    /// Gives whether there was a wait.
    pub fn abort_retry(&self) -> bool {
        let state = self.state.lock();
        let waits = state.retry_wait.as_ref();
        waits.inspect(|wait| wait.cancel()).is_some()
    }

    /// The answer to an `extension_ui_request`; one that nobody waits for is
    /// ignored.
    pub fn answer_ui(&self, id: &str, answer: UiAnswer) {
        self.extensions.answer_dialog(id, answer);
    }

    /// Whether the question is to be answered with yes or no.
    pub fn ui_confirms(&self, id: &str) -> bool {
        self.extensions.is_confirm_dialog(id)
    }

    /// The first line of the session file.
    pub fn header(&self) -> Box<serde_json::value::RawValue> {
        let raw = self.state.lock().session.header().raw.to_string();
        serde_json::value::RawValue::from_string(raw).expect("a header was parsed from its line")
    }

    pub fn messages(&self) -> Vec<Arc<AgentMessage>> {
        self.state.lock().context.clone()
    }

    /// The last answer's text, trimmed.
    pub fn last_assistant_text(&self) -> Option<String> {
        let state = self.state.lock();
        let mut answers = state
            .context
            .iter()
            .rev()
            .filter_map(|it| it.as_assistant());
        // One that was aborted before it began says nothing; one that failed does.
        let last =
            answers.find(|it| it.stop_reason != StopReason::Aborted || !it.content.is_empty())?;
        let text = last.texts().collect::<String>();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Queues a message for the run that is going on, or the next one.
    pub(super) async fn enqueue(&self, delivery: Delivery, message: AgentMessage) {
        self.state.lock().queues.push(delivery, Arc::new(message));
        self.queue_changed().await;
    }

    pub(super) async fn queue_changed(&self) {
        let (steering, follow_up) = self.state.lock().queues.texts();
        self.tell(Event::QueueUpdate {
            steering,
            follow_up,
        })
        .await;
    }

    /// Empties both queues; returns the texts of what was in them.
    pub async fn clear_queue(&self) -> (Vec<String>, Vec<String>) {
        let texts = {
            let mut state = self.state.lock();
            let texts = state.queues.texts();
            state.queues.clear();
            texts
        };
        self.queue_changed().await;
        texts
    }

    pub fn set_queue_mode(&self, delivery: Delivery, mode: QueueMode) {
        let saved = match delivery {
            Delivery::Steer => {
                self.state.lock().queues.steering_mode = mode;
                self.settings.set_steering_mode(mode)
            }
            Delivery::FollowUp => {
                self.state.lock().queues.follow_up_mode = mode;
                self.settings.set_follow_up_mode(mode)
            }
        };
        self.saved(saved);
    }

    pub fn set_auto_retry(&self, enabled: bool) {
        self.state.lock().retry.enabled = enabled;
        self.saved(self.settings.set_retry_enabled(enabled));
    }

    /// A setting that cannot be stored still holds, and the user hears of it.
    pub(super) fn saved(&self, result: Result<(), SettingsError>) {
        let Err(error) = result else { return };
        let session = self.arc();
        begin(&self.handle, async move {
            let text = format!(
                "{error}. The setting holds for now, and is stored with the next one that can be"
            );
            session.report("<session>", "settings", text).await;
        });
    }

    pub fn set_session_name(&self, name: &str) -> Result<(), Refusal> {
        if name.trim().is_empty() {
            let text = "Session name cannot be empty";
            return Err(Refusal::new(ErrorCode::InvalidName, text));
        }
        self.rename(name)?;
        Ok(())
    }

    /// What of `ctx.ui` can be done from now on.
    pub fn set_ui_methods(&self, methods: Option<HashSet<String>>) {
        *self.ui_methods.lock() = methods;
    }

    /// An empty name is none. Gives the id of the entry that says it.
    pub(super) fn rename(&self, name: &str) -> Result<String, String> {
        let (entry, name) = {
            let mut state = self.state.lock();
            let session = state.writable().map_err(|error| error.to_string())?;
            let appended = session.append_session_info(name);
            let entry = appended.map_err(|error| error.to_string())?;
            (entry, state.session.name().map(str::to_string))
        };
        let event = || match &name {
            Some(name) => json!({ "type": "session_info_changed", "name": name }),
            None => json!({ "type": "session_info_changed" }),
        };
        self.extensions.notify_soon("session_info_changed", event);
        self.tell_soon(Event::SessionInfoChanged { name });
        Ok(entry.id.to_string())
    }

    /// Ends all shell commands of the user, for good.
    pub fn cancel_commands(&self) {
        self.commands.cancel();
    }

    /// Ends the session in order: the agent stops, extensions get
    /// `session_shutdown` within its deadline, what they hold ends. `code` is the
    /// program's, for those who listen to `exit` and signals; gives the one that it ends with.
    ///
    /// Ends in bounded time, whatever extensions, tools and the mode's reader do.
    pub async fn shutdown(&self, code: u8) -> u8 {
        // A successor waits until this one has ended, and then has its last words, too.
        let _last_words = self.prepare_run();
        if self.extensions.has_handlers("session_shutdown")
            && let Err(error) = self.state.lock().hold()
        {
            tracing::info!("another process goes on with the session: {error}");
        }
        self.extensions.close_dialogs();
        self.abort();
        self.cancel_commands();
        self.at_work.close();
        let work = futures::future::join(self.wait_idle(), self.at_work.wait());
        // A tool that does not let go must not keep the program from ending.
        let _ = tokio::time::timeout(LAST_WORK, work).await;
        let is_left = self.extensions.emit_signal(code).await;
        let rest = async {
            self.flush_bash().await;
            if !is_left {
                self.extensions.shut_down("quit", None).await;
            }
            // Extensions may have had a last word.
            self.flush_unsaved().await;
        };
        let limit = self.settings.values().extension_timeouts.shutdown * 2 + LAST_WORK;
        let _ = tokio::time::timeout(limit, rest).await;
        let code = self.extensions.stop(code).await;
        self.state.lock().session.release_id();
        // The program goes on after a session beside another.
        if !self.beside.is_second {
            process_tree::finish_terminations().await;
        }
        code
    }
}

/// Runs `work` on its own. What it does before it waits for anything is done when this
/// returns, so that what is told in it comes before what the caller does next.
pub(super) fn begin(handle: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    let _here = handle.enter();
    let begun = (work.as_mut()).poll(&mut Context::from_waker(Waker::noop()));
    if begun.is_pending() {
        // It is asked again there, by somebody who can be woken.
        handle.spawn(work);
    }
}
