//! Ordered, bounded queue of events whose results are ignored. A producer that is faster
//! than the handlers waits for room. For events that the agent waits for, it also waits
//! until the queue is empty.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use pi_base::active_clock;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::message_delta::UpdateEncoder;
use super::mutations::MutationSlot;
use crate::lifecycle::generation::{CallFailure, Generation, outcome};
use crate::limits::abandoned::{self, PendingCall};
use crate::limits::counters::Tally;
use crate::limits::slow_notice::SlowNotice;
use crate::registry::{ExtensionId, FunctionId};
use pi_agent::event::{MessageUpdate, WaitOutcome};

/// Capacity of the queue. A stream that is further ahead of its handlers is slowed down to
/// their pace.
const QUEUE_CAPACITY: usize = 1024;
/// Maximum number of events that are sent to the bridge at once.
const BATCH_SIZE: usize = 64;

pub struct EventQueue {
    queue: mpsc::Sender<Item>,
    /// Number of events that were pushed and not handled yet.
    open: Arc<AtomicUsize>,
    aborts: watch::Sender<Aborts>,
}

/// Aborts of waits for handlers.
#[derive(Clone, Copy, Default)]
struct Aborts {
    /// Number of aborts. An abort concerns the events that were pushed before.
    count: u64,
    /// The latest aborted run; all of its events are concerned. Runs count from 1.
    run: u64,
}

enum Item {
    Event {
        event: QueuedEvent,
        targets: Targets,
        change: Option<MutationSlot>,
        origin: Origin,
    },
    Drained(oneshot::Sender<()>),
}

/// The run of an event, and the aborts so far.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    run: Option<u64>,
    /// [`Aborts::count`] when the event was pushed.
    abort_count: u64,
}

impl Origin {
    fn is_aborted(self, aborts: &Aborts) -> bool {
        self.abort_count < aborts.count || self.run.is_some_and(|run| run <= aborts.run)
    }
}

/// An event in the queue.
pub enum QueuedEvent {
    Event(Box<RawValue>),
    /// An update that is encoded when it is its turn, as the difference to the previous
    /// one.
    Update(Box<MessageUpdate>),
}

type Targets = Vec<(ExtensionId, FunctionId)>;

/// Events of one origin.
#[derive(Serialize)]
struct Batch {
    number: u64,
    events: Vec<BatchEvent>,
    run: Option<u64>,
    /// Whether the wait for the handlers was aborted before they were called.
    #[serde(rename = "isAborted")]
    aborted: bool,
}

#[derive(Serialize)]
struct BatchEvent {
    event: Box<RawValue>,
    targets: Targets,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<MutationSlot>,
}

/// The handler that the queue waits for.
#[derive(Deserialize)]
struct CurrentHandler {
    extension: ExtensionId,
    event: String,
    /// Number of the call of a handler.
    call: u64,
    /// Milliseconds.
    elapsed: f64,
}

impl EventQueue {
    pub fn start(generation: Weak<Generation>) -> Self {
        let (queue, items) = mpsc::channel(QUEUE_CAPACITY);
        let open = Arc::<AtomicUsize>::default();
        tokio::spawn(pump(generation, items, open.clone()));
        Self {
            queue,
            open,
            aborts: watch::Sender::default(),
        }
    }

    /// Stops waiting for handlers of all events so far, and of later events of `run`. Those
    /// handlers get a short grace, then they are abandoned.
    pub fn abort(&self, run: Option<u64>) {
        self.aborts.send_modify(|aborts| {
            aborts.count += 1;
            aborts.run = aborts.run.max(run.unwrap_or_default());
        });
    }

    fn origin(&self, run: Option<u64>) -> Origin {
        let abort_count = self.aborts.borrow().count;
        Origin { run, abort_count }
    }

    /// Returns whether every pushed event has been handled.
    pub fn is_empty(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// Pushes an event. Waits for room, and drops the event if `cancel` fires meanwhile.
    pub async fn push(
        &self,
        event: QueuedEvent,
        targets: Targets,
        change: Option<MutationSlot>,
        run: Option<u64>,
        cancel: &CancellationToken,
    ) {
        let item = Item::Event {
            event,
            targets,
            change,
            origin: self.origin(run),
        };
        tokio::select! {
            biased;
            // An error means that the generation is gone, and its handlers with it.
            permit = self.queue.reserve() => if let Ok(permit) = permit {
                self.open.fetch_add(1, Ordering::AcqRel);
                permit.send(item);
            },
            () = cancel.cancelled() => tracing::debug!("extensions do not hear of an event"),
        }
    }

    /// Returns when all events pushed so far have been handled.
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
    let mut waiting = Vec::with_capacity(BATCH_SIZE);
    let mut updates = UpdateEncoder::default();
    while items.recv_many(&mut waiting, BATCH_SIZE).await > 0 {
        let Some(generation) = generation.upgrade() else {
            return;
        };
        let mut events = Vec::new();
        let mut current_origin = generation.event_queue.origin(None);
        for item in waiting.drain(..) {
            match item {
                Item::Event {
                    event,
                    targets,
                    change,
                    origin,
                } => {
                    if current_origin != origin {
                        let events = std::mem::take(&mut events);
                        deliver(&generation, &open, events, current_origin, &mut updates).await;
                        current_origin = origin;
                    }
                    let event = match event {
                        QueuedEvent::Event(event) => {
                            updates.reset();
                            event
                        }
                        QueuedEvent::Update(update) => match updates.encode(&update) {
                            Ok(event) => event,
                            Err(error) => {
                                tracing::error!("an update cannot be sent to extensions: {error}");
                                open.fetch_sub(1, Ordering::AcqRel);
                                continue;
                            }
                        },
                    };
                    events.push(BatchEvent {
                        event,
                        targets,
                        change,
                    });
                }
                Item::Drained(done) => {
                    let events = std::mem::take(&mut events);
                    deliver(&generation, &open, events, current_origin, &mut updates).await;
                    // The receiver may be gone.
                    let _ = done.send(());
                }
            }
        }
        deliver(&generation, &open, events, current_origin, &mut updates).await;
    }
}

async fn deliver(
    generation: &Generation,
    open: &AtomicUsize,
    events: Vec<BatchEvent>,
    origin: Origin,
    updates: &mut UpdateEncoder,
) {
    if events.is_empty() {
        return;
    }
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let mut aborts = generation.event_queue.aborts.subscribe();
    let batch = Batch {
        number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        events,
        run: origin.run,
        aborted: origin.is_aborted(&aborts.borrow()),
    };
    let aborted = async {
        // The sender is owned by the generation, so it is never closed.
        let _ = aborts.wait_for(|now| origin.is_aborted(now)).await;
    };
    let thread_usage = &generation.host.thread_usage;
    // Until the bridge reports which handler runs.
    let first = batch.events.iter().flat_map(|event| &event.targets).next();
    thread_usage.set_queued(first.map(|(extension, _)| *extension));
    let _open = first.map(|(extension, _)| generation.host.open_calls.begin(*extension, "event"));
    if !send_batch(generation, &batch, aborted).await {
        updates.reset();
    }
    thread_usage.set_queued(None);
    open.fetch_sub(batch.events.len(), Ordering::AcqRel);
}

/// Sends a batch and waits for its handlers. Returns `false` if the bridge may not have
/// seen all of it.
async fn send_batch(
    generation: &Generation,
    batch: &Batch,
    batch_aborted: impl Future<Output = ()>,
) -> bool {
    let call = generation.call("notify", batch);
    tokio::pin!(call, batch_aborted);
    let mut aborted = batch.aborted;
    let mut notice: Option<ShownNotice<'_>> = None;
    // Half of the limit, which is when the slow notice is due. The next event is unknown,
    // so the shortest limit counts.
    let max_pause = (generation.timeouts.shortest() / 2).max(MIN_POLL_INTERVAL);
    let mut pause = max_pause;
    // Time in which pi was stopped.
    let mut lost = Duration::ZERO;
    loop {
        tokio::select! {
            biased;
            result = &mut call => {
                if let Ok(Some(json)) = &result {
                    take_batch_result(generation, json);
                }
                if let Err(failure @ CallFailure::Thrown { .. }) = &result {
                    let current = generation.host.current();
                    let (plain, stack) = failure.parts();
                    generation
                        .host
                        .report_thrown(current.extension, &current.what, plain, stack);
                }
                if let Some(notice) = notice {
                    notice.wait.finish(outcome(&result));
                }
                return result.is_ok();
            }
            () = &mut batch_aborted, if !aborted => {
                aborted = true;
                // Dropping a notice means that the wait was cancelled.
                notice = None;
                // An error means that the isolate is gone. A thread that does not respond
                // is stopped below.
                let aborting = generation.call("abortBatch", &batch.number);
                let _ = active_clock::timeout(generation.timeouts.handler, aborting).await;
            }
            late = active_clock::sleep(pause) => {
                lost += late;
                match check_deadline(generation, &mut notice, lost).await {
                    Some(left) => pause = left.min(max_pause),
                    None => return false,
                }
            }
        }
    }
}

/// Result of a batch.
#[derive(Deserialize)]
struct BatchResult {
    tallies: Vec<HandlerTally>,
    /// Handlers that an abort skipped.
    skipped: Vec<SkippedHandler>,
}

#[derive(Deserialize)]
struct SkippedHandler {
    extension: ExtensionId,
    handler: FunctionId,
    event: String,
}

fn take_batch_result(generation: &Generation, json: &str) {
    let result = match serde_json::from_str::<BatchResult>(json) {
        Ok(result) => result,
        Err(error) => return tracing::error!("what came of events cannot be read: {error}"),
    };
    add_tallies(generation, result.tallies);
    for SkippedHandler {
        extension,
        handler,
        event,
    } in result.skipped
    {
        let limit = generation.timeouts.for_event(&event);
        generation.watch_skipped(extension, PendingCall::Queued(handler), &event, limit);
    }
}

/// Durations of an extension's handlers in a batch, in milliseconds.
#[derive(Deserialize)]
struct HandlerTally {
    extension: ExtensionId,
    event: String,
    calls: u64,
    failures: u64,
    total: f64,
    slowest: f64,
}

fn add_tallies(generation: &Generation, tallies: Vec<HandlerTally>) {
    let duration =
        |milliseconds: f64| Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default();
    for sum in tallies {
        let tally = Tally {
            calls: sum.calls,
            failures: sum.failures,
            time: duration(sum.total),
            slowest: duration(sum.slowest),
        };
        generation.host.add_calls(sum.extension, &sum.event, tally);
    }
}

/// Shortest interval between two checks of the current handler.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A slow notice that the user sees.
struct ShownNotice<'a> {
    call: u64,
    wait: SlowNotice<'a>,
}

/// Shows a notice about the current handler if it has used half of its limit, and abandons
/// it if it has used all. Returns how long to wait before the next check, or `None` if the
/// isolate had to be stopped.
async fn check_deadline<'a>(
    generation: &'a Generation,
    notice: &mut Option<ShownNotice<'a>>,
    lost: Duration,
) -> Option<Duration> {
    let limit = generation.timeouts.handler;
    let queried = active_clock::timeout(limit, generation.call("currentHandler", &())).await;
    let current = match queried {
        Some(Ok(Some(json))) => serde_json::from_str::<CurrentHandler>(&json).ok(),
        Some(Ok(None)) => None,
        Some(Err(_)) => return None,
        None => {
            generation.stop_if_stuck(None, limit * 2).await;
            return (!generation.is_broken()).then_some(limit);
        }
    };
    // Between two handlers no extension is responsible.
    let Some(current) = current else {
        finish_notice(notice);
        return Some(limit / 2);
    };
    let limit = generation.timeouts.for_event(&current.event);
    let elapsed = Duration::from_secs_f64((current.elapsed / 1000.0).max(0.0));
    let waited = generation.host.queued_handler_wait(current.extension);
    let used = elapsed.saturating_sub(waited + lost);
    if notice
        .as_ref()
        .is_none_or(|notice| notice.call != current.call)
    {
        finish_notice(notice);
        if used >= limit / 2 {
            let host = &generation.host;
            let mut wait = host.slow_notice(current.extension, current.event.clone(), limit);
            wait.emit_start(used);
            let call = current.call;
            *notice = Some(ShownNotice { call, wait });
        }
    }
    if used < limit {
        let next = match notice {
            Some(_) => limit,
            None => limit / 2,
        };
        return Some(next.saturating_sub(used).max(MIN_POLL_INTERVAL));
    }
    if let Some(notice) = notice.take() {
        notice.wait.finish(WaitOutcome::Abandoned);
    }
    // An error means that the isolate is gone, and the handler with it.
    let left = generation.call("abandon", &current.call).await;
    if let Ok(Some(frame)) = left {
        let sentence = abandoned::timeout_message(limit);
        (generation.host).report_at(current.extension, &current.event, sentence, &frame);
    }
    Some(limit / 2)
}

fn finish_notice(notice: &mut Option<ShownNotice<'_>>) {
    if let Some(notice) = notice.take() {
        notice.wait.finish(WaitOutcome::Settled);
    }
}
