//! The session file in turns with other processes: it is this process's from the first append
//! of a run until the agent is at rest. Programs that start a successor before they end, as
//! Emacs does, and clients that share a session hand it over in this way.

use std::sync::Weak;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::prompt::PromptError;
use super::state::State;
use crate::session::{LockOutcome, Session, SessionError};

/// How long another process may take to end, or to finish what it is about.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

impl AgentSession {
    /// Makes the session file this process's to write, and waits up to [`PATIENCE`] for
    /// another one that writes. What that one stored is part of the conversation then.
    pub(super) async fn hold_session(&self, cancel: &CancellationToken) -> Result<(), PromptError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let held = self.state.lock().hold();
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
                () = tokio::time::sleep(PAUSE) => {}
                () = cancel.cancelled() => return Err(PromptError::Aborted),
            }
        }
    }

    /// Lets other processes write to the session, unless this one is at work in it.
    fn release_session(&self) {
        let mut state = self.state.lock();
        let is_at_work = state.run.is_some()
            || state.ending.is_some()
            || state.summary.is_some()
            || state.preparing > 0
            || state.replacing;
        if !is_at_work {
            state.session.release_lock();
        }
    }
}

/// Gives the session file back whenever the agent is at rest. `written` changes with each
/// append, and when what kept the file is over.
pub(super) async fn release_at_rest(session: Weak<AgentSession>, mut written: watch::Receiver<()>) {
    loop {
        {
            let Some(session) = session.upgrade() else {
                return;
            };
            session.wait_idle().await;
            session.wait_rested().await;
            session.release_session();
        }
        // An error means that the session is gone.
        if written.changed().await.is_err() {
            return;
        }
    }
}

impl State {
    /// [`Session::hold`] with what depends on the entries.
    pub fn hold(&mut self) -> Result<LockOutcome, SessionError> {
        self.written.send_replace(());
        let held = self.session.acquire_lock()?;
        if held != LockOutcome::Unchanged {
            self.context = self.session.build_context().messages;
        }
        Ok(held)
    }

    /// The session to append to. Does not wait for another process that writes.
    pub fn writable(&mut self) -> Result<&mut Session, SessionError> {
        self.hold()?;
        Ok(&mut self.session)
    }
}
