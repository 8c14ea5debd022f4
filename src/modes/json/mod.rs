//! `--mode json`: the session's header, then every event as a line.

use std::sync::Arc;

use async_trait::async_trait;

use super::output::Output;
use super::print::say;
use super::signals;
use super::wire::Agreed;
use crate::agent::event::Event;
use crate::app::{AgentSession, AppConfig, EventSink};
use crate::cli::input::FirstPrompt;

/// Returns the exit code. A model's error is an event, not a code.
pub async fn run(config: AppConfig, prompts: Vec<FirstPrompt>) -> u8 {
    let started = js_runtime::take_standard_streams()
        .and_then(|streams| Output::start(streams.output, Agreed::default()));
    let (output, closed) = match started {
        Ok(started) => started,
        Err(error) => {
            eprintln!("Error: {error}");
            return 1;
        }
    };
    let session = match AgentSession::start(config, Arc::new(Events(output.clone()))).await {
        Ok(session) => session,
        Err(error) => {
            eprintln!("Error: {error}");
            return 1;
        }
    };
    let code = tokio::select! {
        code = converse(&session, &output, prompts) => code,
        code = signals::ended() => code,
        Ok(error) = closed => {
            eprintln!("Error: stdout: {error}");
            1
        }
    };
    session.shutdown().await;
    output.flush().await;
    code
}

/// The events of the original's JSON mode, whose last line says how the run ended.
struct Events(Output);

#[async_trait]
impl EventSink for Events {
    async fn send(&self, event: Arc<Event>) {
        if !matches!(*event, Event::AgentSettled { .. }) {
            self.0.send(event).await;
        }
    }
}

async fn converse(session: &AgentSession, output: &Output, prompts: Vec<FirstPrompt>) -> u8 {
    output.line(&session.header()).await;
    for note in session.take_notes() {
        eprintln!("Warning: {note}");
    }
    session.open().await;
    for prompt in prompts {
        if let Err(error) = say(session, prompt).await {
            eprintln!("{error}");
            return 1;
        }
    }
    0
}
