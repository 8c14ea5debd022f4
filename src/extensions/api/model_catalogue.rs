//! Model catalogue, keys and message conversion for pi-ai, without a session.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::json;

use crate::bridge::{BridgeResult, parse, to_value};
use pi_agent::AgentMessage;
use pi_ai::apis;
use pi_ai::auth::secret_value::Env;
use pi_ai::classify;
use pi_ai::message::{StopReason, ToolCall};
use pi_ai::models::builtin;
use pi_ai::stream::partial_json;

#[derive(Deserialize)]
struct TextArgs {
    text: String,
}

#[derive(Deserialize)]
struct ProviderArgs {
    provider: String,
    /// Environment as the extension sees it.
    #[serde(default)]
    env: HashMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OverflowArgs {
    message: AssistantReply,
    #[serde(default)]
    context_window: u64,
}

/// The members of an assistant message that are used; others may be missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AssistantReply {
    stop_reason: StopReason,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    usage: ReplyUsage,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplyUsage {
    input: u64,
    cache_read: u64,
}

#[derive(Deserialize)]
struct MessagesArgs {
    messages: Vec<AgentMessage>,
}

/// Returns the key of a provider from the environment of pi.
pub fn env_api_key(provider: &str) -> Option<String> {
    builtin::env_key(provider, &Env::process())
}

/// Serves `ai.*` and `messages.to_llm`; `None` for other methods.
pub fn serve(method: &str, args: &str) -> Option<BridgeResult> {
    Some(match method {
        "ai.parse_partial_json" => {
            parse::<TextArgs>(method, args).map(|args| partial_json::parse(&args.text))
        }
        "ai.read_tool_arguments" => parse::<TextArgs>(method, args).map(|args| {
            let mut call = ToolCall::default();
            call.set_arguments(&args.text);
            let mut read = json!({ "arguments": call.arguments });
            if let Some(error) = call.arguments_error {
                read["argumentsError"] = json!(error);
            }
            read
        }),
        "ai.key_variables" => parse::<ProviderArgs>(method, args)
            .map(|args| json!(builtin::key_variables(&args.provider))),
        "ai.env_api_key" => parse::<ProviderArgs>(method, args).map(|args| {
            let env = Env::from_map(args.env);
            json!(builtin::env_key(&args.provider, &env))
        }),
        "ai.apis" => Ok(json!(apis::WIRE_NAMES)),
        "ai.providers" => Ok(builtin::PROVIDERS.iter().map(|known| known.id).collect()),
        "ai.models" => parse::<ProviderArgs>(method, args).and_then(|args| {
            let known = builtin::provider(&args.provider);
            to_value(known.map(|known| known.load().models).unwrap_or_default())
        }),
        "ai.overflow_patterns" => Ok(json!(classify::overflow_patterns())),
        "ai.is_context_overflow" => parse::<OverflowArgs>(method, args).map(|args| {
            let AssistantReply {
                stop_reason,
                error_message,
                usage,
            } = args.message;
            json!(classify::overflowed(
                stop_reason,
                error_message.as_deref(),
                usage.input.saturating_add(usage.cache_read),
                args.context_window
            ))
        }),
        "ai.is_retryable" => {
            parse::<TextArgs>(method, args).map(|args| json!(classify::is_retryable(&args.text)))
        }
        "messages.to_llm" => parse::<MessagesArgs>(method, args).and_then(|args| {
            let converted: Vec<_> = args
                .messages
                .iter()
                .filter_map(AgentMessage::to_llm)
                .collect();
            to_value(converted)
        }),
        _ => return None,
    })
}
