//! Errors of starting, loading and calling, and the conversion of JavaScript exceptions to text for
//! people.

use std::borrow::Cow;
use std::time::Duration;

use deno_core::error::{CoreError, CoreErrorKind, JsError};
use deno_core::url::Url;
use deno_path_util::url_to_file_path;
use js_runtime_ext::Stop;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot start a thread for JavaScript: {0}")]
    Thread(#[source] std::io::Error),
    #[error("cannot set up the standard streams of JavaScript: {0}")]
    Stdio(#[source] std::io::Error),
    #[error("the JavaScript runtime does not start: {0}")]
    Bootstrap(String),
    #[error("cannot start a process for JavaScript: {0}")]
    Process(#[source] std::io::Error),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The message names file, line and column where they are known.
    #[error("{message}")]
    Failed { message: String, stack: String },
    #[error("did not finish loading within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("JavaScript was stopped while it was loading: {}", reason(*.0))]
    Stopped(Stop),
    #[error("the JavaScript thread is gone")]
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The function threw. `plain` is the message that its author wrote, without the class and the
    /// causes. The stack is mapped to the sources and does not repeat the message.
    #[error("{message}")]
    Thrown {
        message: String,
        plain: String,
        stack: String,
    },
    #[error("JavaScript was stopped: {}", reason(*.0))]
    Stopped(Stop),
    #[error("the JavaScript thread is gone")]
    Gone,
}

fn reason(stop: Stop) -> Cow<'static, str> {
    match stop {
        Stop::Deadline => "it ran for too long without a pause".into(),
        Stop::OutOfMemory => "it used too much memory".into(),
        Stop::OutOfDescriptors => "it opened too many files or connections".into(),
        Stop::Tampered(damage) => damage.sentence().into(),
        Stop::Requested => "the program asked for it".into(),
        Stop::Exited(death) => format!("its process {death}").into(),
        Stop::Unresponsive => "its process did not answer any more".into(),
    }
}

/// Maximum number of errors inside an `AggregateError` that are shown.
const MAX_AGGREGATED: usize = 10;

/// How a call or a load failed on the JavaScript thread.
#[derive(Clone, Debug)]
pub(crate) struct Thrown {
    /// Message of the exception, without its position.
    pub message: String,
    /// Message as a JavaScript program sees it: the message of an error, or another value as a
    /// string.
    pub plain: String,
    /// `path:line:column` of the first frame in a file outside packages, or else of the first frame
    /// in a file.
    pub position: Option<String>,
    pub stack: String,
}

impl Thrown {
    pub fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            plain: message.clone(),
            message,
            position: None,
            stack: String::new(),
        }
    }

    /// Returns message and position in one sentence.
    pub fn sentence(&self) -> String {
        match &self.position {
            Some(position)
                if !self.message.contains(position.as_str()) && !self.ends_with_position() =>
            {
                format!("{} ({position})", self.message)
            }
            _ => self.message.clone(),
        }
    }

    /// Returns true if the message ends with a position. A module that does not compile has its
    /// position in the message, not in the frames (js/node/require.ts).
    fn ends_with_position(&self) -> bool {
        let Some(inner) = self.message.strip_suffix(')') else {
            return false;
        };
        // A message that ends with a quoted stack ends with a position, too.
        if self.message.lines().last().and_then(position_in).is_some() {
            return false;
        }
        let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
        let mut parts = inner.rsplitn(3, ':');
        is_number(parts.next()) && is_number(parts.next())
    }

    /// Returns message and stack, for faults outside any call.
    pub fn full_report(&self) -> String {
        if self.stack.is_empty() {
            return self.sentence();
        }
        format!("{}\n{}", self.message, self.stack)
    }
}

impl From<&JsError> for Thrown {
    fn from(error: &JsError) -> Self {
        let mut message = thrown_message(error).to_string();
        let mut stack = frames_of(error);
        let mut cause = error.cause.as_deref();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(error.exception_message.trim_start_matches("Uncaught "));
            let frames = frames_of(error);
            if !frames.is_empty() {
                stack = format!("{stack}\n  caused by\n{frames}");
            }
            cause = error.cause.as_deref();
        }
        let inner = error.aggregated.iter().flatten().take(MAX_AGGREGATED);
        let inner: Vec<Self> = inner.map(Self::from).collect();
        for (index, one) in inner.iter().enumerate() {
            let before = if index == 0 { ": " } else { "; " };
            message.push_str(before);
            message.push_str(&one.message);
            if !one.stack.is_empty() {
                stack = format!("{stack}\n  one of its errors\n{}", one.stack);
            }
        }
        let files = error.frames.iter().filter_map(|frame| {
            let file = Url::parse(frame.file_name.as_deref()?).ok()?;
            let path = url_to_file_path(&file).ok()?;
            Some(format!(
                "{}:{}:{}",
                path.display(),
                frame.line_number?,
                frame.column_number?
            ))
        });
        let positions: Vec<String> = files.chain(stack.lines().filter_map(position_in)).collect();
        // The author of an extension can change its own files, not those of a package.
        let own = positions
            .iter()
            .find(|position| !position.contains("/node_modules/"));
        let position = own.or(positions.first()).cloned();
        let plain = match &error.message {
            Some(message) if message.is_empty() && !inner.is_empty() => {
                let messages: Vec<&str> = inner.iter().map(|one| one.plain.as_str()).collect();
                messages.join("; ")
            }
            Some(message) => message.clone(),
            None => unquoted(&message),
        };
        if is_not_an_error(error) {
            message.push_str(NOT_AN_ERROR);
        }
        Self {
            message: readable(&message),
            plain,
            position,
            stack,
        }
    }
}

/// Suffix of the message when the thrown value is not an error.
const NOT_AN_ERROR: &str =
    " was thrown, which is no error and has no line: write `throw new Error(\"...\")`";

/// Returns true if the thrown value is not an error.
fn is_not_an_error(error: &JsError) -> bool {
    error.name.is_none() && error.message.is_none() && error.stack.is_none()
}

/// Returns the text of a thrown string. V8 shows it as JavaScript writes it, in one of three kinds
/// of quotes.
fn unquoted(shown: &str) -> String {
    let within = |quote: char| shown.strip_prefix(quote)?.strip_suffix(quote);
    let json = match within('\'').or_else(|| within('`')) {
        Some(text) => format!("\"{}\"", text.replace('"', "\\\"")),
        None => shown.to_owned(),
    };
    serde_json::from_str(&json).unwrap_or_else(|_| shown.to_owned())
}

impl From<&CoreError> for Thrown {
    fn from(error: &CoreError) -> Self {
        Self::from(error.as_kind())
    }
}

impl From<&CoreErrorKind> for Thrown {
    fn from(error: &CoreErrorKind) -> Self {
        match error {
            CoreErrorKind::Js(error) => Self::from(&**error),
            CoreErrorKind::CouldNotExecute { error, .. } => Self::from(&**error),
            error => Self::new(readable(&error.to_string())),
        }
    }
}

/// Converts a stack of JavaScript for people: paths instead of URLs, and no frames of the runtime
/// itself.
pub fn readable_stack(stack: &str) -> String {
    let own = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("at ") && line.contains("ext:")
    };
    let lines: Vec<&str> = stack.lines().filter(|line| !own(line)).collect();
    readable(&lines.join("\n"))
}

/// Returns the message of the exception as V8 formats it.
fn thrown_message(error: &JsError) -> &str {
    error
        .exception_message
        .trim_start_matches("Uncaught ")
        .trim_start_matches("(in promise) ")
}

/// Returns the frames, one per line, without those of the runtime itself.
fn frames_of(error: &JsError) -> String {
    let Some(stack) = &error.stack else {
        return String::new();
    };
    // Code has replaced the stack by a text, which need not have frames.
    if error.stack_is_custom && !stack.contains("\n    at ") {
        return readable(stack);
    }
    // The message may have lines that look like frames.
    let message = thrown_message(error);
    let frames: Vec<&str> = stack
        .strip_prefix(message)
        .unwrap_or(stack)
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("at "))
        .filter(|line| !line.contains("ext:"))
        .collect();
    readable(&frames.join("\n"))
}

/// Returns the position of a frame that is in a file.
fn position_in(frame: &str) -> Option<String> {
    let frame = frame.trim_start().strip_prefix("at ")?;
    let position = match frame
        .strip_suffix(')')
        .and_then(|frame| frame.rsplit_once(" ("))
    {
        Some((_, position)) => position,
        None => frame.trim_start_matches("async "),
    };
    position.starts_with('/').then(|| position.to_owned())
}

/// Replaces URLs by paths.
fn readable(text: &str) -> String {
    let text = text.replace("file://", "").replace(
        "Identifier '.default' has already been declared",
        "A module has one default export, and this is a second",
    );
    match text.contains("?copy=") {
        true => strip_copies(&text),
        false => text,
    }
}

/// Removes the query by which the loader distinguishes copies of a module.
fn strip_copies(text: &str) -> String {
    let mut parts = text.split("?copy=");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_queries_are_removed() {
        assert_eq!(
            readable("at file:///a/b.ts?copy=12:3:4\nat file:///c.ts:1:2"),
            "at /a/b.ts:3:4\nat /c.ts:1:2"
        );
    }

    #[test]
    fn runtime_frames_are_removed() {
        let stack = "Error: ext: no\n    at f (file:///a.ts:1:2)\n    at ext:core/x.js:1:1\n    \
                     at async g (ext:js_runtime/bridge/ui.ts:3:4)";
        assert_eq!(
            readable_stack(stack),
            "Error: ext: no\n    at f (/a.ts:1:2)"
        );
    }

    #[test]
    fn position_is_split_from_the_function_name() {
        for (frame, position) in [
            ("    at /a b/c.ts:1:2", Some("/a b/c.ts:1:2")),
            ("    at async /a.ts:1:2", Some("/a.ts:1:2")),
            ("    at f [as g] (/(a)/b.ts:1:2)", Some("/(a)/b.ts:1:2")),
            ("    at JSON.parse (<anonymous>)", None),
            ("    at node:fs:1:2", None),
            ("  caused by", None),
        ] {
            assert_eq!(position_in(frame).as_deref(), position, "{frame}");
        }
    }

    #[test]
    fn sentence_names_the_position_once() {
        let mut thrown = Thrown::new("Error: no");
        assert_eq!(thrown.sentence(), "Error: no");
        thrown.position = Some("/a.ts:1:2".into());
        assert_eq!(thrown.sentence(), "Error: no (/a.ts:1:2)");
        thrown.message = "Expected ';' at /a.ts:1:2".into();
        assert_eq!(thrown.sentence(), "Expected ';' at /a.ts:1:2");
    }
}
