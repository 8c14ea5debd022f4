//! The session itself: reading, appending, and moving in the tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::Utc;
use serde_json::Value;

use crate::context::{self, SessionContext};
use crate::context_json;
use crate::entry::{Entry, EntryKind};
use crate::error::{SessionError, Warning};
use crate::file::fs::{Disk, FileSystem};
use crate::file::persistence::Persistence;
use crate::file::session_file::SessionFile;
use crate::format::entry_writer::{EntryPosition, Record};
use crate::format::external_entry;
use crate::format::header::Header;
use crate::format::load::{Tail, load};
use crate::list;
use crate::message::AgentMessage;
use crate::paths;
use crate::tree::{Tree, TreeNode};
use crate::tree_json;
use pi_ai::message::UserContent;

/// Options of a new session. The default is a generated id and no parent.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    pub id: Option<String>,
    /// The file of the session that this one continues or was forked from.
    pub parent_session: Option<PathBuf>,
}

/// A session, and the only writer of its file from the first append or [`Session::open`] to
/// [`Session::release_lock`].
pub struct Session {
    pub(crate) header: Header,
    pub(crate) cwd: PathBuf,
    pub(crate) persistence: Persistence,
    pub(crate) tree: Tree,
}

impl Session {
    /// Creates a session that gets its file in `dir` with the first message.
    pub fn create(dir: &Path, cwd: &Path, new: NewSession) -> Self {
        Self::create_on(Arc::new(Disk), dir, cwd, new)
    }

    pub fn create_on(
        storage: Arc<dyn FileSystem>,
        dir: &Path,
        cwd: &Path,
        new: NewSession,
    ) -> Self {
        let header = Header::new(new.id, cwd, new.parent_session.as_deref());
        let path = absolute(&dir.join(header.file_name()));
        Self {
            header,
            cwd: cwd.to_owned(),
            persistence: Persistence::Unwritten {
                storage,
                path,
                file: None,
            },
            tree: Tree::default(),
        }
    }

    /// Creates a session that is never stored.
    pub fn in_memory(cwd: &Path) -> Self {
        Self::in_memory_with(cwd, NewSession::default())
    }

    pub fn in_memory_with(cwd: &Path, new: NewSession) -> Self {
        Self {
            header: Header::new(new.id, cwd, new.parent_session.as_deref()),
            cwd: cwd.to_owned(),
            persistence: Persistence::Memory,
            tree: Tree::default(),
        }
    }

    /// Opens a file and repairs damage that a crash left. A file that does not exist or is
    /// empty becomes a new session at that path with working directory `cwd`.
    pub fn open(path: &Path, cwd: &Path) -> Result<(Self, Vec<Warning>), SessionError> {
        Self::open_on(Arc::new(Disk), path, cwd)
    }

    pub fn open_on(
        storage: Arc<dyn FileSystem>,
        path: &Path,
        cwd: &Path,
    ) -> Result<(Self, Vec<Warning>), SessionError> {
        let path = absolute(path);
        let mut warnings = Vec::new();
        let Some(mut file) = SessionFile::open(&storage, &path, &mut warnings)? else {
            return Ok((Self::unwritten(storage, path, None, cwd), warnings));
        };
        let bytes = file.read()?;
        let loaded = load(&path, bytes, &mut warnings)?;
        if let Tail::Torn(start) = loaded.tail {
            // A complete session opens even if its end cannot be repaired now.
            let can_stay = loaded.session.is_some() && loaded.migrated.is_none();
            let warning = repair_end(&mut file, &path, start, &loaded.torn, can_stay)?;
            warnings.insert(0, warning);
        }
        let Some((header, tree)) = loaded.session else {
            return Ok((Self::unwritten(storage, path, Some(file), cwd), warnings));
        };
        if let Some(migrated) = loaded.migrated {
            if let Some(damaged) = loaded.damaged {
                let aside = file.write_backup(&damaged)?;
                warnings.push(Warning::KeptOriginal { path, aside });
            }
            file.replace(migrated.as_bytes())?;
        } else if loaded.tail == Tail::Record {
            if file.append("\n").is_err() {
                file.mark_end_incomplete();
            }
            warnings.insert(0, Warning::MissingNewline { path });
        }
        let cwd = header.cwd.clone().unwrap_or_else(|| cwd.to_owned());
        let persistence = Persistence::File(file);
        Ok((
            Self {
                header,
                cwd,
                persistence,
                tree,
            },
            warnings,
        ))
    }

    pub(crate) fn unwritten(
        storage: Arc<dyn FileSystem>,
        path: PathBuf,
        file: Option<SessionFile>,
        cwd: &Path,
    ) -> Self {
        Self {
            header: Header::new(None, cwd, None),
            cwd: cwd.to_owned(),
            persistence: Persistence::Unwritten {
                storage,
                path,
                file,
            },
            tree: Tree::default(),
        }
    }

    /// Opens the session of `dir` that was written last, or creates one if there is none.
    pub fn continue_recent(dir: &Path, cwd: &Path) -> Result<(Self, Vec<Warning>), SessionError> {
        match list::most_recent(dir)? {
            Some(path) => Self::open_shared(&path, cwd),
            None => Ok((Self::create(dir, cwd, NewSession::default()), Vec::new())),
        }
    }

    /// Appends a message. After `Ok` the message survives SIGKILL.
    pub fn append_message(&mut self, message: &AgentMessage) -> Result<Arc<Entry>, SessionError> {
        match message {
            AgentMessage::BranchSummary(_) | AgentMessage::CompactionSummary(_) => {
                return Err(SessionError::NotAMessage {
                    role: message.role(),
                });
            }
            _ => {}
        }
        self.acquire_lock()?;
        let entry = self.new_entry(Record::Message { message });
        self.store(entry.with_message(message.clone()))
    }

    pub fn append_model_change(
        &mut self,
        provider: &str,
        model_id: &str,
    ) -> Result<Arc<Entry>, SessionError> {
        self.append(Record::ModelChange { provider, model_id })
    }

    pub fn append_thinking_level_change(
        &mut self,
        thinking_level: &str,
    ) -> Result<Arc<Entry>, SessionError> {
        self.append(Record::ThinkingLevelChange { thinking_level })
    }

    /// Appends a compaction. `from_hook` is true if an extension wrote the summary.
    pub fn append_compaction(
        &mut self,
        summary: &str,
        first_kept_entry_id: &str,
        tokens_before: u64,
        details: Option<&Value>,
        from_hook: Option<bool>,
    ) -> Result<Arc<Entry>, SessionError> {
        self.acquire_lock()?;
        let entry = self.new_entry(Record::Compaction {
            summary,
            first_kept_entry_id: self.tree.id_ref(first_kept_entry_id),
            tokens_before,
            details,
            from_hook,
        });
        self.store(entry)
    }

    /// Moves the leaf to `from` and appends the summary of the branch that was left. On an
    /// error the leaf stays where it was.
    pub fn branch_with_summary(
        &mut self,
        from: Option<&str>,
        summary: &str,
        details: Option<&Value>,
        from_hook: Option<bool>,
    ) -> Result<Arc<Entry>, SessionError> {
        self.acquire_lock()?;
        let old = self.tree.leaf().map(str::to_owned);
        self.tree.set_leaf(from)?;
        let entry = self.new_entry(Record::BranchSummary {
            from_id: self.tree.id_ref(from.unwrap_or("root")),
            summary,
            details,
            from_hook,
        });
        let appended = self.store(entry);
        if appended.is_err() {
            self.tree.set_leaf(old.as_deref())?;
        }
        appended
    }

    /// Appends data of an extension, which is not part of the context.
    pub fn append_custom(
        &mut self,
        custom_type: &str,
        data: Option<&Value>,
    ) -> Result<Arc<Entry>, SessionError> {
        self.append(Record::Custom { custom_type, data })
    }

    /// Appends a message of an extension.
    pub fn append_custom_message(
        &mut self,
        custom_type: &str,
        content: &UserContent,
        display: bool,
        details: Option<&Value>,
    ) -> Result<Arc<Entry>, SessionError> {
        self.append(Record::CustomMessage {
            custom_type,
            content,
            display,
            details,
        })
    }

    /// Names the session; a blank name removes the name.
    pub fn append_session_info(&mut self, name: &str) -> Result<Arc<Entry>, SessionError> {
        self.append(Record::SessionInfo { name: name.trim() })
    }

    /// Sets the label of an entry; `None` or an empty text removes it. The label is an entry
    /// and becomes the leaf.
    pub fn append_label(
        &mut self,
        target_id: &str,
        label: Option<&str>,
    ) -> Result<Arc<Entry>, SessionError> {
        self.acquire_lock()?;
        self.tree.known(target_id)?;
        let label = label.filter(|label| !label.is_empty());
        let entry = self.new_entry(Record::Label {
            target_id: self.tree.id_ref(target_id),
            label,
        });
        self.store(entry)
    }

    /// Appends an entry made by an extension. Its members, known or not, are stored as they
    /// are; id, parent and time are assigned here.
    pub fn append_external(&mut self, external: &str) -> Result<Arc<Entry>, SessionError> {
        self.acquire_lock()?;
        let position = EntryPosition {
            id: &self.tree.new_id(),
            parent_id: self.tree.leaf_ref(),
            timestamp: &paths::iso(Utc::now()),
        };
        let entry = external_entry::parse(external, position)?;
        self.check_target(&entry)?;
        self.store(entry)
    }

    /// Fails if [`Self::append_external`] would refuse the entry.
    pub fn check_external(&self, external: &str) -> Result<(), SessionError> {
        let position = EntryPosition {
            id: "draft",
            parent_id: None,
            timestamp: "",
        };
        self.check_target(&external_entry::parse(external, position)?)
    }

    fn check_target(&self, entry: &Entry) -> Result<(), SessionError> {
        match &entry.kind {
            EntryKind::Label { target_id, .. } | EntryKind::ContextEdit { target_id } => {
                self.tree.known(target_id).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn append(&mut self, record: Record<'_>) -> Result<Arc<Entry>, SessionError> {
        self.acquire_lock()?;
        let entry = self.new_entry(record);
        self.store(entry)
    }

    pub(crate) fn new_entry(&self, record: Record<'_>) -> Entry {
        let line = record.to_line(EntryPosition {
            id: &self.tree.new_id(),
            parent_id: self.tree.leaf_ref(),
            timestamp: &paths::iso(Utc::now()),
        });
        Entry::parse(line).expect("a line that was just written has a type and an id")
    }

    /// Writes to the file first: memory never holds an entry that the file lacks, unless it was
    /// [kept](Self::append_or_buffer).
    fn store(&mut self, entry: Entry) -> Result<Arc<Entry>, SessionError> {
        entry.check_depth()?;
        self.write_unsaved()?;
        self.persistence
            .append(&self.header, self.tree.entries(), &entry)?;
        Ok(self.tree.insert(entry))
    }

    /// Returns all entries in file order. The list only grows: a caller that has seen `n`
    /// entries reads on at `[n..]`.
    pub fn entries(&self) -> &[Arc<Entry>] {
        self.tree.entries()
    }

    pub fn entry(&self, id: &str) -> Option<&Arc<Entry>> {
        self.tree.get(id)
    }

    /// Returns the entry after which the next one is appended; `None` before the first.
    pub fn leaf_id(&self) -> Option<&str> {
        self.tree.leaf()
    }

    /// Moves to another entry, or before the first. The position is only in memory: after
    /// opening a file, the leaf is its last entry.
    pub fn set_leaf(&mut self, leaf: Option<&str>) -> Result<(), SessionError> {
        self.tree.set_leaf(leaf)
    }

    /// Moves to the last entry, which is the leaf after opening a file.
    pub fn move_to_end(&mut self) {
        self.tree.move_to_end();
    }

    /// Returns the entries from the root to `from`, or to the leaf if `from` is `None`.
    pub fn branch(&self, from: Option<&str>) -> Vec<Arc<Entry>> {
        self.tree.path_to(from.or(self.tree.leaf()))
    }

    /// Returns every entry with its parent and children, in file order.
    pub fn tree(&self) -> Vec<TreeNode> {
        self.tree.nodes()
    }

    /// Returns `{"tree":[…],"leafId":…}`, with each node inside its parent.
    pub fn tree_json(&self) -> String {
        tree_json::with_leaf_id("tree", &tree_json::write(&self.tree()), self.leaf_id())
    }

    /// Returns `{"entries":[…],"leafId":…}` with the entries after `since`, or all of them.
    pub fn entries_json(&self, since: Option<&str>) -> Result<String, SessionError> {
        let entries = self.entries();
        let from = match since {
            None => 0,
            Some(id) => {
                let at = entries.iter().position(|entry| entry.id == id);
                at.ok_or_else(|| SessionError::UnknownEntry { id: id.to_owned() })? + 1
            }
        };
        let lines: Vec<_> = entries[from..]
            .iter()
            .map(|entry| entry.wire_json())
            .collect();
        let list = format!("[{}]", lines.join(","));
        Ok(tree_json::with_leaf_id("entries", &list, self.leaf_id()))
    }

    /// Returns the context at the leaf.
    pub fn build_context(&self) -> SessionContext {
        context::build(&self.tree.path_to(self.tree.leaf()))
    }

    /// Returns the context at the leaf as JSON for extensions.
    pub fn context_json(&self) -> String {
        context_json::write(&self.tree.path_to(self.tree.leaf()))
    }

    /// Returns the context at the leaf, entry by entry, as it would be with these entries
    /// appended (see [`Self::check_external`]).
    pub fn projection(&self, external: &[String]) -> Vec<Value> {
        let mut path = self.tree.path_to(self.tree.leaf());
        let timestamp = &paths::iso(Utc::now());
        for (index, line) in external.iter().enumerate() {
            let position = EntryPosition {
                id: &format!("draft-{index}"),
                parent_id: path.last().map(|entry| entry.id_ref()),
                timestamp,
            };
            path.extend(external_entry::parse(line, position).ok().map(Arc::new));
        }
        context_json::projection(&path)
    }

    pub fn name(&self) -> Option<&str> {
        self.tree.name()
    }

    pub fn label(&self, id: &str) -> Option<&str> {
        self.tree.labels().get(id).map(|label| label.text.as_str())
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn id(&self) -> &str {
        &self.header.id
    }

    /// Returns the path of the session file, which may not exist yet; `None` in memory.
    pub fn path(&self) -> Option<&Path> {
        self.persistence.path()
    }

    /// Returns whether the session has a file.
    pub fn is_stored(&self) -> bool {
        matches!(self.persistence, Persistence::File(_))
    }

    /// Returns the working directory of the header, unless it was overridden.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Sets the working directory of a session whose own is gone. The file is not changed.
    pub fn override_cwd(&mut self, cwd: &Path) {
        self.cwd = cwd.to_owned();
    }
}

/// Removes an incomplete record from the end of the file; leaves it there if that is not
/// possible now.
fn repair_end(
    file: &mut SessionFile,
    path: &Path,
    start: usize,
    tail: &[u8],
    can_stay: bool,
) -> Result<Warning, SessionError> {
    let path = path.to_owned();
    let bytes = tail.len();
    match file.move_tail_aside(start, tail) {
        Ok(aside) => Ok(Warning::TornTail { path, aside, bytes }),
        Err(error) if can_stay => {
            file.mark_end_incomplete();
            let reason = error.to_string();
            Ok(Warning::TornTailLeft {
                path,
                bytes,
                reason,
            })
        }
        Err(error) => Err(error),
    }
}

/// Makes a path absolute without reading the disk. A relative path stays relative if the
/// process has no working directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
