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
use std::path::{Path, PathBuf};
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
use super::expected_files;
use crate::attribution::imports::Imports;
use crate::attribution::load_input::{
    InputAnswer, InputKind, LoadInput, digest, is_within_package,
};

/// Maximum number of missing files of packages that are remembered while an extension is loaded.
const MAX_MISSING: usize = 2000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    lookups: Arc<Mutex<Lookups>>,
    /// Record of what was read and looked for.
    imports: Imports,
    /// Missing files within packages, which matter only if the load fails.
    missing: Arc<Mutex<Vec<PathBuf>>>,
    // `None` when the loaded code may have been called.
    targets: Arc<Mutex<Option<ImportTargets>>>,
    contents: Arc<Mutex<Option<Contents>>>,
    memory_cache: MemoryCache,
}

#[derive(Debug, Default)]
struct Lookups {
    real: HashMap<PathBuf, PathBuf>,
    kinds: HashMap<PathBuf, FileType>,
    package_json: HashMap<PathBuf, Option<PackageJsonRc>>,
    /// Digests of `package.json` files as they were read.
    digests: HashMap<PathBuf, u64>,
}

/// Targets of imports.
#[derive(Debug, Default)]
struct ImportTargets {
    probed: HashMap<PathBuf, Probed>,
    packages: HashMap<(String, String), ModuleSpecifier>,
}

#[derive(Debug, Default)]
struct Contents {
    texts: HashMap<PathBuf, SourceText>,
    hashes: HashMap<PathBuf, u64>,
}

/// The text of a file.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    pub text: Arc<str>,
    /// Digest of the bytes.
    pub digest: u64,
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

    /// Returns this with another record of what is read and looked for.
    pub fn recording_into(self, imports: Imports) -> Self {
        Self {
            imports,
            missing: Arc::default(),
            ..self
        }
    }

    pub fn memory_cache(&self) -> &MemoryCache {
        &self.memory_cache
    }

    /// Forgets which files of packages were missing. Called when the load of an extension begins.
    pub fn forget_missing(&self) {
        lock(&self.missing).clear();
    }

    /// Records which files of packages were missing: a load has failed, and one of them may be the
    /// reason.
    pub fn record_missing(&self) {
        for path in std::mem::take(&mut *lock(&self.missing)) {
            self.record_absence(&path);
        }
    }

    fn record_absence(&self, path: &Path) {
        let input = LoadInput::new(InputKind::Presence, path);
        self.imports.note_input(None, input, None);
    }

    /// Notes that a path was looked up, and whether it exists.
    fn note_lookup<T>(&self, path: &Path, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() && self.imports.loading().is_some() {
            if !is_within_package(path) {
                self.record_absence(path);
                return result;
            }
            let mut missing = lock(&self.missing);
            if missing.len() < MAX_MISSING {
                missing.push(path.to_path_buf());
            }
        }
        result
    }

    /// Notes the digest of a file that was read, if it is a `package.json`.
    fn note_package_json(&self, path: &Path, digest: InputAnswer) {
        if path.ends_with("package.json") && !is_within_package(path) {
            self.imports.note_content(path, digest);
        }
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
            missing: Arc::default(),
            imports: Imports::default(),
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
            match expected_files::may_lead(&path, &real) {
                true => Ok(Probed { path, real }),
                false => Err(()),
            }
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
        if let Some(known) = self.lookups().real.get(path) {
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
        self.lookups().real.insert(path.to_path_buf(), real.clone());
        Ok(real)
    }

    /// Returns the text of a file, which `read` reads.
    pub fn text<E>(
        &self,
        path: &Path,
        read: impl FnOnce(&Path) -> Result<SourceText, E>,
    ) -> Result<SourceText, E> {
        get_or_insert(
            &self.contents,
            |contents| &mut contents.texts,
            path,
            || read(path),
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

    fn lookups(&self) -> MutexGuard<'_, Lookups> {
        lock(&self.lookups)
    }
}

fn get_or_insert<S, K, Q, V: Clone, E>(
    lookups: &Mutex<Option<S>>,
    map: impl Fn(&mut S) -> &mut HashMap<K, V>,
    key: &Q,
    compute: impl FnOnce() -> Result<V, E>,
) -> Result<V, E>
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
{
    if let Some(lookups) = &mut *lock(lookups)
        && let Some(known) = map(lookups).get(key)
    {
        return Ok(known.clone());
    }
    let found = compute()?;
    if let Some(lookups) = &mut *lock(lookups) {
        map(lookups).insert(key.to_owned(), found.clone());
    }
    Ok(found)
}

fn lock<T>(lookups: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while it holds the lock; the data is consistent in any case.
    lookups.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PackageJsonCache for Disk {
    fn get(&self, path: &Path) -> PackageJsonCacheResult {
        let lookups = self.lookups();
        if let Some(known) = lookups.package_json.get(path).cloned() {
            let digest = lookups.digests.get(path).copied();
            drop(lookups);
            self.note_package_json(path, digest);
            return PackageJsonCacheResult::Hit(known);
        }
        drop(lookups);
        let Some((known, digest)) = self.memory_cache.package_json(path) else {
            return PackageJsonCacheResult::NotCached;
        };
        let known = Some(known);
        let mut lookups = self.lookups();
        lookups
            .package_json
            .insert(path.to_path_buf(), known.clone());
        lookups.digests.insert(path.to_path_buf(), digest);
        drop(lookups);
        self.note_package_json(path, Some(digest));
        PackageJsonCacheResult::Hit(known)
    }

    fn set(&self, path: PathBuf, package_json: Option<PackageJsonRc>) {
        let digest = self.lookups().digests.get(&path).copied();
        if let Some((package_json, digest)) = package_json.as_ref().zip(digest) {
            self.memory_cache
                .insert_package_json(&path, package_json, digest);
        }
        if package_json.is_some() || is_within_package(&path) {
            self.lookups().package_json.insert(path, package_json);
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
        self.lookups().kinds.get(path).copied().map(Some)
    }

    fn set_file_type(&self, path: PathBuf, value: Option<FileType>) {
        if let Some(kind) = value {
            self.lookups().kinds.insert(path, kind);
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
        self.note_lookup(path, RealSys.base_fs_metadata(path))
    }

    fn base_fs_symlink_metadata(&self, path: &Path) -> io::Result<Self::Metadata> {
        self.note_lookup(path, RealSys.base_fs_symlink_metadata(path))
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
        let read = match regular_file::read(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Err(io::ErrorKind::NotFound.into())
            }
            read => read.map(Cow::Owned),
        };
        if path.ends_with("package.json") {
            let digest = read.as_deref().ok().map(digest);
            self.note_package_json(path, digest);
            if let Some(digest) = digest {
                self.lookups().digests.insert(path.to_path_buf(), digest);
            }
        }
        read
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
            let read = SourceText {
                text: text.into(),
                digest: digest(text.as_bytes()),
            };
            let text = disk.text(&path, |_| Ok::<_, ()>(read));
            text.unwrap().text.to_string()
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
}
