//! What only one wire API can be told, under the names that pi-ai's functions take it by
//! (those that are not `Simple`).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::lenient::number;

/// How long a provider should keep the beginning of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retention {
    None,
    Short,
    Long,
}

/// Of these only what belongs to the API that is asked is looked at.
#[derive(Clone, Debug, Default)]
pub struct ApiOptions {
    pub anthropic: AnthropicOptions,
    pub bedrock: BedrockOptions,
    pub google: GoogleOptions,
    pub mistral: MistralOptions,
    pub responses: ResponsesOptions,
}

impl ApiOptions {
    /// Names of other APIs may be among them, with whatever they mean there. The error says
    /// which option of `api` cannot be read.
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

/// `anthropic-messages`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnthropicOptions {
    /// `None` leaves it to the API.
    pub thinking_enabled: Option<bool>,
    /// Of models that are given a budget.
    #[serde(deserialize_with = "number")]
    pub thinking_budget_tokens: Option<f64>,
    /// Of models that decide themselves how long they think.
    #[serde(deserialize_with = "said")]
    pub effort: Option<String>,
    #[serde(deserialize_with = "said")]
    pub thinking_display: Option<String>,
    pub interleaved_thinking: Option<bool>,
}

/// `bedrock-converse-stream`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BedrockOptions {
    #[serde(deserialize_with = "said")]
    pub region: Option<String>,
    /// In AWS's files.
    #[serde(deserialize_with = "said")]
    pub profile: Option<String>,
    #[serde(deserialize_with = "said")]
    pub bearer_token: Option<String>,
    #[serde(deserialize_with = "said")]
    pub thinking_display: Option<String>,
    pub interleaved_thinking: Option<bool>,
    /// What the bill tells apart.
    pub request_metadata: Option<Map<String, Value>>,
}

/// `google-generative-ai`, `google-vertex` and `google-gemini-cli`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoogleOptions {
    /// `None` leaves it to the API.
    pub thinking: Option<GoogleThinking>,
    /// These two are Vertex's, for credentials of a user.
    #[serde(deserialize_with = "said")]
    pub project: Option<String>,
    #[serde(deserialize_with = "said")]
    pub location: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GoogleThinking {
    pub enabled: bool,
    /// -1 is as many as the model likes.
    pub budget_tokens: Option<i64>,
    /// Before the budget, if there are both.
    pub level: Option<String>,
}

/// `mistral-conversations`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MistralOptions {
    #[serde(deserialize_with = "said")]
    pub prompt_mode: Option<String>,
    #[serde(deserialize_with = "said")]
    pub reasoning_effort: Option<String>,
}

/// `openai-responses`, `openai-codex-responses` and `azure-openai-responses`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResponsesOptions {
    #[serde(deserialize_with = "said")]
    pub reasoning_summary: Option<String>,
    /// Not Azure's.
    #[serde(deserialize_with = "said")]
    pub service_tier: Option<String>,
    /// Of `openai-codex-responses` alone.
    #[serde(deserialize_with = "said")]
    pub text_verbosity: Option<String>,
    /// The rest is Azure's.
    #[serde(deserialize_with = "said")]
    pub azure_api_version: Option<String>,
    #[serde(deserialize_with = "said")]
    pub azure_resource_name: Option<String>,
    #[serde(deserialize_with = "said")]
    pub azure_base_url: Option<String>,
    #[serde(deserialize_with = "said")]
    pub azure_deployment_name: Option<String>,
}

/// An empty text says nothing.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
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
