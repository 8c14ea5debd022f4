//! The built-in tools, and what a tool is. Knows nothing of who calls them.

pub mod bash;
pub mod diff;
pub mod edit;
pub mod find;
pub mod grep;
pub mod image;
pub mod ls;
pub mod mutation_queue;
pub mod operations;
pub mod paths;
pub mod process;
pub mod prompt_images;
pub mod read;
pub mod replace;
pub mod shell;
pub mod shell_command;
pub mod tool;
pub mod truncate;
pub mod validate;
pub mod write;

mod arguments;
mod coerce;
mod collation;
mod lossy;
mod notices;
pub(crate) mod os_error;
mod output;
mod patch;
mod replace_file;
#[cfg(test)]
mod testing;
mod unattended;
mod waiting;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;

use shell::ShellOptions;
use tokio_util::sync::CancellationToken;
use tool::{Tool, ToolError};

/// The names of all built-in tools.
pub const NAMES: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];
/// Names of tools that change files, built in or an extension's in their place.
pub const FILE_CHANGING: [&str; 2] = ["edit", "write"];
/// Those that a model gets unless somebody says otherwise.
pub const DEFAULT_ACTIVE: [&str; 4] = ["read", "bash", "edit", "write"];

#[derive(Clone, Debug)]
pub struct ToolOptions {
    /// `shellPath` of the settings.
    pub shell_path: Option<PathBuf>,
    /// `shellCommandPrefix` of the settings.
    pub command_prefix: Option<String>,
    /// `images.autoResize` of the settings.
    pub auto_resize_images: bool,
    /// `<agentDir>/bin`, which commands find first.
    pub agent_bin_dir: Option<PathBuf>,
    /// Named in messages about the settings.
    pub settings_path: Option<PathBuf>,
    /// What commands of the model find in their environment about the session.
    pub session_variables: Vec<(&'static str, String)>,
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
        }
    }
}

impl ToolOptions {
    /// With the shell that an extension names, if it names one.
    pub fn with_shell(self, path: Option<PathBuf>) -> Self {
        match path {
            Some(path) => Self {
                shell_path: Some(path),
                // Nobody has to correct anything there.
                settings_path: None,
                ..self
            },
            None => self,
        }
    }

    /// For [`shell_command::run_user_command`], and for the tool with what it adds.
    pub fn shell(&self) -> ShellOptions {
        ShellOptions {
            path: self.shell_path.clone(),
            command_prefix: self.command_prefix.clone(),
            bin_dir: self.agent_bin_dir.clone(),
            settings_path: self.settings_path.clone(),
            env: None,
            variables: unattended::variables(),
        }
    }

    pub fn shell_of_model(&self) -> ShellOptions {
        let mut shell = self.shell();
        shell.variables.extend_from_slice(&self.session_variables);
        shell
    }
}

/// All of [`NAMES`], working in `cwd`.
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

/// File work, off the threads that must never wait.
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

/// As [`blocking`], for work that may be left alone when the call is aborted.
/// It has to look at the token now and then, and end.
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
