//! The built-in tools, and the interface of all tools. This layer does not depend on the callers
//! of tools.

pub mod arguments;
pub mod bash;
pub mod command;
pub mod edit;
pub mod files;
pub mod find;
pub mod grep;
pub mod images;
mod listing;
pub mod ls;
pub mod read;
pub mod remote;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tool;
pub mod write;

use std::path::PathBuf;
use std::sync::Arc;

use command::shell::ShellOptions;
use tokio_util::sync::CancellationToken;
use tool::{Tool, ToolError};

/// Names of all built-in tools.
pub const NAMES: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];
/// Names of tools that change files. An extension may replace them by its own tools.
pub const FILE_CHANGING: [&str; 2] = ["edit", "write"];
/// Names of the tools that are active by default.
pub const DEFAULT_ACTIVE: [&str; 4] = ["read", "bash", "edit", "write"];

#[derive(Clone, Debug)]
pub struct ToolOptions {
    /// Setting `shellPath`.
    pub shell_path: Option<PathBuf>,
    /// Setting `shellCommandPrefix`.
    pub command_prefix: Option<String>,
    /// Setting `images.autoResize`.
    pub auto_resize_images: bool,
    /// `<agentDir>/bin`, which comes first in the `PATH` of commands.
    pub agent_bin_dir: Option<PathBuf>,
    /// Path of the settings file for messages.
    pub settings_path: Option<PathBuf>,
    /// Environment variables about the session for the model's commands.
    pub session_variables: Vec<(&'static str, String)>,
    /// Variables that shell commands do not get (setting `env.hide`).
    pub hidden_variables: Vec<String>,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self {
            shell_path: None,
            command_prefix: None,
            auto_resize_images: true,
            agent_bin_dir: None,
            settings_path: None,
            session_variables: Vec::new(),
            hidden_variables: Vec::new(),
        }
    }
}

impl ToolOptions {
    /// Replaces the shell if an extension names one.
    pub fn with_shell(self, path: Option<PathBuf>) -> Self {
        match path {
            Some(path) => Self {
                shell_path: Some(path),
                // The path of the settings file is no help for this shell.
                settings_path: None,
                ..self
            },
            None => self,
        }
    }

    /// Returns the shell options for [`command::run::run_user_command`] and for the bash tool.
    pub fn shell(&self) -> ShellOptions {
        ShellOptions {
            path: self.shell_path.clone(),
            command_prefix: self.command_prefix.clone(),
            bin_dir: self.agent_bin_dir.clone(),
            settings_path: self.settings_path.clone(),
            env: None,
            variables: command::noninteractive::variables(),
            hidden_variables: self.hidden_variables.clone(),
        }
    }

    pub fn shell_of_model(&self) -> ShellOptions {
        let mut shell = self.shell();
        shell.variables.extend_from_slice(&self.session_variables);
        shell
    }
}

/// Makes all tools in [`NAMES`], with the working directory `cwd`.
pub fn builtin(cwd: PathBuf, options: ToolOptions) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read::ReadTool::new(cwd.clone(), options.auto_resize_images)),
        Arc::new(bash::BashTool::new(cwd.clone(), options.shell_of_model())),
        Arc::new(edit::EditTool::new(cwd.clone())),
        Arc::new(write::WriteTool::new(cwd.clone())),
        Arc::new(grep::GrepTool::new(cwd.clone())),
        Arc::new(find::FindTool::new(cwd.clone())),
        Arc::new(ls::LsTool::new(cwd)),
    ]
}

/// Runs file work on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::new(format!(
            "The tool broke off unexpectedly (a bug in pi): {error}"
        ))),
    }
}

/// Like [`blocking`], for work that is abandoned when the call is aborted. The work must check
/// the token regularly and end.
async fn abortable<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let token = cancel.clone();
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::aborted()),
        result = blocking(move || work(&token)) => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_there_in_order() {
        let tools = builtin("/".into(), ToolOptions::default());
        let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!(names, NAMES);
    }
}
