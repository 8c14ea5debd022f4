use super::*;

fn session() -> Session {
    Session::in_memory(Path::new("/w"))
}

#[test]
fn compaction_comes_before_kept_messages() {
    let mut session = session();
    session.append_message(&user("old")).unwrap();
    let kept = session.append_message(&user("kept")).unwrap().id.clone();
    session
        .append_compaction("first", &kept, 10, None, None)
        .unwrap();
    session.append_message(&user("between")).unwrap();
    let kept = session
        .append_message(&user("kept too"))
        .unwrap()
        .id
        .clone();
    session
        .append_compaction("second", &kept, 20, None, None)
        .unwrap();
    session.append_message(&user("after")).unwrap();
    let actual = texts(&session.build_context());
    assert_eq!(actual, ["compaction: second", "kept too", "after"]);
}

#[test]
fn earlier_compaction_among_kept_entries_is_left_out() {
    let mut session = session();
    let kept = session.append_message(&user("kept")).unwrap().id.clone();
    session
        .append_compaction("first", &kept, 10, None, None)
        .unwrap();
    session.append_message(&user("between")).unwrap();
    session
        .append_compaction("second", &kept, 20, None, None)
        .unwrap();
    let actual = texts(&session.build_context());
    assert_eq!(actual, ["compaction: second", "kept", "between"]);
}

#[test]
fn compaction_with_unknown_first_kept_entry_stands_alone() {
    let mut session = session();
    session.append_message(&user("old")).unwrap();
    session
        .append_compaction("all", "gone", 10, None, None)
        .unwrap();
    session.append_message(&user("after")).unwrap();
    assert_eq!(
        texts(&session.build_context()),
        ["compaction: all", "after"]
    );
}

#[test]
fn a_compaction_on_another_branch_does_not_count() {
    let mut session = session();
    let a = session.append_message(&user("a")).unwrap().id.clone();
    session
        .append_compaction("elsewhere", &a, 10, None, None)
        .unwrap();
    session
        .branch_with_summary(Some(&a), "left it", None, None)
        .unwrap();
    assert_eq!(texts(&session.build_context()), ["a", "branch: left it"]);
}

#[test]
fn model_and_thinking_level_are_the_last_on_the_path() {
    let mut session = session();
    let model = |provider: &str, id: &str| {
        Some(ModelRef {
            provider: provider.into(),
            model_id: id.into(),
        })
    };
    assert_eq!(session.build_context(), SessionContext::default());
    let chosen = session.append_model_change("q", "n").unwrap().id.clone();
    session.append_thinking_level_change("low").unwrap();
    session.append_message(&calls("stop", &[])).unwrap();
    let context = session.build_context();
    assert_eq!(
        (context.model, context.thinking_level),
        (model("p", "m"), Some("low".into()))
    );
    session.set_leaf(Some(&chosen)).unwrap();
    let context = session.build_context();
    assert_eq!(
        (context.model, context.thinking_level),
        (model("q", "n"), None)
    );
}

#[test]
fn missing_results_are_added_after_existing_ones() {
    let mut session = session();
    session
        .append_message(&calls(
            "toolUse",
            &[("1", "read"), ("2", "bash"), ("3", "ls")],
        ))
        .unwrap();
    session.append_message(&result("2", "bash")).unwrap();
    session.append_message(&user("go on")).unwrap();
    session
        .append_message(&calls("toolUse", &[("4", "write")]))
        .unwrap();
    let interrupted = super::super::context::INTERRUPTED;
    assert_eq!(
        texts(&session.build_context()),
        [
            "assistant".to_owned(),
            "bash 2 error=false: done".to_owned(),
            format!("read 1 error=true: {interrupted}"),
            format!("ls 3 error=true: {interrupted}"),
            "go on".to_owned(),
            "assistant".to_owned(),
            format!("write 4 error=true: {interrupted}"),
        ]
    );
    // The added results are in the context only, not in the session.
    assert_eq!(session.entries().len(), 4);
}

#[test]
fn later_call_with_same_id_does_not_answer_earlier_one() {
    let mut session = session();
    session
        .append_message(&calls("toolUse", &[("call_0", "read")]))
        .unwrap();
    session.append_message(&user("go on")).unwrap();
    session
        .append_message(&calls("toolUse", &[("call_0", "ls")]))
        .unwrap();
    session.append_message(&result("call_0", "ls")).unwrap();
    let interrupted = super::super::context::INTERRUPTED;
    assert_eq!(
        texts(&session.build_context()),
        [
            "assistant".to_owned(),
            format!("read call_0 error=true: {interrupted}"),
            "go on".to_owned(),
            "assistant".to_owned(),
            "ls call_0 error=false: done".to_owned(),
        ]
    );
}

#[test]
fn calls_of_a_message_that_failed_are_not_answered() {
    for reason in ["error", "aborted"] {
        let mut session = session();
        session
            .append_message(&calls(reason, &[("1", "read")]))
            .unwrap();
        assert_eq!(texts(&session.build_context()), ["assistant"]);
    }
}

#[test]
fn unreadable_message_is_left_out_with_a_warning() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let bad = line("bbbbbbbb", Some("aaaaaaaa"), "x").replace("\"x\"", "{}");
    let good = line("aaaaaaaa", None, "good");
    fs::write(&path, format!("{HEADER}\n{good}\n{bad}\n")).unwrap();
    let context = open(&path).0.build_context();
    assert_eq!(texts(&context), ["good"]);
    let [Warning::SkippedMessage { id, .. }] = &context.warnings[..] else {
        panic!("{:?}", context.warnings);
    };
    assert_eq!(id, "bbbbbbbb");
}
