//! Runs a command in its own process group, so that all processes that it starts can be killed,
//! and so that a daemon that it leaves running delays nothing.

use std::collections::HashSet;
use std::io::{self, PipeReader};
use std::process::{ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::interactive_wait;
use pi_base::process_tree;

/// Time after the end of a process for which its output is still read: background children
/// inherit the pipe and can keep it open forever.
const OUTPUT_GRACE: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 64 * 1024;

/// Groups to kill when pi itself is terminated.
static LIVE_GROUPS: LazyLock<Mutex<HashSet<u32>>> = LazyLock::new(Mutex::default);

/// Sessions of commands that have ended and whose background processes may still run, by the leader.
static BACKGROUND_SESSIONS: LazyLock<Mutex<HashSet<u32>>> = LazyLock::new(Mutex::default);

/// Returns whether a background process of an ended command runs. A process that has started a
/// session of its own is not known.
pub fn has_background_processes() -> bool {
    let mut sessions = BACKGROUND_SESSIONS.lock();
    sessions.retain(|pid| i32::try_from(*pid).is_ok_and(process_tree::session_has_others));
    !sessions.is_empty()
}

/// Kills every running command with all its children. Called on SIGTERM and SIGHUP, which do not
/// reach process groups other than pi's own.
pub fn kill_all() {
    for pid in LIVE_GROUPS.lock().drain() {
        kill_group(pid);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    /// The process ended, with the code that a shell reports: 128 plus the signal for a process
    /// that was killed.
    Exited(i32),
    /// A command of an extension ended without an exit code.
    WithoutCode,
    TimedOut,
    Aborted,
}

#[derive(Debug)]
pub(crate) enum ProcessEvent<'a> {
    /// Bytes of stdout and stderr, in the order in which they were written.
    Output(&'a [u8]),
    Ended(ProcessEnd),
}

/// A running command. Dropping it kills the group.
pub(crate) struct GroupProcess {
    child: Child,
    group: GroupGuard,
    output: Option<Box<dyn AsyncRead + Send + Unpin>>,
    buffer: Box<[u8]>,
    cancel: CancellationToken,
    time_limit: Option<Instant>,
    /// The reason why pi killed the command.
    killed: Option<ProcessEnd>,
    /// A sentence for the model if the command was waiting for a person when it was killed.
    waited: Option<String>,
    exited: Option<(ExitStatus, Instant)>,
    /// Number of bytes that may have been written before the end and were not read within the
    /// grace period.
    left_to_drain: usize,
}

impl GroupProcess {
    /// Starts the command. Must be called inside a tokio runtime.
    pub(crate) fn spawn(
        mut command: Command,
        time_limit: Option<Duration>,
        cancel: CancellationToken,
    ) -> io::Result<Self> {
        // One pipe for both streams keeps their order.
        let (reader, writer) = io::pipe()?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        start_session(&mut command);
        let child = command.spawn()?;
        // The command holds the write ends, which would keep the pipe open.
        drop(command);
        let group = GroupGuard::new(child.id());
        Ok(Self {
            child,
            group,
            output: Some(async_reader(reader)?),
            buffer: vec![0; READ_BYTES].into(),
            cancel,
            // A limit that is too large to add means no limit.
            time_limit: time_limit.and_then(|limit| Instant::now().checked_add(limit)),
            killed: None,
            waited: None,
            exited: None,
            left_to_drain: READ_BYTES,
        })
    }

    /// Waits for the next event. Cancel safe. Must not be called after [`ProcessEvent::Ended`].
    pub(crate) async fn next(&mut self) -> io::Result<ProcessEvent<'_>> {
        let read = loop {
            if let Some((status, at)) = self.exited {
                let Some(output) = &mut self.output else {
                    return Ok(ProcessEvent::Ended(self.end(status)));
                };
                let read = output.read(&mut self.buffer);
                let read = if at.elapsed() < OUTPUT_GRACE {
                    tokio::time::timeout_at(at + OUTPUT_GRACE, read).await.ok()
                } else {
                    read.now_or_never()
                };
                match read {
                    Some(Ok(read)) if read > 0 && self.left_to_drain > 0 => {
                        if at.elapsed() >= OUTPUT_GRACE {
                            self.left_to_drain = self.left_to_drain.saturating_sub(read);
                        }
                        break read;
                    }
                    // All output was read, or the grace period is over.
                    Some(Ok(_)) | None => self.output = None,
                    Some(Err(error)) => return Err(error),
                }
                continue;
            }
            let time_limit = self.time_limit;
            let output = &mut self.output;
            let buffer = &mut self.buffer;
            tokio::select! {
                biased;
                () = self.cancel.cancelled(), if self.killed.is_none() => {
                    self.kill(ProcessEnd::Aborted);
                }
                () = sleep_until(time_limit), if self.killed.is_none() => {
                    self.kill(ProcessEnd::TimedOut);
                }
                status = self.child.wait() => {
                    self.exited = Some((status?, Instant::now()));
                }
                read = read_some(output, buffer) => match read? {
                    0 => self.output = None,
                    read => break read,
                },
            }
        };
        Ok(ProcessEvent::Output(&self.buffer[..read]))
    }

    /// Returns a sentence for the model if the command was stopped while it waited for a person.
    pub(crate) fn interactive_wait(&self) -> Option<&str> {
        self.waited.as_deref()
    }

    fn kill(&mut self, why: ProcessEnd) {
        self.killed = Some(why);
        self.waited = self.child.id().and_then(interactive_wait::describe);
        self.group.kill();
        // This covers a process that could not become the leader of a group.
        let already_dead = self.child.start_kill();
        tracing::debug!(?why, ?already_dead, "killed a command");
    }

    fn end(&mut self, status: ExitStatus) -> ProcessEnd {
        BACKGROUND_SESSIONS
            .lock()
            .extend(self.group.pid.filter(|pid| group_exists(*pid)));
        // [`kill_all`] may have killed the group before this call is cancelled.
        let killed_by_kill_all = !self.group.release() && !status.success();
        if killed_by_kill_all || self.cancel.is_cancelled() {
            ProcessEnd::Aborted
        } else {
            self.killed.unwrap_or(ProcessEnd::Exited(exit_code(status)))
        }
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn read_some(
    output: &mut Option<Box<dyn AsyncRead + Send + Unpin>>,
    buffer: &mut [u8],
) -> io::Result<usize> {
    match output {
        Some(output) => output.read(buffer).await,
        None => std::future::pending().await,
    }
}

/// Registers a group while it runs; kills it if dropped early.
struct GroupGuard {
    pid: Option<u32>,
}

impl GroupGuard {
    fn new(pid: Option<u32>) -> Self {
        LIVE_GROUPS.lock().extend(pid);
        Self { pid }
    }

    fn kill(&self) {
        if let Some(pid) = self.pid {
            kill_group(pid);
        }
    }

    /// Lets background children live on. Returns `false` if [`kill_all`] was faster.
    fn release(&mut self) -> bool {
        self.pid
            .take()
            .is_none_or(|pid| LIVE_GROUPS.lock().remove(&pid))
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        self.kill();
        self.release();
    }
}

#[cfg(unix)]
fn kill_group(pid: u32) {
    use nix::sys::signal::{Signal, killpg};
    let Ok(pid) = i32::try_from(pid) else {
        return;
    };
    if let Err(error) = killpg(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL) {
        tracing::debug!(pid, %error, "no process group to kill");
    }
}

#[cfg(unix)]
fn group_exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).map(nix::unistd::Pid::from_raw);
    pid.is_ok_and(|pid| nix::sys::signal::killpg(pid, None).is_ok())
}

#[cfg(not(unix))]
fn group_exists(_pid: u32) -> bool {
    false
}

#[cfg(not(unix))]
fn kill_group(pid: u32) {
    let killer = std::process::Command::new("taskkill")
        .args(["/F", "/T", "/PID", &pid.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = killer {
        tracing::debug!(pid, %error, "cannot run taskkill");
    }
}

/// Starts the command in its own session, not only its own group: a command must not be able to
/// read from the terminal that pi draws on.
#[cfg(unix)]
fn start_session(command: &mut Command) {
    // SAFETY: between fork and exec only async-signal-safe calls are allowed;
    // `setsid` is one, and making an error from errno allocates nothing.
    unsafe {
        command.pre_exec(|| match nix::unistd::setsid() {
            Ok(_) => Ok(()),
            Err(errno) => Err(errno.into()),
        });
    }
}

#[cfg(not(unix))]
fn start_session(_command: &mut Command) {}

#[cfg(unix)]
fn async_reader(reader: PipeReader) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into())?;
    Ok(Box::new(reader))
}

#[cfg(not(unix))]
fn async_reader(reader: PipeReader) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let handle: std::os::windows::io::OwnedHandle = reader.into();
    Ok(Box::new(tokio::fs::File::from_std(handle.into())))
}

#[cfg(unix)]
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let killed = status.signal().map(|signal| 128 + signal);
    status.code().or(killed).unwrap_or(1)
}

#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Option<Duration>, cancel: &CancellationToken) -> GroupProcess {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        GroupProcess::spawn(command, limit, cancel.clone()).unwrap()
    }

    async fn finish(process: &mut GroupProcess) -> (String, ProcessEnd) {
        let mut text = Vec::new();
        loop {
            match process.next().await.unwrap() {
                ProcessEvent::Output(bytes) => text.extend_from_slice(bytes),
                ProcessEvent::Ended(ended) => return (String::from_utf8(text).unwrap(), ended),
            }
        }
    }

    /// Returns true if the process runs. Zombies count as gone, because a container may have no
    /// process that reaps them.
    fn runs(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
    }

    async fn until_gone(pid: &str) {
        while runs(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn processes_that_a_command_leaves_behind_are_known() {
        let cancel = CancellationToken::new();
        let (text, _) = finish(&mut shell("sleep 1000 & echo $!", None, &cancel)).await;
        assert!(has_background_processes());
        let pid = nix::unistd::Pid::from_raw(text.trim().parse().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        until_gone(text.trim()).await;
        // Other tests of this program leave processes, too.
        let session = nix::unistd::getsid(Some(pid));
        assert!(!session.is_ok_and(|leader| process_tree::session_has_others(leader.as_raw())));
    }

    #[tokio::test]
    async fn both_streams_in_the_order_written() {
        let cancel = CancellationToken::new();
        let script = "for i in 1 2 3; do echo o$i; echo e$i >&2; done; exit 7";
        let (text, ended) = finish(&mut shell(script, None, &cancel)).await;
        assert_eq!(text, "o1\ne1\no2\ne2\no3\ne3\n");
        assert_eq!(ended, ProcessEnd::Exited(7));
    }

    #[tokio::test]
    async fn a_signal_is_reported_as_shells_do() {
        let cancel = CancellationToken::new();
        let (_, ended) = finish(&mut shell("kill -SEGV $$", None, &cancel)).await;
        assert_eq!(ended, ProcessEnd::Exited(139));
    }

    #[tokio::test]
    async fn a_daemon_does_not_block_and_lives_on() {
        let cancel = CancellationToken::new();
        let (text, ended) = finish(&mut shell("sleep 60 & echo $!", None, &cancel)).await;
        assert_eq!(ended, ProcessEnd::Exited(0));
        let pid = text.trim();
        assert!(runs(pid));
        let pid = nix::unistd::Pid::from_raw(pid.parse().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    }

    #[tokio::test]
    async fn abort_kills_the_grandchildren_too() {
        let cancel = CancellationToken::new();
        let mut process = shell(
            "sh -c 'sleep 60 & echo $!; wait'; echo after",
            None,
            &cancel,
        );
        let ProcessEvent::Output(bytes) = process.next().await.unwrap() else {
            panic!("ended early");
        };
        let pid = String::from_utf8(bytes.to_vec()).unwrap().trim().to_owned();
        assert!(runs(&pid));
        cancel.cancel();
        assert_eq!(
            finish(&mut process).await,
            (String::new(), ProcessEnd::Aborted)
        );
        until_gone(&pid).await;
    }

    #[tokio::test]
    async fn a_time_limit_kills() {
        let cancel = CancellationToken::new();
        let limit = Some(Duration::from_millis(100));
        let (text, ended) = finish(&mut shell("echo hi; sleep 60", limit, &cancel)).await;
        assert_eq!((text.as_str(), ended), ("hi\n", ProcessEnd::TimedOut));
    }

    #[tokio::test]
    async fn dropping_kills_and_ending_pi_kills() {
        let cancel = CancellationToken::new();
        for by_drop in [true, false] {
            let mut process = shell("echo $$; sleep 60", None, &cancel);
            let ProcessEvent::Output(bytes) = process.next().await.unwrap() else {
                panic!("ended early");
            };
            let pid = String::from_utf8(bytes.to_vec()).unwrap().trim().to_owned();
            assert!(LIVE_GROUPS.lock().contains(&pid.parse().unwrap()));
            if by_drop {
                drop(process);
            } else {
                // `kill_all` would also end the commands of other tests.
                kill_group(pid.parse().unwrap());
                assert_eq!(finish(&mut process).await.1, ProcessEnd::Exited(137));
            }
            until_gone(&pid).await;
            assert!(!LIVE_GROUPS.lock().contains(&pid.parse().unwrap()));
        }
    }

    /// A command in pi's own session could open the terminal that pi draws on.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_leads_a_session_of_its_own_and_has_no_input() {
        let cancel = CancellationToken::new();
        let script = "cut -d' ' -f6 /proc/$$/stat; echo $$; cat";
        let (text, ended) = finish(&mut shell(script, None, &cancel)).await;
        let numbers: Vec<&str> = text.lines().collect();
        assert_eq!((numbers.len(), ended), (2, ProcessEnd::Exited(0)));
        assert_eq!(numbers[0], numbers[1]);
    }
}
