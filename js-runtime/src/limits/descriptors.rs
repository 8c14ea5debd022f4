//! Limits open files, connections and pipes of the process. When extensions leave none, the agent
//! can neither store messages nor call the model. So the isolate is stopped before that, as it is
//! when memory runs out, and its descriptors are closed.

use std::fs::File;
use std::time::{Duration, Instant};

use deno_core::OpState;
use deno_runtime::deno_io::FdTable;
use js_runtime_ext::{Author, OpenedDescriptors, Stop};
use nix::sys::resource::{Resource, getrlimit};

use crate::limits::watchdog::Watchdog;

/// Descriptors that the agent needs: the session, its lock, a connection, a command.
const RESERVED_DESCRIPTORS: usize = 24;
/// Minimum limit at which extensions are stopped. Below it descriptors may run out without an
/// extension's fault.
const MIN_ACCOUNTABLE_LIMIT: u64 = 256;
/// Time between two polls, unless files have been opened.
const DESCRIPTOR_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Opened files after which the next poll comes early.
const EARLY_POLL_COUNT: usize = 16;

pub(crate) struct DescriptorLimit {
    polled_at: Instant,
    opened: usize,
}

impl DescriptorLimit {
    /// Starts the limit of a new isolate, which has opened nothing yet.
    pub fn new() -> Self {
        Self {
            polled_at: Instant::now(),
            opened: 0,
        }
    }

    /// Stops the isolate if the process is about to run out of descriptors. Cheap enough for every
    /// time slice. Must be called before the results of the slice are sent.
    pub fn stop_if_exhausted(&mut self, state: &mut OpState, watchdog: &Watchdog) -> bool {
        self.opened += OpenedDescriptors::count(state);
        let is_due = self.polled_at.elapsed() >= DESCRIPTOR_POLL_INTERVAL;
        if !(is_due || self.opened >= EARLY_POLL_COUNT) || watchdog.stopped().is_some() {
            return false;
        }
        self.polled_at = Instant::now();
        self.opened = 0;
        let Some(limit) = exhausted() else {
            return false;
        };
        let table = state.try_borrow::<FdTable>();
        let is_open = |descriptor| table.is_some_and(|table| table.contains(descriptor));
        let holder = OpenedDescriptors::holder(state, is_open);
        let holder = holder.filter(|(_, count)| *count as u64 >= limit / 4);
        if holder.is_none() && limit < MIN_ACCOUNTABLE_LIMIT {
            return false;
        }
        // The agent continues before the isolate is gone.
        for descriptor in OpenedDescriptors::take(state) {
            if let Some(table) = state.try_borrow_mut::<FdTable>() {
                table.remove(descriptor);
            }
        }
        // Connections and children are not recorded. Without a holder the offender is the extension
        // that ran last.
        let what = String::new();
        watchdog.report_offender(holder.map(|(id, _)| Author { id, what }), String::new());
        watchdog.stop(Stop::OutOfDescriptors);
        true
    }
}

/// Returns the limit if fewer than `RESERVED_DESCRIPTORS` can be opened. Opens and closes them: the
/// lowest free number alone does not tell, because it is low as soon as one old file is closed.
fn exhausted() -> Option<u64> {
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let mut opened: Vec<File> = Vec::new();
    while opened.len() < RESERVED_DESCRIPTORS {
        let next = match opened.first() {
            Some(first) => first.try_clone(),
            None => File::open("/dev/null"),
        };
        match next {
            Ok(next) => opened.push(next),
            Err(error) => {
                let is_limit = error.raw_os_error() == Some(nix::errno::Errno::EMFILE as i32);
                return is_limit.then_some(limit);
            }
        }
    }
    None
}
