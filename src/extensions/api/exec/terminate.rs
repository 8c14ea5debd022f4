//! What becomes of a program that nobody waits for any more: it is asked to end, with what
//! it has started, and killed if it does not; what it says meanwhile is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;

use pi_base::process_tree::{Process, kill_after_grace, send_sigterm, with_descendants};
use tokio::process::Child;

/// Of what a program says meanwhile, so much is read at a look.
const PIPE: u64 = 1 << 20;

/// Dropped before its end, nobody waits for it any more.
pub struct Running {
    child: Option<Child>,
    /// Who writes to a pipe that nobody holds dies of it.
    pipes: Vec<File>,
    /// Who was asked to end. Who asks another pi twice does not want to wait.
    asked: Vec<Process>,
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
        self.asked = with_descendants(pid);
        send_sigterm(&self.asked);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_end();
        let Some(mut child) = self.child.take_if(|child| child.id().is_some()) else {
            return;
        };
        let mut pipes = std::mem::take(&mut self.pipes);
        // The program itself is killed as it is dropped, also where no thread can be had.
        kill_after_grace(std::mem::take(&mut self.asked), move || {
            for pipe in &mut pipes {
                // They do not block: there is nothing, or too much, or an end.
                _ = io::copy(&mut pipe.take(PIPE), &mut io::sink());
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
    use crate::extensions::api::exec::*;

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
        let stubborn = Process::from_id(stubborn.trim().parse().unwrap()).unwrap();
        finish_terminations().await;
        assert_eq!(fs::read_to_string(file("end")).unwrap(), "in order\n");
        while stubborn.is_running() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
