//! Writes events as a client reads them: numbered lines of JSON, in the form that its
//! capabilities ask for. All events are written here, so their order is that of the numbers.

mod arguments;
mod incremental_update;
mod replay_buffer;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use incremental_update::IncrementalUpdate;
use pi_agent::event::{CompactionReason, Event, MessageUpdate, Step};
use pi_ai::message::Usage;
use pi_compaction::Compacted;
use replay_buffer::ReplayBuffer;
pub use replay_buffer::{Evicted, MissedEvents};

/// Optional behaviour that a client asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Every event has its number, and the last events are kept.
    pub seq: bool,
    /// `message_update` without the message so far.
    pub delta_updates: bool,
    /// `auto_compaction_start` and `auto_compaction_end` as well.
    pub auto_compaction_events: bool,
    /// `edit` and `write` do not wait after their `tool_execution_start`.
    pub immediate_file_changes: bool,
    /// Only events that version 0.67 of the original has.
    pub events_067: bool,
    /// Questions about tool calls come as `permission_request` instead of a dialog.
    pub permission_requests: bool,
}

impl Capabilities {
    /// The names of all capabilities.
    pub const NAMES: [&str; 6] = [
        "seq",
        "deltaUpdates",
        "autoCompactionEvents",
        "immediateFileChanges",
        "events067",
        "permissionRequests",
    ];

    fn member(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "seq" => Some(&mut self.seq),
            "deltaUpdates" => Some(&mut self.delta_updates),
            "autoCompactionEvents" => Some(&mut self.auto_compaction_events),
            "immediateFileChanges" => Some(&mut self.immediate_file_changes),
            "events067" => Some(&mut self.events_067),
            "permissionRequests" => Some(&mut self.permission_requests),
            _ => None,
        }
    }

    /// Reads capabilities by name. Unknown names are ignored.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut capabilities = Self::default();
        for name in names {
            if let Some(member) = capabilities.member(name) {
                *member = true;
            }
        }
        capabilities
    }

    pub fn names(mut self) -> Vec<&'static str> {
        let names = Self::NAMES.into_iter();
        names
            .filter(|name| self.member(name).is_some_and(|member| *member))
            .collect()
    }
}

/// Numbers and writes events.
#[derive(Default)]
pub struct EventWriter {
    capabilities: Capabilities,
    /// Number of the last event.
    seq: u64,
    replay: ReplayBuffer,
    update: IncrementalUpdate,
}

impl EventWriter {
    pub fn new(capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            ..Self::default()
        }
    }

    /// Changes the capabilities from the next event on.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        if !capabilities.seq {
            self.replay = ReplayBuffer::default();
        }
        self.capabilities = capabilities;
    }

    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the events after number `since`.
    pub fn events_after(&self, since: u64) -> Result<MissedEvents<'_>, Evicted> {
        self.replay.after(since, self.seq)
    }

    /// Writes the lines of an event.
    pub fn write_event(&mut self, event: &Event, out: &mut impl Write) -> io::Result<()> {
        if self.capabilities.events_067 && !event.is_known_to_067() {
            return Ok(());
        }
        match event {
            Event::MessageUpdate(update) => self.write_update(update, out)?,
            _ => self.write_line(event, out)?,
        }
        if self.capabilities.auto_compaction_events
            && let Some(older) = OlderEvent::from_event(event)
        {
            self.write_line(&older, out)?;
        }
        Ok(())
    }

    fn write_line(&mut self, event: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
        self.seq += 1;
        if !self.capabilities.seq {
            serde_json::to_writer(&mut *out, event)?;
            return out.write_all(b"\n");
        }
        let line = numbered(event, self.seq)?;
        out.write_all(&line)?;
        out.write_all(b"\n")?;
        self.replay.push(self.seq, line);
        Ok(())
    }

    /// Writes a `message_update`. The replay buffer keeps it without the message so far: a few
    /// long messages would fill the buffer.
    fn write_update(&mut self, update: &MessageUpdate, out: &mut impl Write) -> io::Result<()> {
        if self.capabilities.delta_updates {
            return self.write_line(&StepOnly::new(update), out);
        }
        self.seq += 1;
        let seq = self.capabilities.seq.then_some(self.seq);
        self.update.write(update, seq, out)?;
        if let Some(seq) = seq {
            let line = numbered(&StepOnly::new(update), seq)?;
            self.replay.push(seq, line);
        }
        Ok(())
    }
}

/// Serializes the event with its number as the last member.
fn numbered(event: &impl Serialize, seq: u64) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(event)?;
    // Remove the closing brace: an event is an object with at least a `type`.
    line.pop();
    write!(line, ",\"seq\":{seq}}}")?;
    Ok(line)
}

/// A `message_update` without the message so far.
#[derive(Serialize)]
#[serde(tag = "type", rename = "message_update", rename_all = "camelCase")]
struct StepOnly<'a> {
    usage: &'a Usage,
    assistant_message_event: Step<'a>,
}

impl<'a> StepOnly<'a> {
    fn new(update: &'a MessageUpdate) -> Self {
        Self {
            usage: update.message.usage(),
            assistant_message_event: update.step(),
        }
    }
}

/// Events of automatic compactions by their names before 0.60.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum OlderEvent {
    AutoCompactionStart {
        reason: CompactionReason,
    },
    AutoCompactionEnd {
        /// `null` if nothing was compacted.
        result: Option<Compacted>,
        aborted: bool,
        will_retry: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
}

impl OlderEvent {
    fn from_event(event: &Event) -> Option<Self> {
        match event {
            Event::CompactionStart { reason } if *reason != CompactionReason::Manual => {
                Some(Self::AutoCompactionStart { reason: *reason })
            }
            Event::CompactionEnd {
                reason,
                result,
                aborted,
                will_retry,
                error_message,
            } if *reason != CompactionReason::Manual => Some(Self::AutoCompactionEnd {
                result: result.clone(),
                aborted: *aborted,
                will_retry: *will_retry,
                error_message: error_message.clone(),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
