//! Sorts names in the order that people expect: case and accents matter less than letters, and
//! punctuation comes before digits. For characters that occur in file names this is Unicode's
//! root collation, which the original takes from ICU. The tables of ICU would make pi larger by
//! more than all tools together. Letters of other scripts are sorted by code point.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Characters that sort before the digits, in order; other signs sort after these.
const SIGNS: &str = "\t\n\u{b}\u{c}\r _-‐‒–—―,、;:!¡?¿.。·'‘’‚‛‹›\"“”„‟«»()[]{}「」『』【】§¶@*/\\&#%‰†‡•`^°©®←→↑↓+±÷×<=>|¦~";
/// Order of the accents on one letter.
const MARKS: &str = "\u{301}\u{300}\u{306}\u{302}\u{30c}\u{30a}\u{308}\u{30b}\u{303}\u{307}";

/// A sort key; smaller keys come first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    letters: Vec<(Group, u32)>,
    /// Accents, which decide only between equal letters. A letter is 0, followed by its accents.
    accents: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Sign,
    OtherSign,
    Currency,
    Digit,
    Letter,
    Hangul,
    Kana,
    Han,
}

pub(crate) fn key(name: &str) -> Key {
    let mut key = Key {
        letters: Vec::new(),
        accents: Vec::new(),
    };
    for sign in name.to_lowercase().nfkd() {
        if is_combining_mark(sign) {
            let known = MARKS.chars().position(|mark| mark == sign);
            let rank = known.map_or(u32::from(sign), |position| position as u32 + 1);
            key.accents.push(rank);
            continue;
        }
        // Letters that Unicode does not decompose.
        let (parts, accent) = match sign {
            'ß' => ("ss", true),
            'æ' => ("ae", true),
            'œ' => ("oe", true),
            'ø' => ("o", true),
            'đ' => ("d", true),
            'ł' => ("l", true),
            _ => ("", false),
        };
        if !accent {
            key.push(sign);
            continue;
        }
        parts.chars().for_each(|part| key.push(part));
        key.accents.push(u32::from(sign));
    }
    key
}

impl Key {
    fn push(&mut self, sign: char) {
        let Some(letter) = rank(sign) else {
            return;
        };
        self.letters.push(letter);
        self.accents.push(0);
    }
}

/// Returns the rank of a character; `None` if it is ignored.
fn rank(sign: char) -> Option<(Group, u32)> {
    let code = u32::from(sign);
    if let Some(position) = SIGNS.chars().position(|other| other == sign) {
        return Some((Group::Sign, position as u32));
    }
    let group = match sign {
        '$' | '¢'..='¥' | '\u{20a0}'..='\u{20cf}' => Group::Currency,
        // Both kana of a syllable are the same letter.
        '\u{30a1}'..='\u{30f6}' => return Some((Group::Kana, code - 0x60)),
        '\u{3041}'..='\u{30ff}' => Group::Kana,
        '\u{ac00}'..='\u{d7a3}' | '\u{1100}'..='\u{11ff}' => Group::Hangul,
        '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{323af}' => Group::Han,
        _ if sign.is_control() || is_format(sign) => return None,
        _ if sign.is_numeric() => Group::Digit,
        _ if sign.is_alphabetic() => Group::Letter,
        _ => Group::OtherSign,
    };
    Some((group, code))
}

/// Returns true for joiners, direction marks and the byte order mark.
fn is_format(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is that of `Intl.Collator`.
    #[test]
    fn the_order_of_names() {
        let sorted = [
            "_private", "-dash", "–dash", ".git", "(1)", "[id]", "@scope", "#1", "+page", "~",
            "😀", "$HOME", "0", "10", "2", "a", "á", "à", "ä", "a.txt", "á.txt", "a1", "aa", "ae",
            "æ", "af", "B", "o", "ø", "oz", "øz", "strasse", "straße", "strat", "z", "ω", "я",
            "가", "あ", "ア", "い", "日",
        ];
        let mut names = sorted;
        names.sort_unstable();
        names.sort_by_cached_key(|name| key(name));
        assert_eq!(names, sorted);
    }

    #[test]
    fn case_does_not_matter() {
        assert_eq!(key("README"), key("readme"));
        assert!(key("Makefile") < key("README.md"));
        assert!(key("README.md") < key("src"));
    }
}
