//! Injects a fault into every disk operation, once or permanently, and fills the disk after
//! every number of bytes: in a new session, an old one, one that needs migration and some that
//! need repair.

use std::fs::TryLockError;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::memory_disk::Memory;
use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Only the nth operation fails, counted from 0.
    At(usize),
    /// The nth operation and all later ones fail.
    From(usize),
    /// The disk has room for this many bytes.
    Full(usize),
    /// The disk has room for this many bytes, and truncating and removing fail.
    FullAndStuck(usize),
    /// No operation fails, but each write accepts only this many bytes, and every other write
    /// is interrupted by a signal.
    ShortWrites(usize),
}

#[derive(Clone)]
struct Flaky(Arc<Mutex<State>>);

struct State {
    fault: Fault,
    operations: usize,
    written: usize,
    interrupt: bool,
    disk: Memory,
}

struct FlakyFile {
    file: Box<dyn OpenFile>,
    disk: Flaky,
}

impl Flaky {
    fn new(fault: Fault) -> Self {
        Self(Arc::new(Mutex::new(State {
            fault,
            operations: 0,
            written: 0,
            interrupt: false,
            disk: Memory::default(),
        })))
    }

    /// Returns the disk as it is, without the faults.
    fn disk(&self) -> Memory {
        self.0.lock().disk.clone()
    }

    fn lift(&self) {
        self.0.lock().fault = Fault::None;
    }

    fn step(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        let number = state.operations;
        state.operations += 1;
        let fails = match state.fault {
            Fault::At(at) => number == at,
            Fault::From(from) => number >= from,
            _ => false,
        };
        // Error number 5 is EIO.
        if fails {
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }

    fn step_back(&self) -> io::Result<()> {
        if let Fault::FullAndStuck(_) = self.0.lock().fault {
            return Err(io::Error::other("stuck"));
        }
        self.step()
    }

    fn wrap(&self, file: Box<dyn OpenFile>) -> Box<dyn OpenFile> {
        let disk = self.clone();
        Box::new(FlakyFile { file, disk })
    }
}

impl FileSystem for Flaky {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.step()?;
        self.disk().open(path).map(|file| self.wrap(file))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.step()?;
        self.disk().create(path).map(|file| self.wrap(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        self.disk().rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step_back()?;
        self.disk().remove(path)
    }
}

impl OpenFile for FlakyFile {
    fn try_lock(&self) -> Result<(), TryLockError> {
        self.disk.step().map_err(TryLockError::Error)?;
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn lock_holder(&self) -> Option<u32> {
        self.file.lock_holder()
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.disk.step()?;
        self.file.read()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.step()?;
        let room = {
            let mut state = self.disk.0.lock();
            match state.fault {
                Fault::Full(room) | Fault::FullAndStuck(room) => room - state.written,
                Fault::ShortWrites(size) => {
                    state.interrupt = !state.interrupt;
                    if state.interrupt {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    size
                }
                _ => usize::MAX,
            }
        };
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = self.file.append(&bytes[..bytes.len().min(room)])?;
        self.disk.0.lock().written += taken;
        Ok(taken)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.disk.step_back()?;
        self.file.truncate(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.step()
    }

    fn size(&self) -> io::Result<u64> {
        self.disk.step()?;
        self.file.size()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.disk.step()?;
        self.file.is_at(path)
    }
}

/// A file as the scenario finds it, and the entries that it has.
struct Scenario {
    name: &'static str,
    content: Option<String>,
    texts_before: &'static [&'static str],
}

fn scenarios() -> Vec<Scenario> {
    let kept = line("aaaaaaaa", None, "kept");
    let old = r#"{"type":"session","id":"s","timestamp":"T","cwd":"/w"}"#;
    let output = r#"{"type":"message","timestamp":"T","message":{"role":"user","content":"kept","timestamp":1}}"#;
    let scenario = |name, content: String, texts_before| Scenario {
        name,
        content: Some(content),
        texts_before,
    };
    vec![
        Scenario {
            name: "new",
            content: None,
            texts_before: &[],
        },
        scenario("empty", String::new(), &[]),
        scenario("old", format!("{HEADER}\n{kept}\n"), &["kept"]),
        scenario("no line end", format!("{HEADER}\n{kept}"), &["kept"]),
        scenario(
            "torn",
            format!("{HEADER}\n{kept}\n{{\"type\":\"mess"),
            &["kept"],
        ),
        scenario("torn header", HEADER[..30].to_owned(), &[]),
        scenario("migrated", format!("{old}\n{output}\n"), &["kept"]),
        scenario(
            "migrated and torn",
            format!("{old}\n{output}\n{{\"type\":\"mess"),
            &["kept"],
        ),
    ]
}

/// Opens a session and works in it with the fault, goes on without the fault, and opens the
/// file again. Returns the number of operations and of bytes.
fn run_scenario(scenario: &Scenario, fault: Fault) -> (usize, usize) {
    let description = format!("{}, {fault:?}", scenario.name);
    let path = Path::new("/s/s.jsonl");
    let disk = Flaky::new(fault);
    if let Some(content) = &scenario.content {
        disk.disk().write(path, content);
    }
    let open = || Session::open_on(Arc::new(disk.clone()), path, Path::new("/w"));
    let opened = open();
    let Ok((mut session, _)) = opened else {
        disk.lift();
        let (session, _) = open().unwrap();
        assert_eq!(
            texts(&session.build_context()),
            scenario.texts_before,
            "{description}"
        );
        assert_torn_is_kept(scenario, &disk.disk(), &description);
        return (0, 0);
    };

    // The entries whose append succeeded, which must be in memory.
    let mut expected: Vec<String> = raws(&session);
    let mut refused = Vec::new();
    match session.append_model_change("p", "m") {
        Ok(entry) => expected.push(entry.raw.to_string()),
        Err(_) => refused.push("\"model_change\""),
    }
    let mut keep = |session: &mut Session, message: &AgentMessage| {
        let stored = session.append_or_buffer(message);
        expected.push(session.entries().last().unwrap().raw.to_string());
        assert_eq!(
            stored.is_err(),
            session.unsaved_count() > 0,
            "{description}"
        );
    };
    keep(&mut session, &user("question"));
    keep(&mut session, &calls("toolUse", &[("c", "bash")]));
    keep(&mut session, &result("c", "bash"));
    match session.append_label("nobody", None) {
        Err(SessionError::UnknownEntry { .. }) => {}
        other => panic!("{description}: {other:?}"),
    }
    match session.append_custom("note", Some(&json!({ "x": 1 }))) {
        Ok(entry) => expected.push(entry.raw.to_string()),
        Err(_) => refused.push("\"note\""),
    }
    assert_eq!(raws(&session), expected, "{description}");
    let State {
        operations,
        written,
        ..
    } = *disk.0.lock();

    disk.lift();
    let after = session.append_message(&user("after"));
    let after = after.unwrap_or_else(|error| panic!("{description}: {error}"));
    expected.push(after.raw.to_string());
    assert_eq!(
        (raws(&session), session.unsaved_count()),
        (expected.clone(), 0)
    );
    let context = session.build_context();
    let mut expected_texts = scenario.texts_before.to_vec();
    expected_texts.extend(["question", "assistant", "bash c error=false: done", "after"]);
    assert_eq!(texts(&context), expected_texts, "{description}");
    drop(session);

    let (session, warnings) = open().unwrap();
    let stuck = matches!(fault, Fault::FullAndStuck(_) | Fault::From(_));
    let mut stored = raws(&session);
    if stuck {
        // The append failed, and its bytes could not be removed.
        let is_left = |raw: &String| refused.iter().any(|kind| raw.contains(kind));
        stored.retain(|raw| expected.contains(raw) || !is_left(raw));
    }
    assert_eq!(stored, expected, "{description}");
    assert_eq!(session.build_context(), context, "{description}");
    // An incomplete record may be left by a write that could not be undone.
    let left = |warning: &Warning| match warning {
        Warning::Malformed { .. } => stuck || scenario.name == "torn",
        _ => false,
    };
    assert!(warnings.iter().all(left), "{description}: {warnings:?}");
    assert_torn_is_kept(scenario, &disk.disk(), &description);
    if !stuck {
        let files = disk.disk().files();
        let fine = |name: &str| name == "s.jsonl" || name.starts_with("s.jsonl.torn-");
        assert!(
            files.iter().all(|(name, _)| fine(name)),
            "{description}: {files:?}"
        );
    }
    (operations, written)
}

/// Asserts that the text of the torn line is in some file of the folder.
fn assert_torn_is_kept(scenario: &Scenario, disk: &Memory, description: &str) {
    let content = scenario.content.as_deref().unwrap_or_default();
    let tail = content.rsplit('\n').next().unwrap_or_default();
    let kept = disk.files().iter().any(|(_, text)| text.contains(tail));
    assert!(tail.is_empty() || kept, "{description}: {tail} is gone");
}

#[test]
fn every_operation_fails_once_and_for_good() {
    for scenario in scenarios() {
        let (operations, _) = run_scenario(&scenario, Fault::None);
        assert!(operations > 10, "{operations}");
        for number in 0..operations {
            run_scenario(&scenario, Fault::At(number));
            run_scenario(&scenario, Fault::From(number));
        }
    }
}

#[test]
fn the_disk_is_full_after_every_byte() {
    std::thread::scope(|scope| {
        for scenario in scenarios() {
            scope.spawn(move || {
                let (_, bytes) = run_scenario(&scenario, Fault::None);
                assert!(bytes > 500, "{bytes}");
                for room in 0..bytes {
                    run_scenario(&scenario, Fault::Full(room));
                    // The exact position within a word makes no difference here.
                    if room % 5 == 0 {
                        run_scenario(&scenario, Fault::FullAndStuck(room));
                    }
                }
            });
        }
    });
}

#[test]
fn short_and_interrupted_writes_are_continued() {
    for scenario in scenarios() {
        for size in [1, 2, 7, 100] {
            run_scenario(&scenario, Fault::ShortWrites(size));
        }
    }
}
