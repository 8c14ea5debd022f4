//! Who holds the thread that all extensions share. It is not the time of those who wait for
//! it; whoever keeps it to itself is named, and shown while the agent waits.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use js_runtime::{Author, Held, Share};
use parking_lot::Mutex;

use super::host::BridgeHost;
use super::patience::milliseconds;
use super::registry::ExtensionId;
use super::reports::Culprit;
use crate::agent::event::{Event, ExtensionWait, WaitEnd, WaitOutcome};

/// The user is told of an extension that has, of so much time, ...
const WINDOW: Duration = Duration::from_secs(10);
/// ... so much for itself.
const SHARE: Duration = Duration::from_secs(5);

/// What was told of who holds the thread is true for so long. It comes every 50 ms.
const FRESH: Duration = Duration::from_millis(300);

#[derive(Default)]
pub struct Holds(Mutex<Inner>);

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
    /// The stretch that the user sees.
    stretch: Option<Stretch>,
    windows: HashMap<ExtensionId, (Instant, Duration)>,
    named: HashSet<ExtensionId>,
}

struct Stretch {
    culprit: Culprit,
    begun: Instant,
    limit: Duration,
}

/// One of [`Holds`] counts until this is dropped.
pub struct Counted<'a> {
    holds: &'a Holds,
    extension: ExtensionId,
    of: fn(&mut Inner) -> &mut HashMap<ExtensionId, u32>,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut inner = self.holds.0.lock();
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
        *of(&mut self.0.lock()).entry(extension).or_default() += 1;
        Counted {
            holds: self,
            extension,
            of,
        }
    }

    /// The queue stands still for a handler of that extension; for none any more.
    pub fn queue(&self, extension: Option<ExtensionId>) {
        self.0.lock().queued = extension;
    }

    /// Whether it is the code of another extension that runs now.
    pub fn is_anothers(&self, extension: Option<ExtensionId>) -> bool {
        let inner = self.0.lock();
        let of = extension.or(inner.queued);
        (inner.latest).is_some_and(|(id, at)| Some(id) != of && at.elapsed() < FRESH)
    }

    fn is_called(&self, extension: ExtensionId) -> bool {
        self.0.lock().called.contains_key(&extension)
    }

    /// Its code has run for so long; tells whether that makes it too much, for the first time.
    /// As long as the user sees it run there is nothing to add.
    fn is_too_much(&self, extension: ExtensionId, time: Duration) -> bool {
        let mut inner = self.0.lock();
        let stretch = inner.stretch.as_ref();
        let is_seen = inner.shown.contains_key(&extension)
            || stretch.is_some_and(|stretch| stretch.culprit.extension == extension);
        let window = inner.windows.entry(extension);
        let window = window.or_insert((Instant::now(), Duration::ZERO));
        if window.0.elapsed() > WINDOW {
            *window = (Instant::now(), Duration::ZERO);
        }
        window.1 += time;
        !is_seen && window.1 > SHARE && inner.named.insert(extension)
    }

    /// Whether the user is to be told of a stretch of its code: it has had half of its time,
    /// or others are waited for that cannot run.
    fn is_news(&self, extension: ExtensionId, busy: Duration, limit: Duration) -> bool {
        let inner = self.0.lock();
        if inner.shown.contains_key(&extension) || inner.stretch.is_some() {
            return false;
        }
        let is_waited_for =
            inner.called.contains_key(&extension) || inner.queued == Some(extension);
        let others_wait = inner.called.keys().any(|id| *id != extension)
            || inner.queued.is_some_and(|id| id != extension);
        busy >= limit / 2 || (others_wait && !is_waited_for)
    }
}

impl BridgeHost {
    pub(super) fn take_held(&self, held: Held) {
        match held {
            Held::Time(shares) => {
                for Share { author, time } in shares {
                    self.charge_held(author, time);
                }
            }
            Held::Long {
                author,
                busy,
                limit,
            } => self.show_stretch(self.culprit(author), busy, limit),
            Held::Over => {
                if let Some(Culprit { extension, what }) = self.end_stretch(WaitOutcome::Settled) {
                    self.name_if_busy(extension, &what, Duration::ZERO);
                }
            }
        }
    }

    fn charge_held(&self, Author { id, what }: Author, time: Duration) {
        self.waits.hold(id, time);
        self.holds.0.lock().latest = Some((id, Instant::now()));
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

    fn show_stretch(&self, culprit: Culprit, busy: Duration, limit: Duration) {
        if !self.holds.is_news(culprit.extension, busy, limit) {
            return;
        }
        let now = Instant::now();
        let stretch = Stretch {
            culprit,
            begun: now.checked_sub(busy).unwrap_or(now),
            limit,
        };
        self.tell(Event::ExtensionWaitStart(self.wait_of(&stretch)));
        self.holds.0.lock().stretch = Some(stretch);
    }

    /// Gives whose it was, if the user sees one.
    pub(super) fn end_stretch(&self, outcome: WaitOutcome) -> Option<Culprit> {
        let stretch = self.holds.0.lock().stretch.take()?;
        let wait = self.wait_of(&stretch);
        self.tell(Event::ExtensionWaitEnd(WaitEnd { wait, outcome }));
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
        let is_news = |busy| holds.is_news(1, limit / busy, limit);
        assert!(is_news(2) && !is_news(3));
        let own = holds.call(1);
        assert!(!is_news(3));
        let other = holds.call(2);
        assert!(!is_news(3), "it is waited for itself");
        drop(own);
        assert!(is_news(3));
        drop(other);
        assert!(!is_news(3));
        holds.queue(Some(2));
        assert!(is_news(3));
        holds.queue(Some(1));
        assert!(!is_news(3) && is_news(2));
        let _shown = holds.show(1);
        assert!(!is_news(2));
    }
}
