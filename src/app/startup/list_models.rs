//! Lists the models that a session would have, including those of extensions, without opening one.

use std::sync::Arc;

use crate::startup::config::AppConfig;
use crate::startup::find_extensions;
use pi_ai::models::registry::ModelRegistry;
use pi_extensions::{Extensions, ExtensionsConfig};
use pi_resources::settings::Settings;
use pi_resources::trust;

/// Returns the models and the problems of loading. Without extensions no isolate is created.
pub async fn known_models(config: &AppConfig) -> (Arc<ModelRegistry>, Vec<String>) {
    let settings = Settings::load(&config.paths);
    let models = Arc::new(ModelRegistry::load(&config.paths.agent_dir));
    let (paths, mut problems) = find_extensions(config, &settings, &config.paths);
    problems.extend(trust::note(&config.paths));
    if paths.is_empty() {
        return (models, problems);
    }
    let extensions = Extensions::new(ExtensionsConfig::new(
        &settings,
        &config.paths,
        Arc::clone(&models),
        config.console.clone(),
    ));
    let report = extensions.load(paths).await;
    let failed = report.failed.iter();
    problems.extend(failed.map(|(path, error)| format!("Extension \"{path}\" error: {error}")));
    let refused = extensions.refused_providers().into_iter();
    problems.extend(refused.map(|(path, error)| format!("Extension \"{path}\" error: {error}")));
    extensions.stop(0).await;
    (models, problems)
}
