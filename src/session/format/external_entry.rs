//! Entries that extensions made. They are checked before they are stored, because a file that
//! cannot be read again is worse than an error.

use crate::context_edits;
use crate::entry::{Entry, EntryKind};
use crate::error::SessionError;
use crate::format::entry_writer::EntryPosition;
use crate::format::json_line::{Object, string_member, to_raw};

/// Returns the entry at its position in the tree, with its members in the order of the
/// original.
pub(crate) fn parse(external: &str, position: EntryPosition<'_>) -> Result<Entry, SessionError> {
    let bad = |reason: String| SessionError::BadEntry {
        what: "the entry".into(),
        reason,
    };
    let object: Object = serde_json::from_str(external).map_err(|error| bad(error.to_string()))?;
    let type_name = string_member(&object, "type").ok_or_else(|| bad("it has no type".into()))?;
    let mut own = Object::new();
    own.insert("id".into(), to_raw(position.id));
    own.insert("parentId".into(), to_raw(&position.parent_id));
    own.insert("timestamp".into(), to_raw(position.timestamp));
    let mut line = Object::new();
    line.insert("type".into(), to_raw(&type_name));
    let is_custom = matches!(type_name.as_str(), "custom" | "custom_message");
    let rest = object.into_iter().filter(|(name, _)| name != "type");
    // Existing keys keep their position when they are inserted again; pi's members replace the
    // extension's.
    let mut rest: Object = rest.filter(|(name, _)| !own.contains_key(name)).collect();
    if type_name == "compaction"
        && let Some(kept) = rest.get_mut("firstKeptEntryId")
        && kept.get() == "null"
    {
        // The compaction keeps nothing before it; newer versions write its own id for that.
        *kept = to_raw(position.id);
    }
    let (first, last): (Object, Object) = match is_custom {
        true => (rest, own),
        false => (own, rest),
    };
    line.extend(first);
    line.extend(last);
    let text = to_raw(&line);
    if text.get().contains('\n') {
        return Err(bad("it has to be JSON without line ends".into()));
    }
    let entry = Entry::parse(text.get()).map_err(|error| bad(error.to_string()))?;
    check(&entry)?;
    Ok(entry)
}

fn check(entry: &Entry) -> Result<(), SessionError> {
    let bad = |reason: &str| SessionError::BadEntry {
        what: format!("an entry of the type \"{}\"", entry.type_name()),
        reason: reason.into(),
    };
    match &entry.kind {
        EntryKind::Other { .. } => {
            return Err(bad("the type is unknown, or lacks a member that it needs"));
        }
        EntryKind::Message { role } if role == "compactionSummary" || role == "branchSummary" => {
            return Err(bad(
                "a summary is an entry of its own: use appendCompaction or branchWithSummary",
            ));
        }
        EntryKind::ContextEdit { .. } if !context_edits::is_complete(&entry.raw) => {
            return Err(bad(
                "`replacement` is null, or an object with `content`, a text or an array of blocks",
            ));
        }
        _ => {}
    }
    entry.check_depth()?;
    match entry.message() {
        Ok(_) => Ok(()),
        Err(SessionError::BadMessage { source, .. }) => Err(bad(&source.to_string())),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::entry_writer::IdRef;

    const POSITION: EntryPosition<'_> = EntryPosition {
        id: "b",
        parent_id: Some(IdRef {
            text: "a",
            is_number: false,
        }),
        timestamp: "T",
    };

    #[test]
    fn external_members_have_the_order_of_the_original() {
        let cases = [
            (
                r#"{"type":"message","message":{"role":"user","content":"x","timestamp":1,"more":{ "y":1.0 }}}"#,
                r#"{"type":"message","id":"b","parentId":"a","timestamp":"T","message":{"role":"user","content":"x","timestamp":1,"more":{ "y":1.0 }}}"#,
            ),
            (
                r#"{"customType":"c","type":"custom","data":[1],"id":"mine"}"#,
                r#"{"type":"custom","customType":"c","data":[1],"id":"b","parentId":"a","timestamp":"T"}"#,
            ),
            (
                r#"{"type":"compaction","summary":"s","firstKeptEntryId":"a","tokensBefore":1,"new":true}"#,
                r#"{"type":"compaction","id":"b","parentId":"a","timestamp":"T","summary":"s","firstKeptEntryId":"a","tokensBefore":1,"new":true}"#,
            ),
        ];
        for (external, stored) in cases {
            assert_eq!(&*parse(external, POSITION).unwrap().raw, stored);
        }
    }

    #[test]
    fn unreadable_external_entries_are_refused() {
        for external in [
            "7",
            "{}",
            r#"{"type":"mood"}"#,
            r#"{"type":"message","message":{"role":"user"}}"#,
            r#"{"type":"message","message":{"role":"branchSummary","summary":"s","fromId":"a","timestamp":1}}"#,
            r#"{"type":"custom"}"#,
            "{\"type\":\"custom\",\"customType\":\"c\",\"data\":{\n}}",
        ] {
            let error = parse(external, POSITION).unwrap_err();
            assert!(matches!(error, SessionError::BadEntry { .. }), "{error}");
        }
    }
}
