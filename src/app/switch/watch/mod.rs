//! Reloads when files of extensions are saved (setting `extensionWatch`).
//!
//! The loader records what it reads and looks for (`inputs`), and the search for extensions what it
//! looks up (`lists`). The watch compares both with the files: every two seconds by their metadata,
//! and sooner when the operating system reports a change in one of the folders (`folders`).

mod folders;
mod inputs;
mod lists;
mod notices;
mod path_states;
mod repetition;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::folders::FolderWatcher;
use self::inputs::WatchedInputs;
use self::lists::{Difference, WatchedLists};
use self::notices::{Names, report_reload, set_status, short_name};
pub(super) use self::path_states::CLOCK_STEP;
use self::repetition::Repetition;
use crate::AgentSession;
use crate::error::ErrorCode;
use pi_agent::event::{Event, ExtensionWait, WaitEnd, WaitOutcome};
use pi_extensions::LoadRecord;

/// Time between two looks at the metadata of all files.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Length of the pause after which saving counts as finished.
const QUIET_PERIOD: Duration = Duration::from_millis(150);
/// Number of notifications within the pause after which it is not waited for any more.
const MAX_QUIET_WAITS: u32 = 20;

/// How long a missing file may be in the process of being built.
const REBUILD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a reload waits for commands and handlers of extensions that run.
const CALL_WAIT: Duration = Duration::from_secs(30);
/// How long such a wait is silent.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// Time after an extension has read another file until that is looked at, because more may follow.
const GROWTH_PAUSE: Duration = Duration::from_millis(100);

struct Watch {
    hint: mpsc::Sender<()>,
    /// `None` while a thread looks at the files.
    watched: Option<Watched>,
    /// When the changes that are not loaded yet were noticed.
    noticed: Option<Instant>,
    /// When the user was told that extensions are missing.
    gone_since: Option<Instant>,
    /// When to look again, if that is sooner than the next regular look.
    next_look: Option<Instant>,
    repetition: Repetition,
    /// Cancelled when the setting is switched off or the session ends.
    stopped: CancellationToken,
}

/// Everything that is watched.
struct Watched {
    record: Arc<LoadRecord>,
    /// Whether the record of the load has grown since the last look.
    has_grown: bool,
    inputs: WatchedInputs,
    lists: WatchedLists,
    folders: FolderWatcher,
}

/// Differences between the files and the last load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Changes {
    /// Files that were read, and files that were looked for.
    files: BTreeSet<PathBuf>,
    lists: Difference,
    /// Entry files that are missing.
    missing: BTreeSet<PathBuf>,
    /// Message about a limit of the operating system.
    limit: Option<String>,
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
            let (hint, hints) = mpsc::channel(1);
            let watch = Watch {
                watched: Some(Watched::new(hint.clone())),
                hint,
                noticed: None,
                gone_since: None,
                next_look: None,
                repetition: Repetition::default(),
                stopped,
            };
            tokio::spawn(watch.run(Arc::downgrade(&self.arc()), hints));
        }
    }
}

impl Watch {
    async fn run(mut self, session: Weak<AgentSession>, mut hints: mpsc::Receiver<()>) {
        let Some(strong) = session.upgrade() else {
            return;
        };
        let mut loads = strong.extensions.last_load();
        drop(strong);
        // Files may have changed while they were loaded.
        loads.mark_changed();
        let mut looks = interval(LOOK_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let record = loads.borrow().clone();
            let next_look = self.next_look;
            let sooner = async {
                match next_look {
                    Some(time) => sleep_until(time.into()).await,
                    None => std::future::pending().await,
                }
            };
            let mut is_hinted = false;
            tokio::select! {
                () = self.stopped.cancelled() => return,
                changed = loads.changed() => if changed.is_err() {
                    return;
                },
                () = record.grown() => {
                    sleep(GROWTH_PAUSE).await;
                    if let Some(watched) = &mut self.watched {
                        watched.has_grown = true;
                    }
                }
                _ = hints.recv() => is_hinted = true,
                _ = looks.tick() => {}
                () = sooner => {}
            }
            self.next_look = None;
            if is_hinted {
                wait_quiet(&mut hints).await;
            }
            let Some(session) = session.upgrade() else {
                return;
            };
            self.reload_until_current(&session, &mut hints, is_hinted)
                .await;
        }
    }

    /// Reloads until the loaded extensions match the files. `is_quiet` says that the files have not
    /// changed during the last moments.
    async fn reload_until_current(
        &mut self,
        session: &Arc<AgentSession>,
        hints: &mut mpsc::Receiver<()>,
        mut is_quiet: bool,
    ) {
        // A reload may have switched the setting off.
        while !self.stopped.is_cancelled() {
            let changes = self.look(session).await;
            if changes.is_empty() || session.are_refused(&changes.all()) {
                (self.noticed, self.gone_since) = (None, None);
                return;
            }
            let noticed = *self.noticed.get_or_insert_with(Instant::now);
            if !is_quiet {
                // A regular look may have come while a file is being written.
                wait_quiet(hints).await;
                is_quiet = true;
                continue;
            }
            if self.waits_for_missing(session, &changes).await {
                return;
            }
            let files = changes.all();
            let delay = self.repetition.delay(&files, noticed);
            if noticed.elapsed() < delay {
                self.next_look = Some(noticed + delay);
                if self.repetition.begins(&files, noticed) {
                    self.explain_delay(session, &changes).await;
                }
                return;
            }
            self.wait_until_free(session, &changes).await;
            // A reload that the user has asked for meanwhile has loaded the changes.
            let switch_guard = session.switcher.lock.lock().await;
            let changes = self.look(session).await;
            if changes.is_empty() || self.stopped.is_cancelled() {
                continue;
            }
            let names = self.names(&changes);
            match session.reload_locked(None).await {
                Ok(report) => {
                    self.repetition.reloaded(&changes.all(), noticed);
                    (self.noticed, self.gone_since) = (None, None);
                    report_reload(session, &names, &report).await;
                    // A file that changes right after the reload may be half-written.
                    is_quiet = false;
                }
                // A run has begun meanwhile.
                Err(reason) if reason.code == ErrorCode::Busy => {
                    tracing::debug!("{reason}");
                    drop(switch_guard);
                    sleep(QUIET_PERIOD).await;
                }
                // The user was told. The next regular look tries again.
                Err(reason) => {
                    tracing::debug!("{reason}");
                    return;
                }
            }
        }
    }

    /// Compares the files with what was loaded.
    async fn look(&mut self, session: &Arc<AgentSession>) -> Changes {
        let mut watched = (self.watched.take()).unwrap_or_else(|| Watched::new(self.hint.clone()));
        let looking = session.clone();
        // A file system may be slow.
        let looked = tokio::task::spawn_blocking(move || {
            let changes = watched.look(&looking);
            (watched, changes)
        });
        // An error means that the program ends.
        let Ok((watched, mut changes)) = looked.await else {
            return Changes::default();
        };
        self.watched = Some(watched);
        if let Some(limit) = changes.limit.take() {
            session.notify(limit, "warning").await;
        }
        changes
    }

    /// Returns whether to wait, because an extension's file is missing and may be in the process of
    /// being built. A renamed one is not missed.
    async fn waits_for_missing(&mut self, session: &AgentSession, changes: &Changes) -> bool {
        if changes.missing.is_empty() || !changes.lists.new.is_empty() {
            return false;
        }
        let is_new = self.gone_since.is_none();
        let end = *self.gone_since.get_or_insert_with(Instant::now) + REBUILD_TIMEOUT;
        if is_new {
            let names = Names::new(&changes.missing, &changes.missing).listed();
            let seconds = REBUILD_TIMEOUT.as_secs();
            let message = format!(
                "Missing: {names}. pi waits {seconds} s, in case of a build, and then reloads \
                 without"
            );
            session.notify(message, "warning").await;
        }
        let waits = Instant::now() < end;
        if waits {
            self.next_look = Some(end);
        }
        waits
    }

    async fn explain_delay(&self, session: &AgentSession, changes: &Changes) {
        let names = self.names(changes).listed();
        let message = format!(
            "Changed right after each of the last reloads, as if an extension wrote it when it \
             starts: {names}. From now on pi waits longer before it reloads for that, up to a \
             minute; /reload does it at once"
        );
        session.notify(message, "warning").await;
    }

    fn names(&self, changes: &Changes) -> Names {
        let record = self
            .watched
            .iter()
            .flat_map(|watched| &watched.record.paths);
        let mut extensions: BTreeSet<PathBuf> = record.map(|path| path.path.clone()).collect();
        extensions.extend(changes.lists.new.iter().cloned());
        Names::new(&changes.all(), &extensions)
    }

    /// Returns when the agent is idle and no dialog is open, because a reload would close the dialog,
    /// and when no command or handler of an extension runs, because it would lose its result. The
    /// latter is waited for at most [`CALL_WAIT`].
    async fn wait_until_free(&self, session: &AgentSession, changes: &Changes) {
        let mut open_dialogs = session.ui.open_dialogs.subscribe();
        let mut since = None;
        let mut announced = None;
        while !self.stopped.is_cancelled() {
            // An error means that the session is gone.
            let _ = open_dialogs.wait_for(|open| *open == 0).await;
            session.wait_idle().await;
            if *open_dialogs.borrow() > 0 {
                continue;
            }
            let Some((extension_path, event)) = session.extensions.open_call() else {
                break;
            };
            let since = *since.get_or_insert_with(Instant::now);
            if since.elapsed() >= CALL_WAIT {
                break;
            }
            if announced.is_none() && since.elapsed() >= SILENT_WAIT {
                let wait = ExtensionWait {
                    extension_path,
                    event,
                    elapsed_ms: milliseconds(since.elapsed()),
                    limit_ms: milliseconds(CALL_WAIT),
                };
                self.explain_wait(session, changes, &wait).await;
                announced = Some(wait);
            }
            let next = match announced {
                None => since + SILENT_WAIT,
                Some(_) => since + CALL_WAIT,
            };
            tokio::select! {
                () = session.extensions.wait_calls_ended() => {}
                () = sleep_until(next.into()) => {}
                () = self.stopped.cancelled() => {}
            }
        }
        let Some((wait, since)) = announced.zip(since) else {
            return;
        };
        set_status(session, None).await;
        let outcome = match since.elapsed() < CALL_WAIT {
            true => WaitOutcome::Settled,
            false => WaitOutcome::Abandoned,
        };
        let elapsed_ms = milliseconds(since.elapsed());
        let wait = ExtensionWait { elapsed_ms, ..wait };
        let ended = WaitEnd { wait, outcome };
        session.emit_to_mode(Event::ExtensionWaitEnd(ended)).await;
    }

    async fn explain_wait(&self, session: &AgentSession, changes: &Changes, wait: &ExtensionWait) {
        let names = self.names(changes).listed();
        let text = format!(
            "{names} changed: the reload waits for {} of {}, at most {} s. /reload does not wait",
            match wait.event.as_str() {
                "command" => "a command".to_owned(),
                "event" => "a handler".to_owned(),
                event => format!("a handler of {event}"),
            },
            short_name(Path::new(&wait.extension_path)),
            CALL_WAIT.as_secs()
        );
        set_status(session, Some(text)).await;
        let started = Event::ExtensionWaitStart(wait.clone());
        session.emit_to_mode(started).await;
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Watched {
    fn new(hint: mpsc::Sender<()>) -> Self {
        Self {
            record: Arc::default(),
            has_grown: false,
            inputs: WatchedInputs::default(),
            lists: WatchedLists::default(),
            folders: FolderWatcher::new(hint),
        }
    }

    fn look(&mut self, session: &AgentSession) -> Changes {
        let record = session.extensions.last_load().borrow().clone();
        let is_new = !Arc::ptr_eq(&record, &self.record);
        if is_new || std::mem::take(&mut self.has_grown) {
            self.inputs.renew(session.extensions.load_inputs());
        }
        if is_new {
            self.lists.renew(session, &record);
            self.record = record;
        }
        let lists = self.lists.look(session, &self.record);
        let files = self.inputs.look();
        let mut folders = self.inputs.folders();
        folders.extend(self.lists.folders().iter().cloned());
        let limit = self.folders.watch(folders);
        let entries = self.record.paths.iter().map(|found| &found.path);
        Changes {
            missing: entries.filter(|path| !path.exists()).cloned().collect(),
            files,
            lists,
            limit,
        }
    }
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.lists == Difference::default()
    }

    /// Returns all paths that have changed.
    fn all(&self) -> BTreeSet<PathBuf> {
        let Difference {
            new,
            gone,
            settings,
        } = &self.lists;
        let lists = new.iter().chain(gone).chain(settings);
        self.files.iter().chain(lists).cloned().collect()
    }
}

/// Returns what differs from the last load, whether or not it is watched.
pub(super) fn changes_since_load(session: &AgentSession) -> BTreeSet<PathBuf> {
    let record = session.extensions.last_load().borrow().clone();
    let (mut inputs, mut lists) = (WatchedInputs::default(), WatchedLists::default());
    inputs.renew(session.extensions.load_inputs());
    lists.renew(session, &record);
    let changes = Changes {
        files: inputs.look(),
        lists: lists.look(session, &record),
        ..Changes::default()
    };
    changes.all()
}

/// Returns after a pause without notifications.
async fn wait_quiet(hints: &mut mpsc::Receiver<()>) {
    for _ in 0..MAX_QUIET_WAITS {
        if timeout(QUIET_PERIOD, hints.recv()).await.is_err() {
            return;
        }
    }
}
