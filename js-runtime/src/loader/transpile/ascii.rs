//! Gives V8 the texts of packages in ASCII. V8 stores a text with a single dash or quotation mark
//! in two bytes per character, and copies it. The rewritten text (`ascii_escapes.rs`) needs a
//! parser, so it is made after a load, on a thread, for the next start.

use std::thread;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;

use super::ascii_escapes::in_ascii;
use super::column_map::ColumnMap;
use crate::limits::process_limits::JS_STACK_SIZE;
use crate::loader::cache::hot_code::HOT;
use crate::loader::cache::script_code;
use crate::loader::cache::{DiskCache, Key};
use crate::loader::files::Files;
use crate::loader::{Loader, code_hash, compiled_key, source_maps};

/// File extension of such a text in the cache; an empty file means that there is none.
const ASCII_PART: &str = "ascii";
/// File extension of its column map, if columns differ.
const COLUMNS_PART: &str = "moves";

/// Text for V8.
pub(in crate::loader) struct V8Text {
    pub text: String,
    /// Key of the ASCII text, if this is one.
    pub ascii_key: Option<Key>,
}

/// A text of a package that V8 has compiled.
pub(in crate::loader) struct NonAsciiText {
    pub specifier: ModuleSpecifier,
    pub text: String,
    /// Whether the text is `require`d.
    pub is_script: bool,
    /// V8's code cache of the text.
    pub compiled: Vec<u8>,
}

impl Files {
    /// Returns the text of a file in ASCII, if an earlier start has made it. JSON is data, and
    /// stays as it is.
    pub fn in_ascii(&self, specifier: &ModuleSpecifier, text: String) -> V8Text {
        let is_data = MediaType::from_specifier(specifier) == MediaType::Json;
        if !is_data && !text.is_ascii() && self.is_packaged(specifier) {
            let key = key(&self.cache, &text);
            let known = self.cache.read(key, ASCII_PART);
            let known = known.and_then(|known| String::from_utf8(known).ok());
            if let Some(text) = known.filter(|known| !known.is_empty()) {
                let ascii_key = Some(key);
                return V8Text { text, ascii_key };
            }
        }
        V8Text {
            text,
            ascii_key: None,
        }
    }

    /// Returns the source map with which errors in V8's text find the position in the file.
    pub fn map_of(&self, file_name: &str) -> Option<Vec<u8>> {
        let own = || {
            let map = self.source_map(file_name);
            map.or_else(|| source_maps::script_map(file_name))
        };
        let columns = || -> Option<ColumnMap> {
            let key = *self.ascii_key.borrow().get(file_name)?;
            serde_json::from_slice(&self.cache.read(key, COLUMNS_PART)?).ok()
        };
        match columns() {
            Some(columns) => columns.source_map(file_name, own().as_deref()).ok(),
            None => own(),
        }
    }
}

impl Loader {
    /// Makes the missing ASCII texts in the background.
    pub(in crate::loader) fn write_missing_ascii(&self, seen: Vec<NonAsciiText>) {
        let cache = self.files.cache.clone();
        let missing =
            |seen: &NonAsciiText| cache.read(key(&cache, &seen.text), ASCII_PART).is_none();
        let wanted: Vec<NonAsciiText> = seen.into_iter().filter(missing).collect();
        if wanted.is_empty() {
            return;
        }
        let thread = thread::Builder::new().name("js-ascii".into());
        // Without the thread the texts stay as they are.
        _ = thread.stack_size(JS_STACK_SIZE).spawn(move || {
            for seen in wanted {
                write_ascii(&cache, &seen);
            }
        });
    }
}

fn write_ascii(cache: &DiskCache, seen: &NonAsciiText) {
    let key = key(cache, &seen.text);
    let Some(found) = in_ascii(&seen.specifier, &seen.text) else {
        return cache.write(key, ASCII_PART, b"");
    };
    match found.columns.map(|columns| serde_json::to_vec(&columns)) {
        Some(Ok(columns)) => cache.write(key, COLUMNS_PART, &columns),
        // Errors would show wrong positions.
        Some(Err(_)) => return,
        // The code cache of one text is valid for the other.
        None => {
            let hash = match seen.is_script {
                true => script_code::hash_of_text(&found.text),
                false => code_hash(cache, &seen.specifier, &found.text),
            };
            let key = compiled_key(cache, &seen.specifier, hash);
            cache.write(key, HOT, &seen.compiled);
        }
    }
    // The text is written last: its presence implies the rest.
    cache.write(key, ASCII_PART, found.text.as_bytes());
}

fn key(cache: &DiskCache, text: &str) -> Key {
    cache.key(&[ASCII_PART.as_bytes(), text.as_bytes()])
}
