//! Executes commands and writes their responses.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::command::Command;
use super::hello;
use super::images::{self, Attachment, Picture};
use super::parse::{BadCommand, ParsedCommand};
use super::responses::{
    self, BranchMessage, BranchMessages, Cancelled, Commands, ForkMessage, ForkMessages,
    ForkedText, Level, Levels, Messages, Models, PromptDisposition, Queues, Response, ResponseData,
    Text,
};
use crate::output::Output;
use pi_agent::event::UiAnswer;
use pi_agent::queue::Delivery;
use pi_ai::model::ThinkingLevel;
use pi_app::{
    AgentSession, Behavior, CommandError, Disposition, ErrorCode, ForkPosition, PromptRequest,
    Source,
};
use pi_resources::source_info::SourceScope;

/// The data of a response; `None` for commands without data.
type CommandResult = Result<Option<ResponseData>, CommandError>;

/// Executes a parsed command, or answers a line that is no valid command.
pub async fn run_command(
    session: &Arc<AgentSession>,
    output: &Output,
    parsed: Result<ParsedCommand, Box<BadCommand>>,
) {
    let (command, name, id) = match parsed {
        Ok(ParsedCommand { command, name, id }) => (command, name, id),
        // The response to a dialog has no response itself, so an error is only logged.
        Err(bad) if bad.command == "extension_ui_response" => {
            return tracing::warn!("{}", bad.error);
        }
        Err(bad) => {
            let BadCommand {
                id,
                command,
                code,
                error,
            } = *bad;
            return respond(output, id, command, Err(CommandError::new(code, error)));
        }
    };
    match command {
        Command::ExtensionUiResponse {
            id,
            value,
            confirmed,
            cancelled,
        } => {
            // Some clients send both members, whatever the dialog asks for.
            let value = value.filter(|_| confirmed.is_none() || !session.ui_confirms(&id));
            let answer = match (cancelled.unwrap_or(false), value, confirmed) {
                (false, Some(value), _) => UiAnswer::Value(value),
                (false, None, Some(confirmed)) => UiAnswer::Confirmed(confirmed),
                _ => UiAnswer::Cancelled,
            };
            session.answer_ui(&id, answer);
        }
        Command::Hello(hello) => hello::hello(session, output, id, name, hello),
        Command::Ping => hello::ping(output, id, name),
        Command::GetEvents { since } => hello::get_events(output, id, name, since),
        // The response is written before the events of the run.
        Command::Prompt {
            message,
            images,
            attachments,
            streaming_behavior,
        } => {
            let (text, images) = match prompt_content(&name, message, images, attachments) {
                Ok(content) => content,
                Err(refusal) => return respond(output, id, name, Err(refusal)),
            };
            let request = PromptRequest {
                text,
                images,
                source: Source::Rpc,
                while_busy: streaming_behavior
                    .map_or(Behavior::Refuse, |one| Behavior::Queue(one.into())),
                commands: true,
            };
            let accepted = session.prompt(request).await;
            let answer = match &accepted {
                Ok(accepted) => Ok(Some(ResponseData::Prompt(PromptDisposition {
                    disposition: accepted.disposition,
                }))),
                Err(_) => Ok(None),
            };
            match accepted {
                Err(error) => respond(output, id, name, Err(error.into())),
                // Dropping `_accepted` after the response lets the run begin.
                Ok(_accepted) => respond(output, id, name, answer),
            }
        }
        Command::Bash {
            command,
            exclude_from_context,
        } => {
            let excluded = exclude_from_context.unwrap_or(false);
            let ran = session
                .bash_with_updates(&command, excluded, id.clone())
                .await;
            let answer = ran.map(|result| Some(ResponseData::Bash(result)));
            respond(output, id, name, answer.map_err(CommandError::from));
        }
        command => {
            let answer = execute(session, &name, command).await;
            respond(output, id, name, answer);
        }
    }
}

/// Answers a line that is too long to be read.
pub fn respond_too_long(output: &Output, bytes: u64) {
    let text = format!(
        "Failed to parse command: the line has {bytes} bytes, and {} are the most that is taken",
        super::lines::MAX_LINE_BYTES
    );
    let refusal = CommandError::new(ErrorCode::LineTooLong, text);
    respond(output, None, "parse".into(), Err(refusal));
}

pub fn respond(output: &Output, id: Option<Value>, command: String, answer: CommandResult) {
    output.line(&response(id, command, answer));
}

pub fn response(id: Option<Value>, command: String, answer: CommandResult) -> Response {
    let data = answer.and_then(|answer| match answer {
        None => Ok(None),
        Some(answer) => to_raw_value(&answer)
            .map(Some)
            .map_err(|error| CommandError::from(error.to_string())),
    });
    let (data, refusal) = match data {
        Ok(data) => (data, None),
        Err(refusal) => (None, Some(refusal)),
    };
    Response {
        id,
        r#type: "response",
        command,
        success: refusal.is_none(),
        data,
        error_code: refusal.as_ref().map(|refusal| refusal.code),
        error: refusal.map(|refusal| refusal.text),
    }
}

async fn execute(session: &Arc<AgentSession>, name: &str, command: Command) -> CommandResult {
    let answer = match command {
        // Handled by `run_command`.
        Command::Prompt { .. }
        | Command::Bash { .. }
        | Command::Hello(_)
        | Command::Ping
        | Command::GetEvents { .. }
        | Command::ExtensionUiResponse { .. } => return Ok(None),
        Command::Steer {
            message,
            images,
            attachments,
        } => {
            let (text, images) = prompt_content(name, message, images, attachments)?;
            session.queue(Delivery::Steer, text, images).await?;
            ResponseData::Steer(QUEUED)
        }
        Command::FollowUp {
            message,
            images,
            attachments,
        } => {
            let (text, images) = prompt_content(name, message, images, attachments)?;
            session.queue(Delivery::FollowUp, text, images).await?;
            ResponseData::FollowUp(QUEUED)
        }
        Command::Abort => {
            let run = session.run_id();
            session.abort();
            session.wait_work_end(run).await;
            return Ok(None);
        }
        Command::AbortRetry => {
            // The event for the end of the wait is written before the response.
            if session.abort_retry() {
                session.wait_idle().await;
            }
            return Ok(None);
        }
        Command::ClearQueue => {
            let (steering, follow_up) = session.clear_queue().await;
            ResponseData::ClearQueue(Queues {
                steering,
                follow_up,
            })
        }
        Command::NewSession { parent_session } => {
            let parent = parent_session.map(PathBuf::from);
            ResponseData::NewSession(cancelled(session.new_session(parent).await?))
        }
        Command::GetState => ResponseData::GetState(Box::new(session.state())),
        Command::GetMessages => ResponseData::GetMessages(Messages {
            messages: session.messages(),
        }),
        Command::SetModel { provider, model_id } => {
            ResponseData::SetModel(session.set_model(&provider, &model_id).await?)
        }
        Command::CycleModel => ResponseData::CycleModel(session.cycle_model(false).await?),
        Command::GetAvailableModels => ResponseData::GetAvailableModels(Models {
            models: session.models().available(),
        }),
        Command::SetThinkingLevel { level } => {
            // The protocol treats an unknown level as the lowest.
            let level = ThinkingLevel::parse(&level).unwrap_or(ThinkingLevel::Off);
            session.set_thinking_level(level);
            return Ok(None);
        }
        Command::CycleThinkingLevel => {
            let level = session.cycle_thinking_level();
            ResponseData::CycleThinkingLevel(level.map(|level| Level { level }))
        }
        Command::GetAvailableThinkingLevels => ResponseData::GetAvailableThinkingLevels(Levels {
            levels: session.available_thinking_levels(),
        }),
        Command::SetSteeringMode { mode } => {
            session.set_queue_mode(Delivery::Steer, mode);
            return Ok(None);
        }
        Command::SetFollowUpMode { mode } => {
            session.set_queue_mode(Delivery::FollowUp, mode);
            return Ok(None);
        }
        Command::Compact {
            custom_instructions,
        } => ResponseData::Compact(session.compact(custom_instructions.as_deref()).await?),
        Command::SetAutoCompaction { enabled } => {
            session.set_auto_compaction(enabled);
            return Ok(None);
        }
        Command::SetAutoRetry { enabled } => {
            session.set_auto_retry(enabled);
            return Ok(None);
        }
        Command::AbortBash => {
            session.abort_bash();
            return Ok(None);
        }
        Command::GetSessionStats => ResponseData::GetSessionStats(session.stats()),
        Command::ExportHtml { output_path } => ResponseData::ExportHtml(responses::Path {
            path: session.export_html(output_path.as_deref()).await?,
        }),
        Command::SwitchSession { session_path } => {
            let switched = session.switch_session(session_path.as_ref(), None).await?;
            ResponseData::SwitchSession(cancelled(switched))
        }
        Command::Fork { entry_id } => ResponseData::Fork(fork(session, &entry_id).await?),
        Command::Branch {
            entry_index,
            entry_id,
        } => {
            let entry = match (entry_id, entry_index) {
                (Some(id), _) => id,
                (None, Some(index)) => entry_at(session, index)?,
                (None, None) => {
                    let text = "branch: missing field `entryIndex`";
                    return Err(CommandError::new(ErrorCode::InvalidCommand, text));
                }
            };
            ResponseData::Branch(fork(session, &entry).await?)
        }
        Command::Clone => ResponseData::Clone(cancelled(session.clone_session().await?)),
        Command::GetEntries { since } => {
            ResponseData::GetEntries(json_text(session.entries_json(since.as_deref())?)?)
        }
        Command::GetTree => ResponseData::GetTree(json_text(session.tree_json())?),
        Command::GetForkMessages => {
            let messages = session.fork_messages().into_iter();
            let messages = messages.map(|(entry_id, text)| ForkMessage { entry_id, text });
            ResponseData::GetForkMessages(ForkMessages {
                messages: messages.collect(),
            })
        }
        Command::GetBranchMessages => {
            let messages = session.branch_messages().into_iter();
            let messages = messages.map(|(entry_index, entry_id, text)| BranchMessage {
                entry_index,
                entry_id,
                text,
            });
            ResponseData::GetBranchMessages(BranchMessages {
                messages: messages.collect(),
            })
        }
        Command::GetLastAssistantText => ResponseData::GetLastAssistantText(Text {
            text: session.last_assistant_text(),
        }),
        Command::SetSessionName { name } => {
            session.set_session_name(&name).await?;
            return Ok(None);
        }
        Command::GetExtensionStats { measure_heap } => {
            ResponseData::GetExtensionStats(session.extensions().statistics(measure_heap).await)
        }
        Command::GetCommands => commands(session),
        Command::WaitForIdle => {
            session.wait_settled().await;
            return Ok(None);
        }
        Command::Reload { extension } => {
            ResponseData::Reload(session.reload_with(extension.as_deref()).await?.into())
        }
    };
    Ok(Some(answer))
}

fn prompt_content(
    name: &str,
    message: String,
    images: Option<Vec<Picture>>,
    attachments: Option<Vec<Attachment>>,
) -> Result<(String, Vec<pi_ai::message::ImageContent>), CommandError> {
    images::prompt_content(message, images, attachments)
        .map_err(|error| CommandError::new(ErrorCode::InvalidCommand, format!("{name}: {error}")))
}

const QUEUED: PromptDisposition = PromptDisposition {
    disposition: Disposition::Queued,
};

fn cancelled(done: bool) -> Cancelled {
    Cancelled { cancelled: !done }
}

async fn fork(session: &AgentSession, entry: &str) -> Result<ForkedText, CommandError> {
    let forked = session.fork(entry, ForkPosition::Before).await?;
    Ok(ForkedText {
        cancelled: forked.is_none(),
        text: forked.and_then(|forked| forked.text),
    })
}

/// Finds the id of an entry by its index in the result of `get_branch_messages`.
fn entry_at(session: &AgentSession, index: usize) -> Result<String, CommandError> {
    let messages = session.branch_messages().into_iter();
    let mut found = messages.filter_map(|(position, id, _)| (position == index).then_some(id));
    found.next().ok_or_else(|| {
        CommandError::new(ErrorCode::InvalidEntry, "Invalid entry index for branching")
    })
}

fn commands(session: &AgentSession) -> ResponseData {
    let commands = session.commands().into_iter();
    let commands = commands.map(|command| responses::Command {
        path: command.source_info.path.clone(),
        location: match command.source_info.scope {
            SourceScope::User => "user",
            SourceScope::Project => "project",
            SourceScope::Temporary => "path",
        },
        command,
    });
    ResponseData::GetCommands(Commands {
        commands: commands.collect(),
    })
}

/// Wraps text that is JSON already, and may be nested more deeply than a `Value` can be.
fn json_text(text: String) -> Result<Box<RawValue>, CommandError> {
    RawValue::from_string(text).map_err(|error| CommandError::from(error.to_string()))
}
