//! Reloads when files of extensions are saved (setting `extensionWatch`).
//!
//! Notifications of the operating system only trigger a check, because editors save in many ways.
//! The check compares hashes of the contents with those of the last load.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use crate::startup::find_extensions;
use pi_agent::event::{Event, UiMethod, UiRequest};
use pi_extensions::LoadReport;

/// Length of the pause after which saving counts as finished.
const QUIET_PERIOD: Duration = Duration::from_millis(150);
/// Number of notifications within the pause after which it is not waited for any more.
const MAX_QUIET_WAITS: u32 = 20;

/// How long a missing file may be in the process of being built.
const REBUILD_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of consecutive reloads. An extension that writes its own files when it starts would
/// reload forever.
const MAX_RELOADS: u32 = 4;

/// The hash of each file; `None` for a missing one.
type Contents = BTreeMap<PathBuf, Option<u64>>;

struct Watch {
    hint: mpsc::Sender<()>,
    /// Watches the folders that contain the files.
    watcher: Option<RecommendedWatcher>,
    /// Contents of the loaded files.
    contents: Contents,
    /// The extensions that could be loaded at the last load.
    offered: BTreeSet<PathBuf>,
    /// When the user was told that extensions are missing.
    gone_since: Option<Instant>,
    /// Why the last watcher could not be made. Reported on the next occasion.
    failed: Option<notify::Error>,
    /// Cancelled when the setting is switched off or the session ends.
    stopped: CancellationToken,
}

impl AgentSession {
    /// Starts or stops watching as the setting says. Called after settings were read and extensions
    /// loaded.
    pub(crate) fn apply_watch_setting(&self) {
        let enabled = self.settings.values().extension_watch;
        let mut watching = self.switcher.watching.lock();
        if !enabled {
            *watching = None;
        } else if watching.is_none() {
            let stopped = CancellationToken::new();
            *watching = Some(stopped.clone().drop_guard());
            self.watch_extensions(stopped);
        }
    }

    fn watch_extensions(&self, stopped: CancellationToken) {
        let (hint, hints) = mpsc::channel(1);
        let mut watch = Watch {
            hint,
            watcher: None,
            contents: Contents::new(),
            offered: BTreeSet::new(),
            gone_since: None,
            failed: None,
            stopped,
        };
        // The hashes are taken before anything else, so that later changes are noticed.
        watch.snapshot(self, &Contents::new());
        tokio::spawn(watch.run(Arc::downgrade(&self.arc()), hints));
    }
}

impl Watch {
    async fn run(mut self, session: Weak<AgentSession>, mut hints: mpsc::Receiver<()>) {
        while let Some(strong) = session.upgrade() {
            if let Some(error) = self.failed.take() {
                let text = format!("extensionWatch: files cannot be watched: {error}");
                notify_user(&strong, text, "warning").await;
            }
            let installed = strong.extensions.installed();
            let imported = strong.extensions.wait_imports_grown();
            drop(strong);
            tokio::select! {
                () = self.stopped.cancelled() => return,
                () = installed => {
                    let Some(session) = session.upgrade() else { return };
                    self.snapshot(&session, &Contents::new());
                }
                () = imported => {
                    let Some(session) = session.upgrade() else { return };
                    let known = std::mem::take(&mut self.contents);
                    self.snapshot(&session, &known);
                }
                hint = hints.recv() => {
                    if hint.is_none() {
                        return;
                    }
                    wait_quiet(&mut hints).await;
                    let Some(session) = session.upgrade() else { return };
                    self.reload_until_current(&session).await;
                }
            }
        }
    }

    /// Reloads until the loaded extensions match the files.
    async fn reload_until_current(&mut self, session: &AgentSession) {
        // A folder may have been replaced by one of the same name.
        self.recreate_watcher(session);
        let mut rounds = 0;
        // A reload may have switched the setting off.
        while !self.stopped.is_cancelled() {
            let changed = self.changed(session);
            if changed.is_empty() {
                self.gone_since = None;
                return;
            }
            // A file that is being built is missing for a moment; a renamed one stays missing.
            let gone = session.extensions.entry_files();
            let gone: Vec<PathBuf> = gone.into_iter().filter(|file| !file.exists()).collect();
            let others = changed.iter().any(|file| !gone.contains(file));
            let is_built = |since: Instant| !others || since.elapsed() < REBUILD_TIMEOUT;
            if !gone.is_empty()
                && self.new_extensions(session).is_empty()
                && self.gone_since.is_none_or(is_built)
            {
                if self.gone_since.is_none() {
                    self.gone_since = Some(Instant::now());
                    let message = format!(
                        "{} is gone: the extensions from before stay until it is back, until \
                         another one is saved in some seconds, or until you reload",
                        file_names(&gone)
                    );
                    notify_user(session, message, "warning").await;
                }
                return;
            }
            self.gone_since = None;
            wait_idle_without_dialogs(session).await;
            let changed = self.changed(session);
            // Changes from here on may be missing in the reload.
            let seen = hashes(self.contents.keys().cloned());
            let offered = offered(session);
            let report = match session.reload().await {
                Ok(report) => report,
                // A run has begun meanwhile.
                Err(reason) if session.is_working() => {
                    tracing::debug!("{reason}");
                    continue;
                }
                Err(reason) => {
                    let text = format!("{} changed, but {reason}", file_names(&changed));
                    return notify_user(session, text, "warning").await;
                }
            };
            rounds += 1;
            match rounds {
                MAX_RELOADS => self.snapshot(session, &Contents::new()),
                _ => self.snapshot(session, &seen),
            }
            // Also includes extensions that did not load, so that they are not tried again and
            // again.
            self.offered = offered;
            report_reload(session, &changed, &report).await;
        }
    }

    /// Records the contents of the files, as `known` or as they are now, and watches their folders.
    fn snapshot(&mut self, session: &AgentSession, known: &Contents) {
        let files = session.extensions.files();
        self.contents = files.into_iter().map(|file| (file, None)).collect();
        self.recreate_watcher(session);
        for (file, hash) in &mut self.contents {
            *hash = match known.get(file) {
                Some(known) => *known,
                None => hash_of(file),
            };
        }
        // The watcher does not report files that appeared after the load and before it started.
        self.offered = session.extensions.requested_files();
        if !self.new_extensions(session).is_empty() {
            let _ = self.hint.try_send(());
        }
    }

    /// Makes a new watcher. In an old one, pending notifications about a removed folder would end
    /// the watch of its successor.
    fn recreate_watcher(&mut self, session: &AgentSession) {
        let hint = self.hint.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reads cause access events. One pending hint is enough.
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
        // Editors replace files, which only a watch of the folder notices. A missing folder
        // reappears in an ancestor.
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

    /// Returns files whose contents changed, and new extensions.
    fn changed(&self, session: &AgentSession) -> Vec<PathBuf> {
        let changed = self.contents.iter();
        let changed = changed.filter(|(file, hash)| hash_of(file) != **hash);
        let changed = changed.map(|(file, _)| file.clone());
        let all: BTreeSet<PathBuf> = changed.chain(self.new_extensions(session)).collect();
        all.into_iter().collect()
    }

    /// Returns the extensions that did not exist at the last load.
    fn new_extensions(&self, session: &AgentSession) -> BTreeSet<PathBuf> {
        &offered(session) - &self.offered
    }
}

/// Returns the extensions that a reload would load.
fn offered(session: &AgentSession) -> BTreeSet<PathBuf> {
    let (found, _) = find_extensions(&session.config, &session.settings, &session.cwd());
    found.into_iter().map(|found| found.path).collect()
}

/// Returns the folders where a new extension would appear: the discovery folders, and their
/// subfolders, where an `index.ts` may follow.
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

/// Returns after a pause without notifications.
async fn wait_quiet(hints: &mut mpsc::Receiver<()>) {
    for _ in 0..MAX_QUIET_WAITS {
        if timeout(QUIET_PERIOD, hints.recv()).await.is_err() {
            return;
        }
    }
}

/// Returns when the agent is idle and no dialog is open. A reload would close the dialog.
async fn wait_idle_without_dialogs(session: &AgentSession) {
    let mut open_dialogs = session.ui.open_dialogs.subscribe();
    loop {
        // An error means that the session is gone.
        let _ = open_dialogs.wait_for(|open| *open == 0).await;
        session.wait_idle().await;
        if *open_dialogs.borrow() == 0 {
            return;
        }
    }
}

fn file_names(files: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
    let mut file_names: Vec<String> = files.iter().map(name).collect();
    // A file may be listed by its own path and by a link.
    file_names.dedup();
    file_names.join(", ")
}

async fn report_reload(session: &AgentSession, changed: &[PathBuf], report: &LoadReport) {
    let changed = file_names(changed);
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
    notify_user(session, text, kind).await;
}

async fn notify_user(session: &AgentSession, message: String, kind: &str) {
    let request = UiRequest {
        id: uuid::Uuid::new_v4().to_string(),
        method: UiMethod::Notify {
            message,
            notify_type: Some(kind.to_string()),
        },
    };
    session
        .emit_to_mode(Event::ExtensionUiRequest(request))
        .await;
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
