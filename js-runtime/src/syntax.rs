//! Whether a module can be parsed, by the parser that loads it, without running any
//! of it.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use deno_ast::diagnostics::Diagnostic;
use deno_ast::{MediaType, ModuleSpecifier, ParseDiagnostic, ParseParams};

use crate::decorators;
use crate::parsing::{extent, too_deep, with_room};

/// For the stack that there is.
const SHALLOW: usize = 50;
const LIMIT: Duration = Duration::from_secs(20);

/// What is wrong with a module, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxProblem {
    /// It cannot be loaded.
    Fatal(String),
    /// The parser went on; what runs the module may not.
    Doubtful(String),
    /// Nobody knows: it is too much for the parser.
    Unchecked(String),
}

/// Parses the file at an absolute path. Needs no V8.
pub fn check_syntax(path: &Path) -> Result<(), SyntaxProblem> {
    let fatal = SyntaxProblem::Fatal;
    let text = fs::read(path).map_err(|error| fatal(format!("It cannot be read: {error}")))?;
    // What is not UTF-8 is loaded, too, with marks where it is not.
    let text = String::from_utf8_lossy(&text).into_owned();
    // It is no part of the first line, and the parser does not take it.
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if let Some(problem) = too_deep(&text) {
        return Err(SyntaxProblem::Unchecked(problem));
    }
    let specifier = ModuleSpecifier::from_file_path(path)
        .map_err(|()| fatal("Its path cannot be the address of a module".to_owned()))?;
    let length = text.len();
    let parse = move || {
        let media_type = MediaType::from_specifier(&specifier);
        let parsed = deno_ast::parse_program(ParseParams {
            specifier,
            text: text.into(),
            media_type,
            capture_tokens: false,
            scope_analysis: false,
            maybe_syntax: None,
        });
        let parsed = parsed.map_err(|error| SyntaxProblem::Fatal(in_words(&error)))?;
        match (decorators::misplaced(&parsed), parsed.diagnostics().first()) {
            (Some((line, column)), _) => Err(SyntaxProblem::Fatal(format!(
                "line {line}, column {column}: {}",
                decorators::MISPLACED
            ))),
            (None, Some(first)) => Err(SyntaxProblem::Doubtful(in_words(first))),
            (None, None) => Ok(()),
        }
    };
    let (done, parsed) = mpsc::channel();
    let parse = move || with_room(length, parse);
    let work = move || {
        // Nobody waits any more if it took too long.
        let _ = done.send(parse());
    };
    let thread = thread::Builder::new().spawn(work);
    thread.map_err(|error| fatal(format!("It could not be checked: {error}")))?;
    parsed.recv_timeout(LIMIT).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => {
                SyntaxProblem::Unchecked(format!("It is not parsed after {} s", LIMIT.as_secs()))
            }
            RecvTimeoutError::Disconnected => fatal("The parser gave up on it".to_owned()),
        })
    })
}

/// Whether a text is a script. One in a language of people hardly ever is.
pub fn is_javascript(text: &str) -> bool {
    let Ok(specifier) = ModuleSpecifier::parse("file:///eval.cjs") else {
        return false;
    };
    extent(text).depth <= SHALLOW
        && deno_ast::parse_script(ParseParams {
            specifier,
            text: text.into(),
            media_type: MediaType::Cjs,
            capture_tokens: false,
            scope_analysis: false,
            maybe_syntax: None,
        })
        .is_ok_and(|parsed| parsed.diagnostics().is_empty())
}

fn in_words(error: &ParseDiagnostic) -> String {
    let place = error.display_position();
    format!(
        "line {}, column {}: {}",
        place.line_number,
        place.column_number,
        error.message()
    )
}
