//! Extensions that harm the agent or each other.

mod attacks;
mod misbehaviour;
mod neighbours;
mod recovery;
mod repository;
mod trust;

use serde_json::Value;

use crate::support::Rpc;

/// Waits for a report about `ext.ts` that contains all words; earlier reports count.
async fn blamed(rpc: &mut Rpc, words: &[&str]) -> Value {
    let what = format!("an extension_error with {words:?}");
    let matches = |line: &Value| {
        let error = line["error"].as_str().unwrap_or_default();
        line["type"] == "extension_error" && words.iter().all(|word| error.contains(word))
    };
    let before = rpc.lines().into_iter().find(&matches);
    let error = match before {
        Some(error) => error,
        None => rpc.wait(&what, matches).await,
    };
    let path = error["extensionPath"].as_str().unwrap_or_default();
    assert!(path.ends_with("ext.ts"), "{error}");
    error
}
