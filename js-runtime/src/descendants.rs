//! What becomes of processes that nobody waits for any more: they are asked to end, with
//! what they have started, as if they had been aborted, since another pi ends what it runs,
//! too; and killed if they do not. A session of its own (`setsid`, `detached`) is how a
//! process says that it is meant to stay.

use std::fs;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};
use tokio::sync::watch;

/// What a process that was asked to end is given before it is killed.
pub const GRACE: Duration = Duration::from_secs(5);
/// What is left of the grace when this program ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// How often somebody sees processes off now.
static ENDING: LazyLock<watch::Sender<usize>> = LazyLock::new(watch::Sender::default);
/// Rises when all of those have had their time.
static HURRIED: LazyLock<watch::Sender<u64>> = LazyLock::new(watch::Sender::default);

/// Who was asked to end and has not.
static ASKED: Mutex<Vec<Process>> = Mutex::new(Vec::new());

/// A process, told from a later one of the same number by when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    id: Pid,
    began: String,
}

impl Process {
    /// `None` if it has ended.
    pub fn of(id: i32) -> Option<Self> {
        let began = began(id)?;
        let id = Pid::from_raw(id);
        Some(Self { id, began })
    }

    pub fn runs(&self) -> bool {
        began(self.id.as_raw()).as_ref() == Some(&self.began)
    }

    fn send(&self, signal: Signal) {
        // An error means that it ended meanwhile.
        _ = kill(self.id, signal);
    }
}

/// It and what it has started.
pub fn with_descendants(first: i32) -> Vec<Process> {
    let session = session_of(first);
    let mut found: Vec<Process> = Process::of(first).into_iter().collect();
    let mut looked = 0;
    while let Some(parent) = found.get(looked) {
        looked += 1;
        let children = children_of(parent.id.as_raw()).into_iter();
        let children: Vec<Process> = children
            .filter(|child| session_of(*child) == session)
            .filter_map(Process::of)
            .collect();
        found.extend(children);
    }
    found
}

/// This program ends at once, and kills what it has started before.
pub fn kill_all() {
    let own = nix::unistd::getpid().as_raw();
    for process in with_descendants(own).iter().skip(1) {
        process.send(Signal::SIGKILL);
    }
    for host in hosts().drain(..) {
        kill_session(host);
    }
}

/// The processes of extensions, each of which leads a session.
fn hosts() -> MutexGuard<'static, Vec<i32>> {
    static HOSTS: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of [`kill_all`], until [`no_host_any_more`].
pub(crate) fn note_host(process: i32) {
    hosts().push(process);
}

pub(crate) fn no_host_any_more(process: i32) {
    hosts().retain(|host| *host != process);
}

/// The process first: it starts no other then.
#[cfg(target_os = "linux")]
fn kill_session(first: i32) {
    // An error means that it has ended.
    _ = kill(Pid::from_raw(first), Signal::SIGKILL);
    for process in others_in_session(first) {
        process.send(Signal::SIGKILL);
    }
}

/// Nobody tells who is in it.
#[cfg(not(target_os = "linux"))]
fn kill_session(first: i32) {
    // An error means that nothing is left of it.
    _ = nix::sys::signal::killpg(Pid::from_raw(first), Signal::SIGKILL);
}

/// The number that the system has for it.
#[cfg(target_os = "linux")]
pub(crate) fn this_thread() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// Nobody tells what a thread has started.
#[cfg(not(target_os = "linux"))]
pub(crate) fn this_thread() -> i32 {
    0
}

/// What a thread of this process has started.
pub(crate) fn of_thread(thread: i32) -> Vec<Process> {
    let session = session_of(0);
    let children = children_of_thread(&format!("/proc/self/task/{thread}"));
    let children = children.into_iter();
    let children = children.filter(|child| session_of(*child) == session);
    children.flat_map(with_descendants).collect()
}

/// All others in the session of a process, whoever has started them.
#[cfg(target_os = "linux")]
fn others_in_session(first: i32) -> Vec<Process> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let session = Some(Pid::from_raw(first));
    let others = numbers.filter(|process| *process != first && session_of(*process) == session);
    others.filter_map(Process::of).collect()
}

/// The process is to end, and may wait for one of them.
#[cfg(target_os = "linux")]
pub(crate) fn ask_session_to_end(first: i32) {
    ask_to_end(&others_in_session(first));
}

/// Nobody tells who that is.
#[cfg(not(target_os = "linux"))]
pub(crate) fn ask_session_to_end(_first: i32) {}

/// Ends what is left of the session of a process that has ended.
#[cfg(target_os = "linux")]
pub(crate) fn end_session(first: i32, hurry: Hurry) {
    let left = others_in_session(first);
    if !left.is_empty() {
        ask_to_end(&left);
        see_off_unless(hurry, left, || true);
    }
}

/// Nobody tells who that is.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end_session(first: i32, _hurry: Hurry) {
    // An error means that nothing is left of it.
    _ = nix::sys::signal::killpg(Pid::from_raw(first), Signal::SIGKILL);
}

/// Once: who asks another pi twice does not want to wait.
pub fn ask_to_end(processes: &[Process]) {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.retain(Process::runs);
    for process in processes {
        if !asked.contains(process) {
            process.send(Signal::SIGTERM);
            asked.push(process.clone());
        }
    }
}

/// Waits until those that were asked to end are gone, and kills them when they have had
/// their time; on a thread of its own, because whose runtime it was may be gone already.
/// `look` is called now and then, and at the end; it tells whether there is nothing else to
/// wait for.
pub fn see_off(left: Vec<Process>, look: impl FnMut() -> bool + Send + 'static) {
    see_off_unless(hurry(), left, look);
}

fn see_off_unless(
    hurry: Hurry,
    mut left: Vec<Process>,
    mut look: impl FnMut() -> bool + Send + 'static,
) {
    let until = Instant::now() + GRACE;
    let ending = Ending::new();
    let wait = move || {
        let _ending = ending;
        loop {
            let over = look();
            left.retain(Process::runs);
            if over && left.is_empty() {
                return;
            }
            // Its sender stays for ever.
            if Instant::now() >= until || hurry.has_changed().unwrap_or(true) {
                break;
            }
            thread::sleep(LOOK);
        }
        // They may have started others meanwhile.
        for process in left {
            for process in with_descendants(process.id.as_raw()) {
                process.send(Signal::SIGKILL);
            }
        }
    };
    // Without a thread to be had they were asked, and that is all.
    _ = thread::Builder::new().name("ending".into()).spawn(wait);
}

/// Asks all of them to end, and sees them off.
pub(crate) fn end(processes: Vec<Process>) {
    if !processes.is_empty() {
        ask_to_end(&processes);
        see_off(processes, || true);
    }
}

/// Changes when those that are asked to end have had their time.
pub(crate) type Hurry = watch::Receiver<u64>;

/// From now on.
pub(crate) fn hurry() -> Hurry {
    HURRIED.subscribe()
}

/// One of [`ENDING`]: the program waits for it when it ends.
pub(crate) struct Ending;

impl Ending {
    pub fn new() -> Self {
        ENDING.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.send_modify(|count| *count -= 1);
    }
}

/// This program ends: waits a moment for those that are asked to end, and kills the rest.
pub async fn finish() {
    let mut ending = ENDING.subscribe();
    for _ in 0..2 {
        // The sender stays for ever.
        let ended = ending.wait_for(|count| *count == 0);
        if tokio::time::timeout(FAREWELL, ended).await.is_ok() {
            return;
        }
        HURRIED.send_modify(|times| *times += 1);
    }
}

/// Of this process: 0.
fn session_of(process: i32) -> Option<Pid> {
    // An error means that it has ended.
    getsid(Some(Pid::from_raw(process))).ok()
}

#[cfg(target_os = "linux")]
fn began(process: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut rest = rest.split(' ');
    // One that has ended may wait for somebody to bury it.
    let runs = rest.next().is_some_and(|state| state != "Z");
    runs.then(|| rest.nth(18).map(str::to_owned))?
}

/// Nobody tells; the number has to do.
#[cfg(not(target_os = "linux"))]
fn began(process: i32) -> Option<String> {
    kill(Pid::from_raw(process), None).is_ok().then(String::new)
}

/// Linux tells; elsewhere there are none.
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
    // None any more once it has ended.
    let list = fs::read_to_string(format!("{thread}/children")).unwrap_or_default();
    let numbers = list.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}
