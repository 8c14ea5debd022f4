//! Messages that could not be stored. They stay in the session and are written before anything
//! that comes later, so that a disk that was full for a while loses nothing, and the file never
//! has an answer without its question.

use std::sync::Arc;

use crate::entry::Entry;
use crate::error::SessionError;
use crate::format::entry_writer::Record;
use crate::message::AgentMessage;
use crate::session::Session;

impl Session {
    /// Appends a message that cannot be withdrawn any more. On an error the session has the
    /// message all the same, and it is written later: see [`Self::unsaved_count`].
    pub fn append_or_buffer(&mut self, message: &AgentMessage) -> Result<(), SessionError> {
        let held = self.acquire_lock();
        let entry = match message {
            AgentMessage::BranchSummary(_) | AgentMessage::CompactionSummary(_) => {
                return Err(SessionError::NotAMessage {
                    role: message.role(),
                });
            }
            AgentMessage::Custom(custom) => self.new_entry(Record::CustomMessage {
                custom_type: &custom.custom_type,
                content: &custom.content,
                display: custom.display,
                details: custom.details.as_ref(),
            }),
            message => self
                .new_entry(Record::Message { message })
                .with_message(message.clone()),
        };
        let stored = held.and_then(|_| self.write_unsaved()).and_then(|()| {
            self.persistence
                .append(&self.header, self.tree.entries(), &entry)
        });
        self.tree.insert(entry);
        if stored.is_err() {
            self.tree.mark_last_unsaved();
        }
        stored
    }

    /// Number of entries at the end that are not in the file although they should be.
    pub fn unsaved_count(&self) -> usize {
        self.tree.unsaved()
    }

    /// Writes the missing entries to the file, as far as that is possible now.
    pub fn write_unsaved(&mut self) -> Result<(), SessionError> {
        if self.tree.unsaved() > 0 {
            self.acquire_lock()?;
        }
        while self.tree.unsaved() > 0 {
            let entries = self.tree.entries();
            let (earlier, unsaved) = entries.split_at(entries.len() - self.tree.unsaved());
            let next: &Arc<Entry> = &unsaved[0];
            self.persistence.append(&self.header, earlier, next)?;
            self.tree.mark_first_saved();
        }
        Ok(())
    }
}
