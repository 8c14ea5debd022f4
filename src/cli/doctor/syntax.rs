//! Whether a module can be parsed, by the parser that loads it.

use std::fs;
use std::path::Path;
use std::thread;

use deno_ast::diagnostics::Diagnostic;
use deno_ast::{MediaType, ModuleSpecifier, ParseDiagnostic, ParseParams};

/// Deeply nested code needs a deep stack; that of a main thread may be small.
const STACK: usize = 64 << 20;

/// What is wrong and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It cannot be loaded.
    Fatal(String),
    /// The parser went on; what runs the module may not.
    Doubtful(String),
}

pub(super) fn check(path: &Path) -> Result<(), Problem> {
    let fatal = Problem::Fatal;
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
        let parsed = parsed.map_err(|error| Problem::Fatal(in_words(&error)))?;
        match parsed.diagnostics().first() {
            Some(first) => Err(Problem::Doubtful(in_words(first))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_all_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let check_text = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            check(&path)
        };
        assert_eq!(
            check_text("a.ts", "const x: number = 1; export default () => x;"),
            Ok(())
        );
        assert_eq!(check_text("a.js", "module.exports = () => {};"), Ok(()));
        let error = check_text("b.ts", "export default (\n  => {};").unwrap_err();
        let Problem::Fatal(text) = error else {
            panic!("{error:?}")
        };
        assert!(text.starts_with("line 2, column 3: "), "{text}");
        let doubtful = check_text("c.js", "export {}; const x = 010;");
        assert!(
            matches!(doubtful, Err(Problem::Doubtful(_))),
            "{doubtful:?}"
        );
        assert!(check(&dir.path().join("gone.ts")).is_err());
    }

    #[test]
    fn nesting_without_end_is_survived() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep.ts");
        fs::write(&path, format!("export default {}", "[".repeat(5000))).unwrap();
        assert!(check(&path).is_err());
    }
}
