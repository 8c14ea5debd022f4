//! Who holds the thread that all extensions share. It is not the time of those who wait for
//! it; whoever keeps it to itself is named, and shown while the agent waits.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use js_runtime::{Author, Held, Share};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::slow_notice::milliseconds;
use crate::agent::event::{Event, ExtensionWait, WaitEnd, WaitOutcome};
use crate::extensions::bridge::BridgeHost;
use crate::extensions::lifecycle::reports::Culprit;
use crate::extensions::registry::ExtensionId;

/// The user is told of an extension that has, of so much time, ...
const WINDOW: Duration = Duration::from_secs(10);
/// ... so much for itself.
const SHARE: Duration = Duration::from_secs(5);

/// What was told of who holds the thread is true for so long. It comes every 50 ms.
const FRESH: Duration = Duration::from_millis(300);

#[derive(Default)]
pub struct Holds {
    inner: Mutex<Inner>,
    /// What was long is over.
    over: Notify,
}

#[derive(Default)]
struct Inner {
    /// How many calls of it are waited for.
    called: HashMap<ExtensionId, u32>,
    /// How many waits for it the user sees.
    shown: HashMap<ExtensionId, u32>,
    /// The queue stands still for its handler.
    queued: Option<ExtensionId>,
    /// Whose code ran last, as far as is known.
    latest: Option<(ExtensionId, Instant)>,
    /// The one that is long.
    stretch: Option<Stretch>,
    windows: HashMap<ExtensionId, (Instant, Duration)>,
    named: HashSet<ExtensionId>,
}

#[derive(Clone)]
struct Stretch {
    culprit: Culprit,
    begun: Instant,
    limit: Duration,
    /// By the user.
    is_seen: bool,
}

/// One of [`Holds`] counts until this is dropped.
pub struct Counted<'a> {
    holds: &'a Holds,
    extension: ExtensionId,
    of: fn(&mut Inner) -> &mut HashMap<ExtensionId, u32>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut inner = self.holds.inner.lock();
        let counts = (self.of)(&mut inner);
        if let Some(count) = counts.get_mut(&self.extension) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.extension);
            }
        }
    }
}

impl Holds {
    /// A call of it is waited for.
    pub fn call(&self, extension: ExtensionId) -> Counted<'_> {
        self.count(extension, |inner| &mut inner.called)
    }

    /// The user sees that the agent waits for it.
    pub fn show(&self, extension: ExtensionId) -> Counted<'_> {
        self.count(extension, |inner| &mut inner.shown)
    }

    fn count(
        &self,
        extension: ExtensionId,
        of: fn(&mut Inner) -> &mut HashMap<ExtensionId, u32>,
    ) -> Counted<'_> {
        *of(&mut self.inner.lock()).entry(extension).or_default() += 1;
        Counted {
            holds: self,
            extension,
            of,
        }
    }

    /// The queue stands still for a handler of that extension; for none any more.
    pub fn queue(&self, extension: Option<ExtensionId>) {
        self.inner.lock().queued = extension;
    }

    /// Whether it is the code of another extension that runs now.
    pub fn is_anothers(&self, extension: Option<ExtensionId>) -> bool {
        let inner = self.inner.lock();
        let of = extension.or(inner.queued);
        (inner.latest).is_some_and(|(id, at)| Some(id) != of && at.elapsed() < FRESH)
    }

    fn is_called(&self, extension: ExtensionId) -> bool {
        self.inner.lock().called.contains_key(&extension)
    }

    /// Its code has run for so long; tells whether that makes it too much, for the first time.
    /// As long as the user sees it run there is nothing to add.
    fn is_too_much(&self, extension: ExtensionId, time: Duration) -> bool {
        let mut inner = self.inner.lock();
        let is_seen = inner.shown.contains_key(&extension) || inner.sees(extension);
        let window = inner.windows.entry(extension);
        let window = window.or_insert((Instant::now(), Duration::ZERO));
        if window.0.elapsed() > WINDOW {
            *window = (Instant::now(), Duration::ZERO);
        }
        window.1 += time;
        !is_seen && window.1 > SHARE && inner.named.insert(extension)
    }

    /// Returns when the user sees no stretch of its code.
    pub async fn unseen(&self, extension: ExtensionId) {
        loop {
            let over = self.over.notified();
            if !self.inner.lock().sees(extension) {
                return;
            }
            over.await;
        }
    }

    /// The stretch that the user is to be told of from now on.
    fn news(&self) -> Option<Stretch> {
        let mut inner = self.inner.lock();
        let stretch = inner.stretch.as_ref()?;
        let is_news = !stretch.is_seen && inner.is_news(stretch);
        let stretch = inner.stretch.as_mut().filter(|_| is_news)?;
        stretch.is_seen = true;
        Some(stretch.clone())
    }
}

impl Inner {
    /// Whether the user sees that it is its code that runs.
    fn sees(&self, extension: ExtensionId) -> bool {
        let seen = self.stretch.as_ref().filter(|stretch| stretch.is_seen);
        seen.is_some_and(|stretch| stretch.culprit.extension == extension)
    }

    /// It has had half of its time, or others are waited for that cannot run.
    fn is_news(&self, stretch: &Stretch) -> bool {
        let Stretch { culprit, limit, .. } = stretch;
        let extension = culprit.extension;
        let is_called = self.called.contains_key(&extension);
        // A load has the same limit, and is shown when half of it is over.
        if self.shown.contains_key(&extension) || (is_called && culprit.what == "load") {
            return false;
        }
        let others_wait = self.called.keys().any(|id| *id != extension)
            || self.queued.is_some_and(|id| id != extension);
        let is_waited_for = is_called || self.queued == Some(extension);
        stretch.begun.elapsed() >= *limit / 2 || (others_wait && !is_waited_for)
    }
}

impl BridgeHost {
    pub(in crate::extensions) fn take_held(&self, held: Held) {
        match held {
            Held::Time(shares) => {
                // Who is shown is not named as well.
                self.show_stretch();
                for Share { author, time } in shares {
                    self.charge_held(author, time);
                }
            }
            Held::Long {
                author,
                busy,
                limit,
            } => {
                let now = Instant::now();
                self.holds.inner.lock().stretch = Some(Stretch {
                    culprit: self.culprit(author),
                    begun: now.checked_sub(busy).unwrap_or(now),
                    limit,
                    is_seen: false,
                });
                self.show_stretch();
            }
            Held::Over => {
                if let Some(Culprit { extension, what }) = self.end_stretch(WaitOutcome::Settled) {
                    self.name_if_busy(extension, &what, Duration::ZERO);
                }
            }
        }
    }

    fn charge_held(&self, Author { id, what }: Author, time: Duration) {
        self.waits.hold(id, time);
        self.holds.inner.lock().latest = Some((id, Instant::now()));
        self.charge_busy(id, time);
        self.name_if_busy(id, &what, time);
    }

    /// After its code has run for so long.
    fn name_if_busy(&self, extension: ExtensionId, what: &str, time: Duration) {
        // The user has begun these, and sees them.
        let begun = ["tool:", "shortcut:"];
        let is_expected = begun.iter().any(|begun| what.starts_with(begun))
            || ["load", "command"].contains(&what);
        if (is_expected && self.holds.is_called(extension))
            || !self.holds.is_too_much(extension, time)
        {
            return;
        }
        let since = match what {
            "" => String::new(),
            what => format!(", in what was begun in {what}"),
        };
        let (share, window) = (SHARE.as_secs(), WINDOW.as_secs());
        let text = format!(
            "It has held the thread that all extensions share for more than {share} of {window} \
             s{since}. Meanwhile the others cannot run, and the agent waits for those that it \
             asks. It should work in small pieces, or in a worker (node:worker_threads). This \
             is told once"
        );
        self.report(extension, "busy", text);
    }

    fn show_stretch(&self) {
        if let Some(stretch) = self.holds.news() {
            self.tell(Event::ExtensionWaitStart(self.wait_of(&stretch)));
        }
    }

    /// Gives whose it was, if there is one.
    pub(in crate::extensions) fn end_stretch(&self, outcome: WaitOutcome) -> Option<Culprit> {
        let stretch = self.holds.inner.lock().stretch.take()?;
        if stretch.is_seen {
            let wait = self.wait_of(&stretch);
            self.tell(Event::ExtensionWaitEnd(WaitEnd { wait, outcome }));
        }
        self.holds.over.notify_waiters();
        Some(stretch.culprit)
    }

    fn wait_of(&self, stretch: &Stretch) -> ExtensionWait {
        ExtensionWait {
            extension_path: self.registry.lock().path(stretch.culprit.extension),
            event: stretch.culprit.what.clone(),
            elapsed_ms: milliseconds(stretch.begun.elapsed()),
            limit_ms: milliseconds(stretch.limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_time_is_too_much_and_is_told_once() {
        let holds = Holds::default();
        assert!(!holds.is_too_much(1, SHARE));
        assert!(!holds.is_too_much(2, SHARE / 2));
        assert!(holds.is_too_much(1, Duration::from_millis(20)));
        assert!(!holds.is_too_much(1, Duration::from_millis(20)));
    }

    #[test]
    fn a_stretch_is_news_when_others_wait_or_half_of_its_time_is_over() {
        let (holds, limit) = (Holds::default(), Duration::from_secs(10));
        let is_news = |part| {
            let (extension, what) = (1, "turn_end".to_owned());
            let stretch = Stretch {
                culprit: Culprit { extension, what },
                begun: Instant::now().checked_sub(limit / part).unwrap(),
                limit,
                is_seen: false,
            };
            holds.inner.lock().stretch = Some(stretch);
            holds.news().is_some()
        };
        assert!(is_news(2) && !is_news(3));
        let own = holds.call(1);
        assert!(!is_news(3));
        let other = holds.call(2);
        assert!(!is_news(3), "it is waited for itself");
        drop(own);
        assert!(is_news(3) && holds.news().is_none(), "it is seen already");
        drop(other);
        assert!(!is_news(3));
        let later = holds.call(2);
        assert!(holds.news().is_some(), "it had begun before");
        drop(later);
        holds.queue(Some(2));
        assert!(is_news(3));
        holds.queue(Some(1));
        assert!(!is_news(3) && is_news(2));
        let _shown = holds.show(1);
        assert!(!is_news(2));
    }
}
