//! Whose code holds the thread of JavaScript. The watchdog looks now and then, and whoever
//! runs at that moment is charged with the time since the look before. That costs calls
//! nothing, and is right in the long run: the moments have nothing to do with what runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use js_runtime_ext::{Author, Held, Host, Share};

/// Between two looks.
const TICK: Duration = Duration::from_millis(50);

/// One that came later than so many of them says nothing of the time before.
const LATEST: u32 = 5;

/// So many looks without anything that runs, and the watchdog sleeps until something does.
const IDLE: u32 = 5;

/// So many looks that the thread has not answered, and native code runs.
const SILENT: u32 = 4;

/// Without giving the thread back.
const LONG: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Holds {
    /// Nanoseconds that nobody is charged with yet: JavaScript has not been asked whose code
    /// it is.
    owed: AtomicU64,
    /// Whose code was begun last in this stretch, counted from 1.
    begun: AtomicU64,
    /// Something is known of this turn.
    has_turn: AtomicBool,
    shares: Mutex<Shares>,
}

#[derive(Default)]
struct Shares {
    /// What there is to tell.
    news: HashMap<u32, Share>,
    all: Duration,
    by: HashMap<u32, Duration>,
    stretch: Of,
    /// Since the event loop has had its turn.
    turn: HashMap<u32, Share>,
}

/// What is known of the stretch with that number.
#[derive(Default)]
struct Of {
    number: u64,
    /// Whose code ran when it was looked at last.
    latest: Option<Author>,
    shares: HashMap<u32, Share>,
}

fn add(shares: &mut HashMap<u32, Share>, author: &Author, time: Duration) {
    let share = shares.entry(author.id).or_insert_with(|| Share {
        author: author.clone(),
        time: Duration::ZERO,
    });
    share.time += time;
    share.author.what.clone_from(&author.what);
}

impl Holds {
    fn shares(&self) -> MutexGuard<'_, Shares> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// JavaScript has run for so long. Tells whether it has to be asked whose code it was;
    /// if not, it has been asked and has not answered.
    fn owe(&self, time: Duration) -> bool {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or_default();
        self.owed.fetch_add(nanoseconds, Ordering::Relaxed) == 0
    }

    /// Cheap enough for every stretch of JavaScript.
    pub fn owes(&self) -> bool {
        self.owed.load(Ordering::Relaxed) != 0
    }

    /// It was this one's code. Nobody is charged with what is nobody's.
    pub fn charge(&self, stretch: u64, author: Option<Author>) {
        let time = Duration::from_nanos(self.owed.swap(0, Ordering::Relaxed));
        let mut shares = self.shares();
        if shares.stretch.number != stretch {
            shares.stretch = Of {
                number: stretch,
                ..Of::default()
            };
        }
        if let Some(author) = &author {
            shares.all += time;
            *shares.by.entry(author.id).or_default() += time;
            add(&mut shares.news, author, time);
            add(&mut shares.stretch.shares, author, time);
            add(&mut shares.turn, author, time);
            self.has_turn.store(true, Ordering::Relaxed);
        }
        shares.stretch.latest = author;
    }

    /// Cheap enough for every turn of the event loop.
    pub fn begin_turn(&self) {
        if self.has_turn.load(Ordering::Relaxed) {
            self.has_turn.store(false, Ordering::Relaxed);
            self.shares().turn.clear();
        }
    }

    /// The same where the thread cannot be asked: it was the code of whoever was begun last.
    pub fn charge_begun(&self, stretch: u64) {
        self.charge(stretch, self.begun());
    }

    pub fn begin(&self, extension: Option<u32>) {
        let number = extension.map_or(0, |extension| u64::from(extension) + 1);
        self.begun.store(number, Ordering::Relaxed);
    }

    fn begun(&self) -> Option<Author> {
        let number = self.begun.load(Ordering::Relaxed).checked_sub(1)?;
        // What for is not known.
        let (id, what) = (u32::try_from(number).ok()?, String::new());
        Some(Author { id, what })
    }

    /// How long all others have had the thread.
    pub fn by_others(&self, extension: u32) -> Duration {
        let shares = self.shares();
        let own = shares.by.get(&extension).copied().unwrap_or_default();
        shares.all.saturating_sub(own)
    }

    /// Whose fault it is that a stretch takes too long, or else the turn: of whoever runs at
    /// the end, unless another one has had most of it.
    pub fn culprit(&self, stretch: Option<u64>, running: Option<Author>) -> Option<Author> {
        let shares = self.shares();
        let of = match stretch {
            Some(number) if number != shares.stretch.number => return running,
            Some(_) => &shares.stretch.shares,
            None => &shares.turn,
        };
        let own = running.as_ref().and_then(|running| of.get(&running.id));
        let own = own.map_or(Duration::ZERO, |share| share.time);
        match of.values().max_by_key(|share| share.time) {
            Some(most) if most.time > own * 2 => Some(most.author.clone()),
            _ => running,
        }
    }

    /// What there is to tell since this was asked last.
    fn take(&self) -> Vec<Share> {
        let mut shares = self.shares();
        shares.news.drain().map(|(_, share)| share).collect()
    }

    /// Whose code runs in that stretch, as far as is known.
    fn author(&self, stretch: u64) -> Option<Author> {
        let shares = self.shares();
        let of = &shares.stretch;
        of.latest.clone().filter(|_| of.number == stretch)
    }
}

/// JavaScript that runs, between one moment at which the thread is given to it and the next.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    pub number: u64,
    /// `None` while it waits for the program, and if nothing runs.
    pub busy: Option<Duration>,
    pub limit: Duration,
}

/// When the watchdog looks, and what it has told.
pub(crate) struct Looks {
    /// The look before; nanoseconds.
    before: Option<u64>,
    idle: u32,
    /// How often the thread was looked at and had not answered.
    silent: u32,
    /// The stretch that is told to be long.
    told: Option<u64>,
}

impl Looks {
    pub fn new() -> Self {
        Self {
            before: None,
            idle: IDLE,
            silent: 0,
            told: None,
        }
    }

    /// How long to sleep until the next look, `None` until something runs.
    pub fn pause(&mut self, now: u64, runs: bool) -> Option<Duration> {
        if runs {
            self.idle = 0;
        } else if self.idle == IDLE {
            self.before = None;
            return None;
        } else {
            self.idle += 1;
        }
        let tick = u64::try_from(TICK.as_nanos()).unwrap_or(u64::MAX);
        // The first comes at any moment: what begins and is soon over would otherwise never
        // be seen.
        let pause = match self.before {
            Some(_) => tick,
            None => now % tick,
        };
        Some(Duration::from_nanos(pause))
    }

    /// It is looked, at what runs. Tells the host what there is to tell, and whether the
    /// thread is to be asked whose code it is.
    pub fn look(&mut self, now: u64, stretch: Stretch, holds: &Holds, host: &dyn Host) -> bool {
        let time = self.time(now);
        let runs = self.tell_stretch(stretch, holds, host);
        let shares = holds.take();
        if !shares.is_empty() {
            host.held(Held::Time(shares));
        }
        if !runs || holds.owe(time) {
            self.silent = 0;
            return runs;
        }
        self.silent += 1;
        if self.silent >= SILENT {
            holds.charge_begun(stretch.number);
        }
        false
    }

    /// Whether it runs.
    fn tell_stretch(&mut self, stretch: Stretch, holds: &Holds, host: &dyn Host) -> bool {
        let Stretch {
            number,
            busy,
            limit,
        } = stretch;
        if self.told.take_if(|told| *told != number).is_some() {
            host.held(Held::Over);
        }
        let Some(busy) = busy else {
            return false;
        };
        let author = holds.author(number);
        let is_half = busy >= limit / 2;
        if self.told.is_none() && (is_half || (busy >= LONG && author.is_some())) {
            self.told = Some(number);
            host.held(Held::Long {
                author,
                busy,
                limit,
            });
        }
        true
    }

    /// What a look at this moment stands for.
    fn time(&mut self, now: u64) -> Duration {
        let since = self.before.replace(now);
        let since = since.map_or(TICK, |before| {
            Duration::from_nanos(now.saturating_sub(before))
        });
        if since > TICK * LATEST { TICK } else { since }
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
    fn who_has_had_most_of_a_stretch_is_to_blame() {
        let holds = Holds::default();
        let had = |stretch, id, ticks| {
            holds.owe(TICK * ticks);
            holds.charge(stretch, author(id, "turn_end"));
        };
        had(1, 7, 40);
        had(1, 8, 2);
        let blamed = |stretch, running| {
            let running = author(running, "turn_end");
            holds.culprit(stretch, running).map(|author| author.id)
        };
        assert_eq!(blamed(Some(1), 8), Some(7));
        had(1, 8, 30);
        assert_eq!(blamed(Some(1), 8), Some(8));
        assert_eq!(blamed(Some(2), 9), Some(9), "nothing is known of it");
        let others = (holds.by_others(7), holds.by_others(8));
        assert_eq!(others, (TICK * 32, TICK * 40));
        had(2, 9, 1);
        assert_eq!((blamed(Some(2), 9), blamed(None, 9)), (Some(9), Some(7)));
        holds.begin_turn();
        assert_eq!(blamed(None, 9), Some(9));
    }

    #[test]
    fn native_code_is_that_of_whoever_was_begun() {
        let (holds, host, mut looks) = (Holds::default(), Listener::default(), Looks::new());
        let stretch = Stretch {
            number: 1,
            busy: Some(TICK),
            limit: LONG * 100,
        };
        holds.begin(Some(7));
        assert!(looks.look(0, stretch, &holds, &host));
        for _ in 0..SILENT {
            assert!(!looks.look(0, stretch, &holds, &host));
        }
        assert_eq!(holds.author(1), author(7, ""));
        assert!(!holds.owes());
        holds.begin(None);
        holds.owe(TICK);
        holds.charge_begun(1);
        assert_eq!(holds.author(1), None);
    }

    #[test]
    fn who_is_found_is_charged_with_what_is_owed() {
        let holds = Holds::default();
        assert!(!holds.owes());
        assert!(holds.owe(TICK));
        assert!(!holds.owe(TICK), "it has been asked already");
        holds.charge(1, author(7, "turn_end"));
        assert!(!holds.owes());
        holds.owe(TICK);
        holds.charge(1, None);
        assert_eq!(holds.author(1), None);
        holds.owe(TICK);
        holds.charge(2, author(7, "input"));
        let known = (holds.author(1), holds.author(2));
        assert_eq!(known, (None, author(7, "input")));
        let share = Share {
            author: author(7, "input").unwrap(),
            time: TICK * 3,
        };
        assert_eq!(holds.take(), [share]);
        assert_eq!(holds.take(), []);
    }

    #[test]
    fn looks_stand_for_the_time_since_the_one_before() {
        let mut looks = Looks::new();
        let milliseconds = |number: u64| number * 1_000_000;
        assert_eq!(looks.pause(milliseconds(5), false), None);
        let first = looks.pause(milliseconds(105), true);
        assert_eq!(first, Some(Duration::from_millis(5)));
        assert_eq!(looks.time(milliseconds(110)), TICK);
        assert_eq!(looks.pause(milliseconds(110), true), Some(TICK));
        let late = Duration::from_millis(70);
        assert_eq!(looks.time(milliseconds(180)), late);
        assert_eq!(looks.time(milliseconds(9000)), TICK, "pi was stopped");
        for _ in 0..IDLE {
            assert_eq!(looks.pause(milliseconds(9000), false), Some(TICK));
        }
        assert_eq!(looks.pause(milliseconds(9000), false), None);
    }

    #[derive(Default)]
    struct Listener(Mutex<Vec<Held>>);

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

        fn held(&self, held: Held) {
            self.0.lock().unwrap().push(held);
        }
    }

    #[test]
    fn a_long_stretch_is_told_and_that_it_is_over() {
        let (holds, host, mut looks) = (Holds::default(), Listener::default(), Looks::new());
        let limit = LONG * 4;
        let mut look = |number, busy: Option<Duration>| {
            let stretch = Stretch {
                number,
                busy,
                limit,
            };
            looks.look(0, stretch, &holds, &host);
            std::mem::take(&mut *host.0.lock().unwrap())
        };
        let long = |author, busy| Held::Long {
            author,
            busy,
            limit,
        };
        assert_eq!(look(1, Some(LONG)), [], "whose it is is not known");
        assert_eq!(look(1, Some(LONG * 2)), [long(None, LONG * 2)]);
        assert_eq!(look(2, Some(TICK)), [Held::Over]);
        holds.charge(2, author(7, "input"));
        // The share, too.
        assert_eq!(look(2, Some(LONG))[..1], [long(author(7, "input"), LONG)]);
        assert_eq!(look(2, Some(LONG)), []);
        assert_eq!(look(2, Some(LONG * 3)), []);
        assert_eq!(look(2, None), [], "it waits for the program");
        assert_eq!(look(3, None), [Held::Over]);
        assert_eq!(look(3, None), []);
    }
}
