//! Which shell runs commands, and what it finds in its environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::tool::ToolError;

/// How commands are run, as the settings say.
#[derive(Clone, Debug, Default)]
pub struct ShellOptions {
    /// `shellPath` of the settings, or of an extension.
    pub path: Option<PathBuf>,
    /// `shellCommandPrefix`: a line put before every command.
    pub command_prefix: Option<String>,
    /// Searched before the rest of `PATH`.
    pub bin_dir: Option<PathBuf>,
    /// Named when `path` is wrong; `None` if it does not come from there.
    pub settings_path: Option<PathBuf>,
    /// Instead of the environment of the program; `PATH` is then what it says.
    pub env: Option<HashMap<String, String>>,
    /// Beside the environment of the program.
    pub variables: Vec<(&'static str, String)>,
}

impl ShellOptions {
    /// The program that takes `-c COMMAND`.
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

    /// `PATH` for commands; `None` leaves it as it is.
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
    // Fails only for a folder with a separator in its name, which no PATH can
    // hold.
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
