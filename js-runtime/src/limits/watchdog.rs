//! Stops JavaScript from outside: the reason of a stop, the start of the current time slice, and
//! the watchdog thread that compares the clock with the limit.
//!
//! An isolate is stopped in one way only: [`Watchdog::stop`] records the first reason and
//! terminates the running code. The watchdog tells the host (even if the thread of the isolate is
//! stuck in native code), the event loop notices, answers pending calls and drops everything. An
//! isolate is never resumed: V8 leaves promises behind that never settle.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::Waker;
use std::thread::Thread;
use std::time::{Duration, Instant};

use deno_core::v8::{IsolateHandle, UnsafeRawIsolatePtr};
use futures::task::AtomicWaker;
use js_runtime_ext::{Author, Fault, Host, IS_HOST_PROCESS, Stop, ThreadMonitor};
use pi_base::active_clock::LATE;
use pi_base::process_tree;
use tokio::sync::watch;

use crate::attribution::sampler::{SampledUsage, Sampler, TimeSlice};
use crate::node::inspector::is_inspected;

/// Deadline when there is nothing to wait for.
const NEVER: u64 = u64::MAX;

/// Time that the thread of a stopped isolate gets to report the offender, without the time in which
/// it is runnable. It takes longer only when native code blocks the thread.
const ATTRIBUTION_TIMEOUT: Duration = Duration::from_millis(500);

/// Time after which [`ATTRIBUTION_TIMEOUT`] ends for a runnable thread as well: on a busy machine it
/// may wait for a processor, but native code may also compute.
const RUNNABLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Both limits for a full heap: the thread first ends a garbage collection, which takes seconds on a
/// busy machine.
const COLLECTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Time between two looks whether the thread of a stopped isolate is runnable.
const ATTRIBUTION_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the limits for a blocked and for a runnable thread.
fn attribution_timeouts(stop: Stop) -> (Duration, Duration) {
    match stop {
        Stop::OutOfMemory => (COLLECTION_TIMEOUT, COLLECTION_TIMEOUT),
        _ => (ATTRIBUTION_TIMEOUT, RUNNABLE_TIMEOUT),
    }
}

/// Maximum number of times that a stop looks for the running code. Between two microtasks there is
/// none.
const MAX_ATTRIBUTION_ATTEMPTS: u32 = 40;
const ATTRIBUTION_RETRY_DELAY: Duration = Duration::from_millis(1);

/// Timers that are due at once may take the limit this many times, one after the other.
const TURN_LIMIT_FACTOR: u32 = 4;

/// Minimum length of a pause that does not count as JavaScript's time. A loop that calls the
/// program again and again spins.
const MIN_COUNTED_PAUSE: Duration = Duration::from_millis(50);

/// Longest time between two polls of the watchdog while JavaScript runs. A longer gap means
/// that the process was suspended.
const MAX_POLL_GAP: Duration = Duration::from_millis(200);

/// The type that `IsolateHandle::request_interrupt` takes.
pub(crate) type InterruptCallback = unsafe extern "C" fn(UnsafeRawIsolatePtr, *mut c_void);

/// Interrupt callbacks. V8 calls them on the thread of the isolate, in the middle of its JavaScript
/// (`attribution/interrupt.rs`).
#[derive(Clone, Copy)]
pub(crate) struct Interrupts {
    /// Before a termination: attributes it.
    pub terminate: InterruptCallback,
    /// While JavaScript runs: attributes the time since the last sample.
    pub sample: InterruptCallback,
    /// After a full garbage collection: attributes the growth of the heap.
    pub collection: InterruptCallback,
}

#[derive(Clone)]
pub(crate) struct Watchdog(Arc<Shared>);

struct Shared {
    origin: Instant,
    isolate: IsolateHandle,
    interrupts: Interrupts,
    /// Id that the system has for the thread of the isolate.
    thread: i32,
    stop: watch::Sender<Option<Stop>>,
    /// Whether the host knows of the stop.
    reported: watch::Sender<bool>,
    /// Nanoseconds since `origin` at which JavaScript was entered; 0 outside.
    entered_at: AtomicU64,
    /// Time at which JavaScript must be left; `NEVER` outside.
    deadline: AtomicU64,
    /// Limit of one slice in nanoseconds.
    limit: AtomicU64,
    /// Time at which the event loop began its turn.
    turn_started_at: AtomicU64,
    /// Number of times that JavaScript was entered and left.
    slice: AtomicU64,
    usage: SampledUsage,
    /// Time at which the watchdog wakes up by itself.
    wakes_at: AtomicU64,
    /// Time of the watchdog's last poll.
    polled_at: AtomicU64,
    state: Mutex<State>,
    /// Asks the children of the isolate's thread to end, once.
    ended_children: Once,
    /// Waker of the event loop, which may sleep when the isolate is stopped.
    event_loop: AtomicWaker,
}

#[derive(Default)]
struct State {
    thread: Option<Thread>,
    /// Author of the code that was stopped, and its stack, once they were reported.
    author: Option<Author>,
    stack: Option<String>,
    /// Whether the thread is to be interrupted again, and how often it was.
    retries: bool,
    attempts: u32,
    /// Whether the isolate is gone.
    retired: bool,
    /// Whether the owner of the isolate is gone and needs no report of a stop.
    released: bool,
}

/// Excludes time from the current slice; see [`Watchdog::pause`].
pub(crate) struct Pause<'a> {
    watchdog: &'a Watchdog,
    begun_at: u64,
    entered_at: u64,
    deadline: u64,
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        if self.deadline == NEVER && self.entered_at == 0 {
            return;
        }
        let shared = &self.watchdog.0;
        let now = self.watchdog.now();
        let paused = match now.saturating_sub(self.begun_at) {
            short if short < nanoseconds(MIN_COUNTED_PAUSE) => 0,
            long => long,
        };
        if paused > 0 {
            // The watchdog had nothing to watch during the pause.
            shared.polled_at.store(now, Ordering::Relaxed);
        }
        shared
            .entered_at
            .store(self.entered_at.saturating_add(paused), Ordering::Relaxed);
        let deadline = self.deadline.saturating_add(paused);
        shared.deadline.store(deadline, Ordering::SeqCst);
        if deadline < shared.wakes_at.load(Ordering::SeqCst) {
            self.watchdog.wake();
        }
    }
}

impl ThreadMonitor for Watchdog {
    fn begin_extension(&self, extension: Option<u32>) {
        let shared = &self.0;
        if shared.usage.has_unattributed() {
            // An interrupt was requested while native code ran, and has not run yet.
            let slice = shared.slice.load(Ordering::Relaxed);
            shared.usage.attribute_to_last_started(slice);
        }
        shared.usage.note_started(extension);
    }

    fn restart_slice(&self) {
        let shared = &self.0;
        self.begin_extension(None);
        if shared.entered_at.load(Ordering::Relaxed) != 0 {
            let limit = Duration::from_nanos(shared.limit.load(Ordering::Relaxed));
            let turn_started_at =
                Duration::from_nanos(shared.turn_started_at.load(Ordering::Relaxed));
            self.start_slice(
                limit,
                turn_started_at.saturating_add(limit.saturating_mul(TURN_LIMIT_FACTOR)),
            );
        }
    }

    fn time_of_others(&self, extension: u32) -> Duration {
        self.0.usage.time_of_others(extension)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

impl Watchdog {
    /// Starts the watchdog thread. Must be called on the thread of the isolate.
    pub fn new(
        isolate: IsolateHandle,
        interrupts: Interrupts,
        host: Arc<dyn Host>,
    ) -> std::io::Result<Self> {
        let watchdog = Self(Arc::new(Shared {
            origin: Instant::now(),
            isolate,
            interrupts,
            thread: process_tree::current_thread_id(),
            stop: watch::Sender::new(None),
            reported: watch::Sender::new(false),
            entered_at: AtomicU64::new(0),
            deadline: AtomicU64::new(NEVER),
            limit: AtomicU64::new(NEVER),
            turn_started_at: AtomicU64::new(0),
            slice: AtomicU64::new(0),
            usage: SampledUsage::default(),
            wakes_at: AtomicU64::new(NEVER),
            polled_at: AtomicU64::new(0),
            state: Mutex::default(),
            ended_children: Once::new(),
            event_loop: AtomicWaker::new(),
        }));
        let watched = watchdog.clone();
        let thread = std::thread::Builder::new()
            .name("js-watchdog".into())
            .spawn(move || {
                watched.clone().run_thread(&*host);
                // Native code may block the thread while it waits for a child.
                watched.end_children();
            })?;
        watchdog.state().thread = Some(thread.thread().clone());
        Ok(watchdog)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.0.origin.elapsed()).min(NEVER - 1)
    }

    /// Returns how much of the time since `entered_at` this process was suspended: otherwise the
    /// watchdog would have polled.
    fn suspended_time(&self, entered_at: u64, now: u64) -> u64 {
        let polled = self.0.polled_at.load(Ordering::Relaxed).max(entered_at);
        match now.saturating_sub(polled) {
            gap if gap > nanoseconds(MAX_POLL_GAP + LATE) => gap,
            _ => 0,
        }
    }

    /// Excludes the time in which the process was suspended from the slice.
    fn exclude_suspended_time(&self) {
        let shared = &self.0;
        let deadline = shared.deadline.load(Ordering::SeqCst);
        let entered_at = shared.entered_at.load(Ordering::Relaxed);
        let now = self.now();
        if entered_at != 0
            && let suspended_time @ 1.. = self.suspended_time(entered_at, now)
        {
            let ordering = Ordering::SeqCst;
            let later = entered_at.saturating_add(suspended_time);
            // An error means that JavaScript has been left meanwhile.
            _ = (shared.entered_at).compare_exchange(entered_at, later, ordering, ordering);
            let later = deadline.saturating_add(suspended_time);
            _ = (shared.deadline).compare_exchange(deadline, later, ordering, ordering);
        }
        shared.polled_at.store(now, Ordering::Relaxed);
    }

    /// Starts a turn of the event loop and its first slice.
    pub fn enter(&self, limit: Duration) {
        self.0.turn_started_at.store(self.now(), Ordering::Relaxed);
        self.0.usage.begin_turn();
        self.start_slice(limit, Duration::MAX);
    }

    /// Starts a slice with a limit, which ends at `end` at the latest.
    fn start_slice(&self, limit: Duration, end: Duration) {
        let now = self.now().max(1);
        let limit = nanoseconds(limit);
        let deadline = match is_inspected() {
            // At a breakpoint, code stands still for as long as the user debugs.
            true => NEVER,
            false => now.saturating_add(limit).min(nanoseconds(end)),
        };
        self.0.slice.fetch_add(1, Ordering::Relaxed);
        self.0.limit.store(limit, Ordering::Relaxed);
        self.0.entered_at.store(now, Ordering::Relaxed);
        // SeqCst here and in `run_thread`: either this call sees when the watchdog wakes up, or the
        // watchdog sees the new deadline.
        self.0.deadline.store(deadline, Ordering::SeqCst);
        if deadline < self.0.wakes_at.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Ends the slice: the thread is free.
    pub fn leave(&self) {
        self.0.deadline.store(NEVER, Ordering::SeqCst);
        self.0.entered_at.store(0, Ordering::Relaxed);
        let number = self.0.slice.fetch_add(1, Ordering::Relaxed);
        if self.0.usage.has_unattributed() {
            // An interrupt was requested, and no code of an extension has run since.
            self.0.usage.attribute_to_last_started(number);
        }
        self.0.usage.note_started(None);
    }

    /// Attributes the pending time to the running author. Must be called on the thread of the
    /// isolate.
    pub fn attribute_time(&self, author: Option<Author>) {
        let slice = self.0.slice.load(Ordering::Relaxed);
        self.0.usage.attribute(slice, author);
    }

    /// Returns the offender when a limit is reached while the code of `running` runs.
    pub fn offender(&self, running: Option<Author>) -> Option<Author> {
        let TimeSlice {
            number,
            busy,
            limit,
        } = self.slice();
        // If the slice is within its limit, the turn takes too long.
        let slice = busy.filter(|busy| *busy >= limit).map(|_| number);
        self.0.usage.offender(slice, running)
    }

    fn slice(&self) -> TimeSlice {
        TimeSlice {
            number: self.0.slice.load(Ordering::Relaxed),
            busy: self.busy_for(),
            limit: Duration::from_nanos(self.0.limit.load(Ordering::Relaxed)),
        }
    }

    /// Excludes the time until the returned value is dropped: the program processes what it was
    /// sent.
    pub fn pause(&self) -> Pause<'_> {
        Pause {
            watchdog: self,
            begun_at: self.now(),
            entered_at: self.0.entered_at.swap(0, Ordering::Relaxed),
            deadline: self.0.deadline.swap(NEVER, Ordering::SeqCst),
        }
    }

    pub fn busy_for(&self) -> Option<Duration> {
        match self.0.entered_at.load(Ordering::Relaxed) {
            0 => None,
            entered_at => {
                let now = self.now();
                let busy = now.saturating_sub(entered_at);
                let busy = busy.saturating_sub(self.suspended_time(entered_at, now));
                Some(Duration::from_nanos(busy))
            }
        }
    }

    pub fn stopped(&self) -> Option<Stop> {
        *self.0.stop.borrow()
    }

    /// Stops the isolate; the first reason counts.
    pub fn stop(&self, reason: Stop) {
        self.0.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(reason);
            first
        });
        match reason {
            // These stops have no offender.
            Stop::Requested | Stop::Exited(_) | Stop::Unresponsive => self.terminate(),
            // The interrupt terminates the code, too, after it has reported the offender.
            Stop::Deadline | Stop::OutOfMemory | Stop::OutOfDescriptors | Stop::Tampered(_) => {
                let data = std::ptr::null_mut();
                self.0
                    .isolate
                    .request_interrupt(self.0.interrupts.terminate, data);
            }
        }
        self.0.event_loop.wake();
        self.wake();
    }

    /// Attributes the growth of the heap as soon as JavaScript continues.
    pub fn request_heap_sample(&self) {
        let data = std::ptr::null_mut();
        self.0
            .isolate
            .request_interrupt(self.0.interrupts.collection, data);
    }

    /// Registers the waker of the event loop for a stop of the isolate.
    pub fn register_event_loop(&self, event_loop: &Waker) {
        self.0.event_loop.register(event_loop);
    }

    /// Records the offender, if it is known; the first one counts. [`Self::report_offender`] follows.
    pub fn note_offender(&self, author: Option<Author>) {
        let mut state = self.state();
        state.author = state.author.take().or(author);
    }

    /// Called if no code of an extension runs at the moment. Returns true if the thread will be
    /// interrupted again.
    pub fn retry_attribution(&self) -> bool {
        let mut state = self.state();
        state.attempts += 1;
        state.retries = state.attempts < MAX_ATTRIBUTION_ATTEMPTS;
        let retries = state.retries;
        drop(state);
        self.wake();
        retries
    }

    /// Records the offender and the frames of its code; the first one counts.
    pub fn report_offender(&self, author: Option<Author>, stack: String) {
        let mut state = self.state();
        state.author = state.author.take().or(author);
        state.stack.get_or_insert(stack);
        drop(state);
        self.wake();
    }

    /// Asks the child processes of the isolate's thread to end. After the thread has ended they can
    /// no longer be found, so its end waits for this.
    pub fn end_children(&self) {
        self.0.ended_children.call_once(|| {
            // The program ends the whole session of a host process.
            if !IS_HOST_PROCESS.load(Ordering::Relaxed) {
                process_tree::terminate(process_tree::started_by_thread(self.0.thread));
            }
        });
    }

    /// Terminates the child processes that the isolate has started so far. The isolate goes on.
    pub fn release_children(&self) {
        match IS_HOST_PROCESS.load(Ordering::Relaxed) {
            false => process_tree::terminate(process_tree::started_by_thread(self.0.thread)),
            true => process_tree::terminate_session(
                std::process::id().cast_signed(),
                process_tree::kill_now(),
            ),
        }
    }

    /// Terminates the running code, if the isolate still exists.
    pub fn terminate(&self) {
        self.0.isolate.terminate_execution();
    }

    /// Resolves when the isolate has been stopped.
    pub async fn wait_for_stop(&self) -> Stop {
        let mut stop = self.0.stop.subscribe();
        // The value is copied, because the guard must not be held across an await.
        let reason = stop.wait_for(Option::is_some).await.map(|reason| *reason);
        match reason {
            Ok(reason) => reason.unwrap_or(Stop::Requested),
            // The sender is a part of `self`.
            Err(_) => std::future::pending().await,
        }
    }

    /// Resolves when the isolate has been stopped and the host knows the offender.
    pub async fn wait_until_reported(&self) -> Stop {
        let stop = self.wait_for_stop().await;
        let mut reported = self.0.reported.subscribe();
        // The watchdog may be gone.
        let _ = tokio::time::timeout(
            attribution_timeouts(stop).1 * 2,
            reported.wait_for(|reported| *reported),
        )
        .await;
        stop
    }

    /// Ends the watchdog after the isolate is gone.
    pub fn retire(&self) {
        self.state().retired = true;
        self.wake();
    }

    /// Terminates the running code without a report, because the owner of the isolate is gone.
    pub fn release(&self) {
        self.state().released = true;
        self.wake();
        if self.busy_for().is_some() {
            self.terminate();
        }
    }

    pub fn released(&self) -> bool {
        self.state().released
    }

    fn wake(&self) {
        if let Some(thread) = &self.state().thread {
            thread.unpark();
        }
    }

    /// Waits for the offender and its stack.
    fn wait_for_offender(&self, stop: Stop) -> (Option<Author>, String) {
        let (blocked_limit, limit) = attribution_timeouts(stop);
        let begun = Instant::now();
        let mut blocked = Duration::ZERO;
        loop {
            let mut state = self.state();
            if std::mem::take(&mut state.retries) {
                drop(state);
                std::thread::sleep(ATTRIBUTION_RETRY_DELAY);
                let data = std::ptr::null_mut();
                self.0
                    .isolate
                    .request_interrupt(self.0.interrupts.terminate, data);
                continue;
            }
            let is_over = blocked >= blocked_limit || begun.elapsed() >= limit;
            if is_over || state.stack.is_some() || state.retired {
                // The position may still be looked up in a large source map.
                let stack = state.stack.take().unwrap_or_default();
                return (state.author.take(), stack);
            }
            drop(state);
            let parked_at = Instant::now();
            std::thread::park_timeout(ATTRIBUTION_POLL_INTERVAL);
            if !process_tree::is_thread_runnable(self.0.thread) {
                blocked += parked_at.elapsed();
            }
        }
    }

    fn run_thread(self, host: &dyn Host) {
        let mut sampler = Sampler::new();
        loop {
            if self.state().released {
                return;
            }
            if let Some(stop) = self.stopped() {
                let (author, stack) = match stop {
                    Stop::Requested | Stop::Exited(_) | Stop::Unresponsive => (None, String::new()),
                    Stop::Deadline
                    | Stop::OutOfMemory
                    | Stop::OutOfDescriptors
                    | Stop::Tampered(_) => self.wait_for_offender(stop),
                };
                // V8 terminates the code when native code returns at the latest.
                self.terminate();
                host.fault(Fault::Stopped {
                    stop,
                    author,
                    stack,
                });
                self.0.reported.send_replace(true);
                return;
            }
            if self.state().retired {
                return;
            }
            self.exclude_suspended_time();
            let deadline = self.0.deadline.load(Ordering::SeqCst);
            let now = self.now();
            let Some(pause) = sampler.next_pause(now, deadline != NEVER) else {
                self.0.wakes_at.store(NEVER, Ordering::SeqCst);
                if self.0.deadline.load(Ordering::SeqCst) == NEVER {
                    // `enter` and `stop` unpark this thread; an early unpark is not lost.
                    std::thread::park();
                }
                continue;
            };
            if deadline <= now {
                if self.0.deadline.load(Ordering::SeqCst) == deadline {
                    self.stop(Stop::Deadline);
                }
                continue;
            }
            // A deadline before this time wakes the watchdog.
            let wakes_at = now.saturating_add(nanoseconds(pause)).min(deadline);
            self.0.wakes_at.store(wakes_at, Ordering::SeqCst);
            if self.0.deadline.load(Ordering::SeqCst) < wakes_at {
                continue;
            }
            std::thread::park_timeout(Duration::from_nanos(wakes_at - now));
            let asks = sampler.sample(self.now(), self.slice(), &self.0.usage, host);
            if asks {
                let data = std::ptr::null_mut();
                self.0
                    .isolate
                    .request_interrupt(self.0.interrupts.sample, data);
            }
        }
    }
}
