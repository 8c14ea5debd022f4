//! V8 keeps a text with one dash or quotation mark in two bytes a character, and copies it. So it
//! gets what packages say in ASCII (`escapes.rs`). Finding out how takes a parser, so it is done
//! at rest, on a thread of its own, for the next start.

use std::thread;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;

use super::escapes::in_ascii;
use super::files::Files;
use super::moves::Moves;
use super::warm::HOT;
use super::{Loader, code_hash, compiled_key, maps, scripts};
use crate::cache::{DiskCache, Key};
use crate::local::STACK;

/// The ending of such a text in the cache; an empty one says that there is none.
const PART: &str = "ascii";
/// The ending of what says which places are others in it, if any are.
const MOVES: &str = "moves";

/// On its way to V8.
pub(super) struct Text {
    pub text: String,
    /// What it is instead of, if it is.
    pub instead: Option<Key>,
}

/// A text of a package that V8 has compiled.
pub(super) struct Seen {
    pub specifier: ModuleSpecifier,
    pub text: String,
    /// It is required.
    pub is_script: bool,
    /// V8's code cache of it.
    pub compiled: Vec<u8>,
}

impl Files {
    /// Returns the text of the file in ASCII, if an earlier start has made it. JSON is data, and
    /// stays as it is.
    pub fn in_ascii(&self, specifier: &ModuleSpecifier, text: String) -> Text {
        let is_data = MediaType::from_specifier(specifier) == MediaType::Json;
        if !is_data && !text.is_ascii() && self.is_packaged(specifier) {
            let key = key(&self.cache, &text);
            let known = self.cache.read(key, PART);
            let known = known.and_then(|known| String::from_utf8(known).ok());
            if let Some(text) = known.filter(|known| !known.is_empty()) {
                let instead = Some(key);
                return Text { text, instead };
            }
        }
        Text {
            text,
            instead: None,
        }
    }

    /// With which errors of what V8 has of a file find its own places.
    pub fn map_of(&self, file_name: &str) -> Option<Vec<u8>> {
        let own = || {
            let map = self.source_map(file_name);
            map.or_else(|| maps::of_script(file_name))
        };
        let moves = || -> Option<Moves> {
            let key = *self.instead.borrow().get(file_name)?;
            serde_json::from_slice(&self.cache.read(key, MOVES)?).ok()
        };
        match moves() {
            Some(moves) => moves.source_map(file_name, own().as_deref()).ok(),
            None => own(),
        }
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
                make(&cache, &seen);
            }
        });
    }
}

fn make(cache: &DiskCache, seen: &Seen) {
    let key = key(cache, &seen.text);
    let Some(found) = in_ascii(&seen.specifier, &seen.text) else {
        return cache.write(key, PART, b"");
    };
    match found.moves.map(|moves| serde_json::to_vec(&moves)) {
        Some(Ok(moves)) => cache.write(key, MOVES, &moves),
        // It would be told at wrong places.
        Some(Err(_)) => return,
        // What V8 has compiled of the one holds for the other.
        None => {
            let hash = match seen.is_script {
                true => scripts::hash_of_text(&found.text),
                false => code_hash(cache, &seen.specifier, &found.text),
            };
            let key = compiled_key(cache, &seen.specifier, hash);
            cache.write(key, HOT, &seen.compiled);
        }
    }
    // The text last: whoever finds it finds the rest.
    cache.write(key, PART, found.text.as_bytes());
}

fn key(cache: &DiskCache, text: &str) -> Key {
    cache.key(&[PART.as_bytes(), text.as_bytes()])
}
