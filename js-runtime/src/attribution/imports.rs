//! Records the files from which the code of each extension was loaded, and what its load looked
//! for. The record outlives the isolate, because files are watched after it is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use js_runtime_ext::Author;
use tokio::sync::Notify;

use crate::attribution::load_input::{InputAnswer, InputKind, LoadInput, is_within_package};
use crate::attribution::sources::Sources;

/// Maximum number of files of packages of which the contents are recorded.
const MAX_PACKAGED_CONTENTS: usize = 2000;

/// Files by extension. Files of packages, which all extensions share, are kept apart. The record
/// grows while extensions import more.
#[derive(Clone, Debug, Default)]
pub struct Imports(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    files: HashMap<u32, BTreeSet<PathBuf>>,
    /// The files of all extensions.
    own: HashSet<PathBuf>,
    packaged: HashSet<PathBuf>,
    /// Number of files of packages of which the content is recorded.
    packaged_contents: usize,
    /// First answers, by the extension that asked; `None` if several may have.
    inputs: HashMap<Option<u32>, BTreeMap<LoadInput, InputAnswer>>,
    sources: HashMap<u32, Sources>,
    /// Extension that is being loaded. Files that are required meanwhile belong to it.
    loading: Option<u32>,
    changed: Arc<Notify>,
    /// Called for every new entry of the record.
    observer: Option<Box<Observer>>,
}

type Observer = dyn Fn(Recorded<'_>) + Send;

/// A new entry of the record.
pub(crate) enum Recorded<'a> {
    File {
        extension: u32,
        path: &'a Path,
    },
    Packaged(&'a Path),
    Input {
        /// `None` if several extensions may have asked.
        extension: Option<u32>,
        input: &'a LoadInput,
        answer: InputAnswer,
    },
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.files.fmt(f)
    }
}

impl Inner {
    fn note(&mut self, extension: u32, file: &Path) {
        let files = self.files.entry(extension).or_default();
        if !files.insert(file.to_path_buf()) {
            return;
        }
        self.own.insert(file.to_path_buf());
        self.changed.notify_one();
        if let Some(observer) = &self.observer {
            let path = file;
            observer(Recorded::File { extension, path });
        }
    }

    fn note_input(&mut self, extension: Option<u32>, input: LoadInput, answer: InputAnswer) {
        let inputs = self.inputs.entry(extension).or_default();
        // Code of the first answer stays loaded.
        if inputs.contains_key(&input) {
            return;
        }
        if let Some(observer) = &self.observer {
            observer(Recorded::Input {
                extension,
                input: &input,
                answer,
            });
        }
        inputs.insert(input, answer);
        self.changed.notify_one();
    }
}

impl Imports {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn files_of(&self, extension: u32) -> Vec<PathBuf> {
        let inner = self.inner();
        let files = inner.files.get(&extension).into_iter().flatten();
        files.cloned().collect()
    }

    /// Returns the files of packages that `extension` may have loaded: those that are found from
    /// the folders of its own files.
    pub fn packages_of(&self, extension: u32) -> Vec<PathBuf> {
        let inner = self.inner();
        let Some(own) = inner.files.get(&extension) else {
            return Vec::new();
        };
        let is_found = |file: &&PathBuf| {
            install_folders(file).any(|home| own.iter().any(|own| own.starts_with(home)))
        };
        inner.packaged.iter().filter(is_found).cloned().collect()
    }

    /// Returns what the loads read or looked for, with the answers that they got. Of the files of
    /// packages these are the first 2,000.
    pub fn inputs(&self) -> Vec<(LoadInput, InputAnswer)> {
        let inner = self.inner();
        let inputs = inner.inputs.values().flatten();
        inputs
            .map(|(input, answer)| (input.clone(), *answer))
            .collect()
    }

    /// Returns what the load of one extension looked for, and the contents of its files; see
    /// [`Self::inputs`].
    pub fn inputs_of(&self, extension: u32) -> Vec<(LoadInput, InputAnswer)> {
        let inner = self.inner();
        let own = inner.inputs.get(&Some(extension)).into_iter().flatten();
        let files = inner.files.get(&extension);
        let is_file = |path: &PathBuf| files.is_some_and(|files| files.contains(path));
        let shared = inner.inputs.get(&None).into_iter().flatten();
        let contents = shared.filter(|(input, _)| is_file(&input.path));
        own.chain(contents)
            .map(|(input, answer)| (input.clone(), *answer))
            .collect()
    }

    /// Records what an extension read or looked for; see [`Self::inputs`].
    pub fn note_input(&self, extension: Option<u32>, input: LoadInput, answer: InputAnswer) {
        self.inner().note_input(extension, input, answer);
    }

    /// Records the digest of a file that was read.
    pub(crate) fn note_content(&self, file: &Path, digest: InputAnswer) {
        let mut inner = self.inner();
        let is_packaged = is_within_package(file) && !inner.own.contains(file);
        if !is_packaged || inner.packaged_contents < MAX_PACKAGED_CONTENTS {
            inner.packaged_contents += usize::from(is_packaged);
            let input = LoadInput::new(InputKind::Content, file);
            inner.note_input(None, input, digest);
        }
    }

    /// Returns the extension that is being loaded.
    pub(crate) fn loading(&self) -> Option<u32> {
        self.inner().loading
    }

    /// Resolves when something was added since the last call.
    pub fn changed(&self) -> impl Future<Output = ()> + use<> {
        let changed = self.inner().changed.clone();
        async move { changed.notified().await }
    }

    /// Returns the extension of which a file is named first in `text`.
    pub fn extension_of(&self, text: &str) -> Option<u32> {
        self.extensions_of(text).first().copied()
    }

    /// Returns all extensions that have the file which is named first in `text`.
    fn extensions_of(&self, text: &str) -> Vec<u32> {
        let inner = self.inner();
        let named = inner.files.iter().flat_map(|(id, files)| {
            let offsets = files.iter().filter_map(|file| text.find(file.to_str()?));
            offsets.map(move |offset| (offset, *id))
        });
        let mut named: Vec<(usize, u32)> = named.collect();
        named.sort_unstable();
        let first = named.first().map(|(offset, _)| *offset);
        named.retain(|(offset, _)| Some(*offset) == first);
        named.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns the author of code by its stack: of the extensions that have the first file in
    /// `stack`, the one that is `marked`. Without such a file the mark decides.
    pub(crate) fn author(&self, stack: &str, marked: Option<Author>) -> Option<Author> {
        let authors = self.extensions_of(stack);
        let is_one = |author: &Author| authors.is_empty() || authors.contains(&author.id);
        marked.filter(is_one).or_else(|| {
            // The activity is not known.
            let what = String::new();
            authors.first().map(|&id| Author { id, what })
        })
    }

    /// Returns the extension that owns a script: one that has the file, or the only one that finds
    /// its package.
    pub(crate) fn owner(&self, script: &str) -> Option<u32> {
        let url = ModuleSpecifier::parse(script).ok()?;
        if let Some(copy) = url.query().and_then(|query| query.strip_prefix("copy=")) {
            return copy.parse().ok();
        }
        let path = url_to_file_path(&url).ok()?;
        let inner = self.inner();
        let has = |files: &BTreeSet<PathBuf>| files.contains(&path);
        // Extensions that import the file later get a copy.
        let own = inner.files.iter().filter(|(_, files)| has(files));
        if let Some((id, _)) = own.min_by_key(|(id, _)| **id) {
            return Some(*id);
        }
        // Node finds the nearest folder first.
        install_folders(&path).find_map(|folder| {
            let finds = |(id, files): (&u32, &BTreeSet<PathBuf>)| {
                let is_below = files.iter().any(|file| file.starts_with(folder));
                is_below.then_some(*id)
            };
            let mut found = inner.files.iter().filter_map(finds);
            let first = found.next()?;
            Some(found.next().is_none().then_some(first))
        })?
    }

    pub(crate) fn begin_load(&self, extension: u32) {
        self.inner().loading = Some(extension);
    }

    pub(crate) fn end_load(&self, extension: u32) {
        let loading = &mut self.inner().loading;
        loading.take_if(|loading| *loading == extension);
    }

    /// Like [`Self::end_load`], for the extension that is being loaded.
    pub(crate) fn finish_load(&self) {
        self.inner().loading = None;
    }

    /// Returns the sources of all extensions.
    pub(crate) fn sources(&self) -> HashMap<u32, Sources> {
        self.inner().sources.clone()
    }

    /// Sets the sources of extensions before they are loaded.
    pub(crate) fn set_sources(&self, sources: HashMap<u32, Sources>) {
        self.inner().sources = sources;
    }

    pub(crate) fn note_entry(&self, extension: u32, entry: &ModuleSpecifier) {
        let sources = &mut self.inner().sources;
        sources.entry(extension).or_default().note_entry(entry);
    }

    /// Records the text from which a module of an extension is loaded.
    pub(crate) fn note_text(&self, extension: u32, module: &ModuleSpecifier, text: &Arc<str>) {
        let sources = &mut self.inner().sources;
        sources
            .entry(extension)
            .or_default()
            .note_text(module, text);
    }

    /// Records what an import in a module of an extension resolved to.
    pub(crate) fn note_target(
        &self,
        extension: u32,
        importer: &ModuleSpecifier,
        specifier: &str,
        target: &ModuleSpecifier,
    ) {
        let sources = &mut self.inner().sources;
        let sources = sources.entry(extension).or_default();
        sources.note_target(importer, specifier, target);
    }

    /// Records the text of a file that is `require`d by the extension that is being loaded.
    pub(crate) fn note_required_text(&self, file: &Path, text: &Arc<str>) {
        if let Some(extension) = self.loading()
            && let Ok(url) = ModuleSpecifier::from_file_path(file)
        {
            self.note_text(extension, &url, text);
        }
    }

    pub(crate) fn note(&self, extension: u32, file: PathBuf) {
        self.inner().note(extension, &file);
    }

    pub(crate) fn note_packaged(&self, file: &Path) {
        let mut inner = self.inner();
        if inner.packaged.insert(file.to_path_buf())
            && let Some(observer) = &inner.observer
        {
            observer(Recorded::Packaged(file));
        }
    }

    /// Calls `observer` for every new entry from now on.
    pub(crate) fn observe(&self, observer: Box<Observer>) {
        self.inner().observer = Some(observer);
    }

    /// Records a file that is `require`d by the extension that is being loaded.
    pub(crate) fn note_required(&self, file: &Path) {
        if install_folders(file).next().is_some() {
            return self.note_packaged(file);
        }
        let mut inner = self.inner();
        if let Some(extension) = inner.loading {
            inner.note(extension, file);
        }
    }
}

/// Returns the folders from which the package of a file is found, the nearest first.
fn install_folders(file: &Path) -> impl Iterator<Item = &Path> {
    let packages = file.ancestors();
    let packages = packages.filter(|folder| folder.ends_with("node_modules"));
    packages.filter_map(Path::parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_owner_has_the_file_or_finds_the_package() {
        let imports = Imports::default();
        for (id, file) in [
            (1, "/a/one.ts"),
            (1, "/a/lib.ts"),
            (2, "/p/node_modules/two/index.ts"),
            (3, "/p/node_modules/three/index.ts"),
            (3, "/a/lib.ts"),
        ] {
            imports.note(id, file.into());
        }
        for (script, owner) in [
            ("file:///a/one.ts", Some(1)),
            ("file:///a/lib.ts", Some(1)),
            ("file:///a/lib.ts?copy=3", Some(3)),
            ("file:///b/one.ts", None),
            ("ext:core/mod.js", None),
            (
                "file:///p/node_modules/two/node_modules/x/index.js",
                Some(2),
            ),
            // Two extensions find the package.
            ("file:///p/node_modules/x/index.js", None),
            ("file:///p/node_modules/x/node_modules/y/index.js", None),
            ("file:///q/node_modules/x/index.js", None),
        ] {
            assert_eq!(imports.owner(script), owner, "{script}");
        }
    }

    #[test]
    fn author_has_the_first_file_of_the_stack() {
        let imports = Imports::default();
        imports.note(1, "/a/one.ts".into());
        imports.note(2, "/a/lib/two.ts".into());
        imports.begin_load(2);
        imports.note_required(Path::new("/a/lib/three.cjs"));
        imports.note_required(Path::new("/a/node_modules/x/index.js"));
        imports.end_load(2);
        imports.note_required(Path::new("/a/late.cjs"));
        let stack = "Error: no\n at x (/a/node_modules/x/index.js:1:1)\n at /a/lib/three.cjs:1:1";
        assert_eq!(imports.extension_of(stack), Some(2));
        let stack = format!("{stack}\n at /a/one.ts:1:1");
        assert_eq!(imports.extension_of(&stack), Some(2));
        assert_eq!(imports.extension_of("at /a/one.ts"), Some(1));
        assert_eq!(imports.extension_of("at /a/late.cjs"), None);
        // A mark decides where the stack names no other extension.
        let marked = |id, what: &str| {
            let what = what.into();
            Some(Author { id, what })
        };
        imports.note(3, "/a/one.ts".into());
        let author = |stack: &str| imports.author(stack, marked(3, "load"));
        assert_eq!(author("at /a/lib/two.ts"), marked(2, ""));
        assert_eq!(author("at /a/one.ts"), marked(3, "load"));
        assert_eq!(author("at nowhere"), marked(3, "load"));
        assert_eq!(imports.author("at /a/one.ts", None), marked(1, ""));
        let files = ["/a/lib/three.cjs", "/a/lib/two.ts"];
        assert_eq!(imports.files_of(2), files.map(PathBuf::from));
        let packaged = ["/a/node_modules/x/index.js"].map(PathBuf::from);
        assert_eq!(imports.packages_of(2), packaged);
        imports.note(4, "/b/four.ts".into());
        assert!(imports.packages_of(4).is_empty());
    }
}
