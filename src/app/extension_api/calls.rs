//! Parses the methods of `pi` and `ctx` that act on the session into commands, and formats their
//! outcomes. Methods that only read are answered here.

use serde_json::{Value, json};

use crate::AgentSession;
use crate::command::{
    CommandOutcome, CommandResult, ImmediateCommand, ModelChangeSource, ModelReference,
    SessionCommand,
};
use crate::error::CommandError;
use crate::switch::fork::ForkPosition;
use pi_ai::model::Model;
use pi_extensions::api::session_args::{SessionArgs, check_block_types, required};
use pi_extensions::{BridgeResult, HostError};

/// Answers a method that does not wait.
pub(super) fn call_now(session: &AgentSession, method: &str, args: &str) -> BridgeResult {
    let mut args = SessionArgs::parse(method, args)?;
    let command = match method {
        "ctx.hasUI" => return Ok(json!(session.config.has_ui)),
        "ui.supports" => {
            let name = required(method, "method", args.method)?;
            return Ok(json!(session.ui.supports(&name)));
        }
        "ctx.mode" => return Ok(json!(session.config.mode.as_str())),
        "ctx.isProjectTrusted" => {
            return Ok(json!(!session.paths().ignores_project()));
        }
        "ctx.cwd" => return Ok(json!(session.cwd().display().to_string())),
        "ctx.model" => return to_value(session.model()),
        "ctx.isIdle" => return Ok(json!(is_idle(session))),
        "ctx.hasPendingMessages" => {
            let (steering, follow_up) = session.state.lock().prompts.queues.texts();
            return Ok(json!(!steering.is_empty() || !follow_up.is_empty()));
        }
        "ctx.getContextUsage" => return to_value(session.usage()),
        "ctx.getSystemPrompt" => return Ok(json!(session.state.lock().system_prompt.current())),
        "ctx.getSystemPromptOptions" => {
            return Ok(json!(session.state.lock().system_prompt.options));
        }
        "ctx.scopedModels" => return Ok(scoped_models(session)),
        "pi.getSessionName" => return Ok(json!(session.state.lock().session.name())),
        "pi.getActiveTools" => return Ok(json!(session.tools.active_names())),
        "pi.getAllTools" => return Ok(session.tools.describe()),
        "pi.getCommands" => return Ok(json!(session.commands())),
        "pi.getSettings" => return Ok(Value::Object(session.settings.merged())),
        "pi.getThinkingLevel" => return Ok(json!(session.thinking_level())),
        "themes.list" => return Ok(session.prompt_resources.describe_themes()),
        // JavaScript has started the handlers of `agent_end`.
        "run.idle" => {
            if let Some(run) = args.run {
                session.mark_idle(run);
            }
            return Ok(Value::Null);
        }
        "ctx.abort" => ImmediateCommand::AbortRun,
        "ctx.shutdown" => ImmediateCommand::Shutdown,
        "pi.sendMessage" => {
            let message = args.message(method)?;
            check_block_types(method, &message.content)?;
            ImmediateCommand::SendMessage {
                message,
                options: args.send_options(),
            }
        }
        "pi.sendUserMessage" => ImmediateCommand::SendUserMessage {
            content: args.content(method)?,
            options: args.send_options(),
        },
        "pi.appendEntry" => ImmediateCommand::AppendEntry {
            custom_type: required(method, "customType", args.custom_type)?,
            data: args.data,
        },
        "session.appendMessage" => ImmediateCommand::AppendMessage(args.message(method)?),
        "pi.setSessionName" => ImmediateCommand::AppendName(required(method, "name", args.name)?),
        "pi.setLabel" => ImmediateCommand::SetLabel {
            entry: required(method, "entryId", args.entry_id)?,
            label: args.label,
        },
        "pi.setActiveTools" => {
            ImmediateCommand::SetActiveTools(required(method, "names", args.names)?)
        }
        "pi.setThinkingLevel" => ImmediateCommand::SetThinkingLevel(args.level(method)?),
        "themes.set" => ImmediateCommand::SetTheme(required(method, "name", args.name)?),
        _ => return Err(unsupported(method)),
    };
    to_json(session.execute_now(command))
}

/// Answers a method that takes time.
pub(super) async fn call(session: &AgentSession, method: &str, args: &str) -> BridgeResult {
    let args = SessionArgs::parse(method, args)?;
    let command = match method {
        "ctx.waitForIdle" => {
            wait_for_idle(session).await;
            return Ok(Value::Null);
        }
        "ctx.newSession" => SessionCommand::NewSession {
            parent: args.parent_session.map(Into::into),
        },
        "ctx.switchSession" => SessionCommand::SwitchSession {
            path: required(method, "path", args.path)?.into(),
            cwd: None,
        },
        "ctx.fork" => SessionCommand::Fork {
            entry: required(method, "entryId", args.entry_id)?,
            position: fork_position(args.position.as_deref())?,
        },
        "ctx.compact" => SessionCommand::Compact {
            focus: args.custom_instructions,
        },
        "ctx.navigateTree" => SessionCommand::NavigateTree {
            target: required(method, "targetId", args.target_id)?,
            options: args.navigation.unwrap_or_default(),
        },
        "ctx.reload" => SessionCommand::Reload { release: None },
        "pi.setModel" => {
            let provider = required(method, "provider", args.provider)?;
            let id = required(method, "id", args.id)?;
            if !session.models.has_auth(&provider) {
                return Ok(json!(false));
            }
            // A model that lacks members is looked up by its id.
            let defined = args
                .model
                .and_then(|it| serde_json::from_value::<Model>(it).ok());
            let command = SessionCommand::SetModel {
                model: match defined {
                    Some(model) => ModelReference::Defined(Box::new(model)),
                    None => ModelReference::Named { provider, id },
                },
                source: match args.queued {
                    true => ModelChangeSource::InHandler,
                    false => ModelChangeSource::Set,
                },
            };
            return to_json(session.execute(command).await);
        }
        _ => return Err(unsupported(method)),
    };
    to_json(session.execute_detached(command).await)
}

/// Formats the result of a command as `pi` and `ctx` return it.
pub(crate) fn to_json(result: CommandResult) -> BridgeResult {
    match result.map_err(error)? {
        CommandOutcome::Done
        | CommandOutcome::Accepted(_)
        | CommandOutcome::Reloaded(_)
        | CommandOutcome::Trust(_) => Ok(Value::Null),
        CommandOutcome::Dequeued {
            steering,
            follow_up,
        } => Ok(json!({ "steering": steering, "followUp": follow_up })),
        CommandOutcome::Switched(is_done) => Ok(json!({ "cancelled": !is_done })),
        CommandOutcome::Forked(forked) => Ok(json!({ "cancelled": forked.is_none() })),
        CommandOutcome::Model(_) => Ok(json!(true)),
        CommandOutcome::Navigated(navigated) => to_value(navigated),
        CommandOutcome::CycledModel(cycled) => to_value(cycled),
        CommandOutcome::CycledLevel(level) => to_value(level),
        CommandOutcome::Compacted(compacted) => to_value(compacted),
        CommandOutcome::UserCommand(outcome) => to_value(outcome),
        CommandOutcome::Exported(path) => to_value(path),
        CommandOutcome::Appended(id) => to_value(id),
    }
}

/// A prompt of an extension counts from the call on: its run may be over before an extension that
/// polls checks again.
fn is_idle(session: &AgentSession) -> bool {
    !session.is_busy() && !session.intake.from_extensions.is_waiting()
}

async fn wait_for_idle(session: &AgentSession) {
    loop {
        session.intake.from_extensions.wait_empty().await;
        session.wait_idle().await;
        if !session.intake.from_extensions.is_waiting() {
            return;
        }
    }
}

/// Returns the models to cycle through.
pub(crate) fn scoped_models(session: &AgentSession) -> Value {
    let scope = session.state.lock().scope.clone();
    let scoped = scope.iter().map(|one| match one.thinking {
        Some(level) => json!({ "model": one.model, "thinkingLevel": level }),
        None => json!({ "model": one.model }),
    });
    scoped.collect()
}

fn fork_position(name: Option<&str>) -> Result<ForkPosition, HostError> {
    let name = name.unwrap_or("before");
    ForkPosition::parse(name).ok_or_else(|| {
        HostError::new(format!(
            "ctx.fork(): there is no position \"{name}\": use \"before\" or \"at\""
        ))
    })
}

fn to_value(value: impl serde::Serialize) -> BridgeResult {
    serde_json::to_value(value).map_err(|error| HostError::new(error.to_string()))
}

fn error(error: CommandError) -> HostError {
    HostError::new(error.text)
}

fn unsupported(method: &str) -> HostError {
    HostError::new(format!(
        "{method}() is not supported by this version of pi yet"
    ))
}
