//! Installs a tree: fetches archives, compares their hashes, unpacks them, and links them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use deno_semver::StackString;
use futures::StreamExt;
use reqwest::ClientBuilder;
use serde_json::{Map, Value};

use crate::archive::{self, Limits};
use crate::archives::Archives;
use crate::clones::Clones;
use crate::config::NpmConfig;
use crate::error::{NpmError, files};
use crate::http::Http;
use crate::platform::System;
use crate::registry::{Registry, Sources, manifest_of};
use crate::resolve::{self, Choice, Root};
use crate::scripts::{PackageScripts, scripts_of};
use crate::tree::{PlacedPackage, Tree, is_below};
use crate::{bins, integrity, layout, overrides};

/// Archives that are fetched and unpacked at a time.
const CONCURRENT: usize = 8;
/// Files and bytes of a whole tree.
const MAX_FILES: usize = 500_000;
const MAX_BYTES: u64 = 8 << 30;

/// Choices of one resolution.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Modules that the program provides: peer dependencies on them are satisfied.
    pub provided: &'static [&'static str],
    /// Versions that were published later are not chosen.
    pub newest: Option<DateTime<Utc>>,
    /// Packages whose version the user has chosen; the date does not matter for them.
    pub exempt: Vec<String>,
    /// The package.json of the npm project into which a package of a registry is installed. Its
    /// `overrides` hold. A folder has its own.
    pub project: Map<String, Value>,
}

/// Result of an installation.
#[derive(Debug)]
pub struct Installed {
    /// The tree with the hashes of all archives.
    pub tree: Tree,
    /// The packages with install scripts, none of which has run.
    pub scripts: Vec<PackageScripts>,
    pub warnings: Vec<String>,
}

/// Installs packages with one configuration.
pub struct Npm {
    config: NpmConfig,
    http: Http,
    clones: Clones,
    archives: Archives,
    system: System,
    limits: Limits,
}

impl Npm {
    /// Makes an installer. `client` makes the HTTP clients of the program.
    pub fn new(config: NpmConfig, client: fn() -> ClientBuilder) -> Result<Self, NpmError> {
        Ok(Self {
            http: Http::new(&config, client)?,
            config,
            clones: Clones::default(),
            archives: Archives::default(),
            system: System::current(),
            limits: Limits::default(),
        })
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            config: &self.config,
            http: &self.http,
            clones: &self.clones,
            archives: &self.archives,
        }
    }

    /// Returns the days of npm's setting `min-release-age`.
    pub fn minimum_age_days(&self) -> Option<u64> {
        self.config.minimum_age_days()
    }

    /// Chooses the versions of a package and of what it needs. Nothing is installed.
    pub async fn resolve(&self, root: &Root, options: &Options) -> Result<Tree, NpmError> {
        let exempt: BTreeSet<StackString> = options
            .exempt
            .iter()
            .map(|name| name.as_str().into())
            .collect();
        let folder = match root {
            Root::Folder(folder) => Some(folder.as_path()),
            Root::Package { .. } => None,
        };
        let registry = Registry::new(
            self.sources(),
            options.provided,
            options.newest,
            exempt.clone(),
            folder,
        )?;
        let overrides = match root {
            Root::Folder(folder) => {
                overrides::of_manifest(&manifest_of(folder)?, Some(folder), &registry)?
            }
            Root::Package { name, .. } => {
                let all = overrides::of_manifest(&options.project, None, &registry)?;
                overrides::without_root(all, name)
            }
        };
        let choice = Choice {
            newest: options.newest,
            exempt: &exempt,
            overrides,
        };
        let graph = resolve::resolve(&registry, root, choice).await?;
        Ok(layout::compute_layout(&graph))
    }

    /// Installs a tree into a folder: that of the root package, which is created, or one with the
    /// root's files. A failure leaves the folder incomplete.
    pub async fn install(&self, tree: Tree, folder: &Path) -> Result<Installed, NpmError> {
        tree.check()?;
        let registry = Registry::new(self.sources(), &[], None, BTreeSet::new(), None)?;
        fs::create_dir_all(folder).map_err(files(folder))?;
        let folder = folder.canonicalize().map_err(files(folder))?;
        let staging = tempfile::Builder::new()
            .prefix(".unpacking-")
            .tempdir_in(&folder)
            .map_err(files(&folder))?;
        let mut installed = Installed {
            tree: Tree::default(),
            scripts: Vec::new(),
            warnings: Vec::new(),
        };
        let mut jobs = Vec::new();
        for package in tree.packages {
            if self.system.allows(&package.systems) {
                jobs.push(package);
            } else if package.optional {
                // The tree keeps it for other systems.
                installed.tree.packages.push(package);
            } else {
                return Err(NpmError::OtherSystem {
                    package: format!("{}@{}", package.name, package.version),
                    system: self.system.describe(),
                    allowed: package.systems.describe(),
                });
            }
        }
        let unpacked = futures::stream::iter(jobs.into_iter().enumerate())
            .map(|(index, package)| {
                let unpack_dir = staging.path().join(index.to_string());
                let folder = &folder;
                let registry = &registry;
                async move {
                    let done = self.unpack(registry, &package, &unpack_dir, folder).await;
                    done.map(|done| (index, unpack_dir, package, done))
                }
            })
            .buffer_unordered(CONCURRENT)
            .collect::<Vec<_>>()
            .await;
        let mut all = unpacked.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (count, bytes) = all.iter().fold((0, 0), |sum, (_, _, _, done)| {
            (sum.0 + done.files, sum.1 + done.bytes)
        });
        if count > MAX_FILES || bytes > MAX_BYTES {
            return Err(NpmError::Tree(format!(
                "All packages together have {count} files and {bytes} bytes, more than {MAX_FILES} \
                 files or {MAX_BYTES} bytes"
            )));
        }
        // Parents before what they contain.
        all.sort_by_key(|(index, ..)| *index);
        for (_, unpack_dir, package, done) in &mut all {
            if done.skipped > 0 {
                installed.warnings.push(format!(
                    "{}@{}: {} links and special files of its archive were left out",
                    package.name, package.version, done.skipped
                ));
            }
            if let Some(hash) = &done.integrity {
                package.integrity.get_or_insert_with(|| hash.clone());
            }
            if done.has_files {
                put(unpack_dir, &folder, &package.path)?;
            }
        }
        let present: Vec<PlacedPackage> =
            all.into_iter().map(|(_, _, package, _)| package).collect();
        for package in &present {
            if let Some(target) = &package.link {
                link(&folder, &package.path, target)?;
            }
        }
        for package in &present {
            if let Some((above, name)) = package.path.rsplit_once("node_modules/") {
                let modules = folder.join(above).join("node_modules");
                bins::link(&modules, name).map_err(files(&modules))?;
            }
        }
        for package in present.iter().filter(|package| package.link.is_none()) {
            let is_source = ["git+", "file:"]
                .iter()
                .any(|it| package.resolved.starts_with(it));
            let scripts = scripts_of(&folder.join(&package.path), is_source);
            if !scripts.is_empty() {
                installed.scripts.push(PackageScripts {
                    name: package.name.clone(),
                    version: package.version.clone(),
                    path: package.path.clone(),
                    integrity: package.integrity.clone(),
                    scripts,
                });
            }
        }
        installed.tree.packages.extend(present);
        installed.tree.packages.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(installed)
    }

    /// Unpacks one package into a folder of its own.
    async fn unpack(
        &self,
        registry: &Registry<'_>,
        package: &PlacedPackage,
        unpack_dir: &Path,
        folder: &Path,
    ) -> Result<Done, NpmError> {
        let name = format!("{}@{}", package.name, package.version);
        if package.link.is_some() {
            return Ok(Done::default());
        }
        if let Some(rest) = package.resolved.strip_prefix("git+") {
            // The text may come from a file that others wrote, and must be no option of git.
            let is_commit = |it: &str| it.len() >= 40 && it.bytes().all(|b| b.is_ascii_hexdigit());
            let parts = rest
                .rsplit_once('#')
                .filter(|(_, commit)| is_commit(commit));
            let (url, commit) = parts.ok_or_else(|| {
                NpmError::Tree(format!("{name}: \"{}\" names no commit", package.resolved))
            })?;
            let clone = registry.clone_at(url, commit).await?;
            let mut done = Done {
                has_files: true,
                ..Done::default()
            };
            copy_files(&clone, unpack_dir, &mut done, &self.limits).map_err(files(unpack_dir))?;
            if done.files > self.limits.files {
                return Err(NpmError::Tree(format!(
                    "{name} has more than {} files",
                    self.limits.files
                )));
            }
            return Ok(done);
        }
        let bytes = match package.resolved.strip_prefix("file:") {
            Some(path) if path == package.path => return Ok(Done::default()),
            Some(path) => {
                let file = inside(folder, path)?;
                fs::read(&file).map_err(files(&file))?
            }
            None => registry.archive(&package.name, &package.resolved).await?,
        };
        if let Some(expected) = &package.integrity {
            integrity::check(&bytes, expected).map_err(|source| NpmError::Integrity {
                package: name.clone(),
                by: "the registry or pi.lock",
                source,
            })?;
        }
        let (unpack_dir, limits) = (unpack_dir.to_owned(), self.limits);
        let work = tokio::task::spawn_blocking(move || {
            let hash = integrity::of(&bytes);
            let unpacked = archive::unpack(&bytes, &unpack_dir, &limits)?;
            Ok((hash, unpacked))
        });
        let unpacked = work
            .await
            .map_err(|error| NpmError::Tree(error.to_string()))?;
        let (hash, unpacked) = unpacked.map_err(|source| NpmError::Archive {
            package: name,
            source,
        })?;
        Ok(Done {
            has_files: true,
            integrity: Some(hash),
            files: unpacked.files,
            bytes: unpacked.bytes,
            skipped: unpacked.skipped,
        })
    }
}

#[derive(Debug, Default)]
struct Done {
    has_files: bool,
    integrity: Option<String>,
    files: usize,
    bytes: u64,
    skipped: usize,
}

/// Returns a path below the folder, with all links followed.
fn inside(folder: &Path, path: &str) -> Result<PathBuf, NpmError> {
    let outside = || NpmError::Tree(format!("{path:?} is outside of the package"));
    if !is_below(path) {
        return Err(outside());
    }
    let joined = folder.join(path);
    let real = joined.canonicalize().map_err(files(&joined))?;
    match real.starts_with(folder) {
        true => Ok(real),
        false => Err(outside()),
    }
}

/// Creates the folder above a path, which must not lead out of `folder` through a link. Returns
/// the whole path.
fn create_parent(folder: &Path, path: &str) -> Result<PathBuf, NpmError> {
    let mut target = folder.to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    for part in &parts[..parts.len() - 1] {
        target.push(part);
        let is_module_folder = *part == "node_modules";
        match fs::symlink_metadata(&target) {
            Ok(meta) if meta.is_dir() => {}
            // A clone may have a link in place of the folder.
            Ok(meta) if meta.is_symlink() && is_module_folder => {
                fs::remove_file(&target).map_err(files(&target))?;
                fs::create_dir(&target).map_err(files(&target))?;
            }
            Ok(_) => {
                return Err(NpmError::Tree(format!(
                    "{} is in the way of a package",
                    target.display()
                )));
            }
            Err(_) => fs::create_dir(&target).map_err(files(&target))?,
        }
    }
    target.push(parts[parts.len() - 1]);
    Ok(target)
}

/// Moves an unpacked package to its path in the tree.
fn put(unpacked: &Path, folder: &Path, path: &str) -> Result<(), NpmError> {
    if path.is_empty() {
        // The root: its folder exists already.
        for entry in fs::read_dir(unpacked).map_err(files(unpacked))? {
            let entry = entry.map_err(files(unpacked))?;
            let to = folder.join(entry.file_name());
            fs::rename(entry.path(), &to).map_err(files(&to))?;
        }
        return Ok(());
    }
    let target = create_parent(folder, path)?;
    clear(&target)?;
    fs::rename(unpacked, &target).map_err(files(&target))
}

fn clear(target: &Path) -> Result<(), NpmError> {
    match fs::symlink_metadata(target) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(target).map_err(files(target)),
        Ok(_) => fs::remove_file(target).map_err(files(target)),
        Err(_) => Ok(()),
    }
}

/// Makes `path` a link to `target`, both below the folder.
fn link(folder: &Path, path: &str, target: &str) -> Result<(), NpmError> {
    let link = create_parent(folder, path)?;
    clear(&link)?;
    let ups = path.split('/').count() - 1;
    let relative = "../".repeat(ups) + target;
    symlink(Path::new(relative.trim_end_matches('/')), &link).map_err(files(&link))
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::windows::fs::symlink_dir(target, link)
}

/// Copies plain files and folders of a clone, without git's own and without links.
fn copy_files(from: &Path, to: &Path, done: &mut Done, limits: &Limits) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if name == ".git" || name == "node_modules" || done.files > limits.files {
            continue;
        }
        if kind.is_dir() {
            copy_files(&entry.path(), &to.join(name), done, limits)?;
        } else if kind.is_file() {
            done.files += 1;
            done.bytes += fs::copy(entry.path(), to.join(name))?;
        } else {
            done.skipped += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_in_a_clone_does_not_lead_out() {
        let dir = tempfile::tempdir().unwrap();
        let (clone, other) = (dir.path().join("clone"), dir.path().join("other"));
        for folder in [&clone, &other] {
            fs::create_dir(folder).unwrap();
        }
        std::os::unix::fs::symlink(&other, clone.join("node_modules")).unwrap();
        std::os::unix::fs::symlink(&other, clone.join("packages")).unwrap();
        let target = create_parent(&clone, "node_modules/a").unwrap();
        fs::write(target, "").unwrap();
        assert!(create_parent(&clone, "packages/w/node_modules/a").is_err());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    }
}
