//! Sessions: the entries of a conversation in an append-only JSONL file, which is the source of
//! truth. Knows nothing of agents.

mod context;
mod context_edits;
mod context_json;
mod entry;
mod error;
mod export;
mod file;
mod fork;
mod format;
mod list;
pub mod message;
mod parallel;
mod paths;
mod session;
mod tree;
mod tree_json;

pub use context::{ModelRef, SessionContext};
pub use entry::{Entry, EntryKind};
pub use error::{SessionError, Warning};
pub use export::{import, is_session_file};
pub use file::fs::{Disk, FileSystem, OpenFile};
pub use file::id_reservation::{FolderLock, check_id_free};
pub use file::lock::LockOutcome;
pub use file::lock_holder::LockHolder;
pub use file::read_only::ReadOnlySession;
pub use file::unlocked::UnlockedSession;
pub use format::detached_entries::{context_json_from_lines, migrate_lines};
pub use format::header::{CURRENT_VERSION, Header};
pub use format::shared_text::SharedText;
pub use list::search::SessionQuery;
pub use list::summary::SessionInfo;
pub use list::{SessionRef, find_by_id, list, list_all, most_recent, read_header, session_dirs};
pub use paths::{default_session_dir, folder_name};
pub use session::{NewSession, Session};
pub use tree::TreeNode;

#[cfg(test)]
mod tests;
