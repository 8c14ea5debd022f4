//! Validation of tool arguments, diffs and ids, for functions of pi's package.

use std::path::PathBuf;

use js_runtime::HostError;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::{NoContext, Timestamp, Uuid};

use crate::bridge::{BridgeResult, parse};
use pi_ai::stream::ToolSpec;
use pi_tools::arguments::validate::validate;
use pi_tools::edit;
use pi_tools::text::diff::Changes;
use pi_tools::text::fuzzy_replace::Replacement;

#[derive(Deserialize)]
struct ValidateArgs {
    name: String,
    parameters: Value,
    arguments: Value,
}

/// Two texts to compare.
#[derive(Deserialize)]
struct DiffArgs {
    #[serde(default)]
    path: String,
    old: String,
    new: String,
    context: usize,
}

#[derive(Deserialize)]
struct UuidArgs {
    /// Milliseconds since the epoch.
    #[serde(default)]
    timestamp: Option<u64>,
}

/// Serves `tools.validate`, `diff.*` and `uuid.v7`; `None` for other methods.
pub fn serve(method: &str, args: &str) -> Option<BridgeResult> {
    Some(match method {
        "tools.validate" => parse::<ValidateArgs>(method, args).and_then(|args| {
            let spec = ToolSpec {
                name: args.name,
                description: String::new(),
                parameters: args.parameters,
            };
            validate(&spec, args.arguments).map_err(|error| HostError::new(error.0))
        }),
        "diff.display" => parse::<DiffArgs>(method, args).map(|args| {
            let diff = Changes::between(&args.old, &args.new).display(args.context);
            json!({ "diff": diff.text, "firstChangedLine": diff.first_changed_line })
        }),
        "diff.unified" => parse::<DiffArgs>(method, args).map(|args| {
            json!(Changes::between(&args.old, &args.new).patch(&args.path, args.context))
        }),
        "uuid.v7" => parse::<UuidArgs>(method, args).map(|args| {
            let id = match args.timestamp {
                Some(time) => {
                    let (seconds, rest) = (time / 1000, time % 1000);
                    let nanoseconds = rest as u32 * 1_000_000;
                    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanoseconds))
                }
                None => Uuid::now_v7(),
            };
            json!(id.to_string())
        }),
        _ => return None,
    })
}

#[derive(Deserialize)]
struct EditPreviewArgs {
    path: String,
    edits: Vec<Replacement>,
    cwd: PathBuf,
}

/// Returns the diff that a call of the edit tool would make.
pub async fn preview_edit(method: &str, args: &str) -> BridgeResult {
    let EditPreviewArgs { path, edits, cwd } = parse(method, args)?;
    let preview = edit::preview(path, edits, cwd).await;
    Ok(match preview {
        Ok(diff) => json!({ "diff": diff.text, "firstChangedLine": diff.first_changed_line }),
        Err(error) => json!({ "error": error.to_string() }),
    })
}
