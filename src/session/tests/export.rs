use super::*;

#[test]
fn the_branch_is_exported_in_a_line_with_all_its_members() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let odd = r#"{ "type":"mood", "n":1.0, "id":"b", "parentId":"a", "timestamp":"T", "x":{ "y":[1e2] } }"#;
    let content = [
        HEADER,
        &line("a", None, "one"),
        odd,
        &line("c", Some("a"), "elsewhere"),
        &line("d", Some("b"), "two"),
    ];
    fs::write(&path, content.join("\n") + "\n").unwrap();
    let (session, _) = open(&path);
    let out = dir.path().join("out/talk.jsonl");
    assert_eq!(session.export_branch(&out).unwrap(), out);
    let text = fs::read_to_string(&out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1..],
        [&line("a", None, "one"), odd, &line("d", Some("b"), "two")]
    );
    let (exported, warnings) = open(&out);
    assert_eq!(warnings, []);
    assert_eq!((exported.id(), exported.cwd()), ("s", Path::new("/w")));
    assert_eq!(exported.header().parent_session, None);
}

#[test]
fn a_session_is_not_exported_onto_itself() {
    let dir = temp();
    let mut session = new_session(dir.path());
    session.append_message(&user("a")).unwrap();
    let own = session.path().unwrap().to_owned();
    #[cfg(unix)]
    {
        let link = dir.path().join("link.jsonl");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(session.export_branch(&link).is_err());
    }
    let before = fs::read_to_string(&own).unwrap();
    assert!(session.export_branch(&own).is_err());
    assert_eq!(fs::read_to_string(&own).unwrap(), before);
}

#[test]
fn export_replaces_earlier_copy_but_not_another_session() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, format!("{HEADER}\n{}\n", line("a", None, "one"))).unwrap();
    let (session, _) = open(&path);
    let other = dir.path().join("other.jsonl");
    let header = r#"{"id": "other", "type": "session", "version": 3, "cwd": "/w"}"#;
    fs::write(&other, header).unwrap();
    let error = session.export_branch(&other).unwrap_err();
    assert!(
        matches!(error, SessionError::ExportOntoSession { .. }),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), header);
    let copy = dir.path().join("copy.jsonl");
    for _ in 0..2 {
        session.export_branch(&copy).unwrap();
    }
}

#[test]
fn an_import_replaces_nothing() {
    let (outside, dir) = (temp(), temp());
    let source = outside.path().join("talk.jsonl");
    let write = |text: &str| {
        let content = format!("{HEADER}\n{}\n", line("a", None, text));
        fs::write(&source, content).unwrap();
    };
    write("one");
    let first = import(&source, dir.path()).unwrap();
    assert_eq!(first, dir.path().join("talk.jsonl"));
    assert_eq!(
        import(&source, dir.path()).unwrap(),
        first,
        "it is there already"
    );
    write("two");
    let second = import(&source, dir.path()).unwrap();
    assert_eq!(second, dir.path().join("talk-2.jsonl"));
    assert_eq!(texts(&open(&first).0.build_context()), ["one"]);
    assert_eq!(texts(&open(&second).0.build_context()), ["two"]);
    assert_eq!(import(&first, dir.path()).unwrap(), first);
}

#[test]
fn import_refuses_files_that_are_not_sessions() {
    let (outside, dir) = (temp(), temp());
    for content in ["", "hello\n", "{\"type\":\"message\",\"id\":\"a\"}\n"] {
        let source = outside.path().join("x.jsonl");
        fs::write(&source, content).unwrap();
        assert!(import(&source, dir.path()).is_err(), "{content}");
    }
    assert!(import(&outside.path().join("none.jsonl"), dir.path()).is_err());
    assert_eq!(names(dir.path()), Vec::<String>::new());
}
