//! Terminates a program whose caller is gone: asks it and its descendants to end, kills
//! them after a grace period, and reads their output meanwhile.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;

use pi_base::process_tree::{Process, kill_after_grace, send_sigterm, with_descendants};
use tokio::process::Child;

/// Bytes of output that are read at each poll.
const READ_CHUNK: u64 = 1 << 20;

/// A running program. Dropping it before the program ends means that the caller is gone.
pub struct Running {
    child: Option<Child>,
    /// Kept open, because a program that writes to a closed pipe is killed by SIGPIPE.
    pipes: Vec<File>,
    /// Processes that were asked to end. A second request would make another pi exit at
    /// once.
    terminating: Vec<Process>,
}

impl Running {
    /// Wraps `child`, whose pipes must still be in place.
    pub fn new(child: Child) -> Self {
        let out = child.stdout.as_ref().map(AsFd::as_fd);
        let pipes = [out, child.stderr.as_ref().map(AsFd::as_fd)];
        let pipes = pipes.into_iter().flatten();
        // Without a spare descriptor the program is terminated all the same.
        let pipes = pipes.filter_map(|pipe| pipe.try_clone_to_owned().ok());
        Self {
            pipes: pipes.map(File::from).collect(),
            child: Some(child),
            terminating: Vec::new(),
        }
    }

    pub fn child(&mut self) -> &mut Child {
        self.child.as_mut().expect("only a drop takes it")
    }

    /// Asks the program and its descendants to end.
    pub fn ask_to_end(&mut self) {
        // The id is gone once the program has ended.
        let pid = self.child().id().and_then(|pid| i32::try_from(pid).ok());
        let Some(pid) = pid.filter(|_| self.terminating.is_empty()) else {
            return;
        };
        // Descendants are collected first, because those of an ended process cannot be
        // found.
        self.terminating = with_descendants(pid);
        send_sigterm(&self.terminating);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_end();
        let Some(mut child) = self.child.take_if(|child| child.id().is_some()) else {
            return;
        };
        let mut pipes = std::mem::take(&mut self.pipes);
        // The program itself is killed on drop, even if no thread can be started.
        kill_after_grace(std::mem::take(&mut self.terminating), move || {
            for pipe in &mut pipes {
                // The pipes do not block, so each read ends at once.
                _ = io::copy(&mut pipe.take(READ_CHUNK), &mut io::sink());
            }
            !matches!(child.try_wait(), Ok(None))
        });
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::time::Duration;

    use pi_base::process_tree::finish_terminations;

    use super::super::{ExecRequest, Execs};
    use super::*;

    #[tokio::test]
    async fn abandoned_program_gets_a_grace_period() {
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
        let stubborn = Process::from_id(stubborn.trim().parse().unwrap()).unwrap();
        finish_terminations().await;
        assert_eq!(fs::read_to_string(file("end")).unwrap(), "in order\n");
        while stubborn.is_running() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
