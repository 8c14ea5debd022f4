//! `AGENTS.md` and `CLAUDE.md`: instructions of projects and users for every agent.

use pi_base::regular_file;
use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::paths::Paths;

/// Names in order of preference: the first one that a folder has is read.
const NAMES: [&str; 5] = [
    "AGENTS.override.md",
    "AGENTS.md",
    "AGENTS.MD",
    "CLAUDE.md",
    "CLAUDE.MD",
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    pub content: String,
}

/// Returns the file of the agent folder, then those from the root of the file system down to
/// the working folder, so that the nearest one comes last.
pub fn load_context_files(paths: &Paths) -> (Vec<ContextFile>, Vec<Diagnostic>) {
    let mut problems = Vec::new();
    let mut dirs: Vec<&Path> = paths.cwd.ancestors().collect();
    dirs.reverse();
    dirs.retain(|dir| *dir != paths.agent_dir);
    dirs.insert(0, &paths.agent_dir);
    let found = dirs.into_iter().filter_map(|dir| read(dir, &mut problems));
    let files = found.collect();
    (files, problems)
}

/// Reads the first file of the folder that can be read.
fn read(dir: &Path, problems: &mut Vec<Diagnostic>) -> Option<ContextFile> {
    NAMES.iter().find_map(|name| {
        let path = dir.join(name);
        match regular_file::read_lossy(&path) {
            Ok(content) => Some(ContextFile { path, content }),
            Err(error) => {
                let absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
                if !absent.contains(&error.kind()) {
                    problems.push(Diagnostic::unreadable(&path, &error));
                }
                None
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(path: PathBuf, text: &str) -> ContextFile {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let content = text.to_owned();
        ContextFile { path, content }
    }

    #[test]
    fn the_agent_folder_comes_first_then_from_the_root_down() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let paths = Paths {
            home: root.to_owned(),
            agent_dir: root.join("agent"),
            cwd: root.join("a/b"),
            distrust: None,
        };
        let agent = write(root.join("agent/CLAUDE.md"), "agent");
        let outer = write(root.join("AGENTS.md"), "outer");
        let inner = write(root.join("a/b/AGENTS.override.md"), "inner");
        write(
            root.join("a/b/AGENTS.md"),
            "not read beside AGENTS.override.md",
        );
        let (files, problems) = load_context_files(&paths);
        assert_eq!(files, [agent, outer, inner]);
        assert_eq!(problems, []);
    }

    #[test]
    fn working_in_the_agent_folder_does_not_repeat_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = dir.path().join("agent");
        let file = write(agent_dir.join("AGENTS.md"), "agent");
        let paths = Paths {
            home: dir.path().to_owned(),
            cwd: agent_dir.join("extensions"),
            agent_dir,
            distrust: None,
        };
        assert_eq!(load_context_files(&paths).0, [file]);
    }

    #[test]
    fn a_byte_order_mark_is_not_text() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("p");
        let mut file = write(cwd.join("AGENTS.md"), "\u{feff}# Rules\r\n");
        file.content = "# Rules\r\n".to_owned();
        let paths = Paths {
            home: dir.path().to_owned(),
            agent_dir: dir.path().join("agent"),
            cwd,
            distrust: None,
        };
        assert_eq!(load_context_files(&paths).0, [file]);
    }

    #[test]
    fn an_unreadable_file_is_reported_and_the_other_name_read() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("p");
        fs::create_dir_all(cwd.join("AGENTS.md")).unwrap();
        let file = write(cwd.join("CLAUDE.md"), "text");
        let paths = Paths {
            home: dir.path().to_owned(),
            agent_dir: dir.path().join("agent"),
            cwd: cwd.clone(),
            distrust: None,
        };
        let (files, problems) = load_context_files(&paths);
        assert_eq!(files, [file]);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].path, cwd.join("AGENTS.md"));
    }
}
