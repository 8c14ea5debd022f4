//! Problems that were found while resources were looked for or read. Loading goes on without
//! the resource; the caller decides how to show the problem.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Warning,
    /// A resource that the user named is missing or broken.
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub path: PathBuf,
    /// A sentence that names the path.
    pub message: String,
}

impl Diagnostic {
    pub fn warning(path: &Path, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            path: path.to_owned(),
            message: message.into(),
        }
    }

    pub fn error(path: &Path, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            ..Self::warning(path, message)
        }
    }

    pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        Self::warning(path, format!("Could not read {}: {error}", path.display()))
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
