//! What each command does, and what is answered.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::Response;
use super::command::{BadCommand, Command, parse};
use crate::agent::event::UiAnswer;
use crate::agent::queue::Delivery;
use crate::ai::model::ThinkingLevel;
use crate::app::{AgentSession, Behavior, ForkPosition, PromptRequest, Source};
use crate::modes::output::Output;

/// The data of a response; `None` where there is none.
type Answer = Result<Option<Box<RawValue>>, String>;

pub async fn line(session: &Arc<AgentSession>, output: &Output, line: &[u8]) {
    let (command, name, id) = match parse(line) {
        Ok(parsed) => parsed,
        Err(BadCommand { id, command, error }) => {
            return respond(output, id, command, Err(error)).await;
        }
    };
    match command {
        Command::ExtensionUiResponse {
            id,
            value,
            confirmed,
            cancelled,
        } => {
            let answer = match (cancelled, value, confirmed) {
                (false, Some(value), _) => UiAnswer::Value(value),
                (false, None, Some(confirmed)) => UiAnswer::Confirmed(confirmed),
                _ => UiAnswer::Cancelled,
            };
            session.answer_ui(&id, answer);
        }
        // The agent's events come after the answer.
        Command::Prompt {
            message,
            images,
            streaming_behavior,
        } => {
            let request = PromptRequest {
                text: message,
                images: images.unwrap_or_default(),
                source: Source::Rpc,
                while_busy: streaming_behavior
                    .map_or(Behavior::Refuse, |one| Behavior::Queue(one.into())),
                commands: true,
            };
            let accepted = session.prompt(request).await;
            let answer = match &accepted {
                Ok(_) => Ok(None),
                Err(error) => Err(error.to_string()),
            };
            respond(output, id, name, answer).await;
        }
        command => {
            let answer = execute(session, command).await;
            respond(output, id, name, answer).await;
        }
    }
}

/// Answers to questions may come while the session is still opening, and so may an
/// abort of what keeps it.
pub fn comes_early(line: &[u8]) -> bool {
    matches!(
        parse(line),
        Ok((Command::ExtensionUiResponse { .. } | Command::Abort, ..))
    )
}

async fn respond(output: &Output, id: Option<Value>, command: String, answer: Answer) {
    let (success, data, error) = match answer {
        Ok(data) => (true, data, None),
        Err(error) => (false, None, Some(error)),
    };
    output
        .line(&Response {
            id,
            r#type: "response",
            command,
            success,
            data,
            error,
        })
        .await;
}

async fn execute(session: &Arc<AgentSession>, command: Command) -> Answer {
    let done = Ok(None);
    match command {
        Command::Prompt { .. } | Command::ExtensionUiResponse { .. } => done,
        Command::Steer { message, images } => {
            queue(session, Delivery::Steer, message, images).await
        }
        Command::FollowUp { message, images } => {
            queue(session, Delivery::FollowUp, message, images).await
        }
        Command::Abort => {
            session.abort();
            session.wait_idle().await;
            done
        }
        Command::AbortRetry => {
            session.abort_retry();
            done
        }
        Command::NewSession { parent_session } => {
            let parent = parent_session.map(PathBuf::from);
            cancelled(session.new_session(parent).await)
        }
        Command::GetState => data(&session.state()),
        Command::GetMessages => data(&json!({ "messages": session.messages() })),
        Command::SetModel { provider, model_id } => {
            data(&session.set_model(&provider, &model_id).await?)
        }
        Command::CycleModel => data(&session.cycle_model().await?),
        Command::GetAvailableModels => data(&json!({ "models": session.models().available() })),
        Command::SetThinkingLevel { level } => {
            // As the protocol has it, what is no level is the lowest.
            let level = ThinkingLevel::parse(&level).unwrap_or(ThinkingLevel::Off);
            session.set_thinking_level(level);
            done
        }
        Command::CycleThinkingLevel => {
            let level = session.cycle_thinking_level();
            data(&level.map(|level| json!({ "level": level })))
        }
        Command::SetSteeringMode { mode } => {
            session.set_queue_mode(Delivery::Steer, mode);
            done
        }
        Command::SetFollowUpMode { mode } => {
            session.set_queue_mode(Delivery::FollowUp, mode);
            done
        }
        Command::Compact {
            custom_instructions,
        } => data(&session.compact(custom_instructions.as_deref()).await?),
        Command::SetAutoCompaction { enabled } => {
            session.set_auto_compaction(enabled);
            done
        }
        Command::SetAutoRetry { enabled } => {
            session.set_auto_retry(enabled);
            done
        }
        Command::Bash {
            command,
            exclude_from_context,
        } => data(&session.bash(&command, exclude_from_context).await?),
        Command::AbortBash => {
            session.abort_bash();
            done
        }
        Command::GetSessionStats => data(&session.stats()),
        Command::ExportHtml { output_path } => {
            match session.export_html(output_path.as_deref()).await {
                Ok(path) => data(&json!({ "path": path })),
                Err(error) => Err(error.to_string()),
            }
        }
        Command::SwitchSession { session_path } => {
            cancelled(session.switch_session(session_path.as_ref(), None).await)
        }
        Command::Fork { entry_id } => {
            let forked = session.fork(&entry_id, ForkPosition::Before).await?;
            data(&match forked {
                Some(forked) => json!({ "text": forked.text, "cancelled": false }),
                None => json!({ "cancelled": true }),
            })
        }
        Command::Clone => cancelled(session.clone_session().await),
        Command::GetEntries { since } => json_text(session.entries_json(since.as_deref())?),
        Command::GetTree => json_text(session.tree_json()),
        Command::GetForkMessages => {
            let messages = session.fork_messages().into_iter();
            let messages: Vec<Value> = messages
                .map(|(id, text)| json!({ "entryId": id, "text": text }))
                .collect();
            data(&json!({ "messages": messages }))
        }
        Command::GetLastAssistantText => data(&match session.last_assistant_text() {
            Some(text) => json!({ "text": text }),
            None => json!({}),
        }),
        Command::SetSessionName { name } => session.set_session_name(&name).map(|()| None),
        Command::GetCommands => data(&json!({ "commands": session.commands() })),
        Command::WaitForIdle => {
            session.wait_settled().await;
            done
        }
        Command::Reload => {
            let report = session.reload().await?;
            let failed: Vec<Value> = report
                .failed
                .iter()
                .map(|(path, error)| json!({ "path": path, "error": error }))
                .collect();
            data(&json!({
                "loaded": report.loaded,
                "failed": failed,
                "keptOld": report.kept_old,
            }))
        }
    }
}

async fn queue(
    session: &AgentSession,
    delivery: Delivery,
    message: String,
    images: Option<Vec<crate::ai::message::ImageContent>>,
) -> Answer {
    session
        .queue(delivery, message, images.unwrap_or_default())
        .await
        .map(|()| None)
        .map_err(|error| error.to_string())
}

fn cancelled(done: Result<bool, String>) -> Answer {
    data(&json!({ "cancelled": !done? }))
}

fn data(value: &impl serde::Serialize) -> Answer {
    to_raw_value(value)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// What is JSON already, and may be deeper than a value can be.
fn json_text(text: String) -> Answer {
    RawValue::from_string(text)
        .map(Some)
        .map_err(|error| error.to_string())
}
