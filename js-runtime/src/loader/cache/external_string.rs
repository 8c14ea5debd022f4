//! The texts of packages, once per process: V8 reads an ASCII text where it is, for as long as it
//! likes, instead of having a copy of it in each isolate. Whoever loads the same packages again
//! (a reload, a worker, another session) finds their texts here.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use deno_core::ModuleCodeString;
use twox_hash::XxHash64;

/// By hash. What is in a package changes when another version is installed, so this grows no more
/// than what the user has installed while the program runs.
static LASTING: LazyLock<Mutex<HashMap<u64, Vec<&'static str>>>> = LazyLock::new(Mutex::default);

/// JavaScript on its way to V8.
#[derive(Clone)]
pub(crate) enum Code {
    Lasting(&'static str),
    /// deno_core keeps it for a while: this is what it makes no copy of.
    Passing(Arc<str>),
}

impl Code {
    /// Of a file of a package, or of one that somebody is writing.
    pub fn new(text: String, in_package: bool) -> Self {
        match in_package && text.is_ascii() {
            true => Self::Lasting(lasting(text)),
            false => Self::Passing(text.into()),
        }
    }
}

impl Code {
    /// Bytes that are there because of it.
    pub fn size(&self) -> usize {
        match self {
            Self::Lasting(_) => 0,
            Self::Passing(text) => text.len(),
        }
    }
}

impl From<Code> for ModuleCodeString {
    fn from(code: Code) -> Self {
        match code {
            Code::Lasting(text) => Self::from_static(text),
            Code::Passing(text) => text.into(),
        }
    }
}

fn lasting(text: String) -> &'static str {
    let hash = XxHash64::oneshot(0, text.as_bytes());
    // Nothing panics while it holds the lock.
    let mut all = LASTING.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn what_is_loaded_again_is_no_second_copy() {
        let load = |text: &str, in_package| Code::new(text.to_string(), in_package);
        let address = |code: &Code| match code {
            Code::Lasting(text) => text.as_ptr(),
            Code::Passing(text) => text.as_ptr(),
        };
        let first = load("exports.a = 1; // once", true);
        assert!(matches!(first, Code::Lasting(_)));
        assert_eq!(
            address(&load("exports.a = 1; // once", true)),
            address(&first)
        );
        let changed = load("exports.a = 2; // once", true);
        assert_ne!(address(&changed), address(&first));
        for (text, in_package) in [("exports.a = 1; // once", false), ("exports.a = 'é'", true)] {
            assert!(matches!(load(text, in_package), Code::Passing(_)), "{text}");
        }
    }
}
