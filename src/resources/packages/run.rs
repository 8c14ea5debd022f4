//! Runs git, npm and the shell: which program, where it may print, and what is reported when it fails.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Number of bytes of a failed program's output that are reported.
const MAX_REPORTED_BYTES: u64 = 2000;
const COMMAND_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time limit of a query, such as for the folder of packages.
const QUERY_TIMEOUT: Duration = Duration::from_secs(120);

/// A program and its first arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(super) words: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{program} cannot be run: {source}. {advice}")]
    Start {
        program: String,
        source: io::Error,
        advice: &'static str,
    },
    #[error("{command} {how}{last_output}")]
    Failed {
        command: String,
        how: String,
        /// The last lines of output, unless they were shown already.
        last_output: String,
    },
    #[error("the setting npmCommand is empty: it has to name a program")]
    NoProgram,
}

/// The treatment of a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The user is at a shell: programs may print and ask.
    Shown,
    /// The screen or stdout is used otherwise: programs print nothing, ask nothing and are
    /// stopped after the duration.
    Silent(Duration),
}

impl Program {
    /// Returns npm, or the program that the setting `npmCommand` names.
    pub fn npm(command: Option<&[String]>) -> Self {
        let words = match command {
            Some(words) if !words.is_empty() => words.to_vec(),
            _ => vec!["npm".to_owned()],
        };
        Self { words }
    }

    pub fn git() -> Self {
        Self {
            words: vec!["git".to_owned()],
        }
    }

    /// Returns the shell, which takes a command line as its argument.
    pub fn shell() -> Self {
        Self {
            words: ["sh", "-c"].map(str::to_owned).to_vec(),
        }
    }

    /// Runs a program to its end.
    pub fn run(&self, args: &[&str], dir: &Path, output: Output) -> Result<(), RunError> {
        self.run_with(args, dir, output, &BTreeMap::new())
    }

    /// Like [`Self::run`], with additional variables in the environment.
    pub fn run_with(
        &self,
        args: &[&str],
        dir: &Path,
        output: Output,
        variables: &BTreeMap<String, OsString>,
    ) -> Result<(), RunError> {
        let mut command = self.command(args, dir)?;
        command.envs(variables);
        let Output::Silent(limit) = output else {
            let status = self.start(&mut command)?.wait();
            let status = status.map_err(|source| self.cannot_start(source))?;
            return self.check_status(args, Ok(status), String::new());
        };
        let mut last_output = self.capture(&mut command)?;
        let status = wait(self.start(&mut command)?, limit);
        let text = tail(&mut last_output).unwrap_or_default();
        self.check_status(args, status, text)
    }

    /// Runs a query and returns its stdout.
    pub fn output(&self, args: &[&str], dir: &Path) -> Result<String, RunError> {
        let mut command = self.command(args, dir)?;
        let mut errors = self.capture(&mut command)?;
        let mut out = temporary().map_err(|source| self.cannot_start(source))?;
        let stdout = out.try_clone();
        command.stdout(stdout.map_err(|source| self.cannot_start(source))?);
        let status = wait(self.start(&mut command)?, QUERY_TIMEOUT);
        let text = tail(&mut errors).unwrap_or_default();
        self.check_status(args, status, text)?;
        let mut text = String::new();
        let read = out
            .seek(SeekFrom::Start(0))
            .and_then(|_| out.read_to_string(&mut text));
        read.map_err(|source| self.cannot_start(source))?;
        Ok(text)
    }

    fn command(&self, args: &[&str], dir: &Path) -> Result<Command, RunError> {
        let (program, first) = self.words.split_first().ok_or(RunError::NoProgram)?;
        if program.is_empty() {
            return Err(RunError::NoProgram);
        }
        let mut command = Command::new(program);
        command.args(first).args(args).current_dir(dir);
        Ok(command)
    }

    /// Redirects stdout and stderr to a file and stdin to nothing, and disables prompts.
    fn capture(&self, command: &mut Command) -> Result<File, RunError> {
        let failed = |source| self.cannot_start(source);
        let file = temporary().map_err(failed)?;
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file.try_clone().map_err(failed)?)
            .env("GIT_TERMINAL_PROMPT", "0");
        if std::env::var_os("GIT_SSH_COMMAND").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        Ok(file)
    }

    fn start(&self, command: &mut Command) -> Result<Child, RunError> {
        command.spawn().map_err(|source| self.cannot_start(source))
    }

    fn check_status(
        &self,
        args: &[&str],
        status: Result<ExitStatus, String>,
        last_output: String,
    ) -> Result<(), RunError> {
        let how = match status {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => match status.code() {
                Some(code) => format!("failed with exit code {code}"),
                None => format!("was ended ({status})"),
            },
            Err(how) => how,
        };
        let last_output = match last_output.trim() {
            "" => String::new(),
            text => format!(":\n{text}"),
        };
        Err(RunError::Failed {
            command: self.line(args),
            how,
            last_output,
        })
    }

    fn cannot_start(&self, source: io::Error) -> RunError {
        let program = self.words.first().cloned().unwrap_or_default();
        let advice = match program.as_str() {
            "git" => "Packages from git need it",
            "sh" => "Scripts of packages need it",
            _ => {
                "Correct or remove the setting npmCommand: pi needs no program for packages of npm"
            }
        };
        RunError::Start {
            program,
            source,
            advice,
        }
    }

    fn line(&self, args: &[&str]) -> String {
        let words = self.words.iter().map(String::as_str);
        words
            .chain(args.iter().copied())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A file is used because a full pipe would block the program.
fn temporary() -> io::Result<File> {
    tempfile::tempfile()
}

fn wait(mut child: Child, limit: Duration) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if start.elapsed() < limit => thread::sleep(COMMAND_POLL_INTERVAL),
            Ok(None) => {
                // The program may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("took longer than {} s", limit.as_secs()));
            }
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
}

fn tail(file: &mut File) -> io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_REPORTED_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            words: ["sh", "-c", script].map(str::to_owned).to_vec(),
        }
    }

    const LIMIT: Output = Output::Silent(Duration::from_secs(60));

    #[test]
    fn failure_reports_command_and_last_output() {
        let dir = tempfile::tempdir().unwrap();
        shell("true").run(&[], dir.path(), LIMIT).unwrap();
        let program = shell("echo out; echo err >&2; exit 3");
        let error = program.run(&["x"], dir.path(), LIMIT).unwrap_err();
        assert_eq!(
            error.to_string(),
            "sh -c echo out; echo err >&2; exit 3 x failed with exit code 3:\nout\nerr"
        );
    }

    #[test]
    fn program_is_stopped_at_time_limit() {
        let dir = tempfile::tempdir().unwrap();
        let limit = Output::Silent(Duration::from_millis(50));
        let error = shell("exec sleep 600").run(&[], dir.path(), limit);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("took longer than"), "{text}");
    }

    #[test]
    fn output_and_missing_program() {
        let dir = tempfile::tempdir().unwrap();
        let program = shell("echo /root; echo noise >&2");
        assert_eq!(program.output(&[], dir.path()).unwrap(), "/root\n");
        let gone = Program::npm(Some(&["no-such-npm".to_owned()]));
        let error = gone.output(&["root"], dir.path()).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("no-such-npm cannot be run: "), "{text}");
        let empty = Program::npm(Some(&[String::new()]));
        let error = empty.output(&[], dir.path()).unwrap_err();
        assert!(matches!(error, RunError::NoProgram), "{error}");
        assert_eq!(Program::npm(Some(&[])).words, ["npm"]);
    }
}
