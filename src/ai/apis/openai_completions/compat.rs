//! Deviations of a server from OpenAI, known from the provider's id or address, unless the
//! model's `compat` overrides them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::{Model, ThinkingLevel};

#[derive(Debug, PartialEq)]
pub(super) struct Compat {
    pub supports_store: bool,
    pub supports_developer_role: bool,
    pub supports_reasoning_effort: bool,
    pub reasoning_effort_map: HashMap<String, String>,
    pub supports_usage_in_streaming: bool,
    pub supports_finish_reason: bool,
    pub max_tokens_field: String,
    pub requires_tool_result_name: bool,
    pub requires_assistant_after_tool_result: bool,
    pub requires_thinking_as_text: bool,
    pub requires_reasoning_content_on_assistant_messages: bool,
    pub thinking_format: ThinkingFormat,
    pub chat_template_kwargs: Map<String, Value>,
    pub chat_template_args: Map<String, Value>,
    pub open_router_routing: Option<Value>,
    pub vercel_gateway_routing: Option<Value>,
    pub zai_tool_stream: bool,
    pub supports_strict_mode: bool,
}

/// The format in which the server accepts a thinking level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ThinkingFormat {
    /// `reasoning_effort`
    Openai,
    /// `reasoning: {effort}`
    Openrouter,
    /// `enable_thinking`
    Zai,
    /// `enable_thinking`
    Qwen,
    /// `chat_template_kwargs`
    QwenChatTemplate,
    /// `chat_template_kwargs`, filled from the template `chatTemplateKwargs`
    ChatTemplate,
    /// `chat_template_args`, filled from the template `chatTemplateArgs`, and `reasoning_effort`
    Baseten,
    /// `thinking: {type}` and `reasoning_effort`
    Deepseek,
    /// `reasoning: {enabled}` and `reasoning_effort`
    Together,
    /// `thinking` with a word
    StringThinking,
    /// `reasoning: {effort}`, for efforts that the model names
    AntLing,
}

/// `model.compat` as users write it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Overrides {
    supports_store: Option<bool>,
    supports_developer_role: Option<bool>,
    supports_reasoning_effort: Option<bool>,
    reasoning_effort_map: Option<HashMap<String, String>>,
    supports_usage_in_streaming: Option<bool>,
    supports_finish_reason: Option<bool>,
    max_tokens_field: Option<String>,
    requires_tool_result_name: Option<bool>,
    requires_assistant_after_tool_result: Option<bool>,
    requires_thinking_as_text: Option<bool>,
    requires_reasoning_content_on_assistant_messages: Option<bool>,
    thinking_format: Option<ThinkingFormat>,
    chat_template_kwargs: Option<Map<String, Value>>,
    chat_template_args: Option<Map<String, Value>>,
    open_router_routing: Option<Value>,
    vercel_gateway_routing: Option<Value>,
    zai_tool_stream: Option<bool>,
    supports_strict_mode: Option<bool>,
}

impl Compat {
    /// Returns the settings for `model`. Fails if `model.compat` is invalid.
    pub(super) fn new(model: &Model) -> Result<Self, String> {
        let detected = Self::detect(model);
        let Some(compat) = model.compat.as_ref().filter(|compat| !compat.is_null()) else {
            return Ok(detected);
        };
        let set = Overrides::deserialize(compat)
            .map_err(|error| format!("Invalid compat of model {}: {error}", model.reference()))?;
        Ok(Self {
            supports_store: set.supports_store.unwrap_or(detected.supports_store),
            supports_developer_role: set
                .supports_developer_role
                .unwrap_or(detected.supports_developer_role),
            supports_reasoning_effort: set
                .supports_reasoning_effort
                .unwrap_or(detected.supports_reasoning_effort),
            reasoning_effort_map: set
                .reasoning_effort_map
                .unwrap_or(detected.reasoning_effort_map),
            supports_usage_in_streaming: set
                .supports_usage_in_streaming
                .unwrap_or(detected.supports_usage_in_streaming),
            supports_finish_reason: set
                .supports_finish_reason
                .unwrap_or(detected.supports_finish_reason),
            max_tokens_field: set.max_tokens_field.unwrap_or(detected.max_tokens_field),
            requires_tool_result_name: set
                .requires_tool_result_name
                .unwrap_or(detected.requires_tool_result_name),
            requires_assistant_after_tool_result: set
                .requires_assistant_after_tool_result
                .unwrap_or(detected.requires_assistant_after_tool_result),
            requires_thinking_as_text: set
                .requires_thinking_as_text
                .unwrap_or(detected.requires_thinking_as_text),
            requires_reasoning_content_on_assistant_messages: set
                .requires_reasoning_content_on_assistant_messages
                .unwrap_or(detected.requires_reasoning_content_on_assistant_messages),
            thinking_format: set.thinking_format.unwrap_or(detected.thinking_format),
            chat_template_kwargs: set.chat_template_kwargs.unwrap_or_default(),
            chat_template_args: set.chat_template_args.unwrap_or_default(),
            open_router_routing: set.open_router_routing,
            vercel_gateway_routing: set.vercel_gateway_routing,
            zai_tool_stream: set.zai_tool_stream.unwrap_or(detected.zai_tool_stream),
            supports_strict_mode: set
                .supports_strict_mode
                .unwrap_or(detected.supports_strict_mode),
        })
    }

    fn detect(model: &Model) -> Self {
        let is = |provider: &str, host: &str| {
            (!provider.is_empty() && model.provider == provider) || model.base_url.contains(host)
        };
        let is_zai = is("zai", "api.z.ai");
        let is_grok = is("xai", "api.x.ai");
        let is_chutes = is("", "chutes.ai");
        let is_plain = is_zai
            || is_grok
            || is_chutes
            || is("cerebras", "cerebras.ai")
            || is("", "deepseek.com")
            || is("opencode", "opencode.ai");
        let has_one_effort = is("groq", "groq.com") && model.id == "qwen/qwen3-32b";
        let reasoning_effort_map = ThinkingLevel::ALL
            .into_iter()
            .filter(|level| has_one_effort && *level != ThinkingLevel::Off)
            .map(|level| (level.as_str().to_owned(), "default".to_owned()))
            .collect();
        let thinking_format = if is_zai {
            ThinkingFormat::Zai
        } else if is("openrouter", "openrouter.ai") {
            ThinkingFormat::Openrouter
        } else {
            ThinkingFormat::Openai
        };
        let max_tokens_field = match is_chutes {
            true => "max_tokens",
            false => "max_completion_tokens",
        };
        Self {
            supports_store: !is_plain,
            supports_developer_role: !is_plain,
            supports_reasoning_effort: !is_grok && !is_zai,
            reasoning_effort_map,
            supports_usage_in_streaming: true,
            supports_finish_reason: true,
            max_tokens_field: max_tokens_field.to_owned(),
            requires_tool_result_name: false,
            requires_assistant_after_tool_result: false,
            requires_thinking_as_text: false,
            requires_reasoning_content_on_assistant_messages: false,
            thinking_format,
            chat_template_kwargs: Map::new(),
            chat_template_args: Map::new(),
            open_router_routing: None,
            vercel_gateway_routing: None,
            zai_tool_stream: false,
            supports_strict_mode: true,
        }
    }

    pub(super) fn effort<'a>(&'a self, model: &'a Model, level: ThinkingLevel) -> &'a str {
        let own = self.reasoning_effort_map.get(level.as_str());
        let name = model.level_name(level).or(own.map(String::as_str));
        name.unwrap_or(level.as_str())
    }
}
