//! Shares the session file with other processes. This process holds the session lock from the first
//! append of a run until the agent is idle. Clients that share a session take turns this way, and
//! so do programs that start a successor before they end, such as Emacs.

use std::sync::Weak;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::prompt::PromptError;
use super::state::State;
use pi_session::{LockOutcome, Session, SessionError};

/// How long to wait for another process to release the session lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

impl AgentSession {
    /// Acquires the session lock, and waits up to [`LOCK_TIMEOUT`] for another process. Entries
    /// which that process appended join the conversation.
    pub(super) async fn acquire_session_lock(
        &self,
        cancel: &CancellationToken,
    ) -> Result<(), PromptError> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            let held = self.state.lock().lock_file();
            match held {
                Ok(LockOutcome::Unchanged) => return Ok(()),
                Ok(LockOutcome::CaughtUp(added)) => {
                    tracing::info!("{added} entries that another process stored were read");
                    return Ok(());
                }
                Err(SessionError::Locked { .. }) if Instant::now() < deadline => {}
                Err(error) => return Err(PromptError::Session(error)),
            }
            tokio::select! {
                () = tokio::time::sleep(LOCK_POLL_INTERVAL) => {}
                () = cancel.cancelled() => return Err(PromptError::Aborted),
            }
        }
    }

    /// Releases the session lock, unless a run, a summary, a prompt or a switch needs it.
    fn release_session_lock(&self) {
        let mut state = self.state.lock();
        let is_at_work = state.work.is_working()
            || state.work.ending_run().is_some()
            || state.prompts.preparing > 0
            || state.work.is_replacing;
        if !is_at_work {
            state.session.release_lock();
        }
    }
}

/// Releases the session lock whenever the agent is idle. `lock_used` changes with each append, and
/// when work that kept the lock ends.
pub(super) async fn release_lock_when_idle(
    session: Weak<AgentSession>,
    mut lock_used: watch::Receiver<()>,
) {
    loop {
        {
            let Some(session) = session.upgrade() else {
                return;
            };
            session.wait_idle().await;
            session.wait_not_ending().await;
            session.release_session_lock();
        }
        // An error means that the session is gone.
        if lock_used.changed().await.is_err() {
            return;
        }
    }
}

impl State {
    /// Acquires the session lock, and rebuilds the context if the file changed.
    pub fn lock_file(&mut self) -> Result<LockOutcome, SessionError> {
        self.lock_used.send_replace(());
        let held = self.session.acquire_lock()?;
        if held != LockOutcome::Unchanged {
            self.context = self.session.build_context().messages;
        }
        Ok(held)
    }

    /// The session to append to. Fails at once if another process holds the session lock.
    pub fn writable(&mut self) -> Result<&mut Session, SessionError> {
        self.lock_file()?;
        Ok(&mut self.session)
    }
}
