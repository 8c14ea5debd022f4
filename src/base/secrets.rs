//! Records the values of known secrets, and replaces them in what goes to models, files and logs. All
//! sessions of the process share the values.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};

use memchr::memmem;

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Length in bytes below which a value is no secret, because ordinary text may contain it.
const MIN_LENGTH: usize = 8;
/// Length in bytes below which a value without a digit is a word and no secret.
const MIN_WORD_LENGTH: usize = 20;

/// Variables with tokens of package registries.
const REGISTRY_VARIABLES: [&str; 3] = ["NPM_TOKEN", "NODE_AUTH_TOKEN", "NPM_CONFIG__AUTH"];

/// The longest value first, so that a value which contains another is replaced as a whole.
static VALUES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Adds the value of a secret. Short values, words, paths and addresses are ignored.
pub fn add(value: &str) {
    let value = value.trim();
    if !is_secret(value) {
        return;
    }
    let is_known = |values: &[String]| values.iter().any(|known| known == value);
    if is_known(&VALUES.read().unwrap_or_else(PoisonError::into_inner)) {
        return;
    }
    let mut values = VALUES.write().unwrap_or_else(PoisonError::into_inner);
    if is_known(&values) {
        return;
    }
    let at = values.partition_point(|known| known.len() >= value.len());
    values.insert(at, value.to_owned());
}

fn is_secret(value: &str) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    value.len() >= MIN_LENGTH
        && (has_digit || value.len() >= MIN_WORD_LENGTH)
        // Settings may have the name of a variable, a command or a file in the place of a value.
        && !value.bytes().all(is_name)
        && !value.starts_with(['$', '!', '/', '~', '.', '<'])
        && !value.contains("://")
        && !value.contains(char::is_whitespace)
}

/// Adds the tokens of package registries in the environment and in the `.npmrc` files of the user and
/// the project. Reads each file once.
pub fn add_registry_tokens(home: &Path, project: &Path) {
    static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if read.is_empty() {
        for name in REGISTRY_VARIABLES {
            if let Ok(value) = std::env::var(name) {
                add(&value);
            }
        }
    }
    for folder in [home, project] {
        if !read.contains(folder) {
            read.insert(folder.to_owned());
            // A file that cannot be read has no tokens.
            let text = fs::read_to_string(folder.join(".npmrc")).unwrap_or_default();
            npm_tokens(&text).for_each(add);
        }
    }
}

/// Returns the tokens in a `.npmrc`.
fn npm_tokens(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim();
        let name = key.rsplit(':').next().unwrap_or(key);
        matches!(name, "_authToken" | "_auth" | "_password").then(|| value.trim().trim_matches('"'))
    })
}

/// Replaces known secrets in a text.
pub fn redact(text: &str) -> Cow<'_, str> {
    match redact_bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Secrets are whole characters, so the bytes stay valid UTF-8 without them.
        Cow::Owned(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Cow::Owned(text),
            Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        },
    }
}

/// Replaces known secrets in bytes.
pub fn redact_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    let values = VALUES.read().unwrap_or_else(PoisonError::into_inner);
    let mut result = Cow::Borrowed(bytes);
    for value in values.iter() {
        let finder = memmem::Finder::new(value);
        if finder.find(&result).is_none() {
            continue;
        }
        let mut replaced = Vec::with_capacity(result.len());
        let mut rest: &[u8] = &result;
        while let Some(at) = finder.find(rest) {
            replaced.extend_from_slice(&rest[..at]);
            replaced.extend_from_slice(REDACTED.as_bytes());
            rest = &rest[at + value.len()..];
        }
        replaced.extend_from_slice(rest);
        result = Cow::Owned(replaced);
    }
    result
}

/// Replaces secrets in a stream, also those that arrive in pieces: the end of a piece that may be
/// the beginning of a secret is held back until the next piece or the end.
#[derive(Debug, Default)]
pub struct StreamRedactor {
    /// The end of the stream so far that may begin a secret.
    held: Vec<u8>,
}

impl StreamRedactor {
    /// Adds a piece of the stream. Returns the bytes that can be passed on.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut passed = match self.held.is_empty() {
            true => redact_bytes(bytes),
            false => {
                let mut all = std::mem::take(&mut self.held);
                all.extend_from_slice(bytes);
                Cow::Owned(redact_bytes(&all).into_owned())
            }
        };
        let held = length_of_beginning(&passed);
        if held > 0 {
            let at = passed.len() - held;
            self.held = passed[at..].to_vec();
            match &mut passed {
                Cow::Borrowed(bytes) => *bytes = &bytes[..at],
                Cow::Owned(bytes) => bytes.truncate(at),
            }
        }
        passed
    }

    /// Ends the stream. Returns the bytes that were held back.
    pub fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

/// Returns the length of the longest end of `bytes` that begins a secret.
fn length_of_beginning(bytes: &[u8]) -> usize {
    let values = VALUES.read().unwrap_or_else(PoisonError::into_inner);
    let longest = values.iter().map(|value| {
        let value = value.as_bytes();
        let most = bytes.len().min(value.len() - 1);
        let begins = |length: &usize| bytes[bytes.len() - length..] == value[..*length];
        (1..=most).rev().find(begins).unwrap_or(0)
    });
    longest.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_words_are_not() {
        for word in [
            "",
            "ollama",
            "test-key",
            "1234567",
            "OPENAI_API_KEY2",
            "$KEY_1234",
            "/a/b/c1234567",
        ] {
            add(word);
            assert_eq!(redact(&format!("a {word} b")), format!("a {word} b"));
        }
        add("sk-base-11111111");
        add("sk-base-11111111-and-more");
        assert_eq!(
            redact("x sk-base-11111111-and-more, sk-base-11111111;"),
            "x [redacted], [redacted];"
        );
        assert!(matches!(redact("nothing"), Cow::Borrowed(_)));
    }

    /// Only the tokens of the first project were known, although a session may change the folder.
    #[test]
    fn tokens_of_each_project_are_known() {
        let home = tempfile::tempdir().unwrap();
        for token in ["npm_first_11111111", "npm_second_22222222"] {
            let project = tempfile::tempdir().unwrap();
            let line = format!("//registry.example/:_authToken={token}\n");
            fs::write(project.path().join(".npmrc"), line).unwrap();
            add_registry_tokens(home.path(), project.path());
            assert_eq!(redact(token), "[redacted]");
        }
    }

    #[test]
    fn a_secret_in_pieces_is_replaced() {
        add("sk-pieces-22222222");
        let text = b"a sk-pieces-2222222x sk-pieces-22222222 s sk-pieces-22222222";
        for size in 1..text.len() {
            let mut redactor = StreamRedactor::default();
            let mut seen = Vec::new();
            for piece in text.chunks(size) {
                seen.extend_from_slice(&redactor.push(piece));
                assert!(memmem::find(&seen, b"sk-pieces-22222222").is_none());
            }
            seen.extend(redactor.finish());
            let expected = "a sk-pieces-2222222x [redacted] s [redacted]";
            assert_eq!(String::from_utf8(seen).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn tokens_of_npm_are_read() {
        let text =
            "registry=https://r.example\n//r.example/:_authToken=npm_abc123\n_auth = \"eA==\"\nx=1";
        assert_eq!(npm_tokens(text).collect::<Vec<_>>(), ["npm_abc123", "eA=="]);
    }
}
