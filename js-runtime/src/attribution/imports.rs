//! Which files the code of each extension came from. Outlives the isolate: whoever
//! wants to know when a file has changed asks when the code is gone.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use js_runtime_ext::{Author, EXTENSIONS};
use tokio::sync::Notify;

/// Files by extension, and what is missing; those of packages, which all share, apart. Grows
/// while extensions import more.
#[derive(Clone, Debug, Default)]
pub struct Imports(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    files: HashMap<u32, BTreeSet<PathBuf>>,
    packaged: HashSet<PathBuf>,
    /// Who is being loaded: what is required is theirs.
    loading: Option<u32>,
    grown: Arc<Notify>,
    /// Is told of every file.
    witness: Option<Box<Witness>>,
}

/// Without an extension it is a file of a package.
type Witness = dyn Fn(Option<u32>, &Path) + Send;

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
        self.grown.notify_one();
        if let Some(witness) = &self.witness {
            witness(Some(extension), file);
        }
    }
}

impl Imports {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn of(&self, extension: u32) -> Vec<PathBuf> {
        let inner = self.inner();
        let files = inner.files.get(&extension).into_iter().flatten();
        files.cloned().collect()
    }

    /// The files of packages that an extension may have had a part in loading: those that are
    /// found from where its own are.
    pub fn packaged_of(&self, extension: u32) -> Vec<PathBuf> {
        let inner = self.inner();
        let Some(own) = inner.files.get(&extension) else {
            return Vec::new();
        };
        let is_found = |file: &&PathBuf| {
            homes_of(file).any(|home| own.iter().any(|own| own.starts_with(home)))
        };
        inner.packaged.iter().filter(is_found).cloned().collect()
    }

    /// When there is another file since this was asked last.
    pub fn grown(&self) -> impl Future<Output = ()> + use<> {
        let grown = self.inner().grown.clone();
        async move { grown.notified().await }
    }

    /// A file that is imported and is not there: it matters when it appears.
    pub(crate) fn note_missing(&self, extension: u32, path: &Path) {
        let mut inner = self.inner();
        inner.note(extension, path);
        for suffix in EXTENSIONS {
            let mut name = path.as_os_str().to_owned();
            name.push(".");
            name.push(suffix);
            inner.note(extension, Path::new(&name));
        }
    }

    /// The extension one of whose files is named first in `text`.
    pub fn author_of(&self, text: &str) -> Option<u32> {
        self.authors_of(text).first().copied()
    }

    /// All that have the file which is named first.
    fn authors_of(&self, text: &str) -> Vec<u32> {
        let inner = self.inner();
        let named = inner.files.iter().flat_map(|(id, files)| {
            let places = files.iter().filter_map(|file| text.find(file.to_str()?));
            places.map(move |place| (place, *id))
        });
        let mut named: Vec<(usize, u32)> = named.collect();
        named.sort_unstable();
        let first = named.first().map(|(place, _)| *place);
        named.retain(|(place, _)| Some(*place) == first);
        named.into_iter().map(|(_, id)| id).collect()
    }

    /// Whose code it is: of those whose file is the first in `stack` the one that is
    /// `marked`. Without such a file the mark says.
    pub(crate) fn author(&self, stack: &str, marked: Option<Author>) -> Option<Author> {
        let authors = self.authors_of(stack);
        let is_one = |author: &Author| authors.is_empty() || authors.contains(&author.id);
        marked.filter(is_one).or_else(|| {
            // What for is not known.
            let what = String::new();
            authors.first().map(|&id| Author { id, what })
        })
    }

    /// Whose script it is, if it is one extension's: a file that it has, or one of a package
    /// that nobody else finds from where they are.
    pub(crate) fn owner(&self, script: &str) -> Option<u32> {
        let url = ModuleSpecifier::parse(script).ok()?;
        if let Some(copy) = url.query().and_then(|query| query.strip_prefix("copy=")) {
            return copy.parse().ok();
        }
        let path = url_to_file_path(&url).ok()?;
        let inner = self.inner();
        let has = |files: &BTreeSet<PathBuf>| files.contains(&path);
        // Who comes later has a copy.
        let own = inner.files.iter().filter(|(_, files)| has(files));
        if let Some((id, _)) = own.min_by_key(|(id, _)| **id) {
            return Some(*id);
        }
        // What is nearest is found first.
        homes_of(&path).find_map(|folder| {
            let finds = |(id, files): (&u32, &BTreeSet<PathBuf>)| {
                let is_below = files.iter().any(|file| file.starts_with(folder));
                is_below.then_some(*id)
            };
            let mut found = inner.files.iter().filter_map(finds);
            let first = found.next()?;
            Some(found.next().is_none().then_some(first))
        })?
    }

    pub(crate) fn begin(&self, extension: u32) {
        self.inner().loading = Some(extension);
    }

    pub(crate) fn end(&self, extension: u32) {
        let loading = &mut self.inner().loading;
        loading.take_if(|loading| *loading == extension);
    }

    pub(crate) fn note(&self, extension: u32, file: PathBuf) {
        self.inner().note(extension, &file);
    }

    pub(crate) fn note_packaged(&self, file: &Path) {
        let mut inner = self.inner();
        if inner.packaged.insert(file.to_path_buf())
            && let Some(witness) = &inner.witness
        {
            witness(None, file);
        }
    }

    /// `witness` is told of every file from now on.
    pub(crate) fn tell(&self, witness: Box<Witness>) {
        self.inner().witness = Some(witness);
    }

    /// `require`d by whoever is being loaded.
    pub(crate) fn note_required(&self, file: &Path) {
        if homes_of(file).next().is_some() {
            return self.note_packaged(file);
        }
        let mut inner = self.inner();
        if let Some(extension) = inner.loading {
            inner.note(extension, file);
        }
    }
}

/// The folders from which the package that a file belongs to is found, the nearest first.
fn homes_of(file: &Path) -> impl Iterator<Item = &Path> {
    let packages = file.ancestors();
    let packages = packages.filter(|folder| folder.ends_with("node_modules"));
    packages.filter_map(Path::parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_whose_file_it_is_or_whose_packages_are_found_there() {
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
            // Both find it.
            ("file:///p/node_modules/x/index.js", None),
            ("file:///p/node_modules/x/node_modules/y/index.js", None),
            ("file:///q/node_modules/x/index.js", None),
        ] {
            assert_eq!(imports.owner(script), owner, "{script}");
        }
    }

    #[test]
    fn the_author_is_whose_file_comes_first() {
        let imports = Imports::default();
        imports.note(1, "/a/one.ts".into());
        imports.note(2, "/a/lib/two.ts".into());
        imports.begin(2);
        imports.note_required(Path::new("/a/lib/three.cjs"));
        imports.note_required(Path::new("/a/node_modules/x/index.js"));
        imports.end(2);
        imports.note_required(Path::new("/a/late.cjs"));
        let stack = "Error: no\n at x (/a/node_modules/x/index.js:1:1)\n at /a/lib/three.cjs:1:1";
        assert_eq!(imports.author_of(stack), Some(2));
        let stack = format!("{stack}\n at /a/one.ts:1:1");
        assert_eq!(imports.author_of(&stack), Some(2));
        assert_eq!(imports.author_of("at /a/one.ts"), Some(1));
        assert_eq!(imports.author_of("at /a/late.cjs"), None);
        // A mark counts where the stack says nothing else.
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
        assert_eq!(imports.of(2), files.map(PathBuf::from));
        let packaged = ["/a/node_modules/x/index.js"].map(PathBuf::from);
        assert_eq!(imports.packaged_of(2), packaged);
        imports.note(4, "/b/four.ts".into());
        assert!(imports.packaged_of(4).is_empty());
    }
}
