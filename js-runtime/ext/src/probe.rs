//! Which file a path without an extension, or with that of its compiled file, means:
//! extensions are written for jiti, the loader of the original. One answer for
//! `import` and for `require`.

use std::path::{Path, PathBuf};

use deno_core::{op2, serde_json};

/// In the order in which jiti tries them.
pub const EXTENSIONS: [&str; 7] = ["js", "mjs", "cjs", "ts", "tsx", "mts", "cts"];

/// For `require` in CommonJS files. `None` as well for what is not UTF-8, which
/// JavaScript has no name for.
#[op2]
#[string]
pub(crate) fn op_probe(#[string] path: &str) -> Option<String> {
    probe(Path::new(path))?.into_os_string().into_string().ok()
}

/// The file that jiti would find for `path`: itself, with an extension added, the
/// TypeScript of a `.js`, or what is in the folder of that name.
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

fn directory(path: &Path) -> Option<PathBuf> {
    if !path.is_dir() {
        return None;
    }
    let main = std::fs::read_to_string(path.join("package.json"))
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok())
        .and_then(|json| json["main"].as_str().map(|main| path.join(main)))
        // A "main" that leads back here would never end.
        .filter(|main| main.components().ne(path.components()))
        .and_then(|main| probe(&main));
    main.or_else(|| {
        EXTENSIONS
            .iter()
            .map(|extension| path.join("index").with_extension(extension))
            .find(|path| path.is_file())
    })
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
        std::fs::remove_dir_all(dir).unwrap();
    }
}
