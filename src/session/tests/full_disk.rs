//! Tests with full disks, and with disks on which cleaning up fails, too.

use std::fs::TryLockError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// A real disk with a limited number of free bytes.
#[derive(Clone)]
pub(super) struct SmallDisk {
    room: Arc<AtomicUsize>,
    /// Whether truncating fails.
    stuck: Arc<AtomicBool>,
    has_locks: bool,
}

struct SmallFile {
    file: Box<dyn OpenFile>,
    disk: SmallDisk,
}

impl SmallDisk {
    fn new() -> Self {
        Self {
            room: Arc::new(usize::MAX.into()),
            stuck: Arc::new(false.into()),
            has_locks: true,
        }
    }

    pub(super) fn without_locks() -> Self {
        Self {
            has_locks: false,
            ..Self::new()
        }
    }

    fn wrap(&self, file: Box<dyn OpenFile>) -> Box<dyn OpenFile> {
        Box::new(SmallFile {
            file,
            disk: self.clone(),
        })
    }

    fn open(&self, path: &Path) -> (Session, Vec<Warning>) {
        Session::open_on(Arc::new(self.clone()), path, Path::new("/w")).unwrap()
    }
}

impl FileSystem for SmallDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Disk.open(path).map(|file| self.wrap(file))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Disk.create(path).map(|file| self.wrap(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }
}

impl OpenFile for SmallFile {
    fn try_lock(&self) -> Result<(), TryLockError> {
        if !self.disk.has_locks {
            return Err(TryLockError::Error(io::Error::other("no locks here")));
        }
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn lock_holder(&self) -> Option<u32> {
        self.file.lock_holder()
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.file.read()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.disk.room.load(Ordering::Relaxed);
        let fits = bytes.len().min(room);
        if fits == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.disk.room.store(room - fits, Ordering::Relaxed);
        self.file.append(&bytes[..fits])
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        if self.disk.stuck.load(Ordering::Relaxed) {
            return Err(io::Error::other("stuck"));
        }
        self.file.truncate(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}

/// Runs `body` with a session of one record on a disk with n free bytes, for every n that is
/// too small for the second record.
fn on_a_full_disk(stuck: bool, body: impl Fn(Session, &SmallDisk, &Path)) {
    let record = {
        let mut session = Session::in_memory(Path::new("/w"));
        session.append_message(&user("first")).unwrap();
        session.append_message(&user("second")).unwrap().raw.len() + 1
    };
    for room in 0..record {
        let (dir, disk) = (temp(), SmallDisk::new());
        let path = dir.path().join("s.jsonl");
        let (mut session, _) = disk.open(&path);
        session.append_message(&user("first")).unwrap();
        disk.stuck.store(stuck, Ordering::Relaxed);
        disk.room.store(room, Ordering::Relaxed);
        body(session, &disk, &path);
    }
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    on_a_full_disk(false, |mut session, disk, path| {
        let before = fs::read(path).unwrap();
        let error = session.append_message(&user("second")).unwrap_err();
        let SessionError::Io {
            action: "append to",
            source,
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(path).unwrap(), before);
        assert_eq!(session.entries().len(), 1);

        disk.room.store(usize::MAX, Ordering::Relaxed);
        session.append_message(&user("third")).unwrap();
        drop(session);
        let (session, warnings) = open(path);
        assert_eq!(warnings, []);
        assert_eq!(texts(&session.build_context()), ["first", "third"]);
    });
}

/// Regression (oh-my-pi#8596): the record after a torn one fused with it, and both were lost.
#[test]
fn a_record_after_a_torn_one_starts_on_its_own_line() {
    on_a_full_disk(true, |mut session, disk, path| {
        session.append_message(&user("second")).unwrap_err();
        disk.room.store(usize::MAX, Ordering::Relaxed);
        session.append_message(&user("third")).unwrap();
        session.append_message(&user("fourth")).unwrap();
        drop(session);
        let (session, _) = open(path);
        let actual = texts(&session.build_context());
        assert_eq!(actual, ["first", "third", "fourth"]);
    });
}

#[test]
fn session_file_is_created_later_after_a_failure() {
    let (dir, disk) = (temp(), SmallDisk::new());
    let path = dir.path().join("s.jsonl");
    let (mut session, _) = disk.open(&path);
    session.append_model_change("p", "m").unwrap();
    disk.room.store(100, Ordering::Relaxed);
    session.append_message(&user("first")).unwrap_err();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    disk.room.store(usize::MAX, Ordering::Relaxed);
    session.append_message(&user("again")).unwrap();
    let expected = raws(&session);
    drop(session);
    let (session, warnings) = open(&path);
    assert_eq!((warnings, raws(&session)), (vec![], expected));
    assert_eq!(names(dir.path()), ["s.jsonl"]);
}

/// Simulates another pi that migrates the file after it was opened and before it is locked.
struct Migrating {
    done: AtomicBool,
}

impl FileSystem for Migrating {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let opened = Disk.open(path);
        if !self.done.swap(true, Ordering::Relaxed) {
            let next = path.with_extension("next");
            fs::write(
                &next,
                format!("{HEADER}\n{}\n", line("aaaaaaaa", None, "migrated")),
            )?;
            fs::rename(&next, path)?;
        }
        opened
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Disk.create(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }
}

#[test]
fn lock_of_replaced_file_does_not_count() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    fs::write(
        &path,
        format!("{HEADER}\n{}\n", line("bbbbbbbb", None, "old")),
    )
    .unwrap();
    let storage = Arc::new(Migrating { done: false.into() });
    let (mut session, _) = Session::open_on(storage, &path, Path::new("/w")).unwrap();
    assert_eq!(texts(&session.build_context()), ["migrated"]);
    session.append_message(&user("next")).unwrap();
}

#[test]
fn a_migration_that_does_not_fit_changes_nothing() {
    let old = r#"{"type":"session","id":"s","timestamp":"T","cwd":"/w"}"#;
    for content in [format!("{old}\n"), format!("{old}\n{{\"type\":\"mess")] {
        let (dir, disk) = (temp(), SmallDisk::new());
        let path = dir.path().join("s.jsonl");
        fs::write(&path, &content).unwrap();
        disk.room.store(10, Ordering::Relaxed);
        let opened = Session::open_on(Arc::new(disk), &path, Path::new("/w"));
        let error = opened.map(|_| ()).unwrap_err();
        assert!(
            matches!(
                error,
                SessionError::Io {
                    action: "write",
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(names(dir.path()), ["s.jsonl"]);
    }
}
