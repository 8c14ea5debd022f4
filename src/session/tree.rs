//! The entries of a session in memory: file order, the tree over it, and the current labels and
//! name. Everything is derived from the file.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::IndexMap;
use uuid::Uuid;

use crate::entry::{Entry, EntryKind};
use crate::error::SessionError;
use crate::format::entry_writer::IdRef;

#[derive(Default)]
pub(crate) struct Tree {
    entries: Vec<Arc<Entry>>,
    by_id: HashMap<ById, usize>,
    labels: IndexMap<String, Label>,
    name: Option<String>,
    /// Index of the leaf in `entries`.
    leaf: Option<usize>,
    /// Number of entries at the end that are not in the file although they should be.
    unsaved: usize,
}

/// Key of the map from ids to entries; a separate key would be a copy of the id.
struct ById(Arc<Entry>);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.as_str().hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) timestamp: String,
}

/// One entry with its parent and children as indexes in the list. A list is used because a
/// conversation is one long branch: nested values of that depth cannot be walked or dropped by
/// recursion.
#[derive(Clone, Debug)]
pub struct TreeNode {
    pub entry: Arc<Entry>,
    /// Index of the parent; `None` for roots and for entries whose parent is missing.
    pub parent: Option<usize>,
    /// Indexes of the children, oldest first.
    pub children: Vec<usize>,
    pub label: Option<String>,
    pub label_timestamp: Option<String>,
}

/// Generates an id of 8 hex digits that is not taken.
pub(crate) fn fresh_id(taken: impl Fn(&str) -> bool) -> String {
    loop {
        let mut id = Uuid::new_v4().simple().to_string();
        id.truncate(8);
        if !taken(&id) {
            return id;
        }
    }
}

impl Tree {
    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self {
            entries: Vec::with_capacity(entries),
            by_id: HashMap::with_capacity(entries),
            ..Self::default()
        }
    }

    /// Adds an entry, which becomes the leaf.
    pub(crate) fn insert(&mut self, mut entry: Entry) -> Arc<Entry> {
        entry.assign_position(self.leaf());
        match &entry.kind {
            EntryKind::Label {
                target_id,
                label: Some(text),
            } => {
                let label = Label {
                    text: text.clone(),
                    timestamp: entry.timestamp.clone(),
                };
                self.labels.insert(target_id.clone(), label);
            }
            EntryKind::Label {
                target_id,
                label: None,
            } => {
                self.labels.shift_remove(target_id);
            }
            EntryKind::SessionInfo { name } => {
                let name = name
                    .as_deref()
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                self.name = name.map(str::to_owned);
            }
            _ => {}
        }
        let entry = Arc::new(entry);
        let index = self.entries.len();
        self.leaf = Some(index);
        self.by_id.insert(ById(Arc::clone(&entry)), index);
        self.entries.push(Arc::clone(&entry));
        entry
    }

    pub(crate) fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Entry>> {
        self.by_id.get(id).map(|index| &self.entries[*index])
    }

    pub(crate) fn unsaved(&self) -> usize {
        self.unsaved
    }

    /// Marks the last entry as missing from the file.
    pub(crate) fn mark_last_unsaved(&mut self) {
        self.unsaved += 1;
    }

    /// Marks the first of the missing entries as stored.
    pub(crate) fn mark_first_saved(&mut self) {
        self.unsaved -= 1;
    }

    pub(crate) fn leaf(&self) -> Option<&str> {
        self.leaf.map(|index| self.entries[index].id.as_str())
    }

    /// Returns the id of the leaf in the form that the next entry must use.
    pub(crate) fn leaf_ref(&self) -> Option<IdRef<'_>> {
        self.leaf.map(|index| self.entries[index].id_ref())
    }

    /// Returns an id in the form that other entries must use.
    pub(crate) fn id_ref<'a>(&'a self, id: &'a str) -> IdRef<'a> {
        self.get(id).map_or(id.into(), |entry| entry.id_ref())
    }

    /// Sets the leaf. `None` is the position before the first entry.
    pub(crate) fn set_leaf(&mut self, leaf: Option<&str>) -> Result<(), SessionError> {
        self.leaf = match leaf {
            Some(id) => Some(*self.by_id.get(id).ok_or_else(|| unknown(id))?),
            None => None,
        };
        Ok(())
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.leaf == self.entries.len().checked_sub(1)
    }

    pub(crate) fn move_to_end(&mut self) {
        self.leaf = self.entries.len().checked_sub(1);
    }

    pub(crate) fn known(&self, id: &str) -> Result<&Arc<Entry>, SessionError> {
        self.get(id).ok_or_else(|| unknown(id))
    }

    pub(crate) fn labels(&self) -> &IndexMap<String, Label> {
        &self.labels
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) fn new_id(&self) -> String {
        fresh_id(|id| self.by_id.contains_key(id))
    }

    /// Returns the path from the root to `from`. If an ancestor is missing, the path begins
    /// after it.
    pub(crate) fn path_to(&self, from: Option<&str>) -> Vec<Arc<Entry>> {
        let mut path = Vec::new();
        // A damaged file may contain a cycle.
        let mut seen = vec![false; self.entries.len()];
        let mut next = from.and_then(|id| self.by_id.get(id).copied());
        while let Some(index) = next.filter(|index| !seen[*index]) {
            seen[index] = true;
            path.push(Arc::clone(&self.entries[index]));
            next = self.parent_of(index);
        }
        path.reverse();
        path
    }

    fn parent_of(&self, index: usize) -> Option<usize> {
        let parent = self.entries[index].parent_id.as_deref()?;
        self.by_id.get(parent).copied()
    }

    /// Returns the entries whose parent is named and missing.
    pub(crate) fn orphans(&self) -> impl Iterator<Item = &Arc<Entry>> {
        let mut previous = None;
        self.entries.iter().filter(move |entry| {
            let parent = entry.parent_id.as_deref();
            // The parent is nearly always the previous entry, so only this case needs to be
            // fast.
            let follows = parent == previous;
            previous = Some(entry.id.as_str());
            !follows && parent.is_some_and(|parent| !self.by_id.contains_key(parent))
        })
    }

    /// Returns the nodes in file order, so that indexes are those of [`Tree::entries`].
    pub(crate) fn nodes(&self) -> Vec<TreeNode> {
        let mut nodes: Vec<TreeNode> = (0..self.entries.len()).map(|i| self.node(i)).collect();
        for index in 0..nodes.len() {
            if let Some(parent) = nodes[index].parent {
                nodes[parent].children.push(index);
            }
        }
        for node in &mut nodes {
            node.children
                .sort_by_key(|child| self.entries[*child].millis());
        }
        nodes
    }

    fn node(&self, index: usize) -> TreeNode {
        let entry = Arc::clone(&self.entries[index]);
        let label = self.labels.get(&entry.id);
        TreeNode {
            parent: self.parent_of(index).filter(|parent| *parent != index),
            children: Vec::new(),
            label: label.map(|label| label.text.clone()),
            label_timestamp: label.map(|label| label.timestamp.clone()),
            entry,
        }
    }
}

fn unknown(id: &str) -> SessionError {
    SessionError::UnknownEntry { id: id.to_owned() }
}
