//! V8 keeps a text with one dash or quotation mark in a comment in two bytes a character, and copies
//! it. So what packages have in comments beyond ASCII is made question marks: every place in the
//! text stays where it was, and what V8 has compiled of the one holds for the other. Finding out
//! where comments are takes a parser, so it is done at rest, on a thread of its own, for the next
//! start.

use std::thread;

use deno_ast::{MediaType, SourceRangedForSpanned};
use deno_core::ModuleSpecifier;

use super::Loader;
use super::emit::parse;
use super::files::Files;
use super::scripts::hash_of;
use super::warm::HOT;
use crate::cache::{DiskCache, Key};
use crate::local::STACK;

/// The ending of such a text in the cache; an empty one says that there is none.
const PART: &str = "ascii";

/// A text of a package that V8 has compiled.
pub(super) struct Seen {
    pub specifier: ModuleSpecifier,
    pub text: String,
    /// V8's code cache of what is required, which is found by its text.
    pub compiled: Option<Vec<u8>>,
}

impl Files {
    /// The same in ASCII, if that was found out before.
    pub fn in_ascii(&self, specifier: &ModuleSpecifier, text: String) -> String {
        if text.is_ascii() || !self.is_packaged(specifier) {
            return text;
        }
        let known = self.cache.read(key(&self.cache, &text), PART);
        let known = known.and_then(|known| String::from_utf8(known).ok());
        known.filter(|known| !known.is_empty()).unwrap_or(text)
    }
}

impl Loader {
    /// Makes what is missing. Nobody waits for it.
    pub(super) fn make_ascii(&self, seen: Vec<Seen>) {
        let cache = self.files.cache.clone();
        let missing = |seen: &Seen| cache.read(key(&cache, &seen.text), PART).is_none();
        let wanted: Vec<Seen> = seen.into_iter().filter(missing).collect();
        if wanted.is_empty() {
            return;
        }
        let thread = thread::Builder::new().name("js-ascii".into());
        // Without the thread the texts stay as they are.
        _ = thread.stack_size(STACK).spawn(move || {
            for seen in wanted {
                let text = comments_in_ascii(&seen.specifier, &seen.text).unwrap_or_default();
                if let Some(compiled) = seen.compiled.filter(|_| !text.is_empty()) {
                    let units: Vec<u16> = text.encode_utf16().collect();
                    let key = super::compiled_key(&cache, &seen.specifier, hash_of(&units));
                    cache.write(key, HOT, &compiled);
                }
                cache.write(key(&cache, &seen.text), PART, text.as_bytes());
            }
        });
    }
}

fn key(cache: &DiskCache, text: &str) -> Key {
    cache.key(&[PART.as_bytes(), text.as_bytes()])
}

/// `None` if there is something else beyond ASCII, or something about the comments counts.
fn comments_in_ascii(specifier: &ModuleSpecifier, text: &str) -> Option<String> {
    let parsed = parse(specifier, MediaType::JavaScript, text.to_string(), false).ok()?;
    let start = parsed.text_info_lazy().range().start;
    let mut changed = text.as_bytes().to_vec();
    let mut removed = Vec::new();
    for comment in parsed.comments().get_vec() {
        let range = comment.range().as_byte_range(start);
        let comment = text.get(range.clone())?;
        // Ends of lines, and places of maps.
        let counts = ['\u{2028}', '\u{2029}']
            .iter()
            .any(|end| comment.contains(*end))
            || comment.contains("sourceMappingURL")
            || comment.contains("sourceURL");
        if !comment.is_ascii() {
            if counts {
                return None;
            }
            removed.push((range, in_question_marks(comment)));
        }
    }
    removed.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    for (range, comment) in removed {
        changed.splice(range, comment.into_bytes());
    }
    String::from_utf8(changed)
        .ok()
        .filter(|text| text.is_ascii())
}

/// As many as V8 counts characters.
fn in_question_marks(comment: &str) -> String {
    let mut ascii = String::with_capacity(comment.len());
    for character in comment.chars() {
        match character.is_ascii() {
            true => ascii.push(character),
            false => ascii.extend(std::iter::repeat_n('?', character.len_utf16())),
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascii(text: &str) -> Option<String> {
        let url = ModuleSpecifier::parse("file:///node_modules/a/index.js").unwrap();
        comments_in_ascii(&url, text)
    }

    #[test]
    fn comments_lose_what_is_no_ascii_and_nothing_moves() {
        let text =
            "/* – 😀 */ const a = 'x'; // “b”\nconst b = /\\/* [/*] /; // …\nexports.b = a\n";
        let changed = ascii(text).unwrap();
        assert_eq!(
            changed,
            "/* ? ?? */ const a = 'x'; // ?b?\nconst b = /\\/* [/*] /; // ?\nexports.b = a\n"
        );
        assert_eq!(changed.len(), text.encode_utf16().count());
    }

    #[test]
    fn what_is_no_comment_stays() {
        for text in [
            "const a = '–'; // –",
            "const a = `// –`;",
            "const a = /[/*]–/;",
            "const é = 1;",
            "a\u{a0}= 1;",
            "/* \u{2028} */ a = 1;",
            "a = 1; //# sourceMappingURL=–.map",
            "this is no JavaScript –",
        ] {
            assert_eq!(ascii(text), None, "{text}");
        }
    }
}
