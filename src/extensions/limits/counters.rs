//! Counters per extension: calls, failures and durations by event. The key is the path, so
//! that counters outlive reloads and stops.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use crate::diagnostics::error_context::extension_name;
use pi_agent::event::ExtensionName;

#[derive(Default)]
pub struct ExtensionCounters(Mutex<BTreeMap<String, Counters>>);

#[derive(Clone, Debug, Default)]
struct Counters {
    loads: u64,
    load: Duration,
    busy: Duration,
    events: BTreeMap<String, Tally>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub calls: u64,
    pub failures: u64,
    /// From the call to the result, without the time in which the extension waited for the
    /// user or for the thread.
    pub time: Duration,
    pub slowest: Duration,
}

/// Statistics as a client gets them; times are milliseconds.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionStats {
    #[serde(flatten)]
    pub name: ExtensionName,
    pub path: String,
    pub loaded: bool,
    /// Why the extension is not loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of loads; `loadMs` is the duration of the last one.
    pub loads: u64,
    pub load_ms: f64,
    pub calls: u64,
    pub failures: u64,
    pub total_ms: f64,
    /// Time on the JavaScript thread that all extensions share, sampled twenty times a
    /// second.
    pub busy_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Slowest>,
    /// Bytes of V8's heap that only this extension keeps alive. Absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap_bytes: Option<usize>,
    /// By event, `command` or `tool:<name>`.
    pub events: BTreeMap<String, EventStats>,
}

#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slowest {
    pub event: String,
    pub ms: f64,
}

#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EventStats {
    pub calls: u64,
    pub failures: u64,
    pub total_ms: f64,
    pub slowest_ms: f64,
}

impl ExtensionCounters {
    pub fn add_load(&self, path: &str, took: Duration) {
        let mut accounts = self.0.lock();
        let account = accounts.entry(path.to_string()).or_default();
        account.loads += 1;
        account.load = took;
    }

    /// Adds time on the JavaScript thread.
    pub fn add_busy(&self, path: &str, time: Duration) {
        let mut accounts = self.0.lock();
        match accounts.get_mut(path) {
            Some(account) => account.busy += time,
            None => accounts.entry(path.to_string()).or_default().busy = time,
        }
    }

    pub fn add_calls(&self, path: String, event: &str, tally: Tally) {
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

    /// Returns how long the last load of the extension at `path` took, in milliseconds.
    pub fn load_ms(&self, path: &str) -> f64 {
        let accounts = self.0.lock();
        accounts.get(path).map_or(0.0, |it| milliseconds(it.load))
    }

    /// Returns the statistics of the extension at `path`, which is loaded if `error` is
    /// `None`.
    pub fn stats(&self, path: &str, error: Option<String>) -> ExtensionStats {
        let account = self.0.lock().get(path).cloned().unwrap_or_default();
        let tallies = account.events.values();
        let slowest = account.events.iter().max_by_key(|(_, tally)| tally.slowest);
        ExtensionStats {
            name: extension_name(path.as_ref()),
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

/// Converts to milliseconds with three decimals.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up_and_slowest_is_named() {
        let counters = ExtensionCounters::default();
        let tally = |milliseconds, failures| Tally {
            calls: 1,
            failures,
            time: Duration::from_millis(milliseconds),
            slowest: Duration::from_millis(milliseconds),
        };
        counters.add_load("/a.ts", Duration::from_micros(1500));
        counters.add_calls("/a.ts".into(), "input", tally(2, 0));
        counters.add_calls("/a.ts".into(), "input", tally(6, 1));
        counters.add_calls("/a.ts".into(), "tool:x", tally(7, 0));
        counters.add_busy("/a.ts", Duration::from_millis(3));
        counters.add_busy("/a.ts", Duration::from_millis(4));
        let stats = counters.stats("/a.ts", None);
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
        assert_eq!(counters.stats("/b.ts", None).calls, 0);
    }
}
