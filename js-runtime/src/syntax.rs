//! Checks whether a module can be parsed, with the parser of the loader and without running it.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use deno_ast::diagnostics::Diagnostic;
use deno_ast::{MediaType, ModuleSpecifier, ParseDiagnostic, ParseParams};

use crate::loader::transpile::decorators;
use crate::loader::transpile::parsing::{complexity, too_deep, with_stack};

/// Maximum nesting that fits into the stack of any thread.
const MAX_SYNTAX_DEPTH: usize = 50;
const PARSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Problem of a module, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxProblem {
    /// The module cannot be loaded.
    Fatal(String),
    /// The parser continued after an error; the module may not run.
    Doubtful(String),
    /// The module is too complex or takes too long to parse.
    Unchecked(String),
}

/// Parses the file at an absolute path, without V8.
pub fn check_syntax(path: &Path) -> Result<(), SyntaxProblem> {
    let fatal = SyntaxProblem::Fatal;
    let text = fs::read(path).map_err(|error| fatal(format!("It cannot be read: {error}")))?;
    // The loader also accepts files that are not UTF-8 and replaces the invalid bytes.
    let text = String::from_utf8_lossy(&text).into_owned();
    // The byte order mark is not part of the first line, and the parser rejects it.
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
                decorators::MISPLACED_DECORATOR
            ))),
            (None, Some(first)) => Err(SyntaxProblem::Doubtful(in_words(first))),
            (None, None) => Ok(()),
        }
    };
    let (done, parsed) = mpsc::channel();
    let parse = move || with_stack(length, parse);
    let work = move || {
        // The receiver is gone if parsing took too long.
        let _ = done.send(parse());
    };
    let thread = thread::Builder::new().spawn(work);
    thread.map_err(|error| fatal(format!("It could not be checked: {error}")))?;
    parsed.recv_timeout(PARSE_TIMEOUT).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => SyntaxProblem::Unchecked(format!(
                "It is not parsed after {} s",
                PARSE_TIMEOUT.as_secs()
            )),
            RecvTimeoutError::Disconnected => fatal("The parser gave up on it".to_owned()),
        })
    })
}

/// Returns true if `text` is a script. Prose hardly ever is one.
pub fn is_javascript(text: &str) -> bool {
    let Ok(specifier) = ModuleSpecifier::parse("file:///eval.cjs") else {
        return false;
    };
    complexity(text).depth <= MAX_SYNTAX_DEPTH
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
    let position = error.display_position();
    format!(
        "line {}, column {}: {}",
        position.line_number,
        position.column_number,
        error.message()
    )
}
