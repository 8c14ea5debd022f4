//! Compaction of conversations that outgrow their model, and summaries of branches: what is
//! kept, what is summarized, and how a model is asked for the summary. Appends nothing to the
//! session; that is the caller's task.

mod branch;
mod cut_point;
mod file_ops;
mod prepare;
mod prompts;
mod serialize;
mod summarize;
mod tokens;

pub use branch::{BranchPart, BranchRequest, branch_part, newest_messages, summarize_branch};
pub use cut_point::cut_point;
pub use prepare::{NothingToCompact, Preparation, prepare};
pub use summarize::{Compacted, Summarizer, SummaryError, summarize};
pub use tokens::{ContextEstimate, estimate, estimate_context, exceeds_window, usage_tokens};

#[cfg(test)]
mod tests;
