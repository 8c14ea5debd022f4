//! The import statements of a text that lead to modules of ours, found without parsing it:
//! bundles are megabytes, and nearly always what they import is there.

use js_runtime_ext::virtual_module;

/// The longest statement that is looked at, in bytes.
const LONGEST: usize = 4096;

/// These statements, a line each; `None` if it is not clear where one begins. There may be
/// more than the text has: it may speak of some in a comment.
pub(super) fn about_ours(source: &str) -> Option<String> {
    let mut found = String::new();
    for (at, from) in source.match_indices("from") {
        let Some((specifier, end)) = quoted(source, at + from.len()) else {
            continue;
        };
        if virtual_module(specifier).is_none() {
            continue;
        }
        let before = &source[source.floor_char_boundary(at.saturating_sub(LONGEST))..at];
        let begin = before.rfind("import").max(before.rfind("export"))?;
        found.push_str(&before[begin..]);
        found.push_str(&source[at..end]);
        found.push('\n');
    }
    Some(found)
}

/// The string that follows, and where it ends.
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
    use super::about_ours;

    #[test]
    fn statements_are_found_wherever_they_stand() {
        let source = "\
import a, {b} from \"@mariozechner/pi-tui\";const x=`from \"é\"`;\n\
import{c}from'@earendil-works/pi-ai';import d from \"zod\"; // from nowhere\n\
export {\n  e as f,\n} from '@mariozechner/pi-coding-agent'\n\
import * as g from \"typebox\";from\"";
        let found = about_ours(source).unwrap();
        let expected = [
            "import a, {b} from \"@mariozechner/pi-tui\"",
            "import{c}from'@earendil-works/pi-ai'",
            "export {\n  e as f,\n} from '@mariozechner/pi-coding-agent'",
            "import * as g from \"typebox\"",
            "",
        ];
        assert_eq!(found, expected.join("\n"));
        assert_eq!(about_ours("from '@mariozechner/pi-tui'"), None);
        assert_eq!(about_ours("import x from './own.js';").unwrap(), "");
    }
}
