//! The path of a prompt from a mode to the agent: commands of extensions, `input` handlers, queues
//! and `before_agent_start`.

pub(crate) mod content;
pub(crate) mod extension_messages;
mod images;
pub(crate) mod intake;
pub(crate) mod options;
pub(crate) mod queue;
pub(crate) mod resources;
mod system_messages;
pub(crate) mod tickets;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use crate::prompt::options::PromptOptions;
use crate::prompt::queue::QueueIf;
use crate::prompt::tickets::Ticket;
use crate::run::{NewRun, json_object};
use pi_agent::AgentMessage;
use pi_agent::queue::Delivery;
use pi_ai::json::errors::describe;
use pi_ai::message::{ContentBlock, ImageContent};
use pi_extensions::Emission;
use pi_session::SessionError;
use pi_session::message::CustomMessage;

/// The sender of a prompt, for the `input` event.
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

/// Treatment of a prompt that arrives during a run.
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
    /// Whether `/name` runs a command, or stands for a template or a skill.
    pub commands: bool,
}

/// Confirms that a prompt was accepted. The run begins when this is dropped, so that a response can
/// be sent before the first event.
#[must_use]
pub struct Accepted {
    pub disposition: Disposition,
    _gate: Option<oneshot::Sender<()>>,
}

/// The result of an accepted prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Disposition {
    /// The prompt begins a run.
    Started,
    /// The prompt waits for the active run, or for the next one.
    Queued,
    /// A command or an `input` handler of an extension handled the prompt.
    Handled,
}

impl Accepted {
    /// A result without a run to hold back.
    pub(crate) fn queued() -> Self {
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

    pub(crate) fn gate() -> (Self, oneshot::Receiver<()>) {
        let (gate, go) = oneshot::channel();
        let started = Self {
            disposition: Disposition::Started,
            _gate: Some(gate),
        };
        (started, go)
    }
}

/// The reason why a prompt was not accepted.
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

/// How long a prompt waits for prompts that its own handlers sent.
const HANDLER_PROMPTS_TIMEOUT: Duration = Duration::from_secs(1);

impl AgentSession {
    /// Returns when the prompt was accepted, queued, or handled by an extension. Everything later
    /// is reported by events.
    pub(crate) async fn prompt(&self, request: PromptRequest) -> Result<Accepted, PromptError> {
        self.prompt_in(request, None).await
    }

    /// Takes a prompt for the session that `switch_cancel` was taken from. Without it the prompt
    /// is for the current session, after a switch in progress.
    pub(crate) async fn prompt_in(
        &self,
        request: PromptRequest,
        switch_cancel: Option<CancellationToken>,
    ) -> Result<Accepted, PromptError> {
        let _in_progress = self.intake.begin();
        // A prompt of an extension may be sent by a handler of the prompt before it, so it does not
        // wait for that one.
        let mut ticket = (request.source != Source::Extension).then(|| self.intake.order.take());
        let cancel = self.handler_cancel.token();
        // A prompt that arrives while the session is being replaced is for the new session.
        tokio::select! {
            biased;
            _ = self.switcher.lock.lock() => {}
            () = cancel.cancelled() => return Err(PromptError::Aborted),
        }
        let switch_cancel = switch_cancel.unwrap_or_else(|| self.switcher.cancel.token());
        if cancel.is_cancelled() || switch_cancel.is_cancelled() {
            return Err(PromptError::Aborted);
        }
        if request.commands
            && let Some((name, args)) = self.find_command(&request.text)
        {
            // Later prompts do not wait for the command.
            ticket = None;
            // The command may replace the session, so the switch lock is not held.
            let command = self.extensions.run_command(&name, &args);
            let ran = tokio::select! {
                ran = command => ran.is_some(),
                () = cancel.cancelled() => return Err(PromptError::Aborted),
            };
            if ran {
                // The response says that the command is done, so its messages are emitted before
                // it.
                self.ui.wait_outbox().await;
                return Ok(Accepted::handled());
            }
        }
        let preparing = self.mark_preparing();
        let accepted = self.prompt_agent(request, &switch_cancel, ticket).await;
        drop(preparing);
        match accepted {
            // The run takes the queued messages, and after an abort they stay queued.
            Ok(Accepted {
                disposition: Disposition::Started | Disposition::Queued,
                ..
            })
            | Err(PromptError::Aborted) => {}
            _ => self.start_pending_run().await,
        }
        accepted
    }

    /// Takes a prompt that is not a command of an extension.
    async fn prompt_agent(
        &self,
        request: PromptRequest,
        switch_cancel: &CancellationToken,
        ticket: Option<Ticket>,
    ) -> Result<Accepted, PromptError> {
        let Some((text, images)) = self.emit_input(&request, switch_cancel).await? else {
            return Ok(Accepted::handled());
        };
        // Prompts that the handlers sent reach the agent before this one.
        self.wait_handler_prompts(&request, switch_cancel).await?;
        let text = match request.commands {
            true => self.expand(text).await,
            false => text,
        };
        let message = Arc::new(AgentMessage::User(self.user_message(&text, &images).await));
        if let Some(ticket) = &ticket {
            tokio::select! {
                () = ticket.wait() => {}
                () = switch_cancel.cancelled() => return Err(PromptError::Aborted),
            }
        }
        self.wait_for_compaction(switch_cancel).await?;
        // A prompt of an extension does not overtake the user's prompt that is about to begin a
        // run.
        let joins = request.source == Source::Extension && self.state.lock().prompts.starting > 0;
        if joins || self.is_busy() {
            let Behavior::Queue(delivery) = request.while_busy else {
                return Err(PromptError::Busy);
            };
            let when = match joins {
                true => QueueIf::BusyOrStarting,
                false => QueueIf::Busy,
            };
            // Otherwise the run has ended just now.
            if self
                .state
                .lock()
                .queue_if(delivery, &message, switch_cancel, when)?
            {
                self.queue_changed().await;
                return Ok(Accepted::queued());
            }
        }
        if self.is_shutting_down() {
            return Ok(Accepted::handled());
        }
        self.acquire_session_lock(switch_cancel).await?;
        self.store_deferred_user_commands().await;
        self.check_model().await?;
        if switch_cancel.is_cancelled() {
            return Err(PromptError::Aborted);
        }
        self.compact_before_prompt().await;
        let mut prompts = vec![message.clone()];
        let (base, options) = {
            let prompt = &self.state.lock().system_prompt;
            (prompt.text.clone(), prompt.options.clone())
        };
        let _starting = self.mark_starting();
        let started = self
            .before_agent_start(&text, &images, &base, &options, switch_cancel)
            .await;
        if started.aborted {
            return Err(PromptError::Aborted);
        }
        if self.is_shutting_down() {
            return Ok(Accepted::handled());
        }
        self.wait_handler_prompts(&request, switch_cancel).await?;
        self.wait_emit_first().await;
        let system_prompt = self.changed_prompt(&started, &base, &options).await;
        for (_, extension, message) in started.collected {
            match serde_json::from_value::<CustomMessage>(message) {
                Ok(message) => prompts.push(Arc::new(self.custom_message(message))),
                Err(error) => {
                    let error = format!("the message cannot be used: {}", describe(error));
                    let path = self.extensions.path_of(extension);
                    self.report(&path, "before_agent_start", error).await;
                }
            }
        }
        let new = NewRun {
            prompts,
            system_prompt,
            prompted: true,
            cancel: Some(switch_cancel.clone()),
        };
        let begun = loop {
            self.wait_for_compaction(switch_cancel).await?;
            match self.start_run(new.clone()) {
                Err(PromptError::Busy) if self.summary_lock.is_held() => {}
                begun => break begun,
            }
        };
        match (begun, request.while_busy) {
            // Another prompt has begun a run meanwhile.
            (Err(PromptError::Busy), Behavior::Queue(delivery)) => {
                self.state
                    .lock()
                    .queue_if(delivery, &message, switch_cancel, QueueIf::Always)?;
                self.queue_changed().await;
                Ok(Accepted::queued())
            }
            (begun, _) => begun,
        }
    }

    /// Waits for the end of a compaction or branch summary.
    pub(crate) async fn wait_for_compaction(
        &self,
        cancel: &CancellationToken,
    ) -> Result<(), PromptError> {
        tokio::select! {
            // One abort cancels the compaction and everything that waits for it.
            biased;
            () = cancel.cancelled() => Err(PromptError::Aborted),
            () = self.summary_lock.wait_free() => Ok(()),
        }
    }

    /// Queues a message without asking `input` handlers. While no run is active it waits for the
    /// next one.
    pub(crate) async fn queue(
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

    /// Returns whether the text calls a command of an extension.
    pub(crate) fn is_command(&self, text: &str) -> bool {
        self.find_command(text).is_some()
    }

    /// Returns the name and arguments if the text calls a command of an extension.
    fn find_command(&self, text: &str) -> Option<(String, String)> {
        let line = text.strip_prefix('/')?;
        let (name, args) = line.split_once(' ').unwrap_or((line, ""));
        let known = self.extensions.commands();
        known
            .iter()
            .any(|(command, _)| command.name == name)
            .then(|| (name.to_string(), args.to_string()))
    }

    /// Emits `input`. Returns the text and images as the handlers changed them; `None` if a handler
    /// handled the prompt itself.
    async fn emit_input(
        &self,
        request: &PromptRequest,
        cancel: &CancellationToken,
    ) -> Result<Option<(String, Vec<ImageContent>)>, PromptError> {
        let received = (request.text.clone(), request.images.clone());
        if !self.extensions.has_handlers("input") {
            return Ok(Some(received));
        }
        let mut event = json_object(json!({
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
        let mut emission = self.extensions.deliver("input", || event, cancel).await;
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
            .map_or(received.0, str::to_string);
        let images = emission.event.remove("images");
        // Images in a wrong format are ignored.
        let images = images.and_then(|images| serde_json::from_value(images).ok());
        let images = images.unwrap_or(received.1);
        Ok(Some((text, images)))
    }

    /// Returns the system prompt after `before_agent_start` handlers; `None` if they did not change
    /// it. `base` and `received` are the prompt and the options that the handlers received.
    ///
    /// Handlers choose tools in two ways: they edit `selectedTools`, or they call
    /// `pi.setActiveTools` or `pi.registerTool`. An edit wins. Without one the tools that are
    /// active now stay, which may differ from those in `received`.
    async fn changed_prompt(
        &self,
        started: &Emission,
        base: &str,
        received: &PromptOptions,
    ) -> Option<String> {
        let text = started.event.get("systemPrompt").and_then(Value::as_str);
        if let Some(text) = text.filter(|text| !text.is_empty() && *text != base) {
            return Some(text.to_string());
        }
        let options = started.event.get("systemPromptOptions")?;
        let read = serde_json::from_value::<PromptOptions>(options.clone());
        let read = read.map_err(|error| error.to_string());
        match read.and_then(|options| options.problem().map_or(Ok(options), Err)) {
            Ok(options) if options == *received => None,
            Ok(mut options) => {
                if options.selected_tools != received.selected_tools {
                    self.tools.activate(options.selected_tools.clone());
                }
                options.take_tools(&self.state.lock().system_prompt.options);
                let prompt = options.render(&self.config.paths.home);
                self.state.lock().system_prompt.run_options = Some(options);
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
        let mut event = json_object(json!({ "messageType": "user", "prompt": text }));
        if !images.is_empty() {
            event.insert("images".into(), blocks(images));
        }
        event.insert("systemPrompt".into(), system_prompt.into());
        if self.extensions.has_handlers("before_agent_start") {
            event.insert("systemPromptOptions".into(), json!(options));
        }
        self.extensions
            .deliver("before_agent_start", || event, cancel)
            .await
    }

    /// Marks that a run is about to begin, until the result is dropped.
    fn mark_starting(&self) -> impl Drop + use<'_> {
        struct Starting<'a>(&'a AgentSession);
        impl Drop for Starting<'_> {
            fn drop(&mut self) {
                self.0.state.lock().prompts.starting -= 1;
            }
        }
        self.state.lock().prompts.starting += 1;
        Starting(self)
    }

    /// Returns when prompts that handlers of a user's prompt sent have reached the agent. A prompt
    /// of an extension does not wait, because its sender may wait for it.
    async fn wait_handler_prompts(
        &self,
        request: &PromptRequest,
        switch_cancel: &CancellationToken,
    ) -> Result<(), PromptError> {
        if request.source == Source::Extension || !self.intake.from_extensions.is_waiting() {
            return Ok(());
        }
        tokio::select! {
            () = self.intake.from_extensions.drain(HANDLER_PROMPTS_TIMEOUT) => Ok(()),
            () = switch_cancel.cancelled() => Err(PromptError::Aborted),
        }
    }

    /// Emits an event to handlers outside of any run; an abort ends the wait.
    pub(crate) async fn emit_to_handlers(
        &self,
        name: &'static str,
        event: serde_json::Map<String, serde_json::Value>,
    ) -> Emission {
        let cancel = self.handler_cancel.token();
        self.extensions.deliver(name, || event, &cancel).await
    }
}

/// Returns the images as content blocks, the format that extensions use.
fn blocks(images: &[ImageContent]) -> Value {
    let images = images.iter().cloned().map(ContentBlock::image);
    json!(images.collect::<Vec<_>>())
}
