//! Events as a client reads them: lines of JSON, counted, in the dialect that was
//! agreed with it. One place writes them all, so their order is that of the numbers.

mod arguments;
mod growing;
mod kept;

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::agent::event::{CompactionReason, Event, MessageUpdate, Step};
use crate::ai::message::Usage;
use crate::compaction::Compacted;
use growing::Growing;
use kept::Kept;
pub use kept::{Gone, Missed};

/// What a client asked for beyond what every client gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Every event has its number, and the last ones are kept.
    pub seq: bool,
    /// `message_update` without the message so far.
    pub delta_updates: bool,
    /// `auto_compaction_start` and `auto_compaction_end` as well.
    pub auto_compaction_events: bool,
    /// `edit` and `write` do not wait after their `tool_execution_start`.
    pub immediate_file_changes: bool,
    /// Only events that version 0.67 of the original has.
    pub events_067: bool,
}

impl Agreed {
    /// The names of all of them.
    pub const NAMES: [&str; 5] = [
        "seq",
        "deltaUpdates",
        "autoCompactionEvents",
        "immediateFileChanges",
        "events067",
    ];

    fn member(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "seq" => Some(&mut self.seq),
            "deltaUpdates" => Some(&mut self.delta_updates),
            "autoCompactionEvents" => Some(&mut self.auto_compaction_events),
            "immediateFileChanges" => Some(&mut self.immediate_file_changes),
            "events067" => Some(&mut self.events_067),
            _ => None,
        }
    }

    /// Names that are not known are left out.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut agreed = Self::default();
        for name in names {
            if let Some(member) = agreed.member(name) {
                *member = true;
            }
        }
        agreed
    }

    pub fn names(mut self) -> Vec<&'static str> {
        let names = Self::NAMES.into_iter();
        names
            .filter(|name| self.member(name).is_some_and(|member| *member))
            .collect()
    }
}

/// The writer's side of what goes out.
#[derive(Default)]
pub struct Wire {
    agreed: Agreed,
    /// Of the last event.
    seq: u64,
    kept: Kept,
    growing: Growing,
}

impl Wire {
    pub fn new(agreed: Agreed) -> Self {
        Self {
            agreed,
            ..Self::default()
        }
    }

    /// Holds from the next event on.
    pub fn agree(&mut self, agreed: Agreed) {
        if !agreed.seq {
            self.kept = Kept::default();
        }
        self.agreed = agreed;
    }

    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The events after number `since`.
    pub fn missed(&self, since: u64) -> Result<Missed<'_>, Gone> {
        self.kept.after(since, self.seq)
    }

    /// Writes the event's line, or lines.
    pub fn event(&mut self, event: &Event, out: &mut impl Write) -> io::Result<()> {
        if self.agreed.events_067 && !event.is_known_to_067() {
            return Ok(());
        }
        match event {
            Event::MessageUpdate(update) => self.update(update, out)?,
            _ => self.line(event, out)?,
        }
        if self.agreed.auto_compaction_events
            && let Some(older) = OlderEvent::of(event)
        {
            self.line(&older, out)?;
        }
        Ok(())
    }

    fn line(&mut self, event: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
        self.seq += 1;
        if !self.agreed.seq {
            serde_json::to_writer(&mut *out, event)?;
            return out.write_all(b"\n");
        }
        let line = numbered(event, self.seq)?;
        out.write_all(&line)?;
        out.write_all(b"\n")?;
        self.kept.push(self.seq, line);
        Ok(())
    }

    /// What is kept of an update never has the message so far: a few of those would
    /// fill all the room there is.
    fn update(&mut self, update: &MessageUpdate, out: &mut impl Write) -> io::Result<()> {
        if self.agreed.delta_updates {
            return self.line(&StepOnly::of(update), out);
        }
        self.seq += 1;
        let seq = self.agreed.seq.then_some(self.seq);
        self.growing.write(update, seq, out)?;
        if let Some(seq) = seq {
            let line = numbered(&StepOnly::of(update), seq)?;
            self.kept.push(seq, line);
        }
        Ok(())
    }
}

/// The event with its number as the last member.
fn numbered(event: &impl Serialize, seq: u64) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(event)?;
    // An event is an object that has a `type`.
    line.pop();
    write!(line, ",\"seq\":{seq}}}")?;
    Ok(line)
}

/// `message_update` without what came before.
#[derive(Serialize)]
#[serde(tag = "type", rename = "message_update", rename_all = "camelCase")]
struct StepOnly<'a> {
    usage: &'a Usage,
    assistant_message_event: Step<'a>,
}

impl<'a> StepOnly<'a> {
    fn of(update: &'a MessageUpdate) -> Self {
        Self {
            usage: update.message.usage(),
            assistant_message_event: update.step(),
        }
    }
}

/// Events as they were called before 0.60, for a compaction that nobody asked for.
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
        /// `null` where there is none, as it was.
        result: Option<Compacted>,
        aborted: bool,
        will_retry: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
}

impl OlderEvent {
    fn of(event: &Event) -> Option<Self> {
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
