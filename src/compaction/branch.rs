//! The summary of a branch that is left for another point of the tree.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::files::{FileLists, FileOperations};
use super::prompts;
use super::summarize::{Summarizer, SummaryError, prompt};
use super::tokens::estimate;
use crate::session::message::AgentMessage;
use crate::session::{Entry, EntryKind};

/// Tokens of the answer.
const LIMIT: u64 = 2048;
/// For a model whose window is not known.
const WINDOW: u64 = 128_000;

/// What lies between the leaf and the point where the way to the target leaves its
/// path.
#[derive(Clone, Debug, Default)]
pub struct BranchPart {
    /// From the common ancestor (not with it) to the old leaf.
    pub entries: Vec<Arc<Entry>>,
    pub common_ancestor: Option<String>,
}

/// Both paths begin at the root.
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

/// How a branch is to be summarised.
#[derive(Clone, Debug, Default)]
pub struct BranchRequest {
    pub instructions: Option<String>,
    /// The instructions take the place of ours instead of being added.
    pub replace_instructions: bool,
    /// Tokens of the window that are left free.
    pub reserve_tokens: u64,
}

/// The summary and the files it was about.
pub async fn summarize_branch(
    entries: &[Arc<Entry>],
    request: &BranchRequest,
    summarizer: &Summarizer,
    cancel: &CancellationToken,
) -> Result<(String, FileLists), SummaryError> {
    let window = match summarizer.model.context_window {
        0 => WINDOW,
        window => window,
    };
    let (messages, files, _) = newest(entries, window.saturating_sub(request.reserve_tokens));
    if messages.is_empty() {
        return Ok(("No content to summarize".to_owned(), FileLists::default()));
    }
    let given = request.instructions.as_deref();
    let given = given.filter(|instructions| !instructions.is_empty());
    let instructions = match given {
        Some(instructions) if request.replace_instructions => instructions.to_owned(),
        given => prompts::with_focus(prompts::branch(), given),
    };
    let asked = summarizer.ask(prompt(&messages, None, instructions), LIMIT, None, cancel);
    let summary = asked.text("Summarization failed").await?;
    let files = files.lists();
    let text = format!("{}{summary}{}", prompts::BRANCH_PREAMBLE, files.to_text());
    Ok((text, files))
}

/// As much of the end as fits into `budget` tokens (0: all of it), and the files of
/// everything that was looked at, and the tokens.
pub fn newest(
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
        // The call says what was done.
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
        // A summary stands for so much that there is room for it nearly always.
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
