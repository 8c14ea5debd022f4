//! Sessions that were left while commands of the user still run in them. What those
//! print belongs where it was asked for: it is stored there, and the session that is
//! open now does not hear of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::AgentSession;
use super::state::{State, keep};
use crate::agent::AgentMessage;
use crate::session::Session;

/// A session that is open beside the one that goes on, for its commands alone.
pub(super) struct Left {
    place: u64,
    session: Session,
}

/// What takes the place of the session that is open.
pub(super) enum Next {
    Opened(Box<Session>),
    /// One that was left, and is still held.
    Back(Stay),
    /// The same once more, which has one writer, at its last entry.
    Again,
}

impl From<Session> for Next {
    fn from(session: Session) -> Self {
        Self::Opened(Box::new(session))
    }
}

/// Keeps a session open, left or not.
pub(super) struct Stay {
    session: Arc<AgentSession>,
    place: u64,
    /// The end of the program waits for it.
    _at_work: TaskTrackerToken,
}

impl Drop for Stay {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        let held = state.stays.iter().position(|place| *place == self.place);
        if let Some(held) = held {
            state.stays.swap_remove(held);
        }
        let State { left, stays, .. } = &mut *state;
        left.retain(|left| stays.contains(&left.place));
    }
}

/// A command of the user, and where it was asked for.
pub(super) struct UserCommand {
    pub stay: Stay,
    pub cwd: PathBuf,
    pub cancel: CancellationToken,
}

impl AgentSession {
    pub(super) fn begin_command(&self) -> UserCommand {
        let cancel = self.commands.child_token();
        let mut state = self.state.lock();
        state.bash = Some(cancel.clone());
        UserCommand {
            cwd: state.session.cwd().to_path_buf(),
            stay: self.stay(&mut state, None),
            cancel,
        }
    }

    pub(super) fn stay_here(&self) -> Stay {
        self.stay(&mut self.state.lock(), None)
    }

    /// In the session that is open, if no other is named.
    fn stay(&self, state: &mut State, place: Option<u64>) -> Stay {
        let place = place.unwrap_or(state.place);
        state.stays.push(place);
        Stay {
            session: self.arc(),
            place,
            _at_work: self.at_work.token(),
        }
    }

    /// The session with this file, if it was left and is still held. `cwd` is where it
    /// goes on, if not where it was.
    pub(super) fn go_back_to(&self, path: &Path, cwd: Option<&Path>) -> Option<Stay> {
        let mut state = self.state.lock();
        let mut all = state.left.iter_mut();
        let left = all.find(|left| left.session.path().is_some_and(|own| same(own, path)))?;
        if let Some(cwd) = cwd {
            left.session.override_cwd(cwd);
        }
        let place = left.place;
        Some(self.stay(&mut state, Some(place)))
    }

    /// Stores what a command of the user brought. Gives what they have to be told.
    pub(super) fn store_command(&self, stay: &Stay, message: Arc<AgentMessage>) -> Option<String> {
        let mut state = self.state.lock();
        if state.place != stay.place {
            let left = state.left.iter_mut().find(|left| left.place == stay.place);
            return left.and_then(|left| keep(&mut left.session, &message));
        }
        if state.run.is_some() {
            state.deferred_bash.push(message);
            return None;
        }
        state.say_anyway(message)
    }
}

impl State {
    /// Where it is stored, and where it works.
    pub fn whereabouts(&self, next: &Next) -> (Option<PathBuf>, PathBuf) {
        let session = match next {
            Next::Opened(session) => session,
            Next::Back(stay) => self
                .left
                .iter()
                .find(|left| left.place == stay.place)
                .map_or(&self.session, |left| &left.session),
            Next::Again => &self.session,
        };
        let path = session.path().map(Path::to_owned);
        (path, session.cwd().to_path_buf())
    }

    /// Puts the next session in the place of this one, which stays open as long as
    /// commands run in it.
    pub fn enter(&mut self, next: Next) -> Option<Stay> {
        let (place, session, stay) = match next {
            Next::Opened(session) => {
                self.places += 1;
                (self.places, *session, None)
            }
            Next::Back(stay) => {
                let at = self.left.iter().position(|left| left.place == stay.place);
                // It is held, so it is there.
                let Some(at) = at else {
                    return Some(stay);
                };
                let left = self.left.swap_remove(at);
                (left.place, left.session, Some(stay))
            }
            Next::Again => {
                self.session.move_to_end();
                return None;
            }
        };
        let left = Left {
            place: std::mem::replace(&mut self.place, place),
            session: std::mem::replace(&mut self.session, session),
        };
        if self.stays.contains(&left.place) {
            self.left.push(left);
        }
        stay
    }
}

/// Whether both name one file.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}
