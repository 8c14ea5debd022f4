//! Whether a module can be parsed, by the parser that loads it.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use deno_ast::diagnostics::Diagnostic;
use deno_ast::{MediaType, ModuleSpecifier, ParseDiagnostic, ParseParams};

/// Deeply nested code needs a deep stack; that of a main thread may be small.
const STACK: usize = 64 << 20;
/// Nobody writes what is nested deeper, and the parser would take for ever.
const DEEPEST: usize = 2000;
const LIMIT: Duration = Duration::from_secs(20);

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
    if depth(&text) > DEEPEST {
        return Err(Problem::Doubtful(
            "It is nested too deeply to be checked".to_owned(),
        ));
    }
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
    let (done, parsed) = mpsc::channel();
    let work = move || {
        // Nobody waits any more if it took too long.
        let _ = done.send(parse());
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(work);
    thread.map_err(|error| fatal(format!("It could not be checked: {error}")))?;
    parsed.recv_timeout(LIMIT).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => {
                Problem::Doubtful(format!("It is not parsed after {} s", LIMIT.as_secs()))
            }
            RecvTimeoutError::Disconnected => fatal("The parser gave up on it".to_owned()),
        })
    })
}

/// How deep brackets are nested; those in texts and comments count, too, but they
/// are closed as often as they are opened.
fn depth(text: &str) -> usize {
    let mut now = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => now += 1,
            b')' | b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
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
        for depth in [DEEPEST, 300_000] {
            fs::write(&path, "[".repeat(depth)).unwrap();
            assert!(check(&path).is_err());
        }
    }
}
