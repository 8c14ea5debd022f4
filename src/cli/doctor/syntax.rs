//! Whether a module can be parsed, by the parser that loads it.

use std::fs;
use std::path::Path;
use std::thread;

use deno_ast::diagnostics::Diagnostic;
use deno_ast::{MediaType, ModuleSpecifier, ParseParams};

/// Deeply nested code needs a deep stack; that of a main thread may be small.
const STACK: usize = 64 << 20;

/// The error says what is wrong and where.
pub(super) fn check(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| format!("It cannot be read: {error}"))?;
    let specifier = ModuleSpecifier::from_file_path(path)
        .map_err(|()| "Its path cannot be the address of a module".to_owned())?;
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
        parsed.map(drop).map_err(|error| {
            let place = error.display_position();
            format!(
                "line {}, column {}: {}",
                place.line_number,
                place.column_number,
                error.message()
            )
        })
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(parse);
    let thread = thread.map_err(|error| format!("It could not be checked: {error}"))?;
    thread
        .join()
        .unwrap_or_else(|_| Err("The parser gave up on it".to_owned()))
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
        assert!(error.starts_with("line 2, column 3: "), "{error}");
        assert!(check_text("c.js", "const x: number = 1;").is_err());
        assert!(check(&dir.path().join("gone.ts")).is_err());
    }
}
