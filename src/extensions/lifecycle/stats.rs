//! Statistics of a session's extensions, for clients.

use js_runtime::{Memory, RetainedHeap};
use serde::Serialize;

use super::Extensions;
use super::generation::HEAP_SNAPSHOT_TIMEOUT;
use crate::limits::counters::ExtensionStats;

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Statistics {
    pub extensions: Vec<ExtensionStats>,
    /// Heap of all extensions together. Absent without an isolate, or while JavaScript runs
    /// without a pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heap: Option<HeapStats>,
}

/// Sizes in bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HeapStats {
    pub used: usize,
    pub total: usize,
    pub limit: usize,
    /// Memory outside the heap, mostly array buffers.
    pub external: usize,
    /// Bytes that several extensions keep alive together. Absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<usize>,
    /// Why the heap could not be measured per extension, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<String>,
}

impl Extensions {
    /// Returns how long the last load of the extension at `path` took, in milliseconds.
    pub(crate) fn load_ms(&self, path: &str) -> f64 {
        self.reports.counters.load_ms(path)
    }

    pub async fn statistics(&self, measure_heap: bool) -> Statistics {
        let current = self.current();
        let infos = current.host.registry.lock().extensions.clone();
        let extensions = infos
            .into_iter()
            .map(|info| (info.path, info.error.map(|error| error.to_string())))
            .map(|(path, error)| self.reports.counters.stats(&path, error));
        let extensions = extensions.collect();
        let heap = current.memory().await.map(HeapStats::from);
        let mut statistics = Statistics { extensions, heap };
        if measure_heap && statistics.heap.is_some() {
            statistics.set_heap_owners(current.retained_heap().await);
        }
        statistics
    }
}

impl Statistics {
    fn set_heap_owners(&mut self, owners: Option<Result<RetainedHeap, String>>) {
        let Some(heap) = &mut self.heap else { return };
        let owners = owners.unwrap_or_else(|| {
            let limit = HEAP_SNAPSHOT_TIMEOUT.as_secs();
            Err(format!(
                "no result within {limit} s: JavaScript runs, or the machine is busy"
            ))
        });
        match owners {
            Ok(owners) => {
                heap.shared = Some(owners.shared);
                for (id, extension) in (0..).zip(&mut self.extensions) {
                    let is_there = extension.loaded || owners.by_extension.contains_key(&id);
                    let bytes = owners.by_extension.get(&id).copied().unwrap_or_default();
                    extension.heap_bytes = is_there.then_some(bytes);
                }
            }
            Err(reason) => heap.unmeasured = Some(reason),
        }
    }
}

impl From<Memory> for HeapStats {
    fn from(memory: Memory) -> Self {
        Self {
            used: memory.used,
            total: memory.total,
            limit: memory.limit,
            external: memory.external,
            shared: None,
            unmeasured: None,
        }
    }
}
