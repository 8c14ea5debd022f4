//! Reloading when the files of extensions are saved (setting `extensionWatch`).
//!
//! What the system says of files is only taken as a hint to look: editors write in many
//! ways, and what counts is whether the contents are what they were at the last load.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::AgentSession;
use crate::agent::event::{Event, UiMethod, UiRequest};

/// Saving is over when nothing has happened for so long.
const QUIET: Duration = Duration::from_millis(150);
/// After so much of it nobody waits for quiet any more.
const NOISE: u32 = 20;

/// A hash of each file; `None` for one that is not there.
type Contents = BTreeMap<PathBuf, Option<u64>>;

struct Watch {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    contents: Contents,
}

impl AgentSession {
    /// Until the session ends.
    pub(super) fn watch_extensions(&self) {
        let (hint, hints) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading is what we do ourselves. One hint that waits is enough.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = hint.try_send(());
            }
        });
        match watcher {
            Ok(watcher) => {
                let watch = Watch {
                    watcher,
                    folders: BTreeSet::new(),
                    contents: Contents::new(),
                };
                tokio::spawn(watch.run(Arc::downgrade(&self.arc()), hints));
            }
            Err(error) => self
                .notes
                .lock()
                .push(format!("extensionWatch: files cannot be watched: {error}")),
        }
    }
}

impl Watch {
    async fn run(mut self, session: Weak<AgentSession>, mut hints: mpsc::Receiver<()>) {
        while let Some(strong) = session.upgrade() {
            let installed = strong.extensions.installed();
            // What is loaded now, and where it came from.
            self.look(&strong);
            drop(strong);
            tokio::select! {
                () = installed => {}
                hint = hints.recv() => {
                    if hint.is_none() {
                        return;
                    }
                    settle(&mut hints).await;
                    let Some(session) = session.upgrade() else { return };
                    let changed = self.changed();
                    if !changed.is_empty() {
                        reload(&session, &changed).await;
                    }
                }
            }
        }
    }

    /// Notes what the files contain, and watches the folders that they are in.
    fn look(&mut self, session: &AgentSession) {
        let files = session.extensions.files();
        self.contents = files
            .into_iter()
            .map(|file| {
                let hash = hash_of(&file);
                (file, hash)
            })
            .collect();
        // Editors put a new file in the place of the old one, which only the folder sees.
        let folders = self.contents.keys().filter_map(|file| file.parent());
        let folders: BTreeSet<PathBuf> = folders.map(ToOwned::to_owned).collect();
        for gone in self.folders.difference(&folders) {
            // An error means that the folder is gone itself.
            let _ = self.watcher.unwatch(gone);
        }
        for new in folders.difference(&self.folders) {
            if let Err(error) = self.watcher.watch(new, RecursiveMode::NonRecursive) {
                tracing::warn!("{} cannot be watched: {error}", new.display());
            }
        }
        self.folders = folders;
    }

    fn changed(&self) -> Vec<PathBuf> {
        let changed = self
            .contents
            .iter()
            .filter(|(file, hash)| hash_of(file) != **hash);
        changed.map(|(file, _)| file.clone()).collect()
    }
}

/// Returns when nothing more happens.
async fn settle(hints: &mut mpsc::Receiver<()>) {
    for _ in 0..NOISE {
        if timeout(QUIET, hints.recv()).await.is_err() {
            return;
        }
    }
}

/// As soon as the agent is idle.
async fn reload(session: &AgentSession, changed: &[PathBuf]) {
    let report = loop {
        session.wait_idle().await;
        match session.reload().await {
            Ok(report) => break report,
            // It has begun to work again.
            Err(reason) if session.is_working() => tracing::debug!("{reason}"),
            Err(reason) => return tracing::warn!("extensions were not reloaded: {reason}"),
        }
    };
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
    let changed: Vec<String> = changed.iter().map(name).collect();
    let (message, kind) = match report.kept_old {
        false => (format!("Reloaded: {}", changed.join(", ")), "info"),
        true => (
            format!(
                "{} changed, but the extensions from before stay: {} does not load",
                changed.join(", "),
                match report.failed.first() {
                    Some((path, _)) => path,
                    None => "one",
                }
            ),
            "warning",
        ),
    };
    let request = UiRequest {
        id: uuid::Uuid::new_v4().to_string(),
        method: UiMethod::Notify {
            message,
            notify_type: Some(kind.to_string()),
        },
    };
    session.tell(Event::ExtensionUiRequest(request)).await;
}

fn hash_of(file: &PathBuf) -> Option<u64> {
    let bytes = std::fs::read(file).ok()?;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Some(hasher.finish())
}
