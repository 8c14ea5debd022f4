//! Reads `awk` programs for what they run and write.

use super::options::{OptionName, value_at};
use super::runs::InnerCommands;
use super::word::Word;

/// Commands that a program runs, and files that it writes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    pub runs: Vec<Word>,
    pub writes: Vec<Word>,
}

/// Returns the texts of programs in the arguments. Files with programs count as unknown.
pub(super) fn programs(args: &[Word], found: &mut InnerCommands) -> Vec<Word> {
    let mut programs = Vec::new();
    let mut has_file = false;
    let mut index = 0;
    while let Some(word) = args.get(index) {
        let start = word.known_prefix();
        if !start.starts_with('-') || start == "-" {
            break;
        }
        index += 1;
        if start == "--" {
            break;
        }
        let file = ["f", "E", "i", "l", "file", "exec", "include", "load"];
        let texts = ["e", "source"];
        let others = ["F", "v", "assign", "field-separator"];
        let value_of = |names: &[&str]| {
            let mut names = names.iter();
            names.find_map(|name| value_at(args, index - 1, OptionName::of(name)))
        };
        // A value in the same word may contain any letter.
        let found_at = match start.chars().nth(1) {
            Some('F' | 'v') => value_of(&others),
            _ => {
                if let Some((at, value)) = value_of(&file) {
                    found.unknown(at, &value);
                    has_file = true;
                    Some((at, value))
                } else if let Some((at, value)) = value_of(&texts) {
                    programs.push(value.clone());
                    has_file = true;
                    Some((at, value))
                } else {
                    value_of(&others)
                }
            }
        };
        if let Some((at, _)) = found_at {
            index = at + 1;
        }
    }
    if !has_file {
        programs.extend(args.get(index).cloned());
    }
    programs
}

/// Reads a program. A program with an open part may run anything.
pub(super) fn read(program: &Word) -> Effects {
    let mut effects = Effects::default();
    let Some(text) = program.known() else {
        effects.runs.push(Word::open(program.quoted()));
        return effects;
    };
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    // The last character that is no blank; a slash after an operator begins an expression.
    let mut last = '\n';
    let mut runs = false;
    let mut is_print = false;
    while at < chars.len() {
        let char = chars[at];
        at += 1;
        match char {
            '#' => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
                continue;
            }
            '"' => at = end_of(&chars, at, '"'),
            '/' if "\n(,{};!~&|".contains(last) => at = end_of(&chars, at, '/'),
            '|' if chars.get(at) == Some(&'|') => at += 1,
            '|' => runs = true,
            '>' if is_print => {
                while chars
                    .get(at)
                    .is_some_and(|it| matches!(it, '>' | ' ' | '\t'))
                {
                    at += 1;
                }
                let (file, end) = target(&chars, at);
                effects.writes.push(file);
                at = end;
            }
            ';' | '}' | '\n' => is_print = false,
            '@' => runs = true,
            char if char.is_alphabetic() || char == '_' => {
                let start = at - 1;
                while chars
                    .get(at)
                    .is_some_and(|it| it.is_alphanumeric() || *it == '_')
                {
                    at += 1;
                }
                let name: String = chars[start..at].iter().collect();
                runs |= matches!(name.as_str(), "system" | "extension");
                is_print |= matches!(name.as_str(), "print" | "printf");
            }
            _ => {}
        }
        if !matches!(char, ' ' | '\t') {
            last = char;
        }
    }
    if runs {
        effects.runs.push(Word::open(program.quoted()));
    }
    effects
}

/// Reads the file that `print` writes. Returns it with the index behind it. The file is open unless
/// it is one text.
fn target(chars: &[char], at: usize) -> (Word, usize) {
    let is_text = chars.get(at) == Some(&'"');
    let end = match is_text {
        true => end_of(chars, at + 1, '"'),
        false => at,
    };
    let inside = chars.get(at + 1..end.saturating_sub(1)).unwrap_or_default();
    let name: String = inside.iter().collect();
    let next = chars[end..].iter().find(|it| !matches!(it, ' ' | '\t'));
    let is_whole = matches!(next, None | Some(';' | '}' | '\n' | '#'));
    match is_text && is_whole && !name.contains('\\') {
        true => (Word::text(name), end),
        false => (Word::open("the file of print"), end),
    }
}

/// Returns the index behind the character `end`, which ends a text or an expression.
fn end_of(chars: &[char], mut at: usize, end: char) -> usize {
    while at < chars.len() {
        let char = chars[at];
        at += 1;
        if char == '\\' {
            at += 1;
        } else if char == end || char == '\n' {
            return at;
        }
    }
    chars.len()
}
