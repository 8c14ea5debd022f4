//! Finds the files that a module imports by a relative path. The search takes texts that look
//! like imports, also in comments: a file too many is only looked at once more than necessary.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::paths::normalize;

/// Extensions that an import may leave out.
const ENDINGS: [&str; 10] = [
    "ts", "tsx", "mts", "cts", "js", "mjs", "cjs", "jsx", "json", "node",
];

static IMPORT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:\bfrom|\bimport|\brequire|\bURL)\s*\(?\s*["'`](\.{1,2}(?:/[^"'`\n]*)?)["'`]"#)
        .expect("the expression is a constant")
});

/// Returns the existing files to which the relative imports of `text` may lead.
pub(super) fn imported_files(module: &Path, text: &str) -> Vec<PathBuf> {
    let Some(folder) = module.parent() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for import in IMPORT.captures_iter(text) {
        let target = import[1].split(['?', '#']).next().unwrap_or_default();
        let target = normalize(&folder.join(target));
        found.extend(candidates(&target).filter(|path| path.is_file()));
    }
    found.sort();
    found.dedup();
    found
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
}
