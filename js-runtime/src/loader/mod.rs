//! Finds and loads modules.
//!
//! npm packages follow Node's rules exactly. Extensions' own files, and TypeScript anywhere, follow
//! the looser rules of jiti, which extensions are written for: missing file extensions,
//! directories, `./x.js` that is really `./x.ts`, JSON without import attributes, CommonJS names in
//! ES modules, imports of missing names. All results are available immediately, because `require`
//! of an ES module needs that.

pub(crate) mod cache;
mod disk;
pub(crate) mod expected_files;
mod files;
mod import_position;
mod interop;
pub(crate) mod preload;
mod resolve;
mod source_maps;
pub(crate) mod transpile;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
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

use self::cache::builtin_code::CompiledBuiltins;
use self::cache::hot_code::{CompiledSource, HOT, HotCode};
use self::cache::manifest::LoadStep;
pub use self::cache::memory::MemoryCache;
pub(crate) use self::cache::prefetched::Prefetched;
use self::cache::prefetched::{CacheItem, CachedModule, Dependencies, FileStamp};
use self::cache::{DiskCache, Key};
pub(crate) use self::disk::Disk;
use self::disk::SourceText;
use self::files::{Checker, Files, io_error, read_text, to_js_error};
use self::interop::cjs::{RequireLoader, Translator};
use self::interop::exports::{Analyses, Transpiled};
use self::interop::missing_exports::MissingExports;
use self::resolve::{FolderResolver, Resolver};
use self::transpile::ascii::V8Text;
use self::transpile::emit::Consulted;
use crate::attribution::imports::Imports;
use crate::attribution::load_input::digest;
use crate::attribution::sources::Sources;
use crate::node::inspector::is_inspected;

pub(crate) type NodeServices = NodeExtInitServices<Checker, FolderResolver, Disk>;

pub(crate) struct Loader {
    files: Files,
    resolver: Resolver,
    translator: Translator,
    analyses: Analyses,
    transpiled: Transpiled,
    hot_code: HotCode,
    compiled_builtins: CompiledBuiltins,
    /// Dependencies of the module that is being loaded, while they are recorded and all of them are
    /// known.
    consulted: RefCell<Option<Vec<Consulted>>>,
    /// Modules that were requested with `import()` and are not loaded yet, while they are recorded.
    dynamic_imports: RefCell<Option<Vec<ModuleSpecifier>>>,
    /// Modules that [`BUILTINS_MODULE`] will import.
    builtins: RefCell<Vec<String>>,
    /// Missing exports of all loaded modules.
    missing_exports: RefCell<MissingExports>,
    pub imports: Imports,
}

/// The file of a module, and what else determined its code.
struct ReadSources {
    file: FileStamp,
    /// Digest of the file.
    digest: u64,
    dependencies: Dependencies,
    /// Absent for files of packages.
    text: Option<Arc<str>>,
}

/// Name of a module that imports the built-in modules of the last start with the same extensions.
pub(crate) const BUILTINS_MODULE: &str = "pi:known";

impl Loader {
    pub fn new(cache: DiskCache, disk: Disk, prefetched: Prefetched) -> (Rc<Self>, NodeServices) {
        let imports = Imports::default();
        let (resolver, files) = Resolver::new(cache, disk, prefetched, imports.clone());
        let translator = interop::cjs::translator(&files, &resolver);
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
            hot_code: HotCode::default(),
            compiled_builtins: CompiledBuiltins::default(),
            consulted: RefCell::default(),
            dynamic_imports: RefCell::default(),
            builtins: RefCell::default(),
            missing_exports: RefCell::default(),
            imports,
        });
        (loader, services)
    }

    /// Starts the manifest of these extensions, which are loaded next.
    pub fn record_manifest(&self, entries: &[(u32, PathBuf)]) {
        self.files.recorder.begin(&self.files.cache, entries);
    }

    /// Sets the sources that extensions are loaded from instead of their files.
    pub fn set_kept_sources(&self, sources: HashMap<u32, Sources>) {
        // The extensions may not import all of their files this time.
        self.imports.set_sources(sources.clone());
        self.files.set_kept_sources(sources);
    }

    /// Returns the module to load for extension `id` at `path`.
    pub fn entry(&self, id: u32, path: &Path) -> Result<ModuleSpecifier, String> {
        self.resolver.entry(id, path)
    }

    /// Adds a module at `path` that exists only in memory.
    pub fn add_virtual_file(&self, path: PathBuf, code: &str) -> Result<ModuleSpecifier, String> {
        let url = url_from_file_path(&path).map_err(|error| error.to_string())?;
        self.files.add_virtual_file(path, code);
        Ok(url)
    }

    pub fn sweep_cache_soon(&self) {
        self.files.cache.sweep_soon();
    }

    /// Waits until compiled code is written to the disk, at most `limit`.
    pub fn flush_cache(&self, limit: Duration) {
        self.files.cache.flush(limit);
    }

    /// Returns the modules that `import()` is about to load.
    pub fn take_dynamic_imports(&self) -> Vec<ModuleSpecifier> {
        (self.dynamic_imports.borrow_mut().as_mut()).map_or_else(Vec::new, std::mem::take)
    }

    /// Takes over the prefetched list of built-in modules. Returns true if [`BUILTINS_MODULE`] has
    /// imports; only the first call does.
    pub fn take_builtins(&self) -> bool {
        let builtins = self.files.prefetched.take_builtins();
        let is_any = !builtins.is_empty();
        self.builtins.replace(builtins);
        is_any
    }

    /// Returns the module once; `None` for other importers.
    fn builtins_module(&self, specifier: &ModuleSpecifier) -> Option<ModuleSource> {
        let builtins = self.builtins.take();
        let code = builtins.iter().map(|name| format!("import {name:?};\n"));
        let code = code.collect::<String>();
        (!builtins.is_empty()).then(|| module(ModuleType::JavaScript, code, specifier, None))
    }

    fn source(
        &self,
        specifier: &ModuleSpecifier,
        requested: &RequestedModuleType,
    ) -> Result<ModuleSource, JsErrorBox> {
        if specifier.as_str() == BUILTINS_MODULE
            && let Some(builtins) = self.builtins_module(specifier)
        {
            return Ok(builtins);
        }
        if specifier.scheme() == "pi" {
            // deno_core has the texts of modules that exist.
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
        let path = url_to_file_path(specifier).map_err(to_js_error)?;
        if self.files.is_packaged(specifier) {
            self.imports.note_packaged(&path);
        }
        let media_type = MediaType::from_path(&path);
        if media_type == MediaType::Wasm {
            let bytes = std::fs::read(&path);
            let answer = bytes.as_deref().ok().map(digest);
            self.imports.note_content(&path, answer);
            let bytes = bytes.map_err(|e| io_error(&path, &e))?;
            expected_files::check(&path, &bytes).map_err(|e| io_error(&path, &e))?;
            let code = ModuleSourceCode::Bytes(bytes.into_boxed_slice().into());
            return Ok(ModuleSource::new(ModuleType::Wasm, code, specifier, None));
        }
        let is_javascript = *requested == RequestedModuleType::None
            && media_type != MediaType::Json
            && !media_type.is_declaration();
        if is_javascript {
            return self.javascript_source(specifier, &path, media_type);
        }
        let source = self.read_source(specifier, &path)?.text.to_string();
        let code = match requested {
            RequestedModuleType::Json => {
                return Ok(module(ModuleType::Json, source, specifier, None));
            }
            RequestedModuleType::Text => {
                return Ok(module(ModuleType::Text, source, specifier, None));
            }
            RequestedModuleType::None if media_type == MediaType::Json => {
                interop::json::module(specifier, &source)?
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
        if let Some(module) = self.prefetched(specifier, path) {
            return Ok(module);
        }
        let is_on_disk = !self.files.is_virtual(path) && !self.files.is_pinned(specifier);
        let file = FileStamp::of_settled(path).filter(|_| is_on_disk);
        let SourceText {
            text: source,
            digest,
        } = self.read_source(specifier, path)?;
        let (code, dependencies) =
            self.javascript_with_dependencies(specifier, media_type, &source)?;
        if is_inspected() {
            let map = self.files.source_map(specifier.as_str());
            let code = V8Text {
                text: source_maps::with_inline_map(code, map, &source),
                ascii_key: None,
            };
            return Ok(self.compiled_source(specifier, code, None));
        }
        let code = self.files.in_ascii(specifier, code);
        let text = (!self.files.is_packaged(specifier)).then_some(source);
        let sources = file.zip(dependencies);
        let sources = sources.map(|(file, dependencies)| ReadSources {
            file,
            digest,
            dependencies,
            text,
        });
        Ok(self.compiled_source(specifier, code, sources))
    }

    /// Reads the file of a module and records its digest and, for a module of an extension, its
    /// text.
    fn read_source(
        &self,
        specifier: &ModuleSpecifier,
        path: &Path,
    ) -> Result<SourceText, JsErrorBox> {
        let source = self.files.source_of(specifier);
        if !self.files.is_virtual(path) && !self.files.is_pinned(specifier) {
            let digest = source.as_ref().ok().map(|source| source.digest);
            self.imports.note_content(path, digest);
        }
        if let Ok(source) = &source {
            self.note_text(specifier, &source.text);
        }
        source
    }

    /// Records the text of a module of an extension.
    fn note_text(&self, specifier: &ModuleSpecifier, text: &Arc<str>) {
        if !self.files.is_packaged(specifier)
            && let Some(owner) = self.resolver.owner_of(specifier)
        {
            self.imports.note_text(owner, specifier, text);
        }
    }

    /// Makes a module of `code`.
    fn compiled_source(
        &self,
        specifier: &ModuleSpecifier,
        code: V8Text,
        sources: Option<ReadSources>,
    ) -> ModuleSource {
        let hash = code_hash(&self.files.cache, specifier, &code.text);
        let key = self.compiled_key(specifier, hash);
        let hot = self.files.cache.read(key, HOT);
        let data = match &hot {
            Some(_) => hot.clone(),
            None => {
                self.first_compiled(specifier, key, || CompiledSource::Module(code.text.clone()))
            }
        };
        let ascii_key = code.ascii_key;
        let code = self.files.code(specifier, code);
        if let Some((compiled, sources)) = hot.zip(sources) {
            let module = CachedModule {
                sources: vec![sources.file],
                digest: sources.digest,
                dependencies: Some(sources.dependencies),
                text: sources.text,
                code: code.clone(),
                ascii_key,
                map: self.files.cached_map(specifier.as_str()),
                missing_exports: self.missing_exports.borrow().for_module(specifier),
                hash,
                compiled,
            };
            let step = LoadStep::Module(specifier.to_string());
            self.files
                .memory_cache
                .insert(&step, &CacheItem::Module(module));
        }
        let cached = SourceCodeCacheInfo {
            hash,
            data: data.map(Cow::Owned),
        };
        module(ModuleType::JavaScript, code, specifier, Some(cached))
    }

    /// Returns a module that was prefetched, or is in the memory cache.
    fn prefetched(&self, specifier: &ModuleSpecifier, path: &Path) -> Option<ModuleSource> {
        let step = || LoadStep::Module(specifier.to_string());
        self.files.recorder.record(step);
        if is_inspected() || self.files.is_virtual(path) || self.files.is_pinned(specifier) {
            return None;
        }
        let found = self.files.prefetched.module(specifier);
        let found = found.or_else(|| self.cached_module(specifier))?;
        self.imports.note_content(path, Some(found.digest));
        if let Some(text) = &found.text {
            self.note_text(specifier, text);
        }
        if let Some(map) = found.map {
            self.files.remember_map(specifier, map, None);
        }
        self.files.note_ascii_key(specifier, found.ascii_key);
        self.note_missing_exports(specifier, found.missing_exports);
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
        if let Some(consulted) = &mut *self.consulted.borrow_mut() {
            consulted.push(Consulted::MaybeCjs {
                url: specifier.clone(),
                maybe: maybe_cjs,
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
            // An unchanged text is an ES module by its content only. It was made for bundlers, and
            // may use `require`.
            if let Cow::Owned(translated) = translated {
                // The exported names may come from other files.
                self.consulted.take();
                return Ok(translated);
            }
            lenient = true;
        }
        self.emit(specifier, source, lenient)
    }

    /// Returns the code cache of a text that is not an ES module in a file. V8 passes a number
    /// through that identifies the text.
    fn compiled_by_hash(
        &self,
        specifier: &ModuleSpecifier,
        hash: u64,
        text: impl FnOnce() -> CompiledSource,
    ) -> Option<Vec<u8>> {
        let key = self.compiled_key(specifier, hash);
        let step = LoadStep::CompiledCode(key);
        self.files.recorder.record(|| step.clone());
        let known =
            (self.files.prefetched.compiled(key)).or_else(|| self.files.memory_cache.compiled(key));
        if known.is_some() {
            return known;
        }
        let hot = self.files.cache.read(key, HOT);
        if let Some(hot) = &hot {
            self.files
                .memory_cache
                .insert(&step, &CacheItem::Compiled(hot.clone()));
        }
        hot.or_else(|| self.first_compiled(specifier, key, text))
    }

    /// Returns V8's code cache before execution, and notes that one after execution is to be made.
    fn first_compiled(
        &self,
        specifier: &ModuleSpecifier,
        key: Key,
        text: impl FnOnce() -> CompiledSource,
    ) -> Option<Vec<u8>> {
        if !self.files.cache.is_on() {
            return None;
        }
        self.hot_code.note(specifier, text, key);
        self.files.cache.read(key, "v8")
    }

    /// Stores a code cache when there was none, or V8 rejected it.
    fn write_compiled(&self, specifier: &ModuleSpecifier, hash: u64, data: &[u8]) {
        let key = self.compiled_key(specifier, hash);
        self.files.cache.write(key, "v8", data);
        self.files.cache.remove(key, HOT);
        self.files.memory_cache.remove(specifier, key);
    }

    /// Starts a load. The caller must call [`Self::end_load`] and [`Self::warm_up`] later.
    pub fn begin_load(&self, runtime: &mut JsRuntime) {
        self.files.disk.begin_load();
        self.files.disk.forget_missing();
        self.hot_code.begin();
        self.dynamic_imports.borrow_mut().get_or_insert_default();
        cache::locales::record_into(runtime.v8_isolate(), &self.files.recorder);
    }

    /// Ends the record of what an extension looks for while it is loaded. If the load has failed,
    /// what it looked for in packages counts as well.
    pub fn note_load_result(&self, is_loaded: bool) {
        if !is_loaded {
            self.files.disk.record_missing();
        }
        self.imports.finish_load();
    }

    /// Ends a load, because the loaded code may change what there is to load.
    pub fn end_load(&self) {
        self.files.disk.end_load();
    }

    /// Makes one code cache with the functions that ran; returns false if none is missing. Called
    /// when the extensions are idle.
    pub fn warm_up(&self, runtime: &mut JsRuntime) -> bool {
        self.end_load();
        let more = self.hot_code.make_next(runtime, self);
        if !more {
            cache::locales::stop_recording();
            self.files.prefetched.close();
            self.files.recorder.save(&self.files.cache);
        }
        more
    }

    fn compiled_key(&self, specifier: &ModuleSpecifier, hash: u64) -> Key {
        compiled_key(&self.files.cache, specifier, hash)
    }
}

/// Returns the hash of a module's code, which V8 passes through.
fn code_hash(cache: &DiskCache, specifier: &ModuleSpecifier, code: &str) -> u64 {
    let parts = [b"module", specifier.as_str().as_bytes(), code.as_bytes()];
    cache.key(&parts).number()
}

/// Returns the key of V8's code cache for a text with this hash.
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
            && let Some(dynamic_imports) = &mut *self.dynamic_imports.borrow_mut()
        {
            dynamic_imports.push(resolved.clone());
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
            // Imports with `import()` are not checked here.
            if kind == ResolutionKind::Import && attributes.is_empty() {
                let position = || import_position::position_of_import(specifier, referrer);
                resolve::check_file_extension(&resolved, position)?;
            }
        } else if referrer != BUILTINS_MODULE {
            self.files
                .recorder
                .record(|| LoadStep::Builtin(resolved.to_string()));
        }
        self.compile_builtins(scope, &resolved);
        Ok(resolved)
    }

    fn load(
        &self,
        specifier: &ModuleSpecifier,
        _referrer: Option<&ModuleLoadReferrer>,
        options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        let kind = options.requested_module_type;
        // A file that is `require`d may have any name.
        let is_code = options.is_dynamic_import && kind == RequestedModuleType::None;
        let checked = match is_code && specifier.scheme() == "file" {
            true => resolve::check_file_extension(specifier, || None),
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
        self.write_compiled(&specifier, hash, code_cache);
        async {}.boxed_local()
    }

    /// Returns the code cache of a polyfill of Node, which is compiled on first use. Its text is
    /// part of the program, so its name identifies it.
    fn get_code_cache(
        &self,
        specifier: &ModuleSpecifier,
        _source: &str,
    ) -> Option<SourceCodeCacheInfo> {
        Some(SourceCodeCacheInfo {
            hash: 0,
            data: self
                .compiled_by_hash(specifier, 0, || CompiledSource::Builtin)
                .map(Cow::Owned),
        })
    }

    fn get_source_map(&self, file_name: &str) -> Option<Cow<'_, [u8]>> {
        self.files.map_of(file_name).map(Cow::Owned)
    }

    fn load_external_source_map(&self, source_map_url: &str) -> Option<Cow<'_, [u8]>> {
        source_maps::external_map(source_map_url).map(Cow::Owned)
    }

    fn source_map_source_exists(&self, _source_url: &str) -> Option<bool> {
        // deno_core asks for maps that `get_source_map` returned, and for those inside a file.
        Some(true)
    }

    fn get_source_mapped_source_line(&self, file_name: &str, line_number: usize) -> Option<String> {
        let url = ModuleSpecifier::parse(file_name).ok()?;
        let source: Arc<str> = match self.files.is_pinned(&url) {
            true => self.files.text_of(&url).ok()?,
            false => read_text(&url_to_file_path(&url).ok()?).ok()?.into(),
        };
        source.lines().nth(line_number).map(str::to_string)
    }
}

/// Loads `import("data:text/javascript,…")`.
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
