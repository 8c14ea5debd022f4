//! The shell that runs commands, and its environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::tool::ToolError;

/// Options for running commands.
#[derive(Clone, Debug, Default)]
pub struct ShellOptions {
    /// Setting `shellPath`, or the shell of an extension.
    pub path: Option<PathBuf>,
    /// Setting `shellCommandPrefix`: a line before every command.
    pub command_prefix: Option<String>,
    /// Searched before the rest of `PATH`.
    pub bin_dir: Option<PathBuf>,
    /// Path of the settings file for errors about `path`; `None` if `path` does not come from the
    /// settings.
    pub settings_path: Option<PathBuf>,
    /// Replaces the environment of the program, including `PATH`.
    pub env: Option<HashMap<String, String>>,
    /// Added to the environment of the program.
    pub variables: Vec<(&'static str, String)>,
    /// Removed from the environment of the program.
    pub hidden_variables: Vec<String>,
}

impl ShellOptions {
    /// Returns the program that accepts `-c COMMAND`.
    pub fn program(&self) -> Result<PathBuf, ToolError> {
        let Some(path) = &self.path else {
            static FOUND: OnceLock<PathBuf> = OnceLock::new();
            return Ok(FOUND.get_or_init(discover).clone());
        };
        if path.exists() {
            return Ok(path.clone());
        }
        let mut message = format!("Custom shell path not found: {}", path.display());
        if let Some(settings) = &self.settings_path {
            message += &format!("\nPlease update shellPath in {}", settings.display());
        }
        Err(ToolError::new(message))
    }

    pub(crate) fn script(&self, command: &str) -> String {
        match &self.command_prefix {
            Some(prefix) if !prefix.is_empty() => format!("{prefix}\n{command}"),
            _ => command.to_owned(),
        }
    }

    /// Returns the `PATH` of commands; `None` leaves it unchanged.
    pub fn search_path(&self) -> Option<OsString> {
        with_folder_first(self.bin_dir.as_deref()?, std::env::var_os("PATH"))
    }
}

fn with_folder_first(folder: &Path, path: Option<OsString>) -> Option<OsString> {
    let path = path.unwrap_or_default();
    let rest: Vec<PathBuf> = std::env::split_paths(&path)
        .filter(|entry| !entry.as_os_str().is_empty())
        .collect();
    if rest.iter().any(|entry| entry == folder) {
        return None;
    }
    // This fails only for a folder with a separator in its name, which `PATH` cannot contain.
    std::env::join_paths(std::iter::once(folder.to_owned()).chain(rest)).ok()
}

#[cfg(unix)]
fn discover() -> PathBuf {
    let usual = Path::new("/bin/bash");
    if usual.exists() {
        return usual.to_owned();
    }
    on_path("bash").unwrap_or_else(|| "sh".into())
}

#[cfg(not(unix))]
fn discover() -> PathBuf {
    ["ProgramFiles", "ProgramFiles(x86)"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(|folder| {
            PathBuf::from(folder)
                .join("Git")
                .join("bin")
                .join("bash.exe")
        })
        .find(|bash| bash.exists())
        .or_else(|| on_path("bash.exe"))
        .unwrap_or_else(|| "bash.exe".into())
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_custom_shell_must_exist() {
        let options = ShellOptions {
            path: Some("/no/such/shell".into()),
            settings_path: Some("/home/me/.pi/agent/settings.json".into()),
            ..ShellOptions::default()
        };
        assert_eq!(
            options.program(),
            Err(ToolError::new(
                "Custom shell path not found: /no/such/shell\nPlease update shellPath in \
                 /home/me/.pi/agent/settings.json"
            ))
        );
        let of_extension = ShellOptions {
            settings_path: None,
            ..options
        };
        assert_eq!(
            of_extension.program(),
            Err(ToolError::new(
                "Custom shell path not found: /no/such/shell"
            ))
        );
    }

    #[cfg(unix)]
    #[test]
    fn the_bin_folder_comes_first_and_once() {
        let with = |path: &str| with_folder_first(Path::new("/agent/bin"), Some(path.into()));
        assert_eq!(
            with("/usr/bin:/bin"),
            Some("/agent/bin:/usr/bin:/bin".into())
        );
        assert_eq!(with(""), Some("/agent/bin".into()));
        assert_eq!(with("/usr/bin:/agent/bin"), None);
    }

    #[test]
    fn the_prefix_is_a_line_of_its_own() {
        let options = ShellOptions {
            command_prefix: Some("shopt -s expand_aliases".to_owned()),
            ..ShellOptions::default()
        };
        assert_eq!(options.script("ll"), "shopt -s expand_aliases\nll");
        assert_eq!(ShellOptions::default().script("ll"), "ll");
    }
}
