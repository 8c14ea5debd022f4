//! Messages that could not be stored. They stay in the session and are written before anything
//! that comes later, so that a disk that was full for a while loses nothing, and the file never
//! has an answer without its question.

use std::sync::Arc;

use super::entry::Entry;
use super::error::SessionError;
use super::handle::Session;
use super::message::AgentMessage;
use super::record::Record;

impl Session {
    /// Appends a message that cannot be withdrawn any more. On an error the session has the
    /// message all the same, and it is written later: see [`Self::unsaved`].
    pub fn keep_message(&mut self, message: &AgentMessage) -> Result<(), SessionError> {
        let held = self.hold();
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
        let stored = held.and_then(|_| self.store_unsaved()).and_then(|()| {
            self.backing
                .append(&self.header, self.tree.entries(), &entry)
        });
        self.tree.insert(entry);
        if stored.is_err() {
            self.tree.owe_last();
        }
        stored
    }

    /// Number of entries at the end that are not in the file although they should be.
    pub fn unsaved(&self) -> usize {
        self.tree.owed()
    }

    /// Writes the missing entries to the file, as far as that is possible now.
    pub fn store_unsaved(&mut self) -> Result<(), SessionError> {
        if self.tree.owed() > 0 {
            self.hold()?;
        }
        while self.tree.owed() > 0 {
            let entries = self.tree.entries();
            let (earlier, owed) = entries.split_at(entries.len() - self.tree.owed());
            let next: &Arc<Entry> = &owed[0];
            self.backing.append(&self.header, earlier, next)?;
            self.tree.pay_one();
        }
        Ok(())
    }
}
