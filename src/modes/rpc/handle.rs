//! Parses commands into commands of the session, and writes their outcomes as responses. Queries
//! are answered here.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::command::Command;
use super::hello;
use super::images::{self, Attachment, Picture};
use super::parse::{BadCommand, ParsedCommand};
use super::responses::{
    self, BranchMessage, BranchMessages, Commands, ForkMessage, ForkMessages, Levels, Messages,
    Models, Response, ResponseData, Text,
};
use crate::output::Output;
use pi_agent::event::UiAnswer;
use pi_agent::queue::{Delivery, QueueMode};
use pi_ai::model::ThinkingLevel;
use pi_app::{
    AgentSession, Behavior, CommandError, ErrorCode, ForkPosition, ImmediateCommand,
    ModelChangeSource, ModelReference, PromptRequest, SessionCommand, Source, UserCommandRequest,
    UserCommandRunner,
};
use pi_resources::source_info::SourceScope;

/// The data of a response; `None` for commands without data.
pub type CommandAnswer = Result<Option<ResponseData>, CommandError>;

/// Executes a parsed command, or answers a line that is no valid command.
pub async fn run_command(
    session: &Arc<AgentSession>,
    output: &Output,
    parsed: Result<ParsedCommand, Box<BadCommand>>,
) {
    let (command, name, id) = match parsed {
        Ok(ParsedCommand { command, name, id }) => (command, name, id),
        // The response to a dialog has no response itself, so an error is only logged.
        Err(bad)
            if matches!(
                bad.command.as_str(),
                "extension_ui_response" | "permission_response"
            ) =>
        {
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
        Command::PermissionResponse { id, option, reason } => {
            session.answer_permission(&id, option, reason);
        }
        Command::Hello(hello) => hello::hello(session, output, id, name, hello),
        Command::Ping => hello::ping(output, id, name),
        Command::GetEvents { since } => hello::get_events(output, id, name, since),
        command => {
            let answer = answer(session, &name, &id, command).await;
            respond(output, id, name, answer);
        }
    }
}

/// Answers a line that is too long to be read.
pub fn respond_too_long(output: &Output, bytes: u64) {
    let text = format!(
        "Failed to parse command: the line has {bytes} bytes; the limit is {}",
        super::lines::MAX_COMMAND_BYTES
    );
    let refusal = CommandError::new(ErrorCode::LineTooLong, text);
    respond(output, None, "parse".into(), Err(refusal));
}

/// Writes a response. The run of a prompt begins afterwards, when the answer is dropped.
pub fn respond(output: &Output, id: Option<Value>, command: String, answer: CommandAnswer) {
    output.line(&response(id, command, &answer));
}

pub fn response(id: Option<Value>, command: String, answer: &CommandAnswer) -> Response {
    let data = match answer {
        Ok(None) => Ok(None),
        Ok(Some(data)) => to_raw_value(data)
            .map(Some)
            .map_err(|error| CommandError::from(error.to_string())),
        Err(refusal) => Err(refusal.clone()),
    };
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

/// Answers queries and waits, and parses all other commands into commands of the session.
async fn answer(
    session: &Arc<AgentSession>,
    name: &str,
    id: &Option<Value>,
    command: Command,
) -> CommandAnswer {
    let command: SessionCommand = match command {
        // Handled by `run_command`.
        Command::Hello(_)
        | Command::Ping
        | Command::GetEvents { .. }
        | Command::PermissionResponse { .. }
        | Command::ExtensionUiResponse { .. } => return Ok(None),
        // Queries and waits.
        Command::GetState => {
            return data(ResponseData::State(Box::new(session.state())));
        }
        Command::GetMessages => {
            let messages = session.messages();
            return data(ResponseData::Messages(Messages { messages }));
        }
        Command::GetAvailableModels => {
            let models = session.models().available();
            return data(ResponseData::Models(Models { models }));
        }
        Command::GetAvailableThinkingLevels => {
            let levels = session.available_thinking_levels();
            return data(ResponseData::Levels(Levels { levels }));
        }
        Command::GetSessionStats => return data(ResponseData::Stats(session.stats())),
        Command::GetEntries { since } => {
            return data(ResponseData::Json(json_text(
                session.entries_json(since.as_deref())?,
            )?));
        }
        Command::GetTree => return data(ResponseData::Json(json_text(session.tree_json())?)),
        Command::GetForkMessages => return data(fork_messages(session)),
        Command::GetBranchMessages => return data(branch_messages(session)),
        Command::GetLastAssistantText => {
            let text = session.last_assistant_text();
            return data(ResponseData::Text(Text { text }));
        }
        Command::GetCommands => return data(commands(session)),
        Command::GetExtensionStats { measure_heap } => {
            let statistics = session.extensions().statistics(measure_heap).await;
            return data(ResponseData::ExtensionStats(statistics));
        }
        Command::WaitForIdle => {
            session.wait_settled().await;
            return Ok(None);
        }
        // Commands of the session.
        Command::Prompt {
            message,
            images,
            attachments,
            streaming_behavior,
        } => {
            let (text, images) = prompt_content(name, message, images, attachments)?;
            SessionCommand::Prompt(PromptRequest {
                text,
                images,
                source: Source::Rpc,
                while_busy: streaming_behavior
                    .map_or(Behavior::Refuse, |one| Behavior::Queue(one.into())),
                commands: true,
            })
        }
        Command::Steer {
            message,
            images,
            attachments,
        } => queue(Delivery::Steer, name, message, images, attachments)?,
        Command::FollowUp {
            message,
            images,
            attachments,
        } => queue(Delivery::FollowUp, name, message, images, attachments)?,
        Command::Abort => SessionCommand::Abort,
        Command::AbortRetry => SessionCommand::AbortRetry,
        Command::AbortBash => ImmediateCommand::AbortUserCommand.into(),
        Command::ClearQueue => SessionCommand::ClearQueue,
        Command::NewSession { parent_session } => SessionCommand::NewSession {
            parent: parent_session.map(PathBuf::from),
        },
        Command::SetModel { provider, model_id } => SessionCommand::SetModel {
            model: ModelReference::Named {
                provider,
                id: model_id,
            },
            source: ModelChangeSource::Set,
        },
        Command::CycleModel => SessionCommand::CycleModel { backward: false },
        Command::SetThinkingLevel { level } => {
            // The protocol treats an unknown level as the lowest.
            let level = ThinkingLevel::parse(&level).unwrap_or(ThinkingLevel::Off);
            ImmediateCommand::SetThinkingLevel(level).into()
        }
        Command::CycleThinkingLevel => ImmediateCommand::CycleThinkingLevel.into(),
        Command::SetSteeringMode { mode } => set_queue_mode(Delivery::Steer, mode),
        Command::SetFollowUpMode { mode } => set_queue_mode(Delivery::FollowUp, mode),
        Command::Compact {
            custom_instructions,
        } => SessionCommand::Compact {
            focus: custom_instructions,
        },
        Command::SetAutoCompaction { enabled } => {
            ImmediateCommand::SetAutoCompaction(enabled).into()
        }
        Command::SetAutoRetry { enabled } => ImmediateCommand::SetAutoRetry(enabled).into(),
        Command::Bash {
            command,
            exclude_from_context,
        } => SessionCommand::UserCommand(UserCommandRequest {
            command,
            exclude_from_context: exclude_from_context.unwrap_or(false),
            runner: UserCommandRunner::PiWithUpdates { id: id.clone() },
        }),
        Command::ExportHtml { output_path } => SessionCommand::ExportHtml { path: output_path },
        Command::SwitchSession { session_path } => SessionCommand::SwitchSession {
            path: session_path.into(),
            cwd: None,
        },
        Command::Fork { entry_id } => fork(entry_id),
        Command::Branch {
            entry_index,
            entry_id,
        } => match (entry_id, entry_index) {
            (Some(id), _) => fork(id),
            (None, Some(index)) => fork(entry_at(session, index)?),
            (None, None) => {
                let text = "branch: missing field `entryIndex`";
                return Err(CommandError::new(ErrorCode::InvalidCommand, text));
            }
        },
        Command::Clone => SessionCommand::CloneSession,
        Command::SetSessionName { name } => SessionCommand::SetName(name),
        Command::Reload { extension } => SessionCommand::Reload { release: extension },
        Command::Trust => SessionCommand::AskTrust,
    };
    session
        .execute(command)
        .await
        .map(ResponseData::from_outcome)
}

fn data(data: ResponseData) -> CommandAnswer {
    Ok(Some(data))
}

fn fork_messages(session: &AgentSession) -> ResponseData {
    let messages = session.fork_messages().into_iter();
    let messages = messages.map(|(entry_id, text)| ForkMessage { entry_id, text });
    ResponseData::ForkMessages(ForkMessages {
        messages: messages.collect(),
    })
}

fn branch_messages(session: &AgentSession) -> ResponseData {
    let messages = session.branch_messages().into_iter();
    let messages = messages.map(|(entry_index, entry_id, text)| BranchMessage {
        entry_index,
        entry_id,
        text,
    });
    ResponseData::BranchMessages(BranchMessages {
        messages: messages.collect(),
    })
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

fn queue(
    delivery: Delivery,
    name: &str,
    message: String,
    images: Option<Vec<Picture>>,
    attachments: Option<Vec<Attachment>>,
) -> Result<SessionCommand, CommandError> {
    let (text, images) = prompt_content(name, message, images, attachments)?;
    Ok(SessionCommand::Queue {
        delivery,
        text,
        images,
    })
}

fn set_queue_mode(delivery: Delivery, mode: QueueMode) -> SessionCommand {
    ImmediateCommand::SetQueueMode { delivery, mode }.into()
}

fn fork(entry: String) -> SessionCommand {
    SessionCommand::Fork {
        entry,
        position: ForkPosition::Before,
    }
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
    ResponseData::Commands(Commands {
        commands: commands.collect(),
    })
}

/// Wraps text that is JSON already, and may be nested more deeply than a `Value` can be.
fn json_text(text: String) -> Result<Box<RawValue>, CommandError> {
    RawValue::from_string(text).map_err(|error| CommandError::from(error.to_string()))
}
