//! Origins of keys, for extensions that show them.

use serde::Serialize;

use super::ModelRegistry;
use crate::models::builtin;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct AuthSource {
    pub source: &'static str,
    /// Names of the variables, for a key of the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl ModelRegistry {
    /// Returns the variables that keys are read from: those of the built-in providers, and those
    /// that `models.json` names.
    pub fn key_variables(&self) -> Vec<String> {
        let mut names: Vec<String> = builtin::all_key_variables().map(str::to_owned).collect();
        let state = self.state.read();
        for provider in state.config.providers.values() {
            let key = provider.api_key.as_deref().unwrap_or_default();
            names.extend(self.secrets.variables(key));
        }
        names.sort();
        names.dedup();
        names
    }

    /// Returns the origin of a provider's key, in the terms of newer versions.
    pub fn auth_source(&self, provider: &str) -> Option<AuthSource> {
        if let Some(source) = self.own_auth_source(provider) {
            let variable = || builtin::env_name(provider, &self.env);
            let label = (source == "environment").then(variable).flatten();
            return Some(AuthSource { source, label });
        }
        if !self.has_auth(provider) {
            return None;
        }
        let added = self.added(provider);
        let added = added.and_then(|added| added.config.api_key);
        let added = added.filter(|key| self.secrets.is_resolvable(key));
        let plain = match &added {
            Some(_) => "fallback",
            None => "models_json_key",
        };
        let key = added.or_else(|| {
            let state = self.state.read();
            let config = state.config.providers.get(provider);
            config.and_then(|config| config.api_key.clone())
        });
        let key = key.unwrap_or_default();
        let variables = self.secrets.variables(&key);
        Some(match variables.is_empty() {
            false => AuthSource {
                source: "environment",
                label: Some(variables.join(", ")),
            },
            true => AuthSource {
                source: match key.starts_with('!') {
                    true => "models_json_command",
                    false => plain,
                },
                label: None,
            },
        })
    }
}
