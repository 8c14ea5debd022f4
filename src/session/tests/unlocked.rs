use super::*;

fn open_loose(path: &Path) -> UnlockedSession {
    let (session, warnings) =
        UnlockedSession::open(path, None, None, Path::new("/elsewhere")).unwrap();
    assert_eq!(warnings, []);
    session
}

fn append_text(session: &mut UnlockedSession, text: &str) -> String {
    let written = session.write(|session| session.append_message(&user(text)));
    written.unwrap().id.clone()
}

#[test]
fn file_in_use_can_be_read() {
    let dir = temp();
    let mut session = new_session(dir.path());
    session.append_message(&user("a")).unwrap();
    let path = session.path().unwrap().to_owned();
    let mut unlocked = open_loose(&path);
    assert_eq!(raws(unlocked.session()), raws(&session));
    assert_eq!(
        (unlocked.path(), unlocked.dir()),
        (Some(&*path), Some(dir.path()))
    );
    // Two of them cannot write at once.
    let refused = unlocked.write(|session| session.append_message(&user("b")));
    assert!(matches!(refused, Err(SessionError::Locked { .. })));
    assert_eq!(unlocked.session().entries().len(), 1);
    drop(session);
    append_text(&mut unlocked, "b");
    assert_eq!(texts(&open(&path).0.build_context()), ["a", "b"]);
}

#[test]
fn other_processes_can_write_between_two_writes() {
    let dir = temp();
    let mut unlocked =
        UnlockedSession::create(dir.path(), Path::new("/w"), NewSession::default()).unwrap();
    append_text(&mut unlocked, "a");
    let path = unlocked.path().unwrap().to_owned();
    let (mut other, _) = open(&path);
    other.append_message(&user("b")).unwrap();
    drop(other);
    // The entry is appended at the leaf of this session, not of the other one.
    append_text(&mut unlocked, "c");
    let (session, _) = open(&path);
    let parents: Vec<_> = session
        .entries()
        .iter()
        .map(|e| e.parent_id.clone())
        .collect();
    let a = session.entries()[0].id.clone();
    assert_eq!(parents, [None, Some(a.clone()), Some(a)]);
    assert_eq!(ids(session.entries()), ids(unlocked.session().entries()));
}

#[test]
fn missing_file_is_created_on_first_append() {
    let dir = temp();
    let path = dir.path().join("mine.jsonl");
    let mut unlocked = open_loose(&path);
    assert!(!path.exists());
    append_text(&mut unlocked, "a");
    let session = unlocked.into_session().unwrap();
    assert_eq!(session.path(), Some(&*path));
    assert_eq!(session.cwd(), Path::new("/elsewhere"));
    let again = Session::open(&path, Path::new("/w"));
    assert!(
        matches!(again, Err(SessionError::Locked { .. })),
        "it is ours now"
    );
}

#[test]
fn branch_off_creates_another_session() {
    let dir = temp();
    let mut unlocked =
        UnlockedSession::create(dir.path(), Path::new("/w"), NewSession::default()).unwrap();
    let a = append_text(&mut unlocked, "a");
    append_text(&mut unlocked, "b");
    let parent = unlocked.path().unwrap().to_owned();
    unlocked.branch_off(&a).unwrap();
    assert_ne!(unlocked.path(), Some(&*parent));
    let header = unlocked.session().header().clone();
    assert_eq!(header.parent_session, Some(parent));
    append_text(&mut unlocked, "c");
    let (session, _) = open(unlocked.path().unwrap());
    assert_eq!(texts(&session.build_context()), ["a", "c"]);
    assert_eq!(names(dir.path()).len(), 2);
    assert!(unlocked.branch_off("nope").is_err());
}

#[test]
fn session_in_memory_has_no_file() {
    let mut unlocked = UnlockedSession::in_memory(Path::new("/w"), NewSession::default()).unwrap();
    let a = append_text(&mut unlocked, "a");
    unlocked.branch_off(&a).unwrap();
    assert_eq!((unlocked.path(), unlocked.dir()), (None, None));
    unlocked.begin(NewSession::default()).unwrap();
    assert_eq!(unlocked.session().entries().len(), 0);
}

#[test]
fn a_torn_line_is_repaired_before_something_is_written() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let content = format!(
        "{HEADER}\n{}\n{{\"type\":\"mess",
        line("aaaaaaaa", None, "a")
    );
    fs::write(&path, &content).unwrap();
    let mut unlocked = open_loose(&path);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        content,
        "only looked at"
    );
    append_text(&mut unlocked, "b");
    let (session, warnings) = open(&path);
    assert_eq!(warnings, []);
    assert_eq!(texts(&session.build_context()), ["a", "b"]);
}

#[test]
fn old_file_is_migrated_before_its_ids_are_used() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let old = [
        r#"{"type":"session","id":"s","timestamp":"T","cwd":"/w"}"#,
        r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"a","timestamp":1}}"#,
    ];
    fs::write(&path, old.join("\n") + "\n").unwrap();
    let (mut unlocked, _) = UnlockedSession::open(&path, None, None, Path::new("/w")).unwrap();
    assert_eq!(
        ids(unlocked.session().entries()),
        ids(open(&path).0.entries())
    );
}

#[test]
fn an_id_is_no_path() {
    for id in ["", "a/b", "..\\x", "é", "a b"] {
        let new = NewSession {
            id: Some(id.into()),
            parent_session: None,
        };
        let made = UnlockedSession::create(Path::new("/nowhere"), Path::new("/w"), new);
        assert!(matches!(made, Err(SessionError::BadId { .. })), "{id}");
    }
}
