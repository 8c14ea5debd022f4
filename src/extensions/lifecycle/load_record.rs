//! The last load, whether it succeeded or not: what was to be loaded, and what was read and looked
//! for. The files are watched by this record.

use std::sync::Arc;

use js_runtime::{Imports, InputAnswer, LoadInput};
use tokio::sync::watch;

use super::Extensions;
use pi_resources::discovery::extensions::ExtensionPath;

/// Record of the load of a set of extensions.
#[derive(Debug, Default)]
pub struct LoadRecord {
    /// The extensions that were to be loaded.
    pub paths: Vec<ExtensionPath>,
    /// Records of the isolates. More than one was started if an extension stopped the first.
    pub imports: Vec<Imports>,
}

impl Extensions {
    /// Returns the last load. Changes when another one has ended.
    pub fn last_load(&self) -> watch::Receiver<Arc<LoadRecord>> {
        self.last_load.subscribe()
    }

    /// Returns what the last load read and looked for, with the answers that it got. What
    /// quarantined extensions had read is included. The list grows while extensions import more.
    pub fn load_inputs(&self) -> Vec<(LoadInput, InputAnswer)> {
        let record = self.last_load.borrow().clone();
        let mut inputs = self.quarantine.inputs();
        inputs.extend(record.imports.iter().flat_map(Imports::inputs));
        inputs
    }
}

impl LoadRecord {
    /// Returns when an extension has read or looked for more.
    pub async fn grown(&self) {
        match self.imports.last() {
            Some(imports) => imports.changed().await,
            None => std::future::pending().await,
        }
    }
}
