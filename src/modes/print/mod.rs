//! `pi -p`: runs prompts and prints the text of the last answer.

use std::io::{self, Write};
use std::sync::Arc;

use async_trait::async_trait;
use js_runtime::Output;
use tokio::sync::oneshot;

use super::signals::{self, Interrupt};
use super::{print_stderr, report_stdout_error, stdout_watch};
use pi_agent::AgentMessage;
use pi_agent::event::{Event, ExtensionError, UiMethod};
use pi_ai::message::StopReason;
use pi_app::{
    AgentSession, AppConfig, Behavior, CommandError, EventSink, PromptContent, PromptRequest,
    SessionCommand, Source,
};

/// Prints errors, retries and messages of extensions to stderr, and ignores other events.
struct StderrEvents;

#[async_trait]
impl EventSink for StderrEvents {
    async fn send(&self, event: Arc<Event>) {
        if print_extension_event(&event) {
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
            print_stderr(&format!(
                "Retrying ({attempt}/{max_attempts}): {error_message}"
            ));
        }
    }
}

/// Prints messages, errors and warnings of extensions to stderr. Returns `false` if the event
/// is about the conversation.
pub(super) fn print_extension_event(event: &Event) -> bool {
    match event {
        Event::ExtensionError(error) => print_extension_report("error", error),
        Event::ExtensionWarning(warning) => {
            print_extension_report("warning", &warning.clone().into());
        }
        Event::ExtensionUiRequest(request) => {
            if let UiMethod::Notify { message, .. } = &request.method {
                print_stderr(message);
            }
        }
        Event::ExtensionWaitStart(_) | Event::ExtensionWaitEnd(_) | Event::ExtensionUiEnd(_) => {}
        _ => return false,
    }
    true
}

fn print_extension_report(what: &str, report: &ExtensionError) {
    print_stderr(&format!(
        "Extension {what} ({}): {}",
        report.path_and_name(),
        report.stack_or_message()
    ));
    if let Some(frame) = &report.details.code_frame {
        print_stderr(frame);
    }
}

/// Runs the mode and returns the exit code.
pub async fn run(config: AppConfig, prompts: Vec<PromptContent>) -> u8 {
    let ended = signals::exit_signal(Interrupt::Exits);
    tokio::pin!(ended);
    // Only the answer goes to stdout.
    let mut out = match js_runtime::take_standard_streams() {
        Ok(streams) => streams.output,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return 1;
        }
    };
    let gone = stdout_watch::wait_closed(&mut out);
    let started = tokio::select! {
        started = AgentSession::start(config, Arc::new(StderrEvents)) => started,
        code = &mut ended => return code,
    };
    let session = match started {
        Ok(session) => session,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return 1;
        }
    };
    let before = session.messages();
    let failed = tokio::select! {
        done = run_prompts(&session, prompts) => done.err(),
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

/// Runs the prompts one after the other. The error is the exit code.
async fn run_prompts(session: &AgentSession, prompts: Vec<PromptContent>) -> Result<(), u8> {
    for note in session.take_warnings() {
        print_stderr(&format!("Warning: {note}"));
    }
    session.open().await;
    for prompt in prompts {
        if let Err(error) = prompt_and_settle(session, prompt).await {
            print_stderr(&error.to_string());
            return Err(1);
        }
    }
    Ok(())
}

/// Sends a prompt and waits until the session has settled.
pub(super) async fn prompt_and_settle(
    session: &AgentSession,
    prompt: PromptContent,
) -> Result<(), CommandError> {
    let request = PromptRequest {
        text: prompt.text,
        images: prompt.images,
        source: Source::Interactive,
        while_busy: Behavior::Refuse,
        commands: true,
    };
    // Extensions may have started runs, for example in `session_start`.
    session.wait_settled().await;
    drop(session.execute(SessionCommand::Prompt(request)).await?);
    session.wait_settled().await;
    Ok(())
}

/// The last message, ignoring messages that extensions appended after the run; `None` if only
/// such messages are newer than `before`.
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
        print_stderr(&text.unwrap_or_else(|| format!("Request {reason}")));
        return 1;
    }
    let texts = answer.texts().map(str::to_owned).collect();
    let (written, done) = oneshot::channel();
    // Written on a thread of its own, so that a reader that does not read cannot delay the
    // handling of a signal.
    let writer = std::thread::Builder::new().name("stdout".into());
    let started = writer.spawn(move || {
        // The receiver may be dropped.
        let _ = written.send(write(out, texts));
    });
    match (started, done.await) {
        (Ok(_), Ok(Ok(()))) => 0,
        (Err(error), _) | (_, Ok(Err(error))) => {
            report_stdout_error(&error);
            1
        }
        (Ok(_), Err(_)) => 1,
    }
}

fn write(mut out: Output, texts: Vec<String>) -> io::Result<()> {
    texts.iter().try_for_each(|text| writeln!(out, "{text}"))
}
