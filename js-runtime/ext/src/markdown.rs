//! Markdown as a tree of tokens, for whoever draws it. The form is that of marked's
//! tokens, because blank lines count in a terminal: where the source has one between
//! two blocks, a `space` stands in the tree.

mod links;
mod tree;

use deno_core::{op2, serde_json};
use serde::Serialize;

pub use self::tree::parse;

/// A block or a stretch of text. Which fields it has depends on its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Token {
    #[serde(rename = "type")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Token>,
    /// Of a heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u8>,
    /// Everything behind the fence of a code block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub href: Option<String>,
    /// The source of HTML and of tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The number of the first item of an ordered list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// Of an item of a task list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<bool>,
    /// Of a table: the first row is the header.
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

/// The tokens of `source`, as JSON.
#[op2]
#[string]
pub(crate) fn op_markdown_parse(#[string] source: &str) -> Result<String, deno_error::JsErrorBox> {
    serde_json::to_string(&parse(source))
        .map_err(|e| deno_error::JsErrorBox::generic(e.to_string()))
}
