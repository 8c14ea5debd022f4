//! The contents of an event, in the form in which its emitter has them.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::queue::QueuedEvent;
use super::table::{EventKind, Merge};
use pi_agent::event::MessageUpdate;

pub enum EventBody {
    /// All members but `type`.
    Members(Map<String, Value>),
    /// JSON with the `type`.
    Json {
        json: serde_json::Result<Box<RawValue>>,
        /// Whether pi takes changes of handlers, if the row of the event allows them.
        takes_changes: bool,
    },
    Update(Box<MessageUpdate>),
}

impl EventBody {
    /// Makes the body of an event that serializes with its `type`.
    pub fn json(event: &impl Serialize) -> Self {
        Self::Json {
            json: to_raw_value(event),
            takes_changes: true,
        }
    }

    /// Like [`Self::json`], for an event whose changes pi ignores because a later event
    /// replaces its contents.
    pub fn preliminary(event: &impl Serialize) -> Self {
        Self::Json {
            json: to_raw_value(event),
            takes_changes: false,
        }
    }

    /// Returns whether the bridge reports changes or proposals of handlers of this event.
    pub(crate) fn takes_changes(&self, kind: &EventKind) -> bool {
        let ignores = matches!(
            self,
            Self::Update(_)
                | Self::Json {
                    takes_changes: false,
                    ..
                }
        );
        !ignores && (matches!(kind.merge, Merge::Propose) || !kind.mutable.is_empty())
    }

    /// Returns the event for the queue. An event that cannot be serialized is logged.
    pub(crate) fn into_queued(self, name: &str) -> Option<QueuedEvent> {
        let json = match self {
            Self::Update(update) => return Some(QueuedEvent::Update(update)),
            Self::Json { json, .. } => json,
            Self::Members(mut members) => {
                members.shift_insert(0, "type".into(), name.into());
                to_raw_value(&members)
            }
        };
        json.map(QueuedEvent::Event)
            .inspect_err(|error| tracing::error!("{name} cannot be sent to extensions: {error}"))
            .ok()
    }

    /// Returns the members, for handlers that are called one by one.
    pub(crate) fn into_members(self) -> Map<String, Value> {
        let value = match self {
            Self::Members(members) => return members,
            Self::Json { json, .. } => json.and_then(|json| serde_json::from_str(json.get())),
            Self::Update(update) => serde_json::to_value(update),
        };
        match value {
            Ok(Value::Object(members)) => members,
            Ok(_) => Map::new(),
            Err(error) => {
                tracing::error!("an event cannot be sent to extensions: {error}");
                Map::new()
            }
        }
    }
}

impl From<Map<String, Value>> for EventBody {
    fn from(members: Map<String, Value>) -> Self {
        Self::Members(members)
    }
}

/// Takes the members of an object; another value has none.
impl From<Value> for EventBody {
    fn from(value: Value) -> Self {
        Self::Members(match value {
            Value::Object(members) => members,
            _ => Map::new(),
        })
    }
}

impl From<&MessageUpdate> for EventBody {
    fn from(update: &MessageUpdate) -> Self {
        Self::Update(Box::new(update.clone()))
    }
}
