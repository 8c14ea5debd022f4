//! From what an import says to a module: our own modules first, then Node's
//! built-ins, then paths with jiti's probing, then packages with Node's algorithm.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use super::advice;
use super::disk::Disk;
use super::files::{COPY, Checker, Files, error};
use super::position;
use super::prepared::Prepared;
use super::trail::Step;
use crate::cache::DiskCache;
use crate::imports::Imports;
use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_error::{JsErrorBox, JsErrorClass};
use deno_path_util::{url_from_file_path, url_to_file_path};
use deno_resolver::npm::{
    ByonmInNpmPackageChecker, ByonmNpmResolver, ByonmNpmResolverCreateOptions,
    DenoInNpmPackageChecker, NpmResolver,
};
use deno_runtime::deno_node::NodeResolverRc;
use js_runtime_ext::{EXTENSIONS, index, past_empty_package, probe_package, virtual_module};
use node_resolver::cache::NodeResolutionSys;
use node_resolver::{
    DenoIsBuiltInNodeModuleChecker, IsBuiltInNodeModuleChecker, NodeConditionOptions,
    NodeResolutionKind, NodeResolver, NodeResolverOptions, PackageJsonResolver,
    PackageJsonResolverRc, ResolutionMode,
};

/// Modules of Node's that are packages without "node:" before their names, as `require` has
/// it (`js/node/require.ts`).
pub(super) const WITH_SCHEME: [&str; 4] = ["sea", "sqlite", "test", "test/reporters"];

pub(crate) type FolderResolver = NpmResolver<Disk>;

#[derive(Clone)]
pub(crate) struct Resolver {
    pub node: NodeResolverRc<Checker, FolderResolver, Disk>,
    pub npm: FolderResolver,
    files: Files,
    owners: Rc<RefCell<Owners>>,
    imports: Imports,
}

/// Every extension has its own instance of each of its own files, as with a loader
/// per extension, so that module-level variables of a shared helper do not mix.
#[derive(Default)]
struct Owners {
    /// By module: the extension that it belongs to.
    of: HashMap<ModuleSpecifier, u32>,
    /// By extension: where its entry is, if a link led there.
    links: HashMap<u32, ModuleSpecifier>,
}

impl Resolver {
    pub fn new(
        cache: DiskCache,
        disk: Disk,
        prepared: Prepared,
        imports: Imports,
    ) -> (Self, Files) {
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
        // Without "deno", which Node does not have.
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

    /// The module of extension `id`: links are followed, since what a linked
    /// extension imports lies beside the real file.
    pub fn entry(&self, id: u32, path: &Path) -> Result<ModuleSpecifier, String> {
        let disk = &self.files.disk;
        // Of a folder that is an extension, its index comes before a `main`.
        let own_index = if path.is_dir() { index(path) } else { None };
        let found = own_index.or_else(|| Some(disk.probe(path)?.path));
        let found = found.ok_or_else(|| match path.is_dir() {
            true => format!("{} has no index.ts or index.js", path.display()),
            false => format!("{} does not exist", path.display()),
        })?;
        let real = disk.real(&found);
        let real = real.map_err(|error| format!("{}: {error}", found.display()))?;
        let as_url = |path: &Path| url_from_file_path(path).map_err(|error| error.to_string());
        let url = as_url(&real)?;
        if real != found && found.is_absolute() {
            self.owners.borrow_mut().links.insert(id, as_url(&found)?);
        }
        Ok(self.claim(url, id))
    }

    pub fn resolve(&self, specifier: &str, referrer: &str) -> Result<ModuleSpecifier, JsErrorBox> {
        self.find(specifier, referrer).map_err(|error| {
            let text = error.to_string();
            // In Node's words, by which optional dependencies are told.
            let package = text
                .strip_prefix("Could not find package '")
                .and_then(|rest| Some(rest.split_once('\'')?.0));
            let advice = || {
                let from = ModuleSpecifier::parse(referrer).ok()?;
                let advice = match package {
                    Some(package) => advice::on_package(specifier, package, &from),
                    None if is_path(specifier) => advice::on_file(specifier, &from),
                    None => None,
                };
                advice.map(|advice| format!(": {advice}"))
            };
            // The code that deno_core gives all that it does not find.
            let plain = text.strip_prefix("[ERR_MODULE_NOT_FOUND] ");
            let plain = with_paths(plain.unwrap_or(&text));
            match (position::of_import(specifier, referrer), package) {
                (Some(place), Some(package)) => {
                    let advice = advice().unwrap_or_default();
                    JsErrorBox::generic(format!(
                        "Cannot find package '{package}' in any node_modules{advice} (imported at \
                         {place})"
                    ))
                }
                (Some(place), None) => {
                    let advice = advice().unwrap_or_default();
                    JsErrorBox::generic(format!("{plain}{advice} (imported at {place})"))
                }
                // Of a script, or by a name that was put together: as in Node.
                (None, Some(package)) => {
                    let from = as_path(referrer);
                    JsErrorBox::generic(format!(
                        "Cannot find package '{package}' imported from {from}"
                    ))
                }
                (None, None) => JsErrorBox::new(error.get_class(), plain),
            }
        })
    }

    /// `import.meta.resolve`, which does not look whether a file is there.
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

    /// Without the effort to name the place in an error.
    pub fn find(&self, specifier: &str, referrer: &str) -> Result<ModuleSpecifier, JsErrorBox> {
        if let Some(module) = virtual_module(specifier) {
            return ModuleSpecifier::parse(module).map_err(error);
        }
        if ["node:", "pi:", "ext:", "data:"]
            .iter()
            .any(|scheme| specifier.starts_with(scheme))
        {
            return ModuleSpecifier::parse(specifier).map_err(error);
        }
        if WITH_SCHEME.contains(&specifier) {
            return self.past_node(specifier, referrer);
        }
        if DenoIsBuiltInNodeModuleChecker.is_builtin_node_module(specifier) {
            return ModuleSpecifier::parse(&format!("node:{specifier}")).map_err(error);
        }
        // Entry points come with "." as their referrer.
        let referrer = ModuleSpecifier::parse(referrer)
            .or_else(|_| ModuleSpecifier::parse(specifier))
            .map_err(error)?;
        if is_path(specifier) {
            self.file(specifier, &referrer)
        } else {
            let found = self.package(specifier, &referrer)?;
            let owner = self.owners.borrow().of.get(&referrer).copied();
            Ok(match owner {
                // A package that is linked from a workspace, or a file by a name of `imports`.
                Some(owner) if found.scheme() == "file" && !self.files.is_packaged(&found) => {
                    self.claim(found, owner)
                }
                _ => found,
            })
        }
    }

    /// The package of a name that Deno takes for a module of Node's.
    fn past_node(&self, specifier: &str, referrer: &str) -> Result<ModuleSpecifier, JsErrorBox> {
        let referrer = ModuleSpecifier::parse(referrer).map_err(error)?;
        let from = url_to_file_path(&referrer).map_err(error)?;
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

    fn file(
        &self,
        specifier: &str,
        referrer: &ModuleSpecifier,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let url = referrer.join(specifier).map_err(error)?;
        let path = url_to_file_path(&url).map_err(error)?;
        if self.files.is_given(&path) {
            return Ok(url);
        }
        let owner = self.owners.borrow().of.get(referrer).copied();
        self.files.trail.note(|| Step::Path(path.clone()));
        let disk = &self.files.disk;
        // jiti takes it for a path: `./c#` may be c#.ts.
        let literal = literal(specifier, referrer).and_then(|path| disk.probe(&path));
        let is_literal = literal.is_some();
        let is_folder = url.path().ends_with('/');
        let folder = || is_folder.then(|| disk.probe_folder(&path)).flatten();
        let found = literal.or_else(folder).or_else(|| disk.probe(&path));
        let found = found.ok_or_else(|| {
            if let Some(owner) = owner {
                self.imports.note_missing(owner, &path);
            }
            JsErrorBox::generic(format!(
                "Cannot find module '{specifier}' ({})",
                path.display()
            ))
        })?;
        // As in Node: what it imports is beside the real file, which is one module under
        // all its names.
        if found.real != found.path
            && let Some(owner) = owner
        {
            self.imports.note(owner, found.path);
        }
        let mut resolved = url_from_file_path(&found.real).map_err(error)?;
        // `import("./x?v=2")` asks for a fresh copy; an entry may be asked for with
        // the mark that `entry` gave it.
        if url.query().is_some() && !is_literal {
            resolved.set_query(url.query());
            return Ok(resolved);
        }
        Ok(match owner {
            Some(owner) if self.files.is_lenient(&resolved) => self.claim(resolved, owner),
            _ => resolved,
        })
    }

    fn package(
        &self,
        specifier: &str,
        referrer: &ModuleSpecifier,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        self.files.trail.note(|| Step::Package {
            name: specifier.to_owned(),
            // All files of a folder find the same.
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
        // jiti falls back to what require() would find, too.
        let imported = (self.files.disk).package(specifier, referrer, || {
            resolve(referrer, ResolutionMode::Import)
        });
        let found = imported.or_else(|error| {
            resolve(referrer, ResolutionMode::Require).map_err(|_| JsErrorBox::from_err(error))
        });
        // The file behind a name of the package's own "imports" is probed for as well.
        let found = found.or_else(|error| {
            let mut candidates = own_imports(specifier);
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
            let found = above.and_then(|above| self.package(specifier, &above).ok());
            found.ok_or(error)
        });
        found.or_else(|error| {
            // Beside the link, if that is how we came here.
            let owners = self.owners.borrow();
            let link = owners.of.get(referrer).and_then(|id| owners.links.get(id));
            let link = link.ok_or_else(|| error.to_string());
            match link.map(|link| resolve(link, ResolutionMode::Import)) {
                Ok(Ok(url)) => Ok(url),
                _ => Err(error),
            }
        })
    }

    /// The instance of an own file that belongs to extension `id`.
    fn claim(&self, url: ModuleSpecifier, id: u32) -> ModuleSpecifier {
        let mut owners = self.owners.borrow_mut();
        let owner = *owners.of.entry(url.clone()).or_insert(id);
        if let Ok(path) = url_to_file_path(&url) {
            self.imports.note(id, path);
        }
        if owner == id {
            return url;
        }
        let mut copy = url;
        copy.set_query(Some(&format!("{COPY}{id}")));
        owners.of.insert(copy.clone(), id);
        copy
    }
}

/// The path that is written there, whatever it would mean in an address.
fn literal(specifier: &str, referrer: &ModuleSpecifier) -> Option<PathBuf> {
    let is_special = specifier.contains(['#', '?', '%']) && !specifier.starts_with("file:");
    let from = is_special.then(|| url_to_file_path(referrer).ok())??;
    Some(deno_path_util::normalize_path(Cow::Owned(from.parent()?.join(specifier))).into_owned())
}

/// As Node has it: paths instead of addresses, and marks around what is not found only.
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
        let name = as_path(name);
        text = match before.strip_suffix('\'') {
            Some(before) if !before.starts_with("Cannot") => format!("{head}{before}{name}{tail}"),
            _ => format!("{head}{before}{name}'{tail}"),
        };
    }
    text
}

/// Of the address of a file.
fn as_path(address: &str) -> String {
    let url = ModuleSpecifier::parse(address).ok();
    let path = url.and_then(|url| url_to_file_path(&url).ok());
    path.map_or_else(
        || address.to_string(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// What may be meant by a name of `imports` that leads to no file as it is.
fn own_imports(specifier: &str) -> impl Iterator<Item = String> {
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

/// What Node says to the `import` of a file whose name is not that of a module. `place`
/// says where that is.
pub(super) fn check_name(
    url: &ModuleSpecifier,
    place: impl FnOnce() -> Option<String>,
) -> Result<(), JsErrorBox> {
    use MediaType::{Css, Html, Json5, Jsonc, Markdown, SourceMap, Sql, Unknown};
    let (Css | Html | Json5 | Jsonc | Markdown | SourceMap | Sql | Unknown) =
        MediaType::from_specifier(url)
    else {
        return Ok(());
    };
    let path = url_to_file_path(url).map_err(error)?;
    let Some(ending) = path.extension().filter(|ending| *ending != "node") else {
        return Ok(());
    };
    let place = place().map(|place| format!(" (imported at {place})"));
    Err(JsErrorBox::type_error(format!(
        "[ERR_UNKNOWN_FILE_EXTENSION] Unknown file extension \".{}\" for {}: read the file, or \
         import it `with {{ type: \"text\" }}`{}",
        ending.display(),
        path.display(),
        place.unwrap_or_default()
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
    fn errors_have_the_paths_of_node() {
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
