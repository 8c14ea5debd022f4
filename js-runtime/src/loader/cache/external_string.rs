//! Interns the texts of packages for the life of the process. V8 reads an external ASCII text in
//! place, for as long as it likes, instead of copying it into each isolate. A reload, a worker and
//! another session find the texts of the same packages here.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use deno_core::ModuleCodeString;
use twox_hash::XxHash64;

/// Interned texts by hash. Files of a package change only when another version is installed, so the
/// map grows with the packages that the user installs while the program runs.
static INTERNED: LazyLock<Mutex<HashMap<u64, Vec<&'static str>>>> = LazyLock::new(Mutex::default);

/// JavaScript for V8.
#[derive(Clone)]
pub(crate) enum Code {
    Interned(&'static str),
    /// Text that deno_core can share instead of copying.
    Shared(Arc<str>),
}

impl Code {
    /// Interns ASCII texts of packages. Other files may be edited while the program runs.
    pub fn new(text: String, in_package: bool) -> Self {
        match in_package && text.is_ascii() {
            true => Self::Interned(intern(text)),
            false => Self::Shared(text.into()),
        }
    }
}

impl Code {
    /// Returns the bytes that are freed with this value.
    pub fn size(&self) -> usize {
        match self {
            Self::Interned(_) => 0,
            Self::Shared(text) => text.len(),
        }
    }
}

impl From<Code> for ModuleCodeString {
    fn from(code: Code) -> Self {
        match code {
            Code::Interned(text) => Self::from_static(text),
            Code::Shared(text) => text.into(),
        }
    }
}

fn intern(text: String) -> &'static str {
    let hash = XxHash64::oneshot(0, text.as_bytes());
    // No code panics while it holds the lock.
    let mut all = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    let same_hash = all.entry(hash).or_default();
    match same_hash.iter().find(|known| **known == text) {
        Some(known) => known,
        None => {
            let text = Box::leak(text.into_boxed_str());
            same_hash.push(text);
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_text_is_interned() {
        let load = |text: &str, in_package| Code::new(text.to_string(), in_package);
        let address = |code: &Code| match code {
            Code::Interned(text) => text.as_ptr(),
            Code::Shared(text) => text.as_ptr(),
        };
        let first = load("exports.a = 1; // once", true);
        assert!(matches!(first, Code::Interned(_)));
        assert_eq!(
            address(&load("exports.a = 1; // once", true)),
            address(&first)
        );
        let changed = load("exports.a = 2; // once", true);
        assert_ne!(address(&changed), address(&first));
        for (text, in_package) in [("exports.a = 1; // once", false), ("exports.a = 'é'", true)] {
            assert!(matches!(load(text, in_package), Code::Shared(_)), "{text}");
        }
    }
}
