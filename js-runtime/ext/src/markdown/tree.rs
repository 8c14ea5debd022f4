//! Builds the tree from the parser's events.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};

use super::Token;
use super::links::link_addresses;

/// Maximum depth of the tree. Deeper elements are shown as they are written.
const MAX_MARKDOWN_DEPTH: usize = 50;

/// A token whose end has not been parsed yet.
struct Open {
    token: Token,
    children: Vec<Child>,
    range: Range<usize>,
}

struct Child {
    token: Token,
    range: Range<usize>,
    /// Whether the token is inline, where its kind does not tell.
    is_inline: bool,
}

impl Child {
    fn new(token: Token, range: Range<usize>) -> Self {
        Self {
            token,
            range,
            is_inline: false,
        }
    }
}

/// Returns the tokens of `source`. Every text is valid Markdown.
pub fn parse(source: &str) -> Vec<Token> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut tree = Tree {
        source: &source,
        open: vec![Open {
            token: Token::default(),
            children: Vec::new(),
            range: 0..source.len(),
        }],
        skipped: 0,
    };
    let parser = Parser::new_ext(&source, options);
    let definitions: Vec<Range<usize>> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| definition.span.clone())
        .collect();
    for (event, range) in parser.into_offset_iter() {
        tree.take(event, range);
    }
    if let Some(root) = tree.open.first_mut() {
        root.children.extend(
            definitions
                .into_iter()
                .map(|range| Child::new(Token::new("def"), range)),
        );
        root.children.sort_by_key(|child| child.range.start);
    }
    let Some(root) = tree.open.pop() else {
        return Vec::new();
    };
    let mut tokens = with_spaces(&source, root.children);
    let end = tokens.last().map_or("", |token| token.kind);
    let blank = source.len() - source.trim_end_matches([' ', '\t', '\n']).len();
    let newlines = source[source.len() - blank..].matches('\n').count();
    if (newlines > 1 && !takes_blank_lines(end)) || (tokens.is_empty() && newlines > 0) {
        tokens.push(Token::new("space"));
    }
    let start = source.len() - source.trim_start_matches([' ', '\t', '\n']).len();
    if !tokens.is_empty() && source[..start].contains('\n') {
        tokens.insert(0, Token::new("space"));
    }
    tokens
}

/// Returns true if blank lines after the token belong to it.
fn takes_blank_lines(kind: &str) -> bool {
    matches!(
        kind,
        "heading" | "hr" | "table" | "html" | "space" | "def" | "indented"
    )
}

/// Returns the blocks, with a `space` for each blank line between two of them.
fn with_spaces(source: &str, children: Vec<Child>) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::with_capacity(children.len());
    let mut end = None;
    for Child {
        mut token, range, ..
    } in children
    {
        if let (Some(end), Some(last)) = (end, tokens.last()) {
            let blank = source
                .get(end..range.start)
                .is_some_and(|gap| gap.matches('\n').count() > 1);
            if blank && !takes_blank_lines(last.kind) {
                tokens.push(Token::new("space"));
            }
        }
        let text = source.get(range.clone()).unwrap_or_default();
        // The text after a block may be the marker of a quotation.
        end = Some(range.start + text.trim_end_matches([' ', '\t', '\n', '>']).len());
        if let Some(last) = tokens.last_mut()
            && last.kind == "indented"
        {
            last.kind = "code";
        }
        if token.kind == "code" && token.lang.is_none() {
            token.kind = "indented";
        }
        tokens.push(token);
    }
    if let Some(last) = tokens.last_mut()
        && last.kind == "indented"
    {
        last.kind = "code";
    }
    tokens
}

struct Tree<'a> {
    source: &'a str,
    /// Open tokens from the root to the current one.
    open: Vec<Open>,
    /// Number of levels below the maximum depth.
    skipped: usize,
}

impl<'a> Tree<'a> {
    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(_) if self.skipped > 0 => self.skipped += 1,
            Event::End(_) if self.skipped > 0 => self.skipped -= 1,
            _ if self.skipped > 0 => {}
            Event::Start(_) if self.open.len() > MAX_MARKDOWN_DEPTH => {
                self.skipped = 1;
                self.add(Token::text(self.slice(&range)), range);
            }
            Event::Start(tag) => {
                let token = self.started(tag, &range);
                let start = range.start;
                self.open.push(Open {
                    token,
                    children: Vec::new(),
                    range,
                });
                if self.open.len() == 2 {
                    let line = self.source[..start].rfind('\n').map_or(0, |at| at + 1);
                    self.indent(line);
                }
            }
            Event::End(tag) => self.end(tag),
            // Text is shown as it is written, including entities.
            Event::Text(text) => {
                let text = if self.in_code() {
                    text.to_string()
                } else {
                    self.slice(&range)
                };
                self.add_text(text, range);
            }
            Event::SoftBreak => {
                let indentation = self.indentation(range.end);
                self.add_text(format!("\n{indentation}"), range);
            }
            Event::HardBreak => {
                let next = range.end;
                self.add(Token::new("br"), range);
                self.indent(next);
            }
            Event::Rule => self.add(Token::new("hr"), range),
            Event::Code(text) => self.add(
                Token {
                    text: Some(text.to_string()),
                    ..Token::new("codespan")
                },
                range,
            ),
            Event::Html(text) => self.add_html(&text, range, false),
            Event::InlineHtml(text) => self.add_html(&text, range, true),
            Event::TaskListMarker(checked) => {
                let item = self.open.iter_mut().rev().find(|o| o.token.kind == "item");
                if let Some(item) = item {
                    item.token.checked = Some(checked);
                }
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.add_text(text.to_string(), range);
            }
        }
    }

    fn slice(&self, range: &Range<usize>) -> String {
        self.source
            .get(range.clone())
            .unwrap_or_default()
            .to_string()
    }

    /// Returns the spaces at the start of the line at `start`. They count in a paragraph, because
    /// lists and trees are made of them; in an item or a quotation they are the position of the
    /// paragraph.
    fn indentation(&self, start: usize) -> &'a str {
        let block = self.open.get(1);
        if block.is_none_or(|block| block.token.kind != "paragraph") {
            return "";
        }
        let line = self.source.get(start..).unwrap_or_default();
        &line[..line.len() - line.trim_start_matches(' ').len()]
    }

    fn indent(&mut self, line: usize) {
        let indentation = self.indentation(line);
        if !indentation.is_empty() {
            self.add_text(indentation.to_string(), line..line + indentation.len());
        }
    }

    fn add_html(&mut self, text: &str, range: Range<usize>, is_inline: bool) {
        let token = Token {
            raw: Some(text.to_string()),
            ..Token::new("html")
        };
        if let Some(open) = self.open.last_mut() {
            open.children.push(Child {
                is_inline,
                ..Child::new(token, range)
            });
        }
    }

    fn in_code(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.token.kind == "code")
    }

    fn add(&mut self, token: Token, range: Range<usize>) {
        if let Some(open) = self.open.last_mut() {
            open.children.push(Child::new(token, range));
        }
    }

    /// Adds text to the previous token, because the parser splits text at every character that
    /// could have a meaning.
    fn add_text(&mut self, text: String, range: Range<usize>) {
        let Some(open) = self.open.last_mut() else {
            return;
        };
        if let Some(last) = open.children.last_mut()
            && last.token.kind == "text"
            && let Some(before) = &mut last.token.text
        {
            before.push_str(&text);
            last.range.end = range.end;
            return;
        }
        self.add(Token::text(text), range);
    }

    fn started(&self, tag: Tag<'_>, range: &Range<usize>) -> Token {
        match tag {
            Tag::Heading { level, .. } => Token {
                depth: Some(match level {
                    HeadingLevel::H1 => 1,
                    HeadingLevel::H2 => 2,
                    HeadingLevel::H3 => 3,
                    HeadingLevel::H4 => 4,
                    HeadingLevel::H5 => 5,
                    HeadingLevel::H6 => 6,
                }),
                ..Token::new("heading")
            },
            Tag::BlockQuote(_) => Token::new("blockquote"),
            Tag::CodeBlock(kind) => Token {
                lang: match kind {
                    CodeBlockKind::Indented => None,
                    CodeBlockKind::Fenced(info) => Some(info.trim().to_string()),
                },
                ..Token::new("code")
            },
            Tag::HtmlBlock => Token {
                raw: Some(String::new()),
                ..Token::new("html")
            },
            Tag::List(start) => Token {
                start,
                ..Token::new("list")
            },
            Tag::Item => Token::new("item"),
            Tag::Table(_) => {
                let rest = &self.source[range.end.min(self.source.len())..];
                let blank = rest.len() - rest.trim_start_matches('\n').len();
                Token {
                    raw: Some(self.slice(&(range.start..range.end + blank))),
                    ..Token::new("table")
                }
            }
            Tag::TableHead | Tag::TableRow => Token::new("row"),
            Tag::TableCell => Token::new("cell"),
            Tag::Emphasis => Token::new("em"),
            Tag::Strong => Token::new("strong"),
            Tag::Strikethrough => Token::new("del"),
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => Token {
                href: Some(match link_type {
                    LinkType::Email => format!("mailto:{dest_url}"),
                    _ => dest_url.to_string(),
                }),
                ..Token::new("link")
            },
            Tag::Image { .. } => Token::new("image"),
            // Elements that the options disable appear as their content.
            _ => Token::new("paragraph"),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        let Some(Open {
            mut token,
            children,
            range,
        }) = self.open.pop()
        else {
            return;
        };
        match token.kind {
            "code" => {
                let text: String = children
                    .iter()
                    .filter_map(|c| c.token.text.as_deref())
                    .collect();
                token.text = Some(match token.lang {
                    Some(_) => text.strip_suffix('\n').unwrap_or(&text).to_string(),
                    None => text.trim_end_matches('\n').to_string(),
                });
            }
            "html" => {
                let parts = children
                    .iter()
                    .filter_map(|c| c.token.raw.as_deref().or(c.token.text.as_deref()));
                token.raw = Some(parts.collect());
            }
            "blockquote" => token.tokens = with_spaces(self.source, children),
            "item" => token.tokens = item_tokens(children),
            "table" => token.rows = children.into_iter().map(|row| row.token.tokens).collect(),
            "list" | "row" => token.tokens = children.into_iter().map(|c| c.token).collect(),
            "image" => {
                let (first, last) = (children.first(), children.last());
                let inner = first
                    .zip(last)
                    .map(|(first, last)| first.range.start..last.range.end);
                token = Token::text(inner.map(|range| self.slice(&range)).unwrap_or_default());
            }
            "del" if !self.slice(&range).starts_with("~~") => {
                // A single tilde is no strike-through: "~5 minutes, ~10 at most".
                self.add_text("~".to_string(), range.start..range.start + 1);
                for child in children {
                    self.put_back(child);
                }
                self.add_text("~".to_string(), range.end - 1..range.end);
                return;
            }
            "link" => {
                let (first, last) = (children.first(), children.last());
                let inner = first
                    .zip(last)
                    .map(|(first, last)| first.range.start..last.range.end);
                token.text = inner.map(|range| self.slice(&range));
                token.tokens = children.into_iter().map(|c| c.token).collect();
            }
            _ => {
                token.tokens = link_addresses(children.into_iter().map(|c| c.token), self.in_link())
            }
        }
        debug_assert!(tag != TagEnd::Item || token.kind == "item");
        self.add(token, range);
    }

    fn put_back(&mut self, child: Child) {
        match child.token.text {
            Some(text) if child.token.kind == "text" => self.add_text(text, child.range),
            _ => self.add(child.token, child.range),
        }
    }

    fn in_link(&self) -> bool {
        self.open.iter().any(|open| open.token.kind == "link")
    }
}

/// Wraps the text of a tight item, which has no block of its own, in one.
fn item_tokens(children: Vec<Child>) -> Vec<Token> {
    let mut blocks: Vec<Child> = Vec::new();
    let mut text: Vec<Child> = Vec::new();
    for child in children {
        let inline = matches!(
            child.token.kind,
            "text" | "em" | "strong" | "del" | "link" | "codespan" | "br" | "image"
        ) || child.is_inline;
        if inline {
            text.push(child);
        } else {
            flush(&mut text, &mut blocks);
            blocks.push(child);
        }
    }
    flush(&mut text, &mut blocks);
    blocks.into_iter().map(|child| child.token).collect()
}

fn flush(text: &mut Vec<Child>, blocks: &mut Vec<Child>) {
    let (Some(first), Some(last)) = (text.first(), text.last()) else {
        return;
    };
    let range = first.range.start..last.range.end;
    let tokens = link_addresses(std::mem::take(text).into_iter().map(|c| c.token), false);
    let token = Token {
        tokens,
        ..Token::new("paragraph")
    };
    blocks.push(Child::new(token, range));
}
