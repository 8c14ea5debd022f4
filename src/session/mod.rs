//! Sessions: the entries of a conversation in an append-only JSONL file, which is the source of
//! truth. Knows nothing of agents.

mod persistence;
mod claim;
mod context;
mod context_json;
mod edits;
mod entry;
mod error;
mod export;
mod fork;
mod given;
mod handle;
mod header;
mod hold;
mod holder;
mod info;
mod lines;
mod list;
mod load;
mod loose;
mod members;
pub mod message;
mod migrate;
mod parallel;
mod patch;
mod paths;
mod raw;
mod record;
mod search;
mod snapshot;
mod storage;
mod store;
mod tree;
mod tree_json;
mod unsaved;

pub use claim::{FolderLock, check_id_free};
pub use context::{ModelRef, SessionContext};
pub use entry::{Entry, EntryKind};
pub use error::{SessionError, Warning};
pub use export::{import, is_session_file};
pub use handle::{NewSession, Session};
pub use header::{CURRENT_VERSION, Header};
pub use hold::LockOutcome;
pub use holder::LockHolder;
pub use info::SessionInfo;
pub use lines::{context_json_from_lines, migrate_lines};
pub use list::{SessionRef, find_by_id, read_header, list, list_all, most_recent, session_dirs};
pub use loose::UnlockedSession;
pub use paths::{default_session_dir, folder_name};
pub use raw::SharedText;
pub use search::SessionQuery;
pub use snapshot::ReadOnlySession;
pub use storage::{Disk, FileSystem, OpenFile};
pub use tree::TreeNode;

#[cfg(test)]
mod tests;
