//! Replaces parts of a text that are identified by their content. Each must occur exactly once. If
//! there is no exact match, a fuzzy one ignores typography: quotes, dashes, spaces.

use std::borrow::Cow;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;

use crate::tool::ToolError;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    pub old_text: String,
    pub new_text: String,
}

/// A text before and after the replacements.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplacedText<'a> {
    /// The text itself, or its plain form if an old text was found only there.
    pub before: Cow<'a, str>,
    pub after: String,
}

/// Replaces all old texts. Each is looked up in the original text, not in the result of other
/// replacements. `text` must have no carriage returns; `path` is used in messages.
pub fn replace<'a>(
    text: &'a str,
    replacements: &[Replacement],
    path: &str,
) -> Result<ReplacedText<'a>, ToolError> {
    let failure = EditErrors {
        path,
        several: replacements.len() > 1,
    };
    let edits: Vec<(Cow<str>, Cow<str>)> = replacements
        .iter()
        .map(|one| (unix_lines(&one.old_text), unix_lines(&one.new_text)))
        .collect();
    if let Some(index) = edits.iter().position(|(old, _)| old.is_empty()) {
        return Err(failure.empty(index));
    }

    let plain_text = plain(text);
    let needs_plain = edits.iter().any(|(old, _)| {
        let plain_old = plain(old);
        !text.contains(&**old) && !plain_old.is_empty() && plain_text.contains(&*plain_old)
    });
    let before: &str = if needs_plain { &plain_text } else { text };

    let mut matches = Vec::with_capacity(edits.len());
    for (index, (old, new)) in edits.iter().enumerate() {
        let plain_old = plain(old);
        let (start, len) = match before.find(&**old) {
            Some(start) => (start, old.len()),
            // `before` is in plain form if this finds a match.
            None if needs_plain && !plain_old.is_empty() => match before.find(&*plain_old) {
                Some(start) => (start, plain_old.len()),
                None => return Err(failure.not_found(index)),
            },
            None => return Err(failure.not_found(index)),
        };
        // Two matches that differ only in typography count as two.
        let places = match plain_old.is_empty() {
            true => before.matches(&**old).count(),
            false => plain_text.matches(&*plain_old).count(),
        };
        if places > 1 {
            return Err(failure.ambiguous(index, places));
        }
        matches.push((start, len, index, new));
    }

    matches.sort_by_key(|(start, ..)| *start);
    for pair in matches.windows(2) {
        let ((start, len, first, _), (next, _, second, _)) = (pair[0], pair[1]);
        if start + len > next {
            return Err(ToolError::new(format!(
                "edits[{first}] and edits[{second}] overlap in {path}. Merge them into one edit \
                 or target disjoint regions."
            )));
        }
    }
    let mut after = String::with_capacity(before.len());
    let mut copied = 0;
    for (start, len, _, new) in matches {
        after.push_str(&before[copied..start]);
        after.push_str(new);
        copied = start + len;
    }
    after.push_str(&before[copied..]);
    if after == before {
        return Err(failure.unchanged());
    }
    let before = match needs_plain {
        true => plain_text,
        false => Cow::Borrowed(text),
    };
    Ok(ReplacedText { before, after })
}

/// Converts all line ends to `\n`.
pub fn unix_lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Normalises differences that models tend to make: compatibility characters, whitespace at line
/// ends, typographic quotes, dashes and spaces.
fn plain(text: &str) -> Cow<'_, str> {
    let composed: Cow<str> = match text.is_ascii() {
        // Most source files are plain, and some are large.
        true if !text.split('\n').any(|line| line.ends_with(is_space)) => return text.into(),
        true => text.into(),
        false => text.nfkc().collect::<String>().into(),
    };
    let mut plain = String::with_capacity(composed.len());
    for (index, line) in composed.split('\n').enumerate() {
        if index > 0 {
            plain.push('\n');
        }
        plain.extend(line.trim_end_matches(is_space).chars().map(plain_sign));
    }
    plain.into()
}

/// Returns true for whitespace by the rules of JavaScript's `trimEnd`.
fn is_space(sign: char) -> bool {
    sign == '\u{feff}' || (sign.is_whitespace() && sign != '\u{85}')
}

fn plain_sign(sign: char) -> char {
    match sign {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// Builds error messages, which differ for one and for several edits.
struct EditErrors<'a> {
    path: &'a str,
    several: bool,
}

impl EditErrors<'_> {
    fn empty(&self, index: usize) -> ToolError {
        let path = self.path;
        ToolError(match self.several {
            true => format!("edits[{index}].oldText must not be empty in {path}."),
            false => format!("oldText must not be empty in {path}."),
        })
    }

    fn not_found(&self, index: usize) -> ToolError {
        let path = self.path;
        ToolError(match self.several {
            true => format!(
                "Could not find edits[{index}] in {path}. The oldText must match exactly \
                 including all whitespace and newlines."
            ),
            false => format!(
                "Could not find the exact text in {path}. The old text must match exactly \
                 including all whitespace and newlines."
            ),
        })
    }

    fn ambiguous(&self, index: usize, places: usize) -> ToolError {
        let path = self.path;
        ToolError(match self.several {
            true => format!(
                "Found {places} occurrences of edits[{index}] in {path}. Each oldText must be \
                 unique. Please provide more context to make it unique."
            ),
            false => format!(
                "Found {places} occurrences of the text in {path}. The text must be unique. \
                 Please provide more context to make it unique."
            ),
        })
    }

    fn unchanged(&self) -> ToolError {
        let path = self.path;
        ToolError(match self.several {
            true => {
                format!("No changes made to {path}. The replacements produced identical content.")
            }
            false => format!(
                "No changes made to {path}. The replacement produced identical content. This \
                 might indicate an issue with special characters or the text not existing as \
                 expected."
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, edits: &[(&str, &str)]) -> Result<String, String> {
        let edits: Vec<Replacement> = edits
            .iter()
            .map(|(old, new)| Replacement {
                old_text: (*old).to_owned(),
                new_text: (*new).to_owned(),
            })
            .collect();
        replace(text, &edits, "f")
            .map(|replaced| replaced.after)
            .map_err(|error| error.0)
    }

    #[test]
    fn exact_matches_touch_nothing_else() {
        let text = "a \u{201c}b\u{201d}  \nc\n";
        assert_eq!(run(text, &[("c", "d")]), Ok(text.replace('c', "d")));
        assert_eq!(run("abc", &[("c", "3"), ("a", "1")]), Ok("1b3".to_owned()));
        assert_eq!(
            run("a\nb\n", &[("a\r\nb", "x\r\ny")]),
            Ok("x\ny\n".to_owned())
        );
    }

    #[test]
    fn one_loose_match_makes_the_whole_text_plain() {
        let text = "say \u{201c}hi\u{201d}  \nten\u{2013}twelve\u{a0}x\n";
        assert_eq!(
            run(text, &[("say \"hi\"\n", "say no\n")]),
            Ok("say no\nten-twelve x\n".to_owned())
        );
    }

    #[test]
    fn errors_describe_each_edit() {
        type Case = (
            &'static str,
            &'static [(&'static str, &'static str)],
            &'static str,
        );
        let cases: [Case; 8] = [
            ("a", &[("", "x")], "oldText must not be empty in f."),
            (
                "a",
                &[("a", "b"), ("", "x")],
                "edits[1].oldText must not be empty in f.",
            ),
            ("a", &[("z", "x")], "Could not find the exact text in f."),
            (
                "a",
                &[("a", "b"), ("z", "x")],
                "Could not find edits[1] in f.",
            ),
            (
                "aaa",
                &[("a", "x")],
                "Found 3 occurrences of the text in f.",
            ),
            (
                "a a b",
                &[("b", "x"), ("a", "x")],
                "Found 2 occurrences of edits[1] in f.",
            ),
            (
                "abc",
                &[("ab", "x"), ("bc", "y")],
                "edits[0] and edits[1] overlap in f.",
            ),
            ("abc", &[("b", "b")], "No changes made to f."),
        ];
        for (text, edits, expected) in cases {
            let error = run(text, edits).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn places_that_differ_in_typography_count() {
        assert!(run("it's\nit\u{2019}s\n", &[("it's", "x")]).is_err());
    }

    /// The original matches such a text everywhere, or at the start.
    #[test]
    fn whitespace_is_a_text_like_any_other() {
        assert_eq!(run("a\t\tb", &[("\t\t", " ")]), Ok("a b".to_owned()));
        assert!(
            run("ab", &[("\t\t", " ")])
                .unwrap_err()
                .starts_with("Could not find")
        );
    }
}
