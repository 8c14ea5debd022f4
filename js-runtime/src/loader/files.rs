//! State of files that resolution, `import` and `require` share: the cache, which files belong to
//! packages, which may be CommonJS, and their source maps.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use deno_path_util::url_to_file_path;
use deno_resolver::npm::DenoInNpmPackageChecker;
use js_runtime_ext::program_file_options;
use node_resolver::errors::PackageJsonLoadError;
use node_resolver::{InNpmPackageChecker, PackageJsonResolverRc};

use super::cache::external_string::Code;
use super::cache::manifest::ManifestRecorder;
use super::cache::memory::MemoryCache;
use super::cache::prefetched::Prefetched;
use super::disk::{Disk, SourceText};
use super::expected_files;
use super::transpile::ascii::V8Text;
use crate::attribution::load_input::digest;
use crate::attribution::sources::{COPY_QUERY, Sources};
use crate::loader::cache::{DiskCache, Key};

pub(crate) type Checker = DenoInNpmPackageChecker;

#[derive(Clone)]
pub(crate) struct Files {
    pub cache: DiskCache,
    pub disk: Disk,
    pub checker: Checker,
    pub package_json: PackageJsonResolverRc<Disk>,
    /// Texts of files that exist only in memory, by path.
    virtual_files: Rc<RefCell<HashMap<PathBuf, Arc<str>>>>,
    /// Sources that extensions are loaded from instead of their files.
    kept_sources: Rc<OnceCell<HashMap<u32, Sources>>>,
    /// Texts of modules that belong to such extensions.
    pinned: Rc<RefCell<HashMap<ModuleSpecifier, Arc<str>>>>,
    source_maps: Rc<RefCell<HashMap<String, SourceMap>>>,
    /// Keys of the ASCII texts that V8 has instead of files.
    pub ascii_key: Rc<RefCell<HashMap<String, Key>>>,
    pub recorder: Rc<ManifestRecorder>,
    pub prefetched: Prefetched,
    pub memory_cache: MemoryCache,
}

enum SourceMap {
    Cached(Key),
    /// The map is not in the cache.
    InMemory(String),
}

impl Files {
    pub fn new(
        cache: DiskCache,
        prefetched: Prefetched,
        disk: Disk,
        checker: Checker,
        package_json: PackageJsonResolverRc<Disk>,
    ) -> Self {
        let memory_cache = disk.memory_cache().clone();
        Self {
            cache,
            disk,
            checker,
            package_json,
            virtual_files: Rc::default(),
            kept_sources: Rc::default(),
            pinned: Rc::default(),
            source_maps: Rc::default(),
            ascii_key: Rc::default(),
            recorder: Rc::default(),
            prefetched,
            memory_cache,
        }
    }

    /// Returns the text of a module's file. `import("./x?v=2")` reads the file again.
    pub fn text_of(&self, specifier: &ModuleSpecifier) -> Result<Arc<str>, JsErrorBox> {
        Ok(self.source_of(specifier)?.text)
    }

    /// Returns the text of a module's file with its digest, as [`Self::text_of`] does.
    pub fn source_of(&self, specifier: &ModuleSpecifier) -> Result<SourceText, JsErrorBox> {
        let path = url_to_file_path(specifier).map_err(to_js_error)?;
        if let Some(text) = self.virtual_files.borrow().get(&path) {
            return Ok(SourceText {
                text: text.clone(),
                digest: digest(text.as_bytes()),
            });
        }
        if let Some(text) = self.pinned.borrow().get(specifier) {
            return Ok(SourceText {
                text: text.clone(),
                digest: digest(text.as_bytes()),
            });
        }
        match specifier.query() {
            Some(query) if !query.starts_with(COPY_QUERY) => read_source(&path),
            _ => self.disk.text(&path, read_source),
        }
    }

    /// Sets the text of a module, whatever the disk contains.
    pub fn add_virtual_file(&self, path: PathBuf, text: &str) {
        self.virtual_files.borrow_mut().insert(path, text.into());
    }

    /// Sets the sources that extensions are loaded from instead of their files. Called once, before
    /// the first load.
    pub fn set_kept_sources(&self, sources: HashMap<u32, Sources>) {
        // A second call would find modules that are loaded already.
        _ = self.kept_sources.set(sources);
    }

    /// Returns the sources that an extension is loaded from instead of its files.
    pub fn kept_sources(&self, extension: u32) -> Option<&Sources> {
        self.kept_sources.get()?.get(&extension)
    }

    /// Sets the text of a module of an extension that is loaded from kept sources.
    pub fn pin(&self, module: &ModuleSpecifier, text: Arc<str>) {
        self.pinned.borrow_mut().insert(module.clone(), text);
    }

    /// Returns true if the text of the module is not that of its file.
    pub fn is_pinned(&self, module: &ModuleSpecifier) -> bool {
        self.pinned.borrow().contains_key(module)
    }

    pub fn is_virtual(&self, path: &Path) -> bool {
        self.virtual_files.borrow().contains_key(path)
    }

    /// Returns true if jiti's rules apply: to all files but the JavaScript of packages.
    pub fn is_lenient(&self, specifier: &ModuleSpecifier) -> bool {
        specifier.scheme() == "file"
            && (!self.checker.in_npm_package(specifier)
                || MediaType::from_specifier(specifier).is_emittable())
    }

    /// Returns true if a file may be CommonJS by its name and package.json. The content decides.
    pub fn is_maybe_cjs(&self, specifier: &ModuleSpecifier) -> Result<bool, PackageJsonLoadError> {
        let Ok(path) = url_to_file_path(specifier) else {
            return Ok(false);
        };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("cjs" | "cts") => return Ok(true),
            Some("mjs" | "mts" | "json" | "wasm") => return Ok(false),
            _ => {}
        }
        let package_json = self.package_json.get_closest_package_json(&path)?;
        Ok(package_json.is_none_or(|package_json| package_json.typ != "module"))
    }

    /// Returns the text that V8 gets for a module or a script.
    pub fn code(&self, specifier: &ModuleSpecifier, text: V8Text) -> Code {
        self.note_ascii_key(specifier, text.ascii_key);
        Code::new(text.text, self.is_packaged(specifier))
    }

    pub fn note_ascii_key(&self, specifier: &ModuleSpecifier, ascii_key: Option<Key>) {
        if let Some(key) = ascii_key {
            let mut all = self.ascii_key.borrow_mut();
            all.insert(specifier.to_string(), key);
        }
    }

    pub fn is_packaged(&self, specifier: &ModuleSpecifier) -> bool {
        self.checker.in_npm_package(specifier)
    }

    pub fn remember_map(&self, specifier: &ModuleSpecifier, key: Key, map: Option<String>) {
        let map = match map {
            Some(map) if !self.cache.is_on() => SourceMap::InMemory(map),
            _ => SourceMap::Cached(key),
        };
        let mut maps = self.source_maps.borrow_mut();
        maps.insert(specifier.to_string(), map);
    }

    /// Remembers a map that is not in the cache.
    pub fn keep_map(&self, specifier: &ModuleSpecifier, map: String) {
        let mut maps = self.source_maps.borrow_mut();
        maps.insert(specifier.to_string(), SourceMap::InMemory(map));
    }

    /// Returns the cache key of a file's source map.
    pub fn cached_map(&self, file_name: &str) -> Option<Key> {
        match self.source_maps.borrow().get(file_name)? {
            SourceMap::Cached(key) => Some(*key),
            SourceMap::InMemory(_) => None,
        }
    }

    pub fn source_map(&self, file_name: &str) -> Option<Vec<u8>> {
        match self.source_maps.borrow().get(file_name)? {
            SourceMap::InMemory(map) => Some(map.clone().into_bytes()),
            SourceMap::Cached(key) => self.cache.read(*key, "map"),
        }
    }
}

pub(crate) fn read_text(path: &Path) -> Result<String, JsErrorBox> {
    Ok(read_with_digest(path)?.0)
}

fn read_source(path: &Path) -> Result<SourceText, JsErrorBox> {
    let (text, digest) = read_with_digest(path)?;
    let text = text.into();
    Ok(SourceText { text, digest })
}

/// Reads a text file. Returns its text and the digest of its bytes.
pub(crate) fn read_with_digest(path: &Path) -> Result<(String, u64), JsErrorBox> {
    let bytes = read_bytes(path).map_err(|e| io_error(path, &e))?;
    expected_files::check(path, &bytes).map_err(|e| io_error(path, &e))?;
    let digest = digest(&bytes);
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_string(),
        None => text,
    };
    Ok((text, digest))
}

/// Reads a file, on the prefetch thread or the thread of JavaScript.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = program_file_options().read(true).open(path)?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn io_error(path: &Path, error: &io::Error) -> JsErrorBox {
    JsErrorBox::generic(format!("Cannot read {}: {error}", path.display()))
}

pub(crate) fn to_js_error(error: impl std::fmt::Display) -> JsErrorBox {
    JsErrorBox::generic(error.to_string())
}
