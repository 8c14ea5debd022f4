//! The keyboard, as the client sees it: it wants one thing at a time and is told
//! one thing for it. Behind it is a thread with a line editor, or on a dumb
//! terminal one that reads lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{editor, plain};

/// What is wanted of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// A prompt, with history and completion. The text is there to begin with.
    Prompt { text: String },
    /// A message while the agent works.
    Message { text: String },
    /// An answer to a question.
    Answer {
        prompt: String,
        text: String,
        many_lines: bool,
    },
    /// Nothing: the agent works. Escape, Ctrl-C and the beginning of a message
    /// are told.
    Keys,
}

/// What the user did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Line(String),
    /// Escape; with the text that was being typed.
    Escape(String),
    /// Ctrl-C
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
    /// The beginning of a message, while keys were wanted.
    Typed(String),
    /// Nothing more: [`Terminal::stop`] came first. The text was being typed.
    Stopped(String),
    /// The line editor cannot work here.
    Failed(String),
}

/// What the user did, and what was wanted of them.
#[derive(Debug)]
pub struct Heard {
    pub wanted: Want,
    pub said: Said,
}

pub struct Terminal {
    keyboard: Keyboard,
    said: mpsc::Receiver<Said>,
    /// What it waits for.
    wanted: Option<Want>,
}

enum Keyboard {
    Editor {
        wants: std::sync::mpsc::Sender<Want>,
        stop: Arc<AtomicBool>,
    },
    Lines(plain::Lines),
}

impl Terminal {
    pub fn editor(settings: editor::Settings) -> std::io::Result<Self> {
        let (wants, wanted) = std::sync::mpsc::channel();
        let (say, said) = mpsc::channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        editor::start(settings, wanted, say, stop.clone())?;
        Ok(Self {
            keyboard: Keyboard::Editor { wants, stop },
            said,
            wanted: None,
        })
    }

    /// Reads lines, and leaves the terminal as it is.
    pub fn plain() -> std::io::Result<Self> {
        let (say, said) = mpsc::channel(1);
        let lines = plain::Lines::start(say)?;
        Ok(Self {
            keyboard: Keyboard::Lines(lines),
            said,
            wanted: None,
        })
    }

    pub fn is_plain(&self) -> bool {
        matches!(self.keyboard, Keyboard::Lines(_))
    }

    pub fn wanted(&self) -> Option<&Want> {
        self.wanted.as_ref()
    }

    /// Wants something new; what was wanted before must be over. Returns what is
    /// to be printed.
    pub fn want(&mut self, want: Want) -> String {
        debug_assert!(self.wanted.is_none(), "one thing at a time");
        let print = match &mut self.keyboard {
            Keyboard::Editor { wants, .. } => {
                // An error means that the thread is gone, which `said` tells.
                let _ = wants.send(want.clone());
                String::new()
            }
            Keyboard::Lines(lines) => lines.want(&want),
        };
        self.wanted = Some(want);
        print
    }

    /// Waits for the user.
    pub async fn heard(&mut self) -> Heard {
        loop {
            let said = self.said.recv().await;
            let said = said.unwrap_or_else(|| Said::Failed("its thread is gone".to_string()));
            let said = match &mut self.keyboard {
                Keyboard::Editor { .. } => Some(said),
                Keyboard::Lines(lines) => lines.hear(said, self.wanted.as_ref()),
            };
            if let Some(said) = said {
                return self.over(said);
            }
        }
    }

    /// Ends what is wanted. Tells what the user did in the last moment, or
    /// [`Said::Stopped`].
    pub async fn stop(&mut self) -> Heard {
        let Keyboard::Editor { stop, .. } = &self.keyboard else {
            return self.over(Said::Stopped(String::new()));
        };
        let stop = stop.clone();
        stop.store(true, Ordering::Relaxed);
        let heard = self.heard().await;
        // The user may have been faster.
        stop.store(false, Ordering::Relaxed);
        heard
    }

    /// Lines may come although nothing is wanted.
    fn over(&mut self, said: Said) -> Heard {
        let wanted = self.wanted.take().unwrap_or(Want::Keys);
        Heard { wanted, said }
    }

    /// Lets go of the terminal.
    pub async fn close(mut self) {
        if let Keyboard::Editor { wants, stop } = self.keyboard {
            stop.store(true, Ordering::Relaxed);
            drop(wants);
            // Until the thread has restored the terminal; an editor that the
            // user has open is not waited for.
            let gone = async { while self.said.recv().await.is_some() {} };
            let _ = tokio::time::timeout(Duration::from_secs(1), gone).await;
            editor::restore();
        }
    }
}
