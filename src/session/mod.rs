//! Sessions: the entries of a conversation in an append-only JSONL file, which is the source of
//! truth. Knows nothing of agents.

mod backing;
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

pub use claim::{FolderHold, check_id};
pub use context::{ModelRef, SessionContext};
pub use entry::{Entry, EntryKind};
pub use error::{SessionError, Warning};
pub use export::{import, is_session_file};
pub use handle::{NewSession, Session};
pub use header::{CURRENT_VERSION, Header};
pub use hold::Held;
pub use holder::Holder;
pub use info::SessionInfo;
pub use lines::{context_json_of, migrate_lines};
pub use list::{SessionRef, find_by_id, header_of, list, list_all, most_recent, session_dirs};
pub use loose::LooseSession;
pub use paths::{default_session_dir, folder_name};
pub use raw::Raw;
pub use search::SessionQuery;
pub use snapshot::Snapshot;
pub use storage::{Disk, Storage, StoredFile};
pub use tree::TreeNode;

#[cfg(test)]
mod tests;
