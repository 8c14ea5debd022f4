//! Finds escape sequences in text, and tracks the active styles.

/// A part of a text: either one whole escape sequence, or none in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Escape(&'a str),
    Plain(&'a str),
}

/// Splits text at its escape sequences. An unfinished sequence is plain text.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(length) = escape_length(rest) {
            let (escape, after) = rest.split_at(length);
            rest = after;
            return Some(Piece::Escape(escape));
        }
        // The text at byte 0 is no sequence; the search continues after it.
        let end = rest
            .match_indices('\x1b')
            .map(|(at, _)| at)
            .find(|&at| at > 0 && escape_length(&rest[at..]).is_some())
            .unwrap_or(rest.len());
        let (plain, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Plain(plain))
    })
}

/// Returns the length in bytes of the escape sequence at the start of `text`: CSI (colours,
/// cursor), OSC (links, titles, images) and APC (cursor marker, images).
fn escape_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&0x1b) {
        return None;
    }
    match bytes.get(1)? {
        b'[' => {
            let parameters = bytes[2..].iter().take_while(|b| (0x20..=0x3f).contains(*b));
            let last = 2 + parameters.count();
            matches!(bytes.get(last), Some(0x40..=0x7e)).then_some(last + 1)
        }
        b']' | b'_' => {
            bytes[2..]
                .iter()
                .enumerate()
                .find_map(|(at, byte)| match (byte, bytes.get(at + 3)) {
                    (0x07, _) => Some(at + 3),
                    (0x1b, Some(b'\\')) => Some(at + 4),
                    _ => None,
                })
        }
        _ => None,
    }
}

/// SGR attributes that are either on or off: the code that switches on, and the one that switches
/// off.
const SWITCHES: [(u16, u16); 8] = [
    (1, 22),
    (2, 22),
    (3, 23),
    (4, 24),
    (5, 25),
    (7, 27),
    (8, 28),
    (9, 29),
];
const UNDERLINE: usize = 3;
const LINK_END: &str = "\x1b]8;;\x1b\\";

/// Active styles at a position in a text, so that a line break can switch them off and on again.
#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    on: [bool; SWITCHES.len()],
    foreground: Option<String>,
    background: Option<String>,
    /// Parameters and address of an open OSC 8 link, as written.
    link: Option<String>,
}

impl Style {
    /// Applies every escape sequence of `text`.
    pub(super) fn follow(&mut self, text: &str) {
        for piece in pieces(text) {
            if let Piece::Escape(escape) = piece {
                self.apply(escape);
            }
        }
    }

    pub(super) fn apply(&mut self, escape: &str) {
        if let Some(link) = escape.strip_prefix("\x1b]8;") {
            let link = link.trim_end_matches("\x1b\\").trim_end_matches('\x07');
            let open = link.split_once(';').is_some_and(|(_, url)| !url.is_empty());
            self.link = open.then(|| link.to_string());
            return;
        }
        let Some(codes) = escape
            .strip_prefix("\x1b[")
            .and_then(|rest| rest.strip_suffix('m'))
        else {
            return;
        };
        let codes: Option<Vec<u16>> = codes
            .split(';')
            .map(|code| {
                if code.is_empty() {
                    Some(0)
                } else {
                    code.parse().ok()
                }
            })
            .collect();
        if let Some(codes) = codes {
            self.select(&codes);
        }
    }

    fn select(&mut self, mut codes: &[u16]) {
        while let Some((&code, after)) = codes.split_first() {
            codes = after;
            match code {
                0 => {
                    *self = Style {
                        link: self.link.take(),
                        ..Style::default()
                    }
                }
                // Some terminals take this code for "bold off", others for a double underline.
                21 => self.on[0] = false,
                30..=37 | 90..=97 => self.foreground = Some(code.to_string()),
                40..=47 | 100..=107 => self.background = Some(code.to_string()),
                39 => self.foreground = None,
                49 => self.background = None,
                38 | 48 => {
                    let length = match codes.first() {
                        Some(5) => 2,
                        Some(2) => 4,
                        _ => continue,
                    };
                    let Some((color, after)) = codes.split_at_checked(length) else {
                        continue;
                    };
                    codes = after;
                    let color: Vec<String> = color.iter().map(u16::to_string).collect();
                    let color = Some(format!("{code};{}", color.join(";")));
                    if code == 38 {
                        self.foreground = color;
                    } else {
                        self.background = color;
                    }
                }
                _ => {
                    for (on, (start, end)) in self.on.iter_mut().zip(SWITCHES) {
                        if code == start {
                            *on = true;
                        } else if code == end {
                            *on = false;
                        }
                    }
                }
            }
        }
    }

    /// Returns the sequences that start a continued line with the active styles.
    pub(super) fn start(&self) -> String {
        let switches = self.on.iter().zip(SWITCHES);
        let codes: Vec<String> = switches
            .filter(|(on, _)| **on)
            .map(|(_, (code, _))| code.to_string())
            .chain(self.foreground.clone())
            .chain(self.background.clone())
            .collect();
        let mut start = String::new();
        if !codes.is_empty() {
            start = format!("\x1b[{}m", codes.join(";"));
        }
        if let Some(link) = &self.link {
            start += &format!("\x1b]8;{link}\x1b\\");
        }
        start
    }

    /// Returns the sequences that switch off underlines and links, which must not extend into the
    /// padding after a line. Backgrounds are meant to.
    pub(super) fn line_end(&self) -> String {
        let underline = if self.on[UNDERLINE] { "\x1b[24m" } else { "" };
        let link = if self.link.is_some() { LINK_END } else { "" };
        format!("{underline}{link}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_whole_sequences_only() {
        let text = "a\x1b[31mb\x1b]8;;http://x\x07c\x1b_pi:c\x07\x1b[?25l\x1b[12";
        let found: Vec<Piece> = pieces(text).collect();
        assert_eq!(
            found,
            [
                Piece::Plain("a"),
                Piece::Escape("\x1b[31m"),
                Piece::Plain("b"),
                Piece::Escape("\x1b]8;;http://x\x07"),
                Piece::Plain("c"),
                Piece::Escape("\x1b_pi:c\x07"),
                Piece::Escape("\x1b[?25l"),
                Piece::Plain("\x1b[12"),
            ]
        );
    }

    #[test]
    fn styles_are_reopened_in_a_fixed_order() {
        let mut style = Style::default();
        style.follow("\x1b[4;1;38;5;9m\x1b[48;2;1;2;3m\x1b]8;id=1;http://x\x1b\\");
        assert_eq!(
            style.start(),
            "\x1b[1;4;38;5;9;48;2;1;2;3m\x1b]8;id=1;http://x\x1b\\"
        );
        assert_eq!(style.line_end(), "\x1b[24m\x1b]8;;\x1b\\");
        style.follow("\x1b[0m");
        assert_eq!(style.start(), "\x1b]8;id=1;http://x\x1b\\");
        style.follow("\x1b]8;;\x1b\\");
        assert_eq!((style.start(), style.line_end()), Default::default());
    }

    #[test]
    fn colours_cut_short_are_no_colours() {
        let mut style = Style::default();
        style.follow("\x1b[38;5m\x1b[38m\x1b[99999999m\x1b[4:3m");
        assert_eq!(style.start(), "\x1b[5m");
    }
}
