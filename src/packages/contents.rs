//! The contents of a package, shown before any of its code runs.

use std::fmt;
use std::path::{Path, PathBuf};

use pi_resources::discovery::resources_of_package;
use pi_resources::paths::ResourceKind;

/// The contents of a package. Printed as a list with one line each.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents {
    root: PathBuf,
    files: Vec<(ResourceKind, PathBuf)>,
}

impl Contents {
    /// Returns all contents, including those that the settings leave out.
    pub fn read(root: &Path) -> Self {
        let files = ResourceKind::ALL.into_iter().flat_map(|kind| {
            let files = resources_of_package(root, kind).into_iter();
            files.map(move |file| (kind, file))
        });
        Self {
            root: root.to_owned(),
            files: files.collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("  nothing that pi can use");
        }
        for (index, (kind, file)) in self.files.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            let below = file.strip_prefix(&self.root).unwrap_or(file);
            // The package is a single file, or a folder that is a module.
            let path = match below.as_os_str().is_empty() {
                true => file.display(),
                false => below.display(),
            };
            let (name, note) = match kind {
                ResourceKind::Extensions => ("extension", "  (runs when pi starts)"),
                ResourceKind::Skills => ("skill", ""),
                ResourceKind::Prompts => ("prompt", ""),
                ResourceKind::Themes => ("theme", ""),
            };
            write!(f, "{line_end}  {name:<10} {path}{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_package_that_is_one_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("one.ts");
        fs::write(&file, "").unwrap();
        let line = format!("  extension  {}  (runs when pi starts)", file.display());
        assert_eq!(Contents::read(&file).to_string(), line);
    }

    #[test]
    fn the_list_names_each_file_by_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "extensions/a.ts",
            "skills/s/SKILL.md",
            "prompts/p.md",
            "themes/t.json",
        ] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(
            Contents::read(dir.path()).to_string(),
            "  extension  extensions/a.ts  (runs when pi starts)\n  skill      skills/s/SKILL.md\n  \
             prompt     prompts/p.md\n  theme      themes/t.json"
        );
        let manifest = r#"{"scripts": {"postinstall": "make", "test": "t"}, "pi": {}}"#;
        fs::write(dir.path().join("package.json"), manifest).unwrap();
        assert_eq!(
            Contents::read(dir.path()).to_string(),
            "  nothing that pi can use"
        );
    }
}
