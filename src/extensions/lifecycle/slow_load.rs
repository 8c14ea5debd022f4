//! Shows a status while an extension takes long to load during a reload: prompts wait for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Extensions;
use crate::api::session_api::SessionApi;
use crate::diagnostics::error_context::extension_name;
use pi_agent::event::UiMethod;

/// Time from the start of a load after which the user is told which extension is being loaded.
pub(super) const SLOW_LOAD: Duration = Duration::from_secs(1);

/// Key of the status.
const STATUS_KEY: &str = "pi:load";

/// Removes the status when dropped.
struct ShownStatus(Arc<dyn SessionApi>);

impl Drop for ShownStatus {
    fn drop(&mut self) {
        show(&*self.0, None);
    }
}

impl Extensions {
    /// Shows the status after [`SLOW_LOAD`] until the future is dropped. Never returns.
    pub(super) async fn show_slow_load(&self, path: &Path) {
        tokio::time::sleep(SLOW_LOAD).await;
        let _shown = self.actions().map(|actions| {
            let name = extension_name(path).name;
            show(
                &*actions,
                Some(format!("Loading {name}; prompts wait for it")),
            );
            ShownStatus(actions)
        });
        std::future::pending::<()>().await;
    }
}

/// Sets or removes the status, if the mode can show it.
fn show(actions: &dyn SessionApi, status_text: Option<String>) {
    let status = UiMethod::SetStatus {
        status_key: STATUS_KEY.to_owned(),
        status_text,
    };
    if actions.has_ui() && actions.ui_supports(status.name()) {
        actions.show(status);
    }
}
