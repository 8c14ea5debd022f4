//! Sessions that an extension runs beside the one it belongs to (`createAgentSession`).
//! They are ours in every way; JavaScript holds a number, fetches what happens in them,
//! and runs the tools that it brought.

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

use self::extensions::SecondSets;
pub use self::extensions::{SecondSet, SetBegin};
pub use self::hooks::SecondHooks;
use self::hooks::SetHooks;
use self::tools::{Calls, CustomTool, JsCommands, JsTool};
use super::api::session_api::{ActionResult, Actions};
use super::api::user_bash::Outputs;
use super::bridge::{BridgeHost, BridgeResult, parse, to_value};
use crate::agent::event::Event;
use crate::ai::model::{Model, ThinkingLevel};
use crate::ai::nesting;
use crate::ai::registry::ModelRegistry;
use crate::resources::prompt_templates::PromptTemplate;
use crate::resources::skills::Skill;
use crate::session::LooseSession;
use crate::tools::operations::Commands;
use crate::tools::tool::Tool;

/// News that may wait to be fetched.
const NEWS: usize = 64;

/// One of them, as the program runs it.
#[async_trait]
pub trait SecondSession: Send + Sync {
    /// What takes time: `prompt`, `compact`, …
    async fn act(&self, action: &str, args: &Value) -> ActionResult<Value>;
    /// `executeBash` by operations of the extension.
    async fn bash(
        &self,
        command: &str,
        exclude_from_context: bool,
        by: Arc<dyn Commands>,
    ) -> ActionResult<Value>;
    /// What is there at once: `state`, `messages`, …
    fn ask(&self, question: &str, args: &Value) -> ActionResult<Value>;
    /// JSON of `Since` in `js/modules/pi-coding-agent/session-manager/view.ts`.
    fn since(&self, id: &str, since: usize) -> String;
    fn context(&self) -> String;
    /// Ends it; what it stored stays.
    async fn close(&self);
}

/// How one begins.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecondOptions {
    pub cwd: PathBuf,
    #[serde(default)]
    pub agent_dir: Option<PathBuf>,
    /// The extensions that a resource loader has loaded for it; none if not given.
    #[serde(default)]
    pub set: Option<u64>,
    /// Values of their flags.
    #[serde(default)]
    pub flags: Vec<(String, Option<String>)>,
    /// Where its models and keys are looked up; where this session does, if not given.
    #[serde(default)]
    pub registry: Option<u64>,
    #[serde(default)]
    pub model: Option<Model>,
    #[serde(default)]
    pub thinking_level: Option<ThinkingLevel>,
    /// Names of the built-in tools that it has; the usual ones if not given.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Nor has it tools that are not among these, whosever they are.
    #[serde(default)]
    pub no_others: bool,
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    /// In the place of what the files say.
    #[serde(default)]
    pub texts: GivenTexts,
    /// In the place of the user's and the project's.
    #[serde(default)]
    pub settings: Option<Map<String, Value>>,
    /// Whether the files of the project count, if the user has not said otherwise.
    pub project_trusted: bool,
}

/// What a resource loader gives; where it gives nothing, the files count.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GivenTexts {
    pub system_prompt: Option<String>,
    pub append_system_prompt: Option<String>,
    pub context_files: Option<Vec<GivenFile>>,
    pub skills: Option<Vec<Skill>>,
    pub prompts: Option<Vec<PromptTemplate>>,
}

#[derive(Clone, Deserialize)]
pub struct GivenFile {
    pub path: PathBuf,
    pub content: String,
}

/// What happens in one, and what it wants of JavaScript.
pub enum SecondNews {
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
    /// An entry that a handler wanted.
    Appended {
        id: String,
    },
    Error {
        problem: String,
    },
    /// Told when all before it was heard, and what was queued thereupon is queued.
    Heard(oneshot::Sender<()>),
}

impl Serialize for SecondNews {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "kind", rename_all = "camelCase")]
        enum Shown<'a> {
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
            Self::Event(event) => Shown::Event { event },
            Self::Call {
                call,
                name,
                task,
                args,
            } => Shown::Call {
                call: *call,
                name,
                task,
                args,
            },
            Self::Abort { call } => Shown::Abort { call: *call },
            Self::Appended { id } => Shown::Appended { id },
            Self::Error { problem } => Shown::Error { problem },
            Self::Heard(_) => return Err(S::Error::custom("it is not for JavaScript")),
        }
        .serialize(serializer)
    }
}

/// Those of one generation; they end with it.
pub struct SecondSessions {
    handle: Handle,
    outputs: Arc<Outputs>,
    sets: SecondSets,
    open: Mutex<HashMap<u64, Arc<Second>>>,
    last: AtomicU64,
}

struct Second {
    session: Arc<dyn SecondSession>,
    news: tokio::sync::Mutex<mpsc::Receiver<SecondNews>>,
    /// Those who wait until JavaScript has heard what it fetched last.
    hearing: Mutex<Vec<oneshot::Sender<()>>>,
    /// Read while something is being queued.
    queueing: Arc<RwLock<()>>,
    calls: Arc<Calls>,
    hooks: Arc<SecondHooks>,
    begun: Mutex<HashMap<u64, Begun>>,
    /// Nobody is told any more.
    closed: CancellationToken,
}

/// An action, by the time JavaScript waits for it.
enum Begun {
    Over(ActionResult<Value>),
    UnderWay(JoinHandle<ActionResult<Value>>),
}

impl Second {
    /// Until JavaScript has heard of everything so far: what an action brought about is
    /// told before it is over.
    async fn wait_drained(&self) {
        let (heard, hearing) = oneshot::channel();
        let told = async {
            let _ = self.calls.news.send(SecondNews::Heard(heard)).await;
            let _ = hearing.await;
        };
        tokio::select! {
            () = told => {}
            () = self.closed.cancelled() => {}
        }
    }
}

#[derive(Deserialize)]
struct Open {
    #[serde(default)]
    session: Option<u64>,
    #[serde(default)]
    custom_tools: Vec<CustomTool>,
    options: SecondOptions,
}

#[derive(Deserialize)]
struct Of {
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

impl Of {
    /// Whether the session could keep what it is given.
    fn check_depth(&self) -> Result<(), HostError> {
        match nesting::value_too_deep(&self.args, nesting::Of::Line) {
            None => Ok(()),
            Some(problem) => Err(HostError::new(format!("{}: {problem}", self.action))),
        }
    }
}

#[derive(Deserialize)]
struct HooksOf {
    token: u64,
    #[serde(flatten)]
    set: SetHooks,
}

/// `executeBash` with operations, which JavaScript keeps under a number.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bash {
    command: String,
    #[serde(default)]
    exclude_from_context: bool,
    operations: u64,
}

impl Bash {
    fn of(of: &Of) -> Result<Option<Self>, HostError> {
        if of.action != "bash" || of.args.get("operations").is_none() {
            return Ok(None);
        }
        let bash = serde_json::from_value(of.args.clone());
        bash.map(Some)
            .map_err(|error| HostError::new(error.to_string()))
    }
}

impl SecondSessions {
    pub fn new(handle: Handle, outputs: Arc<Outputs>) -> Self {
        Self {
            handle,
            outputs,
            sets: SecondSets::default(),
            open: Mutex::default(),
            last: AtomicU64::new(1),
        }
    }

    fn end(&self, second: &Second) {
        second.closed.cancel();
        let session = second.session.clone();
        self.handle.spawn(async move { session.close().await });
    }

    fn get(&self, token: u64) -> Result<Arc<Second>, HostError> {
        let found = self.open.lock().get(&token).cloned();
        found.ok_or_else(|| HostError::new("This AgentSession was disposed"))
    }

    /// What is JSON already; `None` if it is something else.
    pub fn text(&self, method: &str, args: &str) -> Option<Result<String, HostError>> {
        let of = |args| parse::<Of>(method, args);
        Some(match method {
            "child.entriesSince" => of(args).and_then(|of| {
                let second = self.get(of.token)?;
                Ok(second.session.since(&of.id, of.since))
            }),
            "child.context" => of(args).and_then(|of| Ok(self.get(of.token)?.session.context())),
            _ => return None,
        })
    }

    /// `None` if it is none of ours.
    pub fn serve(&self, method: &str, args: &str) -> Option<BridgeResult> {
        let of = |args| parse::<Of>(method, args);
        Some(match method {
            "child.query" => of(args).and_then(|of| {
                let second = self.get(of.token)?;
                of.check_depth()?;
                let answer = second.session.ask(&of.action, &of.args);
                answer.map_err(|error| HostError::new(error.0))
            }),
            "child.startAction" => of(args).and_then(|of| self.begin(of)),
            "child.respond" => of(args).and_then(|of| {
                let second = self.get(of.token)?;
                second.calls.answer(of.call, of.value, of.error);
                Ok(Value::Null)
            }),
            "child.toolStarted" => of(args).and_then(|of| {
                self.get(of.token)?.calls.begun(of.call);
                Ok(Value::Null)
            }),
            "child.toolUpdate" => of(args).and_then(|of| {
                let second = self.get(of.token)?;
                second.calls.update(of.call, of.value);
                Ok(Value::Null)
            }),
            "child.setHooks" => parse::<HooksOf>(method, args).and_then(|of| {
                self.get(of.token)?.hooks.set(&of.set);
                Ok(Value::Null)
            }),
            "child.unloadExtensions" => self.sets.unload(&self.handle, method, args),
            "child.close" => of(args).map(|of| {
                if let Some(second) = self.open.lock().remove(&of.token) {
                    self.end(&second);
                }
                Value::Null
            }),
            _ => return None,
        })
    }

    /// Extensions for a session that is going to begin.
    pub async fn load(&self, actions: &dyn Actions, method: &str, args: &str) -> BridgeResult {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.sets.load(actions, number, method, args).await
    }

    pub async fn open(
        &self,
        host: &BridgeHost,
        actions: &dyn Actions,
        method: &str,
        args: &str,
    ) -> BridgeResult {
        let open: Open = parse(method, args)?;
        let models = open.options.registry.map(|number| host.registry_of(number));
        let models = models.transpose()?;
        let set = open.options.set.map(|number| {
            let set = self.sets.take(number);
            set.ok_or_else(|| HostError::new(format!("The extensions {number} are not there")))
        });
        let set = set.transpose()?;
        let sessions = &host.sessions;
        let session = open.session.map(|token| sessions.take(token)).transpose()?;
        let (news, received) = mpsc::channel(NEWS);
        let calls = Arc::new(Calls::new(news.clone()));
        let tool = |tool: CustomTool| Arc::new(JsTool::new(tool, calls.clone())) as Arc<dyn Tool>;
        let tools = open.custom_tools.into_iter().map(tool).collect();
        let hooks = Arc::new(SecondHooks::new(calls.clone()));
        let begin = SecondBegin {
            options: open.options,
            models,
            set,
            session,
            tools,
            hooks: hooks.clone(),
            news,
        };
        let session = actions.second_session(begin).await;
        let session = session.map_err(|error| HostError::new(error.0))?;
        let token = self.last.fetch_add(1, Ordering::Relaxed);
        let second = Second {
            session,
            news: tokio::sync::Mutex::new(received),
            hearing: Mutex::default(),
            queueing: Arc::default(),
            calls,
            hooks,
            begun: Mutex::default(),
            closed: CancellationToken::new(),
        };
        self.open.lock().insert(token, Arc::new(second));
        Ok(json!({ "token": token }))
    }

    /// The first step is taken at once: what JavaScript asks for in a row happens in a
    /// row, and shows in what it asks next. Returns a number for [`Self::act`].
    fn begin(&self, of: Of) -> BridgeResult {
        let second = self.get(of.token)?;
        of.check_depth()?;
        let session = second.session.clone();
        let queueing = second.queueing.clone();
        let bash = Bash::of(&of)?;
        let calls = second.calls.clone();
        let outputs = self.outputs.clone();
        let mut acting = Box::pin(async move {
            if let Some(bash) = bash {
                let by = Arc::new(JsCommands {
                    calls,
                    outputs,
                    operations: bash.operations,
                });
                return session
                    .bash(&bash.command, bash.exclude_from_context, by)
                    .await;
            }
            let _queueing = match of.action.as_str() {
                "queue" => Some(queueing.read_owned().await),
                _ => None,
            };
            session.act(&of.action, &of.args).await
        });
        let _in_tokio = self.handle.enter();
        let begun = match (&mut acting).now_or_never() {
            Some(answer) => Begun::Over(answer),
            None => Begun::UnderWay(self.handle.spawn(acting)),
        };
        let call = self.last.fetch_add(1, Ordering::Relaxed);
        second.begun.lock().insert(call, begun);
        Ok(json!(call))
    }

    pub async fn act(&self, method: &str, args: &str) -> BridgeResult {
        let of: Of = parse(method, args)?;
        let second = self.get(of.token)?;
        let begun = second.begun.lock().remove(&of.call);
        let acted = match begun {
            Some(Begun::Over(answer)) => Ok(answer),
            Some(Begun::UnderWay(acting)) => acting.await,
            None => return Err(HostError::new(format!("nothing has begun as {}", of.call))),
        };
        second.wait_drained().await;
        match acted {
            Ok(answer) => answer.map_err(|error| HostError::new(error.0)),
            Err(error) => Err(HostError::new(error.to_string())),
        }
    }

    /// At least one, until it is closed; then none.
    pub async fn next(&self, method: &str, args: &str) -> BridgeResult {
        let of: Of = parse(method, args)?;
        let Ok(second) = self.get(of.token) else {
            return Ok(json!([]));
        };
        let mut news = second.news.lock().await;
        loop {
            // Whoever asks for more has heard what there was.
            self.let_go_on(&second);
            let mut batch = Vec::new();
            tokio::select! {
                _ = news.recv_many(&mut batch, NEWS) => {}
                () = second.closed.cancelled() => {}
            }
            let ended = batch.is_empty();
            let mut told = Vec::with_capacity(batch.len());
            for one in batch {
                match one {
                    SecondNews::Heard(heard) => second.hearing.lock().push(heard),
                    one => told.push(one),
                }
            }
            if ended || !told.is_empty() {
                return to_value(told);
            }
        }
    }

    fn let_go_on(&self, second: &Second) {
        let waiting = std::mem::take(&mut *second.hearing.lock());
        if waiting.is_empty() {
            return;
        }
        let queueing = second.queueing.clone();
        // Beside this: what is queued makes news, which have to be fetched.
        self.handle.spawn(async move {
            drop(queueing.write().await);
            for heard in waiting {
                // It may have waited long enough.
                let _ = heard.send(());
            }
        });
    }
}

impl Drop for SecondSessions {
    fn drop(&mut self) {
        let open = std::mem::take(&mut *self.open.lock());
        for second in open.values() {
            self.end(second);
        }
    }
}

/// What the program makes one of.
pub struct SecondBegin {
    pub options: SecondOptions,
    /// What `registry` means.
    pub models: Option<Arc<ModelRegistry>>,
    /// What `set` means.
    pub set: Option<SecondSet>,
    /// In memory if there is none.
    pub session: Option<LooseSession>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub hooks: Arc<SecondHooks>,
    pub news: mpsc::Sender<SecondNews>,
}
