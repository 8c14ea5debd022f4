//! Summary of a branch that the user leaves for another point of the tree.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::file_ops::{FileLists, FileOperations};
use super::prompts;
use super::summarize::{Summarizer, SummaryError, prompt};
use super::tokens::estimate;
use pi_session::message::AgentMessage;
use pi_session::{Entry, EntryKind};

/// Limit of the summary in tokens.
const SUMMARY_MAX_TOKENS: u64 = 2048;
/// Context window in tokens of a model whose window is unknown.
const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;

/// The entries between the old leaf and the common ancestor with the target.
#[derive(Clone, Debug, Default)]
pub struct BranchPart {
    /// Entries after the common ancestor, up to the old leaf.
    pub entries: Vec<Arc<Entry>>,
    pub common_ancestor: Option<String>,
}

/// Returns the part of `old` that `target` does not contain. Both paths begin at the root.
pub fn branch_part(old: &[Arc<Entry>], target: &[Arc<Entry>]) -> BranchPart {
    if old.is_empty() {
        return BranchPart::default();
    }
    let known: HashSet<&str> = old.iter().map(|entry| entry.id.as_str()).collect();
    let common = target
        .iter()
        .rev()
        .find(|entry| known.contains(entry.id.as_str()));
    let after = common.and_then(|common| old.iter().position(|entry| entry.id == common.id));
    BranchPart {
        entries: old[after.map_or(0, |index| index + 1)..].to_vec(),
        common_ancestor: common.map(|entry| entry.id.clone()),
    }
}

/// Options of a branch summary.
#[derive(Clone, Debug, Default)]
pub struct BranchRequest {
    pub instructions: Option<String>,
    /// The instructions replace the default ones instead of being added.
    pub replace_instructions: bool,
    /// Tokens of the window that are kept free.
    pub reserve_tokens: u64,
}

/// Returns the summary and the files that it mentions.
pub async fn summarize_branch(
    entries: &[Arc<Entry>],
    request: &BranchRequest,
    summarizer: &Summarizer,
    cancel: &CancellationToken,
) -> Result<(String, FileLists), SummaryError> {
    let window = match summarizer.model.context_window {
        0 => DEFAULT_CONTEXT_WINDOW,
        window => window,
    };
    let (messages, files, _) =
        newest_messages(entries, window.saturating_sub(request.reserve_tokens));
    if messages.is_empty() {
        return Ok(("No content to summarize".to_owned(), FileLists::default()));
    }
    let focus = request.instructions.as_deref();
    let focus = focus.filter(|instructions| !instructions.is_empty());
    let instructions = match focus {
        Some(instructions) if request.replace_instructions => instructions.to_owned(),
        focus => prompts::with_focus(prompts::branch(), focus),
    };
    let reply = summarizer.request(
        prompt(&messages, None, instructions),
        SUMMARY_MAX_TOKENS,
        None,
        cancel,
    );
    let summary = reply.text("Summarization failed").await?;
    let files = files.lists();
    let text = format!("{}{summary}{}", prompts::BRANCH_PREAMBLE, files.to_text());
    Ok((text, files))
}

/// Returns as many of the newest messages as fit into `budget` tokens (0: all), the files of
/// the entries that were visited, and the tokens of the messages.
pub fn newest_messages(
    entries: &[Arc<Entry>],
    budget: u64,
) -> (Vec<Arc<AgentMessage>>, FileOperations, u64) {
    let mut files = FileOperations::default();
    for entry in entries {
        if matches!(entry.kind, EntryKind::BranchSummary) {
            files.add_summary(&entry.raw);
        }
    }
    let mut messages = VecDeque::new();
    let mut total = 0_u64;
    for entry in entries.iter().rev() {
        let Ok(Some(message)) = entry.message() else {
            continue;
        };
        // The call itself says what was done.
        if matches!(*message, AgentMessage::ToolResult(_)) {
            continue;
        }
        files.add_calls(&message);
        let tokens = estimate(&message);
        let fits = budget == 0 || total.saturating_add(tokens) <= budget;
        let is_summary = matches!(
            entry.kind,
            EntryKind::Compaction { .. } | EntryKind::BranchSummary
        );
        // A summary stands for many messages, so it may exceed the budget unless 90 % are used.
        if fits || (is_summary && total.saturating_mul(10) < budget.saturating_mul(9)) {
            messages.push_front(message);
            total = total.saturating_add(tokens);
        }
        if !fits {
            break;
        }
    }
    (messages.into(), files, total)
}
