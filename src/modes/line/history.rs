//! The history of prompts, shared by the line editors. Each prompt needs a new editor: one that
//! was stopped for other output would paint its prompt over that.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

#[derive(Clone)]
pub struct SharedHistory(Arc<Mutex<FileBackedHistory>>);

impl SharedHistory {
    pub fn new(history: FileBackedHistory) -> Self {
        Self(Arc::new(Mutex::new(history)))
    }
}

impl History for SharedHistory {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        self.0.lock().save(item)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.0.lock().load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.0.lock().count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.0.lock().search(query)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.0.lock().update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.0.lock().clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.0.lock().delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.lock().sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.0.lock().session()
    }
}
