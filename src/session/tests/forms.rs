//! Files of other programs: members of other types, lines without ids, byte order marks and
//! line ends.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Writes a file and opens it; returns the session and its warnings.
fn read(lines: &[String], end: &str) -> (TempDir, Session, Vec<Warning>) {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let content = lines.join(end) + end;
    fs::write(&path, &content).unwrap();
    let (session, warnings) = open(&path);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        content,
        "left as it was"
    );
    (dir, session, warnings)
}

fn forms(warnings: &[Warning]) -> Vec<&str> {
    let forms = warnings.iter().map(|warning| match warning {
        Warning::UnusualForm { form, .. } => form.as_str(),
        other => panic!("{other}"),
    });
    forms.collect()
}

fn with(line: &str, member: &str, value: Option<Value>) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap();
    let members = line.as_object_mut().unwrap();
    match value {
        Some(value) => members.insert(member.into(), value),
        None => members.shift_remove(member),
    };
    line.to_string()
}

fn conversation() -> Vec<String> {
    vec![
        HEADER.to_owned(),
        line("aaaaaaaa", None, "one"),
        line("bbbbbbbb", Some("aaaaaaaa"), "two"),
        line("cccccccc", Some("bbbbbbbb"), "three"),
    ]
}

#[test]
fn times_of_any_form_are_kept_and_warned_of_once() {
    for value in [json!(1_700_000_000_007_i64), json!(null), json!({})] {
        let mut lines = conversation();
        for line in &mut lines {
            *line = with(line, "timestamp", Some(value.clone()));
        }
        let (dir, session, warnings) = read(&lines, "\n");
        assert_eq!(texts(&session.build_context()), ["one", "two", "three"]);
        let [
            Warning::UnusualForm {
                count: 4, line: 1, ..
            },
        ] = &warnings[..]
        else {
            panic!("{warnings:?}");
        };
        let listed = list(dir.path()).unwrap();
        assert_eq!(listed[0].message_count, 3);
        assert_eq!(listed[0].first_message, "one");
    }
    let lines: Vec<_> = conversation()
        .iter()
        .map(|line| with(line, "timestamp", None))
        .collect();
    let (_dir, session, warnings) = read(&lines, "\n");
    assert_eq!(texts(&session.build_context()), ["one", "two", "three"]);
    assert_eq!(warnings, []);
}

#[test]
fn version_may_be_a_string() {
    let mut lines = conversation();
    lines[0] = with(&lines[0], "version", Some(json!("3")));
    let (dir, session, warnings) = read(&lines, "\n");
    assert_eq!(forms(&warnings), ["`version` is a text"]);
    assert_eq!(texts(&session.build_context()), ["one", "two", "three"]);
    assert_eq!(most_recent(dir.path()).unwrap().as_deref(), session.path());
}

#[test]
fn number_ids_work_and_new_entries_refer_to_numbers() {
    let mut lines = conversation();
    lines[1] = with(&lines[1], "id", Some(json!(1)));
    lines[2] = with(
        &with(&lines[2], "id", Some(json!(2))),
        "parentId",
        Some(json!(1)),
    );
    lines[3] = with(
        &with(&lines[3], "id", Some(json!(3))),
        "parentId",
        Some(json!(2.0)),
    );
    let (_dir, mut session, warnings) = read(&lines, "\n");
    assert_eq!(forms(&warnings), ["`id` is a number"]);
    assert_eq!(texts(&session.build_context()), ["one", "two", "three"]);
    let next = session.append_message(&user("four")).unwrap();
    assert!(next.raw.contains(r#""parentId":3,"#), "{}", next.raw);
    session.append_label("2", Some("here")).unwrap();
    assert_eq!(session.label("2"), Some("here"));
    let shown: Value = serde_json::from_str(&session.entries_json(None).unwrap()).unwrap();
    assert_eq!(shown["entries"][2]["parentId"], "2");
    assert_eq!(shown["entries"][4]["targetId"], "2");
    let path = session.path().unwrap().to_owned();
    drop(session);
    let (session, _) = open(&path);
    assert_eq!(
        texts(&session.build_context()),
        ["one", "two", "three", "four"]
    );
    let fork = session
        .fork_to(session.leaf_id(), &path.with_extension("d"))
        .unwrap();
    let path = fork.path().unwrap().to_owned();
    drop(fork);
    assert_eq!(
        texts(&open(&path).0.build_context()),
        ["one", "two", "three", "four"]
    );
}

#[test]
fn messages_without_ids_follow_each_other() {
    let bare = |text: &str| {
        let line = with(&line("x", None, text), "id", None);
        with(&line, "parentId", None)
    };
    // Two lines are equal, and both are entries.
    let lines = [HEADER.to_owned(), bare("yes"), bare("yes"), bare("no")];
    let (_dir, mut session, warnings) = read(&lines, "\n");
    assert_eq!(forms(&warnings), ["`id` is missing"]);
    session.append_message(&user("next")).unwrap();
    let (path, expected) = (
        session.path().unwrap().to_owned(),
        ["yes", "yes", "no", "next"],
    );
    assert_eq!(texts(&session.build_context()), expected);
    let fork = session
        .fork_to(session.leaf_id(), &path.with_extension("d"))
        .unwrap();
    let copy = session.export_branch(&path.with_extension("copy")).unwrap();
    drop(session);
    assert_eq!(texts(&open(&path).0.build_context()), expected);
    assert_eq!(texts(&open(&copy).0.build_context()), expected);
    assert_eq!(texts(&fork.build_context()), expected);
}

#[test]
fn a_parent_that_is_missing_or_null_is_none() {
    for value in [None, Some(json!(null)), Some(json!("")), Some(json!(false))] {
        let mut lines = conversation();
        lines[2] = with(&lines[2], "parentId", value);
        let (_dir, session, _) = read(&lines, "\n");
        assert_eq!(texts(&session.build_context()), ["two", "three"]);
    }
}

#[test]
fn byte_order_marks_and_line_ends_are_not_content() {
    let mut lines = conversation();
    for line in &mut lines {
        line.insert(0, '\u{feff}');
    }
    let (dir, session, warnings) = read(&lines, "\r\n");
    assert_eq!(warnings, []);
    assert_eq!(texts(&session.build_context()), ["one", "two", "three"]);
    assert_eq!(list(dir.path()).unwrap()[0].message_count, 3);
    assert_eq!(most_recent(dir.path()).unwrap().as_deref(), session.path());
}

#[test]
fn members_that_a_message_does_not_need_may_be_anything() {
    let odd = json!([1]);
    let mut lines = conversation();
    for member in [
        "name",
        "label",
        "provider",
        "targetId",
        "thinkingLevel",
        "customType",
    ] {
        lines[2] = with(&lines[2], member, Some(odd.clone()));
    }
    let message = json!({"role": "user", "content": "two", "timestamp": "2026-01-01T00:00:00Z"});
    lines[2] = with(&lines[2], "message", Some(message));
    lines.push(
        json!({"type": "custom_message", "id": "d", "parentId": "cccccccc", "timestamp": null,
            "customType": 5, "content": [{"type": "hologram"}, {"type": "text", "text": "four"}],
            "display": "yes"})
        .to_string(),
    );
    lines.push(
        json!({"type": "message", "id": "e", "parentId": "d", "message": {"role":
            "bashExecution", "command": "ls", "output": null, "exitCode": "0"}})
        .to_string(),
    );
    let (_dir, session, _) = read(&lines, "\n");
    let expected = ["one", "two", "three", "four", "bashExecution"];
    assert_eq!(texts(&session.build_context()), expected);
    let summary = json!({"type": "compaction", "id": 9, "parentId": "e", "summary": "all",
        "firstKeptEntryId": "e", "tokensBefore": "1e3"});
    lines.push(summary.to_string());
    let (_dir, session, _) = read(&lines, "\n");
    let expected = ["compaction: all", "bashExecution"];
    assert_eq!(texts(&session.build_context()), expected);
}

/// Generates JSON of every type.
fn any_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        "[a-c0-9.:TZ-]{0,9}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({ "a": [{}] })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// The file must stay unchanged, no line may be lost, and appended entries must be found
    /// again.
    #[test]
    fn no_form_of_a_member_loses_a_line(
        changes in proptest::collection::vec(
            (1..4_usize, 0..9_usize, proptest::option::of(any_json())), 1..6),
        ends in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        const MEMBERS: [&str; 9] = [
            "id", "parentId", "timestamp", "name", "label", "provider", "version", "targetId", "x",
        ];
        let mut lines = conversation();
        for (at, member, value) in changes {
            lines[at] = with(&lines[at], MEMBERS[member], value);
        }
        let (_dir, mut session, _) = read(&lines, ends);
        let kept: Vec<String> = raws(&session);
        prop_assert_eq!(&kept, &lines[1..].to_vec());
        let texts = |session: &Session| {
            let entries = session.entries().iter();
            entries.filter_map(|entry| entry.message().unwrap()).count()
        };
        prop_assert_eq!(texts(&session), 3);
        let leaf = session.leaf_id().map(str::to_owned);
        session.append_message(&user("next")).unwrap();
        let length = session.branch(None).len();
        let path = session.path().unwrap().to_owned();
        drop(session);
        let (session, _) = open(&path);
        prop_assert_eq!(texts(&session), 4);
        prop_assert_eq!(session.branch(None).len(), length);
        prop_assert_eq!(&session.entries()[3].parent_id, &leaf);
    }

    /// A header with a member of any type must be read as a session of the current version or
    /// be migrated.
    #[test]
    fn no_form_of_a_header_member_loses_the_file(
        member in 0..3_usize, value in proptest::option::of(any_json()),
    ) {
        let mut lines = conversation();
        let member = ["timestamp", "cwd", "parentSession"][member];
        lines[0] = with(&lines[0], member, value);
        let (_dir, session, _) = read(&lines, "\n");
        prop_assert_eq!(texts(&session.build_context()), ["one", "two", "three"]);
    }
}
