//! Export of the session as an HTML page.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::AgentSession;
use pi_export::{self, ExportError, PageColors, PageContext, ToolDescription};
use pi_tools::tool::Tool;

impl AgentSession {
    /// Writes the whole session, as it is now, into one HTML file. Without a path, or with an empty
    /// one, the file goes into the program's current folder, as in the original.
    pub(super) async fn export_html(&self, output: Option<&Path>) -> Result<PathBuf, ExportError> {
        let (snapshot, stored) = {
            let state = self.state.lock();
            let stored = state.session.path().ok_or(ExportError::InMemory)?;
            if !state.session.is_stored() {
                return Err(ExportError::Nothing);
            }
            (state.session.snapshot(), stored.to_path_buf())
        };
        let prompt = self.state.lock().system_prompt.current().to_owned();
        let page = PageContext {
            system_prompt: Some(prompt),
            tools: self.tools.active().iter().map(describe).collect(),
            colors: self
                .prompt_resources
                .chosen_theme()
                .as_ref()
                .map(PageColors::from_theme),
        };
        self.add_registry_tokens();
        let output = output.map(Path::to_path_buf);
        let output = output.filter(|path| !path.as_os_str().is_empty());
        // Long sessions take a while to write.
        let written = tokio::task::spawn_blocking(move || {
            pi_export::export(&snapshot, &stored, &page, output.as_deref())
        });
        written
            .await
            .unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ExportError::Ending),
            })
    }
}

fn describe(tool: &Arc<dyn Tool>) -> ToolDescription {
    let spec = tool.spec();
    ToolDescription {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
    }
}
