//! Migration of files of versions 1 and 2 to version 3. Members that a step does not name stay
//! byte for byte, and so do unreadable lines.

use std::collections::HashSet;

use crate::format::header::CURRENT_VERSION;
use crate::format::json_line::{Line, Object, string_member, to_raw};
use crate::tree::fresh_id;

/// Returns the migrated lines of a file of version `from`. `lines` begins with the header.
pub(crate) fn migrate(lines: &[&str], from: u64) -> Vec<String> {
    let mut lines: Vec<Line> = lines.iter().map(|line| Line::new(line)).collect();
    if from < 2 {
        give_ids(&mut lines);
    }
    if from < 3 {
        rename_hook_messages(&mut lines);
    }
    for object in objects(&mut lines).filter(|object| is_header(object)) {
        object.insert("version".into(), to_raw(&CURRENT_VERSION));
    }
    lines.into_iter().map(Line::into_string).collect()
}

/// Assigns ids and parents. Version 1 had neither, and its compactions counted lines.
fn give_ids(lines: &mut [Line]) {
    let mut taken = HashSet::new();
    let mut ids: Vec<Option<String>> = Vec::new();
    let mut parent: Option<String> = None;
    for object in objects(lines) {
        if is_header(object) {
            ids.push(None);
            continue;
        }
        let id = fresh_id(|id| taken.contains(id));
        taken.insert(id.clone());
        object.insert("id".into(), to_raw(&id));
        object.insert("parentId".into(), to_raw(&parent));
        parent = Some(id.clone());
        ids.push(Some(id));
    }
    for object in
        objects(lines).filter(|object| string_member(object, "type") == Some("compaction".into()))
    {
        let Some(index) = object.shift_remove("firstKeptEntryIndex") else {
            continue;
        };
        let index: Option<usize> = serde_json::from_str(index.get()).ok();
        if let Some(Some(id)) = index.and_then(|index| ids.get(index)) {
            object.insert("firstKeptEntryId".into(), to_raw(id));
        }
    }
}

/// Renames the messages of extensions, which version 2 named after hooks.
fn rename_hook_messages(lines: &mut [Line]) {
    for object in
        objects(lines).filter(|object| string_member(object, "type") == Some("message".into()))
    {
        let message = object.get("message").map(|message| message.get());
        let Some(Ok(mut message)) = message.map(serde_json::from_str::<Object>) else {
            continue;
        };
        if string_member(&message, "role") == Some("hookMessage".into()) {
            message.insert("role".into(), to_raw("custom"));
            object.insert("message".into(), to_raw(&message));
        }
    }
}

fn objects(lines: &mut [Line]) -> impl Iterator<Item = &mut Object> {
    lines.iter_mut().filter_map(|line| match line {
        Line::Object(object) => Some(object),
        Line::Unreadable(_) => None,
    })
}

fn is_header(object: &Object) -> bool {
    string_member(object, "type").as_deref() == Some("session")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn version_1_gets_ids_and_a_line_of_parents() {
        let lines = [
            r#"{"type":"session","id":"s","timestamp":"T","cwd":"/w","provider":"p"}"#,
            r#"{"type":"message","timestamp":"T1","message":{"role":"user","content":"a","timestamp":1e3}}"#,
            "{broken",
            r#"{"type":"message","timestamp":"T2","message":{"role":"hookMessage","x":1.0}}"#,
            r#"{"type":"compaction","timestamp":"T3","summary":"s","firstKeptEntryIndex":2,"tokensBefore":9}"#,
        ];
        let migrated = migrate(&lines, 1);
        let id = |line: &str| -> String {
            let value: Value = serde_json::from_str(line).unwrap();
            value["id"].as_str().unwrap().to_owned()
        };
        let (a, b, c) = (id(&migrated[1]), id(&migrated[3]), id(&migrated[4]));
        assert_eq!(
            migrated,
            [
                r#"{"type":"session","id":"s","timestamp":"T","cwd":"/w","provider":"p","version":3}"#.to_owned(),
                format!(r#"{{"type":"message","timestamp":"T1","message":{{"role":"user","content":"a","timestamp":1e3}},"id":"{a}","parentId":null}}"#),
                "{broken".to_owned(),
                format!(r#"{{"type":"message","timestamp":"T2","message":{{"role":"custom","x":1.0}},"id":"{b}","parentId":"{a}"}}"#),
                format!(r#"{{"type":"compaction","timestamp":"T3","summary":"s","tokensBefore":9,"id":"{c}","parentId":"{b}","firstKeptEntryId":"{b}"}}"#),
            ]
        );
    }

    #[test]
    fn version_2_only_renames_hook_messages() {
        let lines = [
            r#"{"type":"session","version":2,"id":"s"}"#,
            r#"{"type":"message","id":"a","parentId":null,"message":{"role":"hookMessage","n":1E5}}"#,
            r#"{"type":"mood","id":"b","parentId":"a"}"#,
        ];
        assert_eq!(
            migrate(&lines, 2),
            [
                r#"{"type":"session","version":3,"id":"s"}"#,
                r#"{"type":"message","id":"a","parentId":null,"message":{"role":"custom","n":1E5}}"#,
                r#"{"type":"mood","id":"b","parentId":"a"}"#,
            ]
        );
    }
}
