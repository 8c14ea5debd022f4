//! The extensions of a session beside this one: they have an isolate of their own, so that what
//! they do in it, and who brings it down, is no matter of the session that the user sees.

use std::sync::Arc;

use super::AgentSession;
use crate::ai::registry::ModelRegistry;
use crate::extensions::api::session_api::SessionApi;
use crate::extensions::child::{ChildExtensions, ChildExtensionsRequest};
use crate::extensions::{Extensions, ExtensionsConfig};

impl AgentSession {
    /// The user is told what the load waits for, as at any other.
    pub(super) async fn load_for_second(&self, begin: ChildExtensionsRequest) -> ChildExtensions {
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
        extensions.name_session("beside another", &paths.cwd);
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
