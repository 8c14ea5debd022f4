//! Remembers what resolution has read from the disk. Real paths and the content of `package.json`
//! files are remembered as long as the code runs, as by Node; file contents and import targets only
//! while a set of extensions is loaded. Missing files are not remembered, since they may be
//! installed, except for a `package.json` in a folder within a package, which each `require` looks
//! for.

use std::borrow::{Borrow, Cow};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::Hash;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deno_core::ModuleSpecifier;
use deno_package_json::{PackageJsonCache, PackageJsonCacheResult, PackageJsonRc};
use js_runtime_ext::{directory, probe};
use node_resolver::cache::NodeResolutionCache;
use pi_base::regular_file;
use sys_traits::impls::RealSys;
use sys_traits::{
    BaseEnvVar, BaseFsCanonicalize, BaseFsMetadata, BaseFsOpen, BaseFsRead, BaseFsReadDir,
    EnvCurrentDir, FileType, OpenOptions,
};

use super::cache::memory::MemoryCache;

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    seen: Arc<Mutex<Seen>>,
    // `None` when the loaded code may have been called.
    targets: Arc<Mutex<Option<ImportTargets>>>,
    contents: Arc<Mutex<Option<Contents>>>,
    memory_cache: MemoryCache,
}

#[derive(Debug, Default)]
struct Seen {
    real: HashMap<PathBuf, PathBuf>,
    kinds: HashMap<PathBuf, FileType>,
    package_json: HashMap<PathBuf, Option<PackageJsonRc>>,
}

/// Targets of imports.
#[derive(Debug, Default)]
struct ImportTargets {
    probed: HashMap<PathBuf, Probed>,
    packages: HashMap<(String, String), ModuleSpecifier>,
}

#[derive(Debug, Default)]
struct Contents {
    texts: HashMap<PathBuf, Arc<str>>,
    hashes: HashMap<PathBuf, u64>,
}

/// The file to which a path resolves.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    pub path: PathBuf,
    /// Path without symbolic links.
    pub real: PathBuf,
}

impl Disk {
    pub fn with_memory_cache(memory_cache: MemoryCache) -> Self {
        Self {
            memory_cache,
            ..Self::default()
        }
    }

    pub fn memory_cache(&self) -> &MemoryCache {
        &self.memory_cache
    }

    /// Starts to remember import targets and file contents as well.
    pub fn begin_load(&self) {
        lock(&self.targets).get_or_insert_default();
        lock(&self.contents).get_or_insert_default();
    }

    /// Returns a copy for the prefetch thread. Lookups are shared; file contents are not, because
    /// files may change before they are requested.
    pub fn for_prefetch(&self) -> Self {
        Self {
            contents: Arc::new(Mutex::new(Some(Contents::default()))),
            ..self.clone()
        }
    }

    pub fn end_load(&self) {
        *lock(&self.targets) = None;
        *lock(&self.contents) = None;
    }

    /// See [`js_runtime_ext::probe`].
    pub fn probe(&self, path: &Path) -> Option<Probed> {
        let compute = || {
            let path = probe(path).ok_or(())?;
            let real = self.real(&path).unwrap_or_else(|_| path.clone());
            Ok::<_, ()>(Probed { path, real })
        };
        get_or_insert(&self.targets, |targets| &mut targets.probed, path, compute).ok()
    }

    /// Returns the file that a folder stands for.
    pub fn probe_folder(&self, path: &Path) -> Option<Probed> {
        let path = directory(path)?;
        let real = self.real(&path).unwrap_or_else(|_| path.clone());
        Some(Probed { path, real })
    }

    /// Returns a path without symbolic links. Each folder on the way is looked up once.
    pub fn real(&self, path: &Path) -> io::Result<PathBuf> {
        if let Some(known) = self.seen().real.get(path) {
            return Ok(known.clone());
        }
        let real = match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) if path.is_absolute() => {
                let here = self.real(folder)?.join(name);
                match std::fs::symlink_metadata(&here)?.is_symlink() {
                    true => here.canonicalize()?,
                    false => here,
                }
            }
            _ => path.canonicalize()?,
        };
        self.seen().real.insert(path.to_path_buf(), real.clone());
        Ok(real)
    }

    /// Returns the text of a file, which `read` reads.
    pub fn text<E>(
        &self,
        path: &Path,
        read: impl FnOnce(&Path) -> Result<String, E>,
    ) -> Result<Arc<str>, E> {
        let compute = || read(path).map(Arc::from);
        get_or_insert(
            &self.contents,
            |contents| &mut contents.texts,
            path,
            compute,
        )
    }

    /// Returns the `hash` of the bytes of a file; `None` if they cannot be read.
    pub fn hash(&self, path: &Path, hash: impl FnOnce(&[u8]) -> u64) -> Option<u64> {
        let compute = || regular_file::read(path).map(|bytes| hash(&bytes));
        get_or_insert(
            &self.contents,
            |contents| &mut contents.hashes,
            path,
            compute,
        )
        .ok()
    }

    /// Returns the target of a package import from a folder.
    pub fn package<E>(
        &self,
        specifier: &str,
        referrer: &ModuleSpecifier,
        find: impl FnOnce() -> Result<ModuleSpecifier, E>,
    ) -> Result<ModuleSpecifier, E> {
        let Ok(folder) = referrer.join(".") else {
            return find();
        };
        let key = (specifier.to_owned(), folder.to_string());
        get_or_insert(&self.targets, |targets| &mut targets.packages, &key, find)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }
}

fn get_or_insert<S, K, Q, V: Clone, E>(
    seen: &Mutex<Option<S>>,
    map: impl Fn(&mut S) -> &mut HashMap<K, V>,
    key: &Q,
    compute: impl FnOnce() -> Result<V, E>,
) -> Result<V, E>
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
{
    if let Some(seen) = &mut *lock(seen)
        && let Some(known) = map(seen).get(key)
    {
        return Ok(known.clone());
    }
    let found = compute()?;
    if let Some(seen) = &mut *lock(seen) {
        map(seen).insert(key.to_owned(), found.clone());
    }
    Ok(found)
}

fn lock<T>(seen: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds the lock; the data is consistent in any case.
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if this is the `package.json` of a folder inside an installed package.
fn is_within_package(package_json: &Path) -> bool {
    let names: Vec<&OsStr> = package_json
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let Some(packages) = names.iter().rposition(|name| *name == "node_modules") else {
        return false;
    };
    let inside = &names[packages + 1..];
    let is_scoped = (inside.first()).is_some_and(|name| name.as_encoded_bytes()[0] == b'@');
    inside.len() > if is_scoped { 3 } else { 2 }
}

impl PackageJsonCache for Disk {
    fn get(&self, path: &Path) -> PackageJsonCacheResult {
        if let Some(known) = self.seen().package_json.get(path) {
            return PackageJsonCacheResult::Hit(known.clone());
        }
        let Some(memory_cache) = self.memory_cache.package_json(path) else {
            return PackageJsonCacheResult::NotCached;
        };
        let known = Some(memory_cache);
        let mut seen = self.seen();
        seen.package_json.insert(path.to_path_buf(), known.clone());
        PackageJsonCacheResult::Hit(known)
    }

    fn set(&self, path: PathBuf, package_json: Option<PackageJsonRc>) {
        if let Some(package_json) = &package_json {
            self.memory_cache.insert_package_json(&path, package_json);
        }
        if package_json.is_some() || is_within_package(&path) {
            self.seen().package_json.insert(path, package_json);
        }
    }
}

impl NodeResolutionCache for Disk {
    /// Real paths are remembered by [`BaseFsCanonicalize`] below.
    fn get_canonicalized(&self, _path: &Path) -> Option<io::Result<PathBuf>> {
        None
    }

    fn set_canonicalized(&self, _from: PathBuf, _to: &io::Result<PathBuf>) {}

    fn get_file_type(&self, path: &Path) -> Option<Option<FileType>> {
        self.seen().kinds.get(path).copied().map(Some)
    }

    fn set_file_type(&self, path: PathBuf, value: Option<FileType>) {
        if let Some(kind) = value {
            self.seen().kinds.insert(path, kind);
        }
    }
}

impl BaseFsCanonicalize for Disk {
    fn base_fs_canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.real(path)
    }
}

impl BaseFsMetadata for Disk {
    type Metadata = <RealSys as BaseFsMetadata>::Metadata;

    fn base_fs_metadata(&self, path: &Path) -> io::Result<Self::Metadata> {
        RealSys.base_fs_metadata(path)
    }

    fn base_fs_symlink_metadata(&self, path: &Path) -> io::Result<Self::Metadata> {
        RealSys.base_fs_symlink_metadata(path)
    }
}

impl BaseFsOpen for Disk {
    type File = <RealSys as BaseFsOpen>::File;

    fn base_fs_open(&self, path: &Path, options: &OpenOptions) -> io::Result<Self::File> {
        RealSys.base_fs_open(path, options)
    }
}

impl BaseFsRead for Disk {
    fn base_fs_read(&self, path: &Path) -> io::Result<Cow<'static, [u8]>> {
        // Node looks for `package.json` in all folders above. A special file counts as absent.
        match regular_file::read(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Err(io::ErrorKind::NotFound.into())
            }
            read => read.map(Cow::Owned),
        }
    }
}

impl BaseFsReadDir for Disk {
    type ReadDirEntry = <RealSys as BaseFsReadDir>::ReadDirEntry;

    fn base_fs_read_dir(
        &self,
        path: &Path,
    ) -> io::Result<Box<dyn Iterator<Item = io::Result<Self::ReadDirEntry>>>> {
        RealSys.base_fs_read_dir(path)
    }
}

impl EnvCurrentDir for Disk {
    fn env_current_dir(&self) -> io::Result<PathBuf> {
        RealSys.env_current_dir()
    }
}

impl BaseEnvVar for Disk {
    fn base_env_var_os(&self, key: &OsStr) -> Option<OsString> {
        RealSys.base_env_var_os(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_import_targets_but_not_contents() {
        let folder = std::env::temp_dir().join(format!("js-disk-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.ts");
        std::fs::write(&path, "").unwrap();
        let disk = Disk::default();
        disk.begin_load();
        let for_prefetch = disk.for_prefetch();
        let text = |disk: &Disk, text: &str| {
            let text = disk.text(&path, |_| Ok::<_, ()>(text.to_string()));
            text.unwrap().to_string()
        };
        assert!(for_prefetch.probe(&folder.join("a")).is_some());
        assert_eq!(text(&for_prefetch, "before"), "before");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(disk.probe(&folder.join("a")).is_some());
        assert_eq!(text(&disk, "after"), "after");
        assert_eq!(text(&disk, "later"), "after");
        disk.end_load();
        assert!(disk.probe(&folder.join("a")).is_none());
        assert!(for_prefetch.probe(&folder.join("a")).is_none());
    }

    #[test]
    fn folders_inside_packages_are_recognized() {
        for (path, within) in [
            ("/x/node_modules/a/package.json", false),
            ("/x/node_modules/a/lib/package.json", true),
            ("/x/node_modules/@s/package.json", false),
            ("/x/node_modules/@s/a/package.json", false),
            ("/x/node_modules/@s/a/lib/deep/package.json", true),
            ("/x/node_modules/a/node_modules/b/package.json", false),
            ("/x/node_modules/package.json", false),
            ("/x/lib/package.json", false),
        ] {
            assert_eq!(is_within_package(Path::new(path)), within, "{path}");
        }
    }
}
