//! Extensions from files for a child session. A resource loader loads them into their own
//! isolate before the child session exists.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;

use crate::api::resources::ResourceArgs;
use crate::api::session_api::SessionApi;
use crate::bridge::{BridgeResult, parse, to_value};
use crate::lifecycle::{Extensions, LoadReport};
use crate::registry::inventory::{DescribedExtension, LoadState};
use pi_ai::models::registry::ModelRegistry;
use pi_resources::discovery::extensions::{ExtensionPath, ResourceSources, find_extensions};
use pi_resources::paths::Paths;
use pi_resources::settings::Settings;

/// Extensions to load, and the settings they use.
pub struct ChildExtensionsRequest {
    pub paths: Paths,
    pub settings: Arc<Settings>,
    pub extensions: Vec<ExtensionPath>,
}

/// Loaded extensions that no session has taken yet.
pub struct ChildExtensions {
    pub extensions: Arc<Extensions>,
    pub report: LoadReport,
    /// The registry in which their providers are registered.
    pub models: Arc<ModelRegistry>,
    /// The files that were requested.
    pub files: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct LoadArgs {
    #[serde(flatten)]
    resources: ResourceArgs,
    /// Restricts the load to these files; all if absent.
    #[serde(default)]
    only: Option<Vec<PathBuf>>,
}

#[derive(Deserialize)]
struct UnloadArgs {
    set: u64,
}

#[derive(Serialize)]
struct LoadFailureJson<'a> {
    path: &'a str,
    error: &'a str,
}

/// Loaded extensions without a session. They end with the generation that requested them.
#[derive(Default)]
pub struct LoadedExtensions(Mutex<HashMap<u64, ChildExtensions>>);

impl LoadedExtensions {
    /// Loads extensions. Returns their description and a number, which is absent if there
    /// was nothing to load.
    pub async fn load(
        &self,
        actions: &dyn SessionApi,
        number: u64,
        method: &str,
        args: &str,
    ) -> BridgeResult {
        let LoadArgs { resources, only } = parse(method, args)?;
        let paths = resources.paths();
        let settings = resources.settings(&paths);
        let found = find_extensions(&ResourceSources {
            paths: &paths,
            settings: &settings,
            cli_extensions: &resources.paths,
            discover: resources.include_defaults,
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
        let request = ChildExtensionsRequest {
            paths,
            settings,
            extensions,
        };
        let set = actions.load_child_extensions(request).await;
        let set = set.map_err(|error| HostError::new(error.0))?;
        let failed = set.report.failed.iter();
        for (path, error) in failed {
            let error = &error.to_string();
            errors.push(to_value(LoadFailureJson { path, error })?);
        }
        let loaded = set.extensions.describe().into_iter();
        let loaded: Vec<DescribedExtension> = loaded
            .filter(|one| one.state != LoadState::Failed)
            .collect();
        self.0.lock().insert(number, set);
        Ok(json!({ "set": number, "extensions": loaded, "errors": errors }))
    }

    /// Returns `None` if a session has taken the extensions already, or they were unloaded.
    pub fn take(&self, number: u64) -> Option<ChildExtensions> {
        self.0.lock().remove(&number)
    }

    /// Unloads extensions that no session will use.
    pub fn unload(&self, handle: &Handle, method: &str, args: &str) -> BridgeResult {
        let UnloadArgs { set } = parse(method, args)?;
        if let Some(set) = self.take(set) {
            handle.spawn(async move { set.extensions.stop(0).await });
        }
        Ok(serde_json::Value::Null)
    }
}
