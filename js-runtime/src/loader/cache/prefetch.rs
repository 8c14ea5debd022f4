//! Prefetches on a thread while the isolate starts or runs other code: reads what the last start
//! loaded, looks it up in the cache, and compiles extensions that are new.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use deno_path_util::url_to_file_path;
use node_resolver::InNpmPackageChecker;

use super::hot_code::HOT;
use super::manifest::{self, LoadStep};
use super::prefetched::{CacheItem, CachedModule, CachedText, Dependencies, FileStamp, Prefetched};
use crate::limits::process_limits::JS_STACK_SIZE;
use crate::loader::cache::DiskCache;
use crate::loader::disk::SourceText;
use crate::loader::files::read_with_digest;
use crate::loader::transpile::emit::Consulted;
use crate::loader::{Disk, Loader, code_hash};

/// Starts to prefetch extensions, given with their ids in the order in which they will be loaded.
/// The JavaScript thread does not repeat lookups that went through `disk`.
pub(crate) fn start_prefetch(
    cache: &DiskCache,
    disk: &Disk,
    entries: Vec<(u32, PathBuf)>,
) -> Prefetched {
    if !cache.is_on() || entries.is_empty() {
        return Prefetched::default();
    }
    // The load of the extensions ends this state.
    disk.begin_load();
    let (cache, disk) = (cache.clone(), disk.for_prefetch());
    let result = Prefetched::open();
    let prefetched = result.clone();
    let thread = thread::Builder::new().name("js-prefetch".into());
    // Without the thread the work is done when it is needed.
    _ = thread.stack_size(JS_STACK_SIZE).spawn(move || {
        let mut steps = manifest::read_manifest(&cache, &entries);
        let builtins = steps.extract_if(.., |step| matches!(step, LoadStep::Builtin(_)));
        prefetched.set_builtins(builtins.filter_map(LoadStep::into_builtin).collect());
        let (loader, _services) = Loader::new(cache, disk, Prefetched::default());
        let mut seen = HashSet::new();
        for step in steps {
            if prefetched.is_closed() {
                return;
            }
            if prefetched.is_missing(&step)
                && let Some(found) = loader.cached_or_prefetched(&step)
            {
                if let (LoadStep::Module(url), CacheItem::Module(_)) = (&step, &found) {
                    seen.extend(ModuleSpecifier::parse(url));
                }
                prefetched.insert(step, found);
            }
        }
        compile_new(&loader, entries, seen);
    });
    result
}

/// Compiles the files of these extensions that were not `seen` before.
fn compile_new(loader: &Loader, entries: Vec<(u32, PathBuf)>, mut seen: HashSet<ModuleSpecifier>) {
    for (id, path) in entries {
        let mut queue = Vec::from_iter(loader.entry(id, &path));
        while let Some(url) = queue.pop() {
            let is_typescript = MediaType::from_specifier(&url).is_emittable();
            if is_typescript && seen.insert(url.clone()) {
                let mut imported = loader.emit_for_prefetch(&url);
                // The first import is compiled first.
                imported.reverse();
                queue.extend(imported);
            }
        }
    }
}

impl Loader {
    fn cached_or_prefetched(&self, step: &LoadStep) -> Option<CacheItem> {
        let cached = match step {
            LoadStep::Module(url) => {
                let url = ModuleSpecifier::parse(url).ok()?;
                self.cached_module(&url).map(CacheItem::Module)
            }
            step => self.files.memory_cache.get(step),
        };
        cached.or_else(|| {
            let found = self.prefetch(step)?;
            self.files.memory_cache.insert(step, &found);
            Some(found)
        })
    }

    pub(in crate::loader) fn cached_module(
        &self,
        specifier: &ModuleSpecifier,
    ) -> Option<CachedModule> {
        let found = self
            .files
            .memory_cache
            .get(&LoadStep::Module(specifier.to_string()))?;
        let CacheItem::Module(module) = found else {
            return None;
        };
        // The targets of the imports influence the text.
        let dependencies = module.dependencies.as_ref()?;
        self.are_unchanged(&dependencies.lookups, specifier)
            .then_some(module)
    }

    fn prefetch(&self, step: &LoadStep) -> Option<CacheItem> {
        match step {
            LoadStep::Module(url) => self.prefetch_module(url).map(CacheItem::Module),
            LoadStep::Text(path) => self.prefetch_text(path).map(CacheItem::Text),
            LoadStep::CompiledCode(key) => {
                self.files.cache.read(*key, HOT).map(CacheItem::Compiled)
            }
            LoadStep::Locales(rules) => {
                rules.load();
                None
            }
            LoadStep::Path(path) => {
                self.files.disk.probe(path);
                None
            }
            LoadStep::Package { name, referrer } => {
                // An error is reported to the code that imports it.
                _ = self.resolver.find(name, referrer);
                None
            }
            LoadStep::Builtin(_) => None,
        }
    }

    fn prefetch_text(&self, path: &Path) -> Option<CachedText> {
        let media_type = MediaType::from_path(path);
        if media_type.is_emittable() || media_type.is_declaration() {
            return None;
        }
        let file = FileStamp::of_settled(path)?;
        let (text, digest) = read_with_digest(path).ok()?;
        let url = ModuleSpecifier::from_file_path(path).ok()?;
        let source = (!self.files.is_packaged(&url)).then(|| Arc::from(text.as_str()));
        let text = self.files.in_ascii(&url, text);
        Some(CachedText {
            file,
            digest,
            source,
            ascii_key: text.ascii_key,
            code: self.files.code(&url, text),
        })
    }

    fn prefetch_module(&self, url: &str) -> Option<CachedModule> {
        let specifier = ModuleSpecifier::parse(url).ok()?;
        let path = url_to_file_path(&specifier).ok()?;
        let mut sources = vec![FileStamp::of_settled(&path)?];
        let SourceText {
            text: source,
            digest,
        } = self.files.source_of(&specifier).ok()?;
        let media_type = MediaType::from_path(&path);
        let (code, dependencies) = self
            .javascript_with_dependencies(&specifier, media_type, &source)
            .ok()?;
        for file in dependencies
            .iter()
            .flat_map(|dependencies| &dependencies.files)
        {
            // Files of packages do not change while they are loaded.
            let url = ModuleSpecifier::from_file_path(file.path()).ok()?;
            if !self.files.checker.in_npm_package(&url) {
                sources.push(file.clone());
            }
        }
        let missing_exports = self.missing_exports.borrow_mut().take().into_iter();
        let missing_exports = missing_exports.flat_map(|(_, missing_exports)| missing_exports);
        let code = self.files.in_ascii(&specifier, code);
        let hash = code_hash(&self.files.cache, &specifier, &code.text);
        let key = self.compiled_key(&specifier, hash);
        Some(CachedModule {
            sources,
            digest,
            dependencies,
            text: (!self.files.is_packaged(&specifier)).then_some(source),
            map: self.files.cached_map(specifier.as_str()),
            missing_exports: missing_exports.collect(),
            hash,
            compiled: self.files.cache.read(key, HOT)?,
            ascii_key: code.ascii_key,
            code: self.files.code(&specifier, code),
        })
    }

    /// Returns the JavaScript of a module, and its dependencies if they are known.
    pub(in crate::loader) fn javascript_with_dependencies(
        &self,
        specifier: &ModuleSpecifier,
        media_type: MediaType,
        source: &str,
    ) -> Result<(String, Option<Dependencies>), JsErrorBox> {
        self.consulted.replace(Some(Vec::new()));
        let code = self.javascript(specifier, media_type, source);
        let dependencies = self.consulted.take().and_then(dependencies);
        Ok((code?, dependencies))
    }
}

/// Returns `None` if a file was changed just before.
fn dependencies(consulted: Vec<Consulted>) -> Option<Dependencies> {
    let mut dependencies = Dependencies::default();
    for consulted in consulted {
        match consulted {
            Consulted::Contents { path, .. } => {
                dependencies.files.push(FileStamp::of_settled(&path)?)
            }
            other => dependencies.lookups.push(other),
        }
    }
    Some(dependencies)
}
