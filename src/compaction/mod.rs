//! Compaction of conversations that outgrow their model, and summaries of branches: what is
//! kept, what is summarized, and how a model is asked for the summary. Appends nothing to the
//! session; that is the caller's task.

mod branch;
mod cut;
mod files;
mod prepare;
mod prompts;
mod summarize;
mod text;
mod tokens;

pub use branch::{BranchPart, BranchRequest, branch_part, newest, summarize_branch};
pub use cut::cut_point;
pub use prepare::{Preparation, Unprepared, prepare};
pub use summarize::{Compacted, Summarizer, SummaryError, summarize};
pub use tokens::{ContextEstimate, estimate, estimate_context, of_usage, outgrows};

#[cfg(test)]
mod tests;
