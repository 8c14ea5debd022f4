//! What was said and could not be stored: it stays in the session, and is written
//! before anything that comes later. A disk that was full for a while costs
//! nothing, and the file never has an answer without its question.

use std::sync::Arc;

use super::entry::Entry;
use super::error::SessionError;
use super::handle::Session;
use super::message::AgentMessage;
use super::record::Record;

impl Session {
    /// Appends what cannot be unsaid any more. On an error it is in the session
    /// all the same and owed to the file: see [`Self::unsaved`].
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

    /// How many of the last entries are not in the file although they should be.
    pub fn unsaved(&self) -> usize {
        self.tree.owed()
    }

    /// Writes what is owed to the file, as far as that is possible now.
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
