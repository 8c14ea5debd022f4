//! Why an extension did not load: a message for the user, and the stack of the thrown
//! value.

use std::fmt;

use js_runtime::LoadError;
use serde::{Serialize, Serializer};

use crate::diagnostics::error_context::find_location;
use pi_agent::event::{ExtensionError, Location};

/// Why an extension did not load that the user did not wait for.
pub const ABORTED_LOAD: &str = "the user aborted the load, which had not finished";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadFailure {
    /// The message, with the position if it is known.
    text: String,
    /// The stack frames; empty if nothing was thrown.
    frames: String,
}

impl LoadFailure {
    /// Returns whether the file is no extension, but a module that others may import.
    pub fn lacks_factory(&self) -> bool {
        // The text of `activate` in js/bridge/calls.ts.
        self.text
            .contains("Extension does not export a valid factory function")
    }

    /// Makes the error to report.
    pub fn to_error(&self, path: impl Into<String>) -> ExtensionError {
        let Self { text, frames } = self;
        let place = find_location(frames);
        let shown =
            |Location { file, line, column }: &Location| format!(" ({file}:{line}:{column})");
        let message = place
            .as_ref()
            .and_then(|place| text.strip_suffix(&shown(place)));
        let stack = format!("{}\n{frames}", message.unwrap_or(text));
        let stack = Some(stack).filter(|_| !frames.is_empty());
        let mut error = ExtensionError::from_thrown(path, "load", text.clone(), stack);
        // A syntax error's position is in the text, not where the module was imported.
        error.details.location = match message {
            Some(_) => place,
            None => find_location(text).or(place),
        };
        error
    }
}

impl From<String> for LoadFailure {
    fn from(text: String) -> Self {
        let frames = String::new();
        Self { text, frames }
    }
}

impl From<LoadError> for LoadFailure {
    fn from(error: LoadError) -> Self {
        let text = error.to_string();
        let frames = match error {
            LoadError::Failed { stack, .. } => stack,
            LoadError::TimedOut(_) | LoadError::Stopped(_) | LoadError::Gone => String::new(),
        };
        Self { text, frames }
    }
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Serialize for LoadFailure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
