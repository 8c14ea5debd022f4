//! The crates of `src/` and the layers below them, as docs/architecture.md draws them.

use std::fs;
use std::path::Path;

/// Each layer, lowest first, with the layers that it uses.
const LAYERS: [(&str, &[&str]); 14] = [
    ("base", &[]),
    ("npm", &[]),
    ("permissions", &["base"]),
    ("ai", &["base"]),
    ("tools", &["ai", "base"]),
    ("session", &["ai", "base"]),
    ("resources", &["ai", "base"]),
    ("packages", &["ai", "base", "npm", "resources"]),
    ("compaction", &["ai", "base", "resources", "session"]),
    (
        "agent",
        &["ai", "compaction", "resources", "session", "tools"],
    ),
    ("export", &["base", "resources", "session"]),
    (
        "extensions",
        &[
            "agent",
            "ai",
            "base",
            "compaction",
            "packages",
            "resources",
            "session",
            "tools",
        ],
    ),
    (
        "app",
        &[
            "agent",
            "ai",
            "base",
            "compaction",
            "export",
            "extensions",
            "packages",
            "permissions",
            "resources",
            "session",
            "tools",
        ],
    ),
    (
        "modes",
        &[
            "agent",
            "ai",
            "app",
            "base",
            "compaction",
            "extensions",
            "resources",
            "session",
            "tools",
        ],
    ),
];
/// Layers that use V8 themselves.
const USERS_OF_V8: [&str; 2] = ["extensions", "modes"];

/// Names of the dependencies in the section `[dependencies]` of a manifest.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let lines = text.lines().map(str::trim);
    lines
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| {
            let end = line.find(['.', ' ', '='])?;
            Some(line[..end].to_owned())
        })
        .collect()
}

#[test]
fn each_layer_uses_the_layers_below_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut lower: Vec<&str> = Vec::new();
    for (layer, expected) in LAYERS {
        let all = dependencies(&src.join(layer).join("Cargo.toml"));
        let used: Vec<&str> = all
            .iter()
            .filter_map(|name| name.strip_prefix("pi-"))
            .collect();
        assert_eq!(used, expected, "{layer}");
        let above = used.iter().find(|used| !lower.contains(used));
        assert_eq!(above, None, "{layer}");
        let uses_v8 = all.iter().any(|name| name == "js-runtime");
        assert_eq!(uses_v8, USERS_OF_V8.contains(&layer), "{layer}");
        lower.push(layer);
    }
}
