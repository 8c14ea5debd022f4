use super::*;

/// Sessions must be `Send`: the app moves them between tasks behind a mutex.
const _: fn() = || {
    fn send<T: Send>() {}
    send::<Session>();
};

#[test]
fn session_without_messages_has_no_file() {
    let dir = temp();
    let sessions = dir.path().join("sessions");
    let mut session = new_session(&sessions);
    session.append_model_change("p", "m").unwrap();
    session.append_thinking_level_change("high").unwrap();
    assert!(!session.is_stored());
    drop(session);
    assert!(!sessions.exists());
}

#[test]
fn the_first_prompt_is_on_disk_before_any_answer() {
    let dir = temp();
    let mut session = new_session(dir.path());
    session.append_model_change("p", "m").unwrap();
    session.append_thinking_level_change("high").unwrap();
    let prompt = session.append_message(&user("hello")).unwrap();
    let path = session.path().unwrap().to_owned();
    let expected: Vec<String> = [session.header().raw.to_string()]
        .into_iter()
        .chain(raws(&session))
        .collect();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        expected.join("\n") + "\n"
    );

    let name = path.file_name().unwrap().to_str().unwrap();
    let time = session.header().timestamp.replace([':', '.'], "-");
    assert_eq!(name, format!("{time}_{}.jsonl", session.id()));

    drop(session);
    let (again, warnings) = open(&path);
    assert_eq!(warnings, []);
    assert_eq!(again.leaf_id(), Some(prompt.id.as_str()));
    assert_eq!(again.cwd(), Path::new("/w"));
    assert_eq!(texts(&again.build_context()), ["hello"]);
}

#[test]
fn every_kind_of_entry_comes_back_as_it_was_appended() {
    let dir = temp();
    let mut session = new_session(dir.path());
    let first = session.append_message(&user("one")).unwrap().id.clone();
    session
        .append_custom("todo", Some(&json!({ "z": 1, "a": 2 })))
        .unwrap();
    let note = pi_ai::message::UserContent::Text("note".into());
    session
        .append_custom_message("n", &note, false, Some(&json!([1])))
        .unwrap();
    session.append_session_info("  my name ").unwrap();
    session.append_label(&first, Some("start")).unwrap();
    session
        .append_compaction("sum", &first, 9, None, None)
        .unwrap();
    session
        .branch_with_summary(Some(&first), "left", Some(&json!({})), Some(true))
        .unwrap();
    let path = session.path().unwrap().to_owned();
    let (before, leaf) = (raws(&session), session.leaf_id().map(str::to_owned));
    let kinds: Vec<EntryKind> = session.entries().iter().map(|e| e.kind.clone()).collect();
    let context = session.build_context();
    drop(session);

    let (again, warnings) = open(&path);
    assert_eq!(warnings, []);
    assert_eq!(raws(&again), before);
    assert_eq!(
        again
            .entries()
            .iter()
            .map(|e| e.kind.clone())
            .collect::<Vec<_>>(),
        kinds
    );
    assert_eq!(again.leaf_id().map(str::to_owned), leaf);
    assert_eq!(again.build_context(), context);
    assert_eq!(again.name(), Some("my name"));
    assert_eq!(again.label(&first), Some("start"));
}

#[test]
fn names_and_labels_can_be_removed() {
    let mut session = Session::in_memory(Path::new("/w"));
    let id = session.append_message(&user("x")).unwrap().id.clone();
    session.append_session_info("n").unwrap();
    session.append_session_info("  ").unwrap();
    session.append_label(&id, Some("l")).unwrap();
    session.append_label(&id, None).unwrap();
    assert_eq!(
        (session.name(), session.label(&id), session.path()),
        (None, None, None)
    );
    let error = session.append_label("nope", Some("l")).unwrap_err();
    assert!(matches!(error, SessionError::UnknownEntry { id } if id == "nope"));
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let dir = temp();
    let mut session = new_session(dir.path());
    session.append_message(&user("x")).unwrap();
    let path = session.path().unwrap().to_owned();
    let error = Session::open(&path, Path::new("/w"))
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(&error, SessionError::Locked { path: locked, .. } if *locked == path));
    assert!(
        error.to_string().contains("is open in another pi"),
        "{error}"
    );
    drop(session);
    open(&path);
}

#[test]
fn a_path_that_does_not_exist_becomes_a_session_there() {
    let dir = temp();
    let path = dir.path().join("deep/mine.jsonl");
    let (mut session, warnings) = open(&path);
    assert_eq!((warnings, path.exists()), (vec![], false));
    assert_eq!(session.cwd(), Path::new("/elsewhere"));
    session.append_message(&user("x")).unwrap();
    let id = session.id().to_owned();
    drop(session);
    assert_eq!(open(&path).0.id(), id);
}

#[test]
fn path_taken_by_another_program_is_not_mixed() {
    let dir = temp();
    let path = dir.path().join("mine.jsonl");
    let (mut ours, _) = open(&path);
    let (mut theirs, _) = open(&path);
    theirs.append_message(&user("theirs")).unwrap();
    let error = ours.append_message(&user("ours")).unwrap_err();
    assert!(matches!(error, SessionError::Locked { .. }), "{error}");
    drop(theirs);
    let error = ours.append_message(&user("ours")).unwrap_err();
    assert!(matches!(error, SessionError::Occupied { .. }), "{error}");
    assert_eq!(ours.entries().len(), 0);
    assert_eq!(texts(&open(&path).0.build_context()), ["theirs"]);
}

#[test]
fn a_file_deleted_under_us_is_an_error_and_not_a_hole() {
    let dir = temp();
    let mut session = new_session(dir.path());
    session.append_message(&user("x")).unwrap();
    fs::remove_file(session.path().unwrap()).unwrap();
    let error = session.append_message(&user("y")).unwrap_err();
    assert!(matches!(error, SessionError::Vanished { .. }), "{error}");
    assert_eq!(texts(&session.build_context()), ["x"]);
}

#[test]
fn record_of_another_program_does_not_fuse_with_ours() {
    let dir = temp();
    let mut session = new_session(dir.path());
    let first = session.append_message(&user("x")).unwrap().id.clone();
    let path = session.path().unwrap().to_owned();
    let theirs = line("bbbbbbbb", Some(&first), "theirs");
    let text = format!("{}{theirs}", fs::read_to_string(&path).unwrap());
    fs::write(&path, text).unwrap();
    let ours = session.append_message(&user("y")).unwrap().id.clone();
    drop(session);
    let (session, warnings) = open(&path);
    assert_eq!(warnings, []);
    assert_eq!(ids(session.entries()), [first.as_str(), "bbbbbbbb", &ours]);
}

#[test]
fn summaries_are_not_appended_as_messages() {
    let mut session = Session::in_memory(Path::new("/w"));
    let summary = serde_json::from_value(
        json!({ "role": "branchSummary", "summary": "s", "fromId": "f", "timestamp": 1 }),
    );
    let error = session.append_message(&summary.unwrap()).unwrap_err();
    assert!(matches!(
        error,
        SessionError::NotAMessage {
            role: "branchSummary"
        }
    ));
    assert_eq!(session.entries().len(), 0);
}

#[test]
fn ids_are_those_of_the_original() {
    let mut session = Session::in_memory(Path::new("/w"));
    let entry = session.append_message(&user("x")).unwrap();
    assert_eq!(entry.id.len(), 8);
    assert!(
        entry
            .id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    );
    assert_eq!(
        uuid::Uuid::parse_str(session.id())
            .unwrap()
            .get_version_num(),
        7
    );
}

#[test]
fn a_leaf_can_be_moved_and_the_tree_shows_both_branches() {
    let mut session = Session::in_memory(Path::new("/w"));
    let a = session.append_message(&user("a")).unwrap().id.clone();
    let b = session.append_message(&user("b")).unwrap().id.clone();
    session.set_leaf(Some(&a)).unwrap();
    let c = session.append_message(&user("c")).unwrap().id.clone();
    session.set_leaf(None).unwrap();
    assert_eq!(session.build_context(), SessionContext::default());
    let d = session.append_message(&user("d")).unwrap().id.clone();
    session.append_label(&c, Some("here")).unwrap();

    assert_eq!(ids(&session.branch(Some(&c))), [a.as_str(), &c]);
    assert!(session.set_leaf(Some("nope")).is_err());
    let tree = session.tree();
    let shape: Vec<_> = tree
        .iter()
        .map(|n| (n.parent, n.children.clone(), n.label.as_deref()))
        .collect();
    assert_eq!(
        shape,
        [
            (None, vec![1, 2], None),
            (Some(0), vec![], None),
            (Some(0), vec![], Some("here")),
            (None, vec![4], None),
            (Some(3), vec![], None),
        ]
    );
    assert_eq!(ids(session.entries())[..4], [a.as_str(), &b, &c, &d]);
}

#[cfg(unix)]
#[test]
fn others_cannot_read_a_session() {
    use std::os::unix::fs::PermissionsExt;
    let dir = temp();
    let mut session = new_session(dir.path());
    session.append_message(&user("x")).unwrap();
    let mode = fs::metadata(session.path().unwrap())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_disk_without_locks_is_a_warning() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, format!("{HEADER}\n")).unwrap();
    let storage = std::sync::Arc::new(full_disk::SmallDisk::without_locks());
    let (_, warnings) = Session::open_on(storage, &path, Path::new("/w")).unwrap();
    assert_eq!(
        warnings,
        [Warning::NoLock {
            path,
            reason: "no locks here".into()
        }]
    );
}

/// Regression: a starting process briefly holds copies of our files and their locks, and
/// reopening then reported that another pi had the session.
#[cfg(unix)]
#[test]
fn a_session_can_be_reopened_while_processes_are_started() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, format!("{HEADER}\n")).unwrap();
    let done = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::process::Command::new("true").status().unwrap();
            }
        });
        let reopen = || Session::open(&path, Path::new("/w")).is_err();
        let refused = (0..2000).filter(|_| reopen()).count();
        done.store(true, Ordering::Relaxed);
        refused
    });
    assert_eq!(refused, 0);
}

#[test]
fn a_long_conversation_is_a_deep_tree() {
    let mut session = Session::in_memory(Path::new("/w"));
    let first = session.append_message(&user("0")).unwrap().id.clone();
    for n in 1..20_000 {
        session.append_message(&user(&n.to_string())).unwrap();
    }
    session.set_leaf(Some(&first)).unwrap();
    let other = session.append_message(&user("other")).unwrap().id.clone();
    session.append_label(&first, Some("a \"label\"")).unwrap();
    let text = session.tree_json();
    let start = format!(
        "{{\"tree\":[{{\"entry\":{},\"label\":\"a \\\"label\\\"\",\"labelTimestamp\":\"",
        session.entries()[0].raw
    );
    assert!(text.starts_with(&start), "{}", &text[..400]);
    let label = &session.entries()[20_001];
    let end = format!(
        "}},{{\"entry\":{},\"children\":[{{\"entry\":{},\"children\":[]}}]}}]}}],\"leafId\":\"{}\"}}",
        session.entry(&other).unwrap().raw,
        label.raw,
        label.id
    );
    assert!(text.ends_with(&end), "{}", &text[text.len() - 600..]);
    assert_eq!(text.matches("\"children\"").count(), 20_002);
}
