//! Interfaces for an extension that does the input and output of a built-in tool, for example on
//! another machine or in a sandbox. Paths, limits, matching and messages remain those of the
//! tool.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::command::process::{ProcessEnd, ProcessEvent};
use super::tool::{ABORT_GRACE, ToolError};

/// Number of output pieces that may wait.
const OUTPUT_QUEUE_LENGTH: usize = 64;

/// Files that an extension provides.
#[async_trait]
pub trait RemoteFiles: Send + Sync {
    /// Returns true if the extension provides this operation.
    fn offers(&self, name: &str) -> bool;

    /// Runs an operation. Bytes are `{ "base64": … }`; the error becomes that of the tool.
    async fn call(&self, name: &'static str, args: Value) -> Result<Value, ToolError>;
}

/// A shell that an extension provides.
#[async_trait]
pub trait RemoteCommands: Send + Sync {
    /// Runs a command to its end; its output goes to `output`. Returns `None` if there is no exit
    /// code. The errors `aborted` and `timeout:<seconds>` have a meaning. Must end soon after
    /// `cancel` fires.
    async fn exec(
        &self,
        command: RemoteCommand,
        output: mpsc::Sender<Vec<u8>>,
        cancel: CancellationToken,
    ) -> Result<Option<i32>, ToolError>;
}

#[derive(Clone, Debug)]
pub struct RemoteCommand {
    pub command: String,
    pub cwd: String,
    /// Timeout in seconds, as the model requested it.
    pub timeout: Option<f64>,
    /// Replaces the environment of the program.
    pub env: Option<Value>,
}

/// Runs [`RemoteFiles`] on threads that do file work; ends with the call.
#[derive(Clone)]
pub(crate) struct RemoteAccess {
    operations: Arc<dyn RemoteFiles>,
    cancel: CancellationToken,
    handle: Handle,
}

impl RemoteAccess {
    /// Makes a handle. Must be called inside a tokio runtime.
    pub(crate) fn new(operations: &Arc<dyn RemoteFiles>, cancel: &CancellationToken) -> Self {
        Self {
            operations: operations.clone(),
            cancel: cancel.clone(),
            handle: Handle::current(),
        }
    }

    pub(crate) fn offers(&self, name: &str) -> bool {
        self.operations.offers(name)
    }

    pub(crate) fn call(&self, name: &'static str, args: Value) -> Result<Value, ToolError> {
        let work = async {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(ToolError::aborted()),
                answer = self.operations.call(name, args) => answer,
            }
        };
        self.handle.block_on(work)
    }

    /// Runs an operation that tests a property of a path.
    pub(crate) fn test(&self, name: &'static str, path: &Path) -> Result<bool, ToolError> {
        let answer = self.call(name, json!([path.to_string_lossy()]))?;
        Ok(answer.as_bool().unwrap_or(false))
    }

    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>, ToolError> {
        let answer = self.call("readFile", json!([path.to_string_lossy()]))?;
        bytes(&answer)
            .ok_or_else(|| ToolError::new("readFile of the tool's operations gave no file content"))
    }
}

fn bytes(answer: &Value) -> Option<Vec<u8>> {
    match answer {
        Value::String(text) => Some(text.clone().into_bytes()),
        other => STANDARD.decode(other.get("base64")?.as_str()?).ok(),
    }
}

/// A command that an extension runs, with the interface of a local one.
pub(crate) struct RunningRemoteCommand {
    output: mpsc::Receiver<Vec<u8>>,
    ended: oneshot::Receiver<Result<Option<i32>, ToolError>>,
    piece: Vec<u8>,
    /// The result of a command that has ended; some of its output may be unread.
    result: Option<Result<Option<i32>, ToolError>>,
    cancel: CancellationToken,
}

impl RunningRemoteCommand {
    pub(crate) fn start(
        commands: Arc<dyn RemoteCommands>,
        command: RemoteCommand,
        cancel: CancellationToken,
    ) -> Self {
        let (sender, output) = mpsc::channel(OUTPUT_QUEUE_LENGTH);
        let (end, ended) = oneshot::channel();
        let stop = cancel.clone();
        tokio::spawn(async move {
            let running = commands.exec(command, sender, stop.clone());
            tokio::pin!(running);
            let result = tokio::select! {
                result = &mut running => result,
                () = stop.cancelled() => tokio::time::timeout(ABORT_GRACE, running)
                    .await
                    .unwrap_or_else(|_| Err(ToolError::new("aborted"))),
            };
            // The receiver may be gone.
            let _ = end.send(result);
        });
        Self {
            output,
            ended,
            piece: Vec::new(),
            result: None,
            cancel,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<ProcessEvent<'_>, ToolError> {
        // The extension may keep the sender alive after the command has ended.
        if self.result.is_none() {
            tokio::select! {
                biased;
                Some(piece) = self.output.recv() => {
                    self.piece = piece;
                    return Ok(ProcessEvent::Output(&self.piece));
                }
                result = &mut self.ended => {
                    let lost = || Err(ToolError::new("Lost contact with the command"));
                    self.result = Some(result.unwrap_or_else(|_| lost()));
                }
            }
        }
        if let Ok(piece) = self.output.try_recv() {
            self.piece = piece;
            return Ok(ProcessEvent::Output(&self.piece));
        }
        let result = self.result.take().unwrap_or(Ok(None));
        let ended = match result {
            _ if self.cancel.is_cancelled() => ProcessEnd::Aborted,
            Ok(Some(code)) => ProcessEnd::Exited(code),
            Ok(None) => ProcessEnd::WithoutCode,
            Err(error) if error.0 == "aborted" => ProcessEnd::Aborted,
            Err(error) if error.0.starts_with("timeout:") => ProcessEnd::TimedOut,
            Err(error) => return Err(error),
        };
        Ok(ProcessEvent::Ended(ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(&'static str, Result<Option<i32>, &'static str>);

    #[async_trait]
    impl RemoteCommands for Fixed {
        async fn exec(
            &self,
            _: RemoteCommand,
            output: mpsc::Sender<Vec<u8>>,
            _: CancellationToken,
        ) -> Result<Option<i32>, ToolError> {
            let _ = output.send(self.0.into()).await;
            self.1.map_err(ToolError::new)
        }
    }

    async fn ended(result: Result<Option<i32>, &'static str>) -> Result<ProcessEnd, ToolError> {
        let command = RemoteCommand {
            command: "x".into(),
            cwd: "/".into(),
            timeout: None,
            env: None,
        };
        let commands = Arc::new(Fixed("output_text", result));
        let mut running = RunningRemoteCommand::start(commands, command, CancellationToken::new());
        let mut output_text = Vec::new();
        loop {
            match running.next().await? {
                ProcessEvent::Output(bytes) => output_text.extend_from_slice(bytes),
                ProcessEvent::Ended(how) => {
                    assert_eq!(output_text, b"output_text");
                    return Ok(how);
                }
            }
        }
    }

    #[tokio::test]
    async fn the_ways_to_end() {
        assert_eq!(ended(Ok(Some(3))).await, Ok(ProcessEnd::Exited(3)));
        assert_eq!(ended(Ok(None)).await, Ok(ProcessEnd::WithoutCode));
        assert_eq!(ended(Err("aborted")).await, Ok(ProcessEnd::Aborted));
        assert_eq!(ended(Err("timeout:2")).await, Ok(ProcessEnd::TimedOut));
        let error = ToolError::new("no such host");
        assert_eq!(ended(Err("no such host")).await, Err(error));
    }
}
