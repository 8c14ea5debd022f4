//! Sessions of several processes that write to one file in turns.

use super::*;

fn shared(path: &Path) -> Session {
    Session::open_shared(path, Path::new("/w")).unwrap().0
}

fn started_session() -> (TempDir, std::path::PathBuf) {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let content = format!("{HEADER}\n{}\n", line("aaaaaaaa", None, "one"));
    fs::write(&path, content).unwrap();
    (dir, path)
}

#[test]
fn opening_needs_no_lock_and_appending_does() {
    let (_dir, path) = started_session();
    let (mut holder, _) = open(&path);
    let mut other = shared(&path);
    assert_eq!(texts(&other.build_context()), ["one"]);
    let refused = other.append_message(&user("two")).unwrap_err();
    assert!(matches!(refused, SessionError::Locked { .. }), "{refused}");
    assert_eq!(other.entries().len(), 1);
    holder.append_message(&user("two")).unwrap();
    holder.release_lock();
    assert_eq!(other.acquire_lock().unwrap(), LockOutcome::CaughtUp(1));
    other.append_message(&user("three")).unwrap();
    let refused = holder.append_message(&user("four")).unwrap_err();
    assert!(matches!(refused, SessionError::Locked { .. }), "{refused}");
    other.release_lock();
    holder.append_message(&user("four")).unwrap();
    assert_eq!(
        texts(&holder.build_context()),
        ["one", "two", "three", "four"]
    );
    holder.release_lock();
    assert_eq!(raws(&open(&path).0), raws(&holder));
}

#[test]
fn moved_leaf_stays_after_catching_up() {
    let (_dir, path) = started_session();
    let (mut one, mut other) = (shared(&path), shared(&path));
    other.append_message(&user("two")).unwrap();
    other.release_lock();
    one.set_leaf(None).unwrap();
    one.append_message(&user("instead")).unwrap();
    assert_eq!(texts(&one.build_context()), ["instead"]);
    assert_eq!(one.entries().len(), 3);
}

#[test]
fn unsaved_entries_follow_entries_of_others() {
    let (_dir, path) = started_session();
    let (mut holder, _) = open(&path);
    let mut other = shared(&path);
    other.append_or_buffer(&user("owed")).unwrap_err();
    other.append_or_buffer(&user("owed too")).unwrap_err();
    holder.append_message(&user("two")).unwrap();
    holder.release_lock();
    other.append_message(&user("three")).unwrap();
    let expected = ["one", "two", "owed", "owed too", "three"];
    assert_eq!(texts(&other.build_context()), expected);
    other.release_lock();
    assert_eq!(texts(&open(&path).0.build_context()), expected);
}

#[test]
fn a_record_that_is_being_written_is_not_torn() {
    let (_dir, path) = started_session();
    let (mut holder, _) = open(&path);
    let before = fs::read(&path).unwrap();
    let next = line("bbbbbbbb", Some("aaaaaaaa"), "two");
    let half = [&before[..], &next.as_bytes()[..30]].concat();
    fs::write(&path, half).unwrap();
    let mut other = shared(&path);
    assert_eq!(texts(&other.build_context()), ["one"]);
    fs::write(&path, [&before[..], next.as_bytes(), b"\n"].concat()).unwrap();
    holder.release_lock();
    other.append_message(&user("three")).unwrap();
    assert_eq!(texts(&other.build_context()), ["one", "two", "three"]);
}
