use super::*;

#[test]
fn a_fork_has_the_path_its_labels_and_a_parent() {
    let dir = temp();
    let mut session = new_session(dir.path());
    let a = session.append_message(&user("a")).unwrap().id.clone();
    session.append_label(&a, Some("here")).unwrap();
    let b = session.append_message(&user("b")).unwrap().id.clone();
    let c = session.append_message(&user("c")).unwrap().id.clone();
    session.append_label(&c, Some("not copied")).unwrap();

    let fork = session.fork_to(Some(&b), dir.path()).unwrap();
    assert_eq!(fork.header().parent_session.as_deref(), session.path());
    assert_ne!(fork.id(), session.id());
    assert_eq!(fork.cwd(), Path::new("/w"));
    let path = fork.path().unwrap().to_owned();
    drop(fork);
    let (fork, warnings) = open(&path);
    assert_eq!(warnings, []);
    // The parent of `b` was the label, which is not copied.
    assert_eq!(ids(fork.entries())[..2], [a.as_str(), &b]);
    assert_eq!(
        fork.entry(&b).unwrap().parent_id.as_deref(),
        Some(a.as_str())
    );
    assert_eq!(fork.entries()[0].raw, session.entries()[0].raw);
    assert_eq!(fork.entries().len(), 3);
    assert_eq!((fork.label(&a), fork.label(&c)), (Some("here"), None));
    assert_eq!(texts(&fork.build_context()), ["a", "b"]);
    // The label keeps its original time.
    assert_eq!(fork.entries()[2].timestamp, session.entries()[1].timestamp);
}

#[test]
fn fork_before_first_message_has_no_file_yet() {
    let dir = temp();
    let mut session = new_session(dir.path());
    let model = session.append_model_change("p", "m").unwrap().id.clone();
    session.append_message(&user("a")).unwrap();
    for leaf in [None, Some(model.as_str())] {
        let fork = session.fork_to(leaf, dir.path()).unwrap();
        assert!(!fork.is_stored());
        assert_eq!(fork.leaf_id(), leaf);
        assert_eq!(fork.header().parent_session.as_deref(), session.path());
    }
    assert!(session.fork_to(Some("nope"), dir.path()).is_err());
    assert_eq!(names(dir.path()).len(), 1);
}

#[test]
fn a_fork_in_memory_stays_there() {
    let mut session = Session::in_memory(Path::new("/w"));
    let a = session.append_message(&user("a")).unwrap().id.clone();
    let fork = session.fork_to(Some(&a), Path::new("/nowhere")).unwrap();
    assert_eq!(
        (fork.path(), texts(&fork.build_context())),
        (None, vec!["a".to_owned()])
    );
}

#[test]
fn file_in_use_can_be_forked() {
    let (here, there) = (temp(), temp());
    let mut session = new_session(here.path());
    let a = session.append_message(&user("a")).unwrap().id.clone();
    session.append_label(&a, Some("l")).unwrap();
    let source = session.path().unwrap();
    let (copy, warnings) =
        Session::fork_file(source, there.path(), Path::new("/new"), None).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(raws(&copy), raws(&session));
    assert_eq!(copy.header().parent_session.as_deref(), Some(source));
    assert_eq!(copy.cwd(), Path::new("/new"));
    assert_eq!(names(there.path()).len(), 1);
}

#[test]
fn record_being_written_is_not_copied_or_changed() {
    let (here, there) = (temp(), temp());
    let source = here.path().join("s.jsonl");
    let content = format!(
        "{HEADER}\n{}\n{{\"type\":\"mess",
        line("aaaaaaaa", None, "a")
    );
    fs::write(&source, &content).unwrap();
    let (copy, _) = Session::fork_file(&source, there.path(), Path::new("/new"), None).unwrap();
    assert_eq!(texts(&copy.build_context()), ["a"]);
    assert_eq!(fs::read_to_string(&source).unwrap(), content);
}
