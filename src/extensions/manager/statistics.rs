//! What the extensions of a session cost, for clients.

use serde::Serialize;

use super::Extensions;
use crate::extensions::ledger::ExtensionStats;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    pub extensions: Vec<ExtensionStats>,
    /// What all of them have together. Absent without an isolate, and while it does not
    /// give its thread back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<HeapStats>,
}

/// Bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HeapStats {
    pub used: usize,
    pub total: usize,
    pub limit: usize,
    /// Outside the heap: array buffers above all.
    pub external: usize,
}

impl Extensions {
    /// What the extension at `path` took to load the last time, in milliseconds.
    pub(in crate::extensions) fn load_ms(&self, path: &str) -> f64 {
        self.reports.ledger.load_ms(path)
    }

    pub async fn statistics(&self) -> Statistics {
        let current = self.current();
        let infos = current.host.registry.lock().extensions.clone();
        let extensions = infos
            .into_iter()
            .map(|info| self.reports.ledger.stats(&info.path, info.error));
        let extensions = extensions.collect();
        let heap = current.memory().await.map(|memory| HeapStats {
            used: memory.used,
            total: memory.total,
            limit: memory.limit,
            external: memory.external,
        });
        Statistics { extensions, heap }
    }
}
