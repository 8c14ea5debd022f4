//! Parses Markdown into a tree of tokens. The tree has the form of marked's tokens, because blank
//! lines count in a terminal: a `space` token stands for a blank line between two blocks.

mod links;
mod tree;

use deno_core::{op2, serde_json};
use serde::Serialize;

pub use self::tree::parse;

/// A block or an inline element. The fields depend on its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Token {
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// Level of a heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u8>,
    /// Info string of a code block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub href: Option<String>,
    /// Source of HTML and of tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Number of the first item of an ordered list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// State of an item of a task list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
    /// Rows of a table; the first one is the header.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Vec<Token>>,
}

impl Token {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::new("text")
        }
    }
}

/// Returns the tokens of `source` as JSON.
#[op2]
#[string]
pub(crate) fn op_markdown_parse(#[string] source: &str) -> Result<String, deno_error::JsErrorBox> {
    serde_json::to_string(&parse(source))
        .map_err(|e| deno_error::JsErrorBox::generic(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the kinds, with children in brackets.
    fn kinds(tokens: &[Token]) -> String {
        let shown = tokens.iter().map(|token| match token.tokens.len() {
            0 => token.kind.to_string(),
            _ => format!("{}({})", token.kind, kinds(&token.tokens)),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn blank_lines_count() {
        let cases = [
            ("a\nb", "paragraph(text)"),
            ("a\n\nb", "paragraph(text) space paragraph(text)"),
            ("# a\n\nb", "heading(text) paragraph(text)"),
            (
                "- a\n- b\n\nc",
                "list(item(paragraph(text)) item(paragraph(text))) space paragraph(text)",
            ),
            (
                "> a\n>\n> b",
                "blockquote(paragraph(text) space paragraph(text))",
            ),
            ("a\n\n", "paragraph(text) space"),
            ("\n\na\n", "space paragraph(text)"),
            ("```\na\n```\n\nb", "code space paragraph(text)"),
            ("[a]: /x\n", "def"),
            ("", ""),
        ];
        for (source, expected) in cases {
            assert_eq!(kinds(&parse(source)), expected, "{source:?}");
        }
    }

    #[test]
    fn text_is_as_it_is_written() {
        let tokens = parse("a &amp; \\*b\\* ~c~ ~~d~~ https://x.org/a_b, main.rs");
        let [paragraph] = tokens.as_slice() else {
            panic!("{tokens:?}");
        };
        let texts: Vec<&str> = paragraph
            .tokens
            .iter()
            .map(|token| token.text.as_deref().unwrap_or(token.kind))
            .collect();
        assert_eq!(
            texts,
            [
                "a &amp; *b* ~c~ ",
                "del",
                " ",
                "https://x.org/a_b",
                ", main.rs"
            ]
        );
        assert_eq!(
            paragraph.tokens[3].href.as_deref(),
            Some("https://x.org/a_b")
        );
    }

    #[test]
    fn indentation_in_paragraphs_is_kept() {
        let text = |source: &str| {
            let tokens = parse(source);
            let parts = tokens[0].tokens.iter();
            let parts = parts.map(|token| token.text.as_deref().unwrap_or("<br>"));
            parts.collect::<String>()
        };
        assert_eq!(
            text("Files:\n    a.rs\n      b.rs"),
            "Files:\n    a.rs\n      b.rs"
        );
        assert_eq!(text("   moved\nnot"), "   moved\nnot");
        assert_eq!(text("a  \n  b"), "a<br>  b");
        let item = &parse("- a\n  b")[0].tokens[0];
        assert_eq!(item.tokens[0].tokens[0].text.as_deref(), Some("a\nb"));
    }

    #[test]
    fn an_item_may_begin_with_a_tag() {
        for (source, expected) in [
            (
                "1. <kbd>Ctrl</kbd> key",
                "list(item(paragraph(html text html text)))",
            ),
            (
                "- a\n  <b>b</b>",
                "list(item(paragraph(text html text html)))",
            ),
            ("- <div>\n  a\n  </div>", "list(item(html))"),
        ] {
            assert_eq!(kinds(&parse(source)), expected, "{source:?}");
        }
    }

    #[test]
    fn nothing_is_too_deep() {
        for source in [
            "> ".repeat(20_000),
            "- ".repeat(5_000),
            "*a ".repeat(5_000),
            "[".repeat(20_000),
        ] {
            let json = serde_json::to_string(&parse(&source)).expect("tokens are JSON");
            assert!(json.len() > 2, "{}", &source[..10]);
        }
    }
}
