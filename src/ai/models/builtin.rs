//! The built-in models. Their data is in one file per provider (`catalogue/*.json`, made by
//! `scripts/catalogue.mjs`), which is parsed when it is first needed.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use super::thinking_levels::LevelNames;
use crate::auth::secret_value::Env;
use crate::model::{CostTier, Modality, Model, ModelCost};

/// A provider that comes with the program.
pub struct Provider {
    pub id: &'static str,
    /// Display name.
    pub name: &'static str,
    /// The model to use when the user names none.
    pub default_model: &'static str,
    /// Environment variables that may hold a key; the first that is set wins.
    pub key_env: &'static [&'static str],
    data: &'static str,
}

macro_rules! provider {
    ($id:literal, $name:literal, $default_model:literal, $key_env:expr) => {
        Provider {
            id: $id,
            name: $name,
            default_model: $default_model,
            key_env: &$key_env,
            data: include_str!(concat!("catalogue/", $id, ".json")),
        }
    };
}

/// Built-in providers. If several have a key, the default model of the first one is used.
pub static PROVIDERS: [Provider; 44] = [
    provider!(
        "amazon-bedrock",
        "Amazon Bedrock",
        "us.anthropic.claude-opus-4-6-v1",
        []
    ),
    provider!(
        "anthropic",
        "Anthropic",
        "claude-opus-4-6",
        ["ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"]
    ),
    provider!("openai", "OpenAI", "gpt-5.4", ["OPENAI_API_KEY"]),
    provider!(
        "azure-openai-responses",
        "Azure OpenAI",
        "gpt-5.2",
        ["AZURE_OPENAI_API_KEY"]
    ),
    provider!("openai-codex", "OpenAI Codex", "gpt-5.4", []),
    provider!("google", "Google", "gemini-2.5-pro", ["GEMINI_API_KEY"]),
    provider!(
        "google-gemini-cli",
        "Google Gemini CLI",
        "gemini-2.5-pro",
        []
    ),
    provider!(
        "google-antigravity",
        "Google Antigravity",
        "gemini-3.1-pro-high",
        []
    ),
    provider!(
        "google-vertex",
        "Google Vertex AI",
        "gemini-3-pro-preview",
        ["GOOGLE_CLOUD_API_KEY"]
    ),
    provider!(
        "github-copilot",
        "GitHub Copilot",
        "gpt-4o",
        ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"]
    ),
    provider!(
        "openrouter",
        "OpenRouter",
        "openai/gpt-5.1-codex",
        ["OPENROUTER_API_KEY"]
    ),
    // The original has `claude-opus-4-6` here, which the gateway does not offer.
    provider!(
        "vercel-ai-gateway",
        "Vercel AI Gateway",
        "anthropic/claude-opus-4.6",
        ["AI_GATEWAY_API_KEY"]
    ),
    provider!("xai", "xAI", "grok-4-fast-non-reasoning", ["XAI_API_KEY"]),
    provider!("groq", "Groq", "openai/gpt-oss-120b", ["GROQ_API_KEY"]),
    provider!("cerebras", "Cerebras", "zai-glm-4.7", ["CEREBRAS_API_KEY"]),
    provider!("zai", "Z.AI", "glm-5", ["ZAI_API_KEY"]),
    provider!(
        "mistral",
        "Mistral",
        "devstral-medium-latest",
        ["MISTRAL_API_KEY"]
    ),
    provider!("minimax", "MiniMax", "MiniMax-M2.7", ["MINIMAX_API_KEY"]),
    provider!(
        "minimax-cn",
        "MiniMax CN",
        "MiniMax-M2.7",
        ["MINIMAX_CN_API_KEY"]
    ),
    provider!(
        "huggingface",
        "Hugging Face",
        "moonshotai/Kimi-K2.5",
        ["HF_TOKEN"]
    ),
    provider!(
        "opencode",
        "OpenCode Zen",
        "claude-opus-4-6",
        ["OPENCODE_API_KEY"]
    ),
    provider!(
        "opencode-go",
        "OpenCode Go",
        "kimi-k2.5",
        ["OPENCODE_API_KEY"]
    ),
    provider!(
        "kimi-coding",
        "Kimi For Coding",
        "kimi-for-coding",
        ["KIMI_API_KEY"]
    ),
    // The providers below were added by newer versions of the original.
    provider!("azure", "Azure", "gpt-6.1-sol", ["AZURE_OPENAI_API_KEY"]),
    provider!(
        "deepseek",
        "DeepSeek",
        "deepseek-v4-pro",
        ["DEEPSEEK_API_KEY"]
    ),
    provider!(
        "moonshotai",
        "Moonshot AI",
        "kimi-k2.7-code",
        ["MOONSHOT_API_KEY"]
    ),
    provider!(
        "moonshotai-cn",
        "Moonshot AI CN",
        "kimi-k2.7-code",
        ["MOONSHOT_API_KEY"]
    ),
    provider!(
        "zai-coding-cn",
        "Z.AI Coding CN",
        "glm-5.3",
        ["ZAI_CODING_CN_API_KEY"]
    ),
    provider!("meta", "Meta", "muse-spark-1.3", ["META_API_KEY"]),
    provider!(
        "nvidia",
        "NVIDIA",
        "nvidia/nemotron-3.5-super-vl-120b-a12b",
        ["NVIDIA_API_KEY"]
    ),
    provider!(
        "fireworks",
        "Fireworks",
        "accounts/fireworks/models/kimi-k3",
        ["FIREWORKS_API_KEY"]
    ),
    provider!(
        "together",
        "Together",
        "moonshotai/Kimi-K3",
        ["TOGETHER_API_KEY"]
    ),
    provider!("baseten", "Baseten", "zai-org/GLM-5.3", ["BASETEN_API_KEY"]),
    provider!("ant-ling", "Ant Ling", "Ring-2.6-1T", ["ANT_LING_API_KEY"]),
    provider!(
        "qwen-token-plan",
        "Qwen Token Plan",
        "qwen3.8-max",
        ["QWEN_TOKEN_PLAN_API_KEY"]
    ),
    provider!(
        "qwen-token-plan-cn",
        "Qwen Token Plan CN",
        "qwen3.8-max",
        ["QWEN_TOKEN_PLAN_CN_API_KEY"]
    ),
    provider!(
        "qwen-token-plan-individual",
        "Qwen Token Plan Individual",
        "qwen3.8-max",
        ["QWEN_TOKEN_PLAN_API_KEY"]
    ),
    provider!(
        "qwen-token-plan-individual-cn",
        "Qwen Token Plan Individual CN",
        "qwen3.8-max",
        ["QWEN_TOKEN_PLAN_CN_API_KEY"]
    ),
    provider!("xiaomi", "Xiaomi", "mimo-v2.6-pro", ["XIAOMI_API_KEY"]),
    provider!(
        "xiaomi-token-plan-cn",
        "Xiaomi Token Plan CN",
        "mimo-v2.6-pro",
        ["XIAOMI_TOKEN_PLAN_CN_API_KEY"]
    ),
    provider!(
        "xiaomi-token-plan-ams",
        "Xiaomi Token Plan AMS",
        "mimo-v2.6-pro",
        ["XIAOMI_TOKEN_PLAN_AMS_API_KEY"]
    ),
    provider!(
        "xiaomi-token-plan-sgp",
        "Xiaomi Token Plan SGP",
        "mimo-v2.6-pro",
        ["XIAOMI_TOKEN_PLAN_SGP_API_KEY"]
    ),
    provider!(
        "cloudflare-workers-ai",
        "Cloudflare Workers AI",
        "@cf/moonshotai/kimi-k2.7-code",
        ["CLOUDFLARE_API_KEY"]
    ),
    provider!(
        "cloudflare-ai-gateway",
        "Cloudflare AI Gateway",
        "workers-ai/@cf/moonshotai/kimi-k2.7-code",
        ["CLOUDFLARE_API_KEY"]
    ),
];

/// Variables with credentials for Bedrock.
const AWS_VARIABLES: [&str; 4] = [
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
];

/// Returns the variables that [`env_key`] reads.
pub fn key_variables(provider: &str) -> &'static [&'static str] {
    match provider {
        "amazon-bedrock" => &AWS_VARIABLES,
        _ => self::provider(provider).map_or(&[], |provider| provider.key_env),
    }
}

/// Returns the variables that keys of any provider are read from.
pub fn all_key_variables() -> impl Iterator<Item = &'static str> {
    let names = PROVIDERS.iter().flat_map(|provider| provider.key_env);
    names
        .copied()
        .chain(AWS_VARIABLES)
        .chain(["AWS_SESSION_TOKEN"])
}

/// Returns the key that the environment has for a provider, or a placeholder for credentials that
/// the wire API finds itself.
pub fn env_key(provider: &str, env: &Env) -> Option<String> {
    if provider == "amazon-bedrock" {
        let [profile, id, secret, token] = AWS_VARIABLES;
        let set = |name: &str| env.get(name).is_some();
        let found = set(profile) || set(id) && set(secret) || set(token);
        return found.then(|| "<authenticated>".to_owned());
    }
    let names = self::provider(provider)?.key_env;
    names.iter().find_map(|name| env.get(name))
}

/// Returns the variable that [`env_key`] reads, if it is a single one.
pub fn env_name(provider: &str, env: &Env) -> Option<String> {
    let mut names = self::provider(provider)?.key_env.iter();
    let name = names.find(|name| env.get(name).is_some())?;
    Some((*name).to_owned())
}

pub fn provider(id: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.id == id)
}

/// The content of a provider's file.
pub struct ProviderEntry {
    /// API of the provider's first model. Custom models of the provider that name no API use it.
    pub api: String,
    pub base_url: String,
    pub models: Vec<Model>,
}

impl Provider {
    /// Parses the provider's file. This takes time, so callers keep the result.
    pub fn load(&self) -> ProviderEntry {
        let file: File = serde_json::from_str(self.data)
            .expect("the catalogue is part of the program and a test parses all of it");
        let first = &file.variants[0];
        ProviderEntry {
            api: first.api.clone(),
            base_url: first.base_url.clone(),
            models: file
                .models
                .into_iter()
                .chain(file.older)
                .map(|row| row.into_model(self.id, &file.variants))
                .collect(),
        }
    }
}

#[derive(Deserialize)]
struct File {
    variants: Vec<Variant>,
    models: Vec<Row>,
    /// Models that the provider no longer lists.
    #[serde(default)]
    older: Vec<Row>,
}

/// One API and address of a provider.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Variant {
    api: String,
    base_url: String,
    headers: Option<IndexMap<String, String>>,
    compat: Option<Value>,
    thinking_level_map: Option<LevelNames>,
}

/// Id, name, flags, context window, output limit, prices, index of the variant, prices of
/// long requests.
#[derive(Deserialize)]
struct Row(
    String,
    String,
    String,
    u64,
    u64,
    [f64; 4],
    #[serde(default)] usize,
    #[serde(default)] Vec<TierRow>,
);

/// A number of input tokens, and the prices of larger requests.
#[derive(Deserialize)]
struct TierRow(u64, f64, f64, f64, f64);

impl From<TierRow> for CostTier {
    fn from(row: TierRow) -> Self {
        let TierRow(input_tokens_above, input, output, cache_read, cache_write) = row;
        Self {
            input_tokens_above,
            input,
            output,
            cache_read,
            cache_write,
        }
    }
}

impl Row {
    fn into_model(self, provider: &str, variants: &[Variant]) -> Model {
        let Self(id, name, flags, context_window, max_tokens, prices, variant, tiers) = self;
        let variant = &variants[variant];
        let [input, output, cache_read, cache_write] = prices;
        let mut modalities = vec![Modality::Text];
        if flags.contains('i') {
            modalities.push(Modality::Image);
        }
        Model {
            id,
            name,
            api: variant.api.clone(),
            provider: provider.to_owned(),
            base_url: variant.base_url.clone(),
            reasoning: flags.contains('r'),
            input: modalities,
            cost: ModelCost {
                input,
                output,
                cache_read,
                cache_write,
                tiers: tiers.into_iter().map(CostTier::from).collect(),
            },
            context_window,
            max_tokens,
            headers: variant.headers.clone(),
            thinking_level_map: variant.thinking_level_map.clone(),
            sampling_params: None,
            sampling_params_by_thinking_level: None,
            compat: variant.compat.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    /// Provider, id, context window, output limit and prices of the models of 0.67.68, from
    /// `scripts/catalogue.mjs --list`.
    const MODELS_OF_0_67: &str = include_str!("catalogue/tests/models-0.67.68.tsv");

    use super::*;

    fn model(provider_id: &str, id: &str) -> Value {
        let entry = provider(provider_id).unwrap().load();
        let model = entry.models.into_iter().find(|model| model.id == id);
        serde_json::to_value(model.unwrap()).unwrap()
    }

    #[test]
    fn every_provider_parses_and_has_its_default_model() {
        let mut total = 0;
        for provider in &PROVIDERS {
            let models = provider.load().models;
            total += models.len();
            assert!(
                models.is_empty() || models.iter().any(|m| m.id == provider.default_model),
                "{} lacks {}",
                provider.id,
                provider.default_model
            );
        }
        assert_eq!(total, 2003);
    }

    /// Prices and limits of models that are still listed may have changed.
    #[test]
    fn no_model_of_an_older_version_is_lost() {
        let mut count = 0;
        for line in MODELS_OF_0_67.lines() {
            let [provider_id, id, facts @ ..] = &line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let provider = provider(provider_id).expect(provider_id);
            let file: File = serde_json::from_str(provider.data).unwrap();
            let is_here = |row: &&Row| row.0 == *id;
            let facts: Vec<f64> = facts.iter().map(|fact| fact.parse().unwrap()).collect();
            if let Some(older) = file.older.iter().find(is_here) {
                let [input, output, cache_read, cache_write] = older.5;
                let limits = [older.3 as f64, older.4 as f64];
                let prices = [input, output, cache_read, cache_write];
                assert_eq!([&limits[..], &prices].concat(), facts, "{line}");
            } else {
                assert!(file.models.iter().any(|row| is_here(&row)), "{line}");
            }
            count += 1;
        }
        assert_eq!(count, 841);
    }

    #[test]
    fn every_model_has_limits_prices_and_an_api() {
        for provider in &PROVIDERS {
            for model in provider.load().models {
                let name = model.reference();
                assert!(model.context_window > 0 && model.max_tokens > 0, "{name}");
                assert!(crate::apis::wire_api(&model.api).is_some(), "{name}");
                let cost = model.cost;
                let mut prices = vec![cost.input, cost.output, cost.cache_read, cost.cache_write];
                prices.extend(cost.tiers.iter().flat_map(|tier| [tier.input, tier.output]));
                assert!(
                    prices.iter().all(|price| *price >= 0.0),
                    "{name}: {prices:?}"
                );
            }
        }
    }

    #[test]
    fn a_row_has_levels_and_prices_of_long_requests() {
        let model = model("openai", "gpt-6.1-sol");
        assert_eq!(
            model["cost"],
            json!({
                "input": 2, "output": 10, "cacheRead": 0.1, "cacheWrite": 2.5,
                "tiers": [{"inputTokensAbove": 272000,
                    "input": 4, "output": 15, "cacheRead": 0.2, "cacheWrite": 5}],
            })
        );
        assert_eq!(model["thinkingLevelMap"]["max"], "max");
        assert_eq!(model["thinkingLevelMap"]["off"], Value::Null);
    }

    #[test]
    fn ids_are_unique_within_a_provider() {
        for provider in &PROVIDERS {
            let models = provider.load().models;
            let mut ids: Vec<&str> = models.iter().map(|m| m.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), models.len(), "{}", provider.id);
        }
    }

    #[test]
    fn a_plain_row_becomes_a_model() {
        assert_eq!(
            model("anthropic", "claude-opus-4-6"),
            json!({
                "id": "claude-opus-4-6",
                "name": "Claude Opus 4.6",
                "api": "anthropic-messages",
                "provider": "anthropic",
                "baseUrl": "https://api.anthropic.com",
                "reasoning": true,
                "input": ["text", "image"],
                "cost": {"input": 5, "output": 25, "cacheRead": 0.5, "cacheWrite": 6.25},
                "contextWindow": 1000000,
                "maxTokens": 128000,
                "thinkingLevelMap": {"max": "max"},
                "compat": {"forceAdaptiveThinking": true, "supportsStrictTools": true},
            })
        );
    }

    #[test]
    fn a_row_takes_api_headers_and_compat_from_its_variant() {
        let model = model("github-copilot", "gpt-4o");
        assert_eq!(model["api"], "openai-completions");
        assert_eq!(
            model["compat"],
            json!({
                "supportsStore": false,
                "supportsDeveloperRole": false,
                "supportsReasoningEffort": false,
            })
        );
        assert_eq!(model["headers"]["Copilot-Integration-Id"], "vscode-chat");
    }
}
