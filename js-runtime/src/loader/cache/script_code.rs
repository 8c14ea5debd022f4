//! V8's code caches of CommonJS modules and of `node:vm` scripts. Without them deno_core would
//! compile what is required in every start.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use deno_core::{JsRuntime, ModuleSpecifier, SourceCodeCacheInfo};
use deno_path_util::url_to_file_path;
use twox_hash::XxHash64;

use super::hot_code::CompiledSource;
use crate::loader::Loader;
use crate::loader::cache::Key;
use crate::loader::files::read_text;

impl Loader {
    pub fn cache_scripts(self: &Rc<Self>, runtime: &JsRuntime) {
        if !self.files.cache.is_on() {
            return;
        }
        let (reader, writer) = (self.clone(), self.clone());
        runtime.set_eval_context_code_cache_cbs(Some((
            Box::new(move |specifier, text| Ok(reader.script(specifier, text))),
            Box::new(move |specifier, hash, data| writer.write_compiled(&specifier, hash, data)),
        )));
    }

    /// Returns the code cache of a script. `text` is UTF-16.
    fn script(&self, specifier: &ModuleSpecifier, text: &[u16]) -> SourceCodeCacheInfo {
        let hash = hash_of(text);
        let data = self.compiled_by_hash(specifier, hash, || CompiledSource::Script);
        SourceCodeCacheInfo {
            hash,
            data: data.map(Cow::Owned),
        }
    }

    /// Returns the text that `require` compiled for a file, if the file still has it.
    pub(in crate::loader) fn required_text(
        &self,
        specifier: &ModuleSpecifier,
        key: Key,
    ) -> Option<String> {
        let text = read_text(&url_to_file_path(specifier).ok()?).ok()?;
        let is_it = |text: &String| self.compiled_key(specifier, hash_of_text(text)) == key;
        if is_it(&text) {
            return Some(text);
        }
        Some(self.files.in_ascii(specifier, text).text).filter(is_it)
    }
}

pub(in crate::loader) fn hash_of_text(text: &str) -> u64 {
    hash_of(&Vec::from_iter(text.encode_utf16()))
}

fn hash_of(text: &[u16]) -> u64 {
    let mut hasher = XxHash64::default();
    text.hash(&mut hasher);
    hasher.finish()
}
