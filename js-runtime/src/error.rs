//! The ways in which starting, loading and calling fail, and how an exception of
//! JavaScript is told to people.

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
    /// Names file, line and column where they are known.
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
    /// What the function threw; `plain` is what its author wrote, without the class and
    /// the causes. The stack is mapped to the sources and does not repeat the message.
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
        Stop::Damaged(damage) => damage.sentence().into(),
        Stop::Asked => "the program asked for it".into(),
        Stop::Died(death) => format!("its process {death}").into(),
        Stop::Unresponsive => "its process did not answer any more".into(),
    }
}

/// Of the errors inside an `AggregateError` so many are told.
const AGGREGATED: usize = 10;

/// How a call or a load failed on the JavaScript thread.
#[derive(Clone, Debug)]
pub(crate) struct Thrown {
    /// What was thrown, without where.
    pub message: String,
    /// The same as a JavaScript program has it: an error's message, and anything else as
    /// a string.
    pub plain: String,
    /// `path:line:column` of the first frame that is a file, rather of one that is in no
    /// package.
    pub place: Option<String>,
    pub stack: String,
}

impl Thrown {
    pub fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            plain: message.clone(),
            message,
            place: None,
            stack: String::new(),
        }
    }

    /// Message and place in one sentence.
    pub fn sentence(&self) -> String {
        match &self.place {
            Some(place) if !self.message.contains(place.as_str()) && !self.ends_with_place() => {
                format!("{} ({place})", self.message)
            }
            _ => self.message.clone(),
        }
    }

    /// A module that does not compile is not where the frames are, but where the message
    /// says (js/node/require.ts).
    fn ends_with_place(&self) -> bool {
        let Some(inner) = self.message.strip_suffix(')') else {
            return false;
        };
        // A stack that it quotes ends so, too.
        if self.message.lines().last().and_then(place_in).is_some() {
            return false;
        }
        let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
        let mut parts = inner.rsplitn(3, ':');
        is_number(parts.next()) && is_number(parts.next())
    }

    /// Everything, for faults that nobody can ask about.
    pub fn report(&self) -> String {
        if self.stack.is_empty() {
            return self.sentence();
        }
        format!("{}\n{}", self.message, self.stack)
    }
}

impl From<&JsError> for Thrown {
    fn from(error: &JsError) -> Self {
        let mut message = told(error).to_string();
        let mut stack = stack_of(error);
        let mut cause = error.cause.as_deref();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(error.exception_message.trim_start_matches("Uncaught "));
            let frames = stack_of(error);
            if !frames.is_empty() {
                stack = format!("{stack}\n  caused by\n{frames}");
            }
            cause = error.cause.as_deref();
        }
        let inner = error.aggregated.iter().flatten().take(AGGREGATED);
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
        let places: Vec<String> = files.chain(stack.lines().filter_map(place_in)).collect();
        // Who reads it can change what is theirs, not what is in a package.
        let own = places
            .iter()
            .find(|place| !place.contains("/node_modules/"));
        let place = own.or(places.first()).cloned();
        let plain = match &error.message {
            Some(message) if message.is_empty() && !inner.is_empty() => {
                let messages: Vec<&str> = inner.iter().map(|one| one.plain.as_str()).collect();
                messages.join("; ")
            }
            Some(message) => message.clone(),
            None => unquoted(&message),
        };
        if is_bare(error) {
            message.push_str(BARE);
        }
        Self {
            message: readable(&message),
            plain,
            place,
            stack,
        }
    }
}

/// What is added to what was thrown.
const BARE: &str =
    " was thrown, which is no error and has no line: write `throw new Error(\"...\")`";

/// Whether something else was thrown than an error.
fn is_bare(error: &JsError) -> bool {
    error.name.is_none() && error.message.is_none() && error.stack.is_none()
}

/// A text that was thrown is shown as JavaScript writes it, in one of three quotes.
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

/// A stack as JavaScript sees it, as people are shown it: paths instead of URLs, and
/// no frames of the runtime itself.
pub fn readable_stack(stack: &str) -> String {
    let own = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("at ") && line.contains("ext:")
    };
    let lines: Vec<&str> = stack.lines().filter(|line| !own(line)).collect();
    readable(&lines.join("\n"))
}

/// What was thrown, as V8 says it.
fn told(error: &JsError) -> &str {
    error
        .exception_message
        .trim_start_matches("Uncaught ")
        .trim_start_matches("(in promise) ")
}

/// The frames, one per line, without those of the runtime itself.
fn stack_of(error: &JsError) -> String {
    let Some(stack) = &error.stack else {
        return String::new();
    };
    // Somebody has put a text there, which need not have frames.
    if error.stack_is_custom && !stack.contains("\n    at ") {
        return readable(stack);
    }
    // A message may have lines that look like frames.
    let said = told(error);
    let frames: Vec<&str> = stack
        .strip_prefix(said)
        .unwrap_or(stack)
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("at "))
        .filter(|line| !line.contains("ext:"))
        .collect();
    readable(&frames.join("\n"))
}

/// The place of a frame that is in a file.
fn place_in(frame: &str) -> Option<String> {
    let frame = frame.trim_start().strip_prefix("at ")?;
    let place = match frame
        .strip_suffix(')')
        .and_then(|frame| frame.rsplit_once(" ("))
    {
        Some((_, place)) => place,
        None => frame.trim_start_matches("async "),
    };
    place.starts_with('/').then(|| place.to_owned())
}

/// Paths instead of URLs.
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

/// Removes the mark by which the loader tells copies of a module apart.
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
    fn marks_of_copies_are_not_shown() {
        assert_eq!(
            readable("at file:///a/b.ts?copy=12:3:4\nat file:///c.ts:1:2"),
            "at /a/b.ts:3:4\nat /c.ts:1:2"
        );
    }

    #[test]
    fn frames_of_the_runtime_are_not_shown() {
        let stack = "Error: ext: no\n    at f (file:///a.ts:1:2)\n    at ext:core/x.js:1:1\n    \
                     at async g (ext:js_runtime/bridge/ui.ts:3:4)";
        assert_eq!(
            readable_stack(stack),
            "Error: ext: no\n    at f (/a.ts:1:2)"
        );
    }

    #[test]
    fn the_place_of_a_frame_is_told_from_its_function() {
        for (frame, place) in [
            ("    at /a b/c.ts:1:2", Some("/a b/c.ts:1:2")),
            ("    at async /a.ts:1:2", Some("/a.ts:1:2")),
            ("    at f [as g] (/(a)/b.ts:1:2)", Some("/(a)/b.ts:1:2")),
            ("    at JSON.parse (<anonymous>)", None),
            ("    at node:fs:1:2", None),
            ("  caused by", None),
        ] {
            assert_eq!(place_in(frame).as_deref(), place, "{frame}");
        }
    }

    #[test]
    fn a_sentence_names_the_place_once() {
        let mut thrown = Thrown::new("Error: no");
        assert_eq!(thrown.sentence(), "Error: no");
        thrown.place = Some("/a.ts:1:2".into());
        assert_eq!(thrown.sentence(), "Error: no (/a.ts:1:2)");
        thrown.message = "Expected ';' at /a.ts:1:2".into();
        assert_eq!(thrown.sentence(), "Expected ';' at /a.ts:1:2");
    }
}
