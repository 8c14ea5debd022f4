//! Compiles extensions beside the JavaScript thread, which is still being made or has
//! others to run: it finds in the cache what was done before it came there.

use std::collections::HashSet;
use std::path::PathBuf;
use std::thread;

use deno_ast::MediaType;

use super::Loader;
use crate::cache::DiskCache;
use crate::local::STACK;

/// Extensions with their numbers, in the order in which they will be loaded.
pub(crate) fn compile_ahead(cache: &DiskCache, entries: Vec<(u32, PathBuf)>) {
    if !cache.is_on() || entries.is_empty() {
        return;
    }
    let cache = cache.clone();
    let thread = thread::Builder::new().name("js-ahead".into());
    // Without the thread it is done when it is needed.
    _ = thread.stack_size(STACK).spawn(move || {
        let (loader, _services) = Loader::new(cache);
        loader.files.disk.begin();
        compile(&loader, entries);
    });
}

fn compile(loader: &Loader, entries: Vec<(u32, PathBuf)>) {
    let mut seen = HashSet::new();
    for (id, path) in entries {
        let mut wanted = Vec::from_iter(loader.entry(id, &path));
        while let Some(url) = wanted.pop() {
            let is_typescript = MediaType::from_specifier(&url).is_emittable();
            if is_typescript && seen.insert(url.path().to_string()) {
                let mut imported = loader.emit_ahead(&url);
                // The first import first.
                imported.reverse();
                wanted.extend(imported);
            }
        }
    }
}
