//! The `bash` tool: the model runs a shell command.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::arguments;
use super::command::output::CommandOutput;
use super::command::process::{ProcessEnd, ProcessEvent};
use super::command::run::{Running, start};
use super::command::shell::ShellOptions;
use super::remote::{RemoteCommand, RemoteCommands};
use super::text::truncate::{MAX_BYTES, MAX_LINES, TruncatedBy, Truncation, format_size};
use super::tool::{Tool, ToolError, ToolInvocation, ToolOutput};
use pi_ai::message::ContentBlock;
use pi_ai::stream::ToolSpec;

/// Shortest interval between two updates. It looks smooth and limits the number of updates from
/// commands with much output.
const UPDATE_INTERVAL: Duration = Duration::from_millis(50);

pub struct BashTool {
    spec: ToolSpec,
    cwd: PathBuf,
    shell: ShellOptions,
    remote: Option<Arc<dyn RemoteCommands>>,
}

#[derive(Deserialize)]
struct Args {
    command: String,
    timeout: Option<f64>,
}

impl BashTool {
    pub fn new(cwd: PathBuf, shell: ShellOptions) -> Self {
        let spec = ToolSpec {
            name: "bash".to_owned(),
            description: format!(
                "Run a bash command in the current working directory and get its stdout and \
                 stderr. Long output is cut to its last {MAX_LINES} lines or {}KB, whichever limit \
                 is reached first; the full output is then kept in a temporary file. A timeout in \
                 seconds can be given.",
                MAX_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {
                        "type": "string",
                        "description": "The bash command to run",
                    },
                    "timeout": {
                        "type": "number",
                        "description": "Seconds after which the command is killed (optional; \
                                        there is no timeout by default)",
                    },
                },
                "required": ["command"],
            }),
        };
        Self {
            spec,
            cwd,
            shell,
            remote: None,
        }
    }

    /// Runs the tool's commands with `commands`, for example on another machine.
    pub fn with_commands(mut self, commands: Arc<dyn RemoteCommands>) -> Self {
        self.remote = Some(commands);
        self
    }

    fn start(
        &self,
        args: &Args,
        time_limit: Option<Duration>,
        cancel: CancellationToken,
    ) -> Result<Running, ToolError> {
        let Some(commands) = &self.remote else {
            let here = start(&args.command, &self.cwd, &self.shell, time_limit, cancel)?;
            return Ok(Running::Local(Box::new(here)));
        };
        let command = RemoteCommand {
            command: self.shell.script(&args.command),
            cwd: self.cwd.display().to_string(),
            timeout: args.timeout,
            env: self.shell.env.as_ref().map(|env| json!(env)),
        };
        Ok(Running::remote(commands.clone(), command, cancel))
    }
}

#[async_trait]
impl Tool for BashTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt_snippet(&self) -> Option<&str> {
        Some("Run bash commands (ls, grep, find and so on)")
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args: Args = arguments::parse("bash", call.args)?;
        (call.updates)(ToolOutput::default());
        let time_limit = args
            .timeout
            .filter(|seconds| *seconds > 0.0)
            // A time that does not fit into a `Duration` means no limit.
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());

        let mut output = CommandOutput::default();
        let mut waited = None;
        let ended = if call.cancel.is_cancelled() {
            ProcessEnd::Aborted
        } else {
            let mut process = self.start(&args, time_limit, call.cancel)?;
            let mut last_update: Option<Instant> = None;
            let mut update_due: Option<Instant> = None;
            let ended = loop {
                let due = update_due;
                tokio::select! {
                    event = process.next() => match event? {
                        ProcessEvent::Output(bytes) => {
                            output.push(bytes).await;
                            update_due = Some(match last_update {
                                Some(last) => last + UPDATE_INTERVAL,
                                None => Instant::now(),
                            });
                        }
                        ProcessEvent::Ended(how) => break how,
                    },
                    () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)),
                        if due.is_some() => {}
                }
                if update_due.is_some_and(|due| due <= Instant::now()) {
                    (call.updates)(partial(&output));
                    last_update = Some(Instant::now());
                    update_due = None;
                }
            };
            waited = process.interactive_wait().map(str::to_owned);
            ended
        };
        let shown = output.finish().await;
        let text = with_notice(&shown, &output);
        let after = |text: String, line: String| {
            let line = match &waited {
                Some(waited) => format!("{line}\n{waited}"),
                None => line,
            };
            match text.is_empty() {
                true => ToolError(line),
                false => ToolError(format!("{text}\n\n{line}")),
            }
        };
        match ended {
            ProcessEnd::Aborted => Err(after(text, "Command aborted".to_owned())),
            ProcessEnd::TimedOut => Err(after(
                text,
                format!(
                    "Command timed out after {} seconds",
                    arguments::number(args.timeout.unwrap_or_default())
                ),
            )),
            ProcessEnd::Exited(_) | ProcessEnd::WithoutCode => {
                let text = match text.is_empty() {
                    true => "(no output)".to_owned(),
                    false => text,
                };
                if let ProcessEnd::Exited(code) = ended
                    && code != 0
                {
                    return Err(after(text, format!("Command exited with code {code}")));
                }
                Ok(ToolOutput {
                    content: vec![ContentBlock::text(text)],
                    details: shown.truncated.then(|| details(&shown, &output)),
                    ..ToolOutput::default()
                })
            }
        }
    }
}

fn partial(output: &CommandOutput) -> ToolOutput {
    let shown = output.shown();
    ToolOutput {
        details: Some(details(&shown, output)),
        content: vec![ContentBlock::text(shown.content)],
        ..ToolOutput::default()
    }
}

fn details(shown: &Truncation, output: &CommandOutput) -> Value {
    let mut details = Map::new();
    if shown.truncated {
        details.insert("truncation".to_owned(), json!(shown));
    }
    if let Some(path) = output.log_path() {
        // `json!(path)` would panic for a name that is not Unicode.
        let path = path.display().to_string();
        details.insert("fullOutputPath".to_owned(), path.into());
    }
    Value::Object(details)
}

/// Returns the end of the output, and a notice with the place of the rest.
fn with_notice(shown: &Truncation, output: &CommandOutput) -> String {
    if !shown.truncated {
        return shown.content.clone();
    }
    let last = shown.total_lines;
    let first = last + 1 - shown.output_lines;
    let range = if shown.last_line_partial {
        format!(
            "Showing last {} of line {last} (line is {})",
            format_size(shown.output_bytes as u64),
            format_size(output.last_line_bytes() as u64)
        )
    } else if shown.truncated_by == Some(TruncatedBy::Lines) {
        format!("Showing lines {first}-{last} of {last}")
    } else {
        let limit = format_size(MAX_BYTES as u64);
        format!("Showing lines {first}-{last} of {last} ({limit} limit)")
    };
    format!(
        "{}\n\n[{range}. Full output: {}]",
        shown.content,
        output.log_location()
    )
}

#[cfg(all(test, unix))]
mod tests;
