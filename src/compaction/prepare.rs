//! What a compaction would do, before anybody is asked: what is kept, what is
//! summarised, and what an earlier summary says.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cut::find_cut;
use super::files::FileOperations;
use super::tokens::estimate_context;
use crate::resources::settings::CompactionSettings;
use crate::session::message::AgentMessage;
use crate::session::{Entry, EntryKind};

/// Also what `session_before_compact` handlers are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    pub first_kept_entry_id: String,
    pub messages_to_summarize: Vec<Arc<AgentMessage>>,
    /// The beginning of the turn through which the cut goes.
    pub turn_prefix_messages: Vec<Arc<AgentMessage>>,
    pub is_split_turn: bool,
    pub tokens_before: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    pub file_ops: FileOperations,
    pub settings: CompactionSettings,
}

/// Why there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unprepared {
    #[error("Already compacted")]
    Already,
    #[error("Nothing to compact (session too small)")]
    TooSmall,
}

/// `path` runs from the root to the leaf; `context` is what the model is told there.
/// A conversation that would be kept whole is too small: a model that is asked to summarise
/// nothing makes something up.
pub fn prepare(
    path: &[Arc<Entry>],
    context: &[Arc<AgentMessage>],
    settings: CompactionSettings,
) -> Result<Preparation, Unprepared> {
    if context.is_empty() {
        return Err(Unprepared::TooSmall);
    }
    let previous = path
        .iter()
        .rposition(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
    if previous.is_some_and(|index| index + 1 == path.len()) {
        return Err(Unprepared::Already);
    }
    let start = previous.map_or(0, |index| kept_since(path, index));
    let cut = find_cut(path, start, settings.keep_recent_tokens);
    let first_kept = path.get(cut.first_kept).ok_or(Unprepared::TooSmall)?;
    let history_end = cut.turn_start.unwrap_or(cut.first_kept);
    let messages_to_summarize = messages(&path[start..history_end]);
    let turn_prefix_messages = messages(&path[history_end..cut.first_kept]);
    if messages_to_summarize.is_empty() && turn_prefix_messages.is_empty() {
        return Err(Unprepared::TooSmall);
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

/// What the compaction at `index` kept is in no summary yet.
fn kept_since(path: &[Arc<Entry>], index: usize) -> usize {
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

/// What is said in the entries; an earlier summary is carried over in another way.
fn messages(entries: &[Arc<Entry>]) -> Vec<Arc<AgentMessage>> {
    let said = entries
        .iter()
        .filter(|entry| !matches!(entry.kind, EntryKind::Compaction { .. }));
    // The context's warnings tell of entries that cannot be read.
    said.filter_map(|entry| entry.message().ok().flatten())
        .collect()
}

fn summary_of(entry: &Entry) -> Option<String> {
    match &*entry.message().ok().flatten()? {
        AgentMessage::CompactionSummary(compaction) => Some(compaction.summary.clone()),
        _ => None,
    }
}
