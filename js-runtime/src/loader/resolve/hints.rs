//! What to do about an import that leads nowhere: the file that may be meant, or where the
//! package is to be installed. Asked for when it has failed, and never before.

use pi_base::nearest;
use pi_base::regular_file;
use std::fs;
use std::path::{Path, PathBuf};

use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use deno_runtime::deno_node::SUPPORTED_BUILTIN_NODE_MODULES as BUILT_IN;
use js_runtime_ext::virtual_modules;
use serde_json::Value;

use super::resolve::WITH_SCHEME;

/// Of two names, from which on one may be meant for the other.
const LIKENESS: f32 = 0.7;
/// Nobody is helped by a name from a folder with more in it.
const MOST_FILES: usize = 1000;

/// Of a path.
pub(super) fn on_file(specifier: &str, referrer: &ModuleSpecifier) -> Option<String> {
    let path = url_to_file_path(&referrer.join(specifier).ok()?).ok()?;
    let wanted = path.file_name()?.to_str()?;
    let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let names: Vec<String> = (fs::read_dir(path.parent()?).ok()?)
        .take(MOST_FILES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let stems: Vec<String> = names.iter().map(|name| stem(name)).collect();
    let known: Vec<&str> = stems.iter().map(String::as_str).collect();
    let wanted = stem(wanted);
    let meant = nearest(&wanted, &known, LIKENESS)?;
    let index = stems.iter().position(|stem| stem == meant)?;
    let (folder, _) = specifier.rsplit_once('/')?;
    Some(format!("is '{folder}/{}' meant?", names[index]))
}

/// Of a package, by the name that it is installed by.
pub(super) fn on_package(
    specifier: &str,
    package: &str,
    referrer: &ModuleSpecifier,
) -> Option<String> {
    let modules: Vec<String> = virtual_modules().map(|(name, _)| name).collect();
    let known: Vec<&str> = modules.iter().map(String::as_str).collect();
    // Other names are as short as theirs.
    if package.starts_with('@')
        && let Some(meant) = nearest(specifier, &known, 0.85)
    {
        return Some(format!("is '{meant}' meant?"));
    }
    // With its slash `buffer/` is the package of that name.
    let within = specifier.strip_prefix(package).unwrap_or_default();
    if BUILT_IN.contains(&package) && within.len() > 1 {
        let start = format!("{package}/");
        let parts = BUILT_IN.iter().filter(|name| name.starts_with(&start));
        let meant = nearest(specifier, &parts.copied().collect::<Vec<_>>(), LIKENESS);
        return Some(format!("is '{}' meant?", meant.unwrap_or(package)));
    }
    let from = url_to_file_path(referrer).ok()?;
    let folder = project_of(&from)?;
    let manifest = regular_file::read_text(folder.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
    let is_listed = [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
    ]
    .iter()
    .any(|kind| manifest[*kind].get(package).is_some());
    let folder = folder.display();
    Some(match is_listed {
        true => format!("package.json has it; run `npm install` in {folder}"),
        false => {
            let install = format!("run `npm install {package}` in {folder}");
            let modules: Vec<&str> = BUILT_IN.iter().copied().filter(is_bare).collect();
            match nearest(package, &modules, 0.85).filter(|meant| *meant != package) {
                Some(meant) => format!("is '{meant}' meant? If not, {install}"),
                None => install,
            }
        }
    })
}

/// Of a name in the list of Node's modules: not of its inner parts, nor of what is a package
/// without "node:" before it.
fn is_bare(name: &&str) -> bool {
    !name.starts_with('_') && !WITH_SCHEME.contains(name)
}

/// The folder with the `package.json` that a file belongs to, or its own.
fn project_of(file: &Path) -> Option<PathBuf> {
    let is_installed = |folder: &&Path| {
        let mut parts = folder.components();
        parts.any(|part| part.as_os_str() == "node_modules")
    };
    let mut outside = file.ancestors().skip(1).skip_while(is_installed).peekable();
    let own = outside.peek().copied()?;
    let project = outside.find(|folder| folder.join("package.json").exists());
    Some(project.unwrap_or(own).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &Path) -> ModuleSpecifier {
        ModuleSpecifier::from_file_path(path).unwrap()
    }

    #[test]
    fn a_file_with_a_name_like_it_may_be_meant() {
        let folder = std::env::temp_dir().join(format!("advice-{}", std::process::id()));
        fs::create_dir_all(folder.join("lib")).unwrap();
        fs::write(folder.join("lib/helper.ts"), "").unwrap();
        let importer = url(&folder.join("a.ts"));
        for wanted in ["./lib/helpr", "./lib/Helper.js", "./lib/helpers.ts"] {
            let said = on_file(wanted, &importer);
            assert_eq!(
                said.as_deref(),
                Some("is './lib/helper.ts' meant?"),
                "{wanted}"
            );
        }
        assert_eq!(on_file("./lib/other", &importer), None);
        assert_eq!(on_file("./nowhere/helper", &importer), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_package_is_installed_where_the_extension_has_its_own() {
        let folder = std::env::temp_dir().join(format!("advice-packages-{}", std::process::id()));
        let inner = folder.join("src");
        fs::create_dir_all(folder.join("node_modules/dep")).unwrap();
        fs::create_dir_all(&inner).unwrap();
        let shown = folder.display();
        let own = url(&inner.join("a.ts"));
        let said = |specifier: &str, package: &str, from| on_package(specifier, package, from);
        assert_eq!(
            said("chalk", "chalk", &own),
            Some(format!("run `npm install chalk` in {}", inner.display()))
        );
        fs::write(
            folder.join("package.json"),
            r#"{"dependencies": {"yaml": "2"}}"#,
        )
        .unwrap();
        assert_eq!(
            said("chalk/a", "chalk", &own),
            Some(format!("run `npm install chalk` in {shown}"))
        );
        let listed = Some(format!("package.json has it; run `npm install` in {shown}"));
        assert_eq!(said("yaml", "yaml", &own), listed);
        let dependency = url(&folder.join("node_modules/dep/index.js"));
        assert_eq!(said("yaml", "yaml", &dependency), listed);
        let slip = "@mariozechner/pi-coding-agnt";
        assert_eq!(
            said(slip, slip, &own).as_deref(),
            Some("is '@mariozechner/pi-coding-agent' meant?")
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_name_like_that_of_a_module_of_nodes_is_told_as_such() {
        let from = ModuleSpecifier::parse("file:///nowhere/a.ts").unwrap();
        for (specifier, package, expected) in [
            ("fs/promise", "fs", "is 'fs/promises' meant?"),
            ("timers/promisses", "timers", "is 'timers/promises' meant?"),
            ("fs/zzz", "fs", "is 'fs' meant?"),
            (
                "child-process",
                "child-process",
                "is 'child_process' meant? If not, run `npm install child-process` in /nowhere",
            ),
            ("buffer/", "buffer", "run `npm install buffer` in /nowhere"),
            (
                "sqlite3",
                "sqlite3",
                "run `npm install sqlite3` in /nowhere",
            ),
            ("chalk", "chalk", "run `npm install chalk` in /nowhere"),
        ] {
            let said = on_package(specifier, package, &from);
            assert_eq!(said.as_deref(), Some(expected), "{specifier}");
        }
    }
}
