//! Scripts that npm would run when it installs a package. They are found here and never run.

use std::path::Path;

use serde_json::Value;

/// A package with install scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageScripts {
    pub name: String,
    pub version: String,
    /// The folder below the root of the tree, with `/`.
    pub path: String,
    pub integrity: Option<String>,
    /// Names and commands in the order in which npm runs them.
    pub scripts: Vec<(String, String)>,
}

/// Scripts of a package that was downloaded.
const OF_PACKAGES: [&str; 3] = ["preinstall", "install", "postinstall"];
/// Scripts of a folder with the sources of a package.
const OF_SOURCES: [&str; 6] = [
    "preinstall",
    "install",
    "postinstall",
    "preprepare",
    "prepare",
    "postprepare",
];

/// Returns the scripts that npm would run for a folder. `is_source` holds for clones, which npm
/// also prepares.
pub fn scripts_of(folder: &Path, is_source: bool) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
    let names = match is_source {
        true => &OF_SOURCES[..],
        false => &OF_PACKAGES[..],
    };
    let found = names.iter().filter_map(|name| {
        let command = manifest.get("scripts")?.get(*name)?.as_str()?;
        Some(((*name).to_owned(), command.to_owned()))
    });
    let mut found: Vec<(String, String)> = found.collect();
    let builds = |(name, _): &(String, String)| ["preinstall", "install"].contains(&name.as_str());
    let wants_gyp = manifest.get("gypfile") != Some(&Value::Bool(false));
    if wants_gyp && folder.join("binding.gyp").exists() && !found.iter().any(builds) {
        // npm has this default.
        found.insert(0, ("install".to_owned(), "node-gyp rebuild".to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn scripts_and_the_default_for_addons() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(scripts_of(dir.path(), true), []);
        let manifest = r#"{"scripts": {"postinstall": "p", "prepare": "q", "test": "t"}}"#;
        fs::write(dir.path().join("package.json"), manifest).unwrap();
        let pair = |name: &str, command: &str| (name.to_owned(), command.to_owned());
        assert_eq!(scripts_of(dir.path(), false), [pair("postinstall", "p")]);
        let of_source = [pair("postinstall", "p"), pair("prepare", "q")];
        assert_eq!(scripts_of(dir.path(), true), of_source);
        fs::write(dir.path().join("binding.gyp"), "").unwrap();
        let with_addon = [
            pair("install", "node-gyp rebuild"),
            pair("postinstall", "p"),
        ];
        assert_eq!(scripts_of(dir.path(), false), with_addon);
    }
}
