use super::*;

/// Opens a session file with these lines after the header.
fn opened(dir: &Path, lines: &[String]) -> Session {
    let path = dir.join("s.jsonl");
    fs::write(&path, format!("{HEADER}\n{}\n", lines.join("\n"))).unwrap();
    let (session, warnings) = open(&path);
    assert_eq!(warnings, []);
    session
}

fn edit(id: &str, parent: &str, target: &str, replacement: serde_json::Value) -> String {
    json!({
        "type": "context_edit", "id": id, "parentId": parent,
        "timestamp": "2026-01-01T00:00:02.000Z", "targetId": target, "replacement": replacement,
    })
    .to_string()
}

#[test]
fn last_edit_on_path_applies() {
    let dir = temp();
    let lines = [
        line("a", None, "first"),
        line("b", Some("a"), "secret"),
        line("c", Some("b"), "last"),
        edit("d", "c", "b", json!({ "content": "hidden" })),
        edit("e", "d", "b", json!(null)),
        edit("f", "e", "c", json!({ "content": "changed" })),
    ];
    let mut session = opened(dir.path(), &lines);
    assert_eq!(texts(&session.build_context()), ["first", "changed"]);
    let seen = session.context_json();
    assert!(
        !seen.contains("secret") && seen.contains("changed"),
        "{seen}"
    );
    session.set_leaf(Some("d")).unwrap();
    assert_eq!(texts(&session.build_context()), ["first", "hidden", "last"]);
    session.set_leaf(Some("c")).unwrap();
    assert_eq!(texts(&session.build_context()), ["first", "secret", "last"]);
}

#[test]
fn edit_needs_target_and_replacement() {
    let mut session = Session::in_memory(Path::new("/w"));
    let target = session.append_message(&user("a")).unwrap().id.clone();
    let edit = |target: &str, rest: &str| {
        format!(r#"{{"type":"context_edit","targetId":"{target}"{rest}}}"#)
    };
    for refused in [
        edit("nobody", r#","replacement":null"#),
        edit(&target, ""),
        edit(&target, r#","replacement":{}"#),
        edit(&target, r#","replacement":{"content":[7]}"#),
    ] {
        assert!(session.check_external(&refused).is_err(), "{refused}");
        assert!(session.append_external(&refused).is_err(), "{refused}");
    }
    let edit = edit(
        &target,
        r#","replacement":{"content":[{"type":"text","text":"b"}]}"#,
    );
    session.check_external(&edit).unwrap();
    session.append_external(&edit).unwrap();
    assert_eq!(texts(&session.build_context()), ["b"]);
}

#[test]
fn session_of_newer_original_opens_without_warnings() {
    let dir = temp();
    let system = json!({
        "type": "message", "id": "0", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {
            "role": "system", "content": "", "sections": { "preamble": "You are" },
            "toolsAdded": [{ "name": "read", "description": "", "parameters": {} }], "timestamp": 1,
        },
    });
    let usage = json!({
        "type": "usage", "id": "b", "parentId": "a", "timestamp": "2026-01-01T00:00:01.000Z",
        "kind": "cache_warm", "provider": "p", "model": "m", "usage": {},
    });
    let lines = [
        system.to_string(),
        line("a", Some("0"), "hello"),
        usage.to_string(),
    ];
    let session = opened(dir.path(), &lines);
    let context = session.build_context();
    assert_eq!(texts(&context), ["hello"]);
    assert_eq!(context.warnings, []);
    assert!(!session.context_json().contains("You are"));
}
