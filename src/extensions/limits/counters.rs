//! What each extension costs: how often it was called for what, how long that took,
//! and how often it failed. Kept by path, so that it outlives reloads and stops.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use crate::agent::event::ExtensionName;
use crate::extensions::diagnostics::error_context::name_of;

#[derive(Default)]
pub struct Ledger(Mutex<BTreeMap<String, Account>>);

#[derive(Clone, Debug, Default)]
struct Account {
    loads: u64,
    load: Duration,
    busy: Duration,
    events: BTreeMap<String, Tally>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub calls: u64,
    pub failures: u64,
    /// From the call to the answer, without what the user took to answer questions, and
    /// without the time in which another extension held the thread.
    pub time: Duration,
    pub slowest: Duration,
}

/// As a client gets it; times are milliseconds.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionStats {
    #[serde(flatten)]
    pub name: ExtensionName,
    pub path: String,
    pub loaded: bool,
    /// Why it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How often it was loaded, and how long that took the last time.
    pub loads: u64,
    pub load_ms: f64,
    pub calls: u64,
    pub failures: u64,
    pub total_ms: f64,
    /// How long its code has held the thread that all extensions share, wherever it ran, as
    /// far as looking twenty times a second tells.
    pub busy_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
    /// What of V8's heap would go with it, in bytes. Absent unless it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_bytes: Option<usize>,
    /// By event, `command` or `tool:<name>`.
    pub events: BTreeMap<String, EventStats>,
}

#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Slowest {
    pub event: String,
    pub ms: f64,
}

#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventStats {
    pub calls: u64,
    pub failures: u64,
    pub total_ms: f64,
    pub slowest_ms: f64,
}

impl Ledger {
    pub fn loaded(&self, path: &str, took: Duration) {
        let mut accounts = self.0.lock();
        let account = accounts.entry(path.to_string()).or_default();
        account.loads += 1;
        account.load = took;
    }

    /// Its code has had the thread.
    pub fn held(&self, path: &str, time: Duration) {
        let mut accounts = self.0.lock();
        match accounts.get_mut(path) {
            Some(account) => account.busy += time,
            None => accounts.entry(path.to_string()).or_default().busy = time,
        }
    }

    pub fn called(&self, path: String, event: &str, tally: Tally) {
        let mut accounts = self.0.lock();
        let events = &mut accounts.entry(path).or_default().events;
        if !events.contains_key(event) {
            events.insert(event.to_string(), Tally::default());
        }
        if let Some(sum) = events.get_mut(event) {
            sum.calls += tally.calls;
            sum.failures += tally.failures;
            sum.time += tally.time;
            sum.slowest = sum.slowest.max(tally.slowest);
        }
    }

    /// What the extension at `path` took to load the last time, in milliseconds.
    pub fn load_ms(&self, path: &str) -> f64 {
        let accounts = self.0.lock();
        accounts.get(path).map_or(0.0, |it| milliseconds(it.load))
    }

    /// Of the extension at `path`, which is there if there is no error.
    pub fn stats(&self, path: &str, error: Option<String>) -> ExtensionStats {
        let account = self.0.lock().get(path).cloned().unwrap_or_default();
        let tallies = account.events.values();
        let slowest = account.events.iter().max_by_key(|(_, tally)| tally.slowest);
        ExtensionStats {
            name: name_of(path.as_ref()),
            path: path.to_string(),
            loaded: error.is_none(),
            error,
            loads: account.loads,
            load_ms: milliseconds(account.load),
            calls: tallies.clone().map(|tally| tally.calls).sum(),
            failures: tallies.clone().map(|tally| tally.failures).sum(),
            total_ms: milliseconds(tallies.map(|tally| tally.time).sum()),
            busy_ms: milliseconds(account.busy),
            slowest: slowest.map(|(event, tally)| Slowest {
                event: event.clone(),
                ms: milliseconds(tally.slowest),
            }),
            heap_bytes: None,
            events: account
                .events
                .iter()
                .map(|(event, tally)| {
                    let stats = EventStats {
                        calls: tally.calls,
                        failures: tally.failures,
                        total_ms: milliseconds(tally.time),
                        slowest_ms: milliseconds(tally.slowest),
                    };
                    (event.clone(), stats)
                })
                .collect(),
        }
    }
}

/// With three digits behind the point.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_and_the_slowest_is_named() {
        let ledger = Ledger::default();
        let tally = |milliseconds, failures| Tally {
            calls: 1,
            failures,
            time: Duration::from_millis(milliseconds),
            slowest: Duration::from_millis(milliseconds),
        };
        ledger.loaded("/a.ts", Duration::from_micros(1500));
        ledger.called("/a.ts".into(), "input", tally(2, 0));
        ledger.called("/a.ts".into(), "input", tally(6, 1));
        ledger.called("/a.ts".into(), "tool:x", tally(7, 0));
        ledger.held("/a.ts", Duration::from_millis(3));
        ledger.held("/a.ts", Duration::from_millis(4));
        let stats = ledger.stats("/a.ts", None);
        assert_eq!(stats.busy_ms, 7.0);
        assert_eq!((stats.calls, stats.failures, stats.total_ms), (3, 1, 15.0));
        assert_eq!((stats.loads, stats.load_ms), (1, 1.5));
        let (event, ms) = ("tool:x".to_string(), 7.0);
        assert_eq!(stats.slowest, Some(Slowest { event, ms }));
        let input = EventStats {
            calls: 2,
            failures: 1,
            total_ms: 8.0,
            slowest_ms: 6.0,
        };
        assert_eq!(stats.events["input"], input);
        assert_eq!(ledger.stats("/b.ts", None).calls, 0);
    }
}
