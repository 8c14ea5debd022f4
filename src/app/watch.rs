//! Reloading when the files of extensions are saved (setting `extensionWatch`).
//!
//! What the system says of files is only taken as a hint to look: editors write in many
//! ways, and what counts is whether the contents are what they were at the last load.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::start::find_extensions;
use crate::agent::event::{Event, UiMethod, UiRequest};
use crate::extensions::LoadReport;

/// Saving is over when nothing has happened for so long.
const QUIET: Duration = Duration::from_millis(150);
/// After so much of it nobody waits for quiet any more.
const NOISE: u32 = 20;

/// What is gone for longer is not being built.
const BUILD: Duration = Duration::from_secs(5);

/// So many reloads may follow one another: extensions write files, too, and what one
/// writes when it starts would begin another.
const ROUNDS: u32 = 4;

/// A hash of each file; `None` for one that is not there.
type Contents = BTreeMap<PathBuf, Option<u64>>;

struct Watch {
    hint: mpsc::Sender<()>,
    /// Of the folders that the files are in.
    watcher: Option<RecommendedWatcher>,
    /// Of what is loaded.
    contents: Contents,
    /// The extensions that there were to load at the last load.
    offered: BTreeSet<PathBuf>,
    /// Since when extensions are gone, of which the user was told then.
    gone_since: Option<Instant>,
    /// Why there is no watcher; to be told.
    failed: Option<notify::Error>,
    /// Fires when nobody wants it any more.
    over: CancellationToken,
}

impl AgentSession {
    /// The settings were read: begins, or ends, what they say. To be called when the
    /// extensions are loaded.
    pub(super) fn heed_watch_setting(&self) {
        let wanted = self.settings.values().extension_watch;
        let mut watching = self.watching.lock();
        if !wanted {
            *watching = None;
        } else if watching.is_none() {
            let over = CancellationToken::new();
            *watching = Some(over.clone().drop_guard());
            self.watch_extensions(over);
        }
    }

    fn watch_extensions(&self, over: CancellationToken) {
        let (hint, hints) = mpsc::channel(1);
        let mut watch = Watch {
            hint,
            watcher: None,
            contents: Contents::new(),
            offered: BTreeSet::new(),
            gone_since: None,
            failed: None,
            over,
        };
        // Now: what is saved from here on is not what is loaded.
        watch.look(self, &Contents::new());
        tokio::spawn(watch.run(Arc::downgrade(&self.arc()), hints));
    }
}

impl Watch {
    async fn run(mut self, session: Weak<AgentSession>, mut hints: mpsc::Receiver<()>) {
        while let Some(strong) = session.upgrade() {
            if let Some(error) = self.failed.take() {
                let text = format!("extensionWatch: files cannot be watched: {error}");
                tell(&strong, text, "warning").await;
            }
            let installed = strong.extensions.installed();
            let grown = strong.extensions.wait_imports_grown();
            drop(strong);
            tokio::select! {
                () = self.over.cancelled() => return,
                () = installed => {
                    let Some(session) = session.upgrade() else { return };
                    self.look(&session, &Contents::new());
                }
                () = grown => {
                    let Some(session) = session.upgrade() else { return };
                    let known = std::mem::take(&mut self.contents);
                    self.look(&session, &known);
                }
                hint = hints.recv() => {
                    if hint.is_none() {
                        return;
                    }
                    settle(&mut hints).await;
                    let Some(session) = session.upgrade() else { return };
                    self.follow(&session).await;
                }
            }
        }
    }

    /// Reloads until what is loaded is what the files say.
    async fn follow(&mut self, session: &AgentSession) {
        // A folder may be another one by the same name.
        self.watch_anew(session);
        let mut rounds = 0;
        // A reload may have said so.
        while !self.over.is_cancelled() {
            let changed = self.changed(session);
            if changed.is_empty() {
                self.gone_since = None;
                return;
            }
            // What is built is away for a moment; what has another name now is not.
            let gone = session.extensions.entry_files();
            let gone: Vec<PathBuf> = gone.into_iter().filter(|file| !file.exists()).collect();
            let others = changed.iter().any(|file| !gone.contains(file));
            let is_built = |since: Instant| !others || since.elapsed() < BUILD;
            if !gone.is_empty()
                && self.newcomers(session).is_empty()
                && self.gone_since.is_none_or(is_built)
            {
                if self.gone_since.is_none() {
                    self.gone_since = Some(Instant::now());
                    let message = format!(
                        "{} is gone: the extensions from before stay until it is back, until \
                         another one is saved in some seconds, or until you reload",
                        names(&gone)
                    );
                    tell(session, message, "warning").await;
                }
                return;
            }
            self.gone_since = None;
            wait_idle(session).await;
            let changed = self.changed(session);
            // What is saved from here on is perhaps not what is loaded.
            let seen = hashes(self.contents.keys().cloned());
            let offered = offered(session);
            let report = match session.reload().await {
                Ok(report) => report,
                // It has begun to work again.
                Err(reason) if session.is_working() => {
                    tracing::debug!("{reason}");
                    continue;
                }
                Err(reason) => {
                    let text = format!("{} changed, but {reason}", names(&changed));
                    return tell(session, text, "warning").await;
                }
            };
            rounds += 1;
            match rounds {
                ROUNDS => self.look(session, &Contents::new()),
                _ => self.look(session, &seen),
            }
            // Also those that did not take their place: they are not tried again and again.
            self.offered = offered;
            tell_of(session, &changed, &report).await;
        }
    }

    /// Notes what the files contain, as it is `known` or as it is now, and watches the
    /// folders that they are in.
    fn look(&mut self, session: &AgentSession, known: &Contents) {
        let files = session.extensions.files();
        self.contents = files.into_iter().map(|file| (file, None)).collect();
        self.watch_anew(session);
        for (file, hash) in &mut self.contents {
            *hash = match known.get(file) {
                Some(known) => *known,
                None => hash_of(file),
            };
        }
        // One that has come since the load is no news to the watcher.
        self.offered = session.extensions.requested_files();
        if !self.newcomers(session).is_empty() {
            let _ = self.hint.try_send(());
        }
    }

    /// With a watcher of its own: in one that goes on, what is still to be said of a folder
    /// that is gone ends the watch of the one that came in its place.
    fn watch_anew(&mut self, session: &AgentSession) {
        let hint = self.hint.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading is what we do ourselves. One hint that waits is enough.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = hint.try_send(());
            }
        });
        let mut watcher = match watcher {
            Ok(watcher) => watcher,
            Err(error) => {
                self.failed = Some(error);
                return;
            }
        };
        // Editors put a new file in the place of the old one, which only the folder sees;
        // and a folder that is not there comes back in one that is.
        let folders = self.contents.keys().filter_map(|file| {
            let folder = file.ancestors().skip(1).find(|folder| folder.is_dir())?;
            Some(folder.to_path_buf())
        });
        let folders = folders.chain(folders_of_new(session));
        for folder in folders.collect::<BTreeSet<PathBuf>>() {
            if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
                tracing::warn!("{} cannot be watched: {error}", folder.display());
            }
        }
        self.watcher = Some(watcher);
    }

    /// Files whose contents are others, and extensions that there are now, too.
    fn changed(&self, session: &AgentSession) -> Vec<PathBuf> {
        let changed = self.contents.iter();
        let changed = changed.filter(|(file, hash)| hash_of(file) != **hash);
        let changed = changed.map(|(file, _)| file.clone());
        let all: BTreeSet<PathBuf> = changed.chain(self.newcomers(session)).collect();
        all.into_iter().collect()
    }

    /// Extensions that were not there at the last load.
    fn newcomers(&self, session: &AgentSession) -> BTreeSet<PathBuf> {
        &offered(session) - &self.offered
    }
}

/// What a reload would load.
fn offered(session: &AgentSession) -> BTreeSet<PathBuf> {
    let (found, _) = find_extensions(&session.config, &session.settings, &session.cwd());
    found.into_iter().map(|found| found.path).collect()
}

/// Where a new extension would appear: the folders that pi looks in, and the folders in
/// them, which may hold an `index.ts` soon.
fn folders_of_new(session: &AgentSession) -> Vec<PathBuf> {
    if !session.config.discover_extensions {
        return Vec::new();
    }
    let agent = &session.config.paths.agent_dir;
    let project = session.config.paths.with_cwd(&session.cwd());
    let project = project.trusted_project_dir();
    let mut folders = Vec::new();
    for home in std::iter::once(agent).chain(&project) {
        let extensions = home.join("extensions");
        let below = std::fs::read_dir(&extensions).into_iter().flatten();
        let below = below.filter_map(|entry| Some(entry.ok()?.path()));
        folders.extend(below.filter(|path| path.is_dir()));
        folders.extend(
            [extensions, home.clone()]
                .into_iter()
                .find(|path| path.is_dir()),
        );
    }
    folders
}

/// Returns when nothing more happens.
async fn settle(hints: &mut mpsc::Receiver<()>) {
    for _ in 0..NOISE {
        if timeout(QUIET, hints.recv()).await.is_err() {
            return;
        }
    }
}

/// The agent is idle, and the user is asked nothing: the answer would come too late.
async fn wait_idle(session: &AgentSession) {
    let mut questions = session.questions.subscribe();
    loop {
        // An error means that the session is gone.
        let _ = questions.wait_for(|open| *open == 0).await;
        session.wait_idle().await;
        if *questions.borrow() == 0 {
            return;
        }
    }
}

fn names(files: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
    let mut names: Vec<String> = files.iter().map(name).collect();
    // Through a link and by its own path.
    names.dedup();
    names.join(", ")
}

async fn tell_of(session: &AgentSession, changed: &[PathBuf], report: &LoadReport) {
    let changed = names(changed);
    let failed = report.failed.first().map(|(path, _)| path);
    let (text, kind) = match failed {
        None => (format!("Reloaded: {changed}"), "info"),
        Some(failed) if report.kept_old => (
            format!(
                "{changed} changed, but the extensions from before stay: {failed} does not load"
            ),
            "warning",
        ),
        Some(failed) => (
            format!("Reloaded: {changed}, but {failed} does not load"),
            "warning",
        ),
    };
    tell(session, text, kind).await;
}

async fn tell(session: &AgentSession, message: String, kind: &str) {
    let request = UiRequest {
        id: uuid::Uuid::new_v4().to_string(),
        method: UiMethod::Notify {
            message,
            notify_type: Some(kind.to_string()),
        },
    };
    session.tell(Event::ExtensionUiRequest(request)).await;
}

fn hashes(files: impl Iterator<Item = PathBuf>) -> Contents {
    let hashed = files.map(|file| {
        let hash = hash_of(&file);
        (file, hash)
    });
    hashed.collect()
}

fn hash_of(file: &PathBuf) -> Option<u64> {
    let bytes = pi_base::regular_file::read(file).ok()?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Some(hasher.finish())
}
