//! Resolves keys and headers in configuration files. A value may be a shell command (`!pass show
//! key`), the name of an environment variable, or a text with variables (`$NAME`, `${NAME}`), so
//! that secrets need not be stored in plain text.

use std::collections::HashMap;
use std::fmt;
use std::process::Stdio;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;
use regex::{Captures, Regex};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::OnceCell;

const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum output of a command in bytes: more than a key is a mistake.
const MAX_OUTPUT_BYTES: u64 = 1024 * 1024;

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The source of environment variables, which tests replace.
#[derive(Clone)]
pub struct Env(Arc<Lookup>);

impl Env {
    /// Returns the environment of this process.
    pub fn process() -> Self {
        Self(Arc::new(|name| std::env::var(name).ok()))
    }

    pub fn fixed<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self::from_map(variables.into_iter().map(owned).collect())
    }

    pub fn from_map(variables: HashMap<String, String>) -> Self {
        Self(Arc::new(move |name| variables.get(name).cloned()))
    }

    /// Adds `variables`, which take precedence.
    pub fn with_overrides(self, variables: HashMap<String, String>) -> Self {
        let first = Self::from_map(variables);
        Self(Arc::new(move |name| {
            first.get(name).or_else(|| self.get(name))
        }))
    }

    /// Returns a variable. An empty variable counts as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }
}

/// Shows no variables: their values may be keys.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Env(..)")
    }
}

/// Matches a variable in a value, or an escaped `$` or `!`.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$(?:[$!]|\{(\w+)\}|([A-Za-z_]\w*))").expect("it is a regular expression")
});

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("Failed to resolve {what} from shell command: {command} ({reason})")]
    Command {
        what: String,
        command: String,
        reason: String,
    },
    #[error("{what} is the environment variable {name}, which is not set")]
    Unset { what: String, name: String },
}

/// Resolves configured values.
#[derive(Debug)]
pub struct SecretValues {
    env: Env,
    time_limit: Duration,
    outputs: Mutex<Outputs>,
}

/// Outputs of commands. Failures are not cached: a password manager that was locked may be open
/// the next time.
#[derive(Default)]
struct Outputs(HashMap<String, Arc<OnceCell<String>>>);

impl fmt::Debug for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outputs({} commands)", self.0.len())
    }
}

impl SecretValues {
    pub fn new(env: Env) -> Self {
        Self {
            env,
            time_limit: COMMAND_TIMEOUT,
            outputs: Mutex::default(),
        }
    }

    /// Resolves a value; a command is run every time. `what` names the value in errors.
    pub async fn resolve(&self, value: &str, what: &str) -> Result<String, SecretError> {
        match value.strip_prefix('!') {
            Some(command) => self.run(command, what).await,
            None => self.plain(value, what),
        }
    }

    /// Resolves a value; a command is run until it succeeds once in this process.
    pub async fn resolve_cached(&self, value: &str, what: &str) -> Result<String, SecretError> {
        let Some(command) = value.strip_prefix('!') else {
            return self.plain(value, what);
        };
        let cell = Arc::clone(self.outputs.lock().0.entry(command.to_owned()).or_default());
        cell.get_or_try_init(|| self.run(command, what))
            .await
            .cloned()
    }

    /// Returns true if the value can be resolved: a variable may be unset. Commands are not run
    /// and are assumed to succeed.
    pub fn is_resolvable(&self, value: &str) -> bool {
        !value.is_empty() && (value.starts_with('!') || self.plain(value, "").is_ok())
    }

    /// Returns the set variables that a value uses.
    pub fn variables(&self, value: &str) -> Vec<String> {
        if value.starts_with('!') {
            return Vec::new();
        }
        if self.env.get(value).is_some() {
            return vec![value.to_owned()];
        }
        let found = VARIABLE.captures_iter(value);
        let names = found.filter_map(|found| found.get(1).or(found.get(2)));
        let set = names.filter(|name| self.env.get(name.as_str()).is_some());
        set.map(|name| name.as_str().to_owned()).collect()
    }

    /// Resolves a value without a command. 0.67.68 writes a variable as the name alone, newer
    /// versions as `$NAME`. In a longer text an unset `$NAME` is kept: it may be part of a
    /// password.
    fn plain(&self, value: &str, what: &str) -> Result<String, SecretError> {
        if let Some(found) = self.env.get(value) {
            return Ok(found);
        }
        // This avoids compiling the pattern before the first frame.
        if !value.contains('$') {
            return Ok(value.to_owned());
        }
        let mut unset = None;
        let expanded = VARIABLE.replace_all(value, |found: &Captures<'_>| {
            let braced = found.get(1);
            let Some(name) = braced.or(found.get(2)) else {
                return found[0][1..].to_owned();
            };
            self.env.get(name.as_str()).unwrap_or_else(|| {
                if braced.is_some() || found[0].len() == value.len() {
                    unset.get_or_insert_with(|| name.as_str().to_owned());
                }
                found[0].to_owned()
            })
        });
        let expanded = expanded.into_owned();
        match unset {
            Some(name) => Err(SecretError::Unset {
                what: what.to_owned(),
                name,
            }),
            None => Ok(expanded),
        }
    }

    async fn run(&self, command: &str, what: &str) -> Result<String, SecretError> {
        let failed = |reason: String| SecretError::Command {
            what: what.to_owned(),
            command: command.to_owned(),
            reason,
        };
        match tokio::time::timeout(self.time_limit, output_of(command)).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(reason)) => Err(failed(reason)),
            Err(_) => Err(failed(format!(
                "no answer within {} s",
                self.time_limit.as_secs_f32()
            ))),
        }
    }
}

/// Kills the command and all processes that it started, unless the command has ended.
struct RunningCommand(Option<Pid>);

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The only possible failure is that the group is gone.
            killpg(group, Signal::SIGKILL).ok();
        }
    }
}

/// Runs a command and returns its output. Its stderr is dropped, because it may hold parts of the
/// secret.
async fn output_of(command: &str) -> Result<String, String> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start /bin/sh: {error}"))?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let mut running = RunningCommand(id.map(Pid::from_raw));

    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut limited = stdout.take(MAX_OUTPUT_BYTES + 1);
        let read = limited.read_to_end(&mut output).await;
        read.map_err(|error| format!("cannot read its output: {error}"))?;
    }
    if output.len() as u64 > MAX_OUTPUT_BYTES {
        return Err(format!("it printed more than {MAX_OUTPUT_BYTES} bytes"));
    }
    let status = child.wait().await;
    running.0 = None;
    let status = status.map_err(|error| format!("cannot wait for it: {error}"))?;
    if !status.success() {
        return Err(status.to_string());
    }
    let text = String::from_utf8(output).map_err(|_| "its output is not UTF-8".to_owned())?;
    match text.trim() {
        "" => Err("it printed nothing".to_owned()),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const WHAT: &str = "API key for provider \"x\"";

    fn values() -> SecretValues {
        SecretValues::new(Env::fixed([("MY_KEY", "from-env"), ("EMPTY", "")]))
    }

    #[tokio::test]
    async fn a_value_names_a_variable_or_stands_for_itself() {
        for (value, expected) in [
            ("MY_KEY", "from-env"),
            ("EMPTY", "EMPTY"),
            ("sk-literal", "sk-literal"),
        ] {
            assert_eq!(values().resolve(value, WHAT).await.unwrap(), expected);
            assert_eq!(
                values().resolve_cached(value, WHAT).await.unwrap(),
                expected
            );
        }
    }

    #[tokio::test]
    async fn variables_in_a_value_are_those_of_the_environment() {
        for (value, expected) in [
            ("$MY_KEY", Ok("from-env")),
            ("${MY_KEY}", Ok("from-env")),
            ("pre-$MY_KEY.${MY_KEY}s", Ok("pre-from-env.from-envs")),
            ("a$$MY_KEY", Ok("a$MY_KEY")),
            ("$!pass$!", Ok("!pass!")),
            ("pa$word 5$ ${", Ok("pa$word 5$ ${")),
            ("$EMPTY", Err("EMPTY")),
            ("$NO_KEY", Err("NO_KEY")),
            ("Bearer ${NO_KEY}", Err("NO_KEY")),
        ] {
            assert_eq!(values().is_resolvable(value), expected.is_ok(), "{value}");
            let expected = expected.map(str::to_owned).map_err(|name| {
                format!("{WHAT} is the environment variable {name}, which is not set")
            });
            let resolved = values().resolve(value, WHAT).await;
            assert_eq!(resolved.map_err(|error| error.to_string()), expected);
        }
    }

    #[tokio::test]
    async fn a_command_gives_its_trimmed_output() {
        let value = values().resolve("!printf ' a b \\n\\n'", WHAT).await;
        assert_eq!(value.unwrap(), "a b");
    }

    #[tokio::test]
    async fn only_the_cached_way_runs_a_command_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let command = format!("!echo x >> '{0}'; wc -l < '{0}'", log.display());
        let values = values();
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(values.resolve_cached(&command, WHAT).await.unwrap());
        }
        for _ in 0..2 {
            seen.push(values.resolve(&command, WHAT).await.unwrap());
        }
        assert_eq!(seen, ["1", "1", "2", "3"]);
        assert_eq!(fs::read_to_string(log).unwrap(), "x\nx\nx\n");
    }

    #[tokio::test]
    async fn a_failure_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        let command = format!("!cat '{}'", file.display());
        let values = values();
        let error = values.resolve_cached(&command, WHAT).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "Failed to resolve API key for provider \"x\" from shell command: \
                 cat '{}' (exit status: 1)",
                file.display()
            )
        );
        fs::write(&file, "k\n").unwrap();
        assert_eq!(values.resolve_cached(&command, WHAT).await.unwrap(), "k");
    }

    #[tokio::test]
    async fn silence_is_a_failure() {
        let error = values().resolve("!true", WHAT).await.unwrap_err();
        assert!(error.to_string().ends_with("true (it printed nothing)"));
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let mut values = values();
        values.time_limit = Duration::from_millis(300);
        let command = format!("!sleep 600 & echo $! > '{}'; wait", pid_file.display());
        let error = values.resolve(&command, WHAT).await.unwrap_err();
        assert!(error.to_string().ends_with("(no answer within 0.3 s)"));
        let pid = fs::read_to_string(pid_file).unwrap();
        let status = format!("/proc/{}/status", pid.trim());
        // The process is gone, or a zombie until init has reaped it.
        let mut tries = 0;
        while fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ")) {
            tries += 1;
            assert!(tries < 200, "the child still lives");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
