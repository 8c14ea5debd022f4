//! The keyboard, as the client sees it: each request for input gets one event. Behind it is a
//! thread with a line editor, or on a dumb terminal a thread that reads lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{dumb_terminal, editor};

/// Input that the client requests of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputRequest {
    /// A prompt with history and completion. The text is what it begins with.
    Prompt { text: String },
    /// A message while the agent works.
    Message { text: String },
    /// The answer to a dialog.
    Answer {
        prompt: String,
        text: String,
        multiline: bool,
    },
    /// Keys while the agent works: Escape, Ctrl-C and the beginning of a message.
    Keys,
}

/// An action of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputEvent {
    Line(String),
    /// Escape. Holds the unfinished text.
    Escape(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
    /// The beginning of a message, while only keys were requested.
    Typed(String),
    /// [`Terminal::stop`] ended the request. Holds the unfinished text.
    Stopped(String),
    /// The line editor does not work on this terminal.
    Failed(String),
}

/// An event, and the request that it ends.
#[derive(Debug)]
pub struct InputResult {
    pub request: InputRequest,
    pub event: InputEvent,
}

/// Whether the other end of the terminal is closed, as by a user who closes the window.
#[cfg(unix)]
pub fn has_hung_up() -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;

    let stdin = std::io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
    let ready = poll(&mut polled, PollTimeout::ZERO).unwrap_or(0) > 0;
    ready
        && polled[0]
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLHUP))
}

#[cfg(not(unix))]
pub fn has_hung_up() -> bool {
    false
}

/// Waits until the other end of the terminal is closed. Never returns where that cannot be
/// watched. Without this, only SIGHUP would end a line editor, and a terminal that does not
/// control pi sends none.
#[cfg(unix)]
pub async fn hang_up() {
    if let Err(error) = wait_for_hang_up().await {
        tracing::warn!("the end of the terminal cannot be watched: {error}");
        std::future::pending().await
    }
}

#[cfg(unix)]
async fn wait_for_hang_up() -> std::io::Result<()> {
    use std::os::fd::AsFd;
    use tokio::io::{Interest, unix::AsyncFd};

    let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
    // SAFETY: the copy owns its descriptor and keeps it open for as long as it lives.
    let watched = unsafe { AsyncFd::register_with_interest(stdin, Interest::READABLE) }?;
    loop {
        let mut input = watched.readable().await?;
        if input.ready().is_read_closed() {
            return Ok(());
        }
        // The keyboard's thread reads the input.
        input.clear_ready();
    }
}

#[cfg(not(unix))]
pub async fn hang_up() {
    std::future::pending().await
}

pub struct Terminal {
    keyboard: Keyboard,
    events: mpsc::Receiver<InputEvent>,
    /// The request that has no event yet.
    pending: Option<InputRequest>,
}

enum Keyboard {
    Editor {
        requests: std::sync::mpsc::Sender<InputRequest>,
        stop: Arc<AtomicBool>,
    },
    Lines(dumb_terminal::LineReader),
}

impl Terminal {
    pub fn editor(settings: editor::EditorSettings) -> std::io::Result<Self> {
        let (requests, received) = std::sync::mpsc::channel();
        let (sender, events) = mpsc::channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        editor::start(settings, received, sender, stop.clone())?;
        Ok(Self {
            keyboard: Keyboard::Editor { requests, stop },
            events,
            pending: None,
        })
    }

    /// Reads lines without changing the mode of the terminal.
    pub fn dumb() -> std::io::Result<Self> {
        let (sender, events) = mpsc::channel(1);
        let lines = dumb_terminal::LineReader::start(sender)?;
        Ok(Self {
            keyboard: Keyboard::Lines(lines),
            events,
            pending: None,
        })
    }

    pub fn is_dumb(&self) -> bool {
        matches!(self.keyboard, Keyboard::Lines(_))
    }

    pub fn pending_request(&self) -> Option<&InputRequest> {
        self.pending.as_ref()
    }

    /// Starts a request; the one before must have ended. Returns the text to print.
    pub fn request(&mut self, request: InputRequest) -> String {
        debug_assert!(self.pending.is_none(), "one request at a time");
        let text = match &mut self.keyboard {
            Keyboard::Editor { requests, .. } => {
                // An error means that the thread has ended, which `next_input` reports.
                let _ = requests.send(request.clone());
                String::new()
            }
            Keyboard::Lines(lines) => lines.start_request(&request),
        };
        self.pending = Some(request);
        text
    }

    /// Waits for the next event.
    pub async fn next_input(&mut self) -> InputResult {
        loop {
            let event = self.events.recv().await;
            let event =
                event.unwrap_or_else(|| InputEvent::Failed("its thread is gone".to_string()));
            let event = match &mut self.keyboard {
                Keyboard::Editor { .. } => Some(event),
                Keyboard::Lines(lines) => lines.accept(event, self.pending.as_ref()),
            };
            if let Some(event) = event {
                return self.finish(event);
            }
        }
    }

    /// Ends the request. Returns what the user did in the last moment, or
    /// [`InputEvent::Stopped`].
    pub async fn stop(&mut self) -> InputResult {
        let Keyboard::Editor { stop, .. } = &self.keyboard else {
            return self.finish(InputEvent::Stopped(String::new()));
        };
        let stop = stop.clone();
        stop.store(true, Ordering::Relaxed);
        let input = self.next_input().await;
        // The user may have ended the request first.
        stop.store(false, Ordering::Relaxed);
        input
    }

    /// Ends the request. Without one the event is treated as an answer to `Keys`: a dumb terminal
    /// may send lines at any time.
    fn finish(&mut self, event: InputEvent) -> InputResult {
        let request = self.pending.take().unwrap_or(InputRequest::Keys);
        InputResult { request, event }
    }

    /// Ends the thread, so that it restores the terminal.
    pub async fn close(mut self) {
        if let Keyboard::Editor { requests, stop } = self.keyboard {
            stop.store(true, Ordering::Relaxed);
            drop(requests);
            // Wait until the thread has restored the terminal, but not for an external editor that
            // the user has open.
            let gone = async { while self.events.recv().await.is_some() {} };
            let _ = tokio::time::timeout(Duration::from_secs(1), gone).await;
            editor::restore();
        }
    }
}
