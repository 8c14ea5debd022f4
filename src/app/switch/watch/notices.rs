//! Messages to the user about reloads that the watch causes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::AgentSession;
use pi_agent::event::UiMethod;
use pi_extensions::LoadReport;

/// Number of files that are named if there are more of them.
const NAMED_FILES: usize = 2;
/// Number of files that are all named.
const MAX_NAMED: usize = 3;

/// Files in the words of a message.
pub(super) struct Names {
    names: Vec<String>,
    /// Whether all are the files of extensions, and none is one that they import.
    are_extensions: bool,
}

impl Names {
    pub fn new(files: &BTreeSet<PathBuf>, extensions: &BTreeSet<PathBuf>) -> Self {
        let mut names: Vec<String> = files.iter().map(|file| short_name(file)).collect();
        // A file may be listed by its own path and by a link.
        names.dedup();
        Self {
            names,
            are_extensions: files.is_subset(extensions),
        }
    }

    /// Returns "a.ts, b.ts", or "a.ts, b.ts and 18 more".
    pub fn listed(&self) -> String {
        list(&self.names)
    }

    /// Returns "Reloaded: a.ts", or "Reloaded 20 extensions: a.ts, b.ts and 18 more". Extensions
    /// that are `gone` are listed by themselves: "Reloaded: a.ts. Gone: b.ts".
    fn reloaded(&self, gone: &[String]) -> String {
        let mut gone: Vec<String> = gone.iter().map(|path| short_name(path.as_ref())).collect();
        gone.dedup();
        let names = self.names.iter().filter(|name| !gone.contains(name));
        let names: Vec<String> = names.cloned().collect();
        let (count, listed) = (names.len(), list(&names));
        let reloaded = match (count, self.are_extensions) {
            (0, _) if !gone.is_empty() => None,
            (..=MAX_NAMED, _) => Some(format!("Reloaded: {listed}")),
            (_, true) => Some(format!("Reloaded {count} extensions: {listed}")),
            (_, false) => Some(format!("Reloaded {count} files: {listed}")),
        };
        let gone = (!gone.is_empty()).then(|| format!("Gone: {}", list(&gone)));
        let parts: Vec<String> = reloaded.into_iter().chain(gone).collect();
        parts.join(". ")
    }
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
    let name = file.file_name().unwrap_or_default().display().to_string();
    let is_common = file.file_stem().is_some_and(|stem| stem == "index") || name == "package.json";
    match file.parent().and_then(Path::file_name) {
        Some(folder) if is_common => format!("{}/{name}", folder.display()),
        _ => name,
    }
}

pub(super) async fn report_reload(session: &AgentSession, names: &Names, report: &LoadReport) {
    // A file that is no extension was reported when it was found.
    let mut failed = report.failed.iter();
    let failed = failed.find(|(_, failure)| !failure.lacks_factory());
    let failed = failed.map(|(path, _)| path);
    let kept = report.kept.first().map(|(path, _)| path);
    let reloaded = names.reloaded(&report.gone);
    let (text, kind) = match (failed, kept) {
        (None, None) => (reloaded, "info"),
        (Some(failed), _) => (format!("{reloaded}, but {failed} does not load"), "warning"),
        (None, Some(kept)) => (
            format!("{reloaded}, but {kept} does not load and goes on with its last good version"),
            "warning",
        ),
    };
    session.notify(text, kind).await;
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
            Names::new(&paths(files), &paths(extensions)).reloaded(&[])
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

    #[test]
    fn gone_extensions_are_listed_by_themselves() {
        let files = BTreeSet::from(["/e/a.ts".into(), "/e/b.ts".into()]);
        let names = Names::new(&files, &BTreeSet::new());
        let reloaded = |gone: &[&str]| {
            let gone: Vec<String> = gone.iter().map(|&path| path.to_owned()).collect();
            names.reloaded(&gone)
        };
        assert_eq!(reloaded(&["/e/b.ts"]), "Reloaded: a.ts. Gone: b.ts");
        assert_eq!(reloaded(&["/e/a.ts", "/e/b.ts"]), "Gone: a.ts, b.ts");
    }
}
