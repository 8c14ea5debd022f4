//! Functions for entries that extensions hold without their file: migration to the current
//! version, and their context.

use crate::context_json;
use crate::entry::Entry;
use crate::error::SessionError;
use crate::format::header::{CURRENT_VERSION, Header};
use crate::format::migrate::migrate;
use crate::tree::Tree;

/// Returns the context at `leaf` as JSON. `None` is the last entry, `Some(None)` the position
/// before the first. Lines that are not entries, such as a header, are ignored.
pub fn context_json_from_lines(
    lines: &[&str],
    leaf: Option<Option<&str>>,
) -> Result<String, SessionError> {
    let mut tree = Tree::default();
    for entry in lines.iter().filter_map(|line| Entry::parse(*line).ok()) {
        if entry.type_name() != "session" {
            tree.insert(entry);
        }
    }
    match leaf {
        Some(None) => tree.set_leaf(None)?,
        // An unknown id means the end, too.
        Some(Some(id)) if tree.get(id).is_some() => tree.set_leaf(Some(id))?,
        _ => {}
    }
    Ok(context_json::write(&tree.path_to(tree.leaf())))
}

/// Migrates entries; `None` if they are of the current version already.
pub fn migrate_lines(lines: &[&str]) -> Option<Vec<String>> {
    let header = lines.iter().find_map(|line| Header::parse(line));
    let version = header.map_or(1, |header| header.version);
    (version < CURRENT_VERSION).then(|| migrate(lines, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_is_that_of_the_leaf() {
        let lines = [
            r#"{"type":"session","version":3,"id":"s"}"#,
            r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"a","timestamp":1}}"#,
            r#"{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"b","timestamp":1}}"#,
        ];
        let count = |leaf| {
            let context = context_json_from_lines(&lines, leaf).unwrap();
            context.matches("\"role\"").count()
        };
        assert_eq!(count(None), 2);
        assert_eq!(count(Some(Some("a"))), 1);
        assert_eq!(count(Some(Some("gone"))), 2);
        assert_eq!(count(Some(None)), 0);
        assert_eq!(migrate_lines(&lines), None);
    }
}
