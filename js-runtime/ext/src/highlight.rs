//! Splits source code into spans of one kind each: keyword, string, comment. The theme decides the
//! colour of a kind.

use std::sync::LazyLock;

use deno_core::{op2, serde_json};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// The syntaxes of bat, each of which is unpacked on first use.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_no_newlines);

/// Maximum size of highlighted code. More would block the terminal, and is not read.
const MAX_BYTES: usize = 512 * 1024;
/// Maximum length of a highlighted line. Longer lines are data.
const MAX_LINE: usize = 4096;

/// Kinds by the start of the scope; the first match applies. Names are those of highlight.js
/// themes; the empty kind is plain text.
const KINDS: &[(&str, &str)] = &[
    ("meta.interpolation", ""),
    ("meta.template.expression", ""),
    ("markup.inserted", "addition"),
    ("markup.deleted", "deletion"),
    ("comment.block.documentation.python", "string"),
    ("comment", "comment"),
    ("string", "string"),
    ("constant.character", "string"),
    ("constant.numeric", "number"),
    ("constant.language", "literal"),
    ("support.constant", "built_in"),
    ("entity.name.function", "title"),
    ("entity.name.class", "title"),
    ("entity.name.struct", "title"),
    ("entity.name.enum", "title"),
    ("entity.name.trait", "title"),
    ("entity.name.interface", "title"),
    ("entity.name.type.class", "title"),
    ("entity.name.type.interface", "title"),
    ("entity.name.type.alias", "title"),
    ("entity.name.type.enum", "title"),
    ("entity.name.type", "type"),
    ("entity.name.tag.yaml", "attr"),
    ("entity.other.attribute-name", "attr"),
    ("support.type.property-name", "attr"),
    ("support.variable", ""),
    ("support", "built_in"),
    ("storage", "keyword"),
    // Punctuation is plain; words among the operators are keywords.
    ("keyword.operator", ""),
    ("keyword", "keyword"),
    ("variable.language.python", ""),
    ("variable.language", "built_in"),
    ("variable.parameter.option", ""),
    ("variable.parameter", "params"),
    ("variable", ""),
];

/// Scope of a string that is a key.
static KEY: LazyLock<Option<Scope>> = LazyLock::new(|| Scope::new("meta.mapping.key").ok());
static OPERATOR: LazyLock<Option<Scope>> = LazyLock::new(|| Scope::new("keyword.operator").ok());

static SCOPES: LazyLock<Vec<(Scope, &str)>> = LazyLock::new(|| {
    let kind =
        |(scope, kind): &(&'static str, &'static str)| Some((Scope::new(scope).ok()?, *kind));
    KINDS.iter().filter_map(kind).collect()
});

/// A part of a line: its kind and its text.
pub type Span = (&'static str, String);

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language.to_ascii_lowercase();
    // Names that people write behind a fence and no syntax lists.
    let name = match name.as_str() {
        "typescript" | "mts" | "cts" => "ts",
        "javascript" | "mjs" | "cjs" | "jsx" | "node" => "js",
        "golang" => "go",
        "shell" | "console" | "shellsession" => "sh",
        "c++" | "h++" => "cpp",
        "csharp" | "c#" => "cs",
        "objectivec" | "objective-c" | "objc" => "m",
        "plaintext" | "text" => "txt",
        "jsonc" | "json5" => "json",
        "docker" => "dockerfile",
        "patch" => "diff",
        other => other,
    };
    SYNTAXES
        .find_syntax_by_token(name)
        .filter(|found| found.name != "Plain Text")
}

pub fn is_known(language: &str) -> bool {
    syntax(language).is_some()
}

/// Returns the lines of `code`, or `None` if the language is not known.
pub fn highlight(code: &str, language: &str) -> Option<Vec<Vec<Span>>> {
    let syntax = syntax(language)?;
    let mut state = ParseState::new(syntax);
    let mut scopes = ScopeStack::new();
    let mut bytes = 0;
    let mut lines = Vec::new();
    for line in code.split('\n') {
        bytes += line.len();
        if bytes > MAX_BYTES || line.len() > MAX_LINE {
            lines.push(vec![("", line.to_string())]);
            continue;
        }
        lines.push(spans(line, &mut state, &mut scopes));
    }
    Some(lines)
}

fn spans(line: &str, state: &mut ParseState, scopes: &mut ScopeStack) -> Vec<Span> {
    let Ok(operations) = state.parse_line(line, &SYNTAXES) else {
        return vec![("", line.to_string())];
    };
    let mut spans = Vec::new();
    let mut at = 0;
    for (index, operation) in operations {
        push(&mut spans, scopes, line.get(at..index).unwrap_or_default());
        at = index.max(at);
        // A syntax that pops more than it pushed only gives wrong colours.
        _ = scopes.apply(&operation);
    }
    push(&mut spans, scopes, line.get(at..).unwrap_or_default());
    spans
}

fn push(spans: &mut Vec<Span>, scopes: &ScopeStack, text: &str) {
    if text.is_empty() {
        return;
    }
    let kind = kind(scopes, text);
    match spans.last_mut() {
        Some((last, before)) if *last == kind => before.push_str(text),
        _ => spans.push((kind, text.to_string())),
    }
}

/// Returns the kind of the innermost scope that has one.
fn kind(scopes: &ScopeStack, text: &str) -> &'static str {
    let found = scopes.as_slice().iter().rev().find_map(|scope| {
        let (prefix, kind) = SCOPES
            .iter()
            .find(|(prefix, _)| prefix.is_prefix_of(*scope))?;
        Some((*prefix, *kind))
    });
    let Some((prefix, kind)) = found else {
        return "";
    };
    if Some(prefix) == *OPERATOR && text.starts_with(char::is_alphabetic) {
        return "keyword";
    }
    let is_key = |key: Scope| {
        scopes
            .as_slice()
            .iter()
            .any(|scope| key.is_prefix_of(*scope))
    };
    if kind == "string" && KEY.is_some_and(is_key) {
        return "attr";
    }
    kind
}

/// Returns lines of spans as JSON; `null` if the language is not known.
#[op2]
#[string]
pub(crate) fn op_highlight(
    #[string] code: &str,
    #[string] language: &str,
) -> Result<String, deno_error::JsErrorBox> {
    serde_json::to_string(&highlight(code, language))
        .map_err(|e| deno_error::JsErrorBox::generic(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_kinds() {
        let lines = highlight("let a = \"x\"; // note\nfn f() {}", "rust").expect("it is known");
        let kinds: Vec<Vec<(&str, &str)>> = lines
            .iter()
            .map(|line| {
                line.iter()
                    .map(|(kind, text)| (*kind, text.as_str()))
                    .collect()
            })
            .collect();
        assert_eq!(
            kinds,
            [
                vec![
                    ("keyword", "let"),
                    ("", " a = "),
                    ("string", "\"x\""),
                    ("", "; "),
                    ("comment", "// note"),
                ],
                vec![("keyword", "fn"), ("", " "), ("title", "f"), ("", "() {}")],
            ]
        );
    }

    #[test]
    fn lines_of_a_diff_have_kinds() {
        let lines = highlight("+a\n-b\n c", "diff").expect("it is known");
        let kinds: Vec<&str> = lines.iter().map(|line| line[0].0).collect();
        assert_eq!(kinds, ["addition", "deletion", ""]);
    }

    #[test]
    fn languages_that_pi_names_are_known() {
        for name in [
            "typescript",
            "javascript",
            "python",
            "ruby",
            "rust",
            "go",
            "java",
            "kotlin",
            "swift",
            "c",
            "cpp",
            "csharp",
            "php",
            "bash",
            "fish",
            "sql",
            "html",
            "css",
            "scss",
            "less",
            "json",
            "yaml",
            "toml",
            "xml",
            "markdown",
            "dockerfile",
            "makefile",
            "lua",
            "TS",
            "diff",
        ] {
            assert!(is_known(name), "{name}");
        }
        assert!(!is_known("nolanguage") && !is_known("text"));
    }

    #[test]
    fn the_text_stays_the_same() {
        let long = "x".repeat(MAX_LINE + 1);
        for code in [
            "",
            "\n\n",
            "a\tb\r\n",
            "\u{0}\u{1b}[31m",
            "/* never closed",
            &long,
        ] {
            for language in ["ts", "rust", "html", "yaml", "php"] {
                let lines = highlight(code, language).expect("it is known");
                let text: Vec<String> = lines
                    .into_iter()
                    .map(|line| line.into_iter().map(|(_, text)| text).collect())
                    .collect();
                assert_eq!(text.join("\n"), code, "{language}");
            }
        }
    }
}
