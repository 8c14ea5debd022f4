//! Whether a module can be parsed, by the parser that loads it, without running any
//! of it.

use std::fs;
use std::path::Path;
use std::thread;

use deno_ast::diagnostics::Diagnostic;
use deno_ast::{MediaType, ModuleSpecifier, ParseDiagnostic, ParseParams};

/// Deeply nested code needs a deep stack; that of a main thread may be small.
const STACK: usize = 64 << 20;

/// What is wrong with a module, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxProblem {
    /// It cannot be loaded.
    Fatal(String),
    /// The parser went on; what runs the module may not.
    Doubtful(String),
}

/// Parses the file at an absolute path. Needs no V8.
pub fn check_syntax(path: &Path) -> Result<(), SyntaxProblem> {
    let fatal = SyntaxProblem::Fatal;
    let text =
        fs::read_to_string(path).map_err(|error| fatal(format!("It cannot be read: {error}")))?;
    let specifier = ModuleSpecifier::from_file_path(path)
        .map_err(|()| fatal("Its path cannot be the address of a module".to_owned()))?;
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
        match parsed.diagnostics().first() {
            Some(first) => Err(SyntaxProblem::Doubtful(in_words(first))),
            None => Ok(()),
        }
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(parse);
    let thread = thread.map_err(|error| fatal(format!("It could not be checked: {error}")))?;
    thread
        .join()
        .unwrap_or_else(|_| Err(fatal("The parser gave up on it".to_owned())))
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
