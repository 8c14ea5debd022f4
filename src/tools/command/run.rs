//! Runs one shell command: of the model through the `bash` tool, or of the user with `!` and over
//! RPC. Output of the user's commands is cleaned for the screen.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pi_base::secrets::StreamRedactor;
use regex::Regex;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::output::CommandOutput;
use super::process::{GroupProcess, ProcessEnd, ProcessEvent};
use super::shell::ShellOptions;
use crate::remote::{RemoteCommand, RemoteCommands, RunningRemoteCommand};
use crate::text::utf8_decoder::Utf8Decoder;
use crate::tool::ToolError;

/// The data of RPC's response to `bash`, and of the stored message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserCommandResult {
    pub output: String,
    /// `None` if the command was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default)]
    pub cancelled: bool,
    #[serde(default)]
    pub truncated: bool,
    /// File with the whole output, if it was long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
}

/// Runs a command of the user, locally or through `remote`. `updates` gets the cleaned text as it
/// comes; the command waits for a slow reader.
pub async fn run_user_command(
    command: &str,
    cwd: &Path,
    options: &ShellOptions,
    remote: Option<Arc<dyn RemoteCommands>>,
    cancel: CancellationToken,
    updates: Option<mpsc::Sender<String>>,
) -> Result<UserCommandResult, ToolError> {
    let ends = cancel.clone();
    let mut output = CommandOutput::default();
    let mut cleaner = Cleaner::default();
    let mut redactor = StreamRedactor::default();
    let mut ended = ProcessEnd::Aborted;
    let send_update = async |text: &str| {
        if let Some(updates) = &updates {
            tokio::select! {
                // Sending fails if the reader is gone; the command continues.
                _ = updates.send(text.to_owned()) => {}
                () = ends.cancelled() => {}
            }
        }
    };
    if !cancel.is_cancelled() {
        let mut process = match remote {
            Some(commands) => Running::remote(
                commands,
                RemoteCommand {
                    command: options.script(command),
                    cwd: cwd.display().to_string(),
                    timeout: None,
                    env: None,
                },
                cancel,
            ),
            None => Running::Local(Box::new(start(command, cwd, options, None, cancel)?)),
        };
        loop {
            match process.next().await? {
                ProcessEvent::Output(bytes) => {
                    let text = cleaner.push(&redactor.push(bytes));
                    if !text.is_empty() {
                        send_update(&text).await;
                        output.push(text.as_bytes()).await;
                    }
                }
                ProcessEvent::Ended(how) => {
                    ended = how;
                    break;
                }
            }
        }
    }
    let mut rest = cleaner.push(&redactor.finish());
    rest.push_str(&cleaner.finish());
    if !rest.is_empty() {
        send_update(&rest).await;
        output.push(rest.as_bytes()).await;
    }
    let shown = output.finish().await;
    Ok(UserCommandResult {
        output: shown.content,
        exit_code: match ended {
            ProcessEnd::Exited(code) => Some(code),
            ProcessEnd::TimedOut | ProcessEnd::Aborted | ProcessEnd::WithoutCode => None,
        },
        cancelled: ended == ProcessEnd::Aborted,
        truncated: shown.truncated,
        full_output_path: output.log_path().map(|path| path.display().to_string()),
    })
}

/// How a command of an extension ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    Exited(i32),
    TimedOut,
    Aborted,
}

/// Runs a command; `output` gets its output as it comes.
pub async fn run_command(
    command: &str,
    cwd: &Path,
    options: &ShellOptions,
    time_limit: Option<Duration>,
    output: mpsc::Sender<Vec<u8>>,
    cancel: CancellationToken,
) -> Result<CommandEnd, ToolError> {
    if cancel.is_cancelled() {
        return Ok(CommandEnd::Aborted);
    }
    let mut process = start(command, cwd, options, time_limit, cancel)?;
    loop {
        match process.next().await.map_err(lost)? {
            ProcessEvent::Output(bytes) => {
                // Sending fails if the reader is gone; the command continues.
                let _ = output.send(bytes.to_vec()).await;
            }
            ProcessEvent::Ended(ProcessEnd::Exited(code)) => return Ok(CommandEnd::Exited(code)),
            ProcessEvent::Ended(ProcessEnd::TimedOut) => return Ok(CommandEnd::TimedOut),
            ProcessEvent::Ended(ProcessEnd::Aborted | ProcessEnd::WithoutCode) => {
                return Ok(CommandEnd::Aborted);
            }
        }
    }
}

pub(crate) fn start(
    command: &str,
    cwd: &Path,
    options: &ShellOptions,
    time_limit: Option<Duration>,
    cancel: CancellationToken,
) -> Result<GroupProcess, ToolError> {
    let shell = options.program()?;
    if !cwd.is_dir() {
        return Err(ToolError::new(format!(
            "Working directory does not exist: {}\nCannot execute bash commands.",
            cwd.display()
        )));
    }
    let mut process = Command::new(&shell);
    process
        .arg("-c")
        .arg(options.script(command))
        .current_dir(cwd);
    if let Some(env) = &options.env {
        process.env_clear().envs(env);
    }
    if options.env.is_none() {
        for name in &options.hidden_variables {
            process.env_remove(name);
        }
        let variables = options.variables.iter();
        process.envs(variables.map(|(name, value)| (name, value)));
    }
    if let Some(path) = options.search_path().filter(|_| options.env.is_none()) {
        process.env("PATH", path);
    }
    GroupProcess::spawn(process, time_limit, cancel).map_err(|error| {
        ToolError::new(format!(
            "Cannot run the command with the shell {}: {error}",
            shell.display()
        ))
    })
}

/// A running command, local or run by an extension.
pub(crate) enum Running {
    Local(Box<GroupProcess>),
    Remote(RunningRemoteCommand),
}

impl Running {
    pub(crate) fn remote(
        commands: Arc<dyn RemoteCommands>,
        command: RemoteCommand,
        cancel: CancellationToken,
    ) -> Self {
        Self::Remote(RunningRemoteCommand::start(commands, command, cancel))
    }

    /// Waits for the next event. Must not be called after [`ProcessEvent::Ended`].
    pub(crate) async fn next(&mut self) -> Result<ProcessEvent<'_>, ToolError> {
        match self {
            Self::Local(process) => process.next().await.map_err(lost),
            Self::Remote(process) => process.next().await,
        }
    }

    /// Like [`GroupProcess::interactive_wait`]; `None` for a command that an extension runs.
    pub(crate) fn interactive_wait(&self) -> Option<&str> {
        match self {
            Self::Local(process) => process.interactive_wait(),
            Self::Remote(_) => None,
        }
    }
}

fn lost(error: std::io::Error) -> ToolError {
    ToolError::new(format!("Lost contact with the command: {error}"))
}

/// Converts bytes to text without escape sequences, carriage returns and characters that would
/// disturb a terminal.
#[derive(Default)]
struct Cleaner {
    decoder: Utf8Decoder,
    /// A possible start of an escape sequence.
    pending: String,
}

impl Cleaner {
    /// Maximum length of an escape sequence; longer ones are text.
    const MAX_PENDING: usize = 1024;

    fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = std::mem::take(&mut self.pending);
        self.decoder.push(bytes, &mut text);
        let mut text = ANSI.replace_all(&text, "").into_owned();
        if let Some(start) = text.find(['\u{1b}', '\u{9b}', '\u{9d}'])
            && text.len() - start <= Self::MAX_PENDING
        {
            self.pending = text.split_off(start);
        }
        clean(&text)
    }

    fn finish(&mut self) -> String {
        let mut text = std::mem::take(&mut self.pending);
        self.decoder.finish(&mut text);
        clean(&text)
    }
}

/// Matches escape sequences: the palette of the Linux console, which has no terminator, then
/// those of ECMA-48: control strings such as a window title, up to their terminator; control
/// sequences; short escapes.
static ANSI: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"\x1b\](?:P[0-9A-Fa-f]{7}|R)(?:\x07|\x1b\\|\u{9c})?",
        r"|(?:\x1b\]|\u{9d})[^\x07\x18\x1a\x1b\u{80}-\u{9f}]*(?:\x07|\x1b\\|\u{9c})",
        r"|(?:\x1b[PX^_k]|[\u{90}\u{98}\u{9e}\u{9f}])[^\x18\x1a\x1b\u{80}-\u{9f}]*(?:\x1b\\|\u{9c})",
        r"|(?:\x1b\[|\u{9b})[0-?]*[ -/]*[@-~]",
        r"|\x1b(?:[ -/]+[0-~]|[0-9A-PR-TZcf-oq-uy=><~|}])",
    ))
    .expect("a constant pattern")
});

fn clean(text: &str) -> String {
    ANSI.replace_all(text, "")
        .chars()
        .filter(|sign| match sign {
            '\t' | '\n' => true,
            '\0'..='\u{1f}' | '\u{fff9}'..='\u{fffb}' => false,
            _ => true,
        })
        .collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    async fn run(command: &str) -> UserCommandResult {
        let options = ShellOptions::default();
        let cancel = CancellationToken::new();
        run_user_command(command, Path::new("/"), &options, None, cancel, None)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn output_is_fit_for_a_screen() {
        let command = r"printf '\033[1;31mred\033[0m\r\n\033]0;title\007a\tb\000\007\n'; exit 3";
        assert_eq!(
            run(command).await,
            UserCommandResult {
                output: "red\na\tb\n".to_owned(),
                exit_code: Some(3),
                cancelled: false,
                truncated: false,
                full_output_path: None,
            }
        );
    }

    #[tokio::test]
    async fn long_output_is_cut_and_saved_whole() {
        let result = run("seq 1 30000").await;
        let path = result.full_output_path.unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(whole.lines().count(), 30000);
        assert_eq!(result.output.lines().count(), 1999);
        assert!(result.truncated && whole.ends_with(&result.output));
    }

    #[tokio::test]
    async fn a_cancelled_command_keeps_its_output() {
        let cancel = CancellationToken::new();
        let options = ShellOptions::default();
        let (updates, mut received) = mpsc::channel(1);
        let run = run_user_command(
            "echo hello; sleep 60",
            Path::new("/"),
            &options,
            None,
            cancel.clone(),
            Some(updates),
        );
        let read_first = async {
            let seen = received.recv().await;
            cancel.cancel();
            seen
        };
        let (result, seen) = futures::future::join(run, read_first).await;
        let result = result.unwrap();
        assert_eq!(
            serde_json::to_value(result).unwrap(),
            serde_json::json!({"output": "hello\n", "cancelled": true, "truncated": false})
        );
        assert_eq!(seen.as_deref(), Some("hello\n"));
    }

    #[test]
    fn sequences_cut_between_two_reads_vanish_too() {
        let bytes = "a\u{1b}[1;31mb\u{1b}]0;t\u{1b}\\c\u{1b}7d".as_bytes();
        for cut in 0..=bytes.len() {
            let mut cleaner = Cleaner::default();
            let mut text = cleaner.push(&bytes[..cut]);
            text += &cleaner.push(&bytes[cut..]);
            text += &cleaner.finish();
            assert_eq!(text, "abcd", "cut at {cut}");
        }
    }

    #[tokio::test]
    async fn no_working_directory() {
        let result = run_user_command(
            "true",
            Path::new("/no/such/place"),
            &ShellOptions::default(),
            None,
            CancellationToken::new(),
            None,
        )
        .await;
        assert_eq!(
            result,
            Err(ToolError::new(
                "Working directory does not exist: /no/such/place\nCannot execute bash commands."
            ))
        );
    }
}
