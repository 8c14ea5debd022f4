//! Samples which extension's code occupies the JavaScript thread. The watchdog polls at intervals,
//! and the time since the last sample is attributed to the code that runs. Calls cost nothing this
//! way, and the result is right on average, because the samples are independent of the code.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use js_runtime_ext::{Author, Host, ThreadEvent, ThreadShare};

/// Time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum length of a gap, in intervals, after which a sample still counts for the whole gap.
const MAX_GAP: u32 = 5;

/// Samples without running code after which the watchdog sleeps until code runs.
const QUIET_SAMPLES: u32 = 5;

/// Samples without an answer of the thread after which native code is taken to run.
const UNANSWERED_SAMPLES: u32 = 4;

/// Length of a time slice that is reported as long.
const LONG_SLICE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct SampledUsage {
    /// Nanoseconds that are not attributed yet, because the interrupt has not run.
    unattributed: AtomicU64,
    /// Extension whose code was started last in this slice, plus one; 0 is none.
    last_started: AtomicU64,
    /// Whether `turn` may have entries.
    has_turn: AtomicBool,
    usage: Mutex<Usage>,
}

#[derive(Default)]
struct Usage {
    /// Usage that was not reported to the host yet.
    unreported: HashMap<u32, ThreadShare>,
    total: Duration,
    by_extension: HashMap<u32, Duration>,
    slice: SliceUsage,
    /// Usage since the event loop began its turn.
    turn: HashMap<u32, ThreadShare>,
}

/// Usage in the time slice `number`.
#[derive(Default)]
struct SliceUsage {
    number: u64,
    /// Author of the code that ran at the last sample.
    latest: Option<Author>,
    shares: HashMap<u32, ThreadShare>,
}

fn add(shares: &mut HashMap<u32, ThreadShare>, author: &Author, time: Duration) {
    let share = shares.entry(author.id).or_insert_with(|| ThreadShare {
        author: author.clone(),
        time: Duration::ZERO,
    });
    share.time += time;
    share.author.what.clone_from(&author.what);
}

impl SampledUsage {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds time in which JavaScript ran. Returns true if an interrupt must be requested; false
    /// means that one is pending.
    fn add_unattributed(&self, time: Duration) -> bool {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or_default();
        self.unattributed.fetch_add(nanoseconds, Ordering::Relaxed) == 0
    }

    /// Returns true if there is time to attribute. Cheap enough for every time slice.
    pub fn has_unattributed(&self) -> bool {
        self.unattributed.load(Ordering::Relaxed) != 0
    }

    /// Attributes the pending time to `author`. Without an author it is dropped.
    pub fn attribute(&self, slice: u64, author: Option<Author>) {
        let time = Duration::from_nanos(self.unattributed.swap(0, Ordering::Relaxed));
        let mut usage = self.usage();
        if usage.slice.number != slice {
            usage.slice = SliceUsage {
                number: slice,
                ..SliceUsage::default()
            };
        }
        if let Some(author) = &author {
            usage.total += time;
            *usage.by_extension.entry(author.id).or_default() += time;
            add(&mut usage.unreported, author, time);
            add(&mut usage.slice.shares, author, time);
            add(&mut usage.turn, author, time);
            self.has_turn.store(true, Ordering::Relaxed);
        }
        usage.slice.latest = author;
    }

    /// Clears the usage of the last turn. Cheap enough for every turn of the event loop.
    pub fn begin_turn(&self) {
        if self.has_turn.load(Ordering::Relaxed) {
            self.has_turn.store(false, Ordering::Relaxed);
            self.usage().turn.clear();
        }
    }

    /// Attributes the pending time to the extension whose code was started last, where the thread
    /// cannot be interrupted.
    pub fn attribute_to_last_started(&self, slice: u64) {
        self.attribute(slice, self.last_started());
    }

    pub fn note_started(&self, extension: Option<u32>) {
        let number = extension.map_or(0, |extension| u64::from(extension) + 1);
        self.last_started.store(number, Ordering::Relaxed);
    }

    fn last_started(&self) -> Option<Author> {
        let number = self.last_started.load(Ordering::Relaxed).checked_sub(1)?;
        // The activity is not known.
        let (id, what) = (u32::try_from(number).ok()?, String::new());
        Some(Author { id, what })
    }

    /// Returns how long all other extensions have occupied the thread.
    pub fn time_of_others(&self, extension: u32) -> Duration {
        let usage = self.usage();
        let own = usage
            .by_extension
            .get(&extension)
            .copied()
            .unwrap_or_default();
        usage.total.saturating_sub(own)
    }

    /// Returns the offender when a slice takes too long (`None`: a turn): the running author,
    /// unless another one has had more than twice as much of the time.
    pub fn offender(&self, slice: Option<u64>, running: Option<Author>) -> Option<Author> {
        let usage = self.usage();
        let of = match slice {
            Some(number) if number != usage.slice.number => return running,
            Some(_) => &usage.slice.shares,
            None => &usage.turn,
        };
        let own = running.as_ref().and_then(|running| of.get(&running.id));
        let own = own.map_or(Duration::ZERO, |share| share.time);
        match of.values().max_by_key(|share| share.time) {
            Some(most) if most.time > own * 2 => Some(most.author.clone()),
            _ => running,
        }
    }

    /// Returns the usage since the last call.
    fn take_unreported(&self) -> Vec<ThreadShare> {
        let mut usage = self.usage();
        usage.unreported.drain().map(|(_, share)| share).collect()
    }

    /// Returns the author whose code runs in a slice, as far as it is known.
    fn author(&self, slice: u64) -> Option<Author> {
        let usage = self.usage();
        let of = &usage.slice;
        of.latest.clone().filter(|_| of.number == slice)
    }
}

/// An uninterrupted run of JavaScript on the thread.
#[derive(Clone, Copy)]
pub(crate) struct TimeSlice {
    pub number: u64,
    /// Time since its start; `None` while it waits for the program, and if no code runs.
    pub busy: Option<Duration>,
    pub limit: Duration,
}

/// Decides when the watchdog samples, and remembers what was reported.
pub(crate) struct Sampler {
    /// Time of the last sample in nanoseconds.
    last_sample: Option<u64>,
    quiet_samples: u32,
    /// Consecutive samples that the thread has not answered.
    unanswered: u32,
    /// Slice that was reported as long.
    reported: Option<u64>,
}

impl Sampler {
    pub fn new() -> Self {
        Self {
            last_sample: None,
            quiet_samples: QUIET_SAMPLES,
            unanswered: 0,
            reported: None,
        }
    }

    /// Returns the time to sleep until the next sample, `None` until code runs.
    pub fn next_pause(&mut self, now: u64, runs: bool) -> Option<Duration> {
        if runs {
            self.quiet_samples = 0;
        } else if self.quiet_samples == QUIET_SAMPLES {
            self.last_sample = None;
            return None;
        } else {
            self.quiet_samples += 1;
        }
        let tick = u64::try_from(SAMPLE_INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        // The first sample comes at a random moment: otherwise short runs would never be sampled.
        let pause = match self.last_sample {
            Some(_) => tick,
            None => now % tick,
        };
        Some(Duration::from_nanos(pause))
    }

    /// Takes a sample of `slice`. Reports to the host, and returns true if the thread must be
    /// interrupted for attribution.
    pub fn sample(
        &mut self,
        now: u64,
        slice: TimeSlice,
        usage: &SampledUsage,
        host: &dyn Host,
    ) -> bool {
        let time = self.elapsed(now);
        let runs = self.report_slice(slice, usage, host);
        let shares = usage.take_unreported();
        if !shares.is_empty() {
            host.thread_event(ThreadEvent::Usage(shares));
        }
        if !runs || usage.add_unattributed(time) {
            self.unanswered = 0;
            return runs;
        }
        self.unanswered += 1;
        if self.unanswered >= UNANSWERED_SAMPLES {
            usage.attribute_to_last_started(slice.number);
        }
        false
    }

    /// Reports a long slice, or its end. Returns true if code runs.
    fn report_slice(&mut self, slice: TimeSlice, usage: &SampledUsage, host: &dyn Host) -> bool {
        let TimeSlice {
            number,
            busy,
            limit,
        } = slice;
        if self
            .reported
            .take_if(|reported| *reported != number)
            .is_some()
        {
            host.thread_event(ThreadEvent::SliceEnded);
        }
        let Some(busy) = busy else {
            return false;
        };
        let author = usage.author(number);
        let is_half = busy >= limit / 2;
        if self.reported.is_none() && (is_half || (busy >= LONG_SLICE && author.is_some())) {
            self.reported = Some(number);
            host.thread_event(ThreadEvent::LongSlice {
                author,
                busy,
                limit,
            });
        }
        true
    }

    /// Returns the time that a sample at `now` stands for.
    fn elapsed(&mut self, now: u64) -> Duration {
        let since = self.last_sample.replace(now);
        let since = since.map_or(SAMPLE_INTERVAL, |before| {
            Duration::from_nanos(now.saturating_sub(before))
        });
        if since > SAMPLE_INTERVAL * MAX_GAP {
            SAMPLE_INTERVAL
        } else {
            since
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::BoxFuture;
    use js_runtime_ext::{Console, Fault, HostError};

    use super::*;

    fn author(id: u32, what: &str) -> Option<Author> {
        let what = what.to_owned();
        Some(Author { id, what })
    }

    #[test]
    fn main_user_of_a_slice_is_the_offender() {
        let usage = SampledUsage::default();
        let ran_for = |slice, id, ticks| {
            usage.add_unattributed(SAMPLE_INTERVAL * ticks);
            usage.attribute(slice, author(id, "turn_end"));
        };
        ran_for(1, 7, 40);
        ran_for(1, 8, 2);
        let offender_of = |slice, running| {
            let running = author(running, "turn_end");
            usage.offender(slice, running).map(|author| author.id)
        };
        assert_eq!(offender_of(Some(1), 8), Some(7));
        ran_for(1, 8, 30);
        assert_eq!(offender_of(Some(1), 8), Some(8));
        assert_eq!(offender_of(Some(2), 9), Some(9), "nothing is known of it");
        let others = (usage.time_of_others(7), usage.time_of_others(8));
        assert_eq!(others, (SAMPLE_INTERVAL * 32, SAMPLE_INTERVAL * 40));
        ran_for(2, 9, 1);
        assert_eq!(
            (offender_of(Some(2), 9), offender_of(None, 9)),
            (Some(9), Some(7))
        );
        usage.begin_turn();
        assert_eq!(offender_of(None, 9), Some(9));
    }

    #[test]
    fn native_code_belongs_to_the_last_started_extension() {
        let (usage, host, mut sampler) =
            (SampledUsage::default(), Listener::default(), Sampler::new());
        let slice = TimeSlice {
            number: 1,
            busy: Some(SAMPLE_INTERVAL),
            limit: LONG_SLICE * 100,
        };
        usage.note_started(Some(7));
        assert!(sampler.sample(0, slice, &usage, &host));
        for _ in 0..UNANSWERED_SAMPLES {
            assert!(!sampler.sample(0, slice, &usage, &host));
        }
        assert_eq!(usage.author(1), author(7, ""));
        assert!(!usage.has_unattributed());
        usage.note_started(None);
        usage.add_unattributed(SAMPLE_INTERVAL);
        usage.attribute_to_last_started(1);
        assert_eq!(usage.author(1), None);
    }

    #[test]
    fn pending_time_goes_to_the_found_author() {
        let usage = SampledUsage::default();
        assert!(!usage.has_unattributed());
        assert!(usage.add_unattributed(SAMPLE_INTERVAL));
        assert!(
            !usage.add_unattributed(SAMPLE_INTERVAL),
            "an interrupt is pending"
        );
        usage.attribute(1, author(7, "turn_end"));
        assert!(!usage.has_unattributed());
        usage.add_unattributed(SAMPLE_INTERVAL);
        usage.attribute(1, None);
        assert_eq!(usage.author(1), None);
        usage.add_unattributed(SAMPLE_INTERVAL);
        usage.attribute(2, author(7, "input"));
        let known = (usage.author(1), usage.author(2));
        assert_eq!(known, (None, author(7, "input")));
        let share = ThreadShare {
            author: author(7, "input").unwrap(),
            time: SAMPLE_INTERVAL * 3,
        };
        assert_eq!(usage.take_unreported(), [share]);
        assert_eq!(usage.take_unreported(), []);
    }

    #[test]
    fn samples_cover_the_time_since_the_last_one() {
        let mut sampler = Sampler::new();
        let milliseconds = |number: u64| number * 1_000_000;
        assert_eq!(sampler.next_pause(milliseconds(5), false), None);
        let first = sampler.next_pause(milliseconds(105), true);
        assert_eq!(first, Some(Duration::from_millis(5)));
        assert_eq!(sampler.elapsed(milliseconds(110)), SAMPLE_INTERVAL);
        assert_eq!(
            sampler.next_pause(milliseconds(110), true),
            Some(SAMPLE_INTERVAL)
        );
        let late = Duration::from_millis(70);
        assert_eq!(sampler.elapsed(milliseconds(180)), late);
        assert_eq!(
            sampler.elapsed(milliseconds(9000)),
            SAMPLE_INTERVAL,
            "pi was stopped"
        );
        for _ in 0..QUIET_SAMPLES {
            assert_eq!(
                sampler.next_pause(milliseconds(9000), false),
                Some(SAMPLE_INTERVAL)
            );
        }
        assert_eq!(sampler.next_pause(milliseconds(9000), false), None);
    }

    #[derive(Default)]
    struct Listener(Mutex<Vec<ThreadEvent>>);

    impl Host for Listener {
        fn call_sync(&self, _method: &str, _args: &str) -> Result<String, HostError> {
            Ok(String::new())
        }

        fn call(
            self: std::sync::Arc<Self>,
            _method: String,
            _args: String,
        ) -> BoxFuture<'static, Result<String, HostError>> {
            Box::pin(async { Ok(String::new()) })
        }

        fn console(&self, _console: Console, _line: &str) {}

        fn fault(&self, _fault: Fault) {}

        fn thread_event(&self, event: ThreadEvent) {
            self.0.lock().unwrap().push(event);
        }
    }

    #[test]
    fn long_slice_and_its_end_are_reported() {
        let (usage, host, mut sampler) =
            (SampledUsage::default(), Listener::default(), Sampler::new());
        let limit = LONG_SLICE * 4;
        let mut sample = |number, busy: Option<Duration>| {
            let slice = TimeSlice {
                number,
                busy,
                limit,
            };
            sampler.sample(0, slice, &usage, &host);
            std::mem::take(&mut *host.0.lock().unwrap())
        };
        let long = |author, busy| ThreadEvent::LongSlice {
            author,
            busy,
            limit,
        };
        assert_eq!(sample(1, Some(LONG_SLICE)), [], "the author is not known");
        assert_eq!(
            sample(1, Some(LONG_SLICE * 2)),
            [long(None, LONG_SLICE * 2)]
        );
        assert_eq!(sample(2, Some(SAMPLE_INTERVAL)), [ThreadEvent::SliceEnded]);
        usage.attribute(2, author(7, "input"));
        // The usage is reported as well.
        assert_eq!(
            sample(2, Some(LONG_SLICE))[..1],
            [long(author(7, "input"), LONG_SLICE)]
        );
        assert_eq!(sample(2, Some(LONG_SLICE)), []);
        assert_eq!(sample(2, Some(LONG_SLICE * 3)), []);
        assert_eq!(sample(2, None), [], "it waits for the program");
        assert_eq!(sample(3, None), [ThreadEvent::SliceEnded]);
        assert_eq!(sample(3, None), []);
    }
}
