//! A list of sessions printed line by line, and the meaning of the line that the user types
//! below it.

use std::path::PathBuf;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use pi_session::{SessionInfo, SessionQuery};

/// Sessions shown at a time.
const PAGE_SIZE: usize = 20;
/// Columns of a line if the terminal does not report its width.
const DEFAULT_WIDTH: usize = 80;

/// The sessions that the user can choose from.
pub struct SessionList {
    sessions: Vec<SessionInfo>,
    /// Whether the list has the sessions of all folders. Then each line shows the folder.
    all: bool,
    query: String,
    /// Indexes of the sessions that match the query.
    found: Vec<usize>,
    /// Number of matches before the page that is shown.
    skipped: usize,
    problem: Option<String>,
}

/// Meaning of a line that the user typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    Session(PathBuf),
    /// The list changed and is to be shown again.
    Show,
    /// The user wants the sessions of all folders, or of this folder only.
    Scope {
        all: bool,
    },
    Nothing,
}

impl SessionList {
    pub fn new(sessions: Vec<SessionInfo>, all: bool, query: &str) -> Self {
        let mut list = Self {
            sessions,
            all,
            query: String::new(),
            found: Vec::new(),
            skipped: 0,
            problem: None,
        };
        list.search(query);
        list
    }

    pub fn query(&self) -> &str {
        &self.query
    }

    fn search(&mut self, query: &str) {
        self.skipped = 0;
        self.query = query.trim().to_string();
        match SessionQuery::parse(query) {
            Ok(query) => {
                let found = self.sessions.iter().enumerate();
                let found = found.filter(|(_, info)| query.matches(info));
                self.found = found.map(|(index, _)| index).collect();
            }
            Err(error) => self.problem = Some(format!("That cannot be searched for: {error}")),
        }
    }

    /// Formats the current page. `now` is in milliseconds since the epoch.
    pub fn text(&mut self, now: i64, width: Option<usize>) -> String {
        // Some terminals report a width of 0.
        let width = width.filter(|width| *width > 0).unwrap_or(DEFAULT_WIDTH);
        let width = width.clamp(40, 200);
        let heading = match self.all {
            true => "Sessions of all folders",
            false => "Sessions of this folder",
        };
        let mut lines = vec![match self.query.is_empty() {
            true => format!("{heading}, the last active first:"),
            false => format!("{heading} with {}:", self.query),
        }];
        let shown = self
            .found
            .iter()
            .enumerate()
            .skip(self.skipped)
            .take(PAGE_SIZE);
        for (index, session) in shown {
            let session = &self.sessions[*session];
            lines.push(session_line(index + 1, session, self.all, now, width));
        }
        if self.found.is_empty() {
            lines.push("  (none)".into());
        }
        let remaining = self.found.len().saturating_sub(self.skipped + PAGE_SIZE);
        if remaining > 0 {
            lines.push(format!("  ({remaining} more)"));
        }
        lines.extend(self.problem.take());
        let more = match remaining {
            0 => "",
            _ => "\"more\", ",
        };
        let scope = match self.all {
            true => "\"here\" for this folder",
            false => "\"all\" for all folders",
        };
        let nothing = match self.query.is_empty() {
            true => "to leave",
            false => "for the whole list",
        };
        lines.push(format!(
            "Type a number, words to search for, {more}{scope}, or nothing {nothing}."
        ));
        lines.join("\n")
    }

    pub fn choose(&mut self, line: &str) -> Choice {
        let line = line.trim();
        match line {
            "" if self.query.is_empty() => return Choice::Nothing,
            "all" if !self.all => return Choice::Scope { all: true },
            "here" if self.all => return Choice::Scope { all: false },
            "more" if self.found.len() > self.skipped + PAGE_SIZE => {
                self.skipped += PAGE_SIZE;
                return Choice::Show;
            }
            _ => {}
        }
        let Ok(number) = line.parse::<usize>() else {
            self.search(line);
            return Choice::Show;
        };
        let chosen = number
            .checked_sub(1)
            .and_then(|index| self.found.get(index));
        if let Some(chosen) = chosen {
            return Choice::Session(self.sessions[*chosen].path.clone());
        }
        self.problem = Some(format!(
            "There is no number {number}. To search for it, put it into quotes."
        ));
        Choice::Show
    }
}

/// `  1. Name or first message                                  12  3h`
fn session_line(
    number: usize,
    session: &SessionInfo,
    folder: bool,
    now: i64,
    width: usize,
) -> String {
    let name = session.name.as_ref().unwrap_or(&session.first_message);
    let mut right = format!("{} {}", session.message_count, age(session.modified, now));
    if folder {
        right = format!("{} {right}", session.cwd.display());
    }
    let left = format!("{number:>3}. ");
    let used = left.width() + right.width() + 2;
    let name = truncate(&without_controls(name), width.saturating_sub(used).max(10));
    let gap = width.saturating_sub(used - 2 + name.width()).max(2);
    format!(
        "{left}{name}{}{}",
        " ".repeat(gap),
        without_controls(&right)
    )
}

/// Replaces control characters by blanks, so that the text cannot control the terminal.
fn without_controls(text: &str) -> String {
    let spaced = text.chars().map(|c| match c.is_control() {
        true => ' ',
        false => c,
    });
    spaced.collect::<String>().trim().to_string()
}

fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut shown = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used >= width {
            break;
        }
        shown += grapheme;
    }
    shown + "\u{2026}"
}

/// `now`, `5m`, `3h`, `2d`, `1w`, `4mo`, `2y`
fn age(then: i64, now: i64) -> String {
    let minutes = now.saturating_sub(then) / 60_000;
    let (hours, days) = (minutes / 60, minutes / 1440);
    match () {
        () if minutes < 1 => "now".into(),
        () if minutes < 60 => format!("{minutes}m"),
        () if hours < 24 => format!("{hours}h"),
        () if days < 7 => format!("{days}d"),
        () if days < 30 => format!("{}w", days / 7),
        () if days < 365 => format!("{}mo", days / 30),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn session(n: usize, name: Option<&str>, first: &str) -> SessionInfo {
        SessionInfo {
            path: format!("/s/{n}.jsonl").into(),
            id: format!("id-{n}"),
            cwd: "/w".into(),
            name: name.map(str::to_owned),
            parent_session: None,
            created: 0,
            modified: 0,
            message_count: n,
            first_message: first.into(),
            all_messages_text: first.into(),
        }
    }

    #[test]
    fn a_line_shows_name_count_and_age() {
        let sessions = vec![
            session(
                2,
                None,
                "why\n\x1b[31mdoes \u{4f60}\u{597d} it hang, and what can be done?",
            ),
            session(12, Some("A name"), "hello"),
        ];
        let mut list = SessionList::new(sessions, false, "");
        assert_eq!(
            list.text(3 * HOUR, Some(40)),
            "Sessions of this folder, the last active first:\n  \
             1. why  [31mdoes \u{4f60}\u{597d} it hang, \u{2026}  2 3h\n  \
             2. A name                        12 3h\n\
             Type a number, words to search for, \"all\" for all folders, or nothing to leave."
        );
    }

    #[test]
    fn a_line_is_a_number_or_a_search() {
        let sessions = (0..45).map(|n| session(n, None, &format!("talk {n} of {}", n % 2)));
        let mut list = SessionList::new(sessions.collect(), false, "");
        assert!(list.text(0, None).contains("(25 more)"));
        assert_eq!(list.choose("45"), Choice::Session("/s/44.jsonl".into()));
        assert_eq!(list.choose("more"), Choice::Show);
        assert!(list.text(0, None).contains(" 21. talk 20"));
        assert_eq!(list.choose("\"of 1\""), Choice::Show);
        assert!(
            list.text(0, None)
                .starts_with("Sessions of this folder with \"of 1\":\n  1. talk 1 ")
        );
        assert_eq!(list.choose("2"), Choice::Session("/s/3.jsonl".into()));
        for wrong in ["0", "99"] {
            assert_eq!(list.choose(wrong), Choice::Show);
            assert!(list.text(0, None).contains("There is no number"));
        }
        assert_eq!(list.choose("re:("), Choice::Show);
        assert!(list.text(0, None).contains("That cannot be searched for"));
        assert_eq!(list.choose("nonsense"), Choice::Show);
        assert!(list.text(0, None).contains("(none)"));
        assert_eq!(list.choose("all"), Choice::Scope { all: true });
        assert_eq!(list.choose(" "), Choice::Show);
        assert!(list.text(0, Some(0)).contains("(25 more)"));
        assert_eq!(list.choose(""), Choice::Nothing);
    }

    #[test]
    fn ages_are_abbreviated() {
        let ages = [
            0,
            5 * 60_000,
            3 * HOUR,
            50 * HOUR,
            200 * HOUR,
            1000 * HOUR,
            20_000 * HOUR,
        ];
        let texts = ages.map(|then| age(-then, 0));
        assert_eq!(texts, ["now", "5m", "3h", "2d", "1w", "1mo", "2y"]);
    }
}
