//! Records the values of known secrets, and replaces them in what goes to models, files and logs. All
//! sessions of the process share the values.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};

use memchr::memmem;

use crate::regular_file;

/// The text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Length in bytes below which a value is no secret, because ordinary text may contain it.
const MIN_LENGTH: usize = 8;
/// Length in bytes below which a value without a digit is a word and no secret.
const MIN_WORD_LENGTH: usize = 20;

/// Variables with tokens of package registries, beside those of npm's configuration.
const REGISTRY_VARIABLES: [&str; 2] = ["NPM_TOKEN", "NODE_AUTH_TOKEN"];
/// Prefix of variables with npm's configuration, in any case.
const NPM_PREFIX: &str = "npm_config_";
/// Size in bytes above which a file is no `.npmrc` and no private key.
const MAX_FILE: u64 = 1 << 20;

/// The longest value first, so that a value which contains another is replaced as a whole.
static VALUES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Adds the value of a secret. Short values, words, paths and addresses are ignored.
pub fn add(value: &str) {
    let value = value.trim();
    if is_secret(value) {
        insert(value);
    }
}

fn insert(value: &str) {
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

/// Adds the tokens and private keys of package registries in the environment and in the `.npmrc` files
/// of the user and the project. Reads each file once.
pub fn add_registry_tokens(home: &Path, project: &Path) {
    static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if read.is_empty() {
        for (name, value) in std::env::vars_os() {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            let prefix = name.get(..NPM_PREFIX.len()).unwrap_or_default();
            if prefix.eq_ignore_ascii_case(NPM_PREFIX) {
                add_npm_value(&name[NPM_PREFIX.len()..], value, home);
            } else if REGISTRY_VARIABLES.contains(&name) {
                add(value);
            }
        }
    }
    for folder in [home, project] {
        if !read.contains(folder) {
            read.insert(folder.to_owned());
            // A file that cannot be read has no tokens.
            let text = read_small(&folder.join(".npmrc")).unwrap_or_default();
            for (key, value) in npm_values(&text) {
                add_npm_value(key, &with_variables(value), folder);
            }
        }
    }
}

/// Returns the keys and values in a `.npmrc`.
fn npm_values(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        Some((key.trim(), value.trim().trim_matches(['"', '\''])))
    })
}

/// Adds the secrets in a value of npm's configuration: tokens, passwords and private keys. Relative
/// paths start from `folder`.
fn add_npm_value(key: &str, value: &str, folder: &Path) {
    let name = key.rsplit(':').next().unwrap_or(key).to_ascii_lowercase();
    match name.as_str() {
        "_authtoken" | "_auth" | "_password" => add(value),
        "key" => {
            add(value);
            private_key_lines(value).for_each(insert);
        }
        // The keys of other files than those of npm have the same form.
        "keyfile" => {
            let text = read_small(&folder.join(value)).unwrap_or_default();
            private_key_lines(&text).for_each(insert);
        }
        _ => {}
    }
}

fn read_small(file: &Path) -> Option<String> {
    let bytes = regular_file::read_at_most(file, MAX_FILE).ok()?;
    Some(regular_file::decode_lossy(&bytes))
}

/// Replaces `${NAME}` by the value of the variable, as npm does.
fn with_variables(value: &str) -> Cow<'_, str> {
    let mut result = Cow::Borrowed(value);
    for (start, _) in value.match_indices("${") {
        let name = value[start + 2..].split('}').next().unwrap_or_default();
        if let Ok(found) = std::env::var(name) {
            result = Cow::Owned(result.replace(&format!("${{{name}}}"), &found));
        }
    }
    result
}

/// Returns the lines of the private keys in a text with PEM. Lines end with a line break or `\n`. A
/// tool may print any of them alone, and the text around them differs by the form of the file.
fn private_key_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut is_key = false;
    let lines = text.lines().flat_map(|line| line.split("\\n"));
    lines.map(str::trim).filter(move |line| {
        if line.starts_with("-----") {
            is_key = line.starts_with("-----BEGIN") && line.contains("PRIVATE KEY");
        }
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        is_key && line.len() >= MIN_LENGTH && line.bytes().all(is_base64)
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
    use std::fs;

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

    /// Private keys of client certificates went to the model.
    #[test]
    fn tokens_and_private_keys_of_npm_are_known() {
        let project = tempfile::tempdir().unwrap();
        let key = |kind: &str, end: &str| {
            let lines = [
                "-----BEGIN",
                "MIIkeyInLine1+",
                "/startsWithSlash2",
                "dW5rbm93bjM=",
            ];
            let text = lines
                .join(end)
                .replace("BEGIN", &format!("BEGIN {kind}-----"));
            format!("{text}{end}-----END {kind}-----{end}")
        };
        let file = key("EC PRIVATE KEY", "\n").replace("Line", "File");
        fs::write(project.path().join("client.pem"), file).unwrap();
        let text = key("CERTIFICATE", "\n").replace("Line", "Certificate");
        fs::write(project.path().join("client.crt"), text).unwrap();
        let npmrc = format!(
            "registry=https://r.example\n//r.example/:_authToken=npm_abc12345\n_auth = \"eA12345==\"\n\
             //r.example/:_password='cGFzc3dvcmQ1'\nkey=\"{}\"\n//r.example/:keyfile=client.pem\n\
             //s.example/:keyfile=client.crt\n//s.example/:_authToken=token-${{HOME}}-${{HOME}}1\n",
            key("PRIVATE KEY", "\\n")
        );
        fs::write(project.path().join(".npmrc"), npmrc).unwrap();
        add_registry_tokens(project.path(), project.path());
        let home = std::env::var("HOME").unwrap();
        for secret in [
            "npm_abc12345",
            "eA12345==",
            "cGFzc3dvcmQ1",
            "MIIkeyInLine1+",
            "/startsWithSlash2",
            "dW5rbm93bjM=",
            "MIIkeyInFile1+",
            &format!("token-{home}-{home}1"),
        ] {
            assert_eq!(redact(secret), "[redacted]", "{secret}");
        }
        for known in ["https://r.example", "MIIkeyInCertificate1+", "client.pem"] {
            assert_eq!(redact(known), known);
        }
    }
}
