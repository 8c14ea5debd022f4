//! Packages of npm, without npm. Each is a folder of its own with its dependencies inside, so that
//! one can be replaced without the others.

use std::fs;
use std::future::Future;
use std::io;
use std::path::Path;

use chrono::Utc;
use pi_base::regular_file;
use pi_npm::{Npm, NpmConfig, NpmError, Options, Root, Tree};
use pi_resources::packages::source::NpmSource;
use serde_json::{Map, Value};

use super::fetch::{Staged, create_root, files};
use super::folder_swap::staging;
use super::lock_file::LockedSource;
use super::{PackageError, Packages, release_age};
use pi_resources::source_info::SourceScope;

/// Modules that pi has itself under the names of the original's packages.
const PROVIDED: &[&str] = &[
    "@mariozechner/pi-agent-core",
    "@mariozechner/pi-ai",
    "@mariozechner/pi-coding-agent",
    "@mariozechner/pi-tui",
    "@earendil-works/pi-agent-core",
    "@earendil-works/pi-ai",
    "@earendil-works/pi-coding-agent",
    "@earendil-works/pi-tui",
    "@sinclair/typebox",
    "typebox",
];

/// Files by which npm would restore what it has installed itself.
const FILES_OF_NPM: [&str; 2] = ["package-lock.json", "node_modules/.package-lock.json"];

impl Packages<'_> {
    pub(super) fn npm_client(&self) -> Result<&Npm, PackageError> {
        if self.npm.get().is_none() {
            let config = NpmConfig::of_user(&self.paths.home).map_err(NpmError::from)?;
            let _ = self.npm.set(Npm::new(config, pi_ai::http::builder)?);
        }
        Ok(self.npm.get().expect("it was set"))
    }

    /// Chooses the versions of a package and of all that it needs.
    pub(super) fn resolve_npm(
        &self,
        text: &str,
        npm: &NpmSource,
        range: &str,
        scope: SourceScope,
    ) -> Result<Tree, PackageError> {
        let client = self.npm_client()?;
        // The user has chosen a version by its number.
        let exempt = npm.exact_version().map(|_| npm.name.clone());
        let root = Root::Package {
            name: npm.name.clone(),
            range: range.to_owned(),
        };
        let exempt: Vec<String> = exempt.into_iter().collect();
        self.resolve_with(client, text, &root, &exempt, scope)
    }

    pub(super) fn resolve_with(
        &self,
        client: &Npm,
        text: &str,
        root: &Root,
        exempt: &[String],
        scope: SourceScope,
    ) -> Result<Tree, PackageError> {
        let hours = release_age::hours(self.settings, client.minimum_age_days());
        let newest = match self.options.ignore_release_age {
            true => None,
            false => release_age::newest(hours),
        };
        let options = Options {
            provided: PROVIDED,
            newest,
            exempt: exempt.to_vec(),
            project: match root {
                Root::Package { .. } => self.manifest_of_project(scope)?,
                Root::Folder(_) => Map::new(),
            },
        };
        let resolved = self.block_on(|| client.resolve(root, &options));
        resolved.map_err(|error| match error {
            NpmError::TooNew(why) => PackageError::TooNew {
                why,
                hours,
                command: match scope {
                    SourceScope::Project => {
                        format!("pi install -l --ignore-release-age {}", text.trim())
                    }
                    _ => format!("pi install --ignore-release-age {}", text.trim()),
                },
            },
            other => other.into(),
        })
    }

    /// Returns the manifest of the npm project; empty if there is none yet.
    fn manifest_of_project(&self, scope: SourceScope) -> Result<Map<String, Value>, PackageError> {
        let root = self.install_paths.npm_project(scope);
        match root.join("package.json").exists() {
            true => project_manifest(&root),
            false => Ok(Map::new()),
        }
    }

    /// Installs a tree beside the old version.
    pub(super) fn stage_npm(
        &self,
        text: &str,
        npm: &NpmSource,
        tree: Tree,
        scope: SourceScope,
    ) -> Result<Staged, PackageError> {
        let root = self.install_paths.npm_project(scope);
        let target = self.install_paths.npm_target(&npm.name, scope);
        self.refuse_links(scope, &target)?;
        // Fails before anything is downloaded.
        project_manifest(&root)?;
        let staging = staging(&root).map_err(files(&root))?;
        let new = staging.path().join("package");
        let client = self.npm_client()?;
        let installed = self.block_on(|| client.install(tree, &new))?;
        self.report_warnings(&installed);
        let package = installed.tree.root().cloned().unwrap_or_default();
        let locked = LockedSource {
            source: text.trim().to_owned(),
            version: Some(package.version),
            commit: None,
            integrity: package.integrity,
            installed: Utc::now(),
            tree: installed.tree,
        };
        Ok(Staged {
            staging,
            new,
            target,
            locked,
            scripts: installed.scripts,
        })
    }

    /// Adds a package to the manifest of the npm project, or removes it, so that npm neither
    /// removes nor restores it when it is used there.
    pub(super) fn add_to_project(
        &self,
        scope: SourceScope,
        name: &str,
        version: Option<&str>,
    ) -> Result<(), PackageError> {
        let root = self.install_paths.npm_project(scope);
        if !root.exists() {
            return Ok(());
        }
        let path = root.join("package.json");
        let mut manifest = project_manifest(&root)?;
        let dependencies = manifest
            .entry("dependencies")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(dependencies) = dependencies {
            match version {
                Some(version) => drop(dependencies.insert(name.to_owned(), version.into())),
                None => drop(dependencies.remove(name)),
            }
        }
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|error| files(&path)(io::Error::other(error)))?;
        fs::write(&path, text + "\n").map_err(files(&path))?;
        for file in FILES_OF_NPM {
            match fs::remove_file(root.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(files(&root.join(file))(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs a future to its end on a thread of its own, because the caller may be in a runtime
    /// already.
    pub(super) fn block_on<T, F>(&self, make: impl FnOnce() -> F + Send) -> Result<T, NpmError>
    where
        T: Send,
        F: Future<Output = Result<T, NpmError>>,
    {
        let failed =
            |why: String| NpmError::Resolution(format!("packages cannot be fetched: {why}"));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(|error| failed(error.to_string()))?;
                runtime.block_on(make())
            });
            match thread.join() {
                Ok(result) => result,
                Err(_) => Err(failed(
                    "the installer has stopped with an error of its own".to_owned(),
                )),
            }
        })
    }
}

/// Reads the manifest of an npm project, which is created if it is missing.
fn project_manifest(root: &Path) -> Result<Map<String, Value>, PackageError> {
    create_project(root).map_err(files(root))?;
    let path = root.join("package.json");
    let text = regular_file::read_text(&path).map_err(files(&path))?;
    serde_json::from_str(&text)
        .map_err(|error| files(&path)(io::Error::new(io::ErrorKind::InvalidData, error)))
}

pub(super) fn create_project(root: &Path) -> io::Result<()> {
    create_root(root)?;
    let manifest = root.join("package.json");
    match manifest.exists() {
        true => Ok(()),
        false => fs::write(
            manifest,
            "{\n  \"name\": \"pi-extensions\",\n  \"private\": true\n}",
        ),
    }
}
