//! Settings of extensions: where they run, time limits and memory limits.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Where extensions run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtensionHost {
    /// On a thread of the program.
    #[default]
    Thread,
    /// In a process of their own, which may crash.
    Process,
}

/// Time limits of extensions. These settings do not exist in the original, which has no limits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExtensionTimeouts {
    /// Limit for a handler to settle.
    #[serde(deserialize_with = "milliseconds")]
    pub handler: Duration,
    /// Limit for a module and its factory to load.
    #[serde(deserialize_with = "milliseconds")]
    pub load: Duration,
    /// Limit for JavaScript to run without returning to the event loop.
    #[serde(deserialize_with = "milliseconds")]
    pub spin: Duration,
    /// Limit for `session_shutdown` handlers.
    #[serde(deserialize_with = "milliseconds")]
    pub shutdown: Duration,
    /// Limit for a tool; `None` leaves that to the user.
    #[serde(deserialize_with = "some_milliseconds")]
    pub tool: Option<Duration>,
    /// Limit for a command; `None` leaves that to the user.
    #[serde(deserialize_with = "some_milliseconds")]
    pub command: Option<Duration>,
    /// Limits for handlers of single events, which replace `handler` and `shutdown`.
    #[serde(deserialize_with = "milliseconds_by_name")]
    pub events: Arc<BTreeMap<String, Duration>>,
}

impl ExtensionTimeouts {
    /// Returns the limit for a handler of this event.
    pub fn for_event(&self, event: &str) -> Duration {
        self.events.get(event).copied().unwrap_or(self.handler)
    }

    /// Returns the shortest limit of any handler.
    pub fn shortest(&self) -> Duration {
        let all = self.events.values().copied();
        all.chain([self.handler]).min().unwrap_or(self.handler)
    }
}

impl Default for ExtensionTimeouts {
    fn default() -> Self {
        Self {
            handler: Duration::from_secs(30),
            load: Duration::from_secs(60),
            spin: Duration::from_secs(10),
            shutdown: Duration::from_secs(5),
            tool: None,
            command: None,
            events: Arc::default(),
        }
    }
}

fn some_milliseconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    milliseconds(deserializer).map(Some)
}

fn milliseconds_by_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<BTreeMap<String, Duration>>, D::Error> {
    let values = BTreeMap::<String, NonZeroU64>::deserialize(deserializer)
        .map_err(|error| D::Error::custom(name_milliseconds(error)))?;
    let limits = values
        .into_iter()
        .map(|(name, value)| (name, Duration::from_millis(value.get())));
    Ok(Arc::new(limits.collect()))
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let value = NonZeroU64::deserialize(deserializer)
        .map_err(|error| D::Error::custom(name_milliseconds(error)))?;
    Ok(Duration::from_millis(value.get()))
}

/// Replaces serde's message, which names a Rust type.
fn name_milliseconds(error: impl ToString) -> String {
    error.to_string().replace(
        "a nonzero u64",
        "a whole number of milliseconds, at least 1",
    )
}

/// Heap in MiB that all extensions of a session share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct HeapMb(u64);

impl HeapMb {
    /// V8 fails to start with less.
    const MIN: u64 = 64;

    pub fn get(self) -> u64 {
        self.0
    }
}

impl Default for HeapMb {
    fn default() -> Self {
        Self(512)
    }
}

impl TryFrom<u64> for HeapMb {
    type Error = String;

    fn try_from(value: u64) -> Result<Self, String> {
        if value < Self::MIN {
            return Err(format!("expected at least {} (MiB)", Self::MIN));
        }
        Ok(Self(value))
    }
}
