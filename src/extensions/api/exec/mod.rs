//! `pi.exec`: runs a program, without a shell, for an extension.

mod terminate;

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use parking_lot::Mutex;
use pi_base::process_tree::GRACE;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use self::terminate::Running;
use pi_tools::files::os_error;

/// How long inherited pipes may stay open after the end of the program.
const PIPE_GRACE: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecRequest {
    pub token: u64,
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub cwd: Option<String>,
    /// Milliseconds.
    #[serde(default)]
    pub timeout: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct ExecResult {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
    pub killed: bool,
}

/// The running programs, by the extension's token.
#[derive(Default)]
pub struct Execs(Mutex<HashMap<u64, CancellationToken>>);

impl Execs {
    pub fn kill(&self, token: u64) {
        if let Some(cancel) = self.0.lock().get(&token) {
            cancel.cancel();
        }
    }

    /// Runs a program. A program that cannot be started yields code 1.
    pub async fn run(&self, request: ExecRequest, default_cwd: String) -> ExecResult {
        let cancel = CancellationToken::new();
        self.0.lock().insert(request.token, cancel.clone());
        let token = request.token;
        let result = run(request, default_cwd, cancel).await;
        self.0.lock().remove(&token);
        result
    }
}

async fn run(request: ExecRequest, default_cwd: String, cancel: CancellationToken) -> ExecResult {
    let mut command = Command::new(&request.command);
    command
        .args(&request.args)
        .current_dir(request.cwd.unwrap_or(default_cwd))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut running = match command.spawn() {
        Ok(child) => Running::new(child),
        Err(error) => {
            return ExecResult {
                stdout: String::new(),
                stderr: os_error::spawn(&error, &request.command),
                code: 1,
                killed: false,
            };
        }
    };
    let child = running.child();
    let (out, err) = (Output::default(), Output::default());
    let reading =
        futures::future::join(out.read(child.stdout.take()), err.read(child.stderr.take()));
    tokio::pin!(reading);
    let timeout = async {
        match request
            .timeout
            .filter(|ms| *ms > 0.0)
            .and_then(milliseconds)
        {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(timeout);
    let mut drained = false;
    let ended = loop {
        tokio::select! {
            status = running.child().wait() => break Some(status),
            _ = &mut reading, if !drained => drained = true,
            () = cancel.cancelled() => break None,
            () = &mut timeout => break None,
        }
    };
    let killed = ended.is_none();
    let status = match ended {
        Some(status) => status.ok(),
        None => {
            running.ask_to_end();
            let child = running.child();
            match tokio::time::timeout(GRACE, child.wait()).await {
                Ok(status) => status.ok(),
                Err(_) => {
                    // An error means that the program has ended meanwhile.
                    let _ = child.start_kill();
                    child.wait().await.ok()
                }
            }
        }
    };
    if !drained {
        // A process that inherited the pipes may never close them.
        let _ = tokio::time::timeout(PIPE_GRACE, reading).await;
    }
    ExecResult {
        stdout: out.text(),
        stderr: err.text(),
        code: status.and_then(|status| status.code()).unwrap_or(0),
        killed,
    }
}

/// Returns `None` for negative numbers, NaN, and durations too long to represent.
pub fn milliseconds(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1000.0).ok()
}

/// Output read so far, kept even if reading is given up.
#[derive(Default)]
struct Output(Mutex<Vec<u8>>);

impl Output {
    async fn read(&self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; 16 * 1024];
        while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
            self.0.lock().extend_from_slice(&chunk[..n]);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    async fn sh(script: &str, timeout: Option<f64>) -> ExecResult {
        let request = ExecRequest {
            token: 1,
            command: "sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: None,
            timeout,
        };
        Execs::default().run(request, "/".into()).await
    }

    #[tokio::test]
    async fn output_and_code_come_back() {
        let expected = ExecResult {
            stdout: "out\n".into(),
            stderr: "err\n".into(),
            code: 3,
            killed: false,
        };
        assert_eq!(sh("echo out; echo err >&2; exit 3", None).await, expected);
    }

    #[tokio::test]
    async fn timeout_kills_the_program() {
        assert!(sh("sleep 20", Some(50.0)).await.killed);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn descendants_end_with_the_program() {
        let started = "sleep 300 & echo $$ $!; wait";
        let alive = |output: &str| {
            let pids = output.split_whitespace().map(|pid| pid.parse().unwrap());
            let pids: Vec<i32> = pids.collect();
            assert_eq!(pids.len(), 2);
            let alive = pids.into_iter().filter(|&pid| {
                // An ended process may remain as a zombie.
                let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                !state.is_empty() && !state.contains(") Z ")
            });
            alive.count()
        };
        // Long enough for a busy machine to start the processes.
        let ended = sh(started, Some(2000.0)).await;
        assert!(ended.killed);
        // A killed process needs a moment to end.
        let until_ended = async |pids: &str| {
            let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
            while alive(pids) > 0 {
                assert!(tokio::time::Instant::now() < deadline, "{pids}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        until_ended(&ended.stdout).await;

        // The caller drops the future.
        let dir = tempfile::tempdir().unwrap();
        let script = format!("{{ {started}; }} > {}/pids", dir.path().display());
        let pids = async {
            loop {
                match fs::read_to_string(dir.path().join("pids")) {
                    Ok(pids) if !pids.is_empty() => return pids,
                    _ => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        let pids = tokio::select! {
            _ = sh(&script, None) => panic!("it does not end"),
            pids = pids => pids,
        };
        until_ended(&pids).await;
    }

    #[tokio::test]
    async fn unrepresentable_timeout_is_ignored() {
        for timeout in [1e30, f64::INFINITY, f64::NAN, -1.0] {
            assert_eq!(sh("exit 4", Some(timeout)).await.code, 4, "{timeout}");
        }
    }

    #[tokio::test]
    async fn daemon_with_the_pipe_does_not_block() {
        let result = sh("sleep 20 & echo started", None).await;
        assert_eq!(
            (result.stdout.as_str(), result.killed),
            ("started\n", false)
        );
    }

    #[tokio::test]
    async fn failed_start_yields_code_1() {
        let request = ExecRequest {
            token: 1,
            command: "no-such-program-anywhere".into(),
            args: vec![],
            cwd: None,
            timeout: None,
        };
        let result = Execs::default().run(request, "/".into()).await;
        assert_eq!(result.code, 1);
        assert!(result.stderr.contains("no-such-program-anywhere"));
    }
}
