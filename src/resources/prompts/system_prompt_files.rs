//! Replaces or extends the system prompt: `--system-prompt` and `--append-system-prompt`, or
//! `SYSTEM.md` and `APPEND_SYSTEM.md`.

use pi_base::regular_file;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::paths::Paths;
use crate::trust;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptTexts {
    /// Replaces the beginning of the default prompt.
    pub custom: Option<String>,
    pub append: Option<String>,
}

/// Values of the flags: a text, or the path of a file with the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptFlags {
    /// An empty text disables `SYSTEM.md` without a replacement.
    pub system: Option<String>,
    pub append: Vec<String>,
}

pub fn load_prompt_texts(paths: &Paths, flags: &PromptFlags) -> (PromptTexts, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let mut loader = Loader {
        paths,
        problems: &mut problems,
    };
    let custom = match &flags.system {
        Some(flag) => loader.flag(flag),
        None => loader.file("SYSTEM.md"),
    };
    let append = match flags.append.as_slice() {
        [] => loader.file("APPEND_SYSTEM.md"),
        given => {
            let texts: Vec<_> = given.iter().filter_map(|flag| loader.flag(flag)).collect();
            Some(texts.join("\n\n"))
        }
    };
    let not_empty = |text: &String| !text.is_empty();
    let texts = PromptTexts {
        custom: custom.filter(not_empty),
        append: append.filter(not_empty),
    };
    (texts, problems)
}

/// Returns the project's file of that name, or else the user's.
pub fn prompt_file(paths: &Paths, name: &str) -> Option<PathBuf> {
    let project = paths.trusted_project_dir();
    let folders = project.into_iter().chain([paths.agent_dir.clone()]);
    let mut files = folders.map(|dir| dir.join(name));
    files.find(|path| path.exists())
}

struct Loader<'a> {
    paths: &'a Paths,
    problems: &'a mut Vec<Diagnostic>,
}

impl Loader<'_> {
    fn file(&mut self, name: &str) -> Option<String> {
        let path = prompt_file(self.paths, name)?;
        let read = trust::read_lossy(&path);
        self.text(&path, read)
    }

    fn flag(&mut self, flag: &str) -> Option<String> {
        if flag.is_empty() {
            return None;
        }
        let path = self.paths.cwd.join(flag);
        let from_file = if path.exists() {
            // Pipes are allowed here: a user who names one, such as `<(…)`, means it.
            let read = fs::read(&path).map(|bytes| regular_file::decode_lossy(&bytes));
            self.text(&path, read)
        } else {
            None
        };
        Some(from_file.unwrap_or_else(|| flag.to_owned()))
    }

    fn text(&mut self, path: &Path, read: io::Result<String>) -> Option<String> {
        read.map_err(|error| self.problems.push(Diagnostic::unreadable(path, &error)))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        paths: Paths,
    }

    impl Fixture {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let paths = Paths {
                home: dir.path().to_owned(),
                agent_dir: dir.path().join("agent"),
                cwd: dir.path().join("p"),
                distrust: None,
            };
            for (name, text) in files {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self { dir, paths }
        }

        fn load(&self, system: Option<&str>, append: &[&str]) -> (Option<String>, Option<String>) {
            let flags = PromptFlags {
                system: system.map(str::to_owned),
                append: append.iter().map(|text| (*text).to_owned()).collect(),
            };
            let (texts, problems) = load_prompt_texts(&self.paths, &flags);
            assert_eq!(problems, []);
            (texts.custom, texts.append)
        }
    }

    fn both(custom: &str, append: &str) -> (Option<String>, Option<String>) {
        (Some(custom.to_owned()), Some(append.to_owned()))
    }

    #[test]
    fn the_project_goes_before_the_agent_folder() {
        let fixture = Fixture::new(&[
            ("agent/SYSTEM.md", "user"),
            ("agent/APPEND_SYSTEM.md", "user append"),
            ("p/.pi/SYSTEM.md", "project"),
        ]);
        assert_eq!(fixture.load(None, &[]), both("project", "user append"));
    }

    #[test]
    fn a_flag_goes_before_files_and_may_name_one() {
        let fixture = Fixture::new(&[("p/.pi/SYSTEM.md", "project"), ("p/x.txt", "from x")]);
        let absolute = fixture.dir.path().join("p/x.txt");
        let absolute = absolute.to_str().unwrap();
        assert_eq!(
            fixture.load(Some("x.txt"), &["one", absolute]),
            both("from x", "one\n\nfrom x")
        );
        assert_eq!(fixture.load(Some(""), &[""]), (None, None));
    }

    #[test]
    fn a_flag_longer_than_any_path_is_a_text() {
        let fixture = Fixture::new(&[]);
        let long = "word ".repeat(2000);
        assert_eq!(fixture.load(Some(&long), &[]), (Some(long.clone()), None));
    }

    #[test]
    fn a_flag_that_names_a_folder_is_reported_and_taken_as_text() {
        let fixture = Fixture::new(&[("p/src/a", "")]);
        let flags = PromptFlags {
            system: Some("src".into()),
            append: vec![],
        };
        let (texts, problems) = load_prompt_texts(&fixture.paths, &flags);
        assert_eq!(texts.custom.as_deref(), Some("src"));
        assert_eq!(problems[0].path, fixture.paths.cwd.join("src"));
    }
}
