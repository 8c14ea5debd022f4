//! Events whose answers do not count: an ordered, bounded queue. Whoever is faster
//! than the handlers waits for room, and for the end of the queue where the event is
//! one that the agent waits for.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pi_base::active_clock;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::message_delta::Told;
use super::mutations::Change;
use crate::agent::event::MessageUpdate;
use crate::extensions::lifecycle::generation::{CallFailure, Generation, outcome};
use crate::extensions::limits::abandoned::{self, PendingCall};
use crate::extensions::limits::counters::Tally;
use crate::extensions::limits::slow_notice::{Outcome, SlowNotice};
use crate::extensions::registry::{ExtensionId, FunctionId};

/// Events that wait. A stream that runs ahead of its handlers by more than this
/// is slowed down to their pace.
const CAPACITY: usize = 1024;
/// Events that cross at once.
const BATCH: usize = 64;

pub struct Notifications {
    queue: mpsc::Sender<Item>,
    /// Events that were pushed and whose handlers are not done.
    open: Arc<AtomicUsize>,
    given_up: watch::Sender<GivenUp>,
}

/// What the user does not wait for any more.
#[derive(Clone, Copy, Default)]
struct GivenUp {
    /// How often it was said: what was pushed before is meant.
    times: u64,
    /// The run that was aborted, with all that is still to be told of it. Runs count
    /// from 1.
    run: u64,
}

enum Item {
    Event {
        told: News,
        targets: Targets,
        change: Option<Change>,
        origin: Origin,
    },
    Drained(oneshot::Sender<()>),
}

/// Where an event comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    run: Option<u64>,
    /// [`GivenUp::times`] at that time.
    times: u64,
}

impl Origin {
    fn is_given_up(self, given_up: &GivenUp) -> bool {
        self.times < given_up.times || self.run.is_some_and(|run| run <= given_up.run)
    }
}

/// What there is to tell.
pub enum News {
    Event(Box<RawValue>),
    /// Made into JSON when it is its turn: it says what is new since the one before.
    Update(Box<MessageUpdate>),
}

type Targets = Vec<(ExtensionId, FunctionId)>;

/// Events of one origin.
#[derive(Serialize)]
struct Batch {
    number: u64,
    events: Vec<Notification>,
    run: Option<u64>,
    /// The user has given up the wait for their handlers before they were called.
    #[serde(rename = "isAborted")]
    aborted: bool,
}

#[derive(Serialize)]
struct Notification {
    event: Box<RawValue>,
    targets: Targets,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Change>,
}

/// The handler that the queue stands still for.
#[derive(Deserialize)]
struct Current {
    extension: ExtensionId,
    event: String,
    /// Which call of a handler it is.
    call: u64,
    /// Milliseconds.
    elapsed: f64,
}

impl Notifications {
    pub fn start(generation: Weak<Generation>) -> Self {
        let (queue, items) = mpsc::channel(CAPACITY);
        let open = Arc::<AtomicUsize>::default();
        tokio::spawn(pump(generation, items, open.clone()));
        Self {
            queue,
            open,
            given_up: watch::Sender::default(),
        }
    }

    /// The user waits no longer for handlers of what has happened so far, nor of what is
    /// still to be told of `run`: they have a moment, and are left behind.
    pub fn give_up(&self, run: Option<u64>) {
        self.given_up.send_modify(|given_up| {
            given_up.times += 1;
            given_up.run = given_up.run.max(run.unwrap_or_default());
        });
    }

    fn origin(&self, run: Option<u64>) -> Origin {
        let times = self.given_up.borrow().times;
        Origin { run, times }
    }

    /// Everything that was pushed has been handled.
    pub fn is_empty(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// Where there is no room, the event is dropped when `cancel` fires.
    pub async fn push(
        &self,
        told: News,
        targets: Targets,
        change: Option<Change>,
        run: Option<u64>,
        cancel: &CancellationToken,
    ) {
        let item = Item::Event {
            told,
            targets,
            change,
            origin: self.origin(run),
        };
        tokio::select! {
            biased;
            // An error means that the generation is gone, and its handlers with it.
            room = self.queue.reserve() => if let Ok(room) = room {
                self.open.fetch_add(1, Ordering::AcqRel);
                room.send(item);
            },
            () = cancel.cancelled() => tracing::debug!("extensions do not hear of an event"),
        }
    }

    /// Gives the event back where there is no room.
    pub fn try_push(
        &self,
        event: Box<RawValue>,
        targets: Targets,
        run: Option<u64>,
    ) -> Result<(), Box<RawValue>> {
        match self.queue.try_reserve() {
            Ok(room) => {
                self.open.fetch_add(1, Ordering::AcqRel);
                room.send(Item::Event {
                    told: News::Event(event),
                    targets,
                    change: None,
                    origin: self.origin(run),
                });
                Ok(())
            }
            Err(mpsc::error::TrySendError::Full(())) => Err(event),
            // The generation is gone, and its handlers with it.
            Err(mpsc::error::TrySendError::Closed(())) => Ok(()),
        }
    }

    /// Returns when everything that was pushed before has been handled.
    pub async fn drain(&self) {
        if self.is_empty() {
            return;
        }
        let (done, drained) = oneshot::channel();
        if self.queue.send(Item::Drained(done)).await.is_ok() {
            let _ = drained.await;
        }
    }
}

async fn pump(
    generation: Weak<Generation>,
    mut items: mpsc::Receiver<Item>,
    open: Arc<AtomicUsize>,
) {
    let mut waiting = Vec::with_capacity(BATCH);
    let mut updates = Told::default();
    while items.recv_many(&mut waiting, BATCH).await > 0 {
        let Some(generation) = generation.upgrade() else {
            return;
        };
        let mut events = Vec::new();
        let mut of = generation.notifications.origin(None);
        for item in waiting.drain(..) {
            match item {
                Item::Event {
                    told,
                    targets,
                    change,
                    origin,
                } => {
                    if of != origin {
                        let events = std::mem::take(&mut events);
                        deliver(&generation, &open, events, of, &mut updates).await;
                        of = origin;
                    }
                    let event = match told {
                        News::Event(event) => {
                            updates.forget();
                            event
                        }
                        News::Update(update) => match updates.update(&update) {
                            Ok(event) => event,
                            Err(error) => {
                                tracing::error!("an update cannot be told to extensions: {error}");
                                open.fetch_sub(1, Ordering::AcqRel);
                                continue;
                            }
                        },
                    };
                    events.push(Notification {
                        event,
                        targets,
                        change,
                    });
                }
                Item::Drained(done) => {
                    let events = std::mem::take(&mut events);
                    deliver(&generation, &open, events, of, &mut updates).await;
                    // Nobody may be waiting any more.
                    let _ = done.send(());
                }
            }
        }
        deliver(&generation, &open, events, of, &mut updates).await;
    }
}

async fn deliver(
    generation: &Generation,
    open: &AtomicUsize,
    events: Vec<Notification>,
    origin: Origin,
    updates: &mut Told,
) {
    if events.is_empty() {
        return;
    }
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let mut given_up = generation.notifications.given_up.subscribe();
    let batch = Batch {
        number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        events,
        run: origin.run,
        aborted: origin.is_given_up(&given_up.borrow()),
    };
    let given_up = async {
        // It is never closed: the sender is the generation's.
        let _ = given_up.wait_for(|now| origin.is_given_up(now)).await;
    };
    let thread_usage = &generation.host.thread_usage;
    // Until the bridge says whose turn it is.
    let first = batch.events.iter().flat_map(|event| &event.targets).next();
    thread_usage.set_queued(first.map(|(extension, _)| *extension));
    if !hand_over(generation, &batch, given_up).await {
        updates.forget();
    }
    thread_usage.set_queued(None);
    open.fetch_sub(batch.events.len(), Ordering::AcqRel);
}

/// `false` if the bridge may not have seen all of it.
async fn hand_over(
    generation: &Generation,
    batch: &Batch,
    given_up: impl Future<Output = ()>,
) -> bool {
    let call = generation.call("notify", batch);
    tokio::pin!(call, given_up);
    let mut aborted = batch.aborted;
    let mut shown: Option<Shown<'_>> = None;
    // Half of it, which is when the user is told of the wait. Which event's turn comes
    // while nobody looks is not known: its limit may be the shortest.
    let longest_pause = (generation.limits.shortest() / 2).max(LEAST_PAUSE);
    let mut pause = longest_pause;
    // While pi was stopped.
    let mut lost = Duration::ZERO;
    loop {
        tokio::select! {
            biased;
            answer = &mut call => {
                if let Ok(Some(done)) = &answer {
                    take(generation, done);
                }
                if let Err(failure @ CallFailure::Thrown { .. }) = &answer {
                    let current = generation.host.current();
                    let (plain, stack) = failure.parts();
                    generation
                        .host
                        .report_thrown(current.extension, &current.what, plain, stack);
                }
                if let Some(shown) = shown {
                    shown.wait.over(outcome(&answer));
                }
                return answer.is_ok();
            }
            () = &mut given_up, if !aborted => {
                aborted = true;
                // Dropped, the wait was cancelled.
                shown = None;
                // An error means that the isolate is gone. A thread that does not answer
                // is looked after below.
                let told = generation.call("abortBatch", &batch.number);
                let _ = active_clock::timeout(generation.limits.handler, told).await;
            }
            late = active_clock::sleep(pause) => {
                lost += late;
                match overdue(generation, &mut shown, lost).await {
                    Some(left) => pause = left.min(longest_pause),
                    None => return false,
                }
            }
        }
    }
}

/// What came of a batch.
#[derive(Deserialize)]
struct Done {
    tallies: Vec<Spent>,
    /// Handlers that an abort went past.
    skipped: Vec<Passed>,
}

#[derive(Deserialize)]
struct Passed {
    extension: ExtensionId,
    handler: FunctionId,
    event: String,
}

fn take(generation: &Generation, done: &str) {
    let done = match serde_json::from_str::<Done>(done) {
        Ok(done) => done,
        Err(error) => return tracing::error!("what came of events cannot be read: {error}"),
    };
    charge(generation, done.tallies);
    for Passed {
        extension,
        handler,
        event,
    } in done.skipped
    {
        let limit = generation.limits.of(&event);
        generation.watch_skipped(extension, PendingCall::Queued(handler), &event, limit);
    }
}

/// What the handlers of a batch took: milliseconds.
#[derive(Deserialize)]
struct Spent {
    extension: ExtensionId,
    event: String,
    calls: u64,
    failures: u64,
    total: f64,
    slowest: f64,
}

fn charge(generation: &Generation, spent: Vec<Spent>) {
    let duration =
        |milliseconds: f64| Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default();
    for sum in spent {
        let tally = Tally {
            calls: sum.calls,
            failures: sum.failures,
            time: duration(sum.total),
            slowest: duration(sum.slowest),
        };
        generation.host.add_calls(sum.extension, &sum.event, tally);
    }
}

/// Between two looks at how long a handler has run.
const LEAST_PAUSE: Duration = Duration::from_millis(10);

/// A wait that the user was told of.
struct Shown<'a> {
    call: u64,
    wait: SlowNotice<'a>,
}

/// Tells the user of the current handler if it has had half of its time, and leaves it
/// behind if it has had all; returns how long to wait before asking again, `None` when
/// the isolate had to be stopped.
async fn overdue<'a>(
    generation: &'a Generation,
    shown: &mut Option<Shown<'a>>,
    lost: Duration,
) -> Option<Duration> {
    let limit = generation.limits.handler;
    let asked = active_clock::timeout(limit, generation.call("currentHandler", &())).await;
    let current = match asked {
        Some(Ok(Some(json))) => serde_json::from_str::<Current>(&json).ok(),
        Some(Ok(None)) => None,
        Some(Err(_)) => return None,
        None => {
            generation.stop_if_stuck(None, limit * 2).await;
            return (!generation.is_broken()).then_some(limit);
        }
    };
    // Between two handlers there is nobody to blame.
    let Some(current) = current else {
        settled(shown);
        return Some(limit / 2);
    };
    let limit = generation.limits.of(&current.event);
    let elapsed = Duration::from_secs_f64((current.elapsed / 1000.0).max(0.0));
    let waited = generation.host.queued_handler_wait(current.extension);
    let used = elapsed.saturating_sub(waited + lost);
    if shown
        .as_ref()
        .is_none_or(|shown| shown.call != current.call)
    {
        settled(shown);
        if used >= limit / 2 {
            let host = &generation.host;
            let mut wait = host.slow_notice(current.extension, current.event.clone(), limit);
            wait.show(used);
            let call = current.call;
            *shown = Some(Shown { call, wait });
        }
    }
    if used < limit {
        let next = match shown {
            Some(_) => limit,
            None => limit / 2,
        };
        return Some(next.saturating_sub(used).max(LEAST_PAUSE));
    }
    if let Some(shown) = shown.take() {
        shown.wait.over(Outcome::Abandoned);
    }
    // An error means that the isolate is gone, and the handler with it.
    let left = generation.call("abandon", &current.call).await;
    if let Ok(Some(frame)) = left {
        let sentence = abandoned::timeout_message(limit);
        (generation.host).report_at(current.extension, &current.event, sentence, &frame);
    }
    Some(limit / 2)
}

fn settled(shown: &mut Option<Shown<'_>>) {
    if let Some(shown) = shown.take() {
        shown.wait.over(Outcome::Settled);
    }
}
