//! Ending JavaScript from outside: who asked for it, since when JavaScript has been
//! running, and the watchdog thread that compares the clock with the limit.
//!
//! An isolate ends in one way only: [`Control::stop`] notes the first reason and
//! terminates what is running. The watchdog tells the host (even if the thread of
//! the isolate is stuck in native code), the event loop notices, answers what is
//! pending and drops everything. Nothing is ever resumed: V8 leaves promises behind
//! that never settle.

use pi_base::process_tree;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::task::Waker;
use std::thread::Thread;
use std::time::{Duration, Instant};

use deno_core::v8::IsolateHandle;
use futures::task::AtomicWaker;
use js_runtime_ext::{Author, Fault, Host, IS_HOST_PROCESS, Stop, Watch};
use tokio::sync::watch;

use crate::hold::{Holds, Looks, Stretch};
use crate::inspector::is_inspected;
use crate::memory::LOOK;
use crate::witness::{charge, charge_time, testify};
use pi_base::active_clock::LATE;

/// Nothing to wait for.
const NEVER: u64 = u64::MAX;

/// How long the thread of a stopped isolate is given to say whose code it was. It
/// takes longer only when native code holds it.
const CONFESSION: Duration = Duration::from_millis(500);

/// How often it is asked where its code is. Between two microtasks it is nowhere.
const QUESTIONS: u32 = 40;
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(1);

/// So many times the limit may timers take that are due at once, one after the other.
const TURN: u32 = 4;

/// A pause that is shorter counts: a loop that calls the program again and again spins.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct Control(Arc<Shared>);

struct Shared {
    origin: Instant,
    isolate: IsolateHandle,
    /// The thread of the isolate, as the system knows it.
    thread: i32,
    stop: watch::Sender<Option<Stop>>,
    /// The host knows of the stop.
    told: watch::Sender<bool>,
    /// Nanoseconds since `origin` at which JavaScript was entered; 0 outside.
    since: AtomicU64,
    /// Until when it must be left; `NEVER` outside.
    deadline: AtomicU64,
    /// How long it may take; nanoseconds.
    limit: AtomicU64,
    /// When the turn of the event loop has begun.
    turn: AtomicU64,
    /// How often it was entered and left.
    stretch: AtomicU64,
    holds: Holds,
    /// When the watchdog wakes up by itself.
    wakes_at: AtomicU64,
    /// When it has looked last.
    looked_at: AtomicU64,
    watchdog: Mutex<Watchdog>,
    /// What its thread has started is asked to end.
    ended_children: Once,
    /// The event loop, which may be asleep when the isolate is stopped.
    event_loop: AtomicWaker,
}

#[derive(Default)]
struct Watchdog {
    thread: Option<Thread>,
    /// What was stopped, once the event loop has looked: whose code, and where.
    author: Option<Option<Author>>,
    stack: Option<String>,
    /// It is to be asked again where it is, and how often it was.
    asks_again: bool,
    asked: u32,
    /// The isolate is gone.
    retired: bool,
    /// The owner has gone away: nobody wants to hear of a stop.
    released: bool,
}

/// See [`Control::pause`].
pub(crate) struct Pause<'a> {
    control: &'a Control,
    begun: u64,
    since: u64,
    deadline: u64,
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        if self.deadline == NEVER && self.since == 0 {
            return;
        }
        let shared = &self.control.0;
        let now = self.control.now();
        let paused = match now.saturating_sub(self.begun) {
            short if short < nanoseconds(PAUSE) => 0,
            long => long,
        };
        if paused > 0 {
            // It had nothing to look at.
            shared.looked_at.store(now, Ordering::Relaxed);
        }
        shared
            .since
            .store(self.since.saturating_add(paused), Ordering::Relaxed);
        let deadline = self.deadline.saturating_add(paused);
        shared.deadline.store(deadline, Ordering::SeqCst);
        if deadline < shared.wakes_at.load(Ordering::SeqCst) {
            self.control.wake_watchdog();
        }
    }
}

impl Watch for Control {
    fn begins(&self, extension: Option<u32>) {
        let shared = &self.0;
        if shared.holds.owes() {
            // It was asked while native code ran, and has not answered.
            let stretch = shared.stretch.load(Ordering::Relaxed);
            shared.holds.charge_begun(stretch);
        }
        shared.holds.begin(extension);
    }

    fn renews(&self) {
        let shared = &self.0;
        self.begins(None);
        if shared.since.load(Ordering::Relaxed) != 0 {
            let limit = Duration::from_nanos(shared.limit.load(Ordering::Relaxed));
            let turn = Duration::from_nanos(shared.turn.load(Ordering::Relaxed));
            self.run(limit, turn.saturating_add(limit.saturating_mul(TURN)));
        }
    }

    fn held_by_others(&self, extension: u32) -> Duration {
        self.0.holds.by_others(extension)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

impl Control {
    /// Starts the watchdog. On the thread of the isolate.
    pub fn new(isolate: IsolateHandle, host: Arc<dyn Host>) -> std::io::Result<Self> {
        let control = Self(Arc::new(Shared {
            origin: Instant::now(),
            isolate,
            thread: process_tree::current_thread_id(),
            stop: watch::Sender::new(None),
            told: watch::Sender::new(false),
            since: AtomicU64::new(0),
            deadline: AtomicU64::new(NEVER),
            limit: AtomicU64::new(NEVER),
            turn: AtomicU64::new(0),
            stretch: AtomicU64::new(0),
            holds: Holds::default(),
            wakes_at: AtomicU64::new(NEVER),
            looked_at: AtomicU64::new(0),
            watchdog: Mutex::default(),
            ended_children: Once::new(),
            event_loop: AtomicWaker::new(),
        }));
        let watched = control.clone();
        let thread = std::thread::Builder::new()
            .name("js-watchdog".into())
            .spawn(move || {
                watched.clone().watch(&*host);
                // Native code may hold the thread, and wait for one of them.
                watched.end_children();
            })?;
        control.watchdog().thread = Some(thread.thread().clone());
        Ok(control)
    }

    fn watchdog(&self) -> std::sync::MutexGuard<'_, Watchdog> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.0
            .watchdog
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.0.origin.elapsed()).min(NEVER - 1)
    }

    /// How much of the time since JavaScript was entered at `since` this process has not
    /// run: it was stopped, or else the watchdog would have looked.
    fn lost(&self, since: u64, now: u64) -> u64 {
        let looked = self.0.looked_at.load(Ordering::Relaxed).max(since);
        match now.saturating_sub(looked) {
            gap if gap > nanoseconds(LOOK + LATE) => gap,
            _ => 0,
        }
    }

    /// Does not charge JavaScript with what was lost.
    fn forgive(&self) {
        let shared = &self.0;
        let deadline = shared.deadline.load(Ordering::SeqCst);
        let since = shared.since.load(Ordering::Relaxed);
        let now = self.now();
        if since != 0
            && let lost @ 1.. = self.lost(since, now)
        {
            let ordering = Ordering::SeqCst;
            let later = since.saturating_add(lost);
            // An error means that it has left meanwhile.
            _ = (shared.since).compare_exchange(since, later, ordering, ordering);
            let later = deadline.saturating_add(lost);
            _ = (shared.deadline).compare_exchange(deadline, later, ordering, ordering);
        }
        shared.looked_at.store(now, Ordering::Relaxed);
    }

    /// JavaScript runs from now on.
    pub fn enter(&self, limit: Duration) {
        self.0.turn.store(self.now(), Ordering::Relaxed);
        self.0.holds.begin_turn();
        self.run(limit, Duration::MAX);
    }

    /// For so long, and not beyond that moment.
    fn run(&self, limit: Duration, end: Duration) {
        let now = self.now().max(1);
        let limit = nanoseconds(limit);
        let deadline = match is_inspected() {
            // At a breakpoint it runs for as long as somebody looks at it.
            true => NEVER,
            false => now.saturating_add(limit).min(nanoseconds(end)),
        };
        self.0.stretch.fetch_add(1, Ordering::Relaxed);
        self.0.limit.store(limit, Ordering::Relaxed);
        self.0.since.store(now, Ordering::Relaxed);
        // SeqCst here and in `watch`: either we see when the watchdog wakes up, or
        // it sees our deadline.
        self.0.deadline.store(deadline, Ordering::SeqCst);
        if deadline < self.0.wakes_at.load(Ordering::SeqCst) {
            self.wake_watchdog();
        }
    }

    /// The thread is free again.
    pub fn leave(&self) {
        self.0.deadline.store(NEVER, Ordering::SeqCst);
        self.0.since.store(0, Ordering::Relaxed);
        let number = self.0.stretch.fetch_add(1, Ordering::Relaxed);
        if self.0.holds.owes() {
            // It was asked, and has not been in the midst of anybody's code since.
            self.0.holds.charge_begun(number);
        }
        self.0.holds.begin(None);
    }

    /// Charges whoever's code runs with the time that nobody is charged with yet. On the
    /// thread of JavaScript.
    pub fn charge_time(&self, author: Option<Author>) {
        let stretch = self.0.stretch.load(Ordering::Relaxed);
        self.0.holds.charge(stretch, author);
    }

    /// Whose fault it is that a limit is reached, if this one's code runs now.
    pub fn culprit(&self, running: Option<Author>) -> Option<Author> {
        let Stretch {
            number,
            busy,
            limit,
        } = self.stretch();
        // Otherwise it is the turn that takes too long.
        let stretch = busy.filter(|busy| *busy >= limit).map(|_| number);
        self.0.holds.culprit(stretch, running)
    }

    fn stretch(&self) -> Stretch {
        Stretch {
            number: self.0.stretch.load(Ordering::Relaxed),
            busy: self.busy_for(),
            limit: Duration::from_nanos(self.0.limit.load(Ordering::Relaxed)),
        }
    }

    /// What its thread does until this is dropped is not the time of JavaScript: the
    /// program takes what it was sent.
    pub fn pause(&self) -> Pause<'_> {
        Pause {
            control: self,
            begun: self.now(),
            since: self.0.since.swap(0, Ordering::Relaxed),
            deadline: self.0.deadline.swap(NEVER, Ordering::SeqCst),
        }
    }

    pub fn busy_for(&self) -> Option<Duration> {
        match self.0.since.load(Ordering::Relaxed) {
            0 => None,
            since => {
                let now = self.now();
                let busy = now.saturating_sub(since);
                let busy = busy.saturating_sub(self.lost(since, now));
                Some(Duration::from_nanos(busy))
            }
        }
    }

    pub fn stopped(&self) -> Option<Stop> {
        *self.0.stop.borrow()
    }

    /// Ends the isolate; the first reason counts.
    pub fn stop(&self, reason: Stop) {
        self.0.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(reason);
            first
        });
        match reason {
            // Nobody is to blame.
            Stop::Asked | Stop::Died(_) | Stop::Unresponsive => self.terminate(),
            // Ends it, too, once it has said whose code runs.
            Stop::Deadline | Stop::OutOfMemory | Stop::OutOfDescriptors | Stop::Damaged(_) => {
                let data = std::ptr::null_mut();
                self.0.isolate.request_interrupt(testify, data);
            }
        }
        self.0.event_loop.wake();
        self.wake_watchdog();
    }

    /// Charges whoever runs with what is in the heap, as soon as JavaScript goes on.
    pub fn charge(&self) {
        let data = std::ptr::null_mut();
        self.0.isolate.request_interrupt(charge, data);
    }

    /// The event loop is woken when the isolate is stopped.
    pub fn wakes(&self, event_loop: &Waker) {
        self.0.event_loop.register(event_loop);
    }

    /// It was stopped in the midst of this author's code. What is said first counts;
    /// [`Self::confess`] follows.
    pub fn accuse(&self, author: Option<Author>) {
        self.watchdog().author.get_or_insert(author);
    }

    /// It is not in the midst of any code just now; whether it will be asked again.
    pub fn is_asked_again(&self) -> bool {
        let mut watchdog = self.watchdog();
        watchdog.asked += 1;
        watchdog.asks_again = watchdog.asked < QUESTIONS;
        let asks_again = watchdog.asks_again;
        drop(watchdog);
        self.wake_watchdog();
        asks_again
    }

    /// The same, with the frames of that code.
    pub fn confess(&self, author: Option<Author>, stack: String) {
        let mut watchdog = self.watchdog();
        watchdog.author.get_or_insert(author);
        watchdog.stack.get_or_insert(stack);
        drop(watchdog);
        self.wake_watchdog();
    }

    /// The isolate is not wanted any more, and what its thread has started is not either. Once
    /// the thread has ended nobody knows which these are: it waits here until they are asked.
    pub fn end_children(&self) {
        self.0.ended_children.call_once(|| {
            // Of a process of its own, the program ends all that it has left behind.
            if !IS_HOST_PROCESS.load(Ordering::Relaxed) {
                process_tree::terminate(process_tree::started_by_thread(self.0.thread));
            }
        });
    }

    /// Ends what is running now, if the isolate still exists.
    pub fn terminate(&self) {
        self.0.isolate.terminate_execution();
    }

    /// Resolves when the isolate has been stopped.
    pub async fn wait_for_stop(&self) -> Stop {
        let mut stop = self.0.stop.subscribe();
        // Copied out: the guard must not be held while anything is awaited.
        let reason = stop.wait_for(Option::is_some).await.map(|reason| *reason);
        match reason {
            Ok(reason) => reason.unwrap_or(Stop::Asked),
            // The sender lives in `self`.
            Err(_) => std::future::pending().await,
        }
    }

    /// The same, when the host has been told who is to blame.
    pub async fn wait_until_told(&self) -> Stop {
        let stop = self.wait_for_stop().await;
        let mut told = self.0.told.subscribe();
        // The watchdog may have died.
        let _ = tokio::time::timeout(CONFESSION * 2, told.wait_for(|told| *told)).await;
        stop
    }

    /// The isolate is gone: ends the watchdog.
    pub fn retire(&self) {
        self.watchdog().retired = true;
        self.wake_watchdog();
    }

    /// The owner goes away: ends what runs, without telling the host.
    pub fn release(&self) {
        self.watchdog().released = true;
        self.wake_watchdog();
        if self.busy_for().is_some() {
            self.terminate();
        }
    }

    pub fn released(&self) -> bool {
        self.watchdog().released
    }

    fn wake_watchdog(&self) {
        if let Some(thread) = &self.watchdog().thread {
            thread.unpark();
        }
    }

    /// Who it was, and where.
    fn wait_for_confession(&self) -> (Option<Author>, String) {
        let deadline = Instant::now() + CONFESSION;
        loop {
            let mut watchdog = self.watchdog();
            let left = deadline.checked_duration_since(Instant::now());
            if std::mem::take(&mut watchdog.asks_again) {
                drop(watchdog);
                std::thread::sleep(BETWEEN_QUESTIONS);
                let data = std::ptr::null_mut();
                self.0.isolate.request_interrupt(testify, data);
                continue;
            }
            match left {
                Some(left) if watchdog.stack.is_none() && !watchdog.retired => {
                    drop(watchdog);
                    std::thread::park_timeout(left);
                }
                // The place may still be looked up in a large source map.
                _ => {
                    let author = watchdog.author.take().flatten();
                    return (author, watchdog.stack.take().unwrap_or_default());
                }
            }
        }
    }

    fn watch(self, host: &dyn Host) {
        let mut looks = Looks::new();
        loop {
            if self.watchdog().released {
                return;
            }
            if let Some(stop) = self.stopped() {
                let (author, stack) = match stop {
                    Stop::Asked | Stop::Died(_) | Stop::Unresponsive => (None, String::new()),
                    Stop::Deadline
                    | Stop::OutOfMemory
                    | Stop::OutOfDescriptors
                    | Stop::Damaged(_) => self.wait_for_confession(),
                };
                // At the latest when native code gives the thread back.
                self.terminate();
                host.fault(Fault::Stopped {
                    stop,
                    author,
                    stack,
                });
                self.0.told.send_replace(true);
                return;
            }
            if self.watchdog().retired {
                return;
            }
            self.forgive();
            let deadline = self.0.deadline.load(Ordering::SeqCst);
            let now = self.now();
            let Some(pause) = looks.pause(now, deadline != NEVER) else {
                self.0.wakes_at.store(NEVER, Ordering::SeqCst);
                if self.0.deadline.load(Ordering::SeqCst) == NEVER {
                    // `enter` and `stop` unpark, and an early call of them is kept.
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
            // Unless it is to be left before, nobody has to wake it.
            let wakes_at = now.saturating_add(nanoseconds(pause)).min(deadline);
            self.0.wakes_at.store(wakes_at, Ordering::SeqCst);
            if self.0.deadline.load(Ordering::SeqCst) < wakes_at {
                continue;
            }
            std::thread::park_timeout(Duration::from_nanos(wakes_at - now));
            let asks = looks.look(self.now(), self.stretch(), &self.0.holds, host);
            if asks {
                let data = std::ptr::null_mut();
                self.0.isolate.request_interrupt(charge_time, data);
            }
        }
    }
}
