//! Links in `node_modules/.bin` to the programs of packages.

use std::fs;
use std::io;
use std::path::{Component, Path};

use serde_json::Value;

/// Creates the links for the package `name` in a folder `node_modules`. Programs that are missing
/// or lead out of the package are left out, as is what another package has already.
pub(crate) fn link(node_modules: &Path, name: &str) -> io::Result<()> {
    let package = node_modules.join(name);
    let text = fs::read_to_string(package.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_str(&text).unwrap_or_default();
    for (program, file) in programs(&manifest, name) {
        let inside = Path::new(&file)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let target = package.join(&file);
        let is_file = fs::metadata(&target).is_ok_and(|meta| meta.is_file());
        if !inside || !is_file || !is_plain(&program) {
            continue;
        }
        let folder = node_modules.join(".bin");
        fs::create_dir_all(&folder)?;
        let link = folder.join(&program);
        if fs::symlink_metadata(&link).is_ok() {
            continue;
        }
        create(&link, &Path::new("..").join(name).join(&file), &target)?;
    }
    Ok(())
}

fn programs(manifest: &Value, name: &str) -> Vec<(String, String)> {
    match manifest.get("bin") {
        Some(Value::String(file)) => {
            let own = manifest.get("name").and_then(Value::as_str).unwrap_or(name);
            let short = own.rsplit('/').next().unwrap_or(own);
            vec![(short.to_owned(), file.clone())]
        }
        Some(Value::Object(all)) => {
            let pairs = all.iter().filter_map(|(program, file)| {
                let program = program.rsplit('/').next().unwrap_or(program);
                Some((program.to_owned(), file.as_str()?.to_owned()))
            });
            pairs.collect()
        }
        _ => Vec::new(),
    }
}

fn is_plain(program: &str) -> bool {
    !program.is_empty()
        && !program.starts_with('.')
        && !program.contains(|c: char| c.is_control() || r"/\:".contains(c))
}

#[cfg(unix)]
fn create(link: &Path, relative: &Path, target: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // A link of a clone might lead out of it.
    if !fs::symlink_metadata(target)?.is_symlink() {
        let mode = fs::metadata(target)?.permissions().mode();
        fs::set_permissions(target, fs::Permissions::from_mode(mode | 0o111))?;
    }
    std::os::unix::fs::symlink(relative, link)
}

#[cfg(not(unix))]
fn create(_link: &Path, _relative: &Path, _target: &Path) -> io::Result<()> {
    // Extensions do not start programs of `.bin` on systems without these links.
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn programs_inside_the_package_are_linked() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("@s/p");
        fs::create_dir_all(package.join("bin")).unwrap();
        fs::write(dir.path().join("outside"), "").unwrap();
        fs::write(package.join("bin/run.js"), "").unwrap();
        let manifest = r#"{"bin": {"run": "./bin/run.js", "out": "../../outside", "no": "gone",
            "../../x": "bin/run.js", "..": "bin/run.js"}}"#;
        fs::write(package.join("package.json"), manifest).unwrap();
        link(dir.path(), "@s/p").unwrap();
        let names = fs::read_dir(dir.path().join(".bin")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["run", "x"]);
        assert!(fs::read(dir.path().join(".bin/run")).is_ok());
    }
}
