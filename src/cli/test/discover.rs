//! Finds the files of tests.

use std::path::{Path, PathBuf};

use pi_resources::discovery::collect::is_test;

/// Returns the test files that the paths name or contain, each once, in order.
pub(super) fn find_test_files(named: &[PathBuf], cwd: &Path) -> Result<Vec<PathBuf>, String> {
    let here = [PathBuf::from(".")];
    let named = if named.is_empty() { &here } else { named };
    let mut files = Vec::new();
    for name in named {
        let path = cwd.join(name);
        let found = match path.metadata() {
            Err(error) => return Err(format!("{}: {error}", name.display())),
            Ok(about) if about.is_dir() => files_below(&path),
            Ok(_) if is_test(&path) => vec![path],
            Ok(_) => {
                return Err(format!(
                    "{} is no test: their names end with .test.ts, .test.js, .test.mts or .test.mjs",
                    name.display()
                ));
            }
        };
        for file in found {
            // The stack of an error has canonical paths.
            let file = file
                .canonicalize()
                .map_err(|error| format!("{}: {error}", file.display()))?;
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// Returns the test files below a folder, except in hidden folders, in `node_modules` and in what
/// git ignores.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let walk = ignore::WalkBuilder::new(folder)
        .require_git(false)
        .sort_by_file_path(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != "node_modules")
        .build();
    walk.flatten()
        .map(ignore::DirEntry::into_path)
        .filter(|path| path.is_file() && is_test(path))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tests_are_found_below_folders_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in [
            "b.test.ts",
            "a/x.test.mjs",
            "a/x.ts",
            "a/.hidden/y.test.ts",
            "node_modules/p/z.test.js",
            "built/w.test.js",
            "atest.ts",
            ".test.ts",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(root.join(".gitignore"), "built/\n").unwrap();
        let all = ["a/x.test.mjs", "b.test.ts"].map(|name| root.join(name));
        assert_eq!(find_test_files(&[], &root), Ok(all.to_vec()));
        let named = ["b.test.ts", "a", "."].map(PathBuf::from);
        let [first, second] = all;
        assert_eq!(find_test_files(&named, &root), Ok(vec![second, first]));
        assert_eq!(
            find_test_files(&["a/x.ts".into()], &root),
            Err("a/x.ts is no test: their names end with .test.ts, .test.js, .test.mts or .test.mjs".into())
        );
        assert!(find_test_files(&["nowhere".into()], &root).is_err());
    }
}
