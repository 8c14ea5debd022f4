//! `--mode json`: the session's header, then every event as a line.

use std::sync::Arc;

use async_trait::async_trait;

use super::output::Output;
use super::print::{say, tell_user};
use super::signals::{self, Interrupt};
use super::wire::Agreed;
use super::{complain, complain_of_stdout, reader};
use crate::agent::event::Event;
use crate::app::{AgentSession, AppConfig, EventSink, PromptContent};

/// Returns the exit code. A model's error is an event, not a code.
pub async fn run(config: AppConfig, prompts: Vec<PromptContent>) -> u8 {
    let ended = signals::ended(Interrupt::Ends);
    tokio::pin!(ended);
    let started = js_runtime::take_standard_streams().and_then(|mut streams| {
        let gone = reader::gone(&mut streams.output);
        Ok((Output::start(streams.output, Agreed::default())?, gone))
    });
    let ((output, mut closed), gone) = match started {
        Ok(started) => started,
        Err(error) => {
            complain(&format!("Error: {error}"));
            return 1;
        }
    };
    let starting = AgentSession::start(config, Arc::new(Events(output.clone())));
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
    let code = tokio::select! {
        code = converse(&session, &output, prompts) => code,
        code = ended => {
            output.hurry();
            code
        }
        () = gone => 1,
        Ok(error) = &mut closed => {
            complain_of_stdout(&error);
            1
        }
    };
    let code = session.shutdown(code).await;
    output.flush().await;
    match closed.try_recv() {
        Ok(error) if complain_of_stdout(&error) => code.max(1),
        _ => code,
    }
}

/// The events of the original's JSON mode, whose last line says how the run ended. What
/// extensions do wrong goes to stderr.
struct Events(Output);

#[async_trait]
impl EventSink for Events {
    async fn send(&self, event: Arc<Event>) {
        let settled = matches!(*event, Event::AgentSettled { .. });
        if !settled && !tell_user(&event) {
            self.0.send(event).await;
        }
    }
}

async fn converse(session: &AgentSession, output: &Output, prompts: Vec<PromptContent>) -> u8 {
    output.line(&session.header());
    for note in session.take_notes() {
        complain(&format!("Warning: {note}"));
    }
    session.open().await;
    for prompt in prompts {
        if let Err(error) = say(session, prompt).await {
            complain(&error.to_string());
            return 1;
        }
    }
    0
}
