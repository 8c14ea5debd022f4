//! `--mode rpc`: commands in, responses and events out, a JSON object a line
//! (docs/rpc.md). Nothing that a client sends ends the process, except closing
//! stdin.

mod announced;
mod answers;
mod command;
mod fuzz;
mod greeting;
mod handle;
mod lines;
mod parse;
mod pictures;
mod salvage;
pub mod schema;

pub use fuzz::{fuzz_command, fuzz_lines};

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::announced::Events;
use self::handle::Turn;
use self::lines::Line;
use super::output::Output;
use super::signals::{self, Interrupt};
use super::wire::Agreed;
use super::{complain, complain_of_stdout, reader};
use crate::app::{AgentSession, AppConfig};
use crate::extensions::waits_for_debugger;

/// How long commands that are being answered when stdin closes may take.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// The same after a signal, when they are aborted: whoever sends those may not wait for
/// long before the next.
const ABORTED_ANSWERS: Duration = Duration::from_millis(500);
/// Lines that may wait to be looked at.
const WAITING_LINES: usize = 64;

/// Bytes of commands that may wait until the session is open.
const EARLY: usize = 64 * 1024 * 1024;
/// What a client would ask for in its `hello`, for those that are too old to say one: a
/// list with commas.
const CAPABILITIES: &str = "PI_RPC_CAPABILITIES";

/// `capabilities` come from the command line. Returns the exit code.
pub async fn run(config: AppConfig, capabilities: &[String]) -> u8 {
    let ended = signals::ended(Interrupt::Ends);
    tokio::pin!(ended);
    // Nothing that runs inside this process can get at the protocol from here on.
    let wanted = std::env::var(CAPABILITIES).unwrap_or_default();
    let wanted = wanted.split(',').map(str::trim);
    let agreed = Agreed::of(wanted.chain(capabilities.iter().map(String::as_str)));
    let started = js_runtime::take_standard_streams().and_then(|mut streams| {
        let gone = reader::gone(&mut streams.output);
        Ok((Output::start(streams.output, agreed)?, streams.input, gone))
    });
    let ((output, mut closed), input, gone) = match started {
        Ok(started) => started,
        Err(error) => {
            complain(&format!("Error: {error}"));
            return 1;
        }
    };
    let session = match AgentSession::prepare(config, Arc::new(Events(output.clone()))) {
        Ok(session) => session,
        Err(error) => {
            complain(&format!("Error: {error}"));
            return 1;
        }
    };
    let (lines, waiting) = mpsc::channel(WAITING_LINES);
    lines::read_stdin(input, lines);
    let tasks = TaskTracker::new();
    let mut client = Client {
        session: &session,
        output: &output,
        tasks: &tasks,
        lines: waiting,
        early: Vec::new(),
        early_bytes: 0,
        gone: false,
    };
    tokio::pin!(gone);
    let loaded = tokio::select! {
        loaded = client.meanwhile(session.load()) => loaded,
        code = &mut ended => return code,
        () = &mut gone => return 1,
    };
    if let Err(error) = loaded {
        complain(&format!("Error: {error}"));
        return 1;
    }
    for note in session.take_notes() {
        complain(&format!("Warning: {note}"));
    }
    let code = tokio::select! {
        () = client.serve() => 0,
        () = session.asked_to_leave() => 0,
        code = ended => code,
        () = gone => 1,
        Ok(error) = &mut closed => {
            complain_of_stdout(&error);
            1
        }
    };
    tasks.close();
    // Nobody is there who could answer.
    session.extensions().close_dialogs();
    let limit = if code == 0 {
        // Or else whoever asked for its end would be waited for.
        session.abort_run();
        LAST_ANSWERS
    } else {
        session.abort();
        session.cancel_commands();
        output.hurry();
        ABORTED_ANSWERS
    };
    let mut answered = tokio::time::timeout(limit, tasks.wait()).await;
    if answered.is_err() && code == 0 {
        // What they have printed by now is an answer, too.
        session.cancel_commands();
        answered = tokio::time::timeout(ABORTED_ANSWERS, tasks.wait()).await;
    }
    if answered.is_err() {
        tracing::warn!(tasks = tasks.len(), "commands are not answered any more");
    }
    let code = session.shutdown(code).await;
    output.flush().await;
    match closed.try_recv() {
        Ok(error) if complain_of_stdout(&error) => code.max(1),
        _ => code,
    }
}

/// In the order in which it came.
enum Early {
    Line(Vec<u8>),
    /// It has been answered; what came before it is aborted when it has begun.
    Aborted,
}

/// Whoever writes to stdin.
struct Client<'a> {
    session: &'a Arc<AgentSession>,
    output: &'a Output,
    tasks: &'a TaskTracker,
    lines: mpsc::Receiver<Line>,
    /// What waits until the session is open.
    early: Vec<Early>,
    early_bytes: usize,
    gone: bool,
}

impl Client<'_> {
    /// Every line is dealt with beside the others: an `abort` need not wait for the
    /// command that it aborts. Returns when stdin is closed.
    async fn serve(&mut self) {
        self.meanwhile(self.session.open()).await;
        for early in std::mem::take(&mut self.early) {
            match early {
                Early::Line(line) => self.start(line).await,
                Early::Aborted => self.session.abort(),
            }
        }
        while !self.gone {
            // A client that does not read its answers is not asked for more commands.
            self.output.room().await;
            match self.lines.recv().await {
                None => self.gone = true,
                Some(Line::TooLong(bytes)) => handle::too_long(self.output, bytes),
                Some(Line::Text(line)) => self.start(line).await,
            }
        }
    }

    /// While extensions are loaded and greeted they may ask questions, and the client may
    /// give up waiting; its other commands wait.
    async fn meanwhile<T>(&mut self, opening: impl Future<Output = T>) -> T {
        let mut opening = std::pin::pin!(opening);
        let mut long = tokio::time::interval(LAST_ANSWERS);
        loop {
            self.output.room().await;
            let reads = !self.gone && self.early_bytes < EARLY;
            tokio::select! {
                done = &mut opening => return done,
                // Asked at every tick: an extension may come to wait for a debugger after the
                // client has gone.
                _ = long.tick(), if self.gone => {
                    // Nobody is there who wants anything, or who would attach a debugger.
                    if self.early.is_empty() || waits_for_debugger() {
                        self.session.extensions().abort(None);
                    }
                }
                line = self.lines.recv(), if reads => match line {
                    None => {
                        self.gone = true;
                        // Nobody is there who could answer.
                        self.session.extensions().close_dialogs();
                    }
                    Some(Line::TooLong(bytes)) => handle::too_long(self.output, bytes),
                    Some(Line::Text(line)) => self.take_early(line).await,
                }
            }
        }
    }

    async fn take_early(&mut self, line: Vec<u8>) {
        match handle::turn_of(&line) {
            Turn::Now => self.start(line).await,
            Turn::Abort => {
                if !self.early.is_empty() {
                    self.early.push(Early::Aborted);
                }
                self.start(line).await;
            }
            Turn::WhenOpen => {
                self.early_bytes += line.len();
                self.early.push(Early::Line(line));
            }
        }
    }

    /// What is done without waiting is done at once, so that its answer and its
    /// effect come before the next command. However many there are: none waits for its
    /// turn with tokio.
    async fn start(&self, line: Vec<u8>) {
        let (session, output) = (self.session.clone(), self.output.clone());
        let mut work = Box::pin(async move { handle::line(&session, &output, &line).await });
        if futures::poll!(tokio::task::unconstrained(&mut work)).is_pending() {
            self.tasks.spawn(work);
        }
    }
}
