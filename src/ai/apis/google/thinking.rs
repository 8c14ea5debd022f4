//! Sets the thinking effort of Gemini models: a level for newer models, a budget for older ones.

use serde_json::{Value, json};

use crate::apis::request_parts::thinking_level;
use crate::model::{Model, ThinkingLevel};
use crate::stream::Request;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Pro3,
    Flash3,
    Gemma4,
    Older,
}

/// Recognises ids such as `gemini-3-pro`, `gemini-3.1-flash-lite` and `gemma-4-…`.
fn family(model: &Model) -> Family {
    let id = model.id.to_lowercase();
    if id.contains("gemma-4") || id.contains("gemma4") {
        return Family::Gemma4;
    }
    let Some((_, rest)) = id.split_once("gemini-3") else {
        return Family::Older;
    };
    let rest = match rest.strip_prefix('.') {
        Some(minor) => minor.trim_start_matches(|sign: char| sign.is_ascii_digit()),
        None => rest,
    };
    match rest {
        rest if rest.starts_with("-pro") => Family::Pro3,
        rest if rest.starts_with("-flash") => Family::Flash3,
        _ => Family::Older,
    }
}

/// Returns `thinkingConfig`; `None` for a model that does not think.
pub(super) fn config(request: &Request) -> Option<Value> {
    let model = &request.model;
    if !model.reasoning {
        return None;
    }
    if request.options.without_defaults {
        return explicit_config(request);
    }
    let Some(level) = thinking_level(request) else {
        return Some(off(model));
    };
    let level = level.min(ThinkingLevel::High);
    let budget = || match request.options.thinking_budgets.get(&level) {
        Some(budget) => json!(budget),
        None => json!(default_budget(model, level)),
    };
    let mut config = json!({ "includeThoughts": true });
    match name(model, level) {
        Some(usual) => {
            let own = model.level_name(level).map(str::to_uppercase);
            config["thinkingLevel"] = json!(own.as_deref().unwrap_or(usual));
        }
        None => config["thinkingBudget"] = budget(),
    }
    Some(config)
}

/// Returns the configuration from options in the API's own terms; `None` leaves it to the API.
pub(super) fn explicit_config(request: &Request) -> Option<Value> {
    let options = request.options.api_options.google.thinking.as_ref()?;
    if !options.enabled {
        return Some(off(&request.model));
    }
    let mut config = json!({ "includeThoughts": true });
    if let Some(level) = &options.level {
        config["thinkingLevel"] = json!(level);
    } else if let Some(budget) = options.budget_tokens {
        config["thinkingBudget"] = json!(budget);
    }
    Some(config)
}

/// Returns the configuration with the least thinking that the model allows, and without showing
/// thoughts.
pub(super) fn off(model: &Model) -> Value {
    match family(model) {
        Family::Pro3 => json!({ "thinkingLevel": "LOW" }),
        Family::Flash3 | Family::Gemma4 => json!({ "thinkingLevel": "MINIMAL" }),
        Family::Older => json!({ "thinkingBudget": 0 }),
    }
}

/// Returns the API's name of a level; `None` for models with a budget.
pub(super) fn name(model: &Model, level: ThinkingLevel) -> Option<&'static str> {
    use ThinkingLevel::{Low, Medium, Minimal, Off};
    let name = match (family(model), level) {
        (Family::Older, _) => return None,
        (Family::Pro3, Off | Minimal | Low) => "LOW",
        (Family::Gemma4, Off | Minimal | Low) => "MINIMAL",
        (Family::Flash3, Off | Minimal) => "MINIMAL",
        (Family::Flash3, Low) => "LOW",
        (Family::Flash3, Medium) => "MEDIUM",
        _ => "HIGH",
    };
    Some(name)
}

/// Returns the default budget of a level; -1 lets the model choose.
fn default_budget(model: &Model, level: ThinkingLevel) -> i64 {
    let budgets = match &model.id {
        id if id.contains("2.5-pro") => [128, 2048, 8192, 32768],
        id if id.contains("2.5-flash-lite") => [512, 2048, 8192, 24576],
        id if id.contains("2.5-flash") => [128, 2048, 8192, 24576],
        _ => return -1,
    };
    budgets[match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => 0,
        ThinkingLevel::Low => 1,
        ThinkingLevel::Medium => 2,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => 3,
    }]
}
