//! `--mode rpc`: commands in, responses and events out, a JSON object a line
//! (docs/rpc.md). Nothing that a client sends ends the process, except closing
//! stdin.

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

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use self::lines::Line;
use super::output::Output;
use super::signals::{self, Interrupt};
use super::wire::Agreed;
use super::{complain, reader};
use crate::app::{AgentSession, AppConfig};

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

/// Returns the exit code.
pub async fn run(config: AppConfig) -> u8 {
    let ended = signals::ended(Interrupt::Ends);
    tokio::pin!(ended);
    // Nothing that runs inside this process can get at the protocol from here on.
    let wanted = std::env::var(CAPABILITIES).unwrap_or_default();
    let agreed = Agreed::of(wanted.split(',').map(str::trim));
    let started = js_runtime::take_standard_streams().and_then(|streams| {
        let gone = reader::gone(&streams.output);
        Ok((Output::start(streams.output, agreed)?, streams.input, gone))
    });
    let ((output, mut closed), input, gone) = match started {
        Ok(started) => started,
        Err(error) => {
            complain(&format!("Error: {error}"));
            return 1;
        }
    };
    let starting = AgentSession::start(config, Arc::new(output.clone()));
    let started = tokio::select! {
        started = starting => started,
        code = &mut ended => return code,
    };
    let session = match started {
        Ok(session) => session,
        Err(error) => {
            complain(&format!("Error: {error}"));
            return 1;
        }
    };
    for note in session.take_notes() {
        complain(&format!("Warning: {note}"));
    }
    if session.model().is_none() {
        complain(&format!("Warning: {}", session.models().no_model_text()));
    }
    let (lines, waiting) = mpsc::channel(WAITING_LINES);
    // Extensions may ask questions while the session opens; their answers come in
    // over stdin.
    lines::read_stdin(input, lines);
    let tasks = TaskTracker::new();
    let code = tokio::select! {
        () = serve(&session, &output, waiting, &tasks) => 0,
        () = session.asked_to_leave() => 0,
        code = ended => code,
        () = gone => 1,
        Ok(error) = &mut closed => {
            tell_of(&error);
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
    session.shutdown(code).await;
    output.flush().await;
    match closed.try_recv() {
        Ok(error) if tell_of(&error) => code.max(1),
        _ => code,
    }
}

/// Why stdout cannot be written; `false` if the client is gone, who knows.
fn tell_of(error: &io::Error) -> bool {
    let is_told = error.kind() != io::ErrorKind::BrokenPipe;
    if is_told {
        complain(&format!("Error: stdout: {error}"));
    }
    is_told
}

/// Every line is dealt with beside the others: an `abort` need not wait for the
/// command that it aborts. Returns when stdin is closed.
async fn serve(
    session: &Arc<AgentSession>,
    output: &Output,
    mut lines: mpsc::Receiver<Line>,
    tasks: &TaskTracker,
) {
    let opening = session.open();
    tokio::pin!(opening);
    let mut open = false;
    // Commands that come before the session is open wait for it; answers to its
    // questions do not.
    let mut early = Vec::new();
    let mut early_bytes = 0;
    loop {
        // A client that does not read its answers is not asked for more commands.
        output.room().await;
        tokio::select! {
            () = &mut opening, if !open => {
                open = true;
                early_bytes = 0;
                for line in early.drain(..) {
                    start(session, output, tasks, line).await;
                }
            }
            line = lines.recv(), if early_bytes < EARLY => match line {
                None => {
                    if !open {
                        // Nobody is there who could answer.
                        session.extensions().close_dialogs();
                        opening.await;
                        for line in early {
                            start(session, output, tasks, line).await;
                        }
                    }
                    return;
                }
                Some(Line::TooLong(bytes)) => handle::too_long(output, bytes),
                Some(Line::Text(line)) if open || handle::comes_early(&line) => {
                    start(session, output, tasks, line).await;
                }
                Some(Line::Text(line)) => {
                    early_bytes += line.len();
                    early.push(line);
                }
            }
        }
    }
}

/// What is done without waiting is done at once, so that its answer and its
/// effect come before the next command. However many there are: none waits for its
/// turn with tokio.
async fn start(session: &Arc<AgentSession>, output: &Output, tasks: &TaskTracker, line: Vec<u8>) {
    let (session, output) = (session.clone(), output.clone());
    let mut work = Box::pin(async move { handle::line(&session, &output, &line).await });
    if futures::poll!(tokio::task::unconstrained(&mut work)).is_pending() {
        tasks.spawn(work);
    }
}
