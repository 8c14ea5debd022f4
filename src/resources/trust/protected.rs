//! Recognizes places whose files run by themselves or decide what may run. pi tells the user about a
//! write there, or asks (setting `protectedPaths`).

use std::path::{Component, Path, PathBuf};

use super::file_set::canonical;
use crate::paths::Paths;
use pi_base::{follow_links, normalize};

/// Folders at any depth all of whose files are protected.
const FOLDERS: [&str; 4] = [".pi", ".agents", ".claude", ".vscode"];
/// Names in `.git`.
const GIT: [&str; 2] = ["hooks", "config"];
/// Names in the agent folder.
const AGENT: [&str; 7] = [
    "extensions",
    "settings.json",
    "auth.json",
    "models.json",
    "mcp.json",
    "pi.lock",
    "trust",
];
/// Start-up files of shells, in the home folder.
const SHELL_FILES: [&str; 18] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".xprofile",
    ".config/fish/config.fish",
    ".config/fish/conf.d",
];

/// Returns the absolute path of a write if it is protected.
pub fn protected_path(paths: &Paths, written: &Path) -> Option<PathBuf> {
    let path = normalize(written);
    let is_protected = is_protected(paths, &path)
        || follow_links(&path).is_none_or(|real| is_protected(paths, &real));
    is_protected.then_some(path)
}

/// Returns whether a text, such as a shell line, contains the name of a protected place.
pub fn names_protected_place(text: &str) -> bool {
    let text = text.to_lowercase();
    let shell_files = SHELL_FILES.iter().copied();
    let folders = FOLDERS.iter().copied();
    shell_files.chain(folders).any(|name| text.contains(name))
        || text.contains(".git") && GIT.iter().any(|name| text.contains(name))
}

fn is_protected(paths: &Paths, path: &Path) -> bool {
    for agent_dir in [paths.agent_dir.clone(), canonical(&paths.agent_dir)] {
        if let Ok(below) = path.strip_prefix(&agent_dir) {
            let first = below.components().next().map(name_of).unwrap_or_default();
            return AGENT.contains(&first.as_str())
                || first.starts_with("trust") && first.ends_with(".json");
        }
    }
    for home in [paths.home.clone(), canonical(&paths.home)] {
        if let Ok(below) = path.strip_prefix(&home)
            && SHELL_FILES.iter().any(|name| below.starts_with(name))
        {
            return true;
        }
    }
    let names: Vec<String> = path.components().map(name_of).collect();
    names.iter().any(|name| FOLDERS.contains(&name.as_str()))
        || names
            .windows(2)
            .any(|pair| pair[0] == ".git" && GIT.contains(&pair[1].as_str()))
}

/// Returns the name in lower case, because some file systems do not distinguish.
fn name_of(part: Component<'_>) -> String {
    part.as_os_str().to_string_lossy().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::expand_tilde;

    #[test]
    fn places_that_run_are_protected() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let cwd = dir.path().join("work");
        std::fs::create_dir_all(home.join(".pi/agent/sessions")).unwrap();
        std::fs::create_dir_all(cwd.join(".git/hooks")).unwrap();
        std::os::unix::fs::symlink(".git/hooks", cwd.join("innocent")).unwrap();
        std::os::unix::fs::symlink(home.join(".zshrc"), cwd.join("dangling")).unwrap();
        std::os::unix::fs::symlink("loop", cwd.join("loop")).unwrap();
        let paths = Paths {
            agent_dir: home.join(".pi/agent"),
            home,
            cwd: cwd.clone(),
            distrust: None,
        };
        let is = |written: &str| {
            let written = cwd.join(expand_tilde(written, &paths.home));
            protected_path(&paths, &written).is_some()
        };
        for written in [
            ".pi/extensions/x.ts",
            "sub/../.pi/SYSTEM.md",
            "packages/a/.agents/skills/x/SKILL.md",
            ".git/hooks/pre-commit",
            ".GIT/Config",
            "innocent/post-checkout",
            "dangling",
            "loop/x",
            "~/.bashrc",
            "~/.config/fish/conf.d/x.fish",
            "~/.pi/agent/extensions/a.ts",
            "~/.pi/agent/pi.lock",
            "~/.pi/agent/trust.json",
            "~/.pi/agent/trust/x.json",
            ".vscode/tasks.json",
        ] {
            assert!(is(written), "{written}");
        }
        for written in [
            "src/main.rs",
            ".gitignore",
            ".git/index",
            "pi/extensions/x.ts",
            "~/.pi/agent/sessions/x.jsonl",
            "~/notes.bashrc",
        ] {
            assert!(!is(written), "{written}");
        }
    }

    #[test]
    fn lines_that_name_protected_places_are_found() {
        for text in [
            "echo x >> ~/.bashrc '",
            "a > .PI/x",
            "cd .git; cp x hooks/y",
        ] {
            assert!(names_protected_place(text), "{text}");
        }
        for text in ["echo x > a", "git config user.name", "cat .gitignore"] {
            assert!(!names_protected_place(text), "{text}");
        }
    }
}
