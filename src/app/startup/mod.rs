//! Starts a session: reads files, loads extensions and chooses a model. V8 is not initialized if no
//! extensions exist.

pub(crate) mod config;
pub(crate) mod find_session;
pub(crate) mod install_missing;
pub(crate) mod list_models;
mod name_conflicts;
pub(crate) mod tool_selection;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::activity::WorkState;
use crate::cancel::ResettableCancel;
use crate::child::session::{ChildLink, ChildProvisions, SessionParts};
use crate::compaction::CompactionState;
use crate::compaction::summary_lock::SummaryLock;
use crate::prompt::extension_messages::{QueuedUserMessage, send_extension_messages};
use crate::prompt::intake::PromptIntake;
use crate::prompt::options::SystemPromptState;
use crate::prompt::queue::PromptQueue;
use crate::prompt::resources::{DiscoveredPaths, PromptResources};
use crate::run::approval::Approvals;
use crate::run::retry::Retry;
use crate::session::{AgentSession, EventSink};
use crate::session_lock::{LOCK_TIMEOUT, release_lock_when_idle};
use crate::shutdown::ShutdownRequest;
use crate::startup::config::{AppConfig, SessionTarget};
use crate::startup::find_session::{FoundSession, find_session};
use crate::state::State;
use crate::switch::Switcher;
use crate::switch::background::OpenSessions;
use crate::tools::Tools;
use crate::trust_question::TrustMoment;
use crate::ui::UserInterface;
use crate::user_commands::{UserCommandState, UserCommands};
use pi_agent::queue::Queues;
use pi_agent::retry::RetryPolicy;
use pi_ai::model::ThinkingLevel;
use pi_ai::models::registry::ModelRegistry;
use pi_ai::models::selection::SelectError;
use pi_extensions::api::session_api::SessionApi;
use pi_extensions::registry::FlagKind;
use pi_extensions::{
    Extensions, ExtensionsConfig, LoadReport, expect_trusted_files, ineffective_limits,
};
use pi_resources::discovery::extensions::{self, ExtensionPath, ExtensionPaths, ResourceSources};
use pi_resources::paths::Paths;
use pi_resources::paths::expand_tilde;
use pi_resources::settings::{RetrySettings, Settings};
use pi_resources::source_info::SourceScope;
use pi_resources::trust;
use pi_session::{
    FolderLock, NewSession, Session, SessionError, Warning, check_id_free, default_session_dir,
    find_by_id,
};

/// Why a session could not be started; the sentence is for the user.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("No session found matching '{0}'. pi -r lists the sessions")]
    NoSuchSession(String),
    #[error(
        "Session id '{prefix}' belongs to another folder ({cwd}). Go there, or copy it here: \
         pi --fork {prefix}"
    )]
    ElsewhereSession { prefix: String, cwd: String },
    #[error(
        "Stored session working directory does not exist: {0}. Create the folder, or continue in \
         a copy: pi --fork with the path or id of the session"
    )]
    MissingCwd(PathBuf),
    #[error("--session-id: {0} has this id already. Use another one, or leave out --fork")]
    SessionExists(PathBuf),
    #[error("cannot work in {path}: {source}")]
    Chdir {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Model(#[from] SelectError),
    #[error("--api-key needs a model to go with: add --model")]
    KeyWithoutModel,
    #[error("{0}")]
    Flags(String),
}

impl AgentSession {
    /// Calls [`Self::open_unloaded`] and [`Self::load`], for modes without input during the start.
    pub async fn start(
        config: AppConfig,
        mode: Arc<dyn EventSink>,
    ) -> Result<Arc<Self>, StartError> {
        let session = Self::open_unloaded(config, mode)?;
        session.load().await?;
        Ok(session)
    }

    /// Opens the session without extensions and without a model. Only [`Self::load`],
    /// [`Self::abort`] and answers to dialogs are valid until it is loaded.
    pub fn open_unloaded(
        config: AppConfig,
        mode: Arc<dyn EventSink>,
    ) -> Result<Arc<Self>, StartError> {
        let settings = Settings::load(&config.paths);
        let (session, warnings) = open_session(&config, &settings)?;
        let cwd = session.cwd().to_path_buf();
        // Extensions and their child processes use the folder of the process.
        std::env::set_current_dir(&cwd).map_err(|source| StartError::Chdir {
            path: cwd.clone(),
            source,
        })?;
        let settings = match cwd == config.paths.cwd {
            true => settings,
            false => Settings::load(&config.paths.with_cwd(&cwd)),
        };
        let models = Arc::new(ModelRegistry::load(&config.paths.agent_dir));
        let begin = SessionParts {
            session,
            warnings,
            settings,
            models,
            child_link: ChildLink::default(),
            provisions: ChildProvisions::default(),
        };
        Ok(Self::assemble(config, mode, begin))
    }

    /// Makes a session of given parts, as [`Self::open_unloaded`] does, but without a change of the
    /// folder of the process.
    pub(crate) fn assemble(
        config: AppConfig,
        mode: Arc<dyn EventSink>,
        begin: SessionParts,
    ) -> Arc<Self> {
        let SessionParts {
            session,
            warnings,
            settings,
            models,
            child_link,
            provisions,
        } = begin;
        let make = |provided| {
            Extensions::new(ExtensionsConfig::new(
                &settings,
                &config.paths,
                provided,
                config.console.clone(),
            ))
        };
        let extensions = match &child_link.extensions {
            Some(set) => Arc::clone(&set.extensions),
            // An own registry, because generations of the child must not replace providers of the
            // session of the user.
            None if child_link.is_child => {
                make(Arc::new(ModelRegistry::load(&config.paths.agent_dir)))
            }
            None => make(Arc::clone(&models)),
        };
        if let Some(hooks) = &child_link.hooks {
            extensions.set_child_hooks(Arc::clone(hooks));
        }
        settings.override_theme(config.theme.clone());
        let mut pending_warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let settings_warnings = settings.take_warnings();
        pending_warnings.extend(
            settings_warnings
                .iter()
                .map(|warning| warning.describe("startup")),
        );
        let values = settings.values();
        pending_warnings.extend(ineffective_limits(&values));
        let mut queues = Queues::default();
        queues.steering_mode = values.steering_mode;
        queues.follow_up_mode = values.follow_up_mode;
        let (lock_used, lock_uses) = watch::channel(());
        let work = WorkState::default();
        let activity = work.watch();
        let state = State {
            session,
            lock_used,
            sessions: OpenSessions::default(),
            context: Vec::new(),
            model: None,
            left_model: None,
            thinking: ThinkingLevel::Off,
            scope: Vec::new(),
            prompts: PromptQueue {
                queues,
                ..PromptQueue::default()
            },
            system_prompt: SystemPromptState::default(),
            work,
            retry: Retry::from(retry_policy(&values.retry)),
            turn_index: 0,
            user_commands: UserCommandState::default(),
            compaction: CompactionState {
                is_automatic: values.compaction.enabled,
                ..CompactionState::default()
            },
            thinking_not_persisted: false,
        };
        let (config, state) = (Arc::new(config), Arc::new(Mutex::new(state)));
        let ChildProvisions { tools, texts } = provisions;
        let prompt_resources = PromptResources::new(config.clone(), settings.clone(), texts);
        let prompt_resources = Arc::new(prompt_resources);
        let tools = Tools::new(
            config.clone(),
            settings.clone(),
            extensions.clone(),
            prompt_resources.clone(),
            models.clone(),
            tools,
            state.clone(),
        );
        let handle = tokio::runtime::Handle::current();
        let ui = UserInterface::new(mode.clone(), handle.clone());
        let tools = Arc::new(tools);
        let user_commands = UserCommands::new(
            extensions.clone(),
            tools.clone(),
            mode.clone(),
            handle.clone(),
            state.clone(),
        );
        let summary_lock = SummaryLock::new(state.clone(), activity.clone());
        let (extension_messages, queued_messages) = extension_message_channel();
        let session = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            config,
            child_link,
            settings,
            models,
            extensions,
            state,
            tools,
            mode,
            shutdown_request: ShutdownRequest::default(),
            handler_cancel: ResettableCancel::default(),
            user_commands,
            summary_lock,
            activity,
            intake: PromptIntake::new(extension_messages),
            event_order: tokio::sync::Mutex::default(),
            handle,
            switcher: Switcher::default(),
            detached_tasks: Mutex::default(),
            prompt_resources,
            pending_warnings: Mutex::new(pending_warnings),
            ui,
            approvals: Approvals::default(),
            last_delivered_messages: Mutex::default(),
            last_load: Mutex::default(),
        });
        tokio::spawn(send_extension_messages(
            Arc::downgrade(&session),
            queued_messages,
        ));
        tokio::spawn(release_lock_when_idle(Arc::downgrade(&session), lock_uses));
        session
    }

    /// Decides whether the project is trusted, installs missing packages, loads extensions and
    /// chooses a model. The mode gets no events before [`Self::open`], except questions and what
    /// extensions report while they load.
    pub async fn load(&self) -> Result<(), StartError> {
        let actions: Arc<dyn SessionApi> = self.arc();
        self.extensions.set_wait_listener(Arc::downgrade(&actions));
        let is_preloaded = self.resolve_trust(&self.cwd(), TrustMoment::Start).await;
        let paths = self.paths();
        if !self.child_link.is_child && self.config.discover_extensions {
            let changed = trust::changed_since_last_session(&paths);
            self.pending_warnings.lock().extend(changed);
        }
        let progress = self.config.progress.clone();
        let paths = self.install_missing(paths, progress).await;
        self.load_prompt_resources(&paths, &DiscoveredPaths::default());
        self.load_extensions(&paths, is_preloaded).await?;
        self.choose_model()?;
        self.use_api_key()?;
        self.tools.activate_defaults();
        self.extensions.bind(Arc::downgrade(&actions));
        Ok(())
    }

    /// Reports failed extensions and emits `session_start`, once the mode is ready.
    pub async fn open(&self) {
        self.extensions.show_waiting_errors().await;
        let report = self.load_report();
        self.report_failures(&report, &LoadReport::default()).await;
        self.report_name_conflicts().await;
        self.apply_watch_setting();
        self.emit_session_start("startup", None).await;
        self.extensions.release_replaced();
        // Handlers of `session_start` may register tools and themes, so both are checked after it.
        let unknown = [self.tools.unknown(), self.prompt_resources.unknown_theme()];
        for warning in unknown.into_iter().flatten() {
            self.warn("<session>", "warning", warning).await;
        }
    }

    /// Loads the extensions. If some were loaded to decide about the project, they are replaced.
    async fn load_extensions(&self, paths: &Paths, is_preloaded: bool) -> Result<(), StartError> {
        if let Some(set) = &self.child_link.extensions {
            *self.last_load.lock() = set.report.clone();
            return self.apply_flags();
        }
        let (found, problems) = find_extensions(&self.config, &self.settings, paths);
        self.pending_warnings.lock().extend(problems);
        self.name_session(&paths.cwd);
        let report = match is_preloaded {
            true => self.extensions.restart(found).await,
            false => self.extensions.load(found).await,
        };
        *self.last_load.lock() = report;
        self.apply_flags()
    }

    /// Takes over the settings that are kept in the state, after those of the project were read.
    pub(crate) fn apply_settings(&self) {
        let values = self.settings.values();
        self.pending_warnings
            .lock()
            .extend(ineffective_limits(&values));
        self.extensions.set_limits(&self.settings);
        let mut state = self.state.lock();
        state.prompts.queues.steering_mode = values.steering_mode;
        state.prompts.queues.follow_up_mode = values.follow_up_mode;
        state.retry.policy = retry_policy(&values.retry);
        state.compaction.is_automatic = values.compaction.enabled;
    }

    pub(crate) fn name_session(&self, cwd: &Path) {
        let id = self.state.lock().session.id().to_string();
        self.extensions.name_session(&id, cwd);
    }

    /// Applies `--api-key` to the model's provider. The key is not stored.
    fn use_api_key(&self) -> Result<(), StartError> {
        let Some(key) = &self.config.model.api_key else {
            return Ok(());
        };
        let choice = &self.config.model;
        let is_named = choice.model.is_some() || choice.provider.is_some();
        let is_chosen = is_named || !self.state.lock().scope.is_empty();
        // The key must not reach a provider that the user did not name.
        let model = self.model().filter(|_| is_chosen);
        let model = model.ok_or(StartError::KeyWithoutModel)?;
        self.models.set_runtime_key(&model.provider, key);
        Ok(())
    }

    /// Passes unknown options to extensions. Fails for options that no extension registered.
    fn apply_flags(&self) -> Result<(), StartError> {
        let known = self.extensions.flags();
        let mut unknown = Vec::new();
        for (name, value) in &self.config.flags {
            let Some(flag) = known.iter().find(|flag| flag.name == *name) else {
                unknown.push(format!("--{name}"));
                continue;
            };
            let value = match (flag.kind, value) {
                (FlagKind::Boolean, _) => Value::Bool(true),
                (FlagKind::String, Some(value)) => Value::String(value.clone()),
                (FlagKind::String, None) => {
                    let text = format!("Extension flag \"--{name}\" requires a value");
                    return Err(StartError::Flags(text));
                }
            };
            self.extensions.set_flag(name, value);
        }
        match unknown.as_slice() {
            [] => Ok(()),
            [one] => Err(StartError::Flags(format!("Unknown option: {one}"))),
            many => Err(StartError::Flags(format!(
                "Unknown options: {}",
                many.join(", ")
            ))),
        }
    }
}

fn retry_policy(settings: &RetrySettings) -> RetryPolicy {
    RetryPolicy {
        enabled: settings.enabled,
        max_retries: settings.max_retries,
        base_delay: Duration::from_millis(settings.base_delay_ms),
        max_delay: Duration::from_millis(settings.max_agent_delay_ms),
    }
}

/// Makes the queue of extension prompts. Unbounded, because extensions cannot be made to wait; they
/// are slower than the session.
#[expect(clippy::disallowed_methods, reason = "the sender stands in JavaScript")]
fn extension_message_channel() -> (
    mpsc::UnboundedSender<QueuedUserMessage>,
    mpsc::UnboundedReceiver<QueuedUserMessage>,
) {
    mpsc::unbounded_channel()
}

/// Searches for the extensions to load.
pub(crate) fn search_extensions(
    config: &AppConfig,
    settings: &Settings,
    paths: &Paths,
) -> ExtensionPaths {
    extensions::find_extensions(&ResourceSources {
        paths,
        settings,
        cli_extensions: &config.extensions,
        discover: config.discover_extensions,
    })
}

/// Returns the modules to load, and problems of finding them. Files of the project that appeared
/// after the decision about it are not loaded.
pub(crate) fn find_extensions(
    config: &AppConfig,
    settings: &Settings,
    paths: &Paths,
) -> (Vec<ExtensionPath>, Vec<String>) {
    let found = search_extensions(config, settings, paths);
    let mut problems: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
    let mut extensions = found.paths;
    expect_trusted_files(paths);
    extensions.retain(|found| {
        let is_expected = found.source_info.scope != SourceScope::Project
            || trust::is_expected(paths, &found.path);
        if !is_expected {
            problems.push(format!(
                "{} is new since this folder was trusted and not loaded: /reload or a new start \
                 asks about it",
                found.path.display()
            ));
        }
        is_expected
    });
    (extensions, problems)
}

/// Returns the extensions of the user and of the command line.
pub(crate) fn find_user_extensions(
    config: &AppConfig,
    untrusted: &Paths,
    settings: &Settings,
) -> Vec<ExtensionPath> {
    let found = extensions::find_extensions(&ResourceSources {
        paths: untrusted,
        settings,
        cli_extensions: &config.extensions,
        discover: config.discover_extensions,
    });
    found.paths
}

/// Returns the folder for new sessions of `cwd`.
pub(crate) fn session_dir(config: &AppConfig, settings: &Settings, cwd: &Path) -> PathBuf {
    if let Some(dir) = &config.session_dir {
        return config.paths.cwd.join(dir);
    }
    match &settings.values().session_dir {
        Some(dir) if !dir.is_empty() => cwd.join(expand_tilde(dir, &config.paths.home)),
        _ => default_session_dir(&config.paths.agent_dir, cwd),
    }
}

fn open_session(
    config: &AppConfig,
    settings: &Settings,
) -> Result<(Session, Vec<Warning>), StartError> {
    let cwd = &config.paths.cwd;
    let dir = session_dir(config, settings, cwd);
    let begins = matches!(
        config.session,
        SessionTarget::New | SessionTarget::ForkOf(_)
    );
    let claimed = config.session_id.as_deref().filter(|_| begins);
    // Held until the id has its file or is refused.
    let _folder = claimed.map(|_| FolderLock::take(&dir));
    // Checked before the search, because another process may be creating a session with this id.
    if let Some(id) = claimed {
        check_id_free(&dir, id)?;
    }
    let held = match &config.session_id {
        Some(id) => find_by_id(&dir, id)?
            .into_iter()
            .find(|found| found.header.id == *id),
        None => None,
    };
    let new = NewSession {
        id: config.session_id.clone(),
        ..NewSession::default()
    };
    let (mut session, warnings) = match &config.session {
        SessionTarget::InMemory => (Session::in_memory_with(cwd, new), Vec::new()),
        SessionTarget::New => match held {
            Some(held) => Session::open_shared(&held.path, cwd)?,
            None => (Session::create(&dir, cwd, new), Vec::new()),
        },
        SessionTarget::Recent => Session::continue_recent(&dir, cwd)?,
        SessionTarget::Named(name) => Session::open_shared(&find(config, settings, name)?, cwd)?,
        SessionTarget::ForkOf(name) => {
            if let Some(held) = held {
                return Err(StartError::SessionExists(held.path));
            }
            Session::fork_file(&find(config, settings, name)?, &dir, cwd, new.id)?
        }
    };
    if claimed.is_some() {
        session.reserve_id()?;
    }
    if !session.cwd().is_dir() && config.continue_here {
        session.override_cwd(cwd);
    }
    if !session.cwd().is_dir() {
        return Err(StartError::MissingCwd(session.cwd().to_path_buf()));
    }
    if let Some(name) = &config.session_name
        && session.name() != Some(name.trim())
    {
        session.acquire_lock_within(LOCK_TIMEOUT)?;
        session.append_session_info(name)?;
    }
    Ok((session, warnings))
}

/// Finds the session to open or to copy. A session of another folder can be copied, but not opened.
fn find(config: &AppConfig, settings: &Settings, name: &str) -> Result<PathBuf, StartError> {
    match find_session(config, settings, name)? {
        FoundSession::Here(path) => Ok(path),
        FoundSession::Elsewhere { path, .. }
            if matches!(config.session, SessionTarget::ForkOf(_)) =>
        {
            Ok(path)
        }
        FoundSession::Elsewhere { cwd, .. } => Err(StartError::ElsewhereSession {
            prefix: name.to_string(),
            cwd,
        }),
    }
}
