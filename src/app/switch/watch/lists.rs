//! The places that say which extensions there are: folders, settings, and `package.json` files of
//! packages.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::path_states::{PathStates, first_missing};
use crate::AgentSession;
use crate::startup::search_extensions;
use pi_extensions::LoadRecord;
use pi_resources::settings::{Settings, SettingsScope};

const SCOPES: [SettingsScope; 2] = [SettingsScope::Global, SettingsScope::Project];

/// Whether a reload would load other extensions than the last load.
#[derive(Default)]
pub(super) struct WatchedLists {
    states: PathStates,
    /// Folders that were listed.
    folders: BTreeSet<PathBuf>,
    difference: Difference,
}

/// How the extensions that there are now differ from those that were to be loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Extensions that are new.
    pub new: BTreeSet<PathBuf>,
    /// Extensions that are not named or found any more.
    pub gone: BTreeSet<PathBuf>,
    /// Settings files that name something else.
    pub settings: BTreeSet<PathBuf>,
}

impl WatchedLists {
    /// Searches again, after another load.
    pub fn renew(&mut self, session: &AgentSession, record: &LoadRecord) {
        self.states = PathStates::default();
        self.search(session, record);
    }

    /// Looks at all places again. Returns what differs from the last load.
    pub fn look(&mut self, session: &AgentSession, record: &LoadRecord) -> Difference {
        if self.states.look() {
            self.search(session, record);
        }
        self.difference.clone()
    }

    /// Returns the folders that were listed.
    pub fn folders(&self) -> &BTreeSet<PathBuf> {
        &self.folders
    }

    fn search(&mut self, session: &AgentSession, record: &LoadRecord) {
        let paths = session.paths();
        let files = [paths.global_settings(), paths.project_settings()];
        for file in &files {
            self.states.add(first_missing(file));
        }
        let Some(settings) = session.settings.read_again() else {
            // A file is half-written, or the settings are not in files.
            return;
        };
        // The places are known only after a search, and a state counts only if it was taken
        // before one.
        let mut found = search_extensions(&session.config, &settings, &paths);
        let mut is_new = false;
        for path in &found.looked_up {
            is_new |= self.states.add(first_missing(path));
        }
        if is_new {
            found = search_extensions(&session.config, &settings, &paths);
        }
        self.folders = (found.looked_up.into_iter())
            .filter_map(|path| {
                let mut near = path.ancestors().take(2);
                near.find(|path| path.is_dir()).map(PathBuf::from)
            })
            .chain(files.iter().filter_map(|file| {
                let folder = file.parent()?;
                folder.is_dir().then(|| folder.to_path_buf())
            }))
            .collect();
        let found: Vec<_> = found.paths;
        let now: BTreeSet<_> = found.iter().map(|found| found.path.clone()).collect();
        let before: BTreeSet<_> = record.paths.iter().map(|path| path.path.clone()).collect();
        let is_same = found == record.paths && are_same(&settings, &session.settings);
        self.difference = match is_same {
            true => Difference::default(),
            false => Difference {
                new: &now - &before,
                gone: &before - &now,
                settings: differing(&settings, &session.settings, files),
            },
        };
        if !is_same && self.difference == Difference::default() {
            // Only the order or the origin differs, which settings decide.
            self.difference.settings.insert(paths.global_settings());
        }
    }
}

fn are_same(left: &Settings, right: &Settings) -> bool {
    SCOPES.iter().all(|scope| is_same_in(*scope, left, right))
}

/// Returns whether both settings name the same extensions and packages.
fn is_same_in(scope: SettingsScope, left: &Settings, right: &Settings) -> bool {
    let (left, right) = (left.values_of(scope), right.values_of(scope));
    left.extensions == right.extensions && left.packages == right.packages
}

fn differing(left: &Settings, right: &Settings, files: [PathBuf; 2]) -> BTreeSet<PathBuf> {
    let files = SCOPES.into_iter().zip(files);
    let differing = files.filter(|(scope, _)| !is_same_in(*scope, left, right));
    differing.map(|(_, file)| file).collect()
}
