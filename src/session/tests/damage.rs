use super::*;

fn file(content: impl AsRef<[u8]>) -> (TempDir, std::path::PathBuf) {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, content).unwrap();
    (dir, path)
}

#[test]
fn a_torn_last_line_is_moved_aside_with_a_warning() {
    let complete = format!("{HEADER}\n{}\n", line("aaaaaaaa", None, "kept"));
    let torn = &line("bbbbbbbb", Some("aaaaaaaa"), "cut")[..40];
    let (dir, path) = file(format!("{complete}{torn}"));
    let (mut session, warnings) = open(&path);
    let [
        Warning::TornTail {
            path: named,
            aside,
            bytes: 40,
        },
    ] = &warnings[..]
    else {
        panic!("{warnings:?}");
    };
    assert_eq!(*named, path);
    assert_eq!(fs::read_to_string(aside).unwrap(), torn);
    assert!(
        names(dir.path())[1].starts_with("s.jsonl.torn-"),
        "{:?}",
        names(dir.path())
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), complete);
    let next = session.append_message(&user("next")).unwrap();
    let expected = format!("{complete}{}\n", next.raw);
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    drop(session);
    let (session, warnings) = open(&path);
    assert_eq!(warnings, []);
    assert_eq!(texts(&session.build_context()), ["kept", "next"]);
}

/// Cuts the file at every length: complete records must be kept.
#[test]
fn a_file_cut_at_any_byte_opens() {
    let lines = [
        HEADER.to_owned(),
        line("aaaaaaaa", None, "é"),
        line("bbbbbbbb", Some("aaaaaaaa"), "z"),
    ];
    let content = lines.join("\n") + "\n";
    // A file with less than the beginning of a header is not a session and is not changed.
    for cut in 17..=content.len() {
        let (_dir, path) = file(&content.as_bytes()[..cut]);
        let (session, _) = open(&path);
        let complete = |line: &&String| content.find(line.as_str()).unwrap() + line.len() <= cut;
        let expected: Vec<String> = lines[1..].iter().filter(complete).cloned().collect();
        assert_eq!(raws(&session), expected, "cut at {cut}");
        drop(session);
        if cut > HEADER.len() {
            assert_eq!(open(&path).1, [], "cut at {cut}");
        }
    }
}

#[test]
fn a_whole_last_line_only_gets_its_line_end() {
    let content = format!("{HEADER}\n{}", line("aaaaaaaa", None, "kept"));
    let (dir, path) = file(&content);
    let (session, warnings) = open(&path);
    assert_eq!(warnings, [Warning::MissingNewline { path: path.clone() }]);
    assert_eq!(texts(&session.build_context()), ["kept"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), content + "\n");
    assert_eq!(names(dir.path()), ["s.jsonl"]);
}

#[test]
fn malformed_lines_stay_in_the_file_and_are_counted() {
    let content = format!(
        "{HEADER}\n{}\n{{\"type\":\n\n[1]\r\n{}\n",
        line("aaaaaaaa", None, "one"),
        line("bbbbbbbb", Some("aaaaaaaa"), "two")
    );
    let (_dir, path) = file(&content);
    let (session, warnings) = open(&path);
    let [
        Warning::Malformed {
            count: 2, line: 3, ..
        },
    ] = &warnings[..]
    else {
        panic!("{warnings:?}");
    };
    assert_eq!(texts(&session.build_context()), ["one", "two"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
}

#[test]
fn missing_parent_is_warned_of() {
    let content = format!(
        "{HEADER}\n{}\n{}\n",
        line("aaaaaaaa", None, "one"),
        line("bbbbbbbb", Some("gone"), "two")
    );
    let (_dir, path) = file(content);
    let (session, warnings) = open(&path);
    let (count, id) = (1, "bbbbbbbb".to_owned());
    assert_eq!(warnings, [Warning::Orphans { path, count, id }]);
    assert_eq!(texts(&session.build_context()), ["two"]);
}

#[test]
fn a_circle_of_parents_ends() {
    let content = format!(
        "{HEADER}\n{}\n{}\n",
        line("aaaaaaaa", Some("bbbbbbbb"), "one"),
        line("bbbbbbbb", Some("aaaaaaaa"), "two")
    );
    let (_dir, path) = file(content);
    let (session, _) = open(&path);
    assert_eq!(texts(&session.build_context()), ["one", "two"]);
    assert_eq!(session.tree().len(), 2);
}

#[test]
fn file_of_another_program_is_not_changed() {
    for content in [
        "# Notes\n",
        "no line end",
        "{\"a\":1}\n{\"b\":2}\n",
        "{\"type\":\"message\"}",
    ] {
        let (dir, path) = file(content);
        let error = Session::open(&path, Path::new("/w"))
            .map(|_| ())
            .unwrap_err();
        assert!(matches!(error, SessionError::NotASession { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(names(dir.path()), ["s.jsonl"]);
    }
}

#[test]
fn an_empty_file_becomes_a_session() {
    for content in ["", "\n"] {
        let (_dir, path) = file(content);
        let (mut session, warnings) = open(&path);
        assert_eq!(warnings, []);
        session.append_message(&user("x")).unwrap();
        drop(session);
        let (session, warnings) = open(&path);
        assert_eq!(warnings, []);
        assert_eq!(texts(&session.build_context()), ["x"]);
    }
}

#[test]
fn invalid_utf8_does_not_lose_the_entry() {
    let mut content = format!("{HEADER}\n{}\n", line("aaaaaaaa", None, "a@b")).into_bytes();
    let at = content.iter().position(|byte| *byte == b'@').unwrap();
    content[at] = 0xff;
    let (_dir, path) = file(&content);
    let (session, warnings) = open(&path);
    assert_eq!(warnings, [Warning::InvalidUtf8 { path: path.clone() }]);
    assert_eq!(texts(&session.build_context()), ["a\u{fffd}b"]);
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn an_old_version_is_rewritten_under_the_lock() {
    let (dir, path) = file(concat!(
        r#"{"type":"session","id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}"#,
        "\n",
        r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"old","timestamp":1}}"#,
        "\n",
        r#"{"type":"message","timestamp":"T","message":{"role":"hookMessage","customType":"c","content":"hook","display":true,"timestamp":2}}"#,
    ));
    let (mut session, warnings) = open(&path);
    assert_eq!(
        warnings,
        [Warning::Migrated {
            path: path.clone(),
            from: 1
        }]
    );
    assert_eq!(
        (session.header().version, texts(&session.build_context())),
        (3, vec!["old".into(), "hook".into()])
    );
    let locked = Session::open(&path, Path::new("/w"))
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(locked, SessionError::Locked { .. }), "{locked}");
    session.append_message(&user("new")).unwrap();
    let before = raws(&session);
    drop(session);
    let (session, warnings) = open(&path);
    assert_eq!((warnings, raws(&session)), (vec![], before));
    assert_eq!(names(dir.path()), ["s.jsonl"]);
}

#[test]
fn a_newer_version_is_kept_as_it_is() {
    let unknown = r#"{"type":"mood","id":"aaaaaaaa","parentId":null,"x":1.0}"#;
    let header = HEADER.replace("\"version\":3", "\"version\":9,\"new\":true");
    let (_dir, path) = file(format!("{header}\n{unknown}\n"));
    let (mut session, warnings) = open(&path);
    assert_eq!(
        warnings,
        [Warning::NewerVersion {
            path: path.clone(),
            version: 9
        }]
    );
    let next = session.append_message(&user("x")).unwrap();
    assert_eq!(next.parent_id.as_deref(), Some("aaaaaaaa"));
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{header}\n{unknown}\n{}\n", next.raw));
}

/// The file is long enough to be parsed on several threads.
#[test]
fn a_long_file_is_in_order_and_its_damage_is_where_it_was() {
    let text = "long ".repeat(300);
    let id = |number: usize| format!("{number:08x}");
    let mut content = format!("{HEADER}\n");
    for number in 0..4000_usize {
        let parent = number.checked_sub(1).map(id);
        let text = format!("{number} {text}");
        content += &line(&id(number), parent.as_deref(), &text);
        content.push('\n');
        if number == 3000 {
            content += "{\"type\":\n";
        }
    }
    let (_dir, path) = file(&content);
    let (session, warnings) = open(&path);
    let [
        Warning::Malformed {
            count: 1,
            line: 3003,
            ..
        },
    ] = warnings.as_slice()
    else {
        panic!("{warnings:?}");
    };
    let lines: Vec<&str> = content.lines().skip(1).collect();
    let complete: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| line.len() > 9)
        .collect();
    assert_eq!(raws(&session), complete);
    let shown = texts(&session.build_context());
    assert_eq!(shown.len(), 4000);
    for (number, shown) in shown.iter().enumerate() {
        assert_eq!(*shown, format!("{number} {text}"));
    }
}
