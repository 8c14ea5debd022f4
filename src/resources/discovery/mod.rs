//! Finds resources and their precedence: the command line, then settings and folder of the
//! project, those of the user, then packages. The rule is the same for extensions, skills,
//! prompts and themes.

pub mod collect;
pub mod extensions;
mod listing;
mod package;
mod patterns;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

pub use package::is_local_source;

use self::collect::{SkillLayout, collect_dir, collect_path, files_in, skills};
use self::package::Package;
use self::patterns::Patterns;
pub(crate) use self::patterns::is_pattern;
use crate::diagnostic::Diagnostic;
use crate::packages::PackageSource;
use crate::packages::install_paths::InstallPaths;
use crate::paths::{Paths, ResourceKind};
use crate::settings::{PackageFilter, Settings, SettingsScope};
use crate::source_info::{Origin, SourceInfo, SourceScope};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourcePath {
    pub path: PathBuf,
    pub source_info: SourceInfo,
}

/// Found paths in order of precedence: of two resources with the same name the first is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundResources {
    pub paths: Vec<ResourcePath>,
    pub diagnostics: Vec<Diagnostic>,
    /// Paths that were listed or looked up. The same search has another result only if one of
    /// these folders, files and links has changed or has appeared.
    pub looked_up: BTreeSet<PathBuf>,
}

/// Collects what a search reports and what it depends on.
#[derive(Default)]
pub struct SearchLog {
    pub(crate) problems: Vec<Diagnostic>,
    looked_up: BTreeSet<PathBuf>,
}

impl SearchLog {
    /// Notes that a folder is listed, or that a file, a link or a missing path matters.
    pub(crate) fn look_up(&mut self, path: impl Into<PathBuf>) {
        self.looked_up.insert(path.into());
    }
}

/// The places to search.
#[derive(Clone, Copy)]
pub struct ResourceSources<'a> {
    pub paths: &'a Paths,
    pub settings: &'a Settings,
    /// Values of `-e`: files or folders of packages.
    pub cli_extensions: &'a [String],
    /// Whether to search beyond the command line; false for `--no-extensions` and similar
    /// flags.
    pub discover: bool,
}

impl ResourceSources<'_> {
    pub fn find(&self, kind: ResourceKind) -> FoundResources {
        let mut finder = Finder {
            sources: self,
            kind,
            found: Candidates::new(kind),
            log: SearchLog::default(),
        };
        // If a file is found several times, the first of these calls decides its origin and
        // whether it is enabled. The result is sorted later.
        finder.add_packages();
        finder.add_settings_entries(SettingsScope::Project);
        finder.add_settings_entries(SettingsScope::Global);
        if !self.paths.ignores_project() {
            finder.add_own_folder(SettingsScope::Project);
        }
        finder.add_own_folder(SettingsScope::Global);
        let mut configured = std::mem::replace(&mut finder.found, Candidates::new(kind));
        configured.list.sort_by_key(Candidate::rank);
        if !self.discover {
            // Problems are dropped: this search only served to recognize the files of the
            // command line.
            finder.log.problems.clear();
        }
        finder.add_command_line();
        let mut paths = Vec::new();
        let mut seen = SeenFiles::new(kind);
        for mut candidate in finder.found.list {
            // A file of the command line that was also found otherwise keeps that origin.
            if let Some(known) = configured.get(&candidate.resource.path) {
                candidate = known.clone();
            }
            if seen.is_new(&candidate.resource.path, true) {
                paths.push(candidate.resource);
            }
        }
        if self.discover {
            let enabled = configured.list.into_iter().filter(|c| c.enabled);
            let new = enabled.filter(|c| seen.is_new(&c.resource.path, true));
            paths.extend(new.map(|c| c.resource));
        }
        // A manifest may be read several times.
        let mut diagnostics: Vec<Diagnostic> = Vec::new();
        for problem in finder.log.problems {
            if !diagnostics.contains(&problem) {
                diagnostics.push(problem);
            }
        }
        FoundResources {
            paths,
            diagnostics,
            looked_up: finder.log.looked_up,
        }
    }
}

impl ResourceSources<'_> {
    /// Returns the found resources and, last, those named by a flag such as `--skill` or by an
    /// extension. Named resources are used even if discovery is off.
    pub fn find_with_named(&self, kind: ResourceKind, named: &[NamedPath]) -> FoundResources {
        let FoundResources {
            mut paths,
            diagnostics,
            looked_up,
        } = self.find(kind);
        let mut log = SearchLog {
            problems: diagnostics,
            looked_up,
        };
        let mut seen = SeenFiles::new(kind);
        for found in &paths {
            seen.is_new(&found.path, true);
        }
        for name in named {
            let path = self.paths.resolve(&name.path, &self.paths.cwd);
            let files = match kind {
                _ if !path.exists() => {
                    let message =
                        format!("{} path does not exist: {}", kind.label(), path.display());
                    log.problems.push(Diagnostic::error(&path, message));
                    continue;
                }
                ResourceKind::Prompts if path.is_dir() => files_in(&path, "md", &mut log),
                ResourceKind::Themes if path.is_dir() => files_in(&path, "json", &mut log),
                _ => collect_path(&path, kind, &mut log),
            };
            for path in files {
                if seen.is_new(&path, true) {
                    let source_info = name.origin(&path).with_path(&path);
                    paths.push(ResourcePath { path, source_info });
                }
            }
        }
        FoundResources {
            paths,
            diagnostics: log.problems,
            looked_up: log.looked_up,
        }
    }
}

/// A path that the command line or an extension names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// The path as it was written.
    pub path: String,
    /// The file of the extension that named it, if one did.
    pub extension: Option<String>,
}

impl NamedPath {
    pub fn by_user(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            extension: None,
        }
    }

    fn origin(&self, file: &Path) -> SourceInfo {
        let named_by = self.extension.as_deref();
        let mut origin = match named_by {
            Some(path) => origin(&extension_label(path), SettingsScope::Project),
            None => origin("local", SettingsScope::Project),
        };
        origin.scope = SourceScope::Temporary;
        let dir = match named_by {
            Some(path) if path.starts_with('<') => None,
            Some(path) => Path::new(path).parent(),
            None => file.parent(),
        };
        origin.base_dir = dir.map(|dir| dir.to_string_lossy().into_owned());
        origin
    }
}

/// Returns the name of an extension as an origin.
fn extension_label(path: &str) -> String {
    if path.starts_with('<') {
        return format!("extension:{}", path.replace(['<', '>'], ""));
    }
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    let stem = name.strip_suffix(".ts").or(name.strip_suffix(".js"));
    format!("extension:{}", stem.unwrap_or(&name))
}

#[derive(Clone)]
struct Candidate {
    resource: ResourcePath,
    enabled: bool,
}

impl Candidate {
    fn rank(&self) -> u8 {
        let info = &self.resource.source_info;
        match (info.origin, info.scope, info.source.as_str()) {
            (Origin::Package, _, _) => 4,
            (_, SourceScope::Project, "local") => 0,
            (_, SourceScope::Project, _) => 1,
            (_, _, "local") => 2,
            _ => 3,
        }
    }
}

/// The files found so far. The first find of a file decides its origin and whether it is
/// enabled.
struct Candidates {
    list: Vec<Candidate>,
    seen: SeenFiles,
}

impl Candidates {
    fn new(kind: ResourceKind) -> Self {
        Self {
            list: Vec::new(),
            seen: SeenFiles::new(kind),
        }
    }

    fn add(&mut self, path: PathBuf, origin: &SourceInfo, enabled: bool) {
        if self.seen.is_new(&path, enabled) {
            let source_info = origin.with_path(&path);
            let resource = ResourcePath { path, source_info };
            self.list.push(Candidate { resource, enabled });
        }
    }

    fn get(&self, path: &Path) -> Option<&Candidate> {
        self.list
            .iter()
            .find(|candidate| candidate.resource.path == path)
    }
}

/// Detects files that were found before.
struct SeenFiles {
    /// Whether links to a file count as different resources. Prompts and themes are named after
    /// their path, so each link has another name.
    by_name: bool,
    paths: HashSet<PathBuf>,
    /// Canonical paths of enabled files.
    real: HashSet<PathBuf>,
}

impl SeenFiles {
    fn new(kind: ResourceKind) -> Self {
        Self {
            by_name: matches!(kind, ResourceKind::Prompts | ResourceKind::Themes),
            paths: HashSet::new(),
            real: HashSet::new(),
        }
    }

    fn is_new(&mut self, path: &Path, enabled: bool) -> bool {
        let is_new = self.paths.insert(path.to_owned());
        is_new && (!enabled || self.by_name || self.real.insert(canonical(path)))
    }
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns all files of one kind in a package, including those that the settings leave out.
pub fn resources_of_package(root: &Path, kind: ResourceKind) -> Vec<PathBuf> {
    let is_extension = kind == ResourceKind::Extensions;
    let mut log = SearchLog::default();
    if !root.is_dir() {
        return is_extension.then(|| root.to_owned()).into_iter().collect();
    }
    let package = Package { root, filter: None };
    if is_extension && !package.declares_resources(&mut log) {
        return vec![root.to_owned()];
    }
    let files = package.resources(kind, &mut log).into_iter();
    files.map(|(file, _)| file).collect()
}

struct Finder<'a> {
    sources: &'a ResourceSources<'a>,
    kind: ResourceKind,
    found: Candidates,
    log: SearchLog,
}

impl Finder<'_> {
    /// Adds the files that the settings of one root name.
    fn add_settings_entries(&mut self, scope: SettingsScope) {
        let base = &self.base(scope);
        let values = self.sources.settings.values_of(scope);
        let entries = values.resources(self.kind).iter();
        let (globs, plain): (Vec<_>, Vec<_>) = entries.partition(|entry| is_pattern(entry));
        let (patterns, complaints) = Patterns::parse(globs.into_iter().map(String::as_str));
        self.report_all(base, complaints);
        for entry in plain {
            let path = self.sources.paths.resolve(entry, base);
            self.log.look_up(&path);
            if !path.exists() {
                let list = self.kind.name();
                let message = format!(
                    "\"{entry}\" in the setting \"{list}\" does not exist: {}",
                    path.display()
                );
                self.log.problems.push(Diagnostic::warning(&path, message));
                continue;
            }
            for file in collect_path(&path, self.kind, &mut self.log) {
                let enabled = patterns.allow(&file, base);
                self.found.add(file, &origin("local", scope), enabled);
            }
        }
    }

    /// Adds the files in the folder of one root, as far as its settings do not disable them.
    fn add_own_folder(&mut self, scope: SettingsScope) {
        let base = self.base(scope);
        let values = self.sources.settings.values_of(scope);
        // Invalid patterns were reported with the entries of the settings.
        let (overrides, _) = Patterns::parse_overrides(values.resources(self.kind));
        let mut origin = origin("auto", scope);
        origin.base_dir = Some(base.to_string_lossy().into_owned());
        for path in self.own_files(scope, &base) {
            let enabled = overrides.allow(&path, &base);
            self.found.add(path, &origin, enabled);
        }
    }

    /// Returns the files in the folder of this kind below a root.
    fn own_files(&mut self, scope: SettingsScope, base: &Path) -> Vec<PathBuf> {
        let dir = base.join(self.kind.name());
        let log = &mut self.log;
        match self.kind {
            ResourceKind::Extensions => collect_dir(&dir, self.kind, log),
            ResourceKind::Prompts => files_in(&dir, "md", log),
            ResourceKind::Themes => files_in(&dir, "json", log),
            ResourceKind::Skills => {
                let mut found = skills(&dir, SkillLayout::Pi, log);
                for dir in self.shared_skill_dirs(scope) {
                    found.extend(skills(&dir, SkillLayout::Agents, &mut self.log));
                }
                found
            }
        }
    }

    /// Returns the folders `.agents/skills`, which other agents also read: in the home folder,
    /// and from the working folder up to the root of its repository.
    fn shared_skill_dirs(&self, scope: SettingsScope) -> Vec<PathBuf> {
        let Paths { home, cwd, .. } = self.sources.paths;
        let below = |dir: &Path| dir.join(".agents").join("skills");
        match scope {
            SettingsScope::Global => vec![below(home)],
            SettingsScope::Project => {
                let repository = cwd.ancestors().find(|dir| dir.join(".git").exists());
                let last = repository.unwrap_or(Path::new("/"));
                let dirs = cwd.ancestors().take_while(|dir| dir.starts_with(last));
                dirs.filter(|dir| dir != home).map(below).collect()
            }
        }
    }

    fn add_packages(&mut self) {
        let mut known = HashSet::new();
        for scope in [SettingsScope::Project, SettingsScope::Global] {
            let base = self.base(scope);
            for entry in &self.sources.settings.values_of(scope).packages {
                let source = entry.source.as_str();
                let mut origin = origin(source, scope);
                origin.origin = Origin::Package;
                let parsed = match PackageSource::parse(source) {
                    Ok(parsed) => parsed,
                    Err(error) => {
                        let error = error.to_string();
                        self.report(Diagnostic::warning(Path::new(source), error));
                        continue;
                    }
                };
                // An entry of the project replaces the same one of the user.
                if !known.insert(parsed.identity(self.sources.paths, &base)) {
                    continue;
                }
                if let Some(root) = self.installed(source, &parsed, origin.scope) {
                    self.package(&root, entry.filter.as_ref(), origin);
                }
            }
        }
    }

    /// Returns the folder of a package. A missing folder is reported.
    fn installed(
        &mut self,
        source: &str,
        parsed: &PackageSource,
        scope: SourceScope,
    ) -> Option<PathBuf> {
        let install_paths = InstallPaths::new(self.sources.paths, self.sources.settings);
        let mut place = PathBuf::from(source);
        let root = install_paths.package_folder(parsed, scope);
        self.log.look_up(&root);
        let message = match parsed {
            _ if root.exists() => return Some(root),
            PackageSource::Local(_) => {
                place = root;
                format!(
                    "The package \"{source}\" does not exist: {}",
                    place.display()
                )
            }
            _ if scope == SourceScope::Temporary => {
                format!("The package \"{source}\" is not there")
            }
            _ => {
                let local = match scope {
                    SourceScope::Project => " -l",
                    _ => "",
                };
                format!(
                    "The package \"{source}\" is not installed. Run: pi install{local} {source}"
                )
            }
        };
        self.report(match scope {
            // The user named this package.
            SourceScope::Temporary => Diagnostic::error(&place, message),
            _ => Diagnostic::warning(&place, message),
        });
        None
    }

    fn package(&mut self, root: &Path, filter: Option<&PackageFilter>, mut origin: SourceInfo) {
        let is_extension = self.kind == ResourceKind::Extensions;
        if !root.is_dir() {
            if is_extension {
                let dir = root.parent().unwrap_or(root);
                origin.base_dir = Some(dir.to_string_lossy().into_owned());
                self.found.add(root.to_owned(), &origin, true);
            }
            return;
        }
        origin.base_dir = Some(root.to_string_lossy().into_owned());
        let package = Package { root, filter };
        if is_extension && !package.declares_resources(&mut self.log) {
            self.found.add(root.to_owned(), &origin, true);
            return;
        }
        for (file, enabled) in package.resources(self.kind, &mut self.log) {
            self.found.add(file, &origin, enabled);
        }
    }

    fn add_command_line(&mut self) {
        let Paths { cwd, .. } = self.sources.paths;
        for source in self.sources.cli_extensions {
            let root = match PackageSource::parse(source) {
                Ok(PackageSource::Local(_)) => {
                    let root = self.sources.paths.resolve(source, cwd);
                    self.log.look_up(&root);
                    if !root.exists() {
                        let message = format!("Extension path does not exist: {}", root.display());
                        self.report(Diagnostic::error(&root, message));
                        continue;
                    }
                    root
                }
                Ok(parsed) => match self.installed(source, &parsed, SourceScope::Temporary) {
                    Some(root) => root,
                    None => continue,
                },
                Err(error) => {
                    self.report(Diagnostic::error(Path::new(source), error.to_string()));
                    continue;
                }
            };
            let before = self.found.list.len();
            let cli = SourceInfo {
                scope: SourceScope::Temporary,
                ..origin("cli", SettingsScope::Project)
            };
            let package = SourceInfo {
                source: source.clone(),
                origin: Origin::Package,
                ..cli.clone()
            };
            self.package(&root, None, package);
            // The original reports `cli` as the origin for these kinds.
            if matches!(self.kind, ResourceKind::Extensions | ResourceKind::Skills) {
                for candidate in &mut self.found.list[before..] {
                    let path = &candidate.resource.path;
                    candidate.resource.source_info = cli.with_path(path);
                }
            }
        }
    }

    fn base(&self, scope: SettingsScope) -> PathBuf {
        match scope {
            SettingsScope::Global => self.sources.paths.agent_dir.clone(),
            SettingsScope::Project => self.sources.paths.project_dir(),
        }
    }

    /// Reports a problem of a source once instead of once per kind.
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.kind == ResourceKind::Extensions {
            self.log.problems.push(diagnostic);
        }
    }

    fn report_all(&mut self, base: &Path, complaints: Vec<String>) {
        let complaints = complaints.into_iter();
        let problems = complaints.map(|message| Diagnostic::warning(base, message));
        self.log.problems.extend(problems);
    }
}

fn origin(source: &str, scope: SettingsScope) -> SourceInfo {
    SourceInfo {
        path: String::new(),
        source: source.to_owned(),
        scope: match scope {
            SettingsScope::Global => SourceScope::User,
            SettingsScope::Project => SourceScope::Project,
        },
        origin: Origin::TopLevel,
        base_dir: None,
    }
}
