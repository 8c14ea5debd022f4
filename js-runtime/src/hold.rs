//! Whose code holds the thread of JavaScript. The watchdog looks now and then, and whoever
//! runs at that moment is charged with the time since the look before. That costs calls
//! nothing, and is right in the long run: the moments have nothing to do with what runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use js_runtime_ext::{Author, Held, Host, Share, note_held};

/// Between two looks.
const TICK: Duration = Duration::from_millis(50);

/// One that came later than so many of them says nothing of the time before.
const LATEST: u32 = 5;

/// So many looks without anything that runs, and the watchdog sleeps until something does.
const IDLE: u32 = 5;

/// Without giving the thread back.
const LONG: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct Holds {
    /// Nanoseconds that nobody is charged with yet: JavaScript has not been asked whose code
    /// it is.
    owed: AtomicU64,
    shares: Mutex<Shares>,
}

#[derive(Default)]
struct Shares {
    by: HashMap<u32, Share>,
    /// Of the stretch with that number: whose code ran when it was looked at last.
    latest: Option<(u64, Option<Author>)>,
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

    /// On the thread of JavaScript: it was this one's code. Nobody is charged with what is
    /// nobody's.
    pub fn charge(&self, stretch: u64, author: Option<Author>) {
        let time = Duration::from_nanos(self.owed.swap(0, Ordering::Relaxed));
        let mut shares = self.shares();
        if let Some(author) = &author {
            note_held(author.id, time);
            let share = shares.by.entry(author.id).or_insert_with(|| Share {
                author: author.clone(),
                time: Duration::ZERO,
            });
            share.time += time;
            share.author.what.clone_from(&author.what);
        }
        shares.latest = Some((stretch, author));
    }

    /// What there is to tell since this was asked last.
    fn take(&self) -> Vec<Share> {
        let mut shares = self.shares();
        shares.by.drain().map(|(_, share)| share).collect()
    }

    /// Whose code runs in that stretch, as far as is known.
    fn author(&self, stretch: u64) -> Option<Author> {
        let shares = self.shares();
        let (of, author) = shares.latest.as_ref()?;
        author.clone().filter(|_| *of == stretch)
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
    /// The stretch that is told to be long, and that half of its limit was.
    told: Option<(u64, bool)>,
}

impl Looks {
    pub fn new() -> Self {
        Self {
            before: None,
            idle: IDLE,
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
        runs && holds.owe(time)
    }

    /// Whether it runs.
    fn tell_stretch(&mut self, stretch: Stretch, holds: &Holds, host: &dyn Host) -> bool {
        let Stretch {
            number,
            busy,
            limit,
        } = stretch;
        if self.told.take_if(|told| told.0 != number).is_some() {
            host.held(Held::Over);
        }
        let Some(busy) = busy else {
            return false;
        };
        let author = holds.author(number);
        let (was_told, of_half) = match self.told {
            Some((_, half)) => (true, half),
            None => (false, false),
        };
        let is_half = busy >= limit / 2;
        // Native code does not say whose it is.
        let is_known = author.is_some() || is_half;
        if (is_half && !of_half) || (!was_told && is_known && busy >= LONG) {
            self.told = Some((number, is_half));
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
    fn a_long_stretch_is_told_twice_and_that_it_is_over() {
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
        let half = long(author(7, "input"), LONG * 3);
        assert_eq!(look(2, Some(LONG * 3)), [half]);
        assert_eq!(look(2, Some(LONG * 3)), []);
        assert_eq!(look(2, None), [], "it waits for the program");
        assert_eq!(look(3, None), [Held::Over]);
        assert_eq!(look(3, None), []);
    }
}
