//! Resolves import specifiers: pi's modules first, then Node's built-ins, then paths with jiti's
//! probing, then packages with Node's algorithm.

mod hints;
pub(in crate::loader) mod scan_imports;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::attribution::imports::Imports;
use crate::attribution::load_input::{InputKind, LoadInput, entry_file, path_digest};
use crate::attribution::sources::{COPY_QUERY, Sources};
use crate::loader::cache::DiskCache;
use crate::loader::cache::manifest::LoadStep;
use crate::loader::cache::prefetched::Prefetched;
use crate::loader::disk::{Disk, Probed};
use crate::loader::files::{Checker, Files, to_js_error};
use crate::loader::import_position;
use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_error::{JsErrorBox, JsErrorClass};
use deno_path_util::{url_from_file_path, url_to_file_path};
use deno_resolver::npm::{
    ByonmInNpmPackageChecker, ByonmNpmResolver, ByonmNpmResolverCreateOptions,
    DenoInNpmPackageChecker, NpmResolver,
};
use deno_runtime::deno_node::NodeResolverRc;
use js_runtime_ext::{EXTENSIONS, package_name, past_empty_package, probe_package, virtual_module};
use node_resolver::cache::NodeResolutionSys;
use node_resolver::{
    DenoIsBuiltInNodeModuleChecker, IsBuiltInNodeModuleChecker, NodeConditionOptions,
    NodeResolutionKind, NodeResolver, NodeResolverOptions, PackageJsonResolver,
    PackageJsonResolverRc, ResolutionMode,
};

/// Node's modules that need "node:"; without it they are packages, as for `require`
/// (`js/node/require.ts`).
const SCHEME_ONLY_MODULES: [&str; 4] = ["sea", "sqlite", "test", "test/reporters"];

pub(crate) type FolderResolver = NpmResolver<Disk>;

#[derive(Clone)]
pub(crate) struct Resolver {
    pub node: NodeResolverRc<Checker, FolderResolver, Disk>,
    pub npm: FolderResolver,
    files: Files,
    owners: Rc<RefCell<ModuleOwners>>,
    imports: Imports,
}

/// Every extension has its own instance of each of its own files, as with a loader per extension,
/// so that module-level variables of a shared helper do not mix.
#[derive(Default)]
struct ModuleOwners {
    /// Extension to which a module belongs.
    by_module: HashMap<ModuleSpecifier, u32>,
    /// Entry of an extension before its symbolic link was followed.
    links: HashMap<u32, ModuleSpecifier>,
}

impl Resolver {
    pub fn new(
        cache: DiskCache,
        disk: Disk,
        prepared: Prefetched,
        imports: Imports,
    ) -> (Self, Files) {
        let disk = disk.recording_into(imports.clone());
        let checker = DenoInNpmPackageChecker::Byonm(ByonmInNpmPackageChecker);
        let sys = NodeResolutionSys::new(disk.clone(), Some(Arc::new(disk.clone())));
        let package_json: PackageJsonResolverRc<Disk> = deno_maybe_sync::new_rc(
            PackageJsonResolver::new(disk.clone(), Some(Arc::new(disk.clone()))),
        );
        let options = ByonmNpmResolverCreateOptions {
            root_node_modules_dir: None,
            search_stop_dir: None,
            sys: sys.clone(),
            pkg_json_resolver: package_json.clone(),
        };
        let npm = NpmResolver::Byonm(deno_maybe_sync::new_rc(ByonmNpmResolver::new(options)));
        // The condition "deno" is left out, which Node does not have.
        let conditions = ["node", "import", "module-sync", "node-addons"]
            .map(Cow::Borrowed)
            .to_vec();
        let node = deno_maybe_sync::new_rc(NodeResolver::new(
            checker.clone(),
            DenoIsBuiltInNodeModuleChecker,
            npm.clone(),
            package_json.clone(),
            sys,
            NodeResolverOptions {
                conditions: NodeConditionOptions {
                    import_conditions_override: Some(conditions),
                    ..Default::default()
                },
                ..Default::default()
            },
        ));
        let files = Files::new(cache, prepared, disk, checker, package_json);
        let resolver = Self {
            node,
            npm,
            files: files.clone(),
            owners: Rc::default(),
            imports,
        };
        (resolver, files)
    }

    /// Returns the entry module of extension `id`. Links are followed, since the imports of a
    /// linked extension are beside the real file.
    pub fn entry(&self, id: u32, path: &Path) -> Result<ModuleSpecifier, String> {
        let kept = self.files.kept_sources(id).and_then(Sources::entry);
        let entry = match kept {
            Some(kept) => {
                // Packages may be beside the link.
                _ = self.entry_file(id, path);
                kept
            }
            None => self.entry_file(id, path)?,
        };
        self.imports.note_entry(id, &entry);
        Ok(self.assign_owner(entry, id))
    }

    fn entry_file(&self, id: u32, path: &Path) -> Result<ModuleSpecifier, String> {
        let disk = &self.files.disk;
        let found = entry_file(path);
        let real = found.as_ref().map(|found| disk.real(found));
        let answer = real.as_ref().and_then(|real| real.as_ref().ok());
        let input = LoadInput::new(InputKind::Entry, path);
        let answer = answer.map(|real| path_digest(real));
        self.imports.note_input(Some(id), input, answer);
        let (found, real) = found.zip(real).ok_or_else(|| match path.is_dir() {
            true => format!("{} has no index.ts or index.js", path.display()),
            false => format!("{} does not exist", path.display()),
        })?;
        let real = real.map_err(|error| format!("{}: {error}", found.display()))?;
        let as_url = |path: &Path| url_from_file_path(path).map_err(|error| error.to_string());
        let url = as_url(&real)?;
        if real != found && found.is_absolute() {
            self.owners.borrow_mut().links.insert(id, as_url(&found)?);
        }
        Ok(url)
    }

    pub fn resolve(&self, specifier: &str, referrer: &str) -> Result<ModuleSpecifier, JsErrorBox> {
        self.find(specifier, referrer).map_err(|error| {
            let text = error.to_string();
            // Node's wording, by which code recognizes missing optional dependencies.
            let package = text
                .strip_prefix("Could not find package '")
                .and_then(|rest| Some(rest.split_once('\'')?.0));
            let hint = || {
                let from = ModuleSpecifier::parse(referrer).ok()?;
                let hint = match package {
                    Some(package) => hints::package_hint(specifier, package, &from),
                    None if is_path(specifier) => hints::file_hint(specifier, &from),
                    None => None,
                };
                hint.map(|hint| format!(": {hint}"))
            };
            // deno_core puts this code before all modules that it does not find.
            let plain = text.strip_prefix("[ERR_MODULE_NOT_FOUND] ");
            let plain = with_paths(plain.unwrap_or(&text));
            match (
                import_position::position_of_import(specifier, referrer),
                package,
            ) {
                (Some(position), Some(package)) => {
                    let hint = hint().unwrap_or_default();
                    JsErrorBox::generic(format!(
                        "Cannot find package '{package}' in any node_modules{hint} (imported at \
                         {position})"
                    ))
                }
                (Some(position), None) => {
                    let hint = hint().unwrap_or_default();
                    JsErrorBox::generic(format!("{plain}{hint} (imported at {position})"))
                }
                // A script, or a computed name: the message is Node's.
                (None, Some(package)) => {
                    let from = display_path(referrer);
                    JsErrorBox::generic(format!(
                        "Cannot find package '{package}' imported from {from}"
                    ))
                }
                (None, None) => JsErrorBox::new(error.get_class(), plain),
            }
        })
    }

    /// Resolves `import.meta.resolve`, which does not check whether a file exists.
    pub fn resolve_name(
        &self,
        specifier: &str,
        referrer: &str,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        self.resolve(specifier, referrer).or_else(|error| {
            let named = match is_path(specifier) {
                true => ModuleSpecifier::parse(referrer).and_then(|from| from.join(specifier)),
                false => ModuleSpecifier::parse(specifier),
            };
            named.map_err(|_| error)
        })
    }

    /// Resolves without computing the position for an error.
    pub fn find(&self, specifier: &str, referrer: &str) -> Result<ModuleSpecifier, JsErrorBox> {
        if let Some(module) = virtual_module(specifier) {
            return ModuleSpecifier::parse(module).map_err(to_js_error);
        }
        if ["node:", "pi:", "ext:", "data:"]
            .iter()
            .any(|scheme| specifier.starts_with(scheme))
        {
            return ModuleSpecifier::parse(specifier).map_err(to_js_error);
        }
        if SCHEME_ONLY_MODULES.contains(&specifier) {
            return self.resolve_shadowed_package(specifier, referrer);
        }
        if DenoIsBuiltInNodeModuleChecker.is_builtin_node_module(specifier) {
            return ModuleSpecifier::parse(&format!("node:{specifier}")).map_err(to_js_error);
        }
        // Entry points have "." as their referrer.
        let referrer = ModuleSpecifier::parse(referrer)
            .or_else(|_| ModuleSpecifier::parse(specifier))
            .map_err(to_js_error)?;
        let Some(owner) = self.owner_of(&referrer) else {
            return match is_path(specifier) {
                true => self.find_file(specifier, &referrer),
                false => self.find_package(specifier, &referrer),
            };
        };
        let kept = self.files.kept_sources(owner);
        if let Some(target) = kept.and_then(|kept| kept.target(&referrer, specifier)) {
            return Ok(self.assign_owner(target, owner));
        }
        let found = match is_path(specifier) {
            true => self.find_file(specifier, &referrer)?,
            false => {
                self.note_package_folders(owner, specifier, &referrer);
                self.find_package(specifier, &referrer)?
            }
        };
        if found.scheme() != "file" || self.files.is_packaged(&found) {
            return Ok(found);
        }
        self.imports
            .note_target(owner, &referrer, specifier, &found);
        Ok(match is_path(specifier) {
            true => found,
            // The target is a package linked from a workspace, or a file by a name of `imports`.
            false => self.assign_owner(found, owner),
        })
    }

    /// Returns the extension to which a module belongs.
    pub fn owner_of(&self, module: &ModuleSpecifier) -> Option<u32> {
        self.owners.borrow().by_module.get(module).copied()
    }

    /// Resolves the package of a name that Deno takes for a module of Node.
    fn resolve_shadowed_package(
        &self,
        specifier: &str,
        referrer: &str,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let referrer = ModuleSpecifier::parse(referrer).map_err(to_js_error)?;
        let from = url_to_file_path(&referrer).map_err(to_js_error)?;
        let (name, within) = match specifier.split_once('/') {
            Some((name, within)) => (name, Some(within)),
            None => (specifier, None),
        };
        let mut folders = from.ancestors().skip(1);
        let package = folders.find_map(|folder| {
            let package = folder.join("node_modules").join(name);
            package.is_dir().then_some(package)
        });
        let package =
            package.ok_or_else(|| JsErrorBox::generic(format!("Cannot find package '{name}'")))?;
        let found = self.node.resolve_package_subpath_from_deno_module(
            &package,
            within,
            Some(&referrer),
            ResolutionMode::Import,
            NodeResolutionKind::Execution,
        );
        let found = found.map_err(JsErrorBox::from_err)?;
        found.into_url().map_err(JsErrorBox::from_err)
    }

    fn find_file(
        &self,
        specifier: &str,
        referrer: &ModuleSpecifier,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let url = referrer.join(specifier).map_err(to_js_error)?;
        let path = url_to_file_path(&url).map_err(to_js_error)?;
        if self.files.is_virtual(&path) {
            return Ok(url);
        }
        let owner = self.owner_of(referrer);
        self.files.recorder.record(|| LoadStep::Path(path.clone()));
        let disk = &self.files.disk;
        let note = |kind, path: &Path, found: Option<&Probed>| {
            if let Some(owner) = owner {
                let answer = found.map(|found| path_digest(&found.real));
                self.imports
                    .note_input(Some(owner), LoadInput::new(kind, path), answer);
            }
        };
        // jiti takes the specifier for a path: `./c#` may be c#.ts.
        let literal = literal_path(specifier, referrer).and_then(|path| {
            let found = disk.probe(&path);
            note(InputKind::Import, &path, found.as_ref());
            found
        });
        let is_literal = literal.is_some();
        let found = literal.or_else(|| {
            let is_folder = url.path().ends_with('/');
            let folder = is_folder.then(|| disk.probe_folder(&path)).flatten();
            let found = folder.or_else(|| disk.probe(&path));
            let kind = match is_folder {
                true => InputKind::Folder,
                false => InputKind::Import,
            };
            note(kind, &path, found.as_ref());
            found
        });
        let found = found.ok_or_else(|| {
            JsErrorBox::generic(format!(
                "Cannot find module '{specifier}' ({})",
                path.display()
            ))
        })?;
        // As in Node, imports are resolved from the real file, which is one module under all its
        // names.
        if found.real != found.path
            && let Some(owner) = owner
        {
            self.imports.note(owner, found.path);
        }
        let mut resolved = url_from_file_path(&found.real).map_err(to_js_error)?;
        // `import("./x?v=2")` asks for a fresh copy; the specifier of an entry may have the query
        // that `entry` added.
        if url.query().is_some() && !is_literal {
            resolved.set_query(url.query());
            return Ok(resolved);
        }
        Ok(match owner {
            Some(owner) if self.files.is_lenient(&resolved) => self.assign_owner(resolved, owner),
            _ => resolved,
        })
    }

    fn find_package(
        &self,
        specifier: &str,
        referrer: &ModuleSpecifier,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        self.files.recorder.record(|| LoadStep::Package {
            name: specifier.to_owned(),
            // All files of a folder resolve a package in the same way.
            referrer: referrer
                .join("_")
                .unwrap_or_else(|_| referrer.clone())
                .into(),
        });
        let resolve = |referrer: &ModuleSpecifier, mode| {
            self.node
                .resolve(specifier, referrer, mode, NodeResolutionKind::Execution)
                .and_then(|resolution| resolution.into_url())
        };
        // jiti falls back to the resolution of `require()`.
        let imported = (self.files.disk).package(specifier, referrer, || {
            resolve(referrer, ResolutionMode::Import)
        });
        let found = imported.or_else(|error| {
            resolve(referrer, ResolutionMode::Require).map_err(|_| JsErrorBox::from_err(error))
        });
        // The target of the package's own "imports" is probed for as well.
        let found = found.or_else(|error| {
            let mut candidates = own_import_candidates(specifier);
            let resolved = candidates.find_map(|specifier| {
                self.node
                    .resolve(
                        &specifier,
                        referrer,
                        ResolutionMode::Import,
                        NodeResolutionKind::Execution,
                    )
                    .and_then(|resolution| resolution.into_url())
                    .ok()
            });
            resolved.ok_or(error)
        });
        let found = found.or_else(|error| {
            let from = url_to_file_path(referrer).ok();
            let found = from.and_then(|from| probe_package(specifier, from.parent()?));
            let real = found.and_then(|found| self.files.disk.real(&found).ok());
            let url = real.and_then(|real| url_from_file_path(&real).ok());
            url.ok_or(error)
        });
        let found = found.or_else(|error| {
            let from = url_to_file_path(referrer).ok();
            let above = from.as_deref().and_then(Path::parent);
            let above = above.and_then(|from| past_empty_package(specifier, from));
            let above = above.and_then(|above| url_from_file_path(&above.join("_")).ok());
            let found = above.and_then(|above| self.find_package(specifier, &above).ok());
            found.ok_or(error)
        });
        found.or_else(|error| {
            // The package may be beside the link by which the extension was loaded.
            let owners = self.owners.borrow();
            let link = owners
                .by_module
                .get(referrer)
                .and_then(|id| owners.links.get(id));
            let link = link.ok_or_else(|| error.to_string());
            match link.map(|link| resolve(link, ResolutionMode::Import)) {
                Ok(Ok(url)) => Ok(url),
                _ => Err(error),
            }
        })
    }

    /// Records the folders where the package of an import may be, the nearest first, up to the
    /// first that exists.
    fn note_package_folders(&self, owner: u32, specifier: &str, referrer: &ModuleSpecifier) {
        let (Some(name), Ok(from)) = (package_name(specifier), url_to_file_path(referrer)) else {
            return;
        };
        for folder in from.ancestors().skip(1) {
            let folder = folder.join("node_modules").join(name);
            let real = self.files.disk.real(&folder).ok();
            let answer = real.as_deref().map(path_digest);
            let input = LoadInput::new(InputKind::Presence, folder);
            self.imports.note_input(Some(owner), input, answer);
            if answer.is_some() {
                return;
            }
        }
    }

    /// Returns the instance of an own file that belongs to extension `id`.
    fn assign_owner(&self, url: ModuleSpecifier, id: u32) -> ModuleSpecifier {
        let kept = self.files.kept_sources(id).and_then(|kept| kept.text(&url));
        let instance = self.instance_of(url, id);
        if let Some(text) = kept {
            self.files.pin(&instance, text);
        }
        instance
    }

    fn instance_of(&self, url: ModuleSpecifier, id: u32) -> ModuleSpecifier {
        let mut owners = self.owners.borrow_mut();
        let owner = *owners.by_module.entry(url.clone()).or_insert(id);
        if let Ok(path) = url_to_file_path(&url) {
            self.imports.note(id, path);
        }
        if owner == id {
            return url;
        }
        let mut copy = url;
        copy.set_query(Some(&format!("{COPY_QUERY}{id}")));
        owners.by_module.insert(copy.clone(), id);
        copy
    }
}

/// Returns the path as it is written, without interpreting it as a URL.
fn literal_path(specifier: &str, referrer: &ModuleSpecifier) -> Option<PathBuf> {
    let is_special = specifier.contains(['#', '?', '%']) && !specifier.starts_with("file:");
    let from = is_special.then(|| url_to_file_path(referrer).ok())??;
    Some(deno_path_util::normalize_path(Cow::Owned(from.parent()?.join(specifier))).into_owned())
}

/// Formats an error as Node does: paths instead of URLs, and quotes only around what was not found.
fn with_paths(text: &str) -> String {
    let mut text = text.to_string();
    for before in [
        "Cannot find module '",
        "\"exports\" in '",
        " imported from '",
    ] {
        let Some((head, rest)) = text.split_once(before) else {
            continue;
        };
        let Some((name, tail)) = rest.split_once('\'') else {
            continue;
        };
        let name = display_path(name);
        text = match before.strip_suffix('\'') {
            Some(before) if !before.starts_with("Cannot") => format!("{head}{before}{name}{tail}"),
            _ => format!("{head}{before}{name}'{tail}"),
        };
    }
    text
}

/// Returns the path of a file URL.
fn display_path(address: &str) -> String {
    let url = ModuleSpecifier::parse(address).ok();
    let path = url.and_then(|url| url_to_file_path(&url).ok());
    path.map_or_else(
        || address.to_string(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// Returns the candidates for a name of `imports` that does not resolve as it is.
fn own_import_candidates(specifier: &str) -> impl Iterator<Item = String> {
    let is_own = specifier.starts_with('#');
    let with = |between: &'static str| {
        let extensions = EXTENSIONS.iter();
        extensions.map(move |extension| format!("{specifier}{between}{extension}"))
    };
    let source = specifier
        .strip_suffix(".js")
        .map(|name| format!("{name}.ts"));
    let all = with(".").chain(source).chain(with("/index."));
    all.filter(move |_| is_own)
}

/// Returns Node's error for the `import` of a file whose extension is not one of a module.
/// `position` returns where the import is.
pub(in crate::loader) fn check_file_extension(
    url: &ModuleSpecifier,
    position: impl FnOnce() -> Option<String>,
) -> Result<(), JsErrorBox> {
    use MediaType::{Css, Html, Json5, Jsonc, Markdown, SourceMap, Sql, Unknown};
    let (Css | Html | Json5 | Jsonc | Markdown | SourceMap | Sql | Unknown) =
        MediaType::from_specifier(url)
    else {
        return Ok(());
    };
    let path = url_to_file_path(url).map_err(to_js_error)?;
    let Some(ending) = path.extension().filter(|ending| *ending != "node") else {
        return Ok(());
    };
    let position = position().map(|position| format!(" (imported at {position})"));
    Err(JsErrorBox::type_error(format!(
        "[ERR_UNKNOWN_FILE_EXTENSION] Unknown file extension \".{}\" for {}: read the file, or \
         import it `with {{ type: \"text\" }}`{}",
        ending.display(),
        path.display(),
        position.unwrap_or_default()
    )))
}

fn is_path(specifier: &str) -> bool {
    ["./", "../", "/", "file:"]
        .iter()
        .any(|start| specifier.starts_with(start))
        || specifier == "."
        || specifier == ".."
}

#[cfg(test)]
mod tests {
    use super::with_paths;

    #[test]
    fn errors_have_paths_as_in_node() {
        for (text, expected) in [
            (
                "[CODE] Package subpath './a' is not defined by \"exports\" in '/p/package.json' imported from 'file:///x%20y.mjs'",
                "[CODE] Package subpath './a' is not defined by \"exports\" in /p/package.json imported from /x y.mjs",
            ),
            (
                "Cannot find module 'file:///p/gone.js' imported from 'file:///x.mjs'",
                "Cannot find module '/p/gone.js' imported from /x.mjs",
            ),
            (
                "Cannot find module './a' (/a)",
                "Cannot find module './a' (/a)",
            ),
        ] {
            assert_eq!(with_paths(text), expected);
        }
    }
}
