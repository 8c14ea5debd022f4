//! The cut point of a compaction: about `keep_recent` tokens are kept, and a tool result is
//! never kept without its call.

use std::sync::Arc;

use super::tokens::estimate;
use pi_session::{Entry, EntryKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Index of the first entry that is kept.
    pub first_kept: usize,
    /// Index of the entry that began the turn that is split; `None` if the cut is between
    /// turns.
    pub turn_start: Option<usize>,
}

/// Returns the index of the first entry of `path[start..]` that is kept, and of the beginning
/// of the turn that is split.
pub fn cut_point(path: &[Arc<Entry>], start: usize, keep_recent: u64) -> (usize, Option<usize>) {
    let cut = find_cut(path, start, keep_recent);
    (cut.first_kept, cut.turn_start)
}

/// Finds the cut in `path[start..]`.
pub(super) fn find_cut(path: &[Arc<Entry>], start: usize, keep_recent: u64) -> Cut {
    let mut cut = match next_cut_point(path, start) {
        Some(first) => cut_after_budget(path, start, keep_recent).unwrap_or(first),
        None => {
            return Cut {
                first_kept: start,
                turn_start: None,
            };
        }
    };
    // Settings and notes just before the cut belong to the kept entries.
    while cut > start
        && !matches!(
            path[cut - 1].kind,
            EntryKind::Compaction { .. } | EntryKind::Message { .. }
        )
    {
        cut -= 1;
    }
    let at_user = matches!(&path[cut].kind, EntryKind::Message { role } if role == "user");
    let turn_start = match at_user {
        true => None,
        false => (start..=cut).rev().find(|index| begins_turn(&path[*index])),
    };
    Cut {
        first_kept: cut,
        turn_start,
    }
}

/// Returns the first cut point at or after the entry from which `keep_recent` tokens follow;
/// the last cut point before it if only tool results follow.
fn cut_after_budget(path: &[Arc<Entry>], start: usize, keep_recent: u64) -> Option<usize> {
    let mut tokens = 0_u64;
    for index in (start..path.len()).rev() {
        let entry = &path[index];
        if !matches!(entry.kind, EntryKind::Message { .. }) {
            continue;
        }
        // The context leaves out unreadable entries.
        let message = entry.message().ok().flatten();
        tokens = tokens.saturating_add(message.map_or(0, |message| estimate(&message)));
        if tokens >= keep_recent {
            let before = || {
                (start..index)
                    .rev()
                    .find(|index| is_cut_point(&path[*index]))
            };
            return next_cut_point(path, index).or_else(before);
        }
    }
    None
}

fn next_cut_point(path: &[Arc<Entry>], from: usize) -> Option<usize> {
    (from..path.len()).find(|index| is_cut_point(&path[*index]))
}

fn is_cut_point(entry: &Entry) -> bool {
    match &entry.kind {
        EntryKind::Message { role } => matches!(
            role.as_str(),
            "user"
                | "assistant"
                | "bashExecution"
                | "custom"
                | "branchSummary"
                | "compactionSummary"
        ),
        EntryKind::BranchSummary | EntryKind::CustomMessage { .. } => true,
        _ => false,
    }
}

fn begins_turn(entry: &Entry) -> bool {
    match &entry.kind {
        EntryKind::Message { role } => matches!(role.as_str(), "user" | "bashExecution"),
        EntryKind::BranchSummary | EntryKind::CustomMessage { .. } => true,
        _ => false,
    }
}
