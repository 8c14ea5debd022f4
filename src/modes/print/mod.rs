//! `pi -p`: prompts in, the last answer's text out.

use std::io::{self, Write};
use std::sync::Arc;

use async_trait::async_trait;
use js_runtime::Output;
use tokio::sync::oneshot;

use super::signals::{self, Interrupt};
use super::{complain, complain_of_stdout, reader};
use crate::agent::AgentMessage;
use crate::agent::event::{Event, ExtensionError, UiMethod};
use crate::ai::message::StopReason;
use crate::app::{
    AgentSession, AppConfig, Behavior, EventSink, PromptContent, PromptError, PromptRequest, Source,
};

/// Shows what goes wrong on stderr; the rest is not printed.
struct Quiet;

#[async_trait]
impl EventSink for Quiet {
    async fn send(&self, event: Arc<Event>) {
        if tell_user(&event) {
            return;
        }
        if let Event::AutoRetryStart {
            attempt,
            max_attempts,
            error_message,
            ..
        }
        | Event::SummarizationRetryScheduled {
            attempt,
            max_attempts,
            error_message,
            ..
        } = &*event
        {
            complain(&format!(
                "Retrying ({attempt}/{max_attempts}): {error_message}"
            ));
        }
    }
}

/// Shows what extensions say and do wrong on stderr. `false` if the event is about the
/// conversation.
pub(super) fn tell_user(event: &Event) -> bool {
    match event {
        Event::ExtensionError(error) => complain_of_extension("error", error),
        Event::ExtensionWarning(warning) => {
            complain_of_extension("warning", &warning.clone().into());
        }
        Event::ExtensionUiRequest(request) => {
            if let UiMethod::Notify { message, .. } = &request.method {
                complain(message);
            }
        }
        Event::ExtensionWaitStart(_) | Event::ExtensionWaitEnd(_) => {}
        _ => return false,
    }
    true
}

fn complain_of_extension(what: &str, report: &ExtensionError) {
    complain(&format!(
        "Extension {what} ({}): {}",
        report.place_and_name(),
        report.whole()
    ));
    if let Some(frame) = &report.details.code_frame {
        complain(frame);
    }
}

/// Returns the exit code.
pub async fn run(config: AppConfig, prompts: Vec<PromptContent>) -> u8 {
    let ended = signals::ended(Interrupt::Ends);
    tokio::pin!(ended);
    // The answer goes to stdout, and nothing else does.
    let mut out = match js_runtime::take_standard_streams() {
        Ok(streams) => streams.output,
        Err(error) => {
            complain(&format!("Error: {error}"));
            return 1;
        }
    };
    let gone = reader::gone(&mut out);
    let started = tokio::select! {
        started = AgentSession::start(config, Arc::new(Quiet)) => started,
        code = &mut ended => return code,
    };
    let session = match started {
        Ok(session) => session,
        Err(error) => {
            complain(&format!("Error: {error}"));
            return 1;
        }
    };
    let before = session.messages();
    let failed = tokio::select! {
        said = converse(&session, prompts) => said.err(),
        code = &mut ended => Some(code),
        () = gone => Some(1),
    };
    let code = match failed {
        Some(code) => code,
        None => tokio::select! {
            code = print_last(&session, &before, out) => code,
            code = ended => code,
        },
    };
    session.shutdown(code).await
}

/// The error is the exit code.
async fn converse(session: &AgentSession, prompts: Vec<PromptContent>) -> Result<(), u8> {
    for note in session.take_notes() {
        complain(&format!("Warning: {note}"));
    }
    session.open().await;
    for prompt in prompts {
        if let Err(error) = say(session, prompt).await {
            complain(&error.to_string());
            return Err(1);
        }
    }
    Ok(())
}

/// Says it and waits until the agent has nothing more to do.
pub(super) async fn say(session: &AgentSession, prompt: PromptContent) -> Result<(), PromptError> {
    let request = PromptRequest {
        text: prompt.text,
        images: prompt.images,
        source: Source::Interactive,
        while_busy: Behavior::Refuse,
        commands: true,
    };
    // What extensions have begun, at the start of the session for instance.
    session.wait_settled().await;
    drop(session.prompt(request).await?);
    session.wait_settled().await;
    Ok(())
}

/// The last message, or what stands before those that extensions have added since the
/// agent ended; not what was there `before`, then.
fn last_answer(session: &AgentSession, before: &[Arc<AgentMessage>]) -> Option<Arc<AgentMessage>> {
    let messages = session.messages();
    let is_added = |message: &&Arc<AgentMessage>| {
        matches!(
            ***message,
            AgentMessage::Custom(_) | AgentMessage::BashExecution(_)
        )
    };
    let added = messages.iter().rev().take_while(is_added).count();
    let last = messages.iter().rev().nth(added)?;
    let is_old = before.iter().any(|old| Arc::ptr_eq(old, last));
    (added == 0 || !is_old).then(|| last.clone())
}

async fn print_last(session: &AgentSession, before: &[Arc<AgentMessage>], out: Output) -> u8 {
    let Some(last) = last_answer(session, before) else {
        return 0;
    };
    let AgentMessage::Assistant(answer) = &*last else {
        return 0;
    };
    if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
        let reason = match answer.stop_reason {
            StopReason::Aborted => "aborted",
            _ => "error",
        };
        let text = answer.error_message.clone();
        complain(&text.unwrap_or_else(|| format!("Request {reason}")));
        return 1;
    }
    let texts = answer.texts().map(str::to_owned).collect();
    let (written, done) = oneshot::channel();
    // On a thread of its own: a reader that does not read must not keep a signal from
    // being heard.
    let writer = std::thread::Builder::new().name("stdout".into());
    let started = writer.spawn(move || {
        // Nobody may be waiting any more.
        let _ = written.send(write(out, texts));
    });
    match (started, done.await) {
        (Ok(_), Ok(Ok(()))) => 0,
        (Err(error), _) | (_, Ok(Err(error))) => {
            complain_of_stdout(&error);
            1
        }
        (Ok(_), Err(_)) => 1,
    }
}

fn write(mut out: Output, texts: Vec<String>) -> io::Result<()> {
    texts.iter().try_for_each(|text| writeln!(out, "{text}"))
}
