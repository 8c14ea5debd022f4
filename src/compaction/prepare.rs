//! Preparation of a compaction before the model is asked: what is kept, what is summarized, and
//! the previous summary.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cut_point::find_cut;
use super::file_ops::FileOperations;
use super::tokens::estimate_context;
use pi_resources::settings::CompactionSettings;
use pi_session::message::AgentMessage;
use pi_session::{Entry, EntryKind};

/// The input of a compaction, which `session_before_compact` handlers receive as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    pub first_kept_entry_id: String,
    pub messages_to_summarize: Vec<Arc<AgentMessage>>,
    /// Beginning of the turn that is split.
    pub turn_prefix_messages: Vec<Arc<AgentMessage>>,
    pub is_split_turn: bool,
    pub tokens_before: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    pub file_ops: FileOperations,
    pub settings: CompactionSettings,
}

/// The reason why there is nothing to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NothingToCompact {
    #[error("Already compacted")]
    Already,
    #[error("Nothing to compact (session too small)")]
    TooSmall,
}

/// Prepares a compaction. `path` runs from the root to the leaf; `context` is the context at
/// the leaf. Fails with `TooSmall` if the whole conversation would be kept: a model that
/// summarizes nothing invents something.
pub fn prepare(
    path: &[Arc<Entry>],
    context: &[Arc<AgentMessage>],
    settings: CompactionSettings,
) -> Result<Preparation, NothingToCompact> {
    if context.is_empty() {
        return Err(NothingToCompact::TooSmall);
    }
    let previous = path
        .iter()
        .rposition(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
    if previous.is_some_and(|index| index + 1 == path.len()) {
        return Err(NothingToCompact::Already);
    }
    let start = previous.map_or(0, |index| first_kept_index(path, index));
    let cut = find_cut(path, start, settings.keep_recent_tokens);
    let first_kept = path.get(cut.first_kept).ok_or(NothingToCompact::TooSmall)?;
    let history_end = cut.turn_start.unwrap_or(cut.first_kept);
    let messages_to_summarize = messages(&path[start..history_end]);
    let turn_prefix_messages = messages(&path[history_end..cut.first_kept]);
    if messages_to_summarize.is_empty() && turn_prefix_messages.is_empty() {
        return Err(NothingToCompact::TooSmall);
    }
    let mut file_ops = FileOperations::default();
    if let Some(index) = previous {
        file_ops.add_summary(&path[index].raw);
    }
    for message in messages_to_summarize.iter().chain(&turn_prefix_messages) {
        file_ops.add_calls(message);
    }
    Ok(Preparation {
        first_kept_entry_id: first_kept.id.clone(),
        messages_to_summarize,
        turn_prefix_messages,
        is_split_turn: cut.turn_start.is_some(),
        tokens_before: estimate_context(context).tokens,
        previous_summary: previous.and_then(|index| summary_of(&path[index])),
        file_ops,
        settings,
    })
}

/// Returns the index of the first entry that the compaction at `index` kept; no summary covers
/// the entries from there on.
fn first_kept_index(path: &[Arc<Entry>], index: usize) -> usize {
    let EntryKind::Compaction {
        first_kept_entry_id,
    } = &path[index].kind
    else {
        return index + 1;
    };
    path.iter()
        .position(|entry| entry.id == *first_kept_entry_id)
        .unwrap_or(index + 1)
}

/// Returns the messages of the entries without earlier summaries, which are carried over
/// separately.
fn messages(entries: &[Arc<Entry>]) -> Vec<Arc<AgentMessage>> {
    let kept = entries
        .iter()
        .filter(|entry| !matches!(entry.kind, EntryKind::Compaction { .. }));
    // Unreadable entries are reported by the warnings of the context.
    kept.filter_map(|entry| entry.message().ok().flatten())
        .collect()
}

fn summary_of(entry: &Entry) -> Option<String> {
    match &*entry.message().ok().flatten()? {
        AgentMessage::CompactionSummary(compaction) => Some(compaction.summary.clone()),
        _ => None,
    }
}
