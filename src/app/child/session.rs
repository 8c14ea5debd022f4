//! Child sessions: they share the models and keys of the session of the user, have no user
//! interface, and have extensions only if the caller asks for them.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::calls;
use crate::AgentSession;
use crate::command::SessionCommand;
use crate::session::EventSink;
use crate::startup::config::{
    AppConfig, Mode, ModelChoice, ResourceFlags, SessionTarget, ToolChoice,
};
use crate::user_commands::{UserCommandRequest, UserCommandRunner};
use pi_agent::event::Event;
use pi_ai::model::Model;
use pi_ai::models::registry::ModelRegistry;
use pi_extensions::OwnNames;
use pi_extensions::api::session_api::{ActionError, ActionResult, SessionApi};
use pi_extensions::child::{
    ChildConfig, ChildEvent, ChildExtensions, ChildHooks, ChildResources, ChildSession,
};
use pi_resources::prompts::system_prompt_files::PromptFlags;
use pi_resources::settings::Settings;
use pi_session::{Session, Warning};
use pi_tools::remote::RemoteCommands;
use pi_tools::tool::Tool;

/// Data that only a child session has.
#[derive(Default)]
pub(crate) struct ChildLink {
    pub is_child: bool,
    pub hooks: Option<Arc<ChildHooks>>,
    pub model: Option<Arc<Model>>,
    /// Extensions that were loaded for the child session.
    pub extensions: Option<ChildExtensions>,
    /// The settings of the user and of the project in which the user works, with the rules that
    /// hold for child sessions, too.
    pub user_settings: Option<Arc<Settings>>,
    /// The session of the user, whose mode asks questions.
    pub user_session: Option<Weak<AgentSession>>,
}

/// Tools and resources that the extension which runs a child session brings.
#[derive(Default)]
pub(crate) struct ChildProvisions {
    pub tools: Vec<Arc<dyn Tool>>,
    pub texts: ChildResources,
}

/// The parts that a session is assembled from.
pub(crate) struct SessionParts {
    pub session: Session,
    pub warnings: Vec<Warning>,
    pub settings: Arc<Settings>,
    pub models: Arc<ModelRegistry>,
    pub child_link: ChildLink,
    pub provisions: ChildProvisions,
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
    /// Returns the session of the user: the one from which child sessions come, or this one.
    pub(crate) fn user_session(&self) -> Arc<Self> {
        let session = self.child_link.user_session.as_ref();
        session
            .and_then(Weak::upgrade)
            .unwrap_or_else(|| self.arc())
    }

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
            mode: Mode::Print,
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
            own_names: OwnNames::NONE,
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
                hooks: Some(hooks),
                model: options.model.map(Arc::new),
                extensions: set,
                user_settings: Some(match &self.child_link.user_settings {
                    Some(settings) => settings.clone(),
                    None => self.settings.clone(),
                }),
                user_session: Some(Arc::downgrade(&self.user_session())),
            },
            provisions: ChildProvisions {
                tools,
                texts: options.texts,
            },
        };
        let child = AgentSession::assemble(config, Arc::new(ExtensionSink(events)), begin);
        child.load().await.map_err(|error| wrong(&error))?;
        Ok(child)
    }
}

#[async_trait]
impl ChildSession for AgentSession {
    async fn call(&self, action: &str, args: &Value) -> ActionResult<Value> {
        calls::call(self, action, args).await
    }

    fn call_now(&self, action: &str, args: &Value) -> ActionResult<Value> {
        calls::call_now(self, action, args)
    }

    async fn bash(
        &self,
        command: String,
        exclude_from_context: bool,
        by: Arc<dyn RemoteCommands>,
    ) -> ActionResult<Value> {
        let request = UserCommandRequest {
            command,
            exclude_from_context,
            runner: UserCommandRunner::Remote(by),
        };
        calls::format(self.execute(SessionCommand::UserCommand(request)).await)
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
