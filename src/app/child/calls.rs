//! Parses the calls of an extension that runs a child session into commands, and formats their
//! outcomes. Calls that only read are answered here.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::AgentSession;
use crate::command::{
    CommandOutcome, CommandResult, ImmediateCommand, ModelChangeSource, ModelReference,
    SessionCommand,
};
use crate::error::ErrorCode;
use crate::extension_api::{scoped_models, to_json};
use crate::prompt::{Behavior, PromptRequest, Source};
use crate::switch::fork::ForkPosition;
use crate::user_commands::{UserCommandRequest, UserCommandRunner};
use pi_agent::queue::Delivery;
use pi_ai::message::ImageContent;
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::models::selection::ScopedModel;
use pi_extensions::api::session_api::{ActionError, ActionResult, NavigateOptions, SendOptions};
use pi_extensions::parse_drafts;

/// Answers a call that takes time.
pub(super) async fn call(
    session: &AgentSession,
    action: &str,
    args: &Value,
) -> ActionResult<Value> {
    // The caller continues when the work that its call has begun is over.
    let mut waits_for_idle = false;
    let command = match action {
        "prompt" => {
            let behavior: Option<String> = arg(args, "streamingBehavior")?;
            let queue = behavior.as_deref().map(delivery).transpose()?;
            let expand: Option<bool> = arg(args, "expand")?;
            let images: Option<Vec<ImageContent>> = arg(args, "images")?;
            waits_for_idle = !session.is_busy();
            SessionCommand::Prompt(PromptRequest {
                text: arg(args, "text")?,
                images: images.unwrap_or_default(),
                source: Source::Extension,
                while_busy: queue.map_or(Behavior::Refuse, Behavior::Queue),
                commands: expand.unwrap_or(true),
            })
        }
        "queue" => {
            let name: String = arg(args, "delivery")?;
            let images: Option<Vec<ImageContent>> = arg(args, "images")?;
            SessionCommand::Queue {
                delivery: delivery(&name)?,
                text: arg(args, "text")?,
                images: images.unwrap_or_default(),
            }
        }
        "sendMessage" => {
            let message = arg(args, "message")?;
            let options: Option<SendOptions> = arg(args, "options")?;
            let options = options.unwrap_or_default();
            waits_for_idle = options.trigger_turn == Some(true) && !session.is_busy();
            ImmediateCommand::SendMessage { message, options }.into()
        }
        // Emits `session_start` to the extensions of the child.
        "greet" => {
            let reason: Option<String> = arg(args, "reason")?;
            let previous: Option<String> = arg(args, "previousSessionFile")?;
            session.extensions.show_waiting_errors().await;
            session
                .emit_session_start(reason.as_deref().unwrap_or("startup"), previous)
                .await;
            return Ok(Value::Null);
        }
        "shutDownExtensions" => {
            session.extensions.shut_down("quit", None).await;
            return Ok(Value::Null);
        }
        "abort" => {
            waits_for_idle = true;
            ImmediateCommand::Abort.into()
        }
        "waitForIdle" => {
            session.wait_idle().await;
            return Ok(Value::Null);
        }
        "setModel" => set_model(&args["model"]),
        "cycleModel" => {
            let direction: Option<String> = arg(args, "direction")?;
            SessionCommand::CycleModel {
                backward: direction.as_deref() == Some("backward"),
            }
        }
        "compact" => SessionCommand::Compact {
            focus: arg(args, "customInstructions")?,
        },
        "bash" => {
            let command = arg(args, "command")?;
            let excluded: Option<bool> = arg(args, "excludeFromContext")?;
            SessionCommand::UserCommand(UserCommandRequest {
                command,
                exclude_from_context: excluded.unwrap_or(false),
                runner: UserCommandRunner::Pi,
            })
        }
        "clearQueue" => SessionCommand::ClearQueue,
        "exportHtml" => SessionCommand::ExportHtml {
            path: arg(args, "path")?,
        },
        "navigateTree" => {
            let target = arg(args, "targetId")?;
            let options: Option<NavigateOptions> = arg(args, "options")?;
            SessionCommand::NavigateTree {
                target,
                options: options.unwrap_or_default(),
            }
        }
        "fork" => SessionCommand::Fork {
            entry: arg(args, "entryId")?,
            position: ForkPosition::Before,
        },
        "newSession" => {
            let parent: Option<String> = arg(args, "parentSession")?;
            SessionCommand::NewSession {
                parent: parent.map(Into::into),
            }
        }
        "switchSession" => {
            let path: String = arg(args, "path")?;
            SessionCommand::SwitchSession {
                path: path.into(),
                cwd: None,
            }
        }
        "reload" => SessionCommand::Reload { release: None },
        other => return Err(unsupported(other)),
    };
    let is_prompt = matches!(command, SessionCommand::Prompt(_));
    let is_message = action == "sendMessage";
    let outcome = match session.execute(command).await {
        // The caller that aborted the prompt knows.
        Err(error) if is_prompt && error.code == ErrorCode::Aborted => CommandOutcome::Done,
        result => result.map_err(ActionError::new)?,
    };
    if is_message {
        session.ui.wait_outbox().await;
    }
    if waits_for_idle {
        // A prompt begins when its outcome is dropped.
        drop(outcome);
        session.wait_idle().await;
        return Ok(Value::Null);
    }
    format(Ok(outcome))
}

/// Answers a call at once.
pub(super) fn call_now(session: &AgentSession, action: &str, args: &Value) -> ActionResult<Value> {
    let command = match action {
        "state" => return to_value(session.state()),
        "hasHandlers" => {
            let event: String = arg(args, "event")?;
            return Ok(json!(session.extensions.has_handlers(&event)));
        }
        "messages" => return changed_messages(session),
        "stats" => return to_value(session.stats()),
        "contextUsage" => return to_value(session.usage()),
        "systemPrompt" => return Ok(json!(session.state.lock().system_prompt.current())),
        "activeTools" => return Ok(json!(session.tools.active_names())),
        "allTools" => return Ok(session.tools.describe()),
        "queues" => {
            let (steering, follow_up) = session.state.lock().prompts.queues.texts();
            return Ok(json!({ "steering": steering, "followUp": follow_up }));
        }
        "thinkingLevels" => {
            return to_value(session.model().map(|model| model.thinking_levels()));
        }
        "lastAssistantText" => return Ok(json!(session.last_assistant_text())),
        "forkMessages" => {
            let messages = session.fork_messages().into_iter();
            let messages = messages.map(|(id, text)| json!({ "entryId": id, "text": text }));
            return Ok(messages.collect());
        }
        "scopedModels" => return Ok(scoped_models(session)),
        "checkDrafts" => {
            let drafts = parse_drafts(arg(args, "entries")?, session);
            return drafts.map(|_| Value::Null).map_err(ActionError::new);
        }
        "previewDrafts" => {
            let drafts = parse_drafts(arg(args, "entries")?, session);
            return Ok(session.preview_drafts(&drafts.map_err(ActionError::new)?));
        }
        "atWork" => {
            let state = session.state.lock();
            return Ok(json!({
                "autoRetry": state.retry.policy.enabled,
                "pendingBash": !state.user_commands.deferred.is_empty(),
            }));
        }
        // An assignment to `agent.state.model`, which cannot fail.
        "useModel" => {
            let (session, command) = (session.arc(), set_model(&args["model"]));
            session.handle.clone().spawn(async move {
                if let Err(error) = session.execute(command).await {
                    session
                        .report("<runtime>", "agent.state.model", error.text)
                        .await;
                }
            });
            return Ok(Value::Null);
        }
        "setActiveTools" => ImmediateCommand::SetActiveTools(arg(args, "names")?),
        "setThinkingLevel" => ImmediateCommand::SetThinkingLevel(arg(args, "level")?),
        "cycleThinkingLevel" => ImmediateCommand::CycleThinkingLevel,
        "setQueueMode" => {
            let name: String = arg(args, "delivery")?;
            let mode = arg(args, "mode")?;
            ImmediateCommand::SetQueueMode {
                delivery: delivery(&name)?,
                mode,
            }
        }
        "setAutoRetry" => ImmediateCommand::SetAutoRetry(arg(args, "enabled")?),
        "setAutoCompaction" => ImmediateCommand::SetAutoCompaction(arg(args, "enabled")?),
        "setName" => ImmediateCommand::SetName(arg(args, "name")?),
        "appendEntry" => ImmediateCommand::AppendEntry {
            custom_type: arg(args, "customType")?,
            data: args.get("data").cloned(),
        },
        "appendMessage" => ImmediateCommand::AppendMessage(arg(args, "message")?),
        "appendName" => ImmediateCommand::AppendName(arg(args, "name")?),
        "setLabel" => ImmediateCommand::SetLabel {
            entry: arg(args, "entryId")?,
            label: arg(args, "label")?,
        },
        "abortBash" => ImmediateCommand::AbortUserCommand,
        "abortRetry" => ImmediateCommand::AbortRetry,
        "abortSummary" => ImmediateCommand::AbortSummary,
        "setScopedModels" => {
            let models: Vec<Scoped> = arg(args, "models")?;
            ImmediateCommand::SetScopedModels(models.into_iter().map(Into::into).collect())
        }
        "queueMessage" => {
            let name: String = arg(args, "delivery")?;
            let images = arg(args, "images")?;
            ImmediateCommand::QueueUserMessage {
                text: arg(args, "text")?,
                delivery: delivery(&name)?,
                images,
            }
        }
        "setMessages" => ImmediateCommand::ReplaceMessages {
            known: usize::MAX,
            messages: arg(args, "messages")?,
        },
        // Replaces the first messages, which are all that the caller knew.
        "changeMessages" => ImmediateCommand::ReplaceMessages {
            messages: arg(args, "messages")?,
            known: arg(args, "known")?,
        },
        "recordBash" => {
            let command = arg(args, "command")?;
            let excluded: Option<bool> = arg(args, "excludeFromContext")?;
            ImmediateCommand::RecordUserCommand {
                command,
                result: arg(args, "result")?,
                exclude_from_context: excluded.unwrap_or(false),
            }
        }
        other => return Err(unsupported(other)),
    };
    format(session.execute_now(command))
}

/// Formats the result of a command as `AgentSession` in JavaScript returns it.
pub(super) fn format(result: CommandResult) -> ActionResult<Value> {
    match result {
        Ok(CommandOutcome::Forked(forked)) => Ok(json!({
            "cancelled": forked.is_none(),
            "text": forked.and_then(|forked| forked.text),
        })),
        Ok(CommandOutcome::Model(_)) => Ok(Value::Null),
        result => to_json(result).map_err(|error| ActionError::new(error.message)),
    }
}

/// Parses a model: a complete definition, or the provider and id of a known one.
fn set_model(model: &Value) -> SessionCommand {
    let named = |member: &str| model[member].as_str().unwrap_or_default().to_owned();
    SessionCommand::SetModel {
        model: match Model::deserialize(model) {
            Ok(model) => ModelReference::Defined(Box::new(model)),
            Err(_) => ModelReference::Named {
                provider: named("provider"),
                id: named("id"),
            },
        },
        source: ModelChangeSource::Set,
    }
}

/// A model of the cycle, with its thinking level.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scoped {
    model: Model,
    thinking_level: Option<ThinkingLevel>,
}

impl From<Scoped> for ScopedModel {
    fn from(scoped: Scoped) -> Self {
        Self {
            model: scoped.model.into(),
            thinking: scoped.thinking_level,
        }
    }
}

/// Returns the messages starting at the first one that differs from the previous call.
fn changed_messages(session: &AgentSession) -> ActionResult<Value> {
    let messages = session.messages();
    let mut delivered = session.last_delivered_messages.lock();
    let pairs = delivered.iter().zip(&messages);
    let same = pairs.take_while(|(delivered, now)| std::sync::Arc::ptr_eq(delivered, now));
    let same = same.count();
    *delivered = messages;
    to_value(json!({ "same": same, "messages": &delivered[same..] }))
}

fn delivery(name: &str) -> ActionResult<Delivery> {
    match name {
        "steer" => Ok(Delivery::Steer),
        "followUp" => Ok(Delivery::FollowUp),
        other => Err(ActionError::new(format!(
            "There is no queue \"{other}\": use \"steer\" or \"followUp\""
        ))),
    }
}

fn arg<T: DeserializeOwned>(args: &Value, member: &str) -> ActionResult<T> {
    let value = args.get(member).cloned().unwrap_or_default();
    serde_json::from_value(value)
        .map_err(|error| ActionError::new(format!("{member} cannot be used: {error}")))
}

fn to_value(value: impl Serialize) -> ActionResult<Value> {
    serde_json::to_value(value).map_err(|error| ActionError::new(error.to_string()))
}

fn unsupported(what: &str) -> ActionError {
    ActionError::new(format!(
        "AgentSession.{what}() is not supported by this version of pi"
    ))
}
