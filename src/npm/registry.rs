//! Metadata of packages for the resolver. Dependencies that are no versions of a registry get
//! names under [`EXTERNAL`], so that the resolver sees versions only.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deno_error::JsErrorBox;
use deno_npm::registry::{
    NpmPackageInfo, NpmPackageVersionInfo, NpmRegistryApi, NpmRegistryPackageInfoLoadError,
};
use deno_semver::{StackString, Version};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::archives::Archives;
use crate::clones::Clones;
use crate::config::NpmConfig;
use crate::error::{NpmError, files};
use crate::external::Specifier;
use crate::http::Http;
use crate::integrity;
use crate::platform::Systems;

/// Scope of names that stand for repositories, archives and folders. No registry can have it.
const EXTERNAL: &str = "@pi.external/";
/// The short form has no dates.
const SHORT: &str = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*";
const FULL: &str = "application/json";
const ARCHIVE: &str = "application/octet-stream, */*";

/// Origin of the files of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An archive of a registry or another server.
    Archive {
        url: String,
        integrity: Option<String>,
    },
    Git {
        url: String,
        commit: String,
    },
    /// A folder below the root of the tree, where it stays.
    Folder(String),
    /// An archive below the root of the tree.
    File {
        path: String,
        integrity: String,
    },
}

/// A dependency that is no version of a registry.
struct External {
    specifier: Specifier,
    /// The folder of the manifest, if it is part of the tree's root.
    base: Option<PathBuf>,
    /// The package, its key and value, for errors.
    declared: [String; 3],
}

/// Metadata of one package name.
pub(crate) struct Metadata {
    info: Arc<NpmPackageInfo>,
    /// The answer of the registry; empty for others.
    text: Vec<u8>,
    /// Name and content of what is no version of a registry.
    external: Option<(String, Content)>,
}

type Loaded = Result<Arc<Metadata>, NpmRegistryPackageInfoLoadError>;

/// Where packages are fetched from, and what of them was fetched before.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) config: &'a NpmConfig,
    pub(crate) http: &'a Http,
    pub(crate) clones: &'a Clones,
    pub(crate) archives: &'a Archives,
}

pub(crate) struct Registry<'a> {
    sources: Sources<'a>,
    /// Modules that the program has itself, whatever version a peer dependency asks for.
    provided: &'a [&'a str],
    /// Versions must be published before.
    newest: Option<DateTime<Utc>>,
    /// Names to which that does not apply.
    exempt: BTreeSet<StackString>,
    /// The folder of the tree, if it has a manifest of its own.
    root: Option<PathBuf>,
    loaded: Mutex<HashMap<String, Arc<OnceCell<Loaded>>>>,
    externals: Mutex<HashMap<String, Arc<External>>>,
    /// Optional dependencies that do not exist.
    absent: Mutex<HashSet<String>>,
    /// First error that is more than the resolver can carry.
    error: Mutex<Option<NpmError>>,
    /// Unpacked archives.
    scratch: TempDir,
}

impl<'a> Registry<'a> {
    pub(crate) fn new(
        sources: Sources<'a>,
        provided: &'a [&'a str],
        newest: Option<DateTime<Utc>>,
        exempt: BTreeSet<StackString>,
        root: Option<&Path>,
    ) -> Result<Self, NpmError> {
        let scratch = tempfile::tempdir().map_err(files(&std::env::temp_dir()))?;
        Ok(Self {
            sources,
            provided,
            newest,
            exempt,
            root: root.map(Path::to_owned),
            loaded: Mutex::default(),
            externals: Mutex::default(),
            absent: Mutex::default(),
            error: Mutex::default(),
            scratch,
        })
    }

    /// Returns the name that stands for the folder of the tree itself.
    pub(crate) fn name_of_root(&self, root: &Path) -> String {
        let declared = ["the package", "", "."].map(str::to_owned);
        self.add_external(Specifier::Local(".".to_owned()), Some(root), declared)
    }

    /// Returns metadata that was loaded before.
    pub(crate) fn known(&self, name: &str) -> Option<Arc<Metadata>> {
        let loaded = lock(&self.loaded);
        loaded.get(name)?.get()?.as_ref().ok().cloned()
    }

    /// Leaves out a dependency that does not exist, where it is optional. Returns whether that is
    /// new; then the resolution may be tried again.
    pub(crate) fn leave_out(&self, name: &str) -> bool {
        let is_new = lock(&self.absent).insert(name.to_owned());
        if is_new {
            lock(&self.loaded).clear();
        }
        is_new
    }

    pub(crate) fn absent_count(&self) -> usize {
        lock(&self.absent).len()
    }

    pub(crate) fn take_error(&self) -> Option<NpmError> {
        lock(&self.error).take()
    }

    /// Returns the clone of a repository at a commit, outside of the tree.
    pub(crate) async fn clone_at(&self, url: &str, commit: &str) -> Result<PathBuf, NpmError> {
        let clone = self.sources.clones.at(url, Some(commit)).await?;
        if clone.commit != commit {
            return Err(NpmError::Git {
                command: format!("checkout {commit}"),
                why: format!("{url} has {} under this name", clone.commit),
            });
        }
        Ok(clone.folder)
    }

    /// Fetches an archive, unless it was kept.
    pub(crate) async fn archive(&self, name: &str, url: &str) -> Result<Vec<u8>, NpmError> {
        if let Some(bytes) = self.sources.archives.get(url) {
            return Ok(bytes);
        }
        let failed = |why: &str| NpmError::Fetch {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        let parsed = url.parse().map_err(|_| failed("it is no URL"))?;
        let access = self.sources.config.archive(name, parsed)?;
        let body = self.sources.http.get(&access, ARCHIVE).await?;
        body.ok_or_else(|| failed("the server says that it does not exist"))
    }

    async fn load(&self, name: &str) -> Result<Metadata, NpmError> {
        let external = lock(&self.externals).get(name).cloned();
        match external {
            Some(external) => self.load_external(name, &external).await,
            None => self.load_from_registry(name).await,
        }
    }

    async fn load_from_registry(&self, name: &str) -> Result<Metadata, NpmError> {
        crate::names::checked(name, "A package")?;
        let mut text = self.metadata(name, SHORT).await?;
        let has_new = |text: &[u8]| match serde_json::from_slice::<Dates>(text) {
            Ok(dates) => dates.time.is_none() && dates.modified_after(self.newest),
            Err(_) => true,
        };
        if !self.exempt.contains(name) && has_new(&text) {
            text = self.metadata(name, FULL).await?;
        }
        let damaged = |why: String| NpmError::Fetch {
            url: format!("{}{name}", self.sources.config.registry(name)),
            why: format!("the answer cannot be read: {why}"),
        };
        let mut info = NpmPackageInfo::from_packument_bytes(text.clone()).map_err(damaged)?;
        for version in info.versions.values_mut() {
            self.rewrite(name, version, None);
        }
        Ok(Metadata {
            info: Arc::new(info),
            text,
            external: None,
        })
    }

    async fn metadata(&self, name: &str, accept: &'static str) -> Result<Vec<u8>, NpmError> {
        let access = self.sources.config.metadata(name)?;
        let body = self.sources.http.get(&access, accept).await?;
        body.ok_or_else(|| NpmError::NotFound {
            name: name.to_owned(),
            registry: self.sources.config.registry(name),
        })
    }

    async fn load_external(&self, name: &str, external: &External) -> Result<Metadata, NpmError> {
        let [parent, key, value] = external.declared.clone();
        let wrong = |why: &str| NpmError::Dependency {
            parent: parent.clone(),
            name: key.clone(),
            specifier: value.clone(),
            why: why.to_owned(),
        };
        let (content, manifest, base) = match &external.specifier {
            Specifier::Unsupported(why) => return Err(wrong(why)),
            Specifier::Git { url, reference } => {
                let clone = self.sources.clones.at(url, reference.as_deref()).await?;
                let manifest = manifest_of(&clone.folder)?;
                let content = Content::Git {
                    url: url.clone(),
                    commit: clone.commit,
                };
                (content, manifest, None)
            }
            Specifier::Archive(url) => {
                let bytes = self.archive(&key, url.as_str()).await?;
                self.sources.archives.keep(url.as_str(), &bytes)?;
                let content = Content::Archive {
                    url: url.to_string(),
                    integrity: Some(integrity::of(&bytes)),
                };
                (content, self.manifest_in(name, &bytes)?, None)
            }
            Specifier::Local(_) | Specifier::Workspace(_) => {
                let path = self
                    .local_path(external)
                    .ok_or_else(|| wrong("it is outside of the package, or does not exist"))?;
                let root = self.root.as_deref().unwrap_or(Path::new(""));
                let root = root.canonicalize().map_err(files(root))?;
                let below = slashes(path.strip_prefix(&root).unwrap_or(&path));
                if path.is_dir() {
                    let manifest = manifest_of(&path)?;
                    (Content::Folder(below), manifest, Some(path))
                } else {
                    let bytes = std::fs::read(&path).map_err(files(&path))?;
                    let content = Content::File {
                        path: below,
                        integrity: integrity::of(&bytes),
                    };
                    (content, self.manifest_in(name, &bytes)?, None)
                }
            }
            Specifier::Registry => return Err(wrong("it is a version")),
        };
        self.metadata_of(name, content, manifest, base)
    }

    /// Makes metadata of a manifest, with one version.
    fn metadata_of(
        &self,
        name: &str,
        content: Content,
        manifest: Map<String, Value>,
        base: Option<PathBuf>,
    ) -> Result<Metadata, NpmError> {
        let text = |key: &str| manifest.get(key).and_then(Value::as_str);
        let own_name = text("name").unwrap_or_default().to_owned();
        let version = text("version").and_then(|it| Version::parse_from_npm(it).ok());
        let version = version.unwrap_or_default();
        let mut fields = Map::new();
        for key in [
            "dependencies",
            "optionalDependencies",
            "peerDependencies",
            "peerDependenciesMeta",
            "bundleDependencies",
            "bundledDependencies",
            "os",
            "cpu",
        ] {
            if let Some(value) = manifest.get(key) {
                fields.insert(key.to_owned(), value.clone());
            }
        }
        fields.insert("version".to_owned(), json!(version.to_string()));
        let invalid = |error: serde_json::Error| NpmError::Manifest {
            path: PathBuf::from(&own_name).join("package.json"),
            why: error.to_string(),
        };
        let mut info: NpmPackageVersionInfo =
            serde_json::from_value(Value::Object(fields)).map_err(invalid)?;
        if base.is_some() && base == self.canonical_root() {
            self.add_workspaces(&mut info, &manifest)?;
        }
        self.rewrite(&own_name, &mut info, base.as_deref());
        let info = NpmPackageInfo {
            name: name.into(),
            versions: HashMap::from([(version.clone(), info)]).into(),
            dist_tags: HashMap::from([("latest".to_owned(), version)]),
            time: HashMap::new(),
        };
        Ok(Metadata {
            info: Arc::new(info),
            text: Vec::new(),
            external: Some((own_name, content)),
        })
    }

    fn canonical_root(&self) -> Option<PathBuf> {
        self.root.as_ref()?.canonicalize().ok()
    }

    /// Adds the packages of a workspace to the dependencies of its root.
    fn add_workspaces(
        &self,
        info: &mut NpmPackageVersionInfo,
        manifest: &Map<String, Value>,
    ) -> Result<(), NpmError> {
        for (name, path) in self.workspaces(manifest)? {
            let value = format!("file:{}", slashes(&path));
            info.dependencies
                .insert(name.as_str().into(), value.as_str().into());
        }
        Ok(())
    }

    /// Returns names and folders of the packages that a root's `workspaces` name.
    fn workspaces(
        &self,
        manifest: &Map<String, Value>,
    ) -> Result<Vec<(String, PathBuf)>, NpmError> {
        let patterns = match manifest.get("workspaces") {
            Some(Value::Object(object)) => object.get("packages"),
            other => other,
        };
        let patterns = patterns.and_then(Value::as_array);
        let (Some(root), Some(patterns)) = (self.canonical_root(), patterns) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for pattern in patterns.iter().filter_map(Value::as_str) {
            let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
            for path in matching_folders(&root, pattern) {
                let Ok(manifest) = manifest_of(&path) else {
                    continue;
                };
                if let Some(name) = manifest.get("name").and_then(Value::as_str) {
                    let below = path.strip_prefix(&root).unwrap_or(&path).to_owned();
                    found.push((name.to_owned(), below));
                }
            }
        }
        Ok(found)
    }

    /// Returns the existing path of a local dependency, if it is below the root.
    fn local_path(&self, external: &External) -> Option<PathBuf> {
        let root = self.canonical_root()?;
        let path = match &external.specifier {
            Specifier::Local(path) => external.base.as_ref()?.join(path),
            Specifier::Workspace(_) => {
                let manifest = manifest_of(&root).ok()?;
                let name = &external.declared[1];
                let all = self.workspaces(&manifest).ok()?;
                let (_, path) = all.into_iter().find(|(known, _)| known == name)?;
                root.join(path)
            }
            _ => return None,
        };
        let path = path.canonicalize().ok()?;
        path.starts_with(&root).then_some(path)
    }

    fn manifest_in(&self, name: &str, bytes: &[u8]) -> Result<Map<String, Value>, NpmError> {
        let folder = self.scratch.path().join(digest(name));
        let limits = crate::Limits::default();
        crate::archive::unpack(bytes, &folder, &limits).map_err(|source| NpmError::Archive {
            package: name.to_owned(),
            source,
        })?;
        manifest_of(&folder)
    }

    /// Adapts what a version depends on. `base` is the folder of a manifest below the root.
    fn rewrite(&self, parent: &str, info: &mut NpmPackageVersionInfo, base: Option<&Path>) {
        for name in self.provided {
            info.peer_dependencies.remove(*name);
            info.peer_dependencies_meta.remove(*name);
        }
        for name in lock(&self.absent).iter() {
            if info.optional_dependencies.remove(name.as_str()).is_some() {
                info.dependencies.remove(name.as_str());
            }
        }
        let bundled: HashSet<StackString> = info.bundle_dependencies().iter().cloned().collect();
        let rewritten = |key: &StackString, value: &StackString| {
            let specifier = Specifier::parse(value);
            let specifier = match (&specifier, base) {
                (Specifier::Registry, _) => return None,
                // Left over from the author's workspace.
                (Specifier::Workspace(range), None) => return Some(range.as_str().into()),
                _ => specifier,
            };
            let declared = [parent, key.as_str(), value.as_str()].map(str::to_owned);
            let name = self.add_external(specifier, base, declared);
            Some(StackString::from(format!("npm:{name}@latest").as_str()))
        };
        for list in [&mut info.dependencies, &mut info.optional_dependencies] {
            for (key, value) in list.iter_mut().filter(|(key, _)| !bundled.contains(*key)) {
                if let Some(new) = rewritten(key, value) {
                    *value = new;
                }
            }
        }
        info.peer_dependencies
            .retain(|_, value| matches!(Specifier::parse(value), Specifier::Registry));
    }

    /// Returns the name that stands for a dependency.
    pub(crate) fn add_external(
        &self,
        specifier: Specifier,
        base: Option<&Path>,
        declared: [String; 3],
    ) -> String {
        let external = External {
            specifier,
            base: base.map(Path::to_owned),
            declared,
        };
        // Different texts may mean the same folder.
        let key = match (self.local_path(&external), &external.specifier) {
            (Some(path), _) => format!("{path:?}"),
            (None, Specifier::Local(path)) => format!("{:?} {path}", external.base),
            (None, Specifier::Workspace(_)) => format!("workspace {}", external.declared[1]),
            (None, other) => format!("{other:?}"),
        };
        let name = format!("{EXTERNAL}{}", digest(&key));
        lock(&self.externals)
            .entry(name.clone())
            .or_insert_with(|| Arc::new(external));
        name
    }
}

#[async_trait(?Send)]
impl NpmRegistryApi for Registry<'_> {
    async fn package_info(
        &self,
        name: &str,
    ) -> Result<Arc<NpmPackageInfo>, NpmRegistryPackageInfoLoadError> {
        let cell = lock(&self.loaded)
            .entry(name.to_owned())
            .or_default()
            .clone();
        let loaded = cell.get_or_init(|| async {
            match self.load(name).await {
                Ok(metadata) => Ok(Arc::new(metadata)),
                Err(error) => {
                    let is_absent = matches!(error, NpmError::NotFound { .. });
                    let text = error.to_string();
                    let mut first = lock(&self.error);
                    if first.is_none() {
                        *first = Some(error);
                    }
                    Err(match is_absent {
                        true => NpmRegistryPackageInfoLoadError::PackageNotExists {
                            package_name: name.to_owned(),
                        },
                        false => NpmRegistryPackageInfoLoadError::LoadError(Arc::new(
                            JsErrorBox::generic(text),
                        )),
                    })
                }
            }
        });
        match loaded.await {
            Ok(metadata) => Ok(metadata.info.clone()),
            Err(error) => Err(error.clone()),
        }
    }
}

impl Metadata {
    /// Returns name and content of a version; the name is empty if a manifest has none.
    pub(crate) fn content(&self, version: &Version) -> (Option<&str>, Option<Content>) {
        if let Some((name, content)) = &self.external {
            return (Some(name), Some(content.clone()));
        }
        let dist = self
            .info
            .versions
            .get(version)
            .and_then(|it| it.dist.as_ref());
        let content = dist.map(|dist| Content::Archive {
            url: dist.tarball.clone(),
            integrity: dist.integrity().for_lockfile().map(|it| it.into_owned()),
        });
        (None, content)
    }

    /// Returns the dependencies that are part of the version's archive.
    pub(crate) fn bundled(&self, version: &Version) -> Vec<String> {
        let info = self.info.versions.get(version);
        let names = info.map(NpmPackageVersionInfo::bundle_dependencies);
        names
            .unwrap_or_default()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Returns the systems on which a version runs. The resolver's own structure lacks `libc`.
    pub(crate) fn systems(&self, version: &Version) -> Systems {
        let Some(info) = self.info.versions.get(version) else {
            return Systems::default();
        };
        let owned =
            |list: &[deno_semver::SmallStackString]| list.iter().map(ToString::to_string).collect();
        let mut systems = Systems {
            os: owned(&info.os),
            cpu: owned(&info.cpu),
            libc: Vec::new(),
        };
        if !systems.os.is_empty() || !systems.cpu.is_empty() {
            systems.libc = self.libc(&version.to_string()).unwrap_or_default();
        }
        systems
    }

    fn libc(&self, version: &str) -> Option<Vec<String>> {
        let all: Versions<'_> = serde_json::from_slice(&self.text).ok()?;
        let version: Libc = serde_json::from_str(all.versions.get(version)?.get()).ok()?;
        Some(match version.libc? {
            Value::String(one) => vec![one],
            Value::Array(list) => list
                .iter()
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect(),
            _ => Vec::new(),
        })
    }
}

/// Dates of metadata.
#[derive(Deserialize)]
struct Dates {
    modified: Option<DateTime<Utc>>,
    time: Option<serde::de::IgnoredAny>,
}

impl Dates {
    /// Returns whether a version may be newer than the limit.
    fn modified_after(&self, newest: Option<DateTime<Utc>>) -> bool {
        match (newest, self.modified) {
            (None, _) => false,
            (Some(newest), Some(modified)) => modified >= newest,
            (Some(_), None) => true,
        }
    }
}

#[derive(Deserialize)]
struct Versions<'a> {
    #[serde(borrow)]
    versions: HashMap<String, &'a serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct Libc {
    libc: Option<Value>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn manifest_of(folder: &Path) -> Result<Map<String, Value>, NpmError> {
    let path = folder.join("package.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(files(&path)(error)),
    };
    let text = text.trim_start_matches('\u{feff}');
    serde_json::from_str(text).map_err(|error| NpmError::Manifest {
        path,
        why: format!("it is no JSON object: {error}"),
    })
}

/// Returns the folders below the root that match a pattern of `workspaces`.
fn matching_folders(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let Ok(glob) = globset::GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
    else {
        return Vec::new();
    };
    let matcher = glob.compile_matcher();
    // As deep as the pattern; `**` may be anything, within reason.
    let depth = match pattern.contains("**") {
        true => 6,
        false => pattern.split('/').count(),
    };
    let mut found = Vec::new();
    let mut pending = vec![(root.to_owned(), 0)];
    while let Some((folder, level)) = pending.pop() {
        let below = folder.strip_prefix(root).unwrap_or(&folder);
        if level > 0 && matcher.is_match(below) {
            found.push(folder.clone());
        }
        if level == depth {
            continue;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && name != "node_modules" && name != ".git" {
                pending.push((entry.path(), level + 1));
            }
        }
    }
    found.sort();
    found
}

/// Returns a path with `/`, as it is written in a tree.
fn slashes(path: &Path) -> String {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns a short name for a text.
fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
