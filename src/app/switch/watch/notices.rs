//! Messages to the user about reloads that the watch causes.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::AgentSession;
use pi_agent::event::UiMethod;
use pi_extensions::LoadReport;

/// Number of files that are named if there are more of them.
const NAMED_FILES: usize = 2;
/// Number of files that are all named.
const MAX_NAMED: usize = 3;

/// Changed files in the words of a message.
pub(super) struct Names {
    files: Vec<PathBuf>,
    /// Files that are not there any more.
    missing: Vec<PathBuf>,
    /// The files of extensions. The others are imported by them.
    extensions: BTreeSet<PathBuf>,
}

impl Names {
    pub fn new(files: &BTreeSet<PathBuf>, extensions: &BTreeSet<PathBuf>) -> Self {
        let is_import_of_another = |file: &Path| {
            let mut others = files.iter();
            others.any(|other| other != file && leads_to(file, other))
        };
        let mut files: Vec<PathBuf> = files.iter().cloned().collect();
        files.retain(|file| !is_import_of_another(file));
        let (mut files, missing): (Vec<_>, Vec<_>) = files.into_iter().partition(|it| it.exists());
        // A file may be listed by its own path and by a link.
        let mut seen = BTreeSet::new();
        files.retain(|file| seen.insert(real_path(file)));
        Self {
            files,
            missing,
            extensions: extensions.iter().map(|path| real_path(path)).collect(),
        }
    }

    /// Returns "a.ts, b.ts", or "a.ts, b.ts and 18 more".
    pub fn listed(&self) -> String {
        list(&distinct_names(self.changed()))
    }

    /// Removed files count only if nothing else has changed.
    fn changed(&self) -> &[PathBuf] {
        match self.files.is_empty() {
            true => &self.missing,
            false => &self.files,
        }
    }

    /// Returns "Reloaded: a.ts", or "Reloaded 20 extensions: a.ts, b.ts and 18 more". Extensions
    /// that did not load, or are gone, are listed by themselves, in the words of `/reload`:
    /// "Reloaded: a.ts. Last good version kept: b.ts".
    fn reloaded(&self, report: &LoadReport) -> String {
        let kept: Vec<PathBuf> = report.kept.iter().map(|(path, _)| path.into()).collect();
        let gone: Vec<PathBuf> = report.gone.iter().map(PathBuf::from).collect();
        let failed: Vec<PathBuf> = failed_paths(report).map(PathBuf::from).collect();
        let has_failures = !kept.is_empty() || !failed.is_empty();
        let others = [&kept, &gone, &failed].into_iter().flatten();
        let others: BTreeSet<PathBuf> = others.map(|path| real_path(path)).collect();
        // A file that extensions import may have been loaded by none of them.
        let is_loaded = |file: &&PathBuf| {
            let file = real_path(file);
            !others.contains(&file) && (!has_failures || self.extensions.contains(&file))
        };
        let changed = match others.is_empty() {
            true => self.changed(),
            false => &self.files,
        };
        let loaded: Vec<PathBuf> = changed.iter().filter(is_loaded).cloned().collect();
        let are_extensions = (loaded.iter()).all(|file| self.extensions.contains(&real_path(file)));
        let all = [&loaded, &kept, &gone, &failed].map(Vec::as_slice);
        let mut names = distinct_names(&all.concat()).into_iter();
        let [loaded, kept, gone, failed] =
            all.map(|paths| names.by_ref().take(paths.len()).collect::<Vec<String>>());
        let (count, listed) = (loaded.len(), list(&loaded));
        let reloaded = match (count, are_extensions) {
            (0, _) => None,
            (..=MAX_NAMED, _) => Some(format!("Reloaded: {listed}")),
            (_, true) => Some(format!("Reloaded {count} extensions: {listed}")),
            (_, false) => Some(format!("Reloaded {count} files: {listed}")),
        };
        let others = [
            ("Last good version kept", kept),
            ("Gone", gone),
            ("Failed", failed),
        ];
        let others = others.iter().filter(|(_, names)| !names.is_empty());
        let others = others.map(|(what, names)| format!("{what}: {}", list(names)));
        let parts: Vec<String> = reloaded.into_iter().chain(others).collect();
        parts.join(". ")
    }
}

/// Returns whether an import of `path` may have found `file`: `lib` finds `lib.ts` and
/// `lib/index.ts`.
fn leads_to(path: &Path, file: &Path) -> bool {
    let without_ending = file.with_extension("");
    without_ending == path || without_ending == path.join("index")
}

/// Returns the path without links, or the path itself if the file is not there.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// Returns the extensions that did not load. A file that is no extension was reported when it was
/// found.
fn failed_paths(report: &LoadReport) -> impl Iterator<Item = &String> {
    let failed = report.failed.iter();
    let failed = failed.filter(|(_, failure)| !failure.lacks_factory());
    failed.map(|(path, _)| path)
}

/// Returns a short name for each path. Paths of one name have their folders in it, too.
fn distinct_names(paths: &[PathBuf]) -> Vec<String> {
    let mut uses = HashMap::<String, usize>::new();
    for path in paths {
        *uses.entry(short_name(path)).or_default() += 1;
    }
    let name = |path: &PathBuf| match short_name(path) {
        short if uses[&short] == 1 => short,
        _ => name_in_folder(path),
    };
    paths.iter().map(name).collect()
}

/// Returns "a.ts, b.ts", or "a.ts, b.ts and 18 more".
fn list(names: &[String]) -> String {
    if names.len() <= MAX_NAMED {
        return names.join(", ");
    }
    let named = names[..NAMED_FILES].join(", ");
    format!("{named} and {} more", names.len() - NAMED_FILES)
}

/// Returns the name of a file, with its folder if many files have this name.
pub(super) fn short_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    let is_common = file.file_stem().is_some_and(|stem| stem == "index") || name == "package.json";
    match is_common {
        true => name_in_folder(file),
        false => name.display().to_string(),
    }
}

fn name_in_folder(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().display();
    match file.parent().and_then(Path::file_name) {
        Some(folder) => format!("{}/{name}", folder.display()),
        None => name.to_string(),
    }
}

pub(super) async fn report_reload(session: &AgentSession, names: &Names, report: &LoadReport) {
    let is_complete = report.kept.is_empty() && failed_paths(report).next().is_none();
    let kind = if is_complete { "info" } else { "warning" };
    session.notify(names.reloaded(report), kind).await;
}

/// Sets or clears the line that says what a reload waits for.
pub(super) async fn set_status(session: &AgentSession, text: Option<String>) {
    let method = UiMethod::SetStatus {
        status_key: "reload".into(),
        status_text: text,
    };
    session.show(method).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_counted_and_two_are_named() {
        let named = |files: &[&str], extensions: &[&str]| {
            let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
            Names::new(&paths(files), &paths(extensions)).reloaded(&LoadReport::default())
        };
        assert_eq!(named(&["/e/a.ts"], &[]), "Reloaded: a.ts");
        assert_eq!(
            named(&["/e/todo/index.ts", "/p/package.json", "/x/a.ts"], &[]),
            "Reloaded: todo/index.ts, p/package.json, a.ts"
        );
        let many: Vec<String> = (b'a'..=b't')
            .map(|name| format!("/e/{}.ts", char::from(name)))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            named(&many, &many),
            "Reloaded 20 extensions: a.ts, b.ts and 18 more"
        );
        assert_eq!(
            named(&many, &many[1..]),
            "Reloaded 20 files: a.ts, b.ts and 18 more"
        );
    }

    /// Describes a reload after which `there` were changed or new, with the others as in the report.
    fn reloaded(loaded: &[&str], kept: &[&str], gone: &[&str], failed: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &&str| folder.path().join(name);
        for path in loaded.iter().map(at) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let text = |name: &&str| at(name).display().to_string();
        let failures = |names: &[&str]| {
            let failure = |name| (text(name), "threw".to_owned().into());
            names.iter().map(failure).collect()
        };
        let report = LoadReport {
            kept: failures(kept),
            gone: gone.iter().map(text).collect(),
            failed: failures(failed),
            ..LoadReport::default()
        };
        let changed = loaded.iter().chain(gone).map(at).collect();
        let entries = ["a.ts", "b.ts", "new/main.ts", "old/main.ts"];
        let entries = entries.iter().map(at).collect();
        Names::new(&changed, &entries).reloaded(&report)
    }

    #[test]
    fn gone_extensions_are_listed_by_themselves() {
        assert_eq!(
            reloaded(&["a.ts"], &[], &["b.ts"], &[]),
            "Reloaded: a.ts. Gone: b.ts"
        );
        assert_eq!(
            reloaded(&[], &[], &["a.ts", "b.ts"], &[]),
            "Gone: a.ts, b.ts"
        );
    }

    /// After the rename of a folder only "Gone: main.ts" was said.
    #[test]
    fn files_of_one_name_have_their_folders_in_it() {
        assert_eq!(
            reloaded(&["new/main.ts"], &[], &["old/main.ts"], &[]),
            "Reloaded: new/main.ts. Gone: old/main.ts"
        );
    }

    /// "Reloaded: a.ts, but /e/a.ts does not load" was said of one file.
    #[test]
    fn a_file_that_does_not_load_is_not_called_reloaded() {
        assert_eq!(
            reloaded(&["a.ts", "b.ts"], &["a.ts"], &[], &[]),
            "Reloaded: b.ts. Last good version kept: a.ts"
        );
        assert_eq!(
            reloaded(&["lib/x.ts"], &["a.ts"], &[], &[]),
            "Last good version kept: a.ts"
        );
        assert_eq!(reloaded(&["b.ts"], &[], &[], &["b.ts"]), "Failed: b.ts");
    }

    /// After a rename the path of the import and the old file were named: "text, text.ts".
    #[test]
    fn removed_files_are_not_named_beside_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("new.ts"), "").unwrap();
        let listed = |files: &[&str]| {
            let files = files.iter().map(|name| at(name)).collect();
            Names::new(&files, &BTreeSet::new()).listed()
        };
        assert_eq!(listed(&["lib/text", "lib/text.ts", "new.ts"]), "new.ts");
        assert_eq!(listed(&["lib/text", "lib/text.ts"]), "text.ts");
        assert_eq!(listed(&["lib", "lib/index.ts"]), "lib/index.ts");
    }

    #[test]
    fn a_file_and_a_link_to_it_are_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("store")).unwrap();
        std::fs::write(at("store/a.ts"), "").unwrap();
        std::os::unix::fs::symlink(at("store/a.ts"), at("a.ts")).unwrap();
        let files = BTreeSet::from([at("a.ts"), at("store/a.ts")]);
        let names = Names::new(&files, &BTreeSet::new());
        assert_eq!(names.listed(), "a.ts");
    }
}
