//! Changes single members of a JSON line and leaves the others byte for byte: programs that
//! know more members than pi read and write the same file.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::entry::Entry;
use crate::format::entry_writer::IdRef;
use crate::format::members::Scalar;

pub(crate) type Object = IndexMap<String, Box<RawValue>>;

pub(crate) enum Line {
    Object(Object),
    Unreadable(String),
}

impl Line {
    pub(crate) fn new(line: &str) -> Self {
        match serde_json::from_str(line) {
            Ok(object) => Self::Object(object),
            Err(_) => Self::Unreadable(line.to_owned()),
        }
    }

    pub(crate) fn into_string(self) -> String {
        match self {
            Self::Object(object) => to_raw(&object).get().to_owned(),
            Self::Unreadable(line) => line,
        }
    }
}

pub(crate) fn string_member(object: &Object, member: &str) -> Option<String> {
    serde_json::from_str(object.get(member)?.get()).ok()
}

pub(crate) fn to_raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("strings, numbers and JSON are JSON")
}

/// Returns the line of `entry` with another parent and all else unchanged. A line without an id
/// gets the assigned one.
pub(crate) fn with_parent(entry: &Entry, parent: Option<IdRef<'_>>) -> String {
    let mut line = Line::new(&entry.raw);
    if let Line::Object(object) = &mut line {
        if entry.lacks_id() {
            object.insert("id".into(), to_raw(&entry.id));
        }
        object.insert("parentId".into(), to_raw(&parent));
    }
    line.into_string()
}

/// Returns the line of `entry` with its ids and its time as strings and all else unchanged.
pub(crate) fn with_normal_members(entry: &Entry) -> String {
    let mut line = Line::new(&entry.raw);
    if let Line::Object(object) = &mut line {
        object.insert("id".into(), to_raw(&entry.id));
        object.insert("parentId".into(), to_raw(&entry.parent_id));
        object.insert("timestamp".into(), to_raw(&entry.timestamp));
        for member in ["targetId", "firstKeptEntryId", "fromId"] {
            let number = object
                .get(member)
                .and_then(|id| id.get().parse::<f64>().ok());
            if let Some(id) = number.and_then(|number| Scalar::Number(number).into_id()) {
                object.insert(member.into(), to_raw(&id));
            }
        }
    }
    line.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_parent_changes_nothing_else() {
        let line = r#"{"type":"mood","n":1.0,"id":"b","parentId":"a","x":{ "y":1 }}"#;
        assert_eq!(
            with_parent(&Entry::parse(line).unwrap(), None),
            r#"{"type":"mood","n":1.0,"id":"b","parentId":null,"x":{ "y":1 }}"#
        );
    }
}
