//! Makes text of models, tools and extensions safe for a terminal: it cannot move the cursor,
//! set colours or send commands to the terminal.

use std::path::Path;

/// Maximum characters of such text inside a line of pi's.
const MAX_LINE_CHARS: usize = 300;

/// Removes escape sequences and control characters from text that arrives in pieces. A sequence
/// may be split anywhere.
#[derive(Debug, Default)]
pub struct Sanitizer {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    /// Control sequence: ends with a byte from `@` to `~`.
    Csi,
    /// OSC, DCS and similar strings: end with BEL or `ESC \`.
    String,
    StringEscape,
}

impl Sanitizer {
    pub fn push(&mut self, text: &str) -> String {
        text.chars().filter(|sign| self.accepts(*sign)).collect()
    }

    fn accepts(&mut self, sign: char) -> bool {
        let (state, keep) = match (self.state, sign) {
            (State::Text, '\x1b') => (State::Escape, false),
            (State::Text, '\u{9b}') => (State::Csi, false),
            (State::Text, '\n' | '\t') => (State::Text, true),
            (State::Text, _) => (State::Text, !sign.is_control()),
            (State::Escape, '[') => (State::Csi, false),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::String, false),
            // `ESC ( B` and similar sequences have one more character.
            (State::Escape, ' '..='/' | '\x1b') => (State::Escape, false),
            // A line end terminates any sequence.
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

pub fn sanitize(text: &str) -> String {
    Sanitizer::default().push(text)
}

/// Joins the words of a text in one line of limited length.
pub fn one_line(text: &str) -> String {
    truncate(&words(text), MAX_LINE_CHARS)
}

/// Returns the first line that is not blank.
pub fn first_line(text: &str) -> String {
    let text = sanitize(text);
    let line = text.lines().find(|line| !line.trim().is_empty());
    truncate(&words(line.unwrap_or_default()), MAX_LINE_CHARS)
}

/// Returns the message of an error and the first position of its stack. The code frame and the
/// rest of the stack are in the log.
pub fn error_line(text: &str) -> String {
    let first = first_line(text);
    let position = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("at "));
    match position {
        Some(position) if first != one_line(position) => format!("{first} {}", one_line(position)),
        _ => first,
    }
}

fn words(text: &str) -> String {
    let text = sanitize(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

pub fn truncate(text: &str, limit: usize) -> String {
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

/// The name of an extension for users: its file, or its folder if the file is an `index`.
pub fn extension_name(path: &str) -> String {
    let path = Path::new(path);
    let named = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("index") => path.parent().unwrap_or(path),
        _ => path,
    };
    let name = named.file_name().unwrap_or(named.as_os_str());
    sanitize(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_removed_and_text_stays() {
        let cases = [
            ("a\x1b[31mred\x1b[0m b", "ared b"),
            ("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link", "xlink"),
            ("\x1b(Bx\x1b7y", "xy"),
            ("one\r\ntwo\tthree\x08\x7f", "one\ntwo\tthree"),
            ("\u{9b}31mü", "ü"),
            ("\x1b[12\nnext", "\nnext"),
        ];
        for (text, expected) in cases {
            assert_eq!(sanitize(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_sequence_in_pieces_is_removed() {
        let mut sanitizer = Sanitizer::default();
        let pieces: String = ["a\x1b", "[3", "1mb\x1b]0;t", "\x1b", "\\c"]
            .into_iter()
            .map(|piece| sanitizer.push(piece))
            .collect();
        assert_eq!(pieces, "abc");
    }

    #[test]
    fn lines_are_joined_and_truncated() {
        assert_eq!(one_line(" a\n  b\x1b[1m\tc "), "a b c");
        assert_eq!(first_line("\n \n first  one\nsecond"), "first one");
        assert_eq!(first_line(""), "");
        assert_eq!(truncate("übel genug", 4), "übel...");
        assert_eq!(truncate("übel", 4), "übel");
    }

    #[test]
    fn errors_have_message_and_position() {
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
    fn extensions_are_named_by_file_or_folder() {
        assert_eq!(extension_name("/a/extensions/gate.ts"), "gate.ts");
        assert_eq!(extension_name("/a/extensions/todo/index.ts"), "todo");
        assert_eq!(extension_name("<runtime>"), "<runtime>");
        assert_eq!(extension_name("command:hello"), "command:hello");
    }
}
