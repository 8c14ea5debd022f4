//! A session beside this one, for an extension: the same settings as they are now, the
//! same models and keys, nobody to ask; extensions if it wants some (second_set).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::AgentSession;
use super::config::{AppConfig, ModelChoice, ResourceFlags, SessionTarget, ToolChoice};
use super::forks::ForkPosition;
use super::models::Chosen;
use super::prompt::{Behavior, PromptError, PromptRequest, Source};
use super::refusal::{ErrorCode, Refusal};
use super::session::EventSink;
use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::agent::queue::{Delivery, QueueMode};
use crate::ai::message::ImageContent;
use crate::ai::model::{Model, ThinkingLevel};
use crate::ai::registry::ModelRegistry;
use crate::ai::select::ScopedModel;
use crate::extensions::api::session_api::{
    ActionError, ActionResult, NavigateOptions, SendOptions, SessionApi,
};
use crate::extensions::child::{
    ChildConfig, ChildEvent, ChildExtensions, ChildHooks, ChildResources, ChildSession,
};
use crate::extensions::parse_drafts;
use crate::resources::prompts::system_prompt_files::PromptFlags;
use crate::resources::settings::Settings;
use crate::session::message::CustomMessage;
use crate::session::{Session, Warning};
use crate::tools::operations::Commands;
use crate::tools::tool::Tool;

/// What a session beside another does not find out itself.
#[derive(Default)]
pub(super) struct Beside {
    pub is_second: bool,
    pub tools: Vec<Arc<dyn Tool>>,
    pub hooks: Option<Arc<ChildHooks>>,
    pub texts: ChildResources,
    pub model: Option<Arc<Model>>,
    /// Those that were loaded for it.
    pub extensions: Option<ChildExtensions>,
}

/// What it is begun with.
pub(super) struct Begin {
    pub session: Session,
    pub warnings: Vec<Warning>,
    pub settings: Arc<Settings>,
    pub models: Arc<ModelRegistry>,
    pub beside: Beside,
}

/// For listeners of a turn: longer is waited only by who is busy with something else.
const HEARING: Duration = Duration::from_secs(2);

struct ToExtension(mpsc::Sender<ChildEvent>);

#[async_trait]
impl EventSink for ToExtension {
    async fn send(&self, event: Arc<Event>) {
        // JavaScript tells listeners of these itself, before the call that sets or adds returns.
        let is_told_there = matches!(
            *event,
            Event::SessionInfoChanged { .. }
                | Event::ThinkingLevelChanged { .. }
                | Event::EntryAppended { .. }
        );
        if !is_told_there && !matches!(*event, Event::ExtensionUiRequest(_)) {
            let ends_turn = matches!(*event, Event::TurnEnd { .. });
            // It may have been disposed.
            let _ = self.0.send(ChildEvent::Event(event)).await;
            if ends_turn {
                // Here the queues are looked at, and listeners may want to put
                // something in because of what they hear.
                let (heard, hearing) = oneshot::channel();
                let _ = self.0.send(ChildEvent::Flush(heard)).await;
                let _ = tokio::time::timeout(HEARING, hearing).await;
            }
        }
    }
}

impl AgentSession {
    pub(super) async fn begin_second(
        &self,
        begin: ChildConfig,
    ) -> ActionResult<Arc<dyn ChildSession>> {
        let begins_alone = begin.models.is_none();
        let ChildConfig {
            options,
            models,
            set,
            session,
            tools,
            hooks,
            events: news,
        } = begin;
        let wrong = |error: &dyn std::fmt::Display| ActionError::new(error.to_string());
        let cwd = std::path::absolute(&options.cwd).map_err(|error| wrong(&error))?;
        let ours = &self.config.paths.agent_dir;
        let agent_dir = options.agent_dir.unwrap_or_else(|| ours.clone());
        let is_ours = agent_dir == *ours;
        let models = match models {
            Some(given) => given,
            None if is_ours && set.is_none() => self.models.clone(),
            None => Arc::new(ModelRegistry::load(&agent_dir)),
        };
        if let Some(set) = &set {
            models.join(set.models.clone());
            // Where its own extensions have nothing to say, those here do.
            if is_ours && begins_alone {
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
        // What is set in it is not stored: it is not the user who sets it.
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
            // When they are loaded again.
            extensions,
            discover_extensions: false,
            resources: ResourceFlags::default(),
            flags: options.flags,
            is_own_option: |_| false,
            console: self.config.console.clone(),
            fetch_packages: false,
            progress: self.config.progress.clone(),
        };
        let begin = Begin {
            session,
            warnings: Vec::new(),
            settings,
            models,
            beside: Beside {
                is_second: true,
                tools,
                hooks: Some(hooks),
                texts: options.texts,
                model: options.model.map(Arc::new),
                extensions: set,
            },
        };
        let second = AgentSession::assemble(config, Arc::new(ToExtension(news)), begin);
        second.load().await.map_err(|error| wrong(&error))?;
        Ok(second)
    }
}

fn given<T: DeserializeOwned>(args: &Value, member: &str) -> ActionResult<T> {
    let value = args.get(member).cloned().unwrap_or_default();
    serde_json::from_value(value)
        .map_err(|error| ActionError::new(format!("{member} cannot be used: {error}")))
}

fn shown(value: impl Serialize) -> ActionResult<Value> {
    serde_json::to_value(value).map_err(|error| ActionError::new(error.to_string()))
}

fn done<T>(result: Result<T, impl ToString>) -> ActionResult<T> {
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

/// A model that may be cycled to.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scoped {
    model: Model,
    thinking_level: Option<ThinkingLevel>,
}

impl AgentSession {
    /// Those from the first on that is another than when this was asked last.
    fn new_messages(&self) -> ActionResult<Value> {
        let messages = self.messages();
        let mut told = self.told_messages.lock();
        let pairs = told.iter().zip(&messages);
        let same = pairs.take_while(|(told, now)| Arc::ptr_eq(told, now));
        let same = same.count();
        *told = messages;
        shown(json!({ "same": same, "messages": &told[same..] }))
    }

    /// A model that is known, or is all there. One that lacks members is meant by its name.
    async fn use_given_model(&self, model: &Value) -> Result<(), Refusal> {
        match Model::deserialize(model) {
            Ok(given) if self.models.has_auth(&given.provider) => {
                self.use_model(Arc::new(given), None, Chosen::Set).await
            }
            Ok(given) if self.models.find(&given.provider, &given.id).is_some() => {
                let text = format!("No API key for {}", given.reference());
                Err(Refusal::new(ErrorCode::ModelNotFound, text))
            }
            _ => {
                let named = |member: &str| model[member].as_str().unwrap_or_default();
                let set = self.set_model(named("provider"), named("id")).await;
                set.map(drop)
            }
        }
    }
}

fn unknown(what: &str) -> ActionError {
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
                let behavior: Option<String> = given(args, "streamingBehavior")?;
                let queue = behavior.as_deref().map(delivery).transpose()?;
                let expand: Option<bool> = given(args, "expand")?;
                let images: Option<Vec<ImageContent>> = given(args, "images")?;
                let waits = !self.is_busy();
                let accepted = self.prompt(PromptRequest {
                    text: given(args, "text")?,
                    images: images.unwrap_or_default(),
                    source: Source::Extension,
                    while_busy: queue.map_or(Behavior::Refuse, Behavior::Queue),
                    commands: expand.unwrap_or(true),
                });
                match accepted.await {
                    // Whoever aborts it knows.
                    Ok(_) | Err(PromptError::Aborted) => {}
                    Err(error) => return Err(ActionError::new(error.to_string())),
                }
                if waits {
                    self.wait_idle().await;
                }
                nothing
            }
            "queue" => {
                let name: String = given(args, "delivery")?;
                let images: Option<Vec<ImageContent>> = given(args, "images")?;
                let queued = self.queue(
                    delivery(&name)?,
                    given(args, "text")?,
                    images.unwrap_or_default(),
                );
                done(queued.await)?;
                nothing
            }
            "sendMessage" => {
                let message: CustomMessage = given(args, "message")?;
                let options: Option<SendOptions> = given(args, "options")?;
                let options = options.unwrap_or_default();
                let waits = options.trigger_turn == Some(true) && !self.is_busy();
                SessionApi::send_message(self, message, options)?;
                self.wait_announced().await;
                if waits {
                    self.wait_idle().await;
                }
                nothing
            }
            // Extensions hear that it is there.
            "greet" => {
                let reason: Option<String> = given(args, "reason")?;
                let previous: Option<String> = given(args, "previousSessionFile")?;
                for error in self.extensions.take_early_errors() {
                    self.tell(error.into()).await;
                }
                self.greet(reason.as_deref().unwrap_or("startup"), previous)
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
                done(self.use_given_model(&args["model"]).await)?;
                nothing
            }
            "cycleModel" => {
                let direction: Option<String> = given(args, "direction")?;
                let backward = direction.as_deref() == Some("backward");
                shown(done(self.cycle_model(backward).await)?)
            }
            "compact" => {
                let focus: Option<String> = given(args, "customInstructions")?;
                shown(done(self.compact(focus.as_deref()).await)?)
            }
            "bash" => {
                let command: String = given(args, "command")?;
                let excluded: Option<bool> = given(args, "excludeFromContext")?;
                shown(done(self.bash(&command, excluded.unwrap_or(false)).await)?)
            }
            "clearQueue" => {
                let (steering, follow_up) = self.clear_queue().await;
                Ok(json!({ "steering": steering, "followUp": follow_up }))
            }
            "exportHtml" => {
                let path: Option<std::path::PathBuf> = given(args, "path")?;
                shown(done(self.export_html(path.as_deref()).await)?)
            }
            "navigateTree" => {
                let target: String = given(args, "targetId")?;
                let options: Option<NavigateOptions> = given(args, "options")?;
                shown(done(
                    self.navigate(&target, options.unwrap_or_default()).await,
                )?)
            }
            "fork" => {
                let entry: String = given(args, "entryId")?;
                let forked = done(self.fork(&entry, ForkPosition::Before).await)?;
                Ok(
                    json!({ "cancelled": forked.is_none(), "text": forked.and_then(|one| one.text) }),
                )
            }
            "newSession" => {
                let parent: Option<String> = given(args, "parentSession")?;
                let entered = done(self.new_session(parent.map(Into::into)).await)?;
                Ok(json!({ "cancelled": !entered }))
            }
            "switchSession" => {
                let path: String = given(args, "path")?;
                let entered = done(self.switch_session(Path::new(&path), None).await)?;
                Ok(json!({ "cancelled": !entered }))
            }
            "reload" => {
                done(self.reload().await)?;
                nothing
            }
            other => Err(unknown(other)),
        }
    }

    fn query(&self, question: &str, args: &Value) -> ActionResult<Value> {
        let nothing = Ok(Value::Null);
        match question {
            "state" => shown(self.state()),
            "hasHandlers" => {
                let event: String = given(args, "event")?;
                Ok(json!(self.extensions.has_handlers(&event)))
            }
            "messages" => self.new_messages(),
            "stats" => shown(self.stats()),
            "contextUsage" => shown(self.usage()),
            "systemPrompt" => Ok(json!(self.system_prompt_text())),
            "activeTools" => Ok(json!(SessionApi::active_tools(self))),
            "setActiveTools" => {
                self.activate_tools(given(args, "names")?);
                nothing
            }
            "allTools" => Ok(self.describe_tools()),
            "queues" => {
                let (steering, follow_up) = self.state.lock().queues.texts();
                Ok(json!({ "steering": steering, "followUp": follow_up }))
            }
            "thinkingLevels" => shown(self.model().map(|model| model.thinking_levels())),
            "setThinkingLevel" => {
                let level: ThinkingLevel = given(args, "level")?;
                AgentSession::set_thinking_level(self, level);
                nothing
            }
            "cycleThinkingLevel" => shown(self.cycle_thinking_level()),
            "setQueueMode" => {
                let name: String = given(args, "delivery")?;
                let mode: QueueMode = given(args, "mode")?;
                self.set_queue_mode(delivery(&name)?, mode);
                nothing
            }
            "setAutoRetry" => {
                self.set_auto_retry(given(args, "enabled")?);
                nothing
            }
            "setAutoCompaction" => {
                self.set_auto_compaction(given(args, "enabled")?);
                nothing
            }
            "setName" => {
                let name: String = given(args, "name")?;
                done(AgentSession::set_session_name(self, &name))?;
                nothing
            }
            "appendEntry" => {
                let custom_type: String = given(args, "customType")?;
                let data = args.get("data").cloned();
                shown(SessionApi::append_entry(self, &custom_type, data)?)
            }
            "appendMessage" => {
                let message: CustomMessage = given(args, "message")?;
                shown(SessionApi::append_message(self, message)?)
            }
            "appendName" => {
                let name: String = given(args, "name")?;
                shown(SessionApi::set_session_name(self, &name)?)
            }
            "setLabel" => {
                let entry: String = given(args, "entryId")?;
                let label: Option<String> = given(args, "label")?;
                shown(SessionApi::set_label(self, &entry, label.as_deref())?)
            }
            "checkDrafts" => done(parse_drafts(given(args, "entries")?, self)).map(|_| Value::Null),
            "previewDrafts" => {
                let drafts = done(parse_drafts(given(args, "entries")?, self))?;
                Ok(self.preview_of(&drafts))
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
                let models: Vec<Scoped> = given(args, "models")?;
                let scoped = |one: Scoped| ScopedModel {
                    model: Arc::new(one.model),
                    thinking: one.thinking_level,
                };
                self.state.lock().scope = models.into_iter().map(scoped).collect();
                nothing
            }
            // As it is, and whether or not there is a run that takes it.
            "queueMessage" => {
                let name: String = given(args, "delivery")?;
                let images: Vec<ImageContent> = given(args, "images")?;
                let message = self.user_message_now(&given::<String>(args, "text")?, &images);
                let message = Arc::new(AgentMessage::User(message));
                self.state.lock().queues.push(delivery(&name)?, message);
                let session = self.arc();
                self.handle
                    .spawn(async move { session.queue_changed().await });
                nothing
            }
            "setMessages" => {
                let messages: Vec<AgentMessage> = given(args, "messages")?;
                self.state.lock().context = messages.into_iter().map(Arc::new).collect();
                nothing
            }
            // Instead of the first ones, which are all that was known where they come from.
            "changeMessages" => {
                let messages: Vec<AgentMessage> = given(args, "messages")?;
                let known: usize = given(args, "known")?;
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
                let command: String = given(args, "command")?;
                let excluded: Option<bool> = given(args, "excludeFromContext")?;
                self.record_result(&command, &given(args, "result")?, excluded.unwrap_or(false));
                nothing
            }
            "atWork" => {
                let state = self.state.lock();
                Ok(json!({
                    "autoRetry": state.retry.enabled,
                    "pendingBash": !state.deferred_bash.is_empty(),
                }))
            }
            other => Err(unknown(other)),
        }
    }

    async fn bash(
        &self,
        command: &str,
        exclude_from_context: bool,
        by: Arc<dyn Commands>,
    ) -> ActionResult<Value> {
        shown(done(self.bash_by(command, exclude_from_context, by).await)?)
    }

    fn entries_since(&self, id: &str, since: usize) -> String {
        SessionApi::session_since(self, id, since)
    }

    fn context(&self) -> String {
        SessionApi::session_context(self)
    }

    async fn close(&self) {
        self.shutdown(0).await;
        if let Some(set) = &self.beside.extensions {
            self.models.part_from(&set.models);
        }
    }
}
