//! Child sessions: they share the models and keys of the session of the user, have no user
//! interface, and have extensions only if the caller asks for them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::AgentSession;
use crate::error::{CommandError, ErrorCode};
use crate::models::ModelChangeSource;
use crate::prompt::{Behavior, PromptError, PromptRequest, Source};
use crate::session::EventSink;
use crate::startup::config::{AppConfig, ModelChoice, ResourceFlags, SessionTarget, ToolChoice};
use crate::switch::fork::ForkPosition;
use pi_agent::AgentMessage;
use pi_agent::event::Event;
use pi_agent::queue::{Delivery, QueueMode};
use pi_ai::message::ImageContent;
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::models::registry::ModelRegistry;
use pi_ai::models::selection::ScopedModel;
use pi_extensions::api::session_api::{
    ActionError, ActionResult, NavigateOptions, SendOptions, SessionApi,
};
use pi_extensions::child::{
    ChildConfig, ChildEvent, ChildExtensions, ChildHooks, ChildResources, ChildSession,
};
use pi_extensions::parse_drafts;
use pi_resources::prompts::system_prompt_files::PromptFlags;
use pi_resources::settings::Settings;
use pi_session::message::CustomMessage;
use pi_session::{Session, Warning};
use pi_tools::remote::RemoteCommands;
use pi_tools::tool::Tool;

/// Data that only a child session has.
#[derive(Default)]
pub(crate) struct ChildLink {
    pub is_child: bool,
    pub tools: Vec<Arc<dyn Tool>>,
    pub hooks: Option<Arc<ChildHooks>>,
    pub texts: ChildResources,
    pub model: Option<Arc<Model>>,
    /// Extensions that were loaded for the child session.
    pub extensions: Option<ChildExtensions>,
}

/// The parts that a session is assembled from.
pub(crate) struct SessionParts {
    pub session: Session,
    pub warnings: Vec<Warning>,
    pub settings: Arc<Settings>,
    pub models: Arc<ModelRegistry>,
    pub child_link: ChildLink,
}

/// How long listeners of `turn_end` may take before the run continues.
const TURN_END_TIMEOUT: Duration = Duration::from_secs(2);

struct ExtensionSink(mpsc::Sender<ChildEvent>);

#[async_trait]
impl EventSink for ExtensionSink {
    async fn send(&self, event: Arc<Event>) {
        // The JavaScript side delivers these to listeners itself, before the call that causes them
        // returns.
        let is_delivered_in_js = matches!(
            *event,
            Event::SessionInfoChanged { .. }
                | Event::ThinkingLevelChanged { .. }
                | Event::EntryAppended { .. }
        );
        if !is_delivered_in_js && !matches!(*event, Event::ExtensionUiRequest(_)) {
            let ends_turn = matches!(*event, Event::TurnEnd { .. });
            // An error means that the child session was disposed.
            let _ = self.0.send(ChildEvent::Event(event)).await;
            if ends_turn {
                // Listeners may queue messages because of the event, so the run waits before it
                // takes from the queues.
                let (handled, wait_handled) = oneshot::channel();
                let _ = self.0.send(ChildEvent::Flush(handled)).await;
                let _ = tokio::time::timeout(TURN_END_TIMEOUT, wait_handled).await;
            }
        }
    }
}

impl AgentSession {
    pub(crate) async fn open_child_session(
        &self,
        begin: ChildConfig,
    ) -> ActionResult<Arc<dyn ChildSession>> {
        let shares_models = begin.models.is_none();
        let ChildConfig {
            options,
            models,
            set,
            session,
            tools,
            hooks,
            events,
        } = begin;
        let wrong = |error: &dyn std::fmt::Display| ActionError::new(error.to_string());
        let cwd = std::path::absolute(&options.cwd).map_err(|error| wrong(&error))?;
        let ours = &self.config.paths.agent_dir;
        let agent_dir = options.agent_dir.unwrap_or_else(|| ours.clone());
        let is_ours = agent_dir == *ours;
        let models = match models {
            Some(arg) => arg,
            None if is_ours && set.is_none() => self.models.clone(),
            None => Arc::new(ModelRegistry::load(&agent_dir)),
        };
        if let Some(set) = &set {
            models.join(set.models.clone());
            // The child's own extensions take precedence over the keys and models of the session of
            // the user.
            if is_ours && shares_models {
                models.auth().adopt_runtime_keys(self.models.auth());
                models.join(self.models.clone());
            }
        }
        let extensions = set.iter().flat_map(|set| &set.files);
        let extensions = extensions.map(|file| file.to_string_lossy().into_owned());
        let extensions = extensions.collect();
        let paths = self.config.paths.with_cwd(&cwd);
        let paths = paths.for_extension(agent_dir, options.project_trusted);
        let session = match session {
            Some(session) => session.into_session().map_err(|error| wrong(&error))?,
            None => Session::in_memory(&cwd),
        };
        // Changes of settings in the child are not stored, because the user did not make them.
        let settings = options.settings;
        let settings = settings.unwrap_or_else(|| Settings::load(&paths).merged());
        let settings = Settings::in_memory(settings);
        let config = AppConfig {
            paths,
            mode: "print",
            has_ui: false,
            session: SessionTarget::InMemory,
            session_id: None,
            session_name: None,
            continue_here: false,
            session_dir: None,
            model: ModelChoice {
                thinking: options.thinking_level,
                ..ModelChoice::default()
            },
            tools: ToolChoice {
                only: options.tools,
                no_others: options.no_others,
                except: options.exclude_tools,
                ..ToolChoice::default()
            },
            theme: None,
            prompt: PromptFlags::default(),
            no_context_files: false,
            // Used by a later reload.
            extensions,
            discover_extensions: false,
            resources: ResourceFlags::default(),
            flags: options.flags,
            is_own_option: |_| false,
            console: self.config.console.clone(),
            fetch_packages: false,
            progress: self.config.progress.clone(),
        };
        let begin = SessionParts {
            session,
            warnings: Vec::new(),
            settings,
            models,
            child_link: ChildLink {
                is_child: true,
                tools,
                hooks: Some(hooks),
                texts: options.texts,
                model: options.model.map(Arc::new),
                extensions: set,
            },
        };
        let child = AgentSession::assemble(config, Arc::new(ExtensionSink(events)), begin);
        child.load().await.map_err(|error| wrong(&error))?;
        Ok(child)
    }
}

fn arg<T: DeserializeOwned>(args: &Value, member: &str) -> ActionResult<T> {
    let value = args.get(member).cloned().unwrap_or_default();
    serde_json::from_value(value)
        .map_err(|error| ActionError::new(format!("{member} cannot be used: {error}")))
}

fn to_json(value: impl Serialize) -> ActionResult<Value> {
    serde_json::to_value(value).map_err(|error| ActionError::new(error.to_string()))
}

fn or_action_error<T>(result: Result<T, impl ToString>) -> ActionResult<T> {
    result.map_err(|error| ActionError::new(error.to_string()))
}

fn delivery(name: &str) -> ActionResult<Delivery> {
    match name {
        "steer" => Ok(Delivery::Steer),
        "followUp" => Ok(Delivery::FollowUp),
        other => Err(ActionError::new(format!(
            "There is no queue \"{other}\": use \"steer\" or \"followUp\""
        ))),
    }
}

/// A model of the cycle, with its thinking level.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scoped {
    model: Model,
    thinking_level: Option<ThinkingLevel>,
}

impl AgentSession {
    /// Returns the messages starting at the first one that differs from the previous call.
    fn changed_messages(&self) -> ActionResult<Value> {
        let messages = self.messages();
        let mut delivered = self.last_delivered_messages.lock();
        let pairs = delivered.iter().zip(&messages);
        let same = pairs.take_while(|(delivered, now)| Arc::ptr_eq(delivered, now));
        let same = same.count();
        *delivered = messages;
        to_json(json!({ "same": same, "messages": &delivered[same..] }))
    }

    /// Sets the model to a complete definition, or to a known one by provider and id.
    async fn use_given_model(&self, model: &Value) -> Result<(), CommandError> {
        match Model::deserialize(model) {
            Ok(definition) if self.models.has_auth(&definition.provider) => {
                self.use_model(Arc::new(definition), None, ModelChangeSource::Set)
                    .await
            }
            Ok(definition)
                if self
                    .models
                    .find(&definition.provider, &definition.id)
                    .is_some() =>
            {
                let text = format!("No API key for {}", definition.reference());
                Err(CommandError::new(ErrorCode::ModelNotFound, text))
            }
            _ => {
                let named = |member: &str| model[member].as_str().unwrap_or_default();
                let set = self.set_model(named("provider"), named("id")).await;
                set.map(drop)
            }
        }
    }
}

fn unsupported(what: &str) -> ActionError {
    ActionError::new(format!(
        "AgentSession.{what}() is not supported by this version of pi"
    ))
}

#[async_trait]
impl ChildSession for AgentSession {
    async fn execute(&self, action: &str, args: &Value) -> ActionResult<Value> {
        let nothing = Ok(Value::Null);
        match action {
            "prompt" => {
                let behavior: Option<String> = arg(args, "streamingBehavior")?;
                let queue = behavior.as_deref().map(delivery).transpose()?;
                let expand: Option<bool> = arg(args, "expand")?;
                let images: Option<Vec<ImageContent>> = arg(args, "images")?;
                let waits = !self.is_busy();
                let accepted = self.prompt(PromptRequest {
                    text: arg(args, "text")?,
                    images: images.unwrap_or_default(),
                    source: Source::Extension,
                    while_busy: queue.map_or(Behavior::Refuse, Behavior::Queue),
                    commands: expand.unwrap_or(true),
                });
                match accepted.await {
                    // The caller that aborted it knows.
                    Ok(_) | Err(PromptError::Aborted) => {}
                    Err(error) => return Err(ActionError::new(error.to_string())),
                }
                if waits {
                    self.wait_idle().await;
                }
                nothing
            }
            "queue" => {
                let name: String = arg(args, "delivery")?;
                let images: Option<Vec<ImageContent>> = arg(args, "images")?;
                let queued = self.queue(
                    delivery(&name)?,
                    arg(args, "text")?,
                    images.unwrap_or_default(),
                );
                or_action_error(queued.await)?;
                nothing
            }
            "sendMessage" => {
                let message: CustomMessage = arg(args, "message")?;
                let options: Option<SendOptions> = arg(args, "options")?;
                let options = options.unwrap_or_default();
                let waits = options.trigger_turn == Some(true) && !self.is_busy();
                SessionApi::send_message(self, message, options)?;
                self.wait_outbox().await;
                if waits {
                    self.wait_idle().await;
                }
                nothing
            }
            // Emits `session_start` to the extensions of the child.
            "greet" => {
                let reason: Option<String> = arg(args, "reason")?;
                let previous: Option<String> = arg(args, "previousSessionFile")?;
                for error in self.extensions.take_early_errors() {
                    self.emit_to_mode(error.into()).await;
                }
                self.emit_session_start(reason.as_deref().unwrap_or("startup"), previous)
                    .await;
                nothing
            }
            "shutDownExtensions" => {
                self.extensions.shut_down("quit", None).await;
                nothing
            }
            "abort" => {
                self.abort();
                self.wait_idle().await;
                nothing
            }
            "waitForIdle" => {
                self.wait_idle().await;
                nothing
            }
            "setModel" => {
                or_action_error(self.use_given_model(&args["model"]).await)?;
                nothing
            }
            "cycleModel" => {
                let direction: Option<String> = arg(args, "direction")?;
                let backward = direction.as_deref() == Some("backward");
                to_json(or_action_error(self.cycle_model(backward).await)?)
            }
            "compact" => {
                let focus: Option<String> = arg(args, "customInstructions")?;
                to_json(or_action_error(self.compact(focus.as_deref()).await)?)
            }
            "bash" => {
                let command: String = arg(args, "command")?;
                let excluded: Option<bool> = arg(args, "excludeFromContext")?;
                to_json(or_action_error(
                    self.bash(&command, excluded.unwrap_or(false)).await,
                )?)
            }
            "clearQueue" => {
                let (steering, follow_up) = self.clear_queue().await;
                Ok(json!({ "steering": steering, "followUp": follow_up }))
            }
            "exportHtml" => {
                let path: Option<std::path::PathBuf> = arg(args, "path")?;
                to_json(or_action_error(self.export_html(path.as_deref()).await)?)
            }
            "navigateTree" => {
                let target: String = arg(args, "targetId")?;
                let options: Option<NavigateOptions> = arg(args, "options")?;
                to_json(or_action_error(
                    self.navigate(&target, options.unwrap_or_default()).await,
                )?)
            }
            "fork" => {
                let entry: String = arg(args, "entryId")?;
                let forked = or_action_error(self.fork(&entry, ForkPosition::Before).await)?;
                Ok(
                    json!({ "cancelled": forked.is_none(), "text": forked.and_then(|one| one.text) }),
                )
            }
            "newSession" => {
                let parent: Option<String> = arg(args, "parentSession")?;
                let entered = or_action_error(self.new_session(parent.map(Into::into)).await)?;
                Ok(json!({ "cancelled": !entered }))
            }
            "switchSession" => {
                let path: String = arg(args, "path")?;
                let entered = or_action_error(self.switch_session(Path::new(&path), None).await)?;
                Ok(json!({ "cancelled": !entered }))
            }
            "reload" => {
                or_action_error(self.reload().await)?;
                nothing
            }
            other => Err(unsupported(other)),
        }
    }

    fn query(&self, question: &str, args: &Value) -> ActionResult<Value> {
        let nothing = Ok(Value::Null);
        match question {
            "state" => to_json(self.state()),
            "hasHandlers" => {
                let event: String = arg(args, "event")?;
                Ok(json!(self.extensions.has_handlers(&event)))
            }
            "messages" => self.changed_messages(),
            "stats" => to_json(self.stats()),
            "contextUsage" => to_json(self.usage()),
            "systemPrompt" => Ok(json!(self.system_prompt_text())),
            "activeTools" => Ok(json!(SessionApi::active_tools(self))),
            "setActiveTools" => {
                self.activate_tools(arg(args, "names")?);
                nothing
            }
            "allTools" => Ok(self.describe_tools()),
            "queues" => {
                let (steering, follow_up) = self.state.lock().prompts.queues.texts();
                Ok(json!({ "steering": steering, "followUp": follow_up }))
            }
            "thinkingLevels" => to_json(self.model().map(|model| model.thinking_levels())),
            "setThinkingLevel" => {
                let level: ThinkingLevel = arg(args, "level")?;
                AgentSession::set_thinking_level(self, level);
                nothing
            }
            "cycleThinkingLevel" => to_json(self.cycle_thinking_level()),
            "setQueueMode" => {
                let name: String = arg(args, "delivery")?;
                let mode: QueueMode = arg(args, "mode")?;
                self.set_queue_mode(delivery(&name)?, mode);
                nothing
            }
            "setAutoRetry" => {
                self.set_auto_retry(arg(args, "enabled")?);
                nothing
            }
            "setAutoCompaction" => {
                self.set_auto_compaction(arg(args, "enabled")?);
                nothing
            }
            "setName" => {
                let name: String = arg(args, "name")?;
                or_action_error(self.set_session_name_now(&name))?;
                nothing
            }
            "appendEntry" => {
                let custom_type: String = arg(args, "customType")?;
                let data = args.get("data").cloned();
                to_json(SessionApi::append_entry(self, &custom_type, data)?)
            }
            "appendMessage" => {
                let message: CustomMessage = arg(args, "message")?;
                to_json(SessionApi::append_message(self, message)?)
            }
            "appendName" => {
                let name: String = arg(args, "name")?;
                to_json(SessionApi::set_session_name(self, &name)?)
            }
            "setLabel" => {
                let entry: String = arg(args, "entryId")?;
                let label: Option<String> = arg(args, "label")?;
                to_json(SessionApi::set_label(self, &entry, label.as_deref())?)
            }
            "checkDrafts" => {
                or_action_error(parse_drafts(arg(args, "entries")?, self)).map(|_| Value::Null)
            }
            "previewDrafts" => {
                let drafts = or_action_error(parse_drafts(arg(args, "entries")?, self))?;
                Ok(self.preview_drafts(&drafts))
            }
            "lastAssistantText" => Ok(json!(self.last_assistant_text())),
            "forkMessages" => {
                let messages = self.fork_messages().into_iter();
                let messages = messages.map(|(id, text)| json!({ "entryId": id, "text": text }));
                Ok(messages.collect())
            }
            "abortBash" => {
                self.abort_bash();
                nothing
            }
            "abortRetry" => {
                self.abort_retry();
                nothing
            }
            "abortSummary" => {
                self.abort_summary();
                nothing
            }
            "scopedModels" => Ok(SessionApi::scoped_models(self)),
            "setScopedModels" => {
                let models: Vec<Scoped> = arg(args, "models")?;
                let scoped = |one: Scoped| ScopedModel {
                    model: Arc::new(one.model),
                    thinking: one.thinking_level,
                };
                self.state.lock().scope = models.into_iter().map(scoped).collect();
                nothing
            }
            // Queues the message without asking handlers, and whether or not a run is active.
            "queueMessage" => {
                let name: String = arg(args, "delivery")?;
                let images: Vec<ImageContent> = arg(args, "images")?;
                let message = self.user_message_now(&arg::<String>(args, "text")?, &images);
                let message = Arc::new(AgentMessage::User(message));
                self.state
                    .lock()
                    .prompts
                    .queues
                    .push(delivery(&name)?, message);
                let session = self.arc();
                self.handle
                    .spawn(async move { session.queue_changed().await });
                nothing
            }
            "setMessages" => {
                let messages: Vec<AgentMessage> = arg(args, "messages")?;
                self.state.lock().context = messages.into_iter().map(Arc::new).collect();
                nothing
            }
            // Replaces the first messages, which are all that the caller knew.
            "changeMessages" => {
                let messages: Vec<AgentMessage> = arg(args, "messages")?;
                let known: usize = arg(args, "known")?;
                let context = &mut self.state.lock().context;
                let known = known.min(context.len());
                context.splice(..known, messages.into_iter().map(Arc::new));
                nothing
            }
            "useModel" => {
                let (session, model) = (self.arc(), args["model"].clone());
                (self.handle).spawn(async move {
                    if let Err(refusal) = session.use_given_model(&model).await {
                        session
                            .report("<runtime>", "agent.state.model", refusal.to_string())
                            .await;
                    }
                });
                nothing
            }
            "recordBash" => {
                let command: String = arg(args, "command")?;
                let excluded: Option<bool> = arg(args, "excludeFromContext")?;
                self.record_bash_result(&command, &arg(args, "result")?, excluded.unwrap_or(false));
                nothing
            }
            "atWork" => {
                let state = self.state.lock();
                Ok(json!({
                    "autoRetry": state.retry.policy.enabled,
                    "pendingBash": !state.user_commands.deferred.is_empty(),
                }))
            }
            other => Err(unsupported(other)),
        }
    }

    async fn bash(
        &self,
        command: &str,
        exclude_from_context: bool,
        by: Arc<dyn RemoteCommands>,
    ) -> ActionResult<Value> {
        to_json(or_action_error(
            self.bash_with(command, exclude_from_context, by).await,
        )?)
    }

    fn entries_since(&self, id: &str, since: usize) -> String {
        SessionApi::session_since(self, id, since)
    }

    fn context(&self) -> String {
        SessionApi::session_context(self)
    }

    async fn close(&self) {
        self.shutdown(0).await;
        if let Some(set) = &self.child_link.extensions {
            self.models.leave(&set.models);
        }
    }
}
