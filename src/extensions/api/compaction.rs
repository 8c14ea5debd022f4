//! Compaction functions of pi's package, for extensions that write summaries in their own
//! way or with another model.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::compaction_stream::SummaryRequests;
use super::session_args::parse_thinking_level;
use crate::bridge::{BridgeResult, parse, to_value};
use pi_agent::AgentMessage;
use pi_ai::apis::wire_api;
use pi_ai::model::Model;
use pi_ai::stream::Api;
use pi_compaction::{
    BranchRequest, Preparation, Summarizer, SummaryError, cut_point, estimate, newest_messages,
    summarize, summarize_branch,
};
use pi_session::Entry;

/// Summaries that are being written.
pub struct Summaries {
    /// Runs requests on the threads of pi, because JavaScript's thread may be busy.
    handle: Handle,
    running: Mutex<HashMap<u64, CancellationToken>>,
    requests: SummaryRequests,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryArgs {
    token: u64,
    model: Model,
    #[serde(default)]
    api_key: Option<String>,
    #[serde(default)]
    headers: Option<IndexMap<String, String>>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    /// Whether the extension calls the model itself.
    #[serde(default)]
    by_extension: bool,
}

#[derive(Deserialize)]
struct CompactArgs {
    preparation: Preparation,
    #[serde(default)]
    focus: Option<String>,
}

#[derive(Deserialize)]
struct BranchArgs {
    entries: Vec<Box<RawValue>>,
    #[serde(default)]
    instructions: Option<String>,
    replace: bool,
    reserve: u64,
}

#[derive(Deserialize)]
struct CutArgs {
    entries: Vec<Box<RawValue>>,
    start: usize,
    keep: u64,
}

#[derive(Deserialize)]
struct BranchPartArgs {
    entries: Vec<Box<RawValue>>,
    budget: u64,
}

#[derive(Deserialize)]
struct EstimateArgs {
    message: AgentMessage,
}

#[derive(Deserialize)]
struct TokenArgs {
    token: u64,
}

impl Summaries {
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            running: Mutex::default(),
            requests: SummaryRequests::default(),
        }
    }

    /// Serves synchronous methods; `None` for other methods.
    pub fn serve(&self, method: &str, args: &str) -> Option<BridgeResult> {
        Some(match method {
            "compaction.estimate" => {
                parse::<EstimateArgs>(method, args).map(|args| json!(estimate(&args.message)))
            }
            "compaction.cut" => parse::<CutArgs>(method, args).and_then(|args| {
                let path = entries(&args.entries)?;
                let start = args.start.min(path.len());
                let (first_kept, turn_start) = cut_point(&path, start, args.keep);
                Ok(json!({
                    "firstKeptEntryIndex": first_kept,
                    "turnStartIndex": turn_start.map_or(json!(-1), |index| json!(index)),
                    "isSplitTurn": turn_start.is_some(),
                }))
            }),
            "compaction.branchPart" => parse::<BranchPartArgs>(method, args).and_then(|args| {
                let (messages, files, tokens) =
                    newest_messages(&entries(&args.entries)?, args.budget);
                Ok(json!({ "messages": messages, "fileOps": files, "totalTokens": tokens }))
            }),
            "compaction.abort" => parse::<TokenArgs>(method, args).map(|args| {
                if let Some(cancel) = self.running.lock().get(&args.token) {
                    cancel.cancel();
                }
                Value::Null
            }),
            "compaction.open" => self.requests.open(method, args),
            "compaction.respond" => self.requests.respond(method, args),
            _ => return None,
        })
    }

    /// Returns the next model request of a summary with `by_extension`; `null` when it is
    /// over.
    pub async fn next_request(&self, method: &str, args: &str) -> BridgeResult {
        let TokenArgs { token } = parse(method, args)?;
        Ok(self.requests.next_request(token).await)
    }

    fn summarizer(&self, request: SummaryArgs) -> Result<Summarizer, HostError> {
        let api: Arc<dyn Api> = match request.by_extension {
            true => self.requests.api(request.token)?,
            false => wire_api(&request.model.api).ok_or_else(|| {
                let name = &request.model.api;
                HostError::new(format!("No API provider registered for api: {name}"))
            })?,
        };
        let thinking = request
            .thinking
            .as_deref()
            .map(parse_thinking_level)
            .transpose()?;
        Ok(Summarizer {
            api_key: request.api_key,
            headers: request.headers.unwrap_or_default(),
            model: Arc::new(request.model),
            api,
            max_retry_delay_ms: None,
            thinking,
            session_id: request.session_id,
        })
    }

    /// Serves `compaction.compact` and `compaction.branch`.
    pub async fn write(&self, method: &str, args: &str) -> BridgeResult {
        let request: SummaryArgs = parse(method, args)?;
        let running = RunningGuard {
            summaries: self,
            token: request.token,
        };
        let cancel = CancellationToken::new();
        self.running.lock().insert(request.token, cancel.clone());
        // Aborts the request when the extension's isolate ends.
        let _dropped = cancel.clone().drop_guard();
        let summarizer = self.summarizer(request)?;
        let written = match method {
            "compaction.compact" => {
                let args: CompactArgs = parse(method, args)?;
                self.handle.spawn(async move {
                    let focus = args.focus.as_deref();
                    summarize(&args.preparation, focus, &summarizer, &cancel)
                        .await
                        .map(|compacted| json!(compacted))
                })
            }
            _ => {
                let args: BranchArgs = parse(method, args)?;
                let path = entries(&args.entries)?;
                let request = BranchRequest {
                    instructions: args.instructions,
                    replace_instructions: args.replace,
                    reserve_tokens: args.reserve,
                };
                self.handle.spawn(async move {
                    let (summary, files) =
                        summarize_branch(&path, &request, &summarizer, &cancel).await?;
                    Ok(json!({
                        "summary": summary,
                        "readFiles": files.read_files,
                        "modifiedFiles": files.modified_files,
                    }))
                })
            }
        };
        let written = written
            .await
            .unwrap_or_else(|error| Err(SummaryError::Failed(error.to_string())));
        drop(running);
        to_value(written.map_err(|error| HostError::new(error.to_string()))?)
    }
}

struct RunningGuard<'a> {
    summaries: &'a Summaries,
    token: u64,
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.summaries.running.lock().remove(&self.token);
        self.summaries.requests.end(self.token);
    }
}

fn entries(lines: &[Box<RawValue>]) -> Result<Vec<Arc<Entry>>, HostError> {
    let entries: Result<_, _> = lines
        .iter()
        .map(|line| Entry::parse(line.get()).map(Arc::new))
        .collect();
    entries.map_err(|error| HostError::new(format!("this is no entry of a session: {error}")))
}
