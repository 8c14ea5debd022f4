//! Takes quoted text, code and JSON out of a sentence, so that patterns match only the words
//! around them.

use serde_json::Value;

/// First character of the private use area that stands for a span; each span is one character.
const FIRST_PLACEHOLDER: u32 = 0xE000;
const LAST_PLACEHOLDER: u32 = 0xF8FF;

pub(super) struct Quoted {
    /// The sentence with one character in place of each span.
    pub text: String,
    spans: Vec<Span>,
}

struct Span {
    kind: Kind,
    /// The text of the span with its quotes.
    source: String,
    inner: String,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Text,
    Code,
    Json,
}

impl Quoted {
    pub fn new(source: &str) -> Self {
        let mut quoted = Self {
            text: String::with_capacity(source.len()),
            spans: Vec::new(),
        };
        let mut rest = source;
        let mut before = ' ';
        while let Some(sign) = rest.chars().next() {
            let span = match u32::try_from(quoted.spans.len()) {
                Ok(count) if count < LAST_PLACEHOLDER - FIRST_PLACEHOLDER => span_at(rest, before),
                _ => None,
            };
            let length = match (span, quoted.placeholder()) {
                (Some(span), Some(placeholder)) => {
                    quoted.text.push(placeholder);
                    let length = span.source.len();
                    quoted.spans.push(span);
                    length
                }
                _ => {
                    if !is_placeholder(sign) {
                        quoted.text.push(sign);
                    }
                    sign.len_utf8()
                }
            };
            before = rest[..length].chars().next_back().unwrap_or(' ');
            rest = &rest[length..];
        }
        quoted
    }

    fn placeholder(&self) -> Option<char> {
        let number = u32::try_from(self.spans.len()).ok()?;
        char::from_u32(FIRST_PLACEHOLDER + number)
    }

    fn span(&self, sign: char) -> Option<&Span> {
        let number = u32::from(sign).checked_sub(FIRST_PLACEHOLDER)?;
        self.spans.get(usize::try_from(number).ok()?)
    }

    /// Returns the text for `part` of [`Self::text`]: the content of a lone span without its
    /// quotes, otherwise the original text.
    pub fn meaning(&self, part: &str) -> String {
        let part = part.trim();
        let mut signs = part.chars();
        if let (Some(sign), None) = (signs.next(), signs.next())
            && let Some(span) = self.span(sign)
        {
            return span.inner.clone();
        }
        let mut text = String::new();
        for sign in part.chars() {
            match self.span(sign) {
                Some(span) => text.push_str(&span.source),
                None => text.push(sign),
            }
        }
        text
    }

    /// Returns the first span of this kind in `part`.
    pub fn first(&self, kind: Kind, part: &str) -> Option<&str> {
        let spans = part.chars().filter_map(|sign| self.span(sign));
        let mut of_kind = spans.filter(|span| span.kind == kind);
        of_kind.next().map(|span| span.inner.as_str())
    }
}

pub(super) fn is_placeholder(sign: char) -> bool {
    (FIRST_PLACEHOLDER..=LAST_PLACEHOLDER).contains(&u32::from(sign))
}

/// Returns the span that starts with the first character of `rest`.
fn span_at(rest: &str, before: char) -> Option<Span> {
    let span = |kind, length: usize, inner: &str| Span {
        kind,
        source: rest[..length].to_owned(),
        inner: inner.to_owned(),
    };
    if let Some(body) = rest.strip_prefix("```") {
        let end = body.find("```")?;
        // The first line names the language.
        let inner = body[..end].split_once('\n').map_or("", |(_, code)| code);
        return Some(span(Kind::Code, end + 6, inner));
    }
    if rest.starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next()?.ok()?;
        let length = values.byte_offset();
        return Some(span(Kind::Json, length, &rest[..length]));
    }
    let (open, close, kind) = match rest.chars().next()? {
        '`' => ('`', '`', Kind::Code),
        '"' => ('"', '"', Kind::Text),
        '“' => ('“', '”', Kind::Text),
        // An apostrophe inside a word, as in "don't", starts no span.
        '\'' if !before.is_alphanumeric() => ('\'', '\'', Kind::Text),
        _ => return None,
    };
    let start = open.len_utf8();
    let end = start + rest[start..].find(close)?;
    let inner = &rest[start..end];
    (!inner.is_empty()).then(|| span(kind, end + close.len_utf8(), inner))
}
