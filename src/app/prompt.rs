//! The way of a prompt from a mode to the agent: extension commands, `input`
//! handlers, queues, `before_agent_start`.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::prompt_options::PromptOptions;
use super::run::{NewRun, object};
use super::turns::Turn;
use crate::agent::AgentMessage;
use crate::agent::queue::Delivery;
use crate::ai::message::{ContentBlock, ImageContent};
use crate::ai::words::words;
use crate::extensions::Emission;
use crate::extensions::registry::ExtensionId;
use crate::session::SessionError;
use crate::session::message::CustomMessage;

/// Who says it; the `input` event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Interactive,
    Rpc,
    Extension,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Rpc => "rpc",
            Self::Extension => "extension",
        }
    }
}

/// What to do while the agent is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    Refuse,
    Queue(Delivery),
}

#[derive(Clone, Debug)]
pub struct PromptRequest {
    pub text: String,
    pub images: Vec<ImageContent>,
    pub source: Source,
    pub while_busy: Behavior,
    /// Whether `/name` runs commands.
    pub commands: bool,
}

/// The prompt was accepted. The agent begins when this is dropped, so that an
/// answer to whoever asked can come before the first event.
#[must_use]
pub struct Accepted {
    pub disposition: Disposition,
    _gate: Option<oneshot::Sender<()>>,
}

/// What became of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Disposition {
    /// A run begins with it.
    Started,
    /// It waits for the run that is going on, or for the next.
    Queued,
    /// A command or an `input` handler of an extension dealt with it.
    Handled,
}

impl Accepted {
    /// There is nothing to hold back.
    fn queued() -> Self {
        Self {
            disposition: Disposition::Queued,
            _gate: None,
        }
    }

    fn handled() -> Self {
        Self {
            disposition: Disposition::Handled,
            _gate: None,
        }
    }

    pub(super) fn gate() -> (Self, oneshot::Receiver<()>) {
        let (gate, go) = oneshot::channel();
        let started = Self {
            disposition: Disposition::Started,
            _gate: Some(gate),
        };
        (started, go)
    }
}

/// Why nothing was asked of the model.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error(
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue \
         the message."
    )]
    Busy,
    #[error("Operation aborted")]
    Aborted,
    #[error("{0}")]
    NoModel(String),
    #[error("{0}")]
    Auth(String),
    #[error(
        "The model {model} speaks the API \"{api}\", which neither pi nor an extension that is \
         loaded provides"
    )]
    UnknownApi { model: String, api: String },
    #[error(
        "Extension command \"/{0}\" cannot be queued. Use prompt() or execute the command when \
         not streaming."
    )]
    CommandCannotWait(String),
    #[error(transparent)]
    Session(SessionError),
}

/// When a message is queued.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueIf {
    /// A run is there to see it.
    Busy,
    /// A run is there or about to begin.
    BusyOrStarting,
    Always,
}

/// How long a prompt waits for what its handlers said about it.
const SAID_BY_HANDLERS: Duration = Duration::from_secs(1);

impl AgentSession {
    /// Returns when the prompt was accepted, queued or dealt with by an
    /// extension; what comes after are events.
    pub async fn prompt(&self, request: PromptRequest) -> Result<Accepted, PromptError> {
        self.prompt_in(request, None).await
    }

    /// [`Self::prompt`] in the session in which it was said, which `here` stands for;
    /// without it in the one that is open when no other is being put in its place.
    pub(super) async fn prompt_in(
        &self,
        request: PromptRequest,
        here: Option<CancellationToken>,
    ) -> Result<Accepted, PromptError> {
        let _prompting = self.prompting();
        // What extensions say need not wait for what they are asked about.
        let mut turn = (request.source != Source::Extension).then(|| self.turns.take());
        let cancel = self.waiting.lock().clone();
        // One that comes while the session is being replaced is for the new one.
        tokio::select! {
            biased;
            _ = self.replacing.lock() => {}
            () = cancel.cancelled() => return Err(PromptError::Aborted),
        }
        let here = here.unwrap_or_else(|| self.here.lock().clone());
        if cancel.is_cancelled() || here.is_cancelled() {
            return Err(PromptError::Aborted);
        }
        if request.commands
            && let Some((name, args)) = self.find_command(&request.text)
        {
            // Others need not wait for it.
            turn = None;
            // It may be what replaces the session.
            let command = self.extensions.run_command(&name, &args);
            let ran = tokio::select! {
                ran = command => ran.is_some(),
                () = cancel.cancelled() => return Err(PromptError::Aborted),
            };
            if ran {
                // The answer says that the command is done: what it said comes before.
                self.wait_announced().await;
                return Ok(Accepted::handled());
            }
        }
        let preparing = self.prepare_run();
        let accepted = self.prompt_agent(request, &here, turn).await;
        drop(preparing);
        match accepted {
            // A run sees what is queued, and an abort leaves it where it is.
            Ok(Accepted {
                disposition: Disposition::Started | Disposition::Queued,
                ..
            })
            | Err(PromptError::Aborted) => {}
            _ => self.start_owed().await,
        }
        accepted
    }

    /// [`Self::prompt`] without what is for commands of extensions.
    async fn prompt_agent(
        &self,
        request: PromptRequest,
        here: &CancellationToken,
        turn: Option<Turn>,
    ) -> Result<Accepted, PromptError> {
        let Some((text, images)) = self.ask_input_handlers(&request, here).await? else {
            return Ok(Accepted::handled());
        };
        // What a handler says has a turn of its own and comes before the prompt that it was
        // asked about.
        self.wait_said_by_handlers(&request, here).await?;
        let text = match request.commands {
            true => self.expand(text).await,
            false => text,
        };
        let message = Arc::new(AgentMessage::User(self.user_message(&text, &images).await));
        if let Some(turn) = &turn {
            tokio::select! {
                () = turn.come() => {}
                () = here.cancelled() => return Err(PromptError::Aborted),
            }
        }
        self.wait_for_compaction(here).await?;
        // An extension does not overtake the user's prompt that is about to begin a run.
        let joins = request.source == Source::Extension && self.state.lock().starting > 0;
        if joins || self.is_busy() {
            let Behavior::Queue(delivery) = request.while_busy else {
                return Err(PromptError::Busy);
            };
            let when = match joins {
                true => QueueIf::BusyOrStarting,
                false => QueueIf::Busy,
            };
            // Or else it has ended just now.
            if self.queue_here(delivery, &message, here, when)? {
                self.queue_changed().await;
                return Ok(Accepted::queued());
            }
        }
        if self.is_leaving() {
            return Ok(Accepted::handled());
        }
        self.hold_session(here).await?;
        self.flush_bash().await;
        self.check_model().await?;
        if here.is_cancelled() {
            return Err(PromptError::Aborted);
        }
        self.compact_before_prompt().await;
        let mut prompts = vec![message.clone()];
        let (base, options) = self.base_prompt();
        let _starting = self.mark_starting();
        let started = self
            .before_agent_start(&text, &images, &base, &options, here)
            .await;
        if started.aborted {
            return Err(PromptError::Aborted);
        }
        if self.is_leaving() {
            return Ok(Accepted::handled());
        }
        self.wait_said_by_handlers(&request, here).await?;
        self.wait_told_first().await;
        let system_prompt = self.changed_prompt(&started, &base, &options).await;
        for (_, extension, message) in started.collected {
            match serde_json::from_value::<CustomMessage>(message) {
                Ok(message) => prompts.push(Arc::new(self.custom_message(message))),
                Err(error) => {
                    let error = format!("the message cannot be used: {}", words(error));
                    let path = self.extensions.path_of(extension);
                    self.report(&path, "before_agent_start", error).await;
                }
            }
        }
        let new = NewRun {
            prompts,
            system_prompt,
            prompted: true,
            cancel: Some(here.clone()),
        };
        let begun = loop {
            self.wait_for_compaction(here).await?;
            match self.start_run(new.clone()) {
                Err(PromptError::Busy) if self.is_summarising() => {}
                begun => break begun,
            }
        };
        match (begun, request.while_busy) {
            // Another prompt was faster.
            (Err(PromptError::Busy), Behavior::Queue(delivery)) => {
                self.queue_here(delivery, &message, here, QueueIf::Always)?;
                self.queue_changed().await;
                Ok(Accepted::queued())
            }
            (begun, _) => begun,
        }
    }

    /// Until this is dropped the session is not settled.
    fn prompting(&self) -> impl Drop + use<> {
        struct Prompting(watch::Sender<usize>);
        impl Drop for Prompting {
            fn drop(&mut self) {
                self.0.send_modify(|under_way| *under_way -= 1);
            }
        }
        self.prompts.send_modify(|under_way| *under_way += 1);
        Prompting(self.prompts.clone())
    }

    /// What is said during a compaction, or the summary of a branch, is said after it.
    pub(super) async fn wait_for_compaction(
        &self,
        cancel: &CancellationToken,
    ) -> Result<(), PromptError> {
        tokio::select! {
            // One abort ends the compaction and whoever waits for it.
            biased;
            () = cancel.cancelled() => Err(PromptError::Aborted),
            () = self.wait_summary() => Ok(()),
        }
    }

    /// Queues a message without asking `input` handlers. While the agent is idle
    /// it waits for the next run.
    pub async fn queue(
        &self,
        delivery: Delivery,
        text: String,
        images: Vec<ImageContent>,
    ) -> Result<(), PromptError> {
        if let Some((name, _)) = self.find_command(&text) {
            return Err(PromptError::CommandCannotWait(name));
        }
        let text = self.expand(text).await;
        let message = AgentMessage::User(self.user_message(&text, &images).await);
        self.enqueue(delivery, message).await;
        Ok(())
    }

    /// Whether the text calls a command that an extension registered.
    pub(super) fn is_command(&self, text: &str) -> bool {
        self.find_command(text).is_some()
    }

    /// Name and arguments, if the text calls a command that an extension
    /// registered.
    fn find_command(&self, text: &str) -> Option<(String, String)> {
        let line = text.strip_prefix('/')?;
        let (name, args) = line.split_once(' ').unwrap_or((line, ""));
        let known = self.extensions.commands();
        known
            .iter()
            .any(|(command, _)| command.name == name)
            .then(|| (name.to_string(), args.to_string()))
    }

    /// `None` if a handler dealt with the prompt itself.
    async fn ask_input_handlers(
        &self,
        request: &PromptRequest,
        cancel: &CancellationToken,
    ) -> Result<Option<(String, Vec<ImageContent>)>, PromptError> {
        let given = (request.text.clone(), request.images.clone());
        if !self.extensions.has_handlers("input") {
            return Ok(Some(given));
        }
        let mut event = object(json!({
            "text": request.text,
            "source": request.source.as_str(),
        }));
        if !request.images.is_empty() {
            event.insert("images".into(), blocks(&request.images));
        }
        if let (Behavior::Queue(delivery), true) = (request.while_busy, self.is_busy()) {
            let behavior = match delivery {
                Delivery::Steer => "steer",
                Delivery::FollowUp => "followUp",
            };
            event.insert("streamingBehavior".into(), behavior.into());
        }
        let mut emission = self.extensions.emit("input", event, cancel).await;
        if emission.aborted {
            return Err(PromptError::Aborted);
        }
        if emission.stopped {
            return Ok(None);
        }
        let text = emission
            .event
            .get("text")
            .and_then(|text| text.as_str())
            .map_or(given.0, str::to_string);
        let images = emission.event.remove("images");
        // What does not fit was not taken.
        let images = images.and_then(|images| serde_json::from_value(images).ok());
        let images = images.unwrap_or(given.1);
        Ok(Some((text, images)))
    }

    /// Returns the system prompt after `before_agent_start` handlers; `None` if they left it
    /// alone. `base` and `given` are the prompt and the options that the handlers received.
    ///
    /// Handlers choose tools in two ways: they edit `selectedTools`, or they call
    /// `pi.setActiveTools` or `pi.registerTool`. An edit wins; without one the tools that are
    /// active now stay, which are not those of `given` any more.
    async fn changed_prompt(
        &self,
        started: &Emission,
        base: &str,
        given: &PromptOptions,
    ) -> Option<String> {
        let text = started.event.get("systemPrompt").and_then(Value::as_str);
        if let Some(text) = text.filter(|text| !text.is_empty() && *text != base) {
            return Some(text.to_string());
        }
        let options = started.event.get("systemPromptOptions")?;
        let read = serde_json::from_value::<PromptOptions>(options.clone());
        let read = read.map_err(|error| error.to_string());
        match read.and_then(|options| options.problem().map_or(Ok(options), Err)) {
            Ok(options) if options == *given => None,
            Ok(mut options) => {
                if options.selected_tools != given.selected_tools {
                    self.activate_tools(options.selected_tools.clone());
                }
                options.take_tools(&self.state.lock().prompt_options);
                let prompt = self.render_prompt(&options);
                self.state.lock().run_options = Some(options);
                Some(prompt)
            }
            Err(error) => {
                let error = format!(
                    "the systemPromptOptions that the handlers left cannot be used: {error}"
                );
                self.report("<runtime>", "before_agent_start", error).await;
                None
            }
        }
    }

    async fn before_agent_start(
        &self,
        text: &str,
        images: &[ImageContent],
        system_prompt: &str,
        options: &PromptOptions,
        cancel: &CancellationToken,
    ) -> Emission {
        let mut event = object(json!({ "messageType": "user", "prompt": text }));
        if !images.is_empty() {
            event.insert("images".into(), blocks(images));
        }
        event.insert("systemPrompt".into(), system_prompt.into());
        if self.extensions.has_handlers("before_agent_start") {
            event.insert("systemPromptOptions".into(), json!(options));
        }
        let asked = self.extensions.emit("before_agent_start", event, cancel);
        let mut emission = asked.await;
        if let Some(hooks) = &self.beside.hooks {
            let event = json!(emission.event);
            let changed = hooks.change("before_agent_start", event, cancel).await;
            if let Some(mut changed) = changed {
                if let Some(Value::Array(said)) = changed.remove("messages") {
                    // Of none that is loaded.
                    let said = said.into_iter().map(|it| ("message", ExtensionId::MAX, it));
                    emission.collected.extend(said);
                }
                emission.event = changed;
            }
        }
        emission
    }

    /// Queues the message in the session in which it was said. Gives whether it was queued.
    fn queue_here(
        &self,
        delivery: Delivery,
        message: &Arc<AgentMessage>,
        here: &CancellationToken,
        when: QueueIf,
    ) -> Result<bool, PromptError> {
        let mut state = self.state.lock();
        if here.is_cancelled() {
            return Err(PromptError::Aborted);
        }
        let is_starting = when == QueueIf::BusyOrStarting && state.starting > 0;
        let queued = state.run.is_some() || is_starting || when == QueueIf::Always;
        if queued {
            state.queues.push(delivery, message.clone());
            state.owed |= is_starting && state.run.is_none();
        }
        Ok(queued)
    }

    /// Queues a message of an extension for the run that is about to begin, and gives it back
    /// if none is.
    pub(super) fn queue_if_starting(
        &self,
        delivery: Delivery,
        message: Arc<AgentMessage>,
    ) -> Result<(), Arc<AgentMessage>> {
        let mut state = self.state.lock();
        if state.starting == 0 || state.run.is_some() || state.replacing {
            return Err(message);
        }
        state.queues.push(delivery, message);
        // The prompt may still come to nothing.
        state.owed = true;
        Ok(())
    }

    /// A run is about to begin until this is dropped.
    fn mark_starting(&self) -> impl Drop + use<'_> {
        struct Starting<'a>(&'a AgentSession);
        impl Drop for Starting<'_> {
            fn drop(&mut self) {
                self.0.state.lock().starting -= 1;
            }
        }
        self.state.lock().starting += 1;
        Starting(self)
    }

    /// Returns when what handlers have said about a user's prompt has reached the agent. A
    /// prompt of an extension does not wait: what it waited for may wait for it.
    async fn wait_said_by_handlers(
        &self,
        request: &PromptRequest,
        here: &CancellationToken,
    ) -> Result<(), PromptError> {
        if request.source == Source::Extension || !self.pending_prompts.is_waiting() {
            return Ok(());
        }
        tokio::select! {
            () = self.pending_prompts.settle(SAID_BY_HANDLERS) => Ok(()),
            () = here.cancelled() => Err(PromptError::Aborted),
        }
    }

    /// Queues the message if a run is there to see it, and gives it back if not.
    pub(super) fn queue_if_busy(
        &self,
        delivery: Delivery,
        message: Arc<AgentMessage>,
    ) -> Result<(), Arc<AgentMessage>> {
        let mut state = self.state.lock();
        if state.run.is_none() {
            return Err(message);
        }
        state.queues.push(delivery, message);
        Ok(())
    }

    /// The same, for what the run does not go on for. Handlers of its end come too late.
    pub(super) fn queue_quietly_if_busy(
        &self,
        message: Arc<AgentMessage>,
    ) -> Result<(), Arc<AgentMessage>> {
        let mut state = self.state.lock();
        if state.run.is_none() || state.ending.is_some() {
            return Err(message);
        }
        state.queues.push_silent(Delivery::Steer, message);
        Ok(())
    }

    /// Asks handlers outside any run; an abort ends the wait.
    pub(super) async fn emit(
        &self,
        name: &'static str,
        event: serde_json::Map<String, serde_json::Value>,
    ) -> Emission {
        let cancel = self.waiting.lock().clone();
        self.extensions.emit(name, event, &cancel).await
    }
}

/// As content of a message, which is what extensions make of them.
fn blocks(images: &[ImageContent]) -> Value {
    let images = images.iter().cloned().map(ContentBlock::image);
    json!(images.collect::<Vec<_>>())
}
