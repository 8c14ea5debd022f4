//! Searches one file and keeps the lines that are shown: matches and their context, cut to a
//! readable length.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use tokio_util::sync::CancellationToken;

use crate::text::truncate::MAX_LINE_LENGTH;

/// Maximum length of a line in bytes: files with longer lines are data, and are reported instead
/// of searched.
const MAX_SEARCHED_LINE_BYTES: usize = 64 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Query {
    pub matcher: RegexMatcher,
    /// Maximum number of matches in one file.
    pub limit: usize,
    /// Number of lines before and after a match.
    pub context: usize,
}

/// Compiles the pattern. The error describes what is wrong with it.
pub(super) fn matcher(
    pattern: &str,
    literal: bool,
    ignore_case: bool,
) -> Result<RegexMatcher, String> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .fixed_strings(literal)
        .case_insensitive(ignore_case)
        .line_terminator(Some(b'\n'))
        .ban_byte(Some(0))
        .build(pattern)
        .map_err(|error| error.to_string())
}

/// A line in the form in which it is shown.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub text: String,
    pub cut: bool,
    /// True if a newline ends the line; the last line of a file may have none.
    ended: bool,
}

impl Line {
    /// Decodes only the part of the line that is shown, without carriage returns.
    fn new(bytes: &[u8]) -> Self {
        let ended = bytes.ends_with(b"\n");
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let mut line = Self {
            text: String::new(),
            cut: false,
            ended,
        };
        let mut units = 0;
        for chunk in bytes.utf8_chunks() {
            let replaced = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            for sign in chunk.valid().chars().chain(replaced) {
                if sign == '\r' {
                    continue;
                }
                units += sign.len_utf16();
                if units > MAX_LINE_LENGTH {
                    line.text.push_str("... [truncated]");
                    line.cut = true;
                    return line;
                }
                line.text.push(sign);
            }
        }
        line
    }
}

/// The matches of one file and the lines to show.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FileMatches {
    /// Line numbers of the matches, from 1.
    pub matches: Vec<u64>,
    lines: BTreeMap<u64, Line>,
}

impl FileMatches {
    /// Replaces the shown lines by those of `text`.
    pub(super) fn replace_lines(&mut self, text: &[u8]) {
        let lines = text.split_inclusive(|byte| *byte == b'\n').map(Line::new);
        self.lines = (1..).zip(lines).collect();
    }

    /// Returns the line `number` and the lines around it.
    pub(super) fn with_context(
        &self,
        number: u64,
        context: usize,
    ) -> impl Iterator<Item = (u64, &str, bool)> {
        let context = context as u64;
        let range = number.saturating_sub(context).max(1)..=number.saturating_add(context);
        let mut last = None;
        let lines = self.lines.range(range.clone()).map(|(number, line)| {
            last = Some((*number, line.ended));
            (*number, line.text.as_str(), line.cut)
        });
        let lines: Vec<_> = lines.collect();
        // A newline at the end of a file starts one more, empty line, as in the read tool.
        let phantom = match last {
            Some((last, true)) if last < *range.end() => Some((last + 1, "", false)),
            _ => None,
        };
        lines.into_iter().chain(phantom)
    }
}

/// The search state of one thread.
pub(super) struct FileSearch {
    query: Query,
    searcher: Searcher,
    cancel: CancellationToken,
}

impl FileSearch {
    pub(super) fn new(query: Query, cancel: CancellationToken) -> Self {
        // Memory maps are off: a file that another program truncates meanwhile would crash pi.
        let searcher = SearcherBuilder::new()
            .before_context(query.context)
            .after_context(query.context)
            .heap_limit(Some(MAX_SEARCHED_LINE_BYTES))
            .build();
        Self {
            query,
            searcher,
            cancel,
        }
    }

    /// `named` means that the caller named this file, so that it is searched even if it is
    /// binary. Detection with `convert` would make lines of NULs and count them.
    pub(super) fn search(&mut self, path: &Path, named: bool) -> io::Result<FileMatches> {
        self.searcher.set_binary_detection(match named {
            true => BinaryDetection::none(),
            false => BinaryDetection::quit(0),
        });
        let reader = Abortable {
            file: File::open(path)?,
            cancel: &self.cancel,
        };
        let mut sink = Collector {
            limit: self.query.limit,
            context: self.query.context as u64,
            found: FileMatches::default(),
        };
        self.searcher
            .search_reader(&self.query.matcher, reader, &mut sink)?;
        Ok(sink.found)
    }
}

/// A reader that fails once the call is cancelled.
struct Abortable<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Abortable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.cancel.is_cancelled() {
            true => Err(io::Error::other("aborted")),
            false => self.file.read(buffer),
        }
    }
}

struct Collector {
    limit: usize,
    context: u64,
    found: FileMatches,
}

impl Collector {
    fn full(&self) -> bool {
        self.found.matches.len() >= self.limit
    }

    /// Returns true if the line is in the context of the last counted match.
    fn near(&self, number: u64) -> bool {
        let last = self.found.matches.last().copied().unwrap_or(0);
        number <= last.saturating_add(self.context)
    }

    fn keep(&mut self, number: u64, bytes: &[u8]) {
        self.found.lines.insert(number, Line::new(bytes));
    }
}

impl Sink for Collector {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or_default();
        if self.full() {
            if !self.near(number) {
                return Ok(false);
            }
        } else {
            self.found.matches.push(number);
        }
        self.keep(number, found.bytes());
        Ok(!self.full() || self.context > 0)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let number = line.line_number().unwrap_or_default();
        if self.full() && !self.near(number) {
            return Ok(false);
        }
        self.keep(number, line.bytes());
        Ok(true)
    }
}
