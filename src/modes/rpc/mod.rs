//! `--mode rpc`: commands in, responses and events out, a JSON object a line
//! (docs/rpc.md). Nothing that a client sends ends the process, except closing
//! stdin.

mod command;
mod handle;
mod lines;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::output::Output;
use super::signals::{self, Interrupt};
use super::{complain, reader};
use crate::app::{AgentSession, AppConfig};

/// How long commands that are being answered when stdin closes may take.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Lines that may wait to be looked at.
const WAITING_LINES: usize = 64;

/// The members that are `None` are left out, as clients expect.
#[derive(Debug, Serialize)]
struct Response {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<serde_json::Value>,
    r#type: &'static str,
    command: String,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<serde_json::value::RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Returns the exit code.
pub async fn run(config: AppConfig) -> u8 {
    let ended = signals::ended(Interrupt::Ends);
    tokio::pin!(ended);
    // Nothing that runs inside this process can get at the protocol from here on.
    let started = js_runtime::take_standard_streams().and_then(|streams| {
        let gone = reader::gone(&streams.output);
        Ok((Output::start(streams.output)?, streams.input, gone))
    });
    let ((output, closed), input, gone) = match started {
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
        Ok(error) = closed => {
            tracing::warn!("stdout: {error}");
            1
        }
    };
    tasks.close();
    // Nobody is there who could answer.
    session.extensions().close_dialogs();
    if code != 0 {
        // Who sends signals may not wait for long before the next.
        session.abort();
    }
    // What cannot be answered by then is cut off.
    let _ = tokio::time::timeout(LAST_ANSWERS, tasks.wait()).await;
    session.shutdown().await;
    output.flush().await;
    code
}

/// Every line is dealt with beside the others: an `abort` need not wait for the
/// command that it aborts. Returns when stdin is closed.
async fn serve(
    session: &Arc<AgentSession>,
    output: &Output,
    mut lines: mpsc::Receiver<Vec<u8>>,
    tasks: &TaskTracker,
) {
    let opening = session.open();
    tokio::pin!(opening);
    let mut open = false;
    // Commands that come before the session is open wait for it; answers to its
    // questions do not.
    let mut early = Vec::new();
    loop {
        tokio::select! {
            () = &mut opening, if !open => {
                open = true;
                for line in early.drain(..) {
                    start(session, output, tasks, line).await;
                }
            }
            line = lines.recv() => match line {
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
                Some(line) if open || handle::comes_early(&line) => {
                    start(session, output, tasks, line).await;
                }
                Some(line) => early.push(line),
            }
        }
    }
}

/// What is done without waiting is done at once, so that its answer and its
/// effect come before the next command.
async fn start(session: &Arc<AgentSession>, output: &Output, tasks: &TaskTracker, line: Vec<u8>) {
    let (session, output) = (session.clone(), output.clone());
    let mut work = Box::pin(async move { handle::line(&session, &output, &line).await });
    if futures::poll!(&mut work).is_pending() {
        tasks.spawn(work);
    }
}
