//! Executes methods of `pi` and `ctx` that act on the session, by name.

use js_runtime::HostError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::session_api::{ActionError, NavigateOptions, SendOptions, SessionApi};
use crate::bridge::{BridgeResult, parse_explained, to_value};
use crate::diagnostics::type_errors::misspelt_block_type;
use crate::registry::ExtensionId;
use pi_ai::message::{UserContent, present};
use pi_ai::model::ThinkingLevel;
use pi_session::message::CustomMessage;

/// Arguments of all methods; each reads its own.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SessionArgs {
    extension: Option<ExtensionId>,
    message: Option<CustomMessage>,
    content: Option<UserContent>,
    options: Option<SendOptions>,
    custom_type: Option<String>,
    /// `null` is valid data.
    #[serde(deserialize_with = "present")]
    data: Option<Value>,
    name: Option<String>,
    names: Option<Vec<String>>,
    entry_id: Option<String>,
    label: Option<String>,
    level: Option<String>,
    method: Option<String>,
    provider: Option<String>,
    id: Option<String>,
    model: Option<Value>,
    path: Option<String>,
    position: Option<String>,
    parent_session: Option<String>,
    custom_instructions: Option<String>,
    target_id: Option<String>,
    navigation: Option<NavigateOptions>,
    run: Option<u64>,
    queued: bool,
}

/// Executes methods with an immediate result.
pub fn execute(actions: &dyn SessionApi, method: &str, args: &str) -> BridgeResult {
    let arguments: Option<SessionArgs> = parse_explained(method, args)?;
    let arguments = arguments.unwrap_or_default();
    let need = |member: Option<String>, name: &str| member.ok_or_else(|| missing(method, name));
    let refused = |error: ActionError| HostError::new(error.0);
    let done = |result: Result<(), ActionError>| result.map(|()| Value::Null).map_err(refused);
    let send_options = SendOptions {
        from: arguments.extension,
        ..arguments.options.unwrap_or_default()
    };
    let result = match method {
        "ctx.hasUI" => json!(actions.has_ui()),
        "ui.supports" => json!(actions.ui_supports(&need(arguments.method, "method")?)),
        "ctx.mode" => json!(actions.mode()),
        "ctx.isProjectTrusted" => json!(actions.is_project_trusted()),
        "ctx.cwd" => json!(actions.cwd()),
        "ctx.model" => to_value(actions.model())?,
        "ctx.isIdle" => json!(actions.is_idle()),
        "ctx.hasPendingMessages" => json!(actions.has_pending_messages()),
        "run.idle" => {
            if let Some(run) = arguments.run {
                actions.mark_idle(run);
            }
            Value::Null
        }
        "ctx.abort" => {
            actions.abort();
            Value::Null
        }
        "ctx.shutdown" => {
            actions.shutdown();
            Value::Null
        }
        "ctx.getContextUsage" => to_value(actions.context_usage())?,
        "ctx.getSystemPrompt" => json!(actions.system_prompt()),
        "pi.sendMessage" => {
            let message = arguments
                .message
                .ok_or_else(|| missing(method, "message"))?;
            check_block_types(method, &message.content)?;
            return done(actions.send_message(message, send_options));
        }
        "pi.sendUserMessage" => {
            let content = arguments
                .content
                .ok_or_else(|| missing(method, "content"))?;
            check_block_types(method, &content)?;
            return done(actions.send_user_message(content, send_options));
        }
        "pi.appendEntry" => {
            let custom_type = need(arguments.custom_type, "customType")?;
            json!(
                actions
                    .append_entry(&custom_type, arguments.data)
                    .map_err(refused)?
            )
        }
        "session.appendMessage" => {
            let message = arguments
                .message
                .ok_or_else(|| missing(method, "message"))?;
            json!(actions.append_message(message).map_err(refused)?)
        }
        "pi.setSessionName" => {
            json!(
                actions
                    .set_session_name(&need(arguments.name, "name")?)
                    .map_err(refused)?
            )
        }
        "pi.getSessionName" => json!(actions.session_name()),
        "pi.setLabel" => {
            let entry = need(arguments.entry_id, "entryId")?;
            json!(
                actions
                    .set_label(&entry, arguments.label.as_deref())
                    .map_err(refused)?
            )
        }
        "pi.getActiveTools" => json!(actions.active_tools()),
        "pi.setActiveTools" => {
            actions.set_active_tools(arguments.names.ok_or_else(|| missing(method, "names"))?);
            Value::Null
        }
        "pi.getAllTools" => actions.all_tools(),
        "pi.getCommands" => actions.commands(),
        "pi.getSettings" => actions.settings(),
        "ctx.scopedModels" => actions.scoped_models(),
        "ctx.getSystemPromptOptions" => actions.system_prompt_options(),
        "pi.getThinkingLevel" => json!(actions.thinking_level()),
        "pi.setThinkingLevel" => {
            let level = need(arguments.level, "level")?;
            let level = parse_thinking_level(&level).map_err(|error| HostError {
                class: "TypeError",
                message: format!("{method}: level: {}", error.message),
            })?;
            actions.set_thinking_level(level);
            Value::Null
        }
        "themes.list" => actions.themes(),
        "themes.set" => return done(actions.set_theme(&need(arguments.name, "name")?)),
        _ => return Err(unsupported(method)),
    };
    Ok(result)
}

/// Executes methods that take time.
pub async fn execute_async(actions: &dyn SessionApi, method: &str, args: &str) -> BridgeResult {
    let arguments: Option<SessionArgs> = parse_explained(method, args)?;
    let arguments = arguments.unwrap_or_default();
    let need = |member: Option<String>, name: &str| member.ok_or_else(|| missing(method, name));
    let result = match method {
        "ctx.waitForIdle" => {
            actions.wait_for_idle().await;
            Ok(Value::Null)
        }
        "ctx.newSession" => match actions.new_session(arguments.parent_session).await {
            Ok(cancelled) => return to_value(cancelled),
            Err(error) => Err(error),
        },
        "ctx.switchSession" => match actions.switch_session(need(arguments.path, "path")?).await {
            Ok(cancelled) => return to_value(cancelled),
            Err(error) => Err(error),
        },
        "ctx.fork" => {
            let entry = need(arguments.entry_id, "entryId")?;
            match actions.fork(entry, arguments.position).await {
                Ok(cancelled) => return to_value(cancelled),
                Err(error) => Err(error),
            }
        }
        "ctx.compact" => match actions.compact(arguments.custom_instructions).await {
            Ok(compacted) => return to_value(compacted),
            Err(error) => Err(error),
        },
        "ctx.navigateTree" => {
            let target = need(arguments.target_id, "targetId")?;
            let options = arguments.navigation.unwrap_or_default();
            match actions.navigate_tree(target, options).await {
                Ok(navigated) => return to_value(navigated),
                Err(error) => Err(error),
            }
        }
        "ctx.reload" => actions.reload().await.map(|()| Value::Null),
        "pi.setModel" => {
            let (provider, id) = (
                need(arguments.provider, "provider")?,
                need(arguments.id, "id")?,
            );
            actions
                .set_model(&provider, &id, arguments.model, arguments.queued)
                .await
                .map(|set| json!(set))
        }
        _ => return Err(unsupported(method)),
    };
    result.map_err(|error| HostError::new(error.0))
}

fn check_block_types(method: &str, content: &UserContent) -> Result<(), HostError> {
    let problem = match content {
        UserContent::Blocks(blocks) => misspelt_block_type(blocks),
        UserContent::Text(_) => None,
    };
    let type_error = |problem| HostError {
        class: "TypeError",
        message: format!("{method}: {problem}"),
    };
    problem.map(type_error).map_or(Ok(()), Err)
}

fn unsupported(method: &str) -> HostError {
    HostError::new(format!(
        "{method}() is not supported by this version of pi yet"
    ))
}

fn missing(method: &str, member: &str) -> HostError {
    HostError {
        class: "TypeError",
        message: format!("{method}: {member} is missing"),
    }
}

/// Parses a thinking level of an extension.
pub(crate) fn parse_thinking_level(name: &str) -> Result<ThinkingLevel, HostError> {
    match name {
        // An alias that some APIs use for "off".
        "none" => Ok(ThinkingLevel::Off),
        name => ThinkingLevel::parse(name).ok_or_else(|| {
            let known = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            HostError::new(format!(
                "There is no thinking level \"{name}\". The levels are: {known}"
            ))
        }),
    }
}
