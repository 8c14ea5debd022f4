//! Sets the members of a request that control thinking, which differ between kinds of servers.

use serde_json::{Map, Value, json};

use super::compat::{Compat, ThinkingFormat};
use crate::apis::request_parts::thinking_level;
use crate::model::ThinkingLevel;
use crate::stream::Request;

type Member = (&'static str, Value);

pub(super) fn thinking(request: &Request, compat: &Compat) -> Vec<Member> {
    let model = &request.model;
    if !model.reasoning {
        return Vec::new();
    }
    let level = thinking_level(request);
    let is_on = level.is_some();
    let off = model.level_name(ThinkingLevel::Off);
    let effort = match level {
        Some(level) => Some(compat.effort(model, level)),
        None => off,
    };
    // Servers with an on/off switch get the effort only if there is one.
    let sent = compat.supports_reasoning_effort;
    let reasoning_effort = |effort: Option<&str>| {
        let effort = effort.filter(|_| sent);
        effort.map(|effort| ("reasoning_effort", json!(effort)))
    };
    let effort_when_on = || reasoning_effort(effort.filter(|_| is_on));
    let members = match compat.thinking_format {
        ThinkingFormat::Zai | ThinkingFormat::Qwen => {
            [Some(("enable_thinking", json!(is_on))), None]
        }
        ThinkingFormat::QwenChatTemplate => {
            let switches = json!({"enable_thinking": is_on, "preserve_thinking": true});
            [Some(("chat_template_kwargs", switches)), None]
        }
        ThinkingFormat::ChatTemplate => {
            let filled = fill_template(&compat.chat_template_kwargs, is_on, effort);
            [filled.map(|all| ("chat_template_kwargs", all)), None]
        }
        ThinkingFormat::Baseten => {
            let filled = fill_template(&compat.chat_template_args, is_on, effort);
            let args = filled.map(|all| ("chat_template_args", all));
            [args, reasoning_effort(effort)]
        }
        ThinkingFormat::Deepseek => {
            let word = if is_on { "enabled" } else { "disabled" };
            [Some(("thinking", json!({"type": word}))), effort_when_on()]
        }
        ThinkingFormat::Together => {
            let switch = json!({"enabled": is_on});
            [Some(("reasoning", switch)), effort_when_on()]
        }
        ThinkingFormat::StringThinking => {
            [Some(("thinking", json!(effort.unwrap_or("none")))), None]
        }
        ThinkingFormat::Openrouter => {
            let effort = json!({"effort": effort.unwrap_or("none")});
            [Some(("reasoning", effort)), None]
        }
        ThinkingFormat::AntLing => {
            let named = level.and_then(|level| model.level_name(level));
            [
                named.map(|name| ("reasoning", json!({"effort": name}))),
                None,
            ]
        }
        ThinkingFormat::Openai => [reasoning_effort(effort), None],
    };
    members.into_iter().flatten().collect()
}

/// Fills a template: `{"$var": "thinking.enabled"}` and `{"$var": "thinking.effort"}` are
/// replaced by the current values, and members without a value are left out. `thinking.budget`
/// never has a value, because these servers get no budget.
fn fill_template(
    template: &Map<String, Value>,
    is_on: bool,
    effort: Option<&str>,
) -> Option<Value> {
    let fill = |value: &Value| match value {
        Value::Object(variable) => {
            let omitted = variable.get("omitWhenOff") == Some(&json!(true)) && !is_on;
            match variable.get("$var").and_then(Value::as_str) {
                _ if omitted => None,
                Some("thinking.enabled") => Some(json!(is_on)),
                Some("thinking.effort") => effort.map(|effort| json!(effort)),
                _ => None,
            }
        }
        plain => Some(plain.clone()),
    };
    let members = template.iter();
    let filled: Map<_, _> = members
        .filter_map(|(name, value)| Some((name.clone(), fill(value)?)))
        .collect();
    (!filled.is_empty()).then_some(Value::Object(filled))
}
