//! Finds the files that a module imports by a relative path, and the native addons that it may load.
//! The search takes texts that look like imports, also in comments: a file too many is only looked at
//! once more than necessary.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use pi_base::normalize;

/// Extensions that an import may leave out.
const ENDINGS: [&str; 10] = [
    "ts", "tsx", "mts", "cts", "js", "mjs", "cjs", "jsx", "json", "node",
];

static IMPORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:\bfrom|\bimport|\brequire|\bURL)\s*\(?\s*["'`](\.{1,2}(?:/[^"'`\n]*)?)["'`]"#)
        .expect("the expression is a constant")
});

/// Packages and functions that load a native addon from a place that the module does not name.
static ADDON_LOADER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"["'`](?:bindings|node-gyp-build|(?:@mapbox/)?node-pre-gyp|pkg-prebuilds|node-gyp-build-optional-packages)["'`/]|\bdlopen\b|\.node["'`]"#)
        .expect("the expression is a constant")
});

/// The path of a native addon.
static ADDON: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"["'`]([^"'`\n]*\.node)["'`]"#).expect("the expression is a constant")
});

/// Folders in which native addons are built or delivered.
const ADDON_FOLDERS: [&str; 8] = [
    "build",
    "prebuilds",
    "native",
    "addon",
    "addons",
    "bin",
    "dist",
    "lib",
];
const MAX_ADDON_DEPTH: usize = 4;
/// Further entries of such folders are not looked at.
const MAX_ADDON_ENTRIES: usize = 10_000;

/// Files that a module may load.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Imports {
    /// Existing files.
    pub files: BTreeSet<PathBuf>,
    /// Folders in which another file may appear that the module would load.
    pub folders: BTreeSet<PathBuf>,
}

impl Imports {
    /// Finds what a module imports by a relative path, and the native addons that it may load from
    /// its own folder and those above up to `project`.
    pub fn of(module: &Path, text: &str, project: &Path) -> Self {
        let mut found = Self {
            files: imported_files(module, text).into_iter().collect(),
            folders: BTreeSet::new(),
        };
        for target in targets(module, text) {
            found.add_folder(target.parent().unwrap_or(&target));
            if target.is_dir() {
                found.folders.insert(target);
            }
        }
        if ADDON_LOADER.is_match(text) {
            let folders = module.ancestors().skip(1);
            for folder in folders.take_while(|folder| folder.starts_with(project)) {
                found.add_addons(folder, text);
            }
        }
        found
    }

    fn add_addons(&mut self, folder: &Path, text: &str) {
        self.folders.insert(folder.to_owned());
        for addon in ADDON.captures_iter(text) {
            let addon = normalize(&folder.join(&addon[1]));
            self.add_folder(addon.parent().unwrap_or(&addon));
            if addon.is_file() {
                self.files.insert(addon);
            }
        }
        let mut left = MAX_ADDON_ENTRIES;
        self.add_addons_in(folder, 0, &mut left);
        for name in ADDON_FOLDERS {
            self.add_addons_in(&folder.join(name), MAX_ADDON_DEPTH, &mut left);
        }
    }

    /// Adds the addons in a folder, and those below it down to `depth`.
    fn add_addons_in(&mut self, folder: &Path, depth: usize, left: &mut usize) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        self.folders.insert(folder.to_owned());
        for entry in entries.flatten() {
            let Some(less) = left.checked_sub(1) else {
                return;
            };
            *left = less;
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "node") && path.is_file() {
                self.files.insert(path);
            } else if depth > 0 && entry.file_name() != "node_modules" && path.is_dir() {
                self.add_addons_in(&path, depth - 1, left);
            }
        }
    }

    /// Adds a folder, or the nearest one above it that exists.
    fn add_folder(&mut self, folder: &Path) {
        let existing = folder.ancestors().find(|folder| folder.is_dir());
        self.folders.extend(existing.map(Path::to_path_buf));
    }
}

/// Returns the existing files to which the relative imports of `text` may lead.
pub(super) fn imported_files(module: &Path, text: &str) -> Vec<PathBuf> {
    let targets = targets(module, text);
    let found = targets.iter().flat_map(|target| candidates(target));
    let mut found: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the paths that the relative imports of `text` name.
fn targets(module: &Path, text: &str) -> Vec<PathBuf> {
    let Some(folder) = module.parent() else {
        return Vec::new();
    };
    let imports = IMPORT.captures_iter(text);
    imports
        .map(|import| {
            let target = import[1].split(['?', '#']).next().unwrap_or_default();
            normalize(&folder.join(target))
        })
        .collect()
}

/// Returns the files for which an import of `target` may stand.
fn candidates(target: &Path) -> impl Iterator<Item = PathBuf> {
    let with_ending = ENDINGS.map(|ending| {
        let mut name = target.as_os_str().to_owned();
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    });
    // TypeScript is imported under the name of the JavaScript that a compiler would make of it.
    let replaced = ENDINGS.map(|ending| target.with_extension(ending));
    let index = ENDINGS.map(|ending| target.join(format!("index.{ending}")));
    std::iter::once(target.to_owned())
        .chain(with_ending)
        .chain(replaced)
        .chain(index)
        .chain([target.join("package.json")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_imports_are_found_in_all_forms() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let expected = [
            file("a.ts"),
            file("b.ts"),
            file("c/index.ts"),
            file("d.cjs"),
            file("up.ts"),
            file("e.json"),
        ];
        let text = r#"
            import a from "./a";
            export * from './b.js';
            const c = await import(`./c`);
            const d = require("./d.cjs"), e = require ('./e.json');
            import "../up.ts?x";
            import fs from "node:fs"; import x from "package/sub";
        "#;
        let found = imported_files(&dir.path().join("main.ts"), &text.replace("../up", "./up"));
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(found, expected);
    }
    #[test]
    fn native_addons_are_found_where_they_are_built() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path();
        let file = |name: &str| {
            let path = project.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        let module = file(".pi/extensions/x/index.ts");
        let named = file("native/deep/down/here/for/sure/a.node");
        let beside = file(".pi/extensions/x/beside.node");
        let built = file(".pi/extensions/x/build/Release/b.node");
        let prebuilt = file("prebuilds/linux-x64/c.node");
        file("node_modules/m/build/Release/no.node");
        file("build/node_modules/no.node");
        file("src/no.node");
        for text in [
            r#"load(join(root, "native/deep/down/here/for/sure/a.node"))"#,
            r#"require('../../../native/deep/down/here/for/sure/a.node')"#,
        ] {
            let found = Imports::of(&module, text, project);
            assert_eq!(
                found.files,
                BTreeSet::from([&named, &beside, &built, &prebuilt].map(PathBuf::clone)),
                "{text}"
            );
            assert!(found.folders.contains(project));
        }
        for text in [
            "require('bindings')('b')",
            "process.dlopen(module, path)",
            "require(`./build/${name}.node`)",
        ] {
            let found = Imports::of(&module, text, project);
            assert_eq!(
                found.files,
                BTreeSet::from([&beside, &built, &prebuilt].map(PathBuf::clone)),
                "{text}"
            );
        }
        let found = Imports::of(&module, "const bindings = keys.node;", project);
        assert_eq!(found, Imports::default());
    }
}
