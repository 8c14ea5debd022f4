//! Sessions: the entries of a conversation, kept in an append-only JSONL file
//! that is the truth. Knows nothing of agents.

mod backing;
mod context;
mod entry;
mod error;
mod fork;
mod handle;
mod header;
mod holder;
mod list;
mod load;
pub mod message;
mod migrate;
mod parallel;
mod patch;
mod paths;
mod raw;
mod record;
mod storage;
mod store;
mod tree;
mod unsaved;

pub use context::{ModelRef, SessionContext};
pub use entry::{Entry, EntryKind};
pub use error::{SessionError, Warning};
pub use handle::{NewSession, Session};
pub use header::{CURRENT_VERSION, Header};
pub use list::{SessionInfo, SessionRef, find_by_id, list, most_recent, session_dirs};
pub use paths::{default_session_dir, folder_name};
pub use raw::Raw;
pub use storage::{Disk, Storage, StoredFile};
pub use tree::TreeNode;

#[cfg(test)]
mod tests;
