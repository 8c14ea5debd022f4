//! A session written by the SessionManager of the original; only the entry ids were numbered by
//! hand.

use super::*;
use crate::format::entry_writer::{EntryPosition, Record};

const FILE: &str = include_str!("reference.jsonl");

fn reference() -> (TempDir, Session) {
    let dir = temp();
    let path = dir.path().join("r.jsonl");
    fs::write(&path, FILE).unwrap();
    let (session, warnings) = open(&path);
    assert_eq!(warnings, []);
    (dir, session)
}

#[test]
fn original_session_opens_and_file_is_unchanged() {
    let (_dir, session) = reference();
    let lines: Vec<String> = FILE.lines().map(str::to_owned).collect();
    assert_eq!(*session.header().raw, *lines[0]);
    assert_eq!(raws(&session), lines[1..]);
    assert_eq!(fs::read_to_string(session.path().unwrap()).unwrap(), FILE);
    assert_eq!(session.name(), Some("a name"));
    assert_eq!(session.label("00000006"), Some("good"));
    assert_eq!(session.cwd(), Path::new("/home/me/project"));
    let others = session
        .entries()
        .iter()
        .filter(|e| matches!(e.kind, EntryKind::Other { .. }));
    assert_eq!(others.count(), 0);
}

#[test]
fn context_is_that_of_the_original() {
    let (_dir, mut session) = reference();
    let context = session.build_context();
    assert_eq!(
        texts(&context),
        [
            "list \"files\"\n\u{2028}é",
            "assistant",
            "ls call_1 error=false: a\nb",
            "assistant",
            "plain text",
            "branch: went elsewhere",
            "again",
        ]
    );
    let model = ModelRef {
        provider: "openai".into(),
        model_id: "gpt-x".into(),
    };
    assert_eq!(
        (context.model, context.thinking_level),
        (Some(model), Some("high".into()))
    );
    assert_eq!(context.warnings, []);

    session.set_leaf(Some("0000000d")).unwrap();
    assert_eq!(
        texts(&session.build_context()),
        [
            "compaction: summed up",
            "plain text",
            "bashExecution",
            "from an extension"
        ]
    );
}

#[test]
fn messages_serialize_to_the_same_bytes() {
    let (_dir, session) = reference();
    let mut written = 0;
    for entry in session.entries() {
        if entry.type_name() != "message" {
            continue;
        }
        let message = entry.message().unwrap().unwrap();
        let (id, parent_id) = (&*entry.id, entry.parent_id.as_deref().map(Into::into));
        let place = EntryPosition {
            id,
            parent_id,
            timestamp: &entry.timestamp,
        };
        assert_eq!(
            Record::Message { message: &message }.to_line(place),
            *entry.raw
        );
        written += 1;
    }
    assert_eq!(written, 7);
}
