//! Finds the import statements that lead to pi's modules without parsing: bundles are megabytes,
//! and nearly always their imports exist.

use js_runtime_ext::virtual_module;

/// Maximum length of a statement in bytes.
const MAX_STATEMENT_BYTES: usize = 4096;

/// Returns these statements, one per line; `None` if the start of one is not clear. Statements in
/// comments are returned as well.
pub(in crate::loader) fn virtual_imports(source: &str) -> Option<String> {
    let mut found = String::new();
    for (at, from) in source.match_indices("from") {
        let Some((specifier, end)) = quoted(source, at + from.len()) else {
            continue;
        };
        if virtual_module(specifier).is_none() {
            continue;
        }
        let before =
            &source[source.floor_char_boundary(at.saturating_sub(MAX_STATEMENT_BYTES))..at];
        let begin = before.rfind("import").max(before.rfind("export"))?;
        found.push_str(&before[begin..]);
        found.push_str(&source[at..end]);
        found.push('\n');
    }
    Some(found)
}

/// Returns the string that follows, and its end.
fn quoted(source: &str, at: usize) -> Option<(&str, usize)> {
    let rest = source[at..].trim_start();
    let begin = source.len() - rest.len() + 1;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let length = source[begin..].find([quote, '\n'])?;
    let end = begin + length;
    Some((&source[begin..end], end + 1))
}

#[cfg(test)]
mod tests {
    use super::virtual_imports;

    #[test]
    fn statements_are_found_anywhere() {
        let source = "\
import a, {b} from \"@mariozechner/pi-tui\";const x=`from \"é\"`;\n\
import{c}from'@earendil-works/pi-ai';import d from \"zod\"; // from nowhere\n\
export {\n  e as f,\n} from '@mariozechner/pi-coding-agent'\n\
import * as g from \"typebox\";from\"";
        let found = virtual_imports(source).unwrap();
        let expected = [
            "import a, {b} from \"@mariozechner/pi-tui\"",
            "import{c}from'@earendil-works/pi-ai'",
            "export {\n  e as f,\n} from '@mariozechner/pi-coding-agent'",
            "import * as g from \"typebox\"",
            "",
        ];
        assert_eq!(found, expected.join("\n"));
        assert_eq!(virtual_imports("from '@mariozechner/pi-tui'"), None);
        assert_eq!(virtual_imports("import x from './own.js';").unwrap(), "");
    }
}
