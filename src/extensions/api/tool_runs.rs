//! Runs built-in tools for an extension (`createReadTool` and others) and the shell
//! (`createLocalBashOperations`). JavaScript starts a run and fetches its events. Requests
//! for operations that the extension brings are among the events, so nothing here calls
//! into JavaScript.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::bridge::{BridgeResult, parse, to_value};
use pi_tools::ToolOptions;
use pi_tools::command::run::{CommandEnd, run_command};
use pi_tools::remote::{RemoteCommand, RemoteCommands, RemoteFiles};
use pi_tools::tool::{ExecutionMode, Queueing, Tool, ToolError, ToolInvocation, ToolOutput};

/// Capacity of a run's event channel, and maximum number of events per fetch.
const EVENT_CAPACITY: usize = 64;

pub struct ToolRuns {
    handle: Handle,
    open: Mutex<HashMap<u64, Arc<OpenRun>>>,
}

struct OpenRun {
    events: tokio::sync::Mutex<mpsc::Receiver<RunEvent>>,
    remote: Arc<RemoteOperations>,
    cancel: CancellationToken,
}

/// Aborts the command when the extension's isolate ends.
impl Drop for OpenRun {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum RunEvent {
    Update {
        output: ToolOutput,
    },
    /// Output of the shell, in base64.
    Data {
        data: String,
    },
    Ask {
        id: u64,
        operation: &'static str,
        args: Value,
    },
    Done {
        output: Value,
    },
    Failed {
        error: String,
    },
}

impl RunEvent {
    fn is_last(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Failed { .. })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartArgs {
    token: u64,
    name: String,
    #[serde(default)]
    call_id: String,
    cwd: PathBuf,
    args: Value,
    /// Names of operations that the extension brings; `None` if it brings none.
    #[serde(default)]
    offers: Option<Vec<String>>,
    #[serde(default)]
    auto_resize_images: Option<bool>,
    #[serde(default)]
    env: Option<HashMap<String, String>>,
    /// Shell to use instead of the configured one.
    #[serde(default)]
    shell_path: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShellArgs {
    /// As in [`StartArgs`].
    #[serde(default)]
    shell_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct RunArgs {
    token: u64,
    #[serde(default)]
    id: u64,
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    data: String,
}

#[derive(Deserialize)]
struct NameArgs {
    name: String,
}

#[derive(Deserialize)]
struct PrepareArgs {
    name: String,
    args: Value,
}

/// Arguments of the shell.
#[derive(Deserialize)]
struct ExecArgs {
    command: String,
    timeout: Option<f64>,
}

impl ToolRuns {
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            open: Mutex::default(),
        }
    }

    /// Serves synchronous methods; `None` for other methods. `options` are the session's.
    pub fn serve(
        &self,
        method: &str,
        args: &str,
        options: impl FnOnce() -> ToolOptions,
    ) -> Option<BridgeResult> {
        Some(match method {
            "tools.describe" => {
                parse::<NameArgs>(method, args).and_then(|args| describe(&args.name))
            }
            "tools.prepare" => parse::<PrepareArgs>(method, args).and_then(|args| {
                let tool = builtin(&args.name, PathBuf::new(), ToolOptions::default())?;
                // Built-in tools only inspect the arguments, so this does not block.
                let prepared = futures::executor::block_on(tool.prepare_arguments(args.args));
                prepared.map_err(|error| HostError::new(error.0))
            }),
            "tools.shell" => parse::<ShellArgs>(method, args)
                .and_then(|own| shell(&options().with_shell(own.shell_path))),
            "tools.start" => self.start(method, args, options()),
            "tools.respond" => parse::<RunArgs>(method, args).map(|args| {
                if let Some(run) = self.run(args.token) {
                    run.remote.respond(args.id, args.value, args.error);
                }
                Value::Null
            }),
            "tools.abort" => parse::<RunArgs>(method, args).map(|args| {
                if let Some(run) = self.run(args.token) {
                    run.cancel.cancel();
                }
                Value::Null
            }),
            "tools.close" => parse::<RunArgs>(method, args).map(|args| {
                self.open.lock().remove(&args.token);
                Value::Null
            }),
            _ => return None,
        })
    }

    fn run(&self, token: u64) -> Option<Arc<OpenRun>> {
        self.open.lock().get(&token).cloned()
    }

    fn start(&self, method: &str, args: &str, options: ToolOptions) -> BridgeResult {
        let start: StartArgs = parse(method, args)?;
        let mut options = options.with_shell(start.shell_path);
        let (sender, events) = mpsc::channel(EVENT_CAPACITY);
        let cancel = CancellationToken::new();
        let remote = Arc::new(RemoteOperations {
            offers: start.offers.clone().unwrap_or_default(),
            events: sender.clone(),
            last: AtomicU64::new(0),
            waiting: Mutex::default(),
            outputs: Mutex::default(),
        });
        // The user's setting for pi's own tool does not apply to this one.
        options.command_prefix = None;
        options.auto_resize_images = start.auto_resize_images.unwrap_or(true);
        let run = OpenRun {
            events: tokio::sync::Mutex::new(events),
            remote: remote.clone(),
            cancel: cancel.clone(),
        };
        if start.name == "exec" {
            let exec: ExecArgs = parse_value(start.args)?;
            let mut shell = options.shell();
            shell.env = start.env;
            self.handle.spawn(async move {
                let event = execute(exec, start.cwd, shell, &sender, cancel).await;
                // The receiver may be gone.
                let _ = sender.send(event).await;
            });
        } else {
            let remote_operations = start.offers.is_some().then_some(remote);
            let tool = make_tool(
                &start.name,
                start.cwd,
                options,
                start.env,
                remote_operations,
            )?;
            let latest = sender.clone();
            let call = ToolInvocation {
                id: start.call_id,
                args: start.args,
                cancel,
                updates: Arc::new(move |output| {
                    // Each update replaces the previous one, so updates that are not
                    // fetched are dropped.
                    let _ = latest.try_send(RunEvent::Update { output });
                }),
                started: None,
                unreadable: None,
            };
            let queueing = tool.queueing();
            let mut work = Box::pin(async move {
                let event = match tool.execute(call).await {
                    Ok(output) => RunEvent::Done {
                        output: json!(output),
                    },
                    Err(error) => RunEvent::Failed { error: error.0 },
                };
                let _ = sender.send(event).await;
            });
            // Enters the queue of its file before this call returns.
            let _entered = self.handle.enter();
            let early = match queueing {
                Queueing::AtOnce => (&mut work).now_or_never(),
                Queueing::Never | Queueing::Remote { .. } => None,
            };
            if early.is_none() {
                self.handle.spawn(work);
            }
        }
        self.open.lock().insert(start.token, Arc::new(run));
        Ok(Value::Null)
    }

    /// Returns at least one event; none when the run is over.
    pub async fn next_events(&self, method: &str, args: &str) -> BridgeResult {
        let RunArgs { token, .. } = parse(method, args)?;
        let Some(run) = self.run(token) else {
            return Ok(json!([]));
        };
        let mut batch = Vec::new();
        run.events
            .lock()
            .await
            .recv_many(&mut batch, EVENT_CAPACITY)
            .await;
        if batch.last().is_none_or(RunEvent::is_last) {
            self.open.lock().remove(&token);
        }
        to_value(batch)
    }

    /// Sends output of a command that the extension runs; waits if the tool is slow.
    pub async fn send_data(&self, method: &str, args: &str) -> BridgeResult {
        let args: RunArgs = parse(method, args)?;
        let bytes = decode(&args.data)?;
        let output = self.run(args.token);
        let output = output.and_then(|run| run.remote.outputs.lock().get(&args.id).cloned());
        if let Some(output) = output {
            // The tool may have ended.
            let _ = output.send(bytes).await;
        }
        Ok(Value::Null)
    }
}

pub(crate) fn decode(data: &str) -> Result<Vec<u8>, HostError> {
    let decoded = STANDARD.decode(data);
    decoded.map_err(|error| HostError::new(error.to_string()))
}

/// Operations that run in the extension, with their open requests.
struct RemoteOperations {
    offers: Vec<String>,
    events: mpsc::Sender<RunEvent>,
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, ToolError>>>>,
    outputs: Mutex<HashMap<u64, mpsc::Sender<Vec<u8>>>>,
}

impl RemoteOperations {
    fn respond(&self, id: u64, value: Option<Value>, error: Option<String>) {
        if let Some(waiting) = self.waiting.lock().remove(&id) {
            let response = match error {
                Some(error) => Err(ToolError(error)),
                None => Ok(value.unwrap_or_default()),
            };
            // The caller may have been aborted.
            let _ = waiting.send(response);
        }
    }

    async fn request(
        &self,
        id: u64,
        operation: &'static str,
        args: Value,
    ) -> Result<Value, ToolError> {
        let (sender, response) = oneshot::channel();
        self.waiting.lock().insert(id, sender);
        let request = RunEvent::Ask {
            id,
            operation,
            args,
        };
        let gone = || ToolError::new(format!("The extension that offers {operation} is gone"));
        self.events.send(request).await.map_err(|_| gone())?;
        response.await.map_err(|_| gone())?
    }

    fn next_id(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed)
    }
}

#[async_trait]
impl RemoteFiles for RemoteOperations {
    fn offers(&self, name: &str) -> bool {
        self.offers.iter().any(|offer| offer == name)
    }

    async fn call(&self, name: &'static str, args: Value) -> Result<Value, ToolError> {
        self.request(self.next_id(), name, args).await
    }
}

#[async_trait]
impl RemoteCommands for RemoteOperations {
    async fn exec(
        &self,
        command: RemoteCommand,
        output: mpsc::Sender<Vec<u8>>,
        _cancel: CancellationToken,
    ) -> Result<Option<i32>, ToolError> {
        let id = self.next_id();
        self.outputs.lock().insert(id, output);
        let RemoteCommand {
            command,
            cwd,
            timeout,
            env,
        } = command;
        let args = json!([command, cwd, { "timeout": timeout, "env": env }]);
        let ended = self.request(id, "exec", args).await;
        self.outputs.lock().remove(&id);
        Ok(exit_code(&ended?))
    }
}

/// Reads the exit code from the result of an extension's `exec`.
pub(crate) fn exit_code(ended: &Value) -> Option<i32> {
    let code = ended.get("exitCode")?.as_i64()?;
    Some(i32::try_from(code).unwrap_or(1))
}

fn builtin(name: &str, cwd: PathBuf, options: ToolOptions) -> Result<Arc<dyn Tool>, HostError> {
    pi_tools::builtin(cwd, options)
        .into_iter()
        .find(|tool| tool.spec().name == name)
        .ok_or_else(|| HostError::new(format!("There is no built-in tool \"{name}\"")))
}

fn make_tool(
    name: &str,
    cwd: PathBuf,
    options: ToolOptions,
    env: Option<HashMap<String, String>>,
    remote_operations: Option<Arc<RemoteOperations>>,
) -> Result<Arc<dyn Tool>, HostError> {
    if name == "bash" {
        let mut shell = options.shell_of_model();
        shell.env = env;
        let tool = pi_tools::bash::BashTool::new(cwd, shell);
        return Ok(match remote_operations {
            Some(remote_operations) => Arc::new(tool.with_commands(remote_operations)),
            None => Arc::new(tool),
        });
    }
    let Some(remote_operations) = remote_operations else {
        return builtin(name, cwd, options);
    };
    Ok(match name {
        "read" => {
            let tool = pi_tools::read::ReadTool::new(cwd, options.auto_resize_images);
            Arc::new(tool.with_operations(remote_operations))
        }
        "edit" => Arc::new(pi_tools::edit::EditTool::new(cwd).with_operations(remote_operations)),
        "write" => {
            Arc::new(pi_tools::write::WriteTool::new(cwd).with_operations(remote_operations))
        }
        "grep" => Arc::new(pi_tools::grep::GrepTool::new(cwd).with_operations(remote_operations)),
        "find" => Arc::new(pi_tools::find::FindTool::new(cwd).with_operations(remote_operations)),
        "ls" => Arc::new(pi_tools::ls::LsTool::new(cwd).with_operations(remote_operations)),
        _ => return builtin(name, cwd, options),
    })
}

fn describe(name: &str) -> BridgeResult {
    let tool = builtin(name, PathBuf::new(), ToolOptions::default())?;
    let spec = tool.spec();
    let sequential = tool.execution_mode() == ExecutionMode::Sequential;
    let mut described = json!({
        "name": spec.name,
        "label": tool.label(),
        "description": spec.description,
        "parameters": spec.parameters,
        "promptGuidelines": tool.prompt_guidelines(),
    });
    if let Some(snippet) = tool.prompt_snippet() {
        described["promptSnippet"] = json!(snippet);
    }
    if sequential {
        described["executionMode"] = json!("sequential");
    }
    Ok(described)
}

fn shell(options: &ToolOptions) -> BridgeResult {
    let shell = options.shell();
    let program = shell.program().map_err(|error| HostError::new(error.0))?;
    let path = shell.search_path().or_else(|| std::env::var_os("PATH"));
    Ok(json!({
        "shell": program.to_string_lossy(),
        "args": ["-c"],
        "path": path.unwrap_or_default().to_string_lossy(),
        "session": options.session_variables.iter().cloned().collect::<HashMap<_, _>>(),
        "unattended": shell.variables.into_iter().collect::<HashMap<_, _>>(),
    }))
}

fn parse_value<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, HostError> {
    serde_json::from_value(value).map_err(|error| HostError {
        class: "TypeError",
        message: format!("exec: {error}"),
    })
}

async fn execute(
    exec: ExecArgs,
    cwd: PathBuf,
    shell: pi_tools::command::shell::ShellOptions,
    events: &mpsc::Sender<RunEvent>,
    cancel: CancellationToken,
) -> RunEvent {
    let seconds = exec.timeout.filter(|seconds| *seconds > 0.0);
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let (sender, mut output) = mpsc::channel::<Vec<u8>>(EVENT_CAPACITY);
    let running = run_command(&exec.command, &cwd, &shell, limit, sender, cancel);
    let forward = async {
        while let Some(bytes) = output.recv().await {
            let data = STANDARD.encode(bytes);
            if events.send(RunEvent::Data { data }).await.is_err() {
                return;
            }
        }
    };
    let (ended, ()) = tokio::join!(running, forward);
    match ended {
        Ok(CommandEnd::Exited(code)) => RunEvent::Done {
            output: json!({ "exitCode": code }),
        },
        Ok(CommandEnd::Aborted) => RunEvent::Failed {
            error: "aborted".into(),
        },
        Ok(CommandEnd::TimedOut) => RunEvent::Failed {
            error: format!("timeout:{}", seconds.unwrap_or_default()),
        },
        Err(error) => RunEvent::Failed { error: error.0 },
    }
}
