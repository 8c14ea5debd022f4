//! Builds the result of a tool that lists things: as many lines as the output limit allows, then
//! notices in brackets about what was left out and how to get it.

pub(crate) mod collation;
pub(crate) mod walk;

use serde_json::{Map, Value, json};

use super::arguments;
use super::text::truncate::{HeadScanner, Limits, MAX_BYTES, format_size};
use super::tool::ToolOutput;
use pi_ai::message::ContentBlock;

/// Limit for lines, which the caller already limits by number. The details show this value; it is
/// the largest integer that JavaScript represents exactly.
const UNLIMITED_LINES: usize = 9_007_199_254_740_991;

/// Maximum number of results: more lines than this exceed the output limit, so that a higher
/// value would only cost memory.
const MAX_RESULTS: usize = 30_000;

/// The number of results that a call requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub results: usize,
    /// The requested number, as the result shows it; may be a fraction.
    shown: f64,
}

impl Limit {
    /// Makes a limit of at least 1.
    pub(crate) fn new(requested: Option<f64>, default: usize) -> Self {
        let shown = requested.unwrap_or(default as f64).max(1.0);
        match shown.ceil() as usize {
            results if results <= MAX_RESULTS => Self { results, shown },
            _ => Self {
                results: MAX_RESULTS,
                shown: MAX_RESULTS as f64,
            },
        }
    }

    /// Returns the notice that the limit was reached. `how_else` names help besides a higher
    /// limit.
    pub(crate) fn notice(&self, what: &str, how_else: &str) -> String {
        let number = arguments::number;
        let reached = format!("{} {what} limit reached", number(self.shown));
        match self.results {
            MAX_RESULTS => format!("{reached}. It cannot be higher{how_else}"),
            _ => format!(
                "{reached}. Use limit={} for more{how_else}",
                number(self.shown * 2.0)
            ),
        }
    }

    pub(crate) fn detail(&self) -> Value {
        match self.shown.fract() == 0.0 {
            true => json!(self.results),
            false => json!(self.shown),
        }
    }
}

pub(crate) struct Listing {
    scanner: HeadScanner,
    empty: bool,
    notices: Vec<String>,
    details: Map<String, Value>,
}

impl Listing {
    pub(crate) fn new() -> Self {
        Self {
            scanner: HeadScanner::new(Limits {
                lines: UNLIMITED_LINES,
                bytes: MAX_BYTES,
            }),
            empty: true,
            notices: Vec::new(),
            details: Map::new(),
        }
    }

    pub(crate) fn push(&mut self, line: &str) {
        if !self.empty {
            self.scanner.push("\n");
        }
        self.empty = false;
        self.scanner.push(line);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Adds a notice. Notices are shown in the order of the calls.
    pub(crate) fn note(&mut self, notice: String) {
        self.notices.push(notice);
    }

    pub(crate) fn notices(&mut self, notices: impl IntoIterator<Item = String>) {
        self.notices.extend(notices);
    }

    pub(crate) fn detail(&mut self, name: &str, value: impl Into<Value>) {
        self.details.insert(name.to_owned(), value.into());
    }

    /// Builds the result. `after` adds notices behind the one about the size.
    pub(crate) fn finish(mut self, after: impl FnOnce(&mut Self)) -> ToolOutput {
        let scanner = std::mem::replace(&mut self.scanner, HeadScanner::new(Limits::default()));
        let record = scanner.finish();
        if record.truncated {
            let size = format_size(MAX_BYTES as u64);
            self.note(format!("{size} limit reached"));
            self.detail("truncation", json!(record));
        }
        after(&mut self);
        let mut text = record.content;
        if !self.notices.is_empty() {
            text.push_str(&format!("\n\n[{}]", self.notices.join(". ")));
        }
        ToolOutput {
            content: vec![ContentBlock::text(text)],
            details: (!self.details.is_empty()).then_some(Value::Object(self.details)),
            ..ToolOutput::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shown_as_requested() {
        let cases = [
            (None, 100, "100 x limit reached. Use limit=200 for more!"),
            (Some(0.0), 1, "1 x limit reached. Use limit=2 for more!"),
            (Some(-5.0), 1, "1 x limit reached. Use limit=2 for more!"),
            (Some(2.5), 3, "2.5 x limit reached. Use limit=5 for more!"),
            (
                Some(1e300),
                30_000,
                "30000 x limit reached. It cannot be higher!",
            ),
        ];
        for (requested, results, notice) in cases {
            let limit = Limit::new(requested, 100);
            assert_eq!(limit.results, results);
            assert_eq!(limit.notice("x", "!"), notice);
        }
        assert_eq!(Limit::new(Some(2.5), 1).detail(), json!(2.5));
        assert_eq!(Limit::new(Some(2.0), 1).detail(), json!(2));
    }

    #[test]
    fn few_lines_come_without_a_notice() {
        let mut listing = Listing::new();
        assert!(listing.is_empty());
        listing.push("");
        listing.push("b");
        assert!(!listing.is_empty());
        assert_eq!(listing.finish(|_| {}), ToolOutput::text("\nb"));
    }

    #[test]
    fn notices_keep_their_order() {
        let mut listing = Listing::new();
        for _ in 0..600 {
            listing.push(&"x".repeat(99));
        }
        listing.note("first".to_owned());
        listing.detail("reached", 7);
        let output = listing.finish(|listing| listing.note("last".to_owned()));
        let text = pi_ai::message::join_text(&output.content);
        assert!(text.ends_with("x\n\n[first. 50.0KB limit reached. last]"));
        let details = output.details.unwrap();
        assert_eq!(details["reached"], 7);
        assert_eq!(details["truncation"]["outputLines"], 512);
        assert_eq!(details["truncation"]["totalBytes"], 59_999);
        assert_eq!(details["truncation"]["maxLines"], json!(UNLIMITED_LINES));
    }
}
