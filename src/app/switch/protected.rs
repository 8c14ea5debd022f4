//! Asks about files in protected places that changed while a tool ran, without a write that was
//! visible before, and keeps those that are not allowed from being loaded (setting `protectedPaths`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::tool_times::ToolTimes;
use super::watch::changes_since_load;
use crate::AgentSession;
use crate::error::{CommandError, ErrorCode};
use crate::run::protected::shown;

use pi_agent::event::{UiAnswer, UiMethod};
use pi_extensions::expect_allowed_files;
use pi_resources::paths::Paths;
use pi_resources::settings::ProtectedPaths;
use pi_resources::trust;
use pi_resources::trust::protected::protected_path;
use pi_tools::command::process::has_background_processes;

const LOAD: &str = "Load it";
const REFUSE: &str = "Do not load it";
/// Why a file is not loaded, in a message about it.
const NO_USER: &str = "no user is here to allow it";
const DENIED: &str = "the user does not allow it";

/// SHA-256 of a file's content in hexadecimal digits; `None` if it is no file.
type Hash = Option<String>;

/// Contents of files in protected places, by canonical path.
#[derive(Default)]
pub(crate) struct ProtectedChanges {
    times: ToolTimes,
    /// Written by calls that the user has allowed, or loaded with the user's consent.
    allowed: BTreeMap<PathBuf, Hash>,
    refused: BTreeMap<PathBuf, Hash>,
    /// Whether the next question is also about what was refused before.
    asks_again: bool,
}

impl ProtectedChanges {
    /// Notes a file that an allowed call has written.
    pub fn allow(&mut self, path: &Path) {
        let path = trust::canonical(path);
        let hash = trust::content_hash(&path);
        self.answer(path, hash, true);
    }

    /// Asks at the next load also about what was refused before.
    pub fn ask_again(&mut self) {
        self.asks_again = true;
    }

    fn answer(&mut self, path: PathBuf, hash: Hash, is_allowed: bool) {
        self.allowed.remove(&path);
        self.refused.remove(&path);
        match is_allowed {
            true => self.allowed.insert(path, hash),
            false => self.refused.insert(path, hash),
        };
    }

    /// Applies one answer to all files. It is about the contents from before the question.
    fn answer_all(&mut self, files: Vec<(PathBuf, Hash)>, is_allowed: bool) {
        for (path, hash) in files {
            if is_allowed && hash == trust::content_hash(&path) {
                trust::note_own_change(&path);
            }
            self.answer(path, hash, is_allowed);
        }
    }

    /// Returns those of the changed files that need an answer.
    fn suspects(&mut self, paths: &Paths, changed: BTreeSet<PathBuf>) -> Vec<(PathBuf, Hash)> {
        self.times.end_all(has_background_processes);
        let asks_again = std::mem::take(&mut self.asks_again);
        // A file that was changed by hand since the answer has no answer.
        let is_same =
            |path: &PathBuf, hash: &mut Hash| hash.is_some() && *hash == trust::content_hash(path);
        self.refused.retain(is_same);
        self.allowed.retain(is_same);
        let changed = changed.iter().map(|path| trust::canonical(path));
        let changed: BTreeSet<PathBuf> = changed.chain(self.refused.keys().cloned()).collect();
        let is_suspect = |path: &PathBuf| {
            let protected = |path: &Path| protected_path(paths, path).is_some();
            let folders = path.ancestors().skip(1).take_while(|path| protected(path));
            let is_open = || match self.refused.contains_key(path) {
                true => asks_again,
                false => self.times.includes_change(path, folders),
            };
            path.exists() && protected(path) && !self.allowed.contains_key(path) && is_open()
        };
        let suspects = changed.into_iter().filter(is_suspect);
        let with_hash = |path: PathBuf| {
            let hash = trust::content_hash(&path);
            (path, hash)
        };
        suspects.map(with_hash).collect()
    }

    /// Returns whether no tool has run yet and no file has an answer.
    fn is_unused(&self) -> bool {
        self.times.is_empty() && self.allowed.is_empty() && self.refused.is_empty()
    }

    fn is_refused(&self, path: &Path) -> bool {
        let refused = self.refused.get(path);
        refused.is_some_and(|hash| hash.is_some() && *hash == trust::content_hash(path))
    }

    /// Tells the loader which contents it may load.
    fn apply(&self) {
        let allowed = self.allowed.iter();
        let allowed = allowed.filter_map(|(path, hash)| Some((path.clone(), hash.clone()?)));
        let refused = self.refused.keys();
        // No content has an empty hash.
        let refused = refused.map(|path| (path.clone(), String::new()));
        expect_allowed_files(allowed.chain(refused).collect());
    }

    /// Lets everything be loaded.
    fn forget(&mut self) {
        if !self.allowed.is_empty() || !self.refused.is_empty() {
            self.allowed.clear();
            self.refused.clear();
            self.apply();
        }
    }
}

impl AgentSession {
    /// Notes that a tool starts, if changes that it makes in protected places are asked about.
    pub(crate) fn note_tool_start(&self, call: &str) {
        if self.protected_paths_setting() == ProtectedPaths::Ask {
            self.switcher.protected_changes.lock().times.begin(call);
        }
    }

    pub(crate) fn note_tool_end(&self, call: &str) {
        let mut changes = self.switcher.protected_changes.lock();
        changes.times.end(call, has_background_processes);
    }

    /// Returns whether all of the changes are such that the user has refused to load.
    pub(crate) fn are_refused(&self, changed: &BTreeSet<PathBuf>) -> bool {
        let known = self.switcher.protected_changes.lock();
        let mut paths = changed.iter().map(|path| trust::canonical(path));
        !changed.is_empty() && paths.all(|path| known.is_refused(&path))
    }

    /// Asks about changes that a tool may have made in protected places, before extensions are
    /// loaded again. Files that are not allowed fail to load. Fails if the settings themselves are
    /// not allowed. Called when no run is active.
    pub(crate) async fn guard_changes(&self) -> Result<(), CommandError> {
        if self.protected_paths_setting() != ProtectedPaths::Ask {
            self.switcher.protected_changes.lock().forget();
            return Ok(());
        }
        if self.switcher.protected_changes.lock().is_unused() {
            return Ok(());
        }
        let paths = self.paths();
        let suspects = self.find_suspects(&paths).await;
        if !suspects.is_empty() {
            let files: Vec<PathBuf> = suspects.iter().map(|(path, _)| path.clone()).collect();
            let answer = self.ask_to_load(&files).await;
            (self.switcher.protected_changes.lock()).answer_all(suspects, answer.is_ok());
            if let Err(why) = answer {
                let message = format!(
                    "Not loaded: {} changed in a protected place while a tool ran, and {why} \
                     (setting protectedPaths)",
                    shown(&files)
                );
                self.notify(message, "warning").await;
            }
        }
        let known = self.switcher.protected_changes.lock();
        known.apply();
        let settings = [paths.global_settings(), paths.project_settings()];
        let settings = settings.map(|file| trust::canonical(&file));
        match settings.iter().find(|file| known.is_refused(file)) {
            None => Ok(()),
            Some(file) => Err(CommandError::new(
                ErrorCode::InvalidCommand,
                format!(
                    "Nothing is loaded again: {} changed in a protected place while a tool ran, \
                     and that is not allowed (setting protectedPaths). Look at the file; once you \
                     have changed it yourself, it is loaded",
                    file.display()
                ),
            )),
        }
    }

    async fn find_suspects(&self, paths: &Paths) -> Vec<(PathBuf, Hash)> {
        let (session, paths) = (self.arc(), paths.clone());
        // A file system may be slow.
        let found = tokio::task::spawn_blocking(move || {
            let changed = changes_since_load(&session);
            let mut known = session.switcher.protected_changes.lock();
            known.suspects(&paths, changed)
        });
        // An error means that the program ends.
        found.await.unwrap_or_default()
    }

    async fn ask_to_load(&self, files: &[PathBuf]) -> Result<(), &'static str> {
        if !self.config.has_ui {
            return Err(NO_USER);
        }
        let method = UiMethod::Select {
            title: format!(
                "Changed in a protected place while a tool ran, without a visible write:\n{}",
                shown(files)
            ),
            options: vec![LOAD.to_owned(), REFUSE.to_owned()],
            timeout: None,
        };
        match self.show_dialog(method).await {
            UiAnswer::Value(answer) if answer == LOAD => Ok(()),
            _ => Err(DENIED),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_answer_holds_for_the_contents_of_the_question() {
        let dir = tempfile::tempdir().unwrap();
        let home = trust::canonical(dir.path());
        let paths = Paths {
            agent_dir: home.join(".pi/agent"),
            cwd: home.join("work"),
            home,
            distrust: None,
        };
        let file = paths.agent_dir.join("extensions/a.ts");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "1").unwrap();
        let mut known = ProtectedChanges::default();
        let suspects =
            |known: &mut ProtectedChanges| known.suspects(&paths, BTreeSet::from([file.clone()]));
        assert!(suspects(&mut known).is_empty(), "no tool has run");
        known.times.begin("call");
        let suspected = suspects(&mut known);
        assert_eq!(suspected, [(file.clone(), trust::content_hash(&file))]);
        // The file is exchanged while the user reads the question.
        fs::write(&file, "2").unwrap();
        known.answer_all(suspected, true);
        let suspected = suspects(&mut known);
        assert_eq!(suspected.len(), 1);
        known.answer_all(suspected, true);
        assert!(suspects(&mut known).is_empty());

        fs::write(&file, "3").unwrap();
        let suspected = suspects(&mut known);
        known.answer_all(suspected, false);
        assert!(known.is_refused(&file));
        assert!(suspects(&mut known).is_empty(), "it was answered");
        known.ask_again();
        assert_eq!(suspects(&mut known).len(), 1);
        // Somebody else changes it later.
        known.times = ToolTimes::default();
        fs::write(&file, "4").unwrap();
        assert!(suspects(&mut known).is_empty());
        assert!(!known.is_refused(&file));
    }
}
