//! Implements recursive `fs.watch`. All watches of deno_runtime share one `notify` watcher, where
//! ending the watch of a folder ends those of all folders below it, including those of other code.
//! So each recursive watch gets its own watcher. Other watches stay with deno_runtime: a system has
//! few watchers (inotify: 128), and some packages watch each folder separately.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deno_core::{
    AsyncRefCell, CancelFuture, CancelHandle, OpState, RcRef, Resource, ResourceId, op2,
};
use deno_error::JsErrorBox;
use futures::StreamExt;
use futures::channel::mpsc;
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use serde::Serialize;

/// Maximum number of queued changes. Further ones are lost, which is reported.
const QUEUE_SIZE: usize = 1024;

struct RecursiveWatch {
    changes: AsyncRefCell<mpsc::Receiver<notify::Result<Event>>>,
    root: PathBuf,
    overflowed: Arc<AtomicBool>,
    ended: CancelHandle,
    /// Dropping the watcher ends the watches.
    _watcher: RecommendedWatcher,
}

impl Resource for RecursiveWatch {
    fn name(&self) -> Cow<'_, str> {
        "fsEvents".into()
    }

    fn close(self: Rc<Self>) {
        self.ended.cancel();
    }
}

/// The members of `Deno.FsEvent`.
#[derive(Serialize)]
struct Change {
    kind: &'static str,
    paths: Vec<PathBuf>,
    flag: Option<&'static str>,
}

#[op2(fast)]
#[smi]
pub(crate) fn op_watch_tree(
    state: &mut OpState,
    #[string] path: &str,
) -> Result<ResourceId, JsErrorBox> {
    // Node's names are relative to the folder to which a link points.
    let root = Path::new(path)
        .canonicalize()
        .map_err(JsErrorBox::from_err)?;
    let (mut sender, receiver) = mpsc::channel(QUEUE_SIZE);
    let overflowed = Arc::new(AtomicBool::new(false));
    let lost = overflowed.clone();
    // The callback never waits, because it runs on the watcher's thread.
    let take = move |change: notify::Result<Event>| {
        let is_read = matches!(&change, Ok(event) if event.kind.is_access());
        if !is_read && sender.try_send(change).is_err_and(|error| error.is_full()) {
            lost.store(true, Ordering::Relaxed);
        }
    };
    let mut watcher = notify::recommended_watcher(take).map_err(to_js)?;
    watcher
        .watch(&root, RecursiveMode::Recursive)
        .map_err(to_js)?;
    Ok(state.resource_table.add(RecursiveWatch {
        changes: AsyncRefCell::new(receiver),
        root,
        overflowed,
        ended: CancelHandle::new(),
        _watcher: watcher,
    }))
}

#[op2]
#[serde]
pub(crate) async fn op_watch_tree_next(
    state: Rc<RefCell<OpState>>,
    #[smi] rid: ResourceId,
) -> Result<Option<Change>, JsErrorBox> {
    let tree = state.borrow().resource_table.get::<RecursiveWatch>(rid);
    let tree = tree.map_err(JsErrorBox::from_err)?;
    if tree.overflowed.swap(false, Ordering::Relaxed) {
        return Ok(Some(Change {
            kind: "any",
            paths: vec![tree.root.clone()],
            flag: Some("rescan"),
        }));
    }
    let ended = RcRef::map(&tree, |tree| &tree.ended);
    let mut changes = RcRef::map(&tree, |tree| &tree.changes).borrow_mut().await;
    let change = changes.next().or_cancel(ended).await;
    let Some(event) = change.map_err(JsErrorBox::from_err)? else {
        return Ok(None);
    };
    let event = event.map_err(to_js)?;
    Ok(Some(Change {
        kind: match event.kind {
            EventKind::Create(_) => "create",
            EventKind::Modify(ModifyKind::Name(_)) => "rename",
            EventKind::Modify(_) => "modify",
            EventKind::Remove(_) => "remove",
            EventKind::Access(_) => "access",
            EventKind::Any => "any",
            EventKind::Other => "other",
        },
        flag: event.need_rescan().then_some("rescan"),
        paths: event.paths,
    }))
}

fn to_js(error: notify::Error) -> JsErrorBox {
    match error.kind {
        notify::ErrorKind::Io(error) => JsErrorBox::from_err(error),
        notify::ErrorKind::PathNotFound | notify::ErrorKind::WatchNotFound => {
            JsErrorBox::new("NotFound", error.to_string())
        }
        _ => JsErrorBox::generic(error.to_string()),
    }
}
