//! Serializes changes of files by extensions (`withFileMutationQueue`).

use std::collections::HashMap;
use std::path::Path;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bridge::{BridgeResult, parse};
use pi_tools::files::mutation_queue::{FileMutationGuard, lock_file};

/// Locks of files that extensions are changing, by token.
#[derive(Default)]
pub struct FileMutations {
    held: Mutex<HashMap<u64, FileMutationGuard>>,
}

#[derive(Deserialize)]
struct AcquireArgs {
    path: String,
}

#[derive(Deserialize)]
struct ReleaseArgs {
    token: u64,
}

impl FileMutations {
    /// Waits for the file's lock and stores it under `token`.
    pub async fn acquire(&self, method: &str, args: &str, token: u64) -> BridgeResult {
        let file: AcquireArgs = parse(method, args)?;
        let guard = lock_file(Path::new(&file.path)).await;
        self.held.lock().insert(token, guard);
        Ok(json!({ "token": token }))
    }

    pub fn release(&self, method: &str, args: &str) -> BridgeResult {
        let release: ReleaseArgs = parse(method, args)?;
        self.held.lock().remove(&release.token);
        Ok(Value::Null)
    }
}
