//! Models that name an unknown wire API. During the load another extension may still
//! register the API, so the check is repeated at the end.

use pi_base::nearest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bridge::{BridgeHost, BridgeResult, parse};
use crate::registry::{ExtensionId, ExtensionInfo};
use pi_ai::apis::WIRE_NAMES;
use pi_ai::extension_providers::ProviderConfig;

#[derive(Serialize)]
pub(super) struct UnknownApi {
    api: String,
    sentence: String,
}

/// An unknown API with the position of the registration.
#[derive(Deserialize)]
struct UnknownApiReport {
    extension: ExtensionId,
    api: String,
    sentence: String,
    /// An error with its stack.
    error: String,
}

#[derive(Default)]
pub(super) struct UnresolvedApis {
    /// Whether all extensions are loaded.
    is_loaded: bool,
    unknown_apis: Vec<UnknownApiReport>,
}

impl BridgeHost {
    /// Returns the models of a provider whose API is unknown.
    pub(super) fn find_unknown_apis(
        &self,
        provider: &str,
        config: &ProviderConfig,
    ) -> Vec<UnknownApi> {
        let mut unknown_apis: Vec<UnknownApi> = Vec::new();
        for model in config.models.iter().flatten() {
            let own = model.api.as_ref().filter(|api| !api.trim().is_empty());
            let Some(api) = own.or(config.api.as_ref()) else {
                continue;
            };
            if self.has_api(api)
                || unknown_apis
                    .iter()
                    .any(|unknown_api| unknown_api.api == *api)
            {
                continue;
            }
            let suggestion = nearest(api, &WIRE_NAMES);
            let suggestion = suggestion.map(|suggestion| format!(" Is \"{suggestion}\" meant?"));
            unknown_apis.push(UnknownApi {
                api: api.clone(),
                sentence: format!(
                    "Provider {provider}, model {}: there is no API \"{api}\", and the provider \
                     has no streamSimple: every request to the model fails.{} The APIs are {}",
                    model.id,
                    suggestion.unwrap_or_default(),
                    WIRE_NAMES.join(", ")
                ),
            });
        }
        unknown_apis
    }

    fn has_api(&self, name: &str) -> bool {
        let registrations = &self.provider_registrations;
        registrations.registered.api(name).is_some() || registrations.models.api(name).is_some()
    }

    pub(super) fn add_unknown_api(&self, args: &str) -> BridgeResult {
        let unknown_api: UnknownApiReport = parse("providers.unknownApi", args)?;
        let mut unknown = self.provider_registrations.unknown.lock();
        match unknown.is_loaded {
            false => unknown.unknown_apis.push(unknown_api),
            true => {
                drop(unknown);
                self.report_unknown_api(unknown_api);
            }
        }
        Ok(Value::Null)
    }

    /// Reports APIs that are still unknown after all extensions were loaded.
    pub fn report_unknown_apis(&self) {
        let mut unknown = self.provider_registrations.unknown.lock();
        unknown.is_loaded = true;
        let unknown_apis = std::mem::take(&mut unknown.unknown_apis);
        drop(unknown);
        for unknown_api in unknown_apis {
            let extension = unknown_api.extension as usize;
            let has_failed = |info: &ExtensionInfo| info.error.is_some();
            let to_host_error = self
                .registry
                .lock()
                .extensions
                .get(extension)
                .is_none_or(has_failed);
            if !to_host_error && !self.has_api(&unknown_api.api) {
                self.report_unknown_api(unknown_api);
            }
        }
    }

    fn report_unknown_api(&self, unknown_api: UnknownApiReport) {
        let stack = js_runtime::readable_stack(&unknown_api.error);
        self.report_thrown(
            unknown_api.extension,
            "register_provider",
            unknown_api.sentence,
            Some(stack),
        );
    }
}
