//! Background sessions: replaced sessions that stay open because commands of the user still run in
//! them. The output of such a command is appended to the session in which it was started.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::state::{State, append_to_file};
use crate::user_commands::UserCommands;
use pi_agent::AgentMessage;
use pi_session::Session;

/// A replaced session that a lease keeps open.
pub(crate) struct BackgroundSession {
    session_number: u64,
    session: Session,
}

/// Numbers the sessions that were opened, and keeps replaced ones open.
#[derive(Default)]
pub(crate) struct OpenSessions {
    /// Number of the current session.
    pub current: u64,
    /// Number of the session that was opened last.
    last: u64,
    /// Replaced sessions that leases keep open.
    background: Vec<BackgroundSession>,
    /// The session number of each lease.
    leases: Vec<u64>,
}

/// The session to switch to.
pub(crate) enum SwitchTarget {
    Opened(Box<Session>),
    /// A background session, kept open by the lease.
    Background(SessionLease),
    /// The current session at its last entry. Its file allows a single writer, so the existing
    /// handle is reused.
    Reopen,
}

impl From<Session> for SwitchTarget {
    fn from(session: Session) -> Self {
        Self::Opened(Box::new(session))
    }
}

/// Keeps a session open until dropped, also in the background.
pub(crate) struct SessionLease {
    state: Arc<Mutex<State>>,
    session_number: u64,
    /// The shutdown of the program waits for this token.
    _user_command: TaskTrackerToken,
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let index = state
            .sessions
            .leases
            .iter()
            .position(|session_number| *session_number == self.session_number);
        if let Some(index) = index {
            state.sessions.leases.swap_remove(index);
        }
        let OpenSessions {
            background, leases, ..
        } = &mut state.sessions;
        background.retain(|background| leases.contains(&background.session_number));
    }
}

/// A command of the user, and the session in which it was started.
pub(crate) struct UserCommand {
    pub lease: SessionLease,
    pub cwd: PathBuf,
    pub cancel: CancellationToken,
}

impl UserCommands {
    pub(crate) fn begin(&self) -> UserCommand {
        let cancel = self.cancel.child_token();
        let mut state = self.state.lock();
        state.user_commands.last_cancel = Some(cancel.clone());
        UserCommand {
            cwd: state.session.cwd().to_path_buf(),
            lease: self.lease(&mut state, None),
            cancel,
        }
    }

    pub(crate) fn lease_current(&self) -> SessionLease {
        self.lease(&mut self.state.lock(), None)
    }

    /// Makes a lease; `None` stands for the current session.
    fn lease(&self, state: &mut State, session_number: Option<u64>) -> SessionLease {
        let session_number = session_number.unwrap_or(state.sessions.current);
        state.sessions.leases.push(session_number);
        SessionLease {
            state: self.state.clone(),
            session_number,
            _user_command: self.tasks.token(),
        }
    }

    /// Makes a lease of the background session with this file, if there is one. `cwd` overrides its
    /// working folder.
    pub(crate) fn lease_background(&self, path: &Path, cwd: Option<&Path>) -> Option<SessionLease> {
        let mut state = self.state.lock();
        let mut all = state.sessions.background.iter_mut();
        let background = all.find(|background| {
            background
                .session
                .path()
                .is_some_and(|own| is_same_file(own, path))
        })?;
        if let Some(cwd) = cwd {
            background.session.override_cwd(cwd);
        }
        let session_number = background.session_number;
        Some(self.lease(&mut state, Some(session_number)))
    }

    /// Appends the result of a user command to the session in which it was started. Returns a
    /// notice for the user.
    pub(crate) fn append(
        &self,
        lease: &SessionLease,
        message: Arc<AgentMessage>,
    ) -> Option<String> {
        let mut state = self.state.lock();
        if state.sessions.current != lease.session_number {
            let background = state
                .sessions
                .background
                .iter_mut()
                .find(|background| background.session_number == lease.session_number);
            return background
                .and_then(|background| append_to_file(&mut background.session, &message));
        }
        if state.work.is_running() {
            state.user_commands.deferred.push(message);
            return None;
        }
        state.append_or_buffer(message)
    }
}

impl State {
    /// Returns the file and the working folder of the target.
    pub fn path_and_cwd(&self, target: &SwitchTarget) -> (Option<PathBuf>, PathBuf) {
        let session = match target {
            SwitchTarget::Opened(session) => session,
            SwitchTarget::Background(lease) => self
                .sessions
                .background
                .iter()
                .find(|background| background.session_number == lease.session_number)
                .map_or(&self.session, |background| &background.session),
            SwitchTarget::Reopen => &self.session,
        };
        let path = session.path().map(Path::to_owned);
        (path, session.cwd().to_path_buf())
    }

    /// Makes the target the current session. The previous one stays in the background while leases
    /// exist. Returns the lease of the target.
    pub fn switch_to(&mut self, target: SwitchTarget) -> Option<SessionLease> {
        let (session_number, session, lease) = match target {
            SwitchTarget::Opened(session) => {
                self.sessions.last += 1;
                (self.sessions.last, *session, None)
            }
            SwitchTarget::Background(lease) => {
                let at = self
                    .sessions
                    .background
                    .iter()
                    .position(|background| background.session_number == lease.session_number);
                // The lease keeps the session in the list.
                let Some(at) = at else {
                    return Some(lease);
                };
                let background = self.sessions.background.swap_remove(at);
                (background.session_number, background.session, Some(lease))
            }
            SwitchTarget::Reopen => {
                self.session.move_to_end();
                return None;
            }
        };
        let background = BackgroundSession {
            session_number: std::mem::replace(&mut self.sessions.current, session_number),
            session: std::mem::replace(&mut self.session, session),
        };
        if self.sessions.leases.contains(&background.session_number) {
            self.sessions.background.push(background);
        }
        lease
    }
}

/// Returns whether both paths name one file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}
