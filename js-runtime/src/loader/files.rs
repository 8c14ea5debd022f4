//! What resolving, `import` and `require` share about files: the cache, what is a
//! package, what may be CommonJS, and where the source maps are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use deno_path_util::url_to_file_path;
use deno_resolver::npm::DenoInNpmPackageChecker;
use node_resolver::errors::PackageJsonLoadError;
use node_resolver::{InNpmPackageChecker, PackageJsonResolverRc};

use super::ascii::Text;
use super::disk::Disk;
use super::kept::Kept;
use super::prepared::Prepared;
use super::texts::Code;
use super::trail::Trail;
use crate::cache::{DiskCache, Key};

pub(crate) type Checker = DenoInNpmPackageChecker;

/// Tells a second copy of a module from the first.
pub(super) const COPY: &str = "copy=";

#[derive(Clone)]
pub(crate) struct Files {
    pub cache: DiskCache,
    pub disk: Disk,
    pub checker: Checker,
    pub package_json: PackageJsonResolverRc<Disk>,
    /// Code that is in no file, by where it would be.
    given: Rc<RefCell<HashMap<PathBuf, Arc<str>>>>,
    source_maps: Rc<RefCell<HashMap<String, SourceMap>>>,
    /// Files of which V8 has another text, in ASCII.
    pub instead: Rc<RefCell<HashMap<String, Key>>>,
    pub trail: Rc<Trail>,
    pub prepared: Prepared,
    pub kept: Kept,
}

enum SourceMap {
    Cached(Key),
    /// Nothing is cached.
    Here(String),
}

impl Files {
    pub fn new(
        cache: DiskCache,
        prepared: Prepared,
        disk: Disk,
        checker: Checker,
        package_json: PackageJsonResolverRc<Disk>,
    ) -> Self {
        let kept = disk.kept().clone();
        Self {
            cache,
            disk,
            checker,
            package_json,
            given: Rc::default(),
            source_maps: Rc::default(),
            instead: Rc::default(),
            trail: Rc::default(),
            prepared,
            kept,
        }
    }

    /// What the file of a module says; `import("./x?v=2")` asks for it as it is now.
    pub fn text_of(&self, specifier: &ModuleSpecifier) -> Result<Arc<str>, JsErrorBox> {
        let path = url_to_file_path(specifier).map_err(error)?;
        if let Some(text) = self.given.borrow().get(&path) {
            return Ok(text.clone());
        }
        match specifier.query() {
            Some(query) if !query.starts_with(COPY) => read_text(&path).map(Arc::from),
            _ => self.disk.text(&path, read_text),
        }
    }

    /// [`Self::text_of`] the module there is this, whatever the disk says.
    pub fn give(&self, path: PathBuf, text: &str) {
        self.given.borrow_mut().insert(path, text.into());
    }

    pub fn is_given(&self, path: &Path) -> bool {
        self.given.borrow().contains_key(path)
    }

    /// Whether jiti's rules hold: for everything but the JavaScript of packages.
    pub fn is_lenient(&self, specifier: &ModuleSpecifier) -> bool {
        specifier.scheme() == "file"
            && (!self.checker.in_npm_package(specifier)
                || MediaType::from_specifier(specifier).is_emittable())
    }

    /// By name and package.json; the contents have the last word.
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

    /// What V8 is to have of a module or a script.
    pub fn code(&self, specifier: &ModuleSpecifier, text: Text) -> Code {
        self.note_instead(specifier, text.instead);
        Code::new(text.text, self.is_packaged(specifier))
    }

    pub fn note_instead(&self, specifier: &ModuleSpecifier, instead: Option<Key>) {
        if let Some(key) = instead {
            let mut all = self.instead.borrow_mut();
            all.insert(specifier.to_string(), key);
        }
    }

    pub fn is_packaged(&self, specifier: &ModuleSpecifier) -> bool {
        self.checker.in_npm_package(specifier)
    }

    pub fn remember_map(&self, specifier: &ModuleSpecifier, key: Key, map: Option<String>) {
        let map = match map {
            Some(map) if !self.cache.is_on() => SourceMap::Here(map),
            _ => SourceMap::Cached(key),
        };
        let mut maps = self.source_maps.borrow_mut();
        maps.insert(specifier.to_string(), map);
    }

    /// Of what is not in the cache.
    pub fn keep_map(&self, specifier: &ModuleSpecifier, map: String) {
        let mut maps = self.source_maps.borrow_mut();
        maps.insert(specifier.to_string(), SourceMap::Here(map));
    }

    /// By which the map of a file is found in the cache.
    pub fn cached_map(&self, file_name: &str) -> Option<Key> {
        match self.source_maps.borrow().get(file_name)? {
            SourceMap::Cached(key) => Some(*key),
            SourceMap::Here(_) => None,
        }
    }

    pub fn source_map(&self, file_name: &str) -> Option<Vec<u8>> {
        match self.source_maps.borrow().get(file_name)? {
            SourceMap::Here(map) => Some(map.clone().into_bytes()),
            SourceMap::Cached(key) => self.cache.read(*key, "map"),
        }
    }
}

pub(crate) fn read_text(path: &Path) -> Result<String, JsErrorBox> {
    let bytes = std::fs::read(path).map_err(|e| io_error(path, &e))?;
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_string(),
        None => text,
    })
}

pub(crate) fn io_error(path: &Path, error: &std::io::Error) -> JsErrorBox {
    JsErrorBox::generic(format!("Cannot read {}: {error}", path.display()))
}

pub(crate) fn error(error: impl std::fmt::Display) -> JsErrorBox {
    JsErrorBox::generic(error.to_string())
}
