//! Resolves a path without a file extension, or with that of its compiled file, as jiti does, the
//! loader of the original. `import` and `require` share it.

use std::path::{Path, PathBuf};

use deno_core::{op2, serde_json};

/// File extensions in the order in which jiti tries them.
pub const EXTENSIONS: [&str; 7] = ["js", "mjs", "cjs", "ts", "tsx", "mts", "cts"];

/// Resolves a path for `require` in CommonJS files. Also `None` for a path that is not UTF-8, which
/// JavaScript cannot name.
#[op2]
#[string]
pub(crate) fn op_probe(#[string] path: &str) -> Option<String> {
    let folder = path.ends_with('/').then(|| directory(Path::new(path)));
    real_path(folder.flatten().or_else(|| probe(Path::new(path)))?)
}

/// Resolves a package for `require` in CommonJS files of the folder `from`.
#[op2]
#[string]
pub(crate) fn op_probe_package(#[string] specifier: &str, #[string] from: &str) -> Option<String> {
    real_path(probe_package(specifier, Path::new(from))?)
}

/// Returns the path without symbolic links.
fn real_path(found: PathBuf) -> Option<String> {
    let real = found.canonicalize().unwrap_or(found);
    real.into_os_string().into_string().ok()
}

/// Returns the file that jiti finds for `path`: the file itself, one with a file extension added,
/// the TypeScript source of a `.js`, or one in the folder of that name.
pub fn probe(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_path_buf());
    }
    let with_suffix = |suffix: &str| {
        let mut name = path.file_name()?.to_os_string();
        name.push(".");
        name.push(suffix);
        Some(path.with_file_name(name)).filter(|path| path.is_file())
    };
    if let Some(found) = EXTENSIONS.iter().find_map(|suffix| with_suffix(suffix)) {
        return Some(found);
    }
    let typescript: &[&str] = match path.extension().and_then(|extension| extension.to_str()) {
        Some("js") => &["ts", "tsx"],
        Some("jsx") => &["tsx"],
        Some("mjs") => &["mts"],
        Some("cjs") => &["cts"],
        _ => &[],
    };
    let source = typescript
        .iter()
        .map(|extension| path.with_extension(extension))
        .find(|path| path.is_file());
    source.or_else(|| directory(path))
}

/// Returns the file that jiti finds in a package where Node finds none: a TypeScript package has no
/// index.js. `exports` takes precedence.
pub fn probe_package(specifier: &str, from: &Path) -> Option<PathBuf> {
    let (name, subpath) = split_package(specifier)?;
    let mut folders = package_folders(name, from).map(|(_, folder)| folder);
    let folder = folders.find(|folder| folder.is_dir())?;
    let has_exports = package_json(&folder).is_some_and(|json| !json["exports"].is_null());
    match subpath.trim_matches('/') {
        _ if has_exports => None,
        "" => directory(&folder),
        subpath => probe(&folder.join(subpath)),
    }
}

/// Returns the folder above an empty package folder, which a failed installation leaves behind.
/// Node resolves imports in `from` to that folder, although the package may exist further up.
pub fn past_empty_package<'a>(specifier: &str, from: &'a Path) -> Option<&'a Path> {
    let (name, _) = split_package(specifier)?;
    let mut package_folders = package_folders(name, from);
    let (folder, package) = package_folders.find(|(_, package)| package.is_dir())?;
    let is_empty = std::fs::read_dir(package).is_ok_and(|mut entries| entries.next().is_none());
    folder.parent().filter(|_| is_empty)
}

/// Returns the name of the package that a specifier begins with.
pub fn package_name(specifier: &str) -> Option<&str> {
    split_package(specifier).map(|(name, _)| name)
}

/// Splits a specifier into the name of the package and the path in it.
fn split_package(specifier: &str) -> Option<(&str, &str)> {
    let slashes = if specifier.starts_with('@') { 2 } else { 1 };
    let end = specifier.match_indices('/').nth(slashes - 1);
    let (name, subpath) = specifier.split_at(end.map_or(specifier.len(), |(at, _)| at));
    let is_name = !name.is_empty() && !name.starts_with(['.', '#']) && !name.contains(':');
    is_name.then_some((name, subpath))
}

/// Returns the possible folders of a package, each with the folder for which it is installed.
fn package_folders<'a>(name: &str, from: &'a Path) -> impl Iterator<Item = (&'a Path, PathBuf)> {
    let package_folders = from.ancestors();
    package_folders.map(move |folder| (folder, folder.join("node_modules").join(name)))
}

fn package_json(folder: &Path) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns the file that a folder stands for. A path that ends with a slash resolves only to this,
/// if it exists.
pub fn directory(path: &Path) -> Option<PathBuf> {
    if !path.is_dir() {
        return None;
    }
    let main = package_json(path)
        .and_then(|json| json["main"].as_str().map(|main| path.join(main)))
        // A "main" that leads back to the folder would recurse without end.
        .filter(|main| main.components().ne(path.components()))
        .and_then(|main| probe(&main));
    main.or_else(|| index(path))
}

/// Returns the index file of a folder.
pub fn index(folder: &Path) -> Option<PathBuf> {
    EXTENSIONS
        .iter()
        .map(|extension| folder.join("index").with_extension(extension))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_probed_in_the_order_of_jiti() {
        let dir = std::env::temp_dir().join(format!("js-probe-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&dir);
        let file = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for name in [
            "a.ts",
            "a.js",
            "b.ts",
            "c.tsx",
            "d/index.ts",
            "e/x.ts",
            "f.d/g.mts",
        ] {
            file(name, "");
        }
        file("e/package.json", r#"{"main": "x"}"#);
        file("self/package.json", r#"{"main": "."}"#);
        file("self/index.js", "");
        let found = |name: &str| {
            probe(&dir.join(name)).map(|path| {
                path.strip_prefix(&dir)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_string()
            })
        };
        let table = [
            ("a", Some("a.js")),
            ("a.ts", Some("a.ts")),
            ("b.js", Some("b.ts")),
            ("c.jsx", Some("c.tsx")),
            ("d", Some("d/index.ts")),
            ("e", Some("e/x.ts")),
            ("f.d/g", Some("f.d/g.mts")),
            ("f.d/g.mjs", Some("f.d/g.mts")),
            ("self", Some("self/index.js")),
            ("none", None),
        ];
        for (name, expected) in table {
            assert_eq!(found(name).as_deref(), expected, "{name}");
        }
        for name in ["index.ts", "sub.ts", "deep/x.ts"] {
            file(&format!("node_modules/pkg/{name}"), "");
            file(&format!("node_modules/@s/pkg/{name}"), "");
            file(&format!("node_modules/closed/{name}"), "");
        }
        file("node_modules/closed/package.json", r#"{"exports": {}}"#);
        assert_eq!(past_empty_package("pkg", &dir.join("e")), None);
        std::fs::create_dir_all(dir.join("e/node_modules/@s/pkg")).unwrap();
        let subpath = dir.join("e");
        let past = past_empty_package("@s/pkg/sub", &subpath);
        assert_eq!(past, Some(dir.as_path()));
        std::fs::remove_dir_all(dir.join("e/node_modules")).unwrap();
        for (specifier, expected) in [
            ("pkg", Some("pkg/index.ts")),
            ("pkg/sub", Some("pkg/sub.ts")),
            ("pkg/sub.js", Some("pkg/sub.ts")),
            ("@s/pkg", Some("@s/pkg/index.ts")),
            ("@s/pkg/deep/x", Some("@s/pkg/deep/x.ts")),
            ("@s", None),
            ("closed/sub", None),
            ("none", None),
            ("#pkg", None),
            ("", None),
        ] {
            let found = probe_package(specifier, &dir.join("e"));
            let expected = expected.map(|path| dir.join("node_modules").join(path));
            assert_eq!(found, expected, "{specifier}");
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
