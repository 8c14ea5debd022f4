//! Text of models, tools and extensions made fit for a terminal: nothing that
//! comes from them may move the cursor, set colours or talk to the terminal.

use std::path::Path;

/// Longest piece of foreign text that is put into a line of ours.
const LINE: usize = 300;

/// Takes escape sequences and control characters out of text that arrives in
/// pieces; a sequence may be cut anywhere.
#[derive(Debug, Default)]
pub struct Cleaner {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// Until a byte from `@` to `~`.
    Csi,
    /// OSC, DCS and their like: until BEL or `ESC \`.
    String,
    StringEscape,
}

impl Cleaner {
    pub fn push(&mut self, text: &str) -> String {
        text.chars().filter(|sign| self.keep(*sign)).collect()
    }

    fn keep(&mut self, sign: char) -> bool {
        let (state, keep) = match (self.state, sign) {
            (State::Text, '\x1b') => (State::Escape, false),
            (State::Text, '\u{9b}') => (State::Csi, false),
            (State::Text, '\n' | '\t') => (State::Text, true),
            (State::Text, _) => (State::Text, !sign.is_control()),
            (State::Escape, '[') => (State::Csi, false),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::String, false),
            // `ESC ( B` and the like have one more.
            (State::Escape, ' '..='/' | '\x1b') => (State::Escape, false),
            // No sequence goes over the end of a line: what follows is text.
            (State::Escape | State::Csi, '\n') => (State::Text, true),
            (State::Escape, _) => (State::Text, false),
            (State::Csi, '@'..='~') => (State::Text, false),
            (State::Csi, '\x1b') => (State::Escape, false),
            (State::Csi, _) => (State::Csi, false),
            (State::String, '\x07' | '\u{9c}') => (State::Text, false),
            (State::String, '\x1b') => (State::StringEscape, false),
            (State::String, _) => (State::String, false),
            (State::StringEscape, '\\') => (State::Text, false),
            (State::StringEscape, _) => (State::String, false),
        };
        self.state = state;
        keep
    }
}

pub fn clean(text: &str) -> String {
    Cleaner::default().push(text)
}

/// On one line, and not too long for one.
pub fn one_line(text: &str) -> String {
    cut(&words(text), LINE)
}

/// The first line that says something.
pub fn first_line(text: &str) -> String {
    let text = clean(text);
    let line = text.lines().find(|line| !line.trim().is_empty());
    cut(&words(line.unwrap_or_default()), LINE)
}

/// What went wrong, and where: the lines of source and the rest of the stack
/// between and behind are for the log.
pub fn error_line(text: &str) -> String {
    let first = first_line(text);
    let place = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("at "));
    match place {
        Some(place) if first != one_line(place) => format!("{first} {}", one_line(place)),
        _ => first,
    }
}

fn words(text: &str) -> String {
    let text = clean(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

pub fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_string(),
        Some((end, _)) => format!("{}...", text[..end].trim_end()),
    }
}

/// `1 retry`, `2 retries`
pub fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// An extension as people call it: its file, or its folder if the file is an
/// `index`.
pub fn extension_name(path: &str) -> String {
    let path = Path::new(path);
    let named = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("index") => path.parent().unwrap_or(path),
        _ => path,
    };
    let name = named.file_name().unwrap_or(named.as_os_str());
    clean(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_and_text_stays() {
        let cases = [
            ("a\x1b[31mred\x1b[0m b", "ared b"),
            ("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link", "xlink"),
            ("\x1b(Bx\x1b7y", "xy"),
            ("one\r\ntwo\tthree\x08\x7f", "one\ntwo\tthree"),
            ("\u{9b}31mü", "ü"),
            ("\x1b[12\nnext", "\nnext"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_sequence_that_arrives_in_pieces_goes_too() {
        let mut cleaner = Cleaner::default();
        let pieces: String = ["a\x1b", "[3", "1mb\x1b]0;t", "\x1b", "\\c"]
            .into_iter()
            .map(|piece| cleaner.push(piece))
            .collect();
        assert_eq!(pieces, "abc");
    }

    #[test]
    fn lines() {
        assert_eq!(one_line(" a\n  b\x1b[1m\tc "), "a b c");
        assert_eq!(first_line("\n \n first  one\nsecond"), "first one");
        assert_eq!(first_line(""), "");
        assert_eq!(cut("übel genug", 4), "übel...");
        assert_eq!(cut("übel", 4), "übel");
    }

    #[test]
    fn errors_are_what_and_where() {
        let syntax = "SyntaxError: Expected ','\n  |\n1 | pi.on(;;\n  | ~~\n    at /x/b.ts:1:42";
        assert_eq!(
            error_line(syntax),
            "SyntaxError: Expected ',' at /x/b.ts:1:42"
        );
        let thrown = "Error: boom\n    at one (/x/b.ts:1:2)\n    at two (/x/b.ts:3:4)";
        assert_eq!(error_line(thrown), "Error: boom at one (/x/b.ts:1:2)");
        assert_eq!(error_line("did not finish\n"), "did not finish");
        assert_eq!(error_line("at x"), "at x");
    }

    #[test]
    fn extensions_are_called_by_file_or_folder() {
        assert_eq!(extension_name("/a/extensions/gate.ts"), "gate.ts");
        assert_eq!(extension_name("/a/extensions/todo/index.ts"), "todo");
        assert_eq!(extension_name("<runtime>"), "<runtime>");
        assert_eq!(extension_name("command:hello"), "command:hello");
    }
}
