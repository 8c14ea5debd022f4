//! A list of sessions on a terminal that only goes on: what it shows of each, and
//! what the line that is typed below it means.

use std::path::PathBuf;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::session::{SessionInfo, SessionQuery};

/// So many are shown at a time.
const PAGE: usize = 20;
/// Of one line, where the terminal does not say.
const WIDTH: usize = 80;

/// The sessions that can be chosen from.
pub struct SessionList {
    sessions: Vec<SessionInfo>,
    /// Of all folders, so the folder is shown as well.
    all: bool,
    query: String,
    /// Those that the query leaves, by index.
    found: Vec<usize>,
    /// How many of them were passed over.
    skipped: usize,
    problem: Option<String>,
}

/// What a line comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice {
    Session(PathBuf),
    /// The list has changed: show it.
    Show,
    /// The sessions of all folders are wanted, or again those of this one.
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

    /// `now` in milliseconds since the epoch.
    pub fn text(&mut self, now: i64, width: Option<usize>) -> String {
        // Some terminals have a width of 0.
        let width = width.filter(|width| *width > 0).unwrap_or(WIDTH);
        let width = width.clamp(40, 200);
        let place = match self.all {
            true => "Sessions of all folders",
            false => "Sessions of this folder",
        };
        let mut lines = vec![match self.query.is_empty() {
            true => format!("{place}, the last active first:"),
            false => format!("{place} with {}:", self.query),
        }];
        let shown = self.found.iter().enumerate().skip(self.skipped).take(PAGE);
        for (index, session) in shown {
            let session = &self.sessions[*session];
            lines.push(line(index + 1, session, self.all, now, width));
        }
        if self.found.is_empty() {
            lines.push("  (none)".into());
        }
        let left = self.found.len().saturating_sub(self.skipped + PAGE);
        if left > 0 {
            lines.push(format!("  ({left} more)"));
        }
        lines.extend(self.problem.take());
        let more = match left {
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

    pub fn hear(&mut self, said: &str) -> Choice {
        let said = said.trim();
        match said {
            "" if self.query.is_empty() => return Choice::Nothing,
            "all" if !self.all => return Choice::Scope { all: true },
            "here" if self.all => return Choice::Scope { all: false },
            "more" if self.found.len() > self.skipped + PAGE => {
                self.skipped += PAGE;
                return Choice::Show;
            }
            _ => {}
        }
        let Ok(number) = said.parse::<usize>() else {
            self.search(said);
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
fn line(number: usize, session: &SessionInfo, folder: bool, now: i64, width: usize) -> String {
    let name = session.name.as_ref().unwrap_or(&session.first_message);
    let mut right = format!("{} {}", session.message_count, age(session.modified, now));
    if folder {
        right = format!("{} {right}", session.cwd.display());
    }
    let left = format!("{number:>3}. ");
    let used = left.width() + right.width() + 2;
    let name = fit(&plain(name), width.saturating_sub(used).max(10));
    let gap = width.saturating_sub(used - 2 + name.width()).max(2);
    format!("{left}{name}{}{}", " ".repeat(gap), plain(&right))
}

/// One line that does nothing to the terminal.
fn plain(text: &str) -> String {
    let spaced = text.chars().map(|c| match c.is_control() {
        true => ' ',
        false => c,
    });
    spaced.collect::<String>().trim().to_string()
}

fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut kept = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used >= width {
            break;
        }
        kept += grapheme;
    }
    kept + "\u{2026}"
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
    fn a_session_is_shown_with_what_tells_it_apart() {
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
        assert_eq!(list.hear("45"), Choice::Session("/s/44.jsonl".into()));
        assert_eq!(list.hear("more"), Choice::Show);
        assert!(list.text(0, None).contains(" 21. talk 20"));
        assert_eq!(list.hear("\"of 1\""), Choice::Show);
        assert!(
            list.text(0, None)
                .starts_with("Sessions of this folder with \"of 1\":\n  1. talk 1 ")
        );
        assert_eq!(list.hear("2"), Choice::Session("/s/3.jsonl".into()));
        for wrong in ["0", "99"] {
            assert_eq!(list.hear(wrong), Choice::Show);
            assert!(list.text(0, None).contains("There is no number"));
        }
        assert_eq!(list.hear("re:("), Choice::Show);
        assert!(list.text(0, None).contains("That cannot be searched for"));
        assert_eq!(list.hear("nonsense"), Choice::Show);
        assert!(list.text(0, None).contains("(none)"));
        assert_eq!(list.hear("all"), Choice::Scope { all: true });
        assert_eq!(list.hear(" "), Choice::Show);
        assert!(list.text(0, Some(0)).contains("(25 more)"));
        assert_eq!(list.hear(""), Choice::Nothing);
    }

    #[test]
    fn an_age_is_short() {
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
