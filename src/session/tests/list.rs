use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::*;

fn write(dir: &Path, name: &str, id: &str, age: u64, rest: &str) -> PathBuf {
    let path = dir.join(name);
    let header = HEADER.replace("\"id\":\"s\"", &format!("\"id\":\"{id}\""));
    fs::write(&path, format!("{header}\n{rest}")).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(age))
        .unwrap();
    path
}

#[test]
fn the_most_recent_session_is_continued() {
    let dir = temp();
    write(dir.path(), "a.jsonl", "old", 100, "");
    let newest = write(dir.path(), "b.jsonl", "new", 10, "");
    fs::write(dir.path().join("c.jsonl"), "no session").unwrap();
    write(dir.path(), "d.jsonl.torn-x", "torn", 0, "");
    let (session, _) = Session::continue_recent(dir.path(), Path::new("/w")).unwrap();
    assert_eq!(
        (session.path(), session.id()),
        (Some(newest.as_path()), "new")
    );
}

#[test]
fn continue_recent_creates_a_session_if_there_is_none() {
    let dir = temp();
    let missing = dir.path().join("missing");
    let (session, warnings) = Session::continue_recent(&missing, Path::new("/w")).unwrap();
    assert_eq!((session.entries().len(), warnings), (0, vec![]));
    assert_eq!(session.path().unwrap().parent(), Some(missing.as_path()));
    assert_eq!(list(&missing).unwrap(), []);
}

#[test]
fn an_id_is_found_by_its_beginning() {
    let dir = temp();
    write(dir.path(), "a.jsonl", "abc", 5, "");
    write(dir.path(), "b.jsonl", "abcd", 1, "");
    write(dir.path(), "c.jsonl", "xyz", 0, "");
    let find = |prefix| -> Vec<String> {
        let found = find_by_id(dir.path(), prefix).unwrap();
        found.into_iter().map(|session| session.header.id).collect()
    };
    assert_eq!(find("ab"), ["abcd", "abc"]);
    assert_eq!(find("abc"), ["abc"]);
    assert_eq!(find("q"), Vec::<String>::new());
}

#[test]
fn list_has_the_columns_of_the_selector() {
    let dir = temp();
    let rest = [
        r#"{"type":"session_info","id":"1","parentId":null,"timestamp":"T","name":"first"}"#,
        r#"{"type":"message","id":"2","parentId":"1","timestamp":"T","message":{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"there"}],"timestamp":5000}}"#,
        "{broken",
        r#"{"type":"message","id":"3","parentId":"2","timestamp":"T","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"}],"timestamp":9000}}"#,
        r#"{"type":"message","id":"4","parentId":"3","timestamp":"T","message":{"role":"toolResult","content":[{"type":"text","text":"no"}],"timestamp":99000}}"#,
        r#"{"type":"message","id":"5","parentId":"4","timestamp":"1970-01-01T00:00:10.000Z","message":{"role":"user","content":"bye"}}"#,
        r#"{"type":"session_info","id":"6","parentId":"5","timestamp":"T","name":" second "}"#,
    ];
    let talk = write(dir.path(), "a.jsonl", "talk", 0, &rest.join("\n"));
    let quiet = write(dir.path(), "b.jsonl", "quiet", 0, "");
    fs::write(dir.path().join("c.jsonl"), "{}\n").unwrap();
    let created = 1_767_225_600_000;
    let expected = [
        SessionInfo {
            path: quiet,
            id: "quiet".into(),
            cwd: "/w".into(),
            name: None,
            parent_session: None,
            created,
            modified: created,
            message_count: 0,
            first_message: "(no messages)".into(),
            all_messages_text: String::new(),
        },
        SessionInfo {
            path: talk,
            id: "talk".into(),
            cwd: "/w".into(),
            name: Some("second".into()),
            parent_session: None,
            created,
            modified: 10_000,
            message_count: 4,
            first_message: "hello there".into(),
            all_messages_text: "hello there hi bye".into(),
        },
    ];
    assert_eq!(list(dir.path()).unwrap(), expected);
}

#[test]
fn folders_of_other_working_directories_are_found() {
    let agent = temp();
    let one = default_session_dir(agent.path(), Path::new("/one"));
    let two = default_session_dir(agent.path(), Path::new("/two"));
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(&two).unwrap();
    fs::write(agent.path().join("sessions/file"), "").unwrap();
    assert_eq!(
        session_dirs(&agent.path().join("sessions")).unwrap(),
        [one, two]
    );
}
