//! Models that name an unknown wire API. During the load another extension may still
//! register the API, so the check is repeated at the end.

use pi_base::nearest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ai::api::WIRE_NAMES;
use crate::ai::provided::ProviderConfig;
use crate::extensions::bridge::{BridgeHost, BridgeResult, parse};
use crate::extensions::registry::{ExtensionId, ExtensionInfo};

/// Minimum similarity at which an API name is suggested.
const LIKENESS: f32 = 0.7;

#[derive(Serialize)]
pub(super) struct Slip {
    api: String,
    sentence: String,
}

/// An unknown API with the position of the registration.
#[derive(Deserialize)]
struct Placed {
    extension: ExtensionId,
    api: String,
    sentence: String,
    /// An error with its stack.
    error: String,
}

#[derive(Default)]
pub(super) struct Unknown {
    /// Whether all extensions are loaded.
    is_loaded: bool,
    slips: Vec<Placed>,
}

impl BridgeHost {
    /// Returns the models of a provider whose API is unknown.
    pub(super) fn unknown_apis(&self, provider: &str, config: &ProviderConfig) -> Vec<Slip> {
        let mut slips: Vec<Slip> = Vec::new();
        for model in config.models.iter().flatten() {
            let own = model.api.as_ref().filter(|api| !api.trim().is_empty());
            let Some(api) = own.or(config.api.as_ref()) else {
                continue;
            };
            if self.has_api(api) || slips.iter().any(|slip| slip.api == *api) {
                continue;
            }
            let meant = nearest(api, &WIRE_NAMES, LIKENESS);
            let meant = meant.map(|meant| format!(" Is \"{meant}\" meant?"));
            slips.push(Slip {
                api: api.clone(),
                sentence: format!(
                    "Provider {provider}, model {}: there is no API \"{api}\", and no streamSimple \
                     for it: whatever it is asked fails.{} The APIs are {}",
                    model.id,
                    meant.unwrap_or_default(),
                    WIRE_NAMES.join(", ")
                ),
            });
        }
        slips
    }

    fn has_api(&self, name: &str) -> bool {
        let provisions = &self.provisions;
        provisions.registered.api(name).is_some() || provisions.models.api(name).is_some()
    }

    pub(super) fn unknown_api(&self, args: &str) -> BridgeResult {
        let slip: Placed = parse("providers.unknownApi", args)?;
        let mut unknown = self.provisions.unknown.lock();
        match unknown.is_loaded {
            false => unknown.slips.push(slip),
            true => {
                drop(unknown);
                self.tell_unknown(slip);
            }
        }
        Ok(Value::Null)
    }

    /// Reports APIs that are still unknown after all extensions were loaded.
    pub fn report_unknown_apis(&self) {
        let mut unknown = self.provisions.unknown.lock();
        unknown.is_loaded = true;
        let slips = std::mem::take(&mut unknown.slips);
        drop(unknown);
        for slip in slips {
            let extension = slip.extension as usize;
            let has_failed = |info: &ExtensionInfo| info.error.is_some();
            let failed = self
                .registry
                .lock()
                .extensions
                .get(extension)
                .is_none_or(has_failed);
            if !failed && !self.has_api(&slip.api) {
                self.tell_unknown(slip);
            }
        }
    }

    fn tell_unknown(&self, slip: Placed) {
        let stack = js_runtime::readable_stack(&slip.error);
        self.report_thrown(
            slip.extension,
            "register_provider",
            slip.sentence,
            Some(stack),
        );
    }
}
