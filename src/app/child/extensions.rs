//! Loads the extensions of a child session into an isolate of their own, so that their crashes do
//! not affect the session of the user.

use std::sync::Arc;

use crate::AgentSession;
use pi_ai::models::registry::ModelRegistry;
use pi_extensions::api::session_api::SessionApi;
use pi_extensions::child::{ChildExtensions, ChildExtensionsRequest};
use pi_extensions::{Extensions, ExtensionsConfig};

impl AgentSession {
    /// Loads the extensions. Slow notices are shown to the user, as in any other load.
    pub(crate) async fn load_child_extensions(
        &self,
        begin: ChildExtensionsRequest,
    ) -> ChildExtensions {
        let ChildExtensionsRequest {
            paths,
            settings,
            extensions: wanted,
        } = begin;
        let models = Arc::new(ModelRegistry::load(&paths.agent_dir));
        let extensions = Extensions::new(ExtensionsConfig::new(
            &settings,
            &paths,
            models.clone(),
            self.config.console.clone(),
        ));
        let listener: Arc<dyn SessionApi> = self.arc();
        extensions.set_wait_listener(Arc::downgrade(&listener));
        extensions.name_session("child session", &paths.cwd);
        let files = wanted.iter().map(|one| one.path.clone()).collect();
        let report = extensions.load(wanted).await;
        ChildExtensions {
            extensions,
            report,
            models,
            files,
        }
    }
}
