//! What becomes of a program that nobody waits for any more: it is asked to end, with what
//! it has started, as if it had been aborted, since another pi ends what it runs, too; and
//! killed if it does not.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};
use tokio::process::Child;
use tokio::sync::watch;

use super::GRACE;

/// What is left of the grace when this program ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Of what a program says meanwhile, so much is read at a look.
const PIPE: u64 = 1 << 20;

/// How many programs are being ended.
static ENDING: LazyLock<watch::Sender<usize>> = LazyLock::new(watch::Sender::default);
/// Rises when all of those have had their time.
static HURRIED: AtomicU64 = AtomicU64::new(0);

/// Dropped before its end, nobody waits for it any more.
pub struct Running {
    child: Option<Child>,
    /// Who writes to a pipe that nobody holds dies of it.
    pipes: Vec<File>,
    /// Who was asked to end. Who asks another pi twice does not want to wait.
    asked: Vec<Pid>,
}

impl Running {
    /// Of `child` nothing was taken yet.
    pub fn new(child: Child) -> Self {
        let out = child.stdout.as_ref().map(AsFd::as_fd);
        let pipes = [out, child.stderr.as_ref().map(AsFd::as_fd)];
        let pipes = pipes.into_iter().flatten();
        // Without a descriptor to spare it is ended all the same.
        let pipes = pipes.filter_map(|pipe| pipe.try_clone_to_owned().ok());
        Self {
            pipes: pipes.map(File::from).collect(),
            child: Some(child),
            asked: Vec::new(),
        }
    }

    pub fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("only a drop takes it")
    }

    /// Asks it to end, and what it has started, which would live on where nobody knows of
    /// it.
    pub fn ask_to_end(&mut self) {
        // None any more once it has ended.
        let pid = self.child().id().and_then(|pid| i32::try_from(pid).ok());
        let Some(pid) = pid.filter(|_| self.asked.is_empty()) else {
            return;
        };
        // First all are found: those of a process that has ended cannot be.
        self.asked = with_descendants(Pid::from_raw(pid));
        for process in &self.asked {
            // An error means that it ended meanwhile.
            _ = kill(*process, Signal::SIGTERM);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_end();
        if let Some(child) = self.child.take_if(|child| child.id().is_some()) {
            let (asked, pipes) = (&mut self.asked, &mut self.pipes);
            see_off(child, std::mem::take(asked), std::mem::take(pipes));
        }
    }
}

/// Whose runtime it was may be gone already, so that a thread sees to it.
fn see_off(mut child: Child, asked: Vec<Pid>, mut pipes: Vec<File>) {
    let begun = |pid| Some((pid, beginning(pid)?));
    let mut left: Vec<_> = asked.into_iter().filter_map(begun).collect();
    let until = Instant::now() + GRACE;
    let hurried = HURRIED.load(Ordering::Relaxed);
    let counted = Counted::new();
    let wait = move || {
        let _counted = counted;
        loop {
            let ended = !matches!(child.try_wait(), Ok(None));
            left.retain(|(pid, when)| beginning(*pid).as_ref() == Some(when));
            if ended && left.is_empty() {
                return;
            }
            if Instant::now() >= until || HURRIED.load(Ordering::Relaxed) != hurried {
                break;
            }
            for pipe in &mut pipes {
                // They do not block: there is nothing, or too much, or an end.
                _ = io::copy(&mut pipe.take(PIPE), &mut io::sink());
            }
            thread::sleep(LOOK);
        }
        for (pid, _) in left {
            // An error means that it ended meanwhile.
            _ = kill(pid, Signal::SIGKILL);
        }
        // The program itself is killed as it is dropped, also where no thread can be had.
    };
    let thread = thread::Builder::new().name("exec-end".into());
    _ = thread.spawn(wait);
}

/// One of [`ENDING`].
struct Counted;

impl Counted {
    fn new() -> Self {
        ENDING.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Counted {
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
        HURRIED.fetch_add(1, Ordering::Relaxed);
    }
}

/// When a process began, which tells it from a later one of the same number. `None` if it
/// has ended, and where the system does not tell.
fn beginning(pid: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut rest = rest.split(' ');
    // One that has ended may wait for somebody to bury it.
    let runs = rest.next().is_some_and(|state| state != "Z");
    runs.then(|| rest.nth(18).map(str::to_owned))?
}

/// Without those that have a group of their own: they are meant to stay.
fn with_descendants(first: Pid) -> Vec<Pid> {
    let group = getpgid(Some(first));
    let mut found = vec![first];
    let mut looked = 0;
    while let Some(&parent) = found.get(looked) {
        looked += 1;
        let children = children_of(parent).into_iter().map(Pid::from_raw);
        found.extend(children.filter(|child| getpgid(Some(*child)) == group));
    }
    found
}

/// Linux tells; elsewhere there are none.
fn children_of(parent: Pid) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::{ExecRequest, Execs};
    use super::*;

    #[tokio::test]
    async fn what_lost_its_caller_may_end_in_order_and_is_killed_if_it_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let script = format!(
            "trap 'echo asked; echo in order > {}; exit' TERM
            (trap '' TERM; echo $BASHPID > {}; sleep 300) &
            while :; do sleep 0.05; done",
            file("end"),
            file("stubborn"),
        );
        let request = ExecRequest {
            token: 1,
            command: "bash".into(),
            args: vec!["-c".into(), script],
            cwd: None,
            timeout: None,
        };
        let execs = Execs::default();
        let running = execs.run(request, "/".into());
        _ = tokio::time::timeout(Duration::from_millis(500), running).await;
        let stubborn = fs::read_to_string(file("stubborn")).unwrap();
        let stubborn = Pid::from_raw(stubborn.trim().parse().unwrap());
        assert!(beginning(stubborn).is_some());
        finish().await;
        assert_eq!(fs::read_to_string(file("end")).unwrap(), "in order\n");
        while beginning(stubborn).is_some() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
