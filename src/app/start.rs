//! Starting a session: files are read, extensions loaded, a model chosen. V8 is
//! not touched if there are no extensions.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::actions::{Said, say_in_turn};
use super::config::{AppConfig, SessionTarget};
use super::hold::{PATIENCE, release_at_rest};
use super::locate::{Located, locate};
use super::second::{Begin, Beside};
use super::session::{AgentSession, EventSink};
use super::showing::Showing;
use super::state::State;
use super::texts::Added;
use super::turns::Turns;
use crate::agent::queue::Queues;
use crate::agent::retry::RetryPolicy;
use crate::ai::model::ThinkingLevel;
use crate::ai::registry::ModelRegistry;
use crate::ai::select::SelectError;
use crate::extensions::api::session_api::SessionApi;
use crate::extensions::registry::FlagKind;
use crate::extensions::{Extensions, ExtensionsConfig, ineffective_limits};
use crate::resources::discovery::extensions::{self, ExtensionPath, ResourceSources};
use crate::resources::paths::expand_tilde;
use crate::resources::settings::Settings;
use crate::session::{
    FolderLock, NewSession, Session, SessionError, Warning, check_id_free, default_session_dir,
    find_by_id,
};

/// Why there is no session; the sentence is for the user.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("No session found matching '{0}'")]
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
    /// [`Self::prepare`] and [`Self::load`], for modes that nobody speaks to meanwhile.
    pub async fn start(
        config: AppConfig,
        mode: Arc<dyn EventSink>,
    ) -> Result<Arc<Self>, StartError> {
        let session = Self::prepare(config, mode)?;
        session.load().await?;
        Ok(session)
    }

    /// The session as its files say, without extensions and without a model: only
    /// [`Self::load`], [`Self::abort`] and answers to questions mean something to it.
    pub fn prepare(config: AppConfig, mode: Arc<dyn EventSink>) -> Result<Arc<Self>, StartError> {
        let settings = Settings::load(&config.paths);
        let (session, warnings) = open_session(&config, &settings)?;
        let cwd = session.cwd().to_path_buf();
        // Extensions and their children look at the process's folder.
        std::env::set_current_dir(&cwd).map_err(|source| StartError::Chdir {
            path: cwd.clone(),
            source,
        })?;
        let settings = match cwd == config.paths.cwd {
            true => settings,
            false => Settings::load(&config.paths.with_cwd(&cwd)),
        };
        let models = Arc::new(ModelRegistry::load(&config.paths.agent_dir));
        let begin = Begin {
            session,
            warnings,
            settings,
            models,
            beside: Beside::default(),
        };
        Ok(Self::assemble(config, mode, begin))
    }

    /// [`Self::prepare`] with what is known already. The program's folder stays.
    pub(super) fn assemble(config: AppConfig, mode: Arc<dyn EventSink>, begin: Begin) -> Arc<Self> {
        let Begin {
            session,
            warnings,
            settings,
            models,
            beside,
        } = begin;
        let make = |provided| {
            Extensions::new(ExtensionsConfig::new(
                &settings,
                &config.paths,
                provided,
                config.console.clone(),
            ))
        };
        let extensions = match &beside.extensions {
            Some(set) => Arc::clone(&set.extensions),
            // It must not take away the providers of the extensions that are there.
            None if beside.is_second => {
                make(Arc::new(ModelRegistry::load(&config.paths.agent_dir)))
            }
            None => make(Arc::clone(&models)),
        };
        settings.override_theme(config.theme.clone());
        let mut notes: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let complaints = settings.take_warnings();
        notes.extend(complaints.iter().map(|warning| warning.describe("startup")));
        let values = settings.values();
        notes.extend(ineffective_limits(&values));
        let retry = values.retry;
        let mut queues = Queues::default();
        queues.steering_mode = values.steering_mode;
        queues.follow_up_mode = values.follow_up_mode;
        let (written, writes) = watch::channel(());
        let state = State {
            session,
            written,
            place: 0,
            places: 0,
            left: Vec::new(),
            stays: Vec::new(),
            context: Vec::new(),
            model: None,
            thinking: ThinkingLevel::Off,
            scope: Vec::new(),
            queues,
            active_tools: Vec::new(),
            known_tools: HashSet::new(),
            preparing: 0,
            starting: 0,
            owed: false,
            next_turn: Vec::new(),
            deferred_bash: Vec::new(),
            system_prompt: String::new(),
            run_prompt: None,
            prompt_options: Default::default(),
            run_options: None,
            run: None,
            ending: None,
            replacing: false,
            retry_wait: None,
            summary: None,
            wanted: 0,
            handed: None,
            due: None,
            overflow_recovered: false,
            runs: 0,
            retry: RetryPolicy {
                enabled: retry.enabled,
                max_retries: retry.max_retries,
                base_delay: Duration::from_millis(retry.base_delay_ms),
                max_delay: Duration::from_millis(retry.max_agent_delay_ms),
            },
            failure: None,
            attempt: 0,
            turn: 0,
            bash: None,
            auto_compaction: values.compaction.enabled,
            thinking_unsaid: false,
        };
        let (said, saying) = unspoken();
        let session = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            config,
            beside,
            settings,
            models,
            extensions,
            state: Mutex::new(state),
            mode,
            leave: watch::Sender::new(false),
            heeds_leave: AtomicBool::new(false),
            waiting: Mutex::default(),
            watching: Mutex::default(),
            here: Mutex::default(),
            commands: CancellationToken::new(),
            at_work: TaskTracker::new(),
            busy: watch::Sender::new(false),
            questions: Arc::default(),
            prompts: watch::Sender::new(0),
            turns: Turns::default(),
            ending: watch::Sender::new(false),
            stage: tokio::sync::Mutex::default(),
            summarising: watch::Sender::new(false),
            handle: tokio::runtime::Handle::current(),
            replacing: tokio::sync::Mutex::default(),
            said,
            steered: Turns::default(),
            pending_prompts: Turns::default(),
            told_first: Turns::default(),
            asides: Mutex::default(),
            texts: Mutex::default(),
            notes: Mutex::new(notes),
            showing: Showing::default(),
            told_messages: Mutex::default(),
            ui_methods: Mutex::default(),
            loaded: Mutex::default(),
        });
        tokio::spawn(say_in_turn(Arc::downgrade(&session), saying));
        tokio::spawn(release_at_rest(Arc::downgrade(&session), writes));
        session
    }

    /// Packages that are missing are installed, extensions loaded, a model chosen.
    /// Nothing reaches the mode before [`Self::open`], except what extensions report
    /// while they load.
    pub async fn load(&self) -> Result<(), StartError> {
        let actions: Arc<dyn SessionApi> = self.arc();
        self.extensions.set_wait_listener(Arc::downgrade(&actions));
        let cwd = self.cwd();
        let progress = self.config.progress.clone();
        self.install_missing(&cwd, progress).await;
        self.load_texts(&cwd, &Added::default());
        self.load_extensions(&cwd).await?;
        self.choose_model()?;
        self.use_api_key()?;
        self.offer_default_tools();
        self.extensions.bind(Arc::downgrade(&actions));
        Ok(())
    }

    /// The mode is there: extensions that failed are shown, the others greeted.
    pub async fn open(&self) {
        for error in self.extensions.take_early_errors() {
            self.tell(error.into()).await;
        }
        let report = self.load_report();
        self.report_failures(&report).await;
        self.report_clashes().await;
        self.heed_watch_setting();
        self.greet("startup", None).await;
        // Extensions register tools and themes until here.
        let unknown = [self.unknown_tools(), self.unknown_theme()];
        for warning in unknown.into_iter().flatten() {
            self.warn("<session>", "warning", warning).await;
        }
    }

    async fn load_extensions(&self, cwd: &Path) -> Result<(), StartError> {
        if let Some(set) = &self.beside.extensions {
            *self.loaded.lock() = set.report.clone();
            return self.apply_flags();
        }
        let (paths, problems) = find_extensions(&self.config, &self.settings, cwd);
        self.notes.lock().extend(problems);
        self.name_session(cwd);
        let report = self.extensions.load(paths).await;
        *self.loaded.lock() = report;
        self.apply_flags()
    }

    pub(super) fn name_session(&self, cwd: &Path) {
        let id = self.state.lock().session.id().to_string();
        self.extensions.name_session(&id, cwd);
    }

    /// `--api-key` is for the model's provider, and is not stored.
    fn use_api_key(&self) -> Result<(), StartError> {
        let Some(key) = &self.config.model.api_key else {
            return Ok(());
        };
        let choice = &self.config.model;
        let is_named = choice.model.is_some() || choice.provider.is_some();
        let is_chosen = is_named || !self.state.lock().scope.is_empty();
        // Another provider must not get it.
        let model = self.model().filter(|_| is_chosen);
        let model = model.ok_or(StartError::KeyWithoutModel)?;
        self.models.set_runtime_key(&model.provider, key);
        Ok(())
    }

    /// Options that are not ours must be those of an extension.
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

/// As long as what extensions have to say: they are slower than the session, and
/// cannot be made to wait.
#[expect(clippy::disallowed_methods, reason = "the sender stands in JavaScript")]
fn unspoken() -> (mpsc::UnboundedSender<Said>, mpsc::UnboundedReceiver<Said>) {
    mpsc::unbounded_channel()
}

/// The modules to load, and what was odd about the list.
pub(super) fn find_extensions(
    config: &AppConfig,
    settings: &Settings,
    cwd: &Path,
) -> (Vec<ExtensionPath>, Vec<String>) {
    let paths = config.paths.with_cwd(cwd);
    let found = extensions::find_extensions(&ResourceSources {
        paths: &paths,
        settings,
        cli_extensions: &config.extensions,
        discover: config.discover_extensions,
    });
    let problems = found.diagnostics.iter().map(ToString::to_string);
    (found.paths, problems.collect())
}

/// Where new sessions of `cwd` go.
pub(super) fn session_dir(config: &AppConfig, settings: &Settings, cwd: &Path) -> PathBuf {
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
    // Until the id has its file, or is refused.
    let _folder = claimed.map(|_| FolderLock::take(&dir));
    // Before it is looked for: who has it may store something just now.
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
        session.acquire_lock_within(PATIENCE)?;
        session.append_session_info(name)?;
    }
    Ok((session, warnings))
}

/// A session of another folder is not opened from here; a copy of it is.
fn find(config: &AppConfig, settings: &Settings, name: &str) -> Result<PathBuf, StartError> {
    match locate(config, settings, name)? {
        Located::Here(path) => Ok(path),
        Located::Elsewhere { path, .. } if matches!(config.session, SessionTarget::ForkOf(_)) => {
            Ok(path)
        }
        Located::Elsewhere { cwd, .. } => Err(StartError::ElsewhereSession {
            prefix: name.to_string(),
            cwd,
        }),
    }
}
