use super::*;

fn open_loose(path: &Path) -> LooseSession {
    let (session, warnings) =
        LooseSession::open(path, None, None, Path::new("/elsewhere")).unwrap();
    assert_eq!(warnings, []);
    session
}

fn say(session: &mut LooseSession, text: &str) -> String {
    let written = session.write(|session| session.append_message(&user(text)));
    written.unwrap().id.clone()
}

#[test]
fn a_file_in_use_can_be_looked_into() {
    let dir = temp();
    let mut session = new_session(dir.path());
    session.append_message(&user("a")).unwrap();
    let path = session.path().unwrap().to_owned();
    let mut loose = open_loose(&path);
    assert_eq!(raws(loose.session()), raws(&session));
    assert_eq!(
        (loose.path(), loose.dir()),
        (Some(&*path), Some(dir.path()))
    );
    // Two of them cannot write at once.
    let refused = loose.write(|session| session.append_message(&user("b")));
    assert!(matches!(refused, Err(SessionError::Locked { .. })));
    assert_eq!(loose.session().entries().len(), 1);
    drop(session);
    say(&mut loose, "b");
    assert_eq!(texts(&open(&path).0.build_context()), ["a", "b"]);
}

#[test]
fn nobody_is_kept_out_between_two_writes() {
    let dir = temp();
    let mut loose =
        LooseSession::create(dir.path(), Path::new("/w"), NewSession::default()).unwrap();
    say(&mut loose, "a");
    let path = loose.path().unwrap().to_owned();
    let (mut other, _) = open(&path);
    other.append_message(&user("b")).unwrap();
    drop(other);
    // The entry is appended at the leaf of this session, not of the other one.
    say(&mut loose, "c");
    let (session, _) = open(&path);
    let parents: Vec<_> = session
        .entries()
        .iter()
        .map(|e| e.parent_id.clone())
        .collect();
    let a = session.entries()[0].id.clone();
    assert_eq!(parents, [None, Some(a.clone()), Some(a)]);
    assert_eq!(ids(session.entries()), ids(loose.session().entries()));
}

#[test]
fn one_that_was_not_there_is_made_when_something_is_said() {
    let dir = temp();
    let path = dir.path().join("mine.jsonl");
    let mut loose = open_loose(&path);
    assert!(!path.exists());
    say(&mut loose, "a");
    let session = loose.into_session().unwrap();
    assert_eq!(session.path(), Some(&*path));
    assert_eq!(session.cwd(), Path::new("/elsewhere"));
    let again = Session::open(&path, Path::new("/w"));
    assert!(
        matches!(again, Err(SessionError::Locked { .. })),
        "it is ours now"
    );
}

#[test]
fn a_path_of_it_becomes_a_session_beside_it() {
    let dir = temp();
    let mut loose =
        LooseSession::create(dir.path(), Path::new("/w"), NewSession::default()).unwrap();
    let a = say(&mut loose, "a");
    say(&mut loose, "b");
    let parent = loose.path().unwrap().to_owned();
    loose.branch_off(&a).unwrap();
    assert_ne!(loose.path(), Some(&*parent));
    let header = loose.session().header().clone();
    assert_eq!(header.parent_session, Some(parent));
    say(&mut loose, "c");
    let (session, _) = open(loose.path().unwrap());
    assert_eq!(texts(&session.build_context()), ["a", "c"]);
    assert_eq!(names(dir.path()).len(), 2);
    assert!(loose.branch_off("nope").is_err());
}

#[test]
fn what_is_in_memory_stays_there() {
    let mut loose = LooseSession::in_memory(Path::new("/w"), NewSession::default()).unwrap();
    let a = say(&mut loose, "a");
    loose.branch_off(&a).unwrap();
    assert_eq!((loose.path(), loose.dir()), (None, None));
    loose.begin(NewSession::default()).unwrap();
    assert_eq!(loose.session().entries().len(), 0);
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
    let mut loose = open_loose(&path);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        content,
        "only looked at"
    );
    say(&mut loose, "b");
    let (session, warnings) = open(&path);
    assert_eq!(warnings, []);
    assert_eq!(texts(&session.build_context()), ["a", "b"]);
}

#[test]
fn an_old_file_is_brought_up_before_its_ids_are_told() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let old = [
        r#"{"type":"session","id":"s","timestamp":"T","cwd":"/w"}"#,
        r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"a","timestamp":1}}"#,
    ];
    fs::write(&path, old.join("\n") + "\n").unwrap();
    let (mut loose, _) = LooseSession::open(&path, None, None, Path::new("/w")).unwrap();
    assert_eq!(ids(loose.session().entries()), ids(open(&path).0.entries()));
}

#[test]
fn an_id_is_no_path() {
    for id in ["", "a/b", "..\\x", "é", "a b"] {
        let new = NewSession {
            id: Some(id.into()),
            parent_session: None,
        };
        let made = LooseSession::create(Path::new("/nowhere"), Path::new("/w"), new);
        assert!(matches!(made, Err(SessionError::BadId { .. })), "{id}");
    }
}
