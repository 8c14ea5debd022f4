//! Finds and loads modules.
//!
//! npm packages follow Node's rules exactly. Extensions' own files, and TypeScript
//! anywhere, follow the looser rules of jiti, which extensions are written for:
//! missing file extensions, directories, `./x.js` that is really `./x.ts`, JSON
//! without import attributes, CommonJS names in ES modules, imports of names that
//! are not there. All answers are immediate: `require` of an ES module needs that.

#[path = "interop/missing_exports.rs"]
mod absent;
#[path = "resolve/hints.rs"]
mod advice;
#[path = "cache/prefetch.rs"]
pub(crate) mod ahead;
#[path = "transpile/ascii.rs"]
mod ascii;
#[path = "interop/cjs.rs"]
mod cjs;
#[path = "interop/compat.rs"]
mod compat;
mod disk;
#[path = "transpile/emit.rs"]
mod emit;
#[path = "transpile/enums.rs"]
mod enums;
#[path = "transpile/ascii_escapes.rs"]
mod escapes;
#[path = "interop/exports.rs"]
mod exports;
mod files;
#[path = "interop/json.rs"]
mod json;
#[path = "cache/memory.rs"]
mod kept;
#[path = "transpile/import_equals.rs"]
mod legacy;
#[path = "cache/locales.rs"]
mod locales;
#[path = "source_maps.rs"]
mod maps;
#[path = "transpile/column_map.rs"]
mod moves;
#[path = "import_position.rs"]
mod position;
#[path = "cache/prefetched.rs"]
mod prepared;
#[path = "cache/builtin_code.rs"]
mod prime;
#[path = "resolve/mod.rs"]
mod resolve;
#[path = "cache/script_code.rs"]
mod scripts;
#[path = "resolve/scan_imports.rs"]
mod statements;
#[path = "cache/external_string.rs"]
mod texts;
#[path = "cache/manifest.rs"]
mod trail;
#[path = "interop/import_usage.rs"]
mod uses;
#[path = "cache/hot_code.rs"]
mod warm;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use data_url::DataUrl;
use deno_ast::MediaType;
use deno_core::{
    JsRuntime, ModuleCodeString, ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse,
    ModuleLoader, ModuleSource, ModuleSourceCode, ModuleSpecifier, ModuleType, RequestedModuleType,
    ResolutionKind, SourceCodeCacheInfo, v8,
};
use deno_error::JsErrorBox;
use deno_path_util::{url_from_file_path, url_to_file_path};
use deno_runtime::deno_node::NodeExtInitServices;
use futures::FutureExt;

use self::absent::AbsentNames;
use self::cjs::{RequireLoader, Translator};
pub(crate) use self::disk::Disk;
use self::emit::Consulted;
pub(crate) use self::emit::EMIT_SETTINGS;
use self::exports::{Analyses, Transpiled};
use self::files::{Checker, Files, error, io_error, read_text};
pub use self::kept::Kept;
pub(crate) use self::prepared::Prepared;
use self::prepared::{Found, Module, Stamp, Terms};
use self::prime::Primed;
use self::resolve::{FolderResolver, Resolver};
use self::trail::Step;
use self::warm::{HOT, Text, Warm};
use crate::cache::{DiskCache, Key};
use crate::imports::Imports;
use crate::inspector::{is_inspected, with_map};

pub(crate) type NodeServices = NodeExtInitServices<Checker, FolderResolver, Disk>;

pub(crate) struct Loader {
    files: Files,
    resolver: Resolver,
    translator: Translator,
    analyses: Analyses,
    transpiled: Transpiled,
    warm: Warm,
    primed: Primed,
    /// What had a say in the text of the module that is being looked up, if somebody wants
    /// to know and it can be told.
    witnessed: RefCell<Option<Vec<Consulted>>>,
    /// What was asked for with `import()` and has not begun to be loaded, if somebody wants
    /// to know.
    coming: RefCell<Option<Vec<ModuleSpecifier>>>,
    /// What [`KNOWN`] will import.
    known: RefCell<Vec<String>>,
    /// What modules import that is not there, since somebody asked.
    absent: RefCell<AbsentNames>,
    pub imports: Imports,
}

/// A module that imports what the last start with the same extensions imported of the program.
pub(crate) const KNOWN: &str = "pi:known";

impl Loader {
    pub fn new(cache: DiskCache, disk: Disk, prepared: Prepared) -> (Rc<Self>, NodeServices) {
        let imports = Imports::default();
        let (resolver, files) = Resolver::new(cache, disk, prepared, imports.clone());
        let translator = cjs::translator(&files, &resolver);
        let services = NodeExtInitServices {
            node_require_loader: Rc::new(RequireLoader {
                files: files.clone(),
                imports: imports.clone(),
            }),
            node_resolver: resolver.node.clone(),
            pkg_json_resolver: files.package_json.clone(),
            sys: files.disk.clone(),
        };
        let loader = Rc::new(Self {
            files,
            resolver,
            translator,
            analyses: Analyses::default(),
            transpiled: Transpiled::default(),
            warm: Warm::default(),
            primed: Primed::default(),
            witnessed: RefCell::default(),
            coming: RefCell::default(),
            known: RefCell::default(),
            absent: RefCell::default(),
            imports,
        });
        (loader, services)
    }

    /// What is loaded next are these extensions.
    pub fn begin_set(&self, entries: &[(u32, PathBuf)]) {
        self.files.trail.begin(&self.files.cache, entries);
    }

    /// The module to load for extension `id` at `path`.
    pub fn entry(&self, id: u32, path: &Path) -> Result<ModuleSpecifier, String> {
        self.resolver.entry(id, path)
    }

    /// Code that is in no file, as if it were in `path`.
    pub fn give(&self, path: PathBuf, code: &str) -> Result<ModuleSpecifier, String> {
        let url = url_from_file_path(&path).map_err(|error| error.to_string())?;
        self.files.give(path, code);
        Ok(url)
    }

    pub fn sweep_cache_soon(&self) {
        self.files.cache.sweep_soon();
    }

    /// What was compiled has this long to get onto the disk.
    pub fn settle_cache(&self, limit: Duration) {
        self.files.cache.settle(limit);
    }

    /// What is about to be loaded for `import()`.
    pub fn coming(&self) -> Vec<ModuleSpecifier> {
        (self.coming.borrow_mut().as_mut()).map_or_else(Vec::new, std::mem::take)
    }

    /// Whether there is anything in [`KNOWN`]. Afterwards there is not.
    pub fn takes_known(&self) -> bool {
        let known = self.files.prepared.known();
        let is_any = !known.is_empty();
        self.known.replace(known);
        is_any
    }

    /// `None` for whoever else imports it.
    fn known_imports(&self, specifier: &ModuleSpecifier) -> Option<ModuleSource> {
        let known = self.known.take();
        let code = known.iter().map(|name| format!("import {name:?};\n"));
        let code = code.collect::<String>();
        (!known.is_empty()).then(|| module(ModuleType::JavaScript, code, specifier, None))
    }

    fn source(
        &self,
        specifier: &ModuleSpecifier,
        requested: &RequestedModuleType,
    ) -> Result<ModuleSource, JsErrorBox> {
        if specifier.as_str() == KNOWN
            && let Some(known) = self.known_imports(specifier)
        {
            return Ok(known);
        }
        if specifier.scheme() == "pi" {
            // deno_core has the texts of those that there are.
            return Err(JsErrorBox::generic(format!(
                "{specifier} is not a module of this program"
            )));
        }
        if specifier.scheme() == "data" {
            return data_module(specifier);
        }
        if specifier.scheme() == "node" {
            return Err(JsErrorBox::generic(format!(
                "[ERR_UNKNOWN_BUILTIN_MODULE] No such built-in module: {specifier}"
            )));
        }
        if specifier.scheme() != "file" {
            return Err(JsErrorBox::generic(format!(
                "Cannot load {specifier}: only files and packages can be imported"
            )));
        }
        let path = url_to_file_path(specifier).map_err(error)?;
        if self.files.is_packaged(specifier) {
            self.imports.note_packaged(&path);
        }
        let media_type = MediaType::from_path(&path);
        if media_type == MediaType::Wasm {
            let bytes = std::fs::read(&path).map_err(|e| io_error(&path, &e))?;
            let code = ModuleSourceCode::Bytes(bytes.into_boxed_slice().into());
            return Ok(ModuleSource::new(ModuleType::Wasm, code, specifier, None));
        }
        let is_javascript = *requested == RequestedModuleType::None
            && media_type != MediaType::Json
            && !media_type.is_declaration();
        if is_javascript {
            return self.javascript_source(specifier, &path, media_type);
        }
        let source = self.files.text_of(specifier)?.to_string();
        let code = match requested {
            RequestedModuleType::Json => {
                return Ok(module(ModuleType::Json, source, specifier, None));
            }
            RequestedModuleType::Text => {
                return Ok(module(ModuleType::Text, source, specifier, None));
            }
            RequestedModuleType::None if media_type == MediaType::Json => {
                json::module(specifier, &source)?
            }
            RequestedModuleType::None => String::new(),
            _ => {
                return Err(JsErrorBox::type_error(format!(
                    "{specifier} is imported with an attribute that is not supported: use \
                     \"json\" or \"text\""
                )));
            }
        };
        Ok(self.compiled_source(specifier, self.files.in_ascii(specifier, code), None))
    }

    fn javascript_source(
        &self,
        specifier: &ModuleSpecifier,
        path: &Path,
        media_type: MediaType,
    ) -> Result<ModuleSource, JsErrorBox> {
        if let Some(module) = self.prepared(specifier, path) {
            return Ok(module);
        }
        let file = Stamp::of(path).filter(|_| !self.files.is_given(path));
        let source = self.files.text_of(specifier)?;
        let (code, terms) = self.javascript_on(specifier, media_type, &source)?;
        if is_inspected() {
            let map = self.files.source_map(specifier.as_str());
            let code = ascii::Text {
                text: with_map(code, map, &source),
                instead: None,
            };
            return Ok(self.compiled_source(specifier, code, None));
        }
        let code = self.files.in_ascii(specifier, code);
        Ok(self.compiled_source(specifier, code, file.zip(terms)))
    }

    /// `made_of` is the file, and what else had a say in `code`.
    fn compiled_source(
        &self,
        specifier: &ModuleSpecifier,
        code: ascii::Text,
        made_of: Option<(Stamp, Terms)>,
    ) -> ModuleSource {
        let hash = code_hash(&self.files.cache, specifier, &code.text);
        let key = self.compiled_key(specifier, hash);
        let hot = self.files.cache.read(key, HOT);
        let data = match &hot {
            Some(_) => hot.clone(),
            None => self.first_compiled(specifier, key, || Text::Module(code.text.clone())),
        };
        let instead = code.instead;
        let code = self.files.code(specifier, code);
        if let Some((compiled, (file, terms))) = hot.zip(made_of) {
            let module = Module {
                made_of: vec![file],
                terms: Some(terms),
                code: code.clone(),
                instead,
                map: self.files.cached_map(specifier.as_str()),
                absent: self.absent.borrow().of(specifier),
                hash,
                compiled,
            };
            let step = Step::Module(specifier.to_string());
            self.files.kept.keep(&step, &Found::Module(module));
        }
        let cached = SourceCodeCacheInfo {
            hash,
            data: data.map(Cow::Owned),
        };
        module(ModuleType::JavaScript, code, specifier, Some(cached))
    }

    /// What another thread has found before (`ahead.rs`).
    fn prepared(&self, specifier: &ModuleSpecifier, path: &Path) -> Option<ModuleSource> {
        let step = || Step::Module(specifier.to_string());
        self.files.trail.note(step);
        if is_inspected() || self.files.is_given(path) {
            return None;
        }
        let found = self.files.prepared.module(specifier);
        let found = found.or_else(|| self.kept_module(specifier))?;
        if let Some(map) = found.map {
            self.files.remember_map(specifier, map, None);
        }
        self.files.note_instead(specifier, found.instead);
        self.note_absent(specifier, found.absent);
        let cached = SourceCodeCacheInfo {
            hash: found.hash,
            data: Some(Cow::Owned(found.compiled)),
        };
        let kind = ModuleType::JavaScript;
        Some(module(kind, found.code, specifier, Some(cached)))
    }

    /// Returns the text that V8 gets for a module whose file contains `source`.
    fn javascript(
        &self,
        specifier: &ModuleSpecifier,
        media_type: MediaType,
        source: &str,
    ) -> Result<String, JsErrorBox> {
        let mut lenient = self.files.is_lenient(specifier);
        if media_type.is_emittable() {
            return self.emit(specifier, source, lenient);
        }
        let maybe_cjs = self.files.is_maybe_cjs(specifier);
        let maybe_cjs = maybe_cjs.map_err(JsErrorBox::from_err)?;
        if let Some(witnessed) = &mut *self.witnessed.borrow_mut() {
            witnessed.push(Consulted::MaybeCjs {
                url: specifier.clone(),
                answer: maybe_cjs,
            });
        }
        if maybe_cjs {
            let translated = self
                .translator
                .translate_cjs_to_esm_with_source_provider(
                    specifier,
                    Some(Cow::Borrowed(source)),
                    Some(&self.files),
                )
                .now_or_never()
                .ok_or_else(|| JsErrorBox::generic("the analysis of CommonJS did not finish"))?
                .map_err(JsErrorBox::from_err)?;
            // What comes back as it went in is an ES module. Nothing but its words says so:
            // it was made for bundlers, and may have `require`.
            if let Cow::Owned(translated) = translated {
                // Its names may come from other files.
                self.witnessed.take();
                return Ok(translated);
            }
            lenient = true;
        }
        self.emit(specifier, source, lenient)
    }

    /// The same for what is no ES module in a file. V8 passes a number through that
    /// identifies the text.
    fn compiled_by_hash(
        &self,
        specifier: &ModuleSpecifier,
        hash: u64,
        text: impl FnOnce() -> Text,
    ) -> Option<Vec<u8>> {
        let key = self.compiled_key(specifier, hash);
        let step = Step::Compiled(key);
        self.files.trail.note(|| step.clone());
        let known = (self.files.prepared.compiled(key)).or_else(|| self.files.kept.compiled(key));
        if known.is_some() {
            return known;
        }
        let hot = self.files.cache.read(key, HOT);
        if let Some(hot) = &hot {
            self.files.kept.keep(&step, &Found::Compiled(hot.clone()));
        }
        hot.or_else(|| self.first_compiled(specifier, key, text))
    }

    /// V8's code cache without what ran. One with it is to be made.
    fn first_compiled(
        &self,
        specifier: &ModuleSpecifier,
        key: Key,
        text: impl FnOnce() -> Text,
    ) -> Option<Vec<u8>> {
        if !self.files.cache.is_on() {
            return None;
        }
        self.warm.note(specifier, text, key);
        self.files.cache.read(key, "v8")
    }

    /// There is no code cache, or V8 did not take it.
    fn keep_compiled(&self, specifier: &ModuleSpecifier, hash: u64, data: &[u8]) {
        let key = self.compiled_key(specifier, hash);
        self.files.cache.write(key, "v8", data);
        self.files.cache.remove(key, HOT);
        self.files.kept.forget(specifier, key);
    }

    /// Whoever says this says [`Self::end_load`] and [`Self::warm_up`] later.
    pub fn begin_load(&self, runtime: &mut JsRuntime) {
        self.files.disk.begin();
        self.warm.begin();
        self.coming.borrow_mut().get_or_insert_default();
        locales::watch(runtime.v8_isolate(), &self.files.trail);
    }

    /// What was loaded may change what there is to load.
    pub fn end_load(&self) {
        self.files.disk.end();
    }

    /// Makes a cache with what ran; `false` if none is missing. For times of rest.
    pub fn warm_up(&self, runtime: &mut JsRuntime) -> bool {
        self.end_load();
        let more = self.warm.next(runtime, self);
        if !more {
            locales::unwatch();
            self.files.prepared.end();
            self.files.trail.keep(&self.files.cache);
        }
        more
    }

    fn compiled_key(&self, specifier: &ModuleSpecifier, hash: u64) -> Key {
        compiled_key(&self.files.cache, specifier, hash)
    }
}

/// Of a module. V8 passes it through.
fn code_hash(cache: &DiskCache, specifier: &ModuleSpecifier, code: &str) -> u64 {
    let parts = [b"module", specifier.as_str().as_bytes(), code.as_bytes()];
    cache.key(&parts).number()
}

/// By which V8's code cache of a text with this hash is found.
fn compiled_key(cache: &DiskCache, specifier: &ModuleSpecifier, hash: u64) -> Key {
    let name = specifier.as_str().as_bytes();
    cache.key(&[b"compiled", name, &hash.to_le_bytes()])
}

impl ModuleLoader for Loader {
    fn resolve(
        &self,
        specifier: &str,
        referrer: &str,
        kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let resolved = self.resolver.resolve(specifier, referrer)?;
        let is_data = || {
            let media_type = MediaType::from_specifier(&resolved);
            matches!(media_type, MediaType::Json | MediaType::Wasm)
        };
        if kind == ResolutionKind::DynamicImport
            && resolved.scheme() == "file"
            && !is_data()
            && let Some(coming) = &mut *self.coming.borrow_mut()
        {
            coming.push(resolved.clone());
        }
        Ok(resolved)
    }

    fn import_meta_resolve(
        &self,
        specifier: &str,
        referrer: &str,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        self.resolver.resolve_name(specifier, referrer)
    }

    fn resolve_with_scope(
        &self,
        scope: &mut v8::PinScope,
        specifier: &str,
        referrer: &str,
        kind: ResolutionKind,
        attributes: &HashMap<String, String>,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let resolved = self.resolve(specifier, referrer, kind)?;
        if resolved.scheme() == "file" {
            // With `import()` they are not told here.
            if kind == ResolutionKind::Import && attributes.is_empty() {
                let place = || position::of_import(specifier, referrer);
                resolve::check_name(&resolved, place)?;
            }
        } else if referrer != KNOWN {
            self.files.trail.note(|| Step::Known(resolved.to_string()));
        }
        self.prime(scope, &resolved);
        Ok(resolved)
    }

    fn load(
        &self,
        specifier: &ModuleSpecifier,
        _referrer: Option<&ModuleLoadReferrer>,
        options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        let kind = options.requested_module_type;
        // What is required may have any name.
        let is_code = options.is_dynamic_import && kind == RequestedModuleType::None;
        let checked = match is_code && specifier.scheme() == "file" {
            true => resolve::check_name(specifier, || None),
            false => Ok(()),
        };
        ModuleLoadResponse::Sync(checked.and_then(|()| self.source(specifier, &kind)))
    }

    fn code_cache_ready(
        &self,
        specifier: ModuleSpecifier,
        hash: u64,
        code_cache: &[u8],
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        self.keep_compiled(&specifier, hash, code_cache);
        async {}.boxed_local()
    }

    /// For the node: polyfills, which are compiled on first use. Their text is part
    /// of the program, so their names identify it.
    fn get_code_cache(
        &self,
        specifier: &ModuleSpecifier,
        _source: &str,
    ) -> Option<SourceCodeCacheInfo> {
        Some(SourceCodeCacheInfo {
            hash: 0,
            data: self
                .compiled_by_hash(specifier, 0, || Text::OfTheProgram)
                .map(Cow::Owned),
        })
    }

    fn get_source_map(&self, file_name: &str) -> Option<Cow<'_, [u8]>> {
        self.files.map_of(file_name).map(Cow::Owned)
    }

    fn load_external_source_map(&self, source_map_url: &str) -> Option<Cow<'_, [u8]>> {
        maps::external(source_map_url).map(Cow::Owned)
    }

    fn source_map_source_exists(&self, _source_url: &str) -> Option<bool> {
        // Asked for maps that came through above, and for those inside a file.
        Some(true)
    }

    fn get_source_mapped_source_line(&self, file_name: &str, line_number: usize) -> Option<String> {
        let url = ModuleSpecifier::parse(file_name).ok()?;
        let source = read_text(&url_to_file_path(&url).ok()?).ok()?;
        source.lines().nth(line_number).map(str::to_string)
    }
}

/// `import("data:text/javascript,…")`
fn data_module(specifier: &ModuleSpecifier) -> Result<ModuleSource, JsErrorBox> {
    let wrong = |error: &dyn std::fmt::Display| {
        JsErrorBox::type_error(format!("Cannot load a data: URL: {error}"))
    };
    let url = DataUrl::process(specifier.as_str()).map_err(|e| wrong(&e))?;
    let mime = url.mime_type();
    let module_type = match (mime.type_.as_str(), mime.subtype.as_str()) {
        ("text" | "application", "javascript" | "ecmascript") => ModuleType::JavaScript,
        ("application", "json") => ModuleType::Json,
        (kind, subtype) => return Err(wrong(&format!("{kind}/{subtype} is not JavaScript"))),
    };
    let (bytes, _fragment) = url.decode_to_vec().map_err(|e| wrong(&e))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(module(module_type, text, specifier, None))
}

fn module(
    module_type: ModuleType,
    code: impl Into<ModuleCodeString>,
    specifier: &ModuleSpecifier,
    code_cache: Option<SourceCodeCacheInfo>,
) -> ModuleSource {
    let code = ModuleSourceCode::String(code.into());
    ModuleSource::new(module_type, code, specifier, code_cache)
}
