//! Ends processes that pi started, with their descendants: SIGTERM first (another pi among them
//! ends its own children then), SIGKILL after [`GRACE`]. Processes in a session of their own
//! (`setsid`, `detached`) are meant to stay and are left alone.

use std::fs;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};
use tokio::sync::watch;

/// Time between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(5);
/// Time that processes have left when this program ends, instead of the rest of [`GRACE`].
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// How often the end of a process is polled.
const PROCESS_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Number of terminations in progress.
static TERMINATIONS: LazyLock<watch::Sender<usize>> = LazyLock::new(watch::Sender::default);
/// Changes when the terminations in progress have to kill at once.
static KILL_NOW: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);

/// Processes that got SIGTERM and still run.
static SIGNALLED: Mutex<Vec<Process>> = Mutex::new(Vec::new());

/// A process, distinguished from a later one with the same id by its start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    id: Pid,
    start_time: String,
}

impl Process {
    /// Returns `None` if the process has ended.
    pub fn from_id(id: i32) -> Option<Self> {
        let start_time = start_time(id)?;
        let id = Pid::from_raw(id);
        Some(Self { id, start_time })
    }

    pub fn is_running(&self) -> bool {
        start_time(self.id.as_raw()).as_ref() == Some(&self.start_time)
    }

    fn send(&self, signal: Signal) {
        // An error means that the process ended meanwhile.
        _ = kill(self.id, signal);
    }
}

/// Returns the process `first` and its descendants in the same session.
pub fn with_descendants(first: i32) -> Vec<Process> {
    let session = session_of(first);
    let mut found: Vec<Process> = Process::from_id(first).into_iter().collect();
    let mut expanded = 0;
    while let Some(parent) = found.get(expanded) {
        expanded += 1;
        let children = children_of(parent.id.as_raw()).into_iter();
        let children: Vec<Process> = children
            .filter(|child| session_of(*child) == session)
            .filter_map(Process::from_id)
            .collect();
        found.extend(children);
    }
    found
}

/// Kills all descendants of this process and all host processes, before this program exits at
/// once.
pub fn kill_all() {
    let own = nix::unistd::getpid().as_raw();
    for process in with_descendants(own).iter().skip(1) {
        process.send(Signal::SIGKILL);
    }
    for host in host_processes().drain(..) {
        kill_session(host);
    }
}

/// Ids of the host processes of extensions, each of which leads a session.
fn host_processes() -> MutexGuard<'static, Vec<i32>> {
    static HOSTS: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a host process to those that [`kill_all`] kills.
pub fn add_host_process(process: i32) {
    host_processes().push(process);
}

/// Removes a host process that has ended.
pub fn remove_host_process(process: i32) {
    host_processes().retain(|host| *host != process);
}

/// Kills a session leader and its session. The leader is killed first, so that it starts no
/// further process.
#[cfg(target_os = "linux")]
fn kill_session(first: i32) {
    // An error means that the process has ended.
    _ = kill(Pid::from_raw(first), Signal::SIGKILL);
    for process in others_in_session(first) {
        process.send(Signal::SIGKILL);
    }
}

/// Kills the process group instead: the members of a session cannot be listed here.
#[cfg(not(target_os = "linux"))]
fn kill_session(first: i32) {
    // An error means that no process is left in the group.
    _ = nix::sys::signal::killpg(Pid::from_raw(first), Signal::SIGKILL);
}

/// Returns the system's id of the current thread.
#[cfg(target_os = "linux")]
pub fn current_thread_id() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// Returns 0: the children of a thread cannot be listed here.
#[cfg(not(target_os = "linux"))]
pub fn current_thread_id() -> i32 {
    0
}

/// Returns whether a thread of this process runs, or waits for a processor, a disk or memory. False
/// on systems without `/proc`.
pub fn is_thread_runnable(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // The name of the thread, in parentheses, may contain anything.
    let state = stat.ok().and_then(|stat| {
        let (_, state) = stat.rsplit_once(") ")?;
        state.chars().next()
    });
    matches!(state, Some('R' | 'D'))
}

/// Returns the processes that a thread of this process started, with their descendants.
pub fn started_by_thread(thread: i32) -> Vec<Process> {
    let session = session_of(0);
    let children = children_of_thread(&format!("/proc/self/task/{thread}"));
    let children = children.into_iter();
    let children = children.filter(|child| session_of(*child) == session);
    children.flat_map(with_descendants).collect()
}

/// Returns all other processes in the session that `first` leads.
#[cfg(target_os = "linux")]
fn others_in_session(first: i32) -> Vec<Process> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let session = Some(Pid::from_raw(first));
    let others = numbers.filter(|process| *process != first && session_of(*process) == session);
    others.filter_map(Process::from_id).collect()
}

/// Returns whether a session has processes besides its leader.
#[cfg(target_os = "linux")]
pub fn session_has_others(first: i32) -> bool {
    !others_in_session(first).is_empty()
}

/// Looks at the process group instead: the members of a session cannot be listed here.
#[cfg(not(target_os = "linux"))]
pub fn session_has_others(first: i32) -> bool {
    nix::sys::signal::killpg(Pid::from_raw(first), None).is_ok()
}

/// Sends SIGTERM to the other processes of a session, because its leader may wait for one of them
/// before it ends.
#[cfg(target_os = "linux")]
pub fn signal_session_members(first: i32) {
    send_sigterm(&others_in_session(first));
}

/// Does nothing: the members of a session cannot be listed here.
#[cfg(not(target_os = "linux"))]
pub fn signal_session_members(_first: i32) {}

/// Terminates the remaining processes of a session whose leader has ended.
#[cfg(target_os = "linux")]
pub fn terminate_session(first: i32, kill_now: KillNow) {
    let left = others_in_session(first);
    if !left.is_empty() {
        send_sigterm(&left);
        kill_after_grace_unless(kill_now, left, || true);
    }
}

/// Kills the process group instead: the members of a session cannot be listed here.
#[cfg(not(target_os = "linux"))]
pub fn terminate_session(first: i32, _kill_now: KillNow) {
    // An error means that no process is left in the group.
    _ = nix::sys::signal::killpg(Pid::from_raw(first), Signal::SIGKILL);
}

/// Sends SIGTERM to each process once: another pi takes a second one as the wish not to wait.
pub fn send_sigterm(processes: &[Process]) {
    let mut signalled = SIGNALLED.lock().unwrap_or_else(PoisonError::into_inner);
    signalled.retain(Process::is_running);
    for process in processes {
        if !signalled.contains(process) {
            process.send(Signal::SIGTERM);
            signalled.push(process.clone());
        }
    }
}

/// Waits until the processes, which have got SIGTERM, are gone, and kills the remaining ones after
/// [`GRACE`]. Uses a thread of its own, because the caller's async runtime may be gone already.
/// `is_done` is polled meanwhile; the wait goes on until it returns true.
pub fn kill_after_grace(left: Vec<Process>, is_done: impl FnMut() -> bool + Send + 'static) {
    kill_after_grace_unless(kill_now(), left, is_done);
}

fn kill_after_grace_unless(
    kill_now: KillNow,
    mut left: Vec<Process>,
    mut is_done: impl FnMut() -> bool + Send + 'static,
) {
    let until = Instant::now() + GRACE;
    let termination = Termination::start();
    let wait = move || {
        let _termination = termination;
        loop {
            let done = is_done();
            left.retain(Process::is_running);
            if done && left.is_empty() {
                return;
            }
            // The sender is a static, so an error cannot occur.
            if Instant::now() >= until || kill_now.has_changed().unwrap_or(true) {
                break;
            }
            thread::sleep(PROCESS_POLL_INTERVAL);
        }
        // Processes may have started others meanwhile.
        for process in left {
            for process in with_descendants(process.id.as_raw()) {
                process.send(Signal::SIGKILL);
            }
        }
    };
    // If no thread can be started, SIGTERM was all.
    _ = thread::Builder::new().name("terminate".into()).spawn(wait);
}

/// Sends SIGTERM to all processes, and SIGKILL to the remaining ones after [`GRACE`].
pub fn terminate(processes: Vec<Process>) {
    if !processes.is_empty() {
        send_sigterm(&processes);
        kill_after_grace(processes, || true);
    }
}

/// Changes when a termination has to kill at once.
pub type KillNow = watch::Receiver<u64>;

/// Subscribes to requests to kill at once that are made from now on.
pub fn kill_now() -> KillNow {
    KILL_NOW.subscribe()
}

/// A termination in progress. The program waits for it when it exits.
pub struct Termination(());

impl Termination {
    pub fn start() -> Self {
        TERMINATIONS.send_modify(|count| *count += 1);
        Self(())
    }
}

impl Drop for Termination {
    fn drop(&mut self) {
        TERMINATIONS.send_modify(|count| *count -= 1);
    }
}

/// Waits up to [`EXIT_GRACE`] for the terminations in progress, then makes them kill. Called
/// when this program exits.
pub async fn finish_terminations() {
    let mut terminations = TERMINATIONS.subscribe();
    for _ in 0..2 {
        // The sender is a static, so an error cannot occur.
        let ended = terminations.wait_for(|count| *count == 0);
        if tokio::time::timeout(EXIT_GRACE, ended).await.is_ok() {
            return;
        }
        KILL_NOW.send_modify(|times| *times += 1);
    }
}

/// Returns when no termination is in progress, after `limit` at the latest.
pub async fn wait_terminations(limit: Duration) {
    let mut terminations = TERMINATIONS.subscribe();
    // The sender is a static, so an error means that the time is over.
    _ = tokio::time::timeout(limit, terminations.wait_for(|count| *count == 0)).await;
}

/// Returns the session of a process; 0 stands for this process.
fn session_of(process: i32) -> Option<Pid> {
    // An error means that the process has ended.
    getsid(Some(Pid::from_raw(process))).ok()
}

/// Returns the start time in clock ticks since boot, `None` for a process that has ended.
#[cfg(target_os = "linux")]
fn start_time(process: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The fields after the name, which may contain any character.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut rest = rest.split(' ');
    // A zombie has ended.
    let runs = rest.next().is_some_and(|state| state != "Z");
    runs.then(|| rest.nth(18).map(str::to_owned))?
}

/// Returns an empty text: the start time cannot be read here, so the id has to do.
#[cfg(not(target_os = "linux"))]
fn start_time(process: i32) -> Option<String> {
    kill(Pid::from_raw(process), None).is_ok().then(String::new)
}

/// Returns the children of a process; none on systems without `/proc`.
fn children_of(parent: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let threads = threads.flatten();
    threads
        .flat_map(|thread| children_of_thread(&thread.path().to_string_lossy()))
        .collect()
}

fn children_of_thread(thread: &str) -> Vec<i32> {
    // The file is gone when the thread has ended.
    let list = fs::read_to_string(format!("{thread}/children")).unwrap_or_default();
    let numbers = list.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}
