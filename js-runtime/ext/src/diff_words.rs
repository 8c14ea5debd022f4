//! Finds the changed words of a line.

use std::collections::HashMap;

use deno_core::op2;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A part of a line: -1 if only the old line has it, 1 if only the new one, 0 if both.
pub type Part = (i8, String);

/// A word or a punctuation mark, with its position.
struct Word<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

fn words(line: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut letters = false;
    for (start, c) in line.char_indices() {
        let end = start + c.len_utf8();
        let is_letter = c == '_' || c.is_alphanumeric();
        match words.last_mut() {
            Some(word) if is_letter && letters && word.end == start => {
                word.end = end;
                word.text = &line[word.start..end];
            }
            _ if c.is_whitespace() => {}
            _ => words.push(Word {
                text: &line[start..end],
                start,
                end,
            }),
        }
        letters = is_letter;
    }
    words
}

/// Maps equal words to equal numbers.
fn intern_words<'a>(words: &[Word<'a>], known: &mut HashMap<&'a str, usize>) -> Vec<usize> {
    let number = |word: &Word<'a>| {
        let next = known.len();
        *known.entry(word.text).or_insert(next)
    };
    words.iter().map(number).collect()
}

/// Returns the common words and the changed text between them. White space is common text as far as
/// it is equal.
pub fn diff_words(old: &str, new: &str) -> Vec<Part> {
    let (old_words, new_words) = (words(old), words(new));
    let mut known = HashMap::new();
    let old_numbers = intern_words(&old_words, &mut known);
    let new_numbers = intern_words(&new_words, &mut known);
    let operations = capture_diff_slices(Algorithm::Myers, &old_numbers, &new_numbers);
    let mut parts = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    for operation in operations {
        let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = operation
        else {
            continue;
        };
        for (old_word, new_word) in old_words[old_index..old_index + len]
            .iter()
            .zip(&new_words[new_index..new_index + len])
        {
            push_changed(
                &old[old_at..old_word.start],
                &new[new_at..new_word.start],
                &mut parts,
            );
            push(&mut parts, 0, new_word.text);
            (old_at, new_at) = (old_word.end, new_word.end);
        }
    }
    push_changed(&old[old_at..], &new[new_at..], &mut parts);
    parts
}

/// Adds the text between two common words.
fn push_changed(mut old: &str, mut new: &str, parts: &mut Vec<Part>) {
    if old.trim().is_empty() && new.trim().is_empty() {
        push(parts, 0, new);
        return;
    }
    let space = |text: &str| text.len() - text.trim_start().len();
    let head = common(old[..space(old)].chars(), new[..space(new)].chars());
    push(parts, 0, &new[..head]);
    (old, new) = (&old[head..], &new[head..]);
    let space = |text: &str| text.trim_end().len();
    let tail = common(
        old[space(old)..].chars().rev(),
        new[space(new)..].chars().rev(),
    );
    push(parts, -1, &old[..old.len() - tail]);
    push(parts, 1, &new[..new.len() - tail]);
    push(parts, 0, &new[new.len() - tail..]);
}

/// Returns the length in bytes of the common prefix.
fn common(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    let same = a.zip(b).take_while(|(a, b)| a == b);
    same.map(|(c, _)| c.len_utf8()).sum()
}

fn push(parts: &mut Vec<Part>, change: i8, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some((last, before)) if *last == change => before.push_str(text),
        _ => parts.push((change, text.to_string())),
    }
}

#[op2]
#[serde]
pub(crate) fn op_diff_words(#[string] old: &str, #[string] new: &str) -> Vec<Part> {
    diff_words(old, new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> String {
        let parts = diff_words(old, new);
        let parts = parts.iter().map(|(change, text)| match change {
            0 => text.clone(),
            -1 => format!("[-{text}]"),
            _ => format!("[+{text}]"),
        });
        parts.collect()
    }

    #[test]
    fn only_words_that_differ_are_marked() {
        assert_eq!(
            shown("const a = 1;", "const b = 12;"),
            "const [-a][+b] = [-1][+12];"
        );
        assert_eq!(shown("f(a, b)", "f(a)"), "f(a[-, b])");
        assert_eq!(shown("one three", "one two three"), "one [+two ]three");
        assert_eq!(shown("  x", "    x"), "    x");
        assert_eq!(shown("größe alt", "größe neu"), "größe [-alt][+neu]");
        assert_eq!(shown("", "new"), "[+new]");
        assert_eq!(shown("same", "same"), "same");
    }
}
