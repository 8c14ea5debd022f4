//! Extensions from files for a session beside another: loaded into an isolate of their own when a
//! resource loader looks for them, which is before there is the session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use crate::ai::registry::ModelRegistry;
use crate::extensions::api::resources::Place;
use crate::extensions::api::session_api::Actions;
use crate::extensions::bridge::{BridgeResult, parse, to_value};
use crate::extensions::lifecycle::{Extensions, LoadReport};
use crate::extensions::registry::inventory::DescribedExtension;
use crate::resources::extension_paths::{ExtensionPath, ResourceSources, find_extensions};
use crate::resources::paths::Paths;
use crate::resources::settings::Settings;

/// What is to be loaded, and by whose settings.
pub struct SetBegin {
    pub paths: Paths,
    pub settings: Arc<Settings>,
    pub extensions: Vec<ExtensionPath>,
}

/// Loaded, and not yet of any session.
pub struct SecondSet {
    pub extensions: Arc<Extensions>,
    pub report: LoadReport,
    /// Where their providers are registered.
    pub models: Arc<ModelRegistry>,
    /// The files, as they were to be loaded.
    pub files: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Load {
    #[serde(flatten)]
    place: Place,
    /// Of what is found; all if not given.
    #[serde(default)]
    only: Option<Vec<PathBuf>>,
}

#[derive(Deserialize)]
struct Number {
    set: u64,
}

#[derive(Serialize)]
struct Failed<'a> {
    path: &'a str,
    error: &'a str,
}

/// Those that no session has taken yet; they end with the generation that asked for them.
#[derive(Default)]
pub struct SecondSets(Mutex<HashMap<u64, SecondSet>>);

impl SecondSets {
    /// Gives what was loaded, and its number; no number if there was nothing to load.
    pub async fn load(
        &self,
        actions: &dyn Actions,
        number: u64,
        method: &str,
        args: &str,
    ) -> BridgeResult {
        let Load { place, only } = parse(method, args)?;
        let paths = place.paths();
        let settings = place.settings(&paths);
        let found = find_extensions(&ResourceSources {
            paths: &paths,
            settings: &settings,
            cli_extensions: &place.paths,
            discover: place.include_defaults,
        });
        let wanted =
            |one: &ExtensionPath| only.as_ref().is_none_or(|only| only.contains(&one.path));
        let extensions: Vec<_> = found.paths.into_iter().filter(wanted).collect();
        let problems = found.diagnostics.iter().map(
            |problem| json!({ "path": problem.path.to_string_lossy(), "error": problem.message }),
        );
        let mut errors: Vec<_> = problems.collect();
        if extensions.is_empty() {
            return Ok(json!({ "extensions": [], "errors": errors }));
        }
        let begin = SetBegin {
            paths,
            settings,
            extensions,
        };
        let set = actions.second_extensions(begin).await;
        let set = set.map_err(|error| HostError::new(error.0))?;
        let failed = set.report.failed.iter();
        for (path, error) in failed {
            let error = &error.to_string();
            errors.push(to_value(Failed { path, error })?);
        }
        let loaded = set.extensions.describe().into_iter();
        let loaded: Vec<DescribedExtension> = loaded.filter(|one| one.error.is_none()).collect();
        self.0.lock().insert(number, set);
        Ok(json!({ "set": number, "extensions": loaded, "errors": errors }))
    }

    /// `None` if a session has it already, or it was let go.
    pub fn take(&self, number: u64) -> Option<SecondSet> {
        self.0.lock().remove(&number)
    }

    /// Nobody is going to begin a session with it.
    pub fn unload(&self, handle: &Handle, method: &str, args: &str) -> BridgeResult {
        let Number { set } = parse(method, args)?;
        if let Some(set) = self.take(set) {
            handle.spawn(async move { set.extensions.stop(0).await });
        }
        Ok(serde_json::Value::Null)
    }
}
