//! Trust in a project's `.pi` and `.agents`: nothing in them is used before the user has said so.
//!
//! Answers are recorded in `trust.json`, which the original reads and writes, too
//! ([`answers`]). An answer holds for the contents that the project had ([`record`]): when they
//! differ, the user is asked again. The decision about a folder is made once and kept for the
//! process, so that all of its parts use the same files; [`recheck`] makes it again.

pub mod answers;
mod contents;
mod difference;
pub mod file_set;
mod imports;
pub mod protected;
mod question;
pub mod record;
mod seen;
mod states;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

pub use self::answers::TrustError;
use self::contents::Contents;
pub use self::difference::{Change, ChangedFile, Difference};
pub use self::file_set::canonical;
use self::file_set::{
    FileRole, Files, ProjectFolder, hash, hash_of, is_in_packages, key_of, path_of, shared_skills,
};
pub use self::question::{Listed, Question, TrustReason};
use self::record::Record;
pub use self::seen::changed_since_last_session;
use crate::paths::{PROJECT_DIR_NAME, Paths};
use crate::settings::global_value;

/// Value of `--approve` and `--no-approve`.
static APPROVAL: OnceLock<bool> = OnceLock::new();

/// The decisions of this process, by agent folder and canonical project.
static DECISIONS: Mutex<BTreeMap<(PathBuf, PathBuf), Decision>> = Mutex::new(BTreeMap::new());

/// Names in a project's `.pi` that can change the behavior of pi.
const TRUSTED_NAMES: [&str; 8] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// The reason why a project's resources are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// Requested by `--no-approve`, or by the extension that started the session.
    Requested,
    /// Recorded in `file` for `folder`, which is the project or one of its ancestors.
    Recorded { file: PathBuf, folder: PathBuf },
    /// The setting `defaultProjectTrust` is `never`.
    Default { file: PathBuf },
    /// The recorded answers cannot be read.
    Unreadable { why: String },
    /// The user has not been asked.
    Unanswered,
    /// The project has changed since it was trusted.
    Changed(Arc<Difference>),
    /// Declined for this session.
    Declined { by_extension: bool },
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => f.write_str("asked for with --no-approve"),
            Self::Recorded { file, folder } => {
                write!(
                    f,
                    "{} is not trusted in {}",
                    folder.display(),
                    file.display()
                )
            }
            Self::Default { file } => {
                write!(f, "defaultProjectTrust is \"never\" in {}", file.display())
            }
            Self::Unreadable { why } => f.write_str(why),
            Self::Unanswered => f.write_str("it is not known whether you trust this folder"),
            Self::Changed(_) => f.write_str("it has changed since you trusted it"),
            Self::Declined {
                by_extension: false,
            } => f.write_str("declined for this session"),
            Self::Declined { by_extension: true } => {
                f.write_str("an extension of yours declined it (project_trust)")
            }
        }
    }
}

impl Distrust {
    /// Returns whether an answer of the user would decide.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Unanswered | Self::Changed(_))
    }
}

/// The user's answer about a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    Trust,
    TrustParent,
    /// Trust, and do not ask about later changes.
    TrustChanges,
    TrustSession,
    Deny,
    DenySession,
}

#[derive(Clone, Debug)]
enum SessionAnswer {
    /// Trusted with these contents.
    Trusted(Arc<Files>),
    Declined {
        by_extension: bool,
    },
}

/// The decision about one project.
#[derive(Debug)]
struct Decision {
    folder: ProjectFolder,
    agent_dir: PathBuf,
    /// The folder as the session names it.
    cwd: PathBuf,
    distrust: Option<Distrust>,
    /// The contents that were trusted, if trust is bound to them.
    files: Option<Arc<Contents>>,
    /// The contents that the open question is about.
    shown: Option<Arc<Files>>,
    session: Option<SessionAnswer>,
    /// Files that tools of pi changed in this session, with the hash of what they wrote.
    own: BTreeMap<PathBuf, Option<String>>,
    /// Whether nothing needed trust when the folder was first looked at.
    was_empty: bool,
    /// Whether nothing needs trust now.
    is_empty: bool,
}

/// Files that modules may be loaded from, for the loader of JavaScript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedFiles {
    /// Canonical paths with SHA-256 in hexadecimal digits.
    pub files: Vec<(PathBuf, String)>,
    /// Folders of which no other files may be loaded.
    pub folders: Vec<PathBuf>,
}

/// Sets the trust for all projects from the command line. Only the first call has an effect.
pub fn set_approval(all: bool) {
    // The first value stays, because earlier decisions were based on it.
    let _ = APPROVAL.set(all);
}

/// Returns the reason to ignore a project's resources; `None` if they are used. The first call
/// for a folder decides, see [`recheck`].
pub fn distrust(home: &Path, agent_dir: &Path, project: &Path) -> Option<Distrust> {
    with_decision(home, agent_dir, project, |decision| {
        decision.distrust.clone()
    })
}

/// Decides again about the project in `cwd`, because files may have changed. Answers for this
/// session stay valid. Returns whether the project has resources that trust would enable.
pub fn recheck(paths: &Paths, cwd: &Path) -> bool {
    with_decision(&paths.home, &paths.agent_dir, cwd, |decision| {
        decision.decide();
        !decision.is_empty
    })
}

/// Returns the question for the user if an answer would decide. The answer is about the contents
/// that the project has now.
pub fn question(paths: &Paths) -> Option<Question> {
    with_decision_of(paths, |decision| {
        let distrust = decision.distrust.clone().filter(Distrust::is_open)?;
        let files = Arc::new(decision.folder.read().ok()?);
        decision.shown = Some(Arc::clone(&files));
        Some(Question::new(
            &decision.folder,
            &decision.agent_dir,
            distrust,
            &files,
        ))
    })
}

/// Returns the question also if the user has answered it before.
pub fn question_anew(paths: &Paths) -> Result<Question, TrustError> {
    if let Some(question) = question(paths) {
        return Ok(question);
    }
    with_decision_of(paths, |decision| {
        let files = Arc::new(decision.folder.read()?);
        decision.shown = Some(Arc::clone(&files));
        let (folder, agent_dir) = (&decision.folder, &decision.agent_dir);
        Ok(Question::new(
            folder,
            agent_dir,
            Distrust::Unanswered,
            &files,
        ))
    })
}

/// Applies the user's answer. It is in effect also if it could not be recorded.
pub fn answer(paths: &Paths, answer: TrustAnswer) -> Result<(), TrustError> {
    with_decision_of(paths, |decision| decision.apply(answer))
}

/// Applies the answer of a `project_trust` handler, for this session.
pub fn answer_of_extension(paths: &Paths, trusted: bool) {
    with_decision_of(paths, |decision| match trusted {
        true => decision.trust_session(),
        false => {
            decision.session = Some(SessionAnswer::Declined { by_extension: true });
            decision.decide();
        }
    });
}

/// Returns whether the command line decides about all projects.
pub fn is_overridden() -> bool {
    APPROVAL.get().is_some()
}

/// Returns whether an extension may have a handler of `project_trust`: its own files, without
/// those of packages that it imports, mention the event.
pub fn may_decide(entry: &Path) -> bool {
    const EVENT: &str = "project_trust";
    const MAX_MODULES: usize = 500;
    let mut queue = vec![canonical(entry)];
    let mut seen: BTreeSet<PathBuf> = queue.iter().cloned().collect();
    while let Some(module) = queue.pop() {
        let Ok(text) = pi_base::regular_file::read_lossy(&module) else {
            continue;
        };
        // A set of modules as large as this is loaded rather than searched.
        if text.contains(EVENT) || seen.len() > MAX_MODULES {
            return true;
        }
        for import in imports::imported_files(&module, &text) {
            let import = canonical(&import);
            if seen.insert(import.clone()) {
                queue.push(import);
            }
        }
    }
    false
}

/// Returns a line for the user about what is left out and how to let it in. `None` if nothing is
/// left out, or if the user has asked for it on the command line.
pub fn note(paths: &Paths) -> Option<String> {
    let why = paths.distrust.as_ref()?;
    if *why == Distrust::Requested || !has_something_to_trust(&paths.home, &paths.cwd) {
        return None;
    }
    let folder = ProjectFolder::new(&paths.home, &paths.cwd);
    let what = match why {
        Distrust::Changed(difference) => difference.summary(&folder.path),
        _ => question::summary(&folder),
    };
    let remedy = match why {
        Distrust::Unreadable { .. } => "To let it in once: --approve (-a)".to_owned(),
        _ => format!(
            "To let it in once: --approve (-a); for good: pi trust allow, which {} records",
            paths.agent_dir.join("trust.json").display()
        ),
    };
    Some(format!(
        "What {} brings is left out ({what}): {why}. {remedy}",
        paths.cwd.display()
    ))
}

/// Lists in one line what the project brings.
pub fn summary(paths: &Paths) -> String {
    question::summary(&ProjectFolder::new(&paths.home, &paths.cwd))
}

/// Returns whether the project has resources that trust would enable.
pub fn has_something_to_trust(home: &Path, project: &Path) -> bool {
    has_resources(&ProjectFolder::new(home, project))
}

fn has_resources(folder: &ProjectFolder) -> bool {
    let config = folder.config();
    // A link that leads nowhere may lead somewhere later.
    let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
    // Most projects have no such folder, and a new session looks for it about four times.
    config.exists() && TRUSTED_NAMES.iter().any(|name| is_there(config.join(name)))
        || !shared_skills(&folder.home, &folder.path).is_empty()
}

/// Returns the recorded answer for `project`, or for its nearest ancestor, with the folder.
pub fn recorded_answer(file: &Path, project: &Path) -> Result<Option<(PathBuf, bool)>, TrustError> {
    let answers = answers::read(file)?;
    Ok(answers::nearest(&answers, &canonical(project)))
}

/// Notes that a tool of pi has changed a file, on behalf of the user: the change is not asked
/// about in this session.
pub fn note_own_change(path: &Path) {
    let path = canonical(path);
    for decision in DECISIONS.lock().values_mut() {
        if path.starts_with(&decision.folder.path) {
            decision.own_change(&path);
        }
    }
}

/// Like [`note_own_change`], for a file that pi itself writes: later sessions do not ask either.
pub fn accept_own_change(path: &Path) {
    let path = canonical(path);
    for decision in DECISIONS.lock().values_mut() {
        if path.starts_with(&decision.folder.path)
            && decision.own_change(&path)
            && decision.session.is_none()
            && let Some(files) = &decision.files
        {
            decision.save(&Record::new(&decision.folder, files.all(), false));
        }
    }
}

/// Returns the SHA-256 of a file in hexadecimal digits; `None` if there is no file to read.
pub fn content_hash(path: &Path) -> Option<String> {
    let bytes = pi_base::regular_file::read(path).ok()?;
    Some(hash(&bytes))
}

/// Makes installed packages of the project part of what is trusted, after pi itself has installed
/// them. Does nothing for a folder that is not trusted, unless it was empty before.
pub fn accept_packages(paths: &Paths) -> Result<(), TrustError> {
    with_decision_of(paths, Decision::accept)
}

/// Fails if a file that a project brings is not the one that was trusted.
pub fn check(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let decisions = DECISIONS.lock();
    let mut bound = decisions
        .values()
        .filter(|decision| decision.files.is_some())
        .peekable();
    if bound.peek().is_none() {
        return Ok(());
    }
    let real = canonical(path);
    match bound.all(|decision| decision.allows(path, &real, bytes)) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it has changed since this folder was trusted: /reload or a new start asks about it",
        )),
    }
}

/// Reads a text file of any folder; see [`check`].
pub fn read_lossy(path: &Path) -> io::Result<String> {
    let bytes = pi_base::regular_file::read(path)?;
    check(path, &bytes)?;
    Ok(pi_base::regular_file::decode_lossy(&bytes))
}

/// Returns the files that may be loaded as code; `None` if trust in the project is not bound to
/// its contents.
pub fn expected_files(paths: &Paths) -> Option<ExpectedFiles> {
    with_decision_of(paths, |decision| {
        let files = decision.files.as_ref()?;
        let project = &decision.folder.path;
        let expected = files
            .all()
            .iter()
            .filter(|(_, file)| !matches!(file.role, FileRole::Link | FileRole::Settings));
        let expected =
            expected.filter_map(|(key, file)| Some((path_of(project, key)?, file.sha256.clone())));
        let folder = decision.folder.config().join("extensions");
        Some(ExpectedFiles {
            files: expected.collect(),
            folders: vec![
                canonical(&folder),
                decision.cwd.join(PROJECT_DIR_NAME).join("extensions"),
                folder,
            ],
        })
    })
}

/// Returns whether an entry file of an extension was part of what was trusted.
pub fn is_expected(paths: &Paths, entry: &Path) -> bool {
    with_decision_of(paths, |decision| match &decision.files {
        None => decision.distrust.is_none(),
        Some(files) => {
            let (real, project) = (canonical(entry), &decision.folder.path);
            let is_within =
                |key: &String| path_of(project, key).is_some_and(|path| path.starts_with(&real));
            is_in_packages(project, &real)
                || files.get(&key_of(project, &real)).is_some()
                // A folder stands for the module in it.
                || real.is_dir() && files.all().keys().any(is_within)
        }
    })
}

fn with_decision_of<T>(paths: &Paths, act: impl FnOnce(&mut Decision) -> T) -> T {
    with_decision(&paths.home, &paths.agent_dir, &paths.cwd, act)
}

fn with_decision<T>(
    home: &Path,
    agent_dir: &Path,
    project: &Path,
    act: impl FnOnce(&mut Decision) -> T,
) -> T {
    let key = (agent_dir.to_owned(), canonical(project));
    let mut decisions = DECISIONS.lock();
    let decision = decisions.entry(key).or_insert_with(|| {
        let folder = ProjectFolder::new(home, project);
        let mut decision = Decision {
            is_empty: true,
            was_empty: !has_resources(&folder),
            folder,
            agent_dir: agent_dir.to_owned(),
            cwd: project.to_owned(),
            distrust: None,
            files: None,
            shown: None,
            session: None,
            own: BTreeMap::new(),
        };
        decision.decide();
        decision
    });
    // A folder that had nothing is looked at each time, which costs less than to remember when.
    if decision.is_empty && has_resources(&decision.folder) {
        decision.decide();
    }
    act(decision)
}

impl Decision {
    fn decide(&mut self) {
        self.shown = None;
        let decided = self.find();
        (self.distrust, self.files) = match decided {
            Ok(files) => (None, files),
            Err(distrust) => (Some(distrust), None),
        };
    }

    /// Returns the contents to which trust is bound, or why there is no trust.
    fn find(&mut self) -> Result<Option<Arc<Contents>>, Distrust> {
        self.is_empty = !has_resources(&self.folder);
        match APPROVAL.get() {
            Some(true) => return Ok(None),
            Some(false) => return Err(Distrust::Requested),
            None => {}
        }
        let file = self.trust_file();
        let unreadable = |error: TrustError| Distrust::Unreadable {
            why: error.to_string(),
        };
        let answers = answers::read(&file).map_err(unreadable)?;
        let recorded = answers::nearest(&answers, &self.folder.path);
        if self.is_empty {
            return match recorded {
                Some((folder, false)) => Err(Distrust::Recorded { file, folder }),
                _ => Ok(None),
            };
        }
        match self.session.clone() {
            Some(SessionAnswer::Declined { by_extension }) => {
                return Err(Distrust::Declined { by_extension });
            }
            Some(SessionAnswer::Trusted(before)) => {
                let files = self.unchanged_since(&before)?;
                self.session = Some(SessionAnswer::Trusted(Arc::clone(&files)));
                return Ok(Some(known(&files)));
            }
            None => {}
        }
        match recorded {
            Some((folder, false)) => Err(Distrust::Recorded { file, folder }),
            Some((_, true)) => self.recorded_contents(),
            None => self.by_default(),
        }
    }

    /// Follows the global settings; a project must not declare itself trusted.
    fn by_default(&mut self) -> Result<Option<Arc<Contents>>, Distrust> {
        let file = self.agent_dir.join("settings.json");
        let default = global_value(&file, "defaultProjectTrust");
        match default.as_ref().and_then(|value| value.as_str()) {
            Some("always") => Ok(None),
            Some("never") => Err(Distrust::Default { file }),
            // All of it was written for the user in this session.
            _ if self.was_empty && self.is_own() => match self.apply(TrustAnswer::Trust) {
                Ok(()) => Ok(self.files.clone()),
                Err(error) => Err(Distrust::Unreadable {
                    why: error.to_string(),
                }),
            },
            _ => Err(Distrust::Unanswered),
        }
    }

    /// Returns whether pi's tools have written all files.
    fn is_own(&self) -> bool {
        let Ok(files) = self.read() else { return false };
        let mut paths = files
            .keys()
            .filter_map(|key| path_of(&self.folder.path, key));
        !files.is_empty() && paths.all(|path| self.is_own_state(&files, &path))
    }

    /// Returns whether a file is as a tool of pi has left it.
    fn is_own_state(&self, files: &Files, path: &Path) -> bool {
        let now = files.get(&key_of(&self.folder.path, path));
        let own = self.own.get(path);
        own.is_some_and(|own| own.as_deref() == now.map(|file| file.sha256.as_str()))
    }

    /// Compares the contents with those that were trusted. A folder that was trusted by another
    /// program is trusted as it is found first.
    fn recorded_contents(&mut self) -> Result<Option<Arc<Contents>>, Distrust> {
        let record = Record::load(&self.agent_dir, &self.folder.path);
        let Some(record) = record else {
            let is_damaged = Record::exists(&self.agent_dir, &self.folder.path);
            let files = match is_damaged {
                true => self.unchanged_since(&Files::new())?,
                false => {
                    let files = self.read()?;
                    self.save(&Record::new(&self.folder, &files, false));
                    files
                }
            };
            return Ok(Some(known(&files)));
        };
        if record.trusts_changes {
            return Ok(None);
        }
        if self.folder.is_unchanged_since(&record) {
            return Ok(Some(Arc::new(record.files)));
        }
        let files = self.unchanged_since(record.files.all())?;
        let now = Record::new(&self.folder, &files, false);
        if now.states != record.states || now.digest != record.digest {
            self.save(&now);
        }
        Ok(Some(known(&files)))
    }

    /// Returns the present contents if they differ from `before` only by what pi's tools did.
    fn unchanged_since(&self, before: &Files) -> Result<Arc<Files>, Distrust> {
        let files = self.read()?;
        let mut difference = Difference::between(&self.folder.path, before, &files);
        difference
            .files
            .retain(|file| !self.is_own_state(&files, &file.path));
        match difference.is_empty() {
            true => Ok(files),
            false => Err(Distrust::Changed(Arc::new(difference))),
        }
    }

    fn read(&self) -> Result<Arc<Files>, Distrust> {
        let files = self.folder.read().map_err(|error| Distrust::Unreadable {
            why: error.to_string(),
        });
        files.map(Arc::new)
    }

    fn apply(&mut self, answer: TrustAnswer) -> Result<(), TrustError> {
        let project = self.folder.path.clone();
        let file = self.trust_file();
        let files = match self.shown.take() {
            Some(shown) => shown,
            None => Arc::new(self.folder.read()?),
        };
        let changes = match answer {
            TrustAnswer::TrustParent => {
                let parent = project.parent().unwrap_or(&project).to_owned();
                vec![(parent, Some(true)), (project.clone(), None)]
            }
            TrustAnswer::Trust | TrustAnswer::TrustChanges => {
                let known = recorded_answer(&file, &project).ok().flatten();
                match known {
                    Some((_, true)) => Vec::new(),
                    _ => vec![(project.clone(), Some(true))],
                }
            }
            TrustAnswer::Deny => vec![(project.clone(), Some(false))],
            TrustAnswer::TrustSession | TrustAnswer::DenySession => Vec::new(),
        };
        let recorded = match changes.is_empty() {
            true => Ok(()),
            false => answers::record(&file, &changes),
        };
        self.session = match answer {
            TrustAnswer::DenySession => Some(SessionAnswer::Declined {
                by_extension: false,
            }),
            TrustAnswer::Deny if recorded.is_err() => Some(SessionAnswer::Declined {
                by_extension: false,
            }),
            TrustAnswer::TrustSession => Some(SessionAnswer::Trusted(Arc::clone(&files))),
            _ if recorded.is_err() => Some(SessionAnswer::Trusted(Arc::clone(&files))),
            _ => None,
        };
        match answer {
            TrustAnswer::Trust | TrustAnswer::TrustParent | TrustAnswer::TrustChanges => {
                let trusts_changes = answer == TrustAnswer::TrustChanges;
                self.save(&Record::new(&self.folder, &files, trusts_changes));
                self.distrust = None;
                self.files = (!trusts_changes).then(|| known(&files));
            }
            TrustAnswer::TrustSession => {
                self.distrust = None;
                self.files = Some(known(&files));
            }
            TrustAnswer::Deny => {
                Record::remove(&self.agent_dir, &project);
                self.decide();
            }
            TrustAnswer::DenySession => self.decide(),
        }
        recorded
    }

    /// Returns whether trust is bound to the file.
    fn own_change(&mut self, path: &Path) -> bool {
        let bytes = pi_base::regular_file::read(path).ok();
        let written = bytes.map(|bytes| hash_of(path, &bytes));
        self.own.insert(path.to_owned(), written);
        let key = key_of(&self.folder.path, path);
        let Some(files) = &mut self.files else {
            return false;
        };
        let Some(file) = files.get(&key) else {
            return false;
        };
        let mut all = files.all().clone();
        match self.folder.read_file(path, file.role) {
            Some(changed) => all.insert(key, changed),
            None => all.remove(&key),
        };
        *files = Arc::new(all.into());
        true
    }

    fn trust_session(&mut self) {
        match self.read() {
            Ok(files) => {
                self.distrust = None;
                self.files = Some(known(&files));
                self.session = Some(SessionAnswer::Trusted(files));
            }
            Err(distrust) => self.distrust = Some(distrust),
        }
    }

    /// Accepts what installing packages changes.
    fn accept(&mut self) -> Result<(), TrustError> {
        let before = match (&self.files, &self.distrust) {
            (Some(files), _) => Some(files.all().clone()),
            (None, Some(Distrust::Unanswered)) if self.was_empty => {
                return self.apply(TrustAnswer::Trust);
            }
            // Another process has installed packages into the empty folder as well.
            (None, Some(Distrust::Changed(_))) if self.was_empty => {
                let record = Record::load(&self.agent_dir, &self.folder.path);
                record.map(|record| record.files.all().clone())
            }
            _ => None,
        };
        let (Some(before), Ok(now)) = (before, self.read()) else {
            return Ok(());
        };
        let config = self.folder.config();
        let is_of_packages = |key: &String| {
            let path = path_of(&self.folder.path, key).unwrap_or_default();
            let below = path.strip_prefix(&config).unwrap_or(Path::new(""));
            ["npm", "git", "pi.lock", "settings.json"]
                .iter()
                .any(|name| below.starts_with(name))
        };
        let mut files = before.clone();
        files.retain(|key, _| !is_of_packages(key) || now.contains_key(key));
        let installed = now.iter().filter(|(key, _)| is_of_packages(key));
        files.extend(installed.map(|(key, file)| (key.clone(), file.clone())));
        if files != before {
            let files = Arc::new(files);
            self.files = Some(known(&files));
            match &mut self.session {
                Some(session) => *session = SessionAnswer::Trusted(files),
                None => self.save(&Record::new(&self.folder, &files, false)),
            }
            self.decide();
        }
        Ok(())
    }

    /// Saves a record. Without it the next start asks, or trusts the contents as it finds them.
    fn save(&self, record: &Record) {
        if let Err(error) = record.save(&self.agent_dir) {
            tracing::warn!("what was trusted cannot be recorded: {error}");
        }
    }

    fn trust_file(&self) -> PathBuf {
        self.agent_dir.join("trust.json")
    }

    /// Returns whether a file may be used with these contents. `real` is its canonical path.
    fn allows(&self, path: &Path, real: &Path, bytes: &[u8]) -> bool {
        let Some(files) = &self.files else {
            return true;
        };
        match files.get(&key_of(&self.folder.path, real)) {
            Some(file) => file.sha256 == hash_of(real, bytes),
            None => !self.covers(path, &self.cwd) && !self.covers(real, &self.folder.path),
        }
    }

    /// Returns whether all files at such a place are known.
    fn covers(&self, path: &Path, project: &Path) -> bool {
        let Ok(below) = path.strip_prefix(project) else {
            return false;
        };
        if path.starts_with(&self.agent_dir) || is_in_packages(project, path) {
            return false;
        }
        if below.starts_with(".agents/skills") {
            return true;
        }
        let Ok(below) = below.strip_prefix(PROJECT_DIR_NAME) else {
            return false;
        };
        let first = below.components().next().map(|first| first.as_os_str());
        let is_listed = first
            .and_then(|first| first.to_str())
            .is_some_and(|first| first != "themes" && TRUSTED_NAMES.contains(&first));
        let is_folder = ["extensions", "skills", "prompts"]
            .iter()
            .any(|name| below.starts_with(name));
        is_listed
            && (!is_folder
                || below
                    .extension()
                    .is_some_and(|ending| ending == "md" || ending == "ts" || ending == "js"))
    }
}

fn known(files: &Arc<Files>) -> Arc<Contents> {
    Arc::new(Files::clone(files).into())
}
