//! A file system in memory, for scenarios that run ten thousand times.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;

#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<BTreeMap<PathBuf, Inode>>>);

type Inode = Arc<Mutex<Content>>;

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    locked: bool,
}

struct MemoryFile {
    disk: Memory,
    inode: Inode,
    /// Whether this process has the lock.
    holds: Mutex<bool>,
}

impl Memory {
    pub(super) fn write(&self, path: &Path, text: &str) {
        let content = Content {
            bytes: text.into(),
            locked: false,
        };
        let inode = Arc::new(Mutex::new(content));
        self.0.lock().insert(path.to_owned(), inode);
    }

    /// Returns names and contents of all files.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let files = self.0.lock();
        let files = files.iter().map(|(path, inode)| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, String::from_utf8(inode.lock().bytes.clone()).unwrap())
        });
        files.collect()
    }

    fn file(&self, inode: &Inode) -> Box<dyn OpenFile> {
        Box::new(MemoryFile {
            disk: self.clone(),
            inode: Arc::clone(inode),
            holds: Mutex::new(false),
        })
    }
}

impl FileSystem for Memory {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let files = self.0.lock();
        let inode = files.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.file(inode))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let mut files = self.0.lock();
        if files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = files.entry(path.to_owned()).or_default();
        Ok(self.file(inode))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.0.lock();
        let inode = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.0.lock().remove(path);
        removed.map(drop).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl OpenFile for MemoryFile {
    fn try_lock(&self) -> Result<(), TryLockError> {
        let mut content = self.inode.lock();
        if content.locked {
            return Err(TryLockError::WouldBlock);
        }
        content.locked = true;
        *self.holds.lock() = true;
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        if std::mem::take(&mut *self.holds.lock()) {
            self.inode.lock().locked = false;
        }
        Ok(())
    }

    fn lock_holder(&self) -> Option<u32> {
        Some(std::process::id())
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.inode.lock().bytes.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inode.lock().bytes.extend(bytes);
        Ok(bytes.len())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.inode.lock().bytes.truncate(len as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.inode.lock().bytes.len() as u64)
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let files = self.disk.0.lock();
        Ok(files
            .get(path)
            .is_some_and(|there| Arc::ptr_eq(there, &self.inode)))
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        if *self.holds.lock() {
            self.inode.lock().locked = false;
        }
    }
}
