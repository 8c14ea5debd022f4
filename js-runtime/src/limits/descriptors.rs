//! How many files, connections and pipes the process may have open. They are for
//! everybody: when extensions leave none, the agent can neither store what was said nor
//! ask the model. So the isolate ends before that, as it does when memory runs out, and
//! all that it held is closed.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use deno_core::OpState;
use deno_runtime::deno_io::FdTable;
use js_runtime_ext::{Author, Opened, Stop};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::control::Control;

/// So many the agent can do with: the session, its lock, a connection, a command.
const RESERVE: u64 = 24;
/// With fewer there may be too few without an extension's fault.
const ENOUGH: u64 = 256;
/// How often it is looked, unless files have been opened.
const LOOK: Duration = Duration::from_millis(100);
/// That many files are reason to look at once.
const MANY: usize = 16;

/// More than a program can use; and the most that macOS takes.
#[cfg(not(target_os = "macos"))]
const MOST: u64 = 1 << 20;
#[cfg(target_os = "macos")]
const MOST: u64 = 10_240;

/// Lets the process open what it may, as Node does: shells begin with a small limit.
pub(crate) fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard.min(MOST)
    {
        // It stays as it is then.
        _ = setrlimit(Resource::RLIMIT_NOFILE, hard.min(MOST), hard);
    }
}

#[derive(Default)]
pub(crate) struct Descriptors {
    looked: Option<Instant>,
    opened: usize,
}

impl Descriptors {
    /// Stops the isolate if the process is about to run out. Cheap enough for every
    /// stretch of JavaScript, and to be asked before anybody hears of what it did.
    pub fn are_gone(&mut self, state: &mut OpState, control: &Control) -> bool {
        self.opened += Opened::count(state);
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK);
        if !(is_due || self.opened >= MANY) || control.stopped().is_some() {
            return false;
        }
        self.looked = Some(Instant::now());
        self.opened = 0;
        let Some(limit) = exhausted() else {
            return false;
        };
        let table = state.try_borrow::<FdTable>();
        let is_open = |descriptor| table.is_some_and(|table| table.contains(descriptor));
        let holder = Opened::holder(state, is_open);
        let holder = holder.filter(|(_, held)| *held as u64 >= limit / 4);
        if holder.is_none() && limit < ENOUGH {
            return false;
        }
        // The agent goes on before the isolate is gone.
        for descriptor in Opened::take(state) {
            if let Some(table) = state.try_borrow_mut::<FdTable>() {
                table.remove(descriptor);
            }
        }
        // Without one: connections, children; it is the one that ran last.
        let what = String::new();
        control.confess(holder.map(|(id, _)| Author { id, what }), String::new());
        control.stop(Stop::OutOfDescriptors);
        true
    }
}

/// The limit, if it is nearly reached. A new descriptor has the lowest number that is
/// free.
fn exhausted() -> Option<u64> {
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let next = File::open("/dev/null").map(|file| file.as_raw_fd());
    let is_near = match next {
        Ok(next) => u64::try_from(next).is_ok_and(|next| next.saturating_add(RESERVE) >= limit),
        Err(error) => error.raw_os_error() == Some(nix::errno::Errno::EMFILE as i32),
    };
    is_near.then_some(limit)
}
