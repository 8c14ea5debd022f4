//! Applies a provider's entry in `models.json` to the provider's models.

use serde_json::{Map, Value};

use super::{ModelConfig, ModelOverride, ProviderConfig};
use crate::model::{Modality, Model, ModelCost};
use crate::models::builtin;

const CONTEXT_WINDOW: u64 = 128_000;
const MAX_TOKENS: u64 = 16_384;
/// Nested objects of `compat` that are merged instead of replaced.
const ROUTING: [&str; 2] = ["openRouterRouting", "vercelGatewayRouting"];

impl ProviderConfig {
    /// Returns the models of `provider`: the built-in ones with their changes, and the user's
    /// own, which replace built-in ones of the same id.
    pub fn apply(&self, provider: &str, built_in: Option<builtin::ProviderEntry>) -> Vec<Model> {
        let (api, base_url, mut models) = match built_in {
            Some(entry) => (Some(entry.api), Some(entry.base_url), entry.models),
            None => (None, None, Vec::new()),
        };
        for model in &mut models {
            if let Some(url) = &self.base_url {
                model.base_url.clone_from(url);
            }
            merge_compat(&mut model.compat, self.compat.as_ref());
            if let Some(change) = self.model_overrides.get(&model.id) {
                change.apply(model);
            }
        }
        for config in &self.models {
            let api = config.api.as_ref().or(self.api.as_ref()).or(api.as_ref());
            let url = config.base_url.as_ref().or(self.base_url.as_ref());
            let (Some(api), Some(url)) = (api, url.or(base_url.as_ref())) else {
                continue; // refused when the file was checked
            };
            let model = self.model(provider, config, api, url);
            match models.iter_mut().find(|known| known.id == model.id) {
                Some(known) => *known = model,
                None => models.push(model),
            }
        }
        models
    }

    fn model(&self, provider: &str, config: &ModelConfig, api: &str, base_url: &str) -> Model {
        let mut model = Model {
            id: config.id.clone(),
            name: config.id.clone(),
            api: api.to_owned(),
            provider: provider.to_owned(),
            base_url: base_url.to_owned(),
            reasoning: false,
            input: vec![Modality::Text],
            cost: ModelCost::default(),
            context_window: CONTEXT_WINDOW,
            max_tokens: MAX_TOKENS,
            // Headers may be secrets; each request resolves them together with the key.
            headers: None,
            thinking_level_map: None,
            sampling_params: None,
            sampling_params_by_thinking_level: None,
            compat: self.compat.clone(),
        };
        config.facts.apply(&mut model);
        model
    }
}

impl ModelOverride {
    fn apply(&self, model: &mut Model) {
        if let Some(name) = &self.name {
            model.name.clone_from(name);
        }
        if let Some(reasoning) = self.reasoning {
            model.reasoning = reasoning;
        }
        if let Some(input) = &self.input {
            model.input.clone_from(input);
        }
        if let Some(cost) = &self.cost {
            let set = |price: &mut f64, new: Option<f64>| *price = new.unwrap_or(*price);
            set(&mut model.cost.input, cost.input);
            set(&mut model.cost.output, cost.output);
            set(&mut model.cost.cache_read, cost.cache_read);
            set(&mut model.cost.cache_write, cost.cache_write);
            if let Some(tiers) = &cost.tiers {
                model.cost.tiers.clone_from(tiers);
            }
        }
        // The cast converts the number to the nearest integer that fits.
        if let Some(tokens) = self.context_window {
            model.context_window = tokens as u64;
        }
        if let Some(tokens) = self.max_tokens {
            model.max_tokens = tokens as u64;
        }
        if let Some(names) = &self.thinking_level_map {
            let known = model.thinking_level_map.get_or_insert_default();
            known.extend(names.clone());
        }
        if let Some(params) = &self.sampling_params {
            let known = model.sampling_params.get_or_insert_default();
            known.extend(params.clone());
        }
        for (level, params) in self.sampling_params_by_thinking_level.iter().flatten() {
            let levels = model
                .sampling_params_by_thinking_level
                .get_or_insert_default();
            let known = levels.entry(level.clone()).or_default();
            known.extend(params.clone());
        }
        merge_compat(&mut model.compat, self.compat.as_ref());
    }
}

fn merge_compat(base: &mut Option<Value>, change: Option<&Value>) {
    let Some(Value::Object(change)) = change else {
        return;
    };
    let mut merged: Map<String, Value> = match base.take() {
        Some(Value::Object(base)) => base,
        _ => Map::new(),
    };
    for (name, value) in change {
        match (merged.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) if ROUTING.contains(&name.as_str()) => {
                old.extend(new.clone());
            }
            _ => {
                merged.insert(name.clone(), value.clone());
            }
        }
    }
    *base = Some(Value::Object(merged));
}
