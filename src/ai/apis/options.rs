//! Options that only one wire API has, under the names that pi-ai's functions without `Simple` in
//! their name use.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::json::lenient::number;

/// How long a provider should keep the beginning of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    None,
    Short,
    Long,
}

/// Options of each API. Only those of the API that serves the request are used.
#[derive(Clone, Debug, Default)]
pub struct ApiOptions {
    pub anthropic: AnthropicOptions,
    pub bedrock: BedrockOptions,
    pub google: GoogleOptions,
    pub mistral: MistralOptions,
    pub responses: ResponsesOptions,
}

impl ApiOptions {
    /// Reads the options of `api`. Options of other APIs are ignored. The error names the option
    /// that cannot be read.
    pub fn read(api: &str, options: &Value) -> Result<Self, String> {
        let mut all = Self::default();
        match api {
            "anthropic-messages" => all.anthropic = known(api, options)?,
            "bedrock-converse-stream" => all.bedrock = known(api, options)?,
            "google-generative-ai" | "google-vertex" | "google-gemini-cli" => {
                all.google = known(api, options)?;
            }
            "mistral-conversations" => all.mistral = known(api, options)?,
            "openai-responses" | "azure-openai-responses" | "openai-codex-responses" => {
                all.responses = known(api, options)?;
            }
            _ => {}
        }
        Ok(all)
    }
}

fn known<T: DeserializeOwned>(api: &str, options: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(options).map_err(|error| {
        let (name, reason) = (error.path(), error.inner());
        format!("The option \"{name}\" of {api}: {reason}")
    })
}

/// Options of `anthropic-messages`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnthropicOptions {
    /// `None` leaves the choice to the API.
    pub thinking_enabled: Option<bool>,
    /// Token budget, for models with a thinking budget.
    #[serde(deserialize_with = "number")]
    pub thinking_budget_tokens: Option<f64>,
    /// Effort, for models that choose the length of their thinking themselves.
    #[serde(deserialize_with = "non_empty")]
    pub effort: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub thinking_display: Option<String>,
    pub interleaved_thinking: Option<bool>,
}

/// Options of `bedrock-converse-stream`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BedrockOptions {
    #[serde(deserialize_with = "non_empty")]
    pub region: Option<String>,
    /// Profile in AWS's configuration files.
    #[serde(deserialize_with = "non_empty")]
    pub profile: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub bearer_token: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub thinking_display: Option<String>,
    pub interleaved_thinking: Option<bool>,
    /// Tags that appear on the AWS bill.
    pub request_metadata: Option<Map<String, Value>>,
}

/// Options of `google-generative-ai`, `google-vertex` and `google-gemini-cli`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoogleOptions {
    /// `None` leaves the choice to the API.
    pub thinking: Option<GoogleThinking>,
    /// Project and location of Vertex AI, for credentials of a user.
    #[serde(deserialize_with = "non_empty")]
    pub project: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub location: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoogleThinking {
    pub enabled: bool,
    /// Token budget; -1 lets the model choose.
    pub budget_tokens: Option<i64>,
    /// Thinking level. Takes precedence over the budget.
    pub level: Option<String>,
}

/// Options of `mistral-conversations`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MistralOptions {
    #[serde(deserialize_with = "non_empty")]
    pub prompt_mode: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub reasoning_effort: Option<String>,
}

/// Options of `openai-responses`, `openai-codex-responses` and `azure-openai-responses`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResponsesOptions {
    #[serde(deserialize_with = "non_empty")]
    pub reasoning_summary: Option<String>,
    /// Service tier. Azure has none.
    #[serde(deserialize_with = "non_empty")]
    pub service_tier: Option<String>,
    /// Verbosity. Only `openai-codex-responses` has this option.
    #[serde(deserialize_with = "non_empty")]
    pub text_verbosity: Option<String>,
    /// The members from here on apply to Azure only.
    #[serde(deserialize_with = "non_empty")]
    pub azure_api_version: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub azure_resource_name: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub azure_base_url: Option<String>,
    #[serde(deserialize_with = "non_empty")]
    pub azure_deployment_name: Option<String>,
}

/// Reads a text; an empty one counts as absent.
fn non_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_option_of_another_api_may_be_anything() {
        let options = json!({"thinking": true, "effort": "low", "interleavedThinking": null});
        let read = ApiOptions::read("anthropic-messages", &options).unwrap();
        assert_eq!(read.anthropic.effort.as_deref(), Some("low"));
        assert_eq!(read.anthropic.interleaved_thinking, None);
    }

    #[test]
    fn an_option_that_cannot_be_read_is_named() {
        let options = json!({"thinking": {"enabled": true, "budgetTokens": "many"}});
        let error = ApiOptions::read("google-vertex", &options).unwrap_err();
        let start = "The option \"thinking.budgetTokens\" of google-vertex: invalid type";
        assert!(error.starts_with(start), "{error}");
    }
}
