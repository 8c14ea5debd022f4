//! `--mode json`: writes the session's header, then every event as a line.

use std::sync::Arc;

use async_trait::async_trait;

use super::output::Output;
use super::print::{print_extension_event, prompt_and_settle};
use super::signals::{self, Interrupt};
use super::wire::Capabilities;
use super::{print_stderr, report_stdout_error, stdout_watch};
use pi_agent::event::Event;
use pi_app::{AgentSession, AppConfig, EventSink, PromptContent};

/// Runs the mode and returns the exit code. An error of the model is an event and does not
/// change the exit code.
pub async fn run(config: AppConfig, prompts: Vec<PromptContent>) -> u8 {
    let ended = signals::exit_signal(Interrupt::Exits);
    tokio::pin!(ended);
    let started = js_runtime::take_standard_streams().and_then(|mut streams| {
        let gone = stdout_watch::wait_closed(&mut streams.output);
        Ok((
            Output::start(streams.output, Capabilities::default())?,
            gone,
        ))
    });
    let ((output, mut closed), gone) = match started {
        Ok(started) => started,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return 1;
        }
    };
    let starting = AgentSession::start(config, Arc::new(JsonEvents(output.clone())));
    let started = tokio::select! {
        started = starting => started,
        code = &mut ended => return code,
    };
    let session = match started {
        Ok(session) => session,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return 1;
        }
    };
    let code = tokio::select! {
        code = run_prompts(&session, &output, prompts) => code,
        code = ended => {
            output.abandon_stalled_reader();
            code
        }
        () = gone => 1,
        Ok(error) = &mut closed => {
            report_stdout_error(&error);
            1
        }
    };
    let code = session.shutdown(code).await;
    output.flush().await;
    match closed.try_recv() {
        Ok(error) if report_stdout_error(&error) => code.max(1),
        _ => code,
    }
}

/// Writes the events that the original's JSON mode has; its last line says how the run
/// ended. Errors and warnings of extensions go to stderr.
struct JsonEvents(Output);

#[async_trait]
impl EventSink for JsonEvents {
    async fn send(&self, event: Arc<Event>) {
        let settled = matches!(*event, Event::AgentSettled { .. });
        if !settled && !print_extension_event(&event) {
            self.0.send(event).await;
        }
    }
}

async fn run_prompts(session: &AgentSession, output: &Output, prompts: Vec<PromptContent>) -> u8 {
    output.line(&session.header());
    for note in session.take_warnings() {
        print_stderr(&format!("Warning: {note}"));
    }
    session.open().await;
    for prompt in prompts {
        if let Err(error) = prompt_and_settle(session, prompt).await {
            print_stderr(&error.to_string());
            return 1;
        }
    }
    0
}
