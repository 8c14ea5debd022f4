//! Suggests a fix for an import that cannot be resolved: a file with a similar name, or where to
//! install the package. Computed only after the import has failed.

use std::fs;
use std::path::{Path, PathBuf};

use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use deno_runtime::deno_node::SUPPORTED_BUILTIN_NODE_MODULES as BUILT_IN;
use js_runtime_ext::virtual_modules;
use pi_base::{nearest, regular_file};
use serde_json::Value;

use super::SCHEME_ONLY_MODULES;

/// Maximum number of files of a folder that are compared.
const MAX_FILES: usize = 1000;

/// Returns a suggestion for a path.
pub(super) fn file_hint(specifier: &str, referrer: &ModuleSpecifier) -> Option<String> {
    let path = url_to_file_path(&referrer.join(specifier).ok()?).ok()?;
    let name = path.file_name()?.to_str()?;
    let stem = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let names: Vec<String> = (fs::read_dir(path.parent()?).ok()?)
        .take(MAX_FILES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let stems: Vec<String> = names.iter().map(|name| stem(name)).collect();
    let known: Vec<&str> = stems.iter().map(String::as_str).collect();
    let name = stem(name);
    let suggestion = nearest(&name, &known)?;
    let index = stems.iter().position(|stem| stem == suggestion)?;
    let (folder, _) = specifier.rsplit_once('/')?;
    Some(format!("is '{folder}/{}' meant?", names[index]))
}

/// Returns a suggestion for a package, with its name as it is installed.
pub(super) fn package_hint(
    specifier: &str,
    package: &str,
    referrer: &ModuleSpecifier,
) -> Option<String> {
    if let Some(suggestion) = similar_virtual_module(specifier) {
        return Some(format!("is '{suggestion}' meant?"));
    }
    // With its slash `buffer/` is the package of that name.
    let within = specifier.strip_prefix(package).unwrap_or_default();
    if BUILT_IN.contains(&package) && within.len() > 1 {
        let start = format!("{package}/");
        let parts = BUILT_IN.iter().filter(|name| name.starts_with(&start));
        let suggestion = nearest(specifier, &parts.copied().collect::<Vec<_>>());
        return Some(format!("is '{}' meant?", suggestion.unwrap_or(package)));
    }
    let from = url_to_file_path(referrer).ok()?;
    let folder = project_folder(&from)?;
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
            match nearest(package, &modules).filter(|suggestion| *suggestion != package) {
                Some(suggestion) => format!("is '{suggestion}' meant? If not, {install}"),
                None => install,
            }
        }
    })
}

/// Returns the virtual module that a name with a scope may stand for. Scope and name are compared
/// separately, because a long scope makes all of its names similar.
fn similar_virtual_module(specifier: &str) -> Option<String> {
    let modules: Vec<String> = virtual_modules().map(|(name, _)| name).collect();
    let known: Vec<(&str, &str)> = modules
        .iter()
        .filter_map(|name| name.split_once('/').filter(|_| name.starts_with('@')))
        .collect();
    let (scope, name) = specifier.split_once('/')?;
    let scopes: Vec<&str> = known.iter().map(|(scope, _)| *scope).collect();
    let scope = nearest(scope, &scopes)?;
    let own = known.iter().filter(|(other, _)| *other == scope);
    let names: Vec<&str> = own.map(|(_, name)| *name).collect();
    Some(format!("{scope}/{}", nearest(name, &names)?))
}

/// Returns true for a public name in the list of Node's modules that needs no "node:".
fn is_bare(name: &&str) -> bool {
    !name.starts_with('_') && !SCHEME_ONLY_MODULES.contains(name)
}

/// Returns the folder with the `package.json` that a file belongs to, or its own folder.
fn project_folder(file: &Path) -> Option<PathBuf> {
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
    fn similar_file_is_suggested() {
        let folder = std::env::temp_dir().join(format!("advice-{}", std::process::id()));
        fs::create_dir_all(folder.join("lib")).unwrap();
        fs::write(folder.join("lib/helper.ts"), "").unwrap();
        let importer = url(&folder.join("a.ts"));
        for name in ["./lib/helpr", "./lib/Helper.js", "./lib/helpers.ts"] {
            let hint = file_hint(name, &importer);
            assert_eq!(
                hint.as_deref(),
                Some("is './lib/helper.ts' meant?"),
                "{name}"
            );
        }
        assert_eq!(file_hint("./lib/other", &importer), None);
        assert_eq!(file_hint("./nowhere/helper", &importer), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn install_folder_is_that_of_the_extension() {
        let folder = std::env::temp_dir().join(format!("advice-packages-{}", std::process::id()));
        let inner = folder.join("src");
        fs::create_dir_all(folder.join("node_modules/dep")).unwrap();
        fs::create_dir_all(&inner).unwrap();
        let shown = folder.display();
        let own = url(&inner.join("a.ts"));
        let hint = |specifier: &str, package: &str, from| package_hint(specifier, package, from);
        assert_eq!(
            hint("chalk", "chalk", &own),
            Some(format!("run `npm install chalk` in {}", inner.display()))
        );
        fs::write(
            folder.join("package.json"),
            r#"{"dependencies": {"yaml": "2"}}"#,
        )
        .unwrap();
        assert_eq!(
            hint("chalk/a", "chalk", &own),
            Some(format!("run `npm install chalk` in {shown}"))
        );
        let listed = Some(format!("package.json has it; run `npm install` in {shown}"));
        assert_eq!(hint("yaml", "yaml", &own), listed);
        let dependency = url(&folder.join("node_modules/dep/index.js"));
        assert_eq!(hint("yaml", "yaml", &dependency), listed);
        let slip = "@mariozechner/pi-coding-agnt";
        assert_eq!(
            hint(slip, slip, &own).as_deref(),
            Some("is '@mariozechner/pi-coding-agent' meant?")
        );
        for other in ["@mariozechner/pi-web-ui", "@mariozechner/mini-lit"] {
            let install = format!("run `npm install {other}` in {shown}");
            assert_eq!(hint(other, other, &own), Some(install));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn similar_node_module_is_suggested() {
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
            let hint = package_hint(specifier, package, &from);
            assert_eq!(hint.as_deref(), Some(expected), "{specifier}");
        }
    }
}
