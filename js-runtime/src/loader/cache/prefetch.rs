//! Works beside the JavaScript thread, which is still being made or has others to run:
//! what was loaded the last time is read and looked up in the cache before it comes there,
//! and extensions that are new are compiled.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use deno_path_util::url_to_file_path;
use node_resolver::InNpmPackageChecker;

use super::emit::Consulted;
use super::files::read_text;
use super::prepared::{Found, Module, Prepared, Stamp, Terms, Text};
use super::trail::{self, Step};
use super::warm::HOT;
use super::{Disk, Loader, code_hash};
use crate::cache::DiskCache;
use crate::local::STACK;

/// For extensions with their numbers, in the order in which they will be loaded.
/// What it sees of `disk` nobody has to look for again.
pub(crate) fn work_ahead(cache: &DiskCache, disk: &Disk, entries: Vec<(u32, PathBuf)>) -> Prepared {
    if !cache.is_on() || entries.is_empty() {
        return Prepared::default();
    }
    // From here on: whoever loads them ends it.
    disk.begin();
    let (cache, disk) = (cache.clone(), disk.beside());
    let ours = Prepared::begin();
    let prepared = ours.clone();
    let thread = thread::Builder::new().name("js-ahead".into());
    // Without the thread it is done when it is needed.
    _ = thread.stack_size(STACK).spawn(move || {
        let mut steps = trail::kept(&cache, &entries);
        let known = steps.extract_if(.., |step| matches!(step, Step::Known(_)));
        prepared.expect(known.filter_map(Step::known).collect());
        let (loader, _services) = Loader::new(cache, disk, Prepared::default());
        let mut seen = HashSet::new();
        for step in steps {
            if prepared.is_over() {
                return;
            }
            if prepared.is_wanted(&step)
                && let Some(found) = loader.kept_or_prepared(&step)
            {
                if let (Step::Module(url), Found::Module(_)) = (&step, &found) {
                    seen.extend(ModuleSpecifier::parse(url));
                }
                prepared.put(step, found);
            }
        }
        compile(&loader, entries, seen);
    });
    ours
}

/// What was not `seen` before of the files that these extensions consist of.
fn compile(loader: &Loader, entries: Vec<(u32, PathBuf)>, mut seen: HashSet<ModuleSpecifier>) {
    for (id, path) in entries {
        let mut wanted = Vec::from_iter(loader.entry(id, &path));
        while let Some(url) = wanted.pop() {
            let is_typescript = MediaType::from_specifier(&url).is_emittable();
            if is_typescript && seen.insert(url.clone()) {
                let mut imported = loader.emit_ahead(&url);
                // The first import first.
                imported.reverse();
                wanted.extend(imported);
            }
        }
    }
}

impl Loader {
    fn kept_or_prepared(&self, step: &Step) -> Option<Found> {
        let kept = match step {
            Step::Module(url) => {
                let url = ModuleSpecifier::parse(url).ok()?;
                self.kept_module(&url).map(Found::Module)
            }
            step => self.files.kept.found(step),
        };
        kept.or_else(|| {
            let found = self.prepare(step)?;
            self.files.kept.keep(step, &found);
            Some(found)
        })
    }

    pub(super) fn kept_module(&self, specifier: &ModuleSpecifier) -> Option<Module> {
        let found = self
            .files
            .kept
            .found(&Step::Module(specifier.to_string()))?;
        let Found::Module(module) = found else {
            return None;
        };
        // Where its imports lead had a say in its text.
        let terms = module.terms.as_ref()?;
        self.are_current(&terms.ways, specifier).then_some(module)
    }

    fn prepare(&self, step: &Step) -> Option<Found> {
        match step {
            Step::Module(url) => self.prepare_module(url).map(Found::Module),
            Step::Text(path) => self.prepare_text(path).map(Found::Text),
            Step::Compiled(key) => self.files.cache.read(*key, HOT).map(Found::Compiled),
            Step::Locales(rules) => {
                rules.look_up();
                None
            }
            Step::Path(path) => {
                self.files.disk.probe(path);
                None
            }
            Step::Package { name, referrer } => {
                // Whoever imports it is told what is wrong.
                _ = self.resolver.find(name, referrer);
                None
            }
            Step::Known(_) => None,
        }
    }

    fn prepare_text(&self, path: &Path) -> Option<Text> {
        let media_type = MediaType::from_path(path);
        if media_type.is_emittable() || media_type.is_declaration() {
            return None;
        }
        let file = Stamp::of(path)?;
        let text = read_text(path).ok()?;
        let url = ModuleSpecifier::from_file_path(path).ok()?;
        let text = self.files.in_ascii(&url, text);
        Some(Text {
            file,
            instead: text.instead,
            code: self.files.code(&url, text),
        })
    }

    fn prepare_module(&self, url: &str) -> Option<Module> {
        let specifier = ModuleSpecifier::parse(url).ok()?;
        let path = url_to_file_path(&specifier).ok()?;
        let mut made_of = vec![Stamp::of(&path)?];
        let source = self.files.text_of(&specifier).ok()?;
        let media_type = MediaType::from_path(&path);
        let (code, terms) = self.javascript_on(&specifier, media_type, &source).ok()?;
        for file in terms.iter().flat_map(|terms| &terms.files) {
            // What is in packages is not written while they are loaded.
            let url = ModuleSpecifier::from_file_path(file.path()).ok()?;
            if !self.files.checker.in_npm_package(&url) {
                made_of.push(file.clone());
            }
        }
        let absent = self.absent.borrow_mut().take().into_iter();
        let absent = absent.flat_map(|(_, absent)| absent);
        let code = self.files.in_ascii(&specifier, code);
        let hash = code_hash(&self.files.cache, &specifier, &code.text);
        let key = self.compiled_key(&specifier, hash);
        Some(Module {
            made_of,
            terms,
            map: self.files.cached_map(specifier.as_str()),
            absent: absent.collect(),
            hash,
            compiled: self.files.cache.read(key, HOT)?,
            instead: code.instead,
            code: self.files.code(&specifier, code),
        })
    }

    /// With what had a say in it, if it can be told.
    pub(super) fn javascript_on(
        &self,
        specifier: &ModuleSpecifier,
        media_type: MediaType,
        source: &str,
    ) -> Result<(String, Option<Terms>), JsErrorBox> {
        self.witnessed.replace(Some(Vec::new()));
        let code = self.javascript(specifier, media_type, source);
        let terms = self.witnessed.take().and_then(terms);
        Ok((code?, terms))
    }
}

/// `None` if a file was changed just now.
fn terms(witnessed: Vec<Consulted>) -> Option<Terms> {
    let mut terms = Terms::default();
    for consulted in witnessed {
        match consulted {
            Consulted::Contents { path, .. } => terms.files.push(Stamp::of(&path)?),
            other => terms.ways.push(other),
        }
    }
    Some(terms)
}
