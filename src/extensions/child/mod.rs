//! Child sessions, which extensions start with `createAgentSession`. JavaScript refers to a
//! session by a token, fetches its events and runs the tools it brought.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::FutureExt;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod extensions;
mod hooks;
mod tools;

use self::extensions::LoadedExtensions;
pub use self::extensions::{ChildExtensions, ChildExtensionsRequest};
pub use self::hooks::ChildHooks;
use self::hooks::HookChanges;
use self::tools::{CustomTool, JsCalls, JsCommands, JsTool};
use super::api::session_api::{ActionResult, SessionApi};
use super::api::user_bash::CommandOutputs;
use super::bridge::{BridgeHost, BridgeResult, parse, to_value};
use pi_agent::event::Event;
use pi_ai::json::depth;
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::models::registry::ModelRegistry;
use pi_resources::prompts::templates::PromptTemplate;
use pi_resources::skills::Skill;
use pi_session::UnlockedSession;
use pi_tools::remote::RemoteCommands;
use pi_tools::tool::Tool;

/// Capacity of a session's event channel.
const EVENT_CAPACITY: usize = 64;

/// A child session, as the application implements it.
#[async_trait]
pub trait ChildSession: Send + Sync {
    /// Answers a call that takes time: `prompt`, `compact`, …
    async fn call(&self, action: &str, args: &Value) -> ActionResult<Value>;
    /// Answers a call at once: `state`, `setName`, …
    fn call_now(&self, action: &str, args: &Value) -> ActionResult<Value>;
    /// Runs `executeBash` with the extension's operations.
    async fn bash(
        &self,
        command: String,
        exclude_from_context: bool,
        by: Arc<dyn RemoteCommands>,
    ) -> ActionResult<Value>;
    /// Returns JSON of `NewEntries` in `js/modules/pi-coding-agent/session-manager/view.ts`.
    fn entries_since(&self, id: &str, since: usize) -> String;
    fn context(&self) -> String;
    /// Ends the session; its file stays.
    async fn close(&self);
}

/// Options of a new child session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildOptions {
    pub cwd: PathBuf,
    #[serde(default)]
    pub agent_dir: Option<PathBuf>,
    /// Number of the extensions that a resource loader has loaded; none if absent.
    #[serde(default)]
    pub set: Option<u64>,
    /// Values of the extensions' flags.
    #[serde(default)]
    pub flags: Vec<(String, Option<String>)>,
    /// Number of the model registry; the parent's registry if absent.
    #[serde(default)]
    pub registry: Option<u64>,
    #[serde(default)]
    pub model: Option<Model>,
    #[serde(default)]
    pub thinking_level: Option<ThinkingLevel>,
    /// Names of built-in tools; the default tools if absent.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Whether only tools in `tools` are available, including custom ones.
    #[serde(default)]
    pub no_others: bool,
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    /// Resources that replace those from files.
    #[serde(default)]
    pub texts: ChildResources,
    /// Settings that replace those of the user and the project.
    #[serde(default)]
    pub settings: Option<Map<String, Value>>,
    /// Whether files of the project are used, unless the user has decided otherwise.
    pub project_trusted: bool,
}

/// Resources from a resource loader; absent members are read from files.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChildResources {
    pub system_prompt: Option<String>,
    pub append_system_prompt: Option<String>,
    pub context_files: Option<Vec<ProvidedFile>>,
    pub skills: Option<Vec<Skill>>,
    pub prompts: Option<Vec<PromptTemplate>>,
}

#[derive(Clone, Deserialize)]
pub struct ProvidedFile {
    pub path: PathBuf,
    pub content: String,
}

/// An event for JavaScript, or a call that JavaScript has to make.
pub enum ChildEvent {
    Event(Arc<Event>),
    Call {
        call: u64,
        name: String,
        task: &'static str,
        args: Value,
    },
    Abort {
        call: u64,
    },
    /// An entry that a handler proposed was appended.
    Appended {
        id: String,
    },
    Error {
        problem: String,
    },
    /// Sends a reply when JavaScript has handled all earlier events and queued its
    /// messages.
    Flush(oneshot::Sender<()>),
}

impl Serialize for ChildEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "kind", rename_all = "camelCase")]
        enum Serialized<'a> {
            Event {
                event: &'a Event,
            },
            Call {
                call: u64,
                name: &'a str,
                task: &'a str,
                args: &'a Value,
            },
            Abort {
                call: u64,
            },
            Appended {
                id: &'a str,
            },
            Error {
                problem: &'a str,
            },
        }
        match self {
            Self::Event(event) => Serialized::Event { event },
            Self::Call {
                call,
                name,
                task,
                args,
            } => Serialized::Call {
                call: *call,
                name,
                task,
                args,
            },
            Self::Abort { call } => Serialized::Abort { call: *call },
            Self::Appended { id } => Serialized::Appended { id },
            Self::Error { problem } => Serialized::Error { problem },
            Self::Flush(_) => return Err(S::Error::custom("it is not for JavaScript")),
        }
        .serialize(serializer)
    }
}

/// The child sessions of one generation; they end with it.
pub struct ChildSessions {
    handle: Handle,
    outputs: Arc<CommandOutputs>,
    loaded_extensions: LoadedExtensions,
    open: Mutex<HashMap<u64, Arc<OpenChild>>>,
    last: AtomicU64,
}

struct OpenChild {
    session: Arc<dyn ChildSession>,
    events: tokio::sync::Mutex<mpsc::Receiver<ChildEvent>>,
    /// Callers that wait until JavaScript has handled the events it fetched last.
    flush_waiters: Mutex<Vec<oneshot::Sender<()>>>,
    /// Read-locked while a message is being queued.
    queue_lock: Arc<RwLock<()>>,
    calls: Arc<JsCalls>,
    hooks: Arc<ChildHooks>,
    actions: Mutex<HashMap<u64, Action>>,
    /// Cancelled when the session is closed.
    closed: CancellationToken,
}

/// State of an action when JavaScript starts to wait for it.
enum Action {
    Finished(ActionResult<Value>),
    Running(JoinHandle<ActionResult<Value>>),
}

impl OpenChild {
    /// Returns when JavaScript has handled all events so far, so that events of an action
    /// arrive before its result.
    async fn flush(&self) {
        let (flushed, flush_waiters) = oneshot::channel();
        let flushing = async {
            let _ = self.calls.events.send(ChildEvent::Flush(flushed)).await;
            let _ = flush_waiters.await;
        };
        tokio::select! {
            () = flushing => {}
            () = self.closed.cancelled() => {}
        }
    }
}

#[derive(Deserialize)]
struct OpenArgs {
    #[serde(default)]
    session: Option<u64>,
    #[serde(default)]
    custom_tools: Vec<CustomTool>,
    options: ChildOptions,
}

#[derive(Deserialize)]
struct ChildArgs {
    token: u64,
    #[serde(default)]
    action: String,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    id: String,
    #[serde(default)]
    since: usize,
    #[serde(default)]
    call: u64,
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

impl ChildArgs {
    /// Fails if the arguments are nested too deep to be stored.
    fn check_depth(&self) -> Result<(), HostError> {
        match depth::value_depth_problem(&self.args, depth::Origin::SessionLine) {
            None => Ok(()),
            Some(problem) => Err(HostError::new(format!("{}: {problem}", self.action))),
        }
    }
}

#[derive(Deserialize)]
struct SetHooksArgs {
    token: u64,
    #[serde(flatten)]
    set: HookChanges,
}

/// Arguments of `executeBash` with operations, which JavaScript stores under a number.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BashArgs {
    command: String,
    #[serde(default)]
    exclude_from_context: bool,
    operations: u64,
}

impl BashArgs {
    fn from_args(args: &ChildArgs) -> Result<Option<Self>, HostError> {
        if args.action != "bash" || args.args.get("operations").is_none() {
            return Ok(None);
        }
        let bash = serde_json::from_value(args.args.clone());
        bash.map(Some)
            .map_err(|error| HostError::new(error.to_string()))
    }
}

impl ChildSessions {
    pub fn new(handle: Handle, outputs: Arc<CommandOutputs>) -> Self {
        Self {
            handle,
            outputs,
            loaded_extensions: LoadedExtensions::default(),
            open: Mutex::default(),
            last: AtomicU64::new(1),
        }
    }

    fn close_child(&self, child: &OpenChild) {
        child.closed.cancel();
        let session = child.session.clone();
        self.handle.spawn(async move { session.close().await });
    }

    fn get(&self, token: u64) -> Result<Arc<OpenChild>, HostError> {
        let found = self.open.lock().get(&token).cloned();
        found.ok_or_else(|| HostError::new("This AgentSession was disposed"))
    }

    /// Serves methods whose result is JSON text already; `None` for other methods.
    pub fn serve_json(&self, method: &str, args: &str) -> Option<Result<String, HostError>> {
        let parse_args = |args| parse::<ChildArgs>(method, args);
        Some(match method {
            "child.entriesSince" => parse_args(args).and_then(|args| {
                let child = self.get(args.token)?;
                Ok(child.session.entries_since(&args.id, args.since))
            }),
            "child.context" => {
                parse_args(args).and_then(|args| Ok(self.get(args.token)?.session.context()))
            }
            _ => return None,
        })
    }

    /// Serves synchronous methods; `None` for other methods.
    pub fn serve(&self, method: &str, args: &str) -> Option<BridgeResult> {
        let parse_args = |args| parse::<ChildArgs>(method, args);
        Some(match method {
            "child.query" => parse_args(args).and_then(|args| {
                let child = self.get(args.token)?;
                args.check_depth()?;
                let result = child.session.call_now(&args.action, &args.args);
                result.map_err(|error| HostError::new(error.0))
            }),
            "child.startAction" => parse_args(args).and_then(|args| self.start_action(args)),
            "child.respond" => parse_args(args).and_then(|args| {
                let child = self.get(args.token)?;
                child.calls.respond(args.call, args.value, args.error);
                Ok(Value::Null)
            }),
            "child.toolStarted" => parse_args(args).and_then(|args| {
                self.get(args.token)?.calls.mark_started(args.call);
                Ok(Value::Null)
            }),
            "child.toolUpdate" => parse_args(args).and_then(|args| {
                let child = self.get(args.token)?;
                child.calls.update(args.call, args.value);
                Ok(Value::Null)
            }),
            "child.setHooks" => parse::<SetHooksArgs>(method, args).and_then(|args| {
                self.get(args.token)?.hooks.set(&args.set);
                Ok(Value::Null)
            }),
            "child.unloadExtensions" => self.loaded_extensions.unload(&self.handle, method, args),
            "child.close" => parse_args(args).map(|args| {
                if let Some(child) = self.open.lock().remove(&args.token) {
                    self.close_child(&child);
                }
                Value::Null
            }),
            _ => return None,
        })
    }

    /// Loads extensions for a child session that starts later.
    pub async fn load(&self, actions: &dyn SessionApi, method: &str, args: &str) -> BridgeResult {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.loaded_extensions
            .load(actions, number, method, args)
            .await
    }

    pub async fn open(
        &self,
        host: &BridgeHost,
        actions: &dyn SessionApi,
        method: &str,
        args: &str,
    ) -> BridgeResult {
        let open: OpenArgs = parse(method, args)?;
        let models = open.options.registry.map(|number| host.registry_of(number));
        let models = models.transpose()?;
        let set = open.options.set.map(|number| {
            let set = self.loaded_extensions.take(number);
            set.ok_or_else(|| HostError::new(format!("The extensions {number} are not there")))
        });
        let set = set.transpose()?;
        let sessions = &host.sessions;
        let session = open.session.map(|token| sessions.take(token)).transpose()?;
        let (events, received) = mpsc::channel(EVENT_CAPACITY);
        let calls = Arc::new(JsCalls::new(events.clone()));
        let tool = |tool: CustomTool| Arc::new(JsTool::new(tool, calls.clone())) as Arc<dyn Tool>;
        let tools = open.custom_tools.into_iter().map(tool).collect();
        let hooks = Arc::new(ChildHooks::new(calls.clone()));
        let config = ChildConfig {
            options: open.options,
            models,
            set,
            session,
            tools,
            hooks: hooks.clone(),
            events,
        };
        let session = actions.open_child_session(config).await;
        let session = session.map_err(|error| HostError::new(error.0))?;
        let token = self.last.fetch_add(1, Ordering::Relaxed);
        let child = OpenChild {
            session,
            events: tokio::sync::Mutex::new(received),
            flush_waiters: Mutex::default(),
            queue_lock: Arc::default(),
            calls,
            hooks,
            actions: Mutex::default(),
            closed: CancellationToken::new(),
        };
        self.open.lock().insert(token, Arc::new(child));
        Ok(json!({ "token": token }))
    }

    /// Starts an action and runs its first step at once, so that actions take effect in the
    /// order of the calls and are visible to the next query. Returns a number for
    /// [`Self::await_action`].
    fn start_action(&self, args: ChildArgs) -> BridgeResult {
        let child = self.get(args.token)?;
        args.check_depth()?;
        let session = child.session.clone();
        let queue_lock = child.queue_lock.clone();
        let bash = BashArgs::from_args(&args)?;
        let calls = child.calls.clone();
        let outputs = self.outputs.clone();
        let mut acting = Box::pin(async move {
            if let Some(bash) = bash {
                let by = Arc::new(JsCommands {
                    calls,
                    outputs,
                    operations: bash.operations,
                });
                return session
                    .bash(bash.command, bash.exclude_from_context, by)
                    .await;
            }
            let _queue_guard = match args.action.as_str() {
                "queue" => Some(queue_lock.read_owned().await),
                _ => None,
            };
            session.call(&args.action, &args.args).await
        });
        let _in_tokio = self.handle.enter();
        let action = match (&mut acting).now_or_never() {
            Some(result) => Action::Finished(result),
            None => Action::Running(self.handle.spawn(acting)),
        };
        let call = self.last.fetch_add(1, Ordering::Relaxed);
        child.actions.lock().insert(call, action);
        Ok(json!(call))
    }

    pub async fn await_action(&self, method: &str, args: &str) -> BridgeResult {
        let args: ChildArgs = parse(method, args)?;
        let child = self.get(args.token)?;
        let action = child.actions.lock().remove(&args.call);
        let acted = match action {
            Some(Action::Finished(result)) => Ok(result),
            Some(Action::Running(acting)) => acting.await,
            None => {
                return Err(HostError::new(format!(
                    "nothing has begun as {}",
                    args.call
                )));
            }
        };
        child.flush().await;
        match acted {
            Ok(result) => result.map_err(|error| HostError::new(error.0)),
            Err(error) => Err(HostError::new(error.to_string())),
        }
    }

    /// Returns at least one event, or none after the session was closed.
    pub async fn next_events(&self, method: &str, args: &str) -> BridgeResult {
        let args: ChildArgs = parse(method, args)?;
        let Ok(child) = self.get(args.token) else {
            return Ok(json!([]));
        };
        let mut events = child.events.lock().await;
        loop {
            // A fetch means that JavaScript has handled the previous events.
            self.release_waiters(&child);
            let mut batch = Vec::new();
            tokio::select! {
                _ = events.recv_many(&mut batch, EVENT_CAPACITY) => {}
                () = child.closed.cancelled() => {}
            }
            let ended = batch.is_empty();
            let mut fetched = Vec::with_capacity(batch.len());
            for one in batch {
                match one {
                    ChildEvent::Flush(flushed) => child.flush_waiters.lock().push(flushed),
                    one => fetched.push(one),
                }
            }
            if ended || !fetched.is_empty() {
                return to_value(fetched);
            }
        }
    }

    fn release_waiters(&self, child: &OpenChild) {
        let waiting = std::mem::take(&mut *child.flush_waiters.lock());
        if waiting.is_empty() {
            return;
        }
        let queue_lock = child.queue_lock.clone();
        // Runs as a task, because queued messages emit events that JavaScript has to fetch
        // meanwhile.
        self.handle.spawn(async move {
            drop(queue_lock.write().await);
            for flushed in waiting {
                // The caller may be gone.
                let _ = flushed.send(());
            }
        });
    }
}

impl Drop for ChildSessions {
    fn drop(&mut self) {
        let open = std::mem::take(&mut *self.open.lock());
        for child in open.values() {
            self.close_child(child);
        }
    }
}

/// Everything that the application needs to start a child session.
pub struct ChildConfig {
    pub options: ChildOptions,
    /// The registry that `options.registry` names.
    pub models: Option<Arc<ModelRegistry>>,
    /// The extensions that `options.set` names.
    pub set: Option<ChildExtensions>,
    /// The session to continue; a new one in memory if absent.
    pub session: Option<UnlockedSession>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub hooks: Arc<ChildHooks>,
    pub events: mpsc::Sender<ChildEvent>,
}
