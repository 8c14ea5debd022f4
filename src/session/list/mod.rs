//! Finding sessions by folder, age or the beginning of their id. No file is opened for writing,
//! so that sessions in use can be listed.

pub(crate) mod search;
pub(crate) mod summary;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use crate::error::SessionError;
use crate::format::header::Header;
use summary::SessionInfo;

/// A session file with its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef {
    pub path: PathBuf,
    pub header: Header,
    /// Modification time of the file.
    pub modified: SystemTime,
}

/// Limit for the first line in bytes. A header has a few hundred; a longer line is not a
/// header.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// Returns the sessions of a folder, the last active first. A folder that does not exist has
/// none. Files that are not sessions are ignored.
pub fn list(dir: &Path) -> Result<Vec<SessionInfo>, SessionError> {
    Ok(read_all(session_files(dir)?))
}

/// Returns the sessions of all folders under `<agent folder>/sessions` as one list. Folders
/// that cannot be read are ignored.
pub fn list_all(sessions: &Path) -> Result<Vec<SessionInfo>, SessionError> {
    let dirs = session_dirs(sessions)?;
    let files = dirs.iter().filter_map(|dir| session_files(dir).ok());
    Ok(read_all(files.flatten().collect()))
}

fn read_all(files: Vec<PathBuf>) -> Vec<SessionInfo> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::with_capacity(files.len()));
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(files.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(info) = summary::read(path) {
                        found.lock().expect("no worker panics").push(info);
                    }
                }
            });
        }
    });
    let mut sessions = found.into_inner().expect("no worker panics");
    sessions.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
    sessions
}

/// Returns the folders under `<agent folder>/sessions`, one per working directory.
pub fn session_dirs(sessions: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let mut dirs = children(sessions)?;
    dirs.retain(|path| path.is_dir());
    dirs.sort();
    Ok(dirs)
}

/// Returns the session file of `dir` that was written last. Reads headers from the newest file
/// on, until one is a session.
pub fn most_recent(dir: &Path) -> Result<Option<PathBuf>, SessionError> {
    let dated = session_files(dir)?.into_iter().filter_map(|path| {
        let modified = fs::metadata(&path).and_then(|metadata| metadata.modified());
        Some((modified.ok()?, path))
    });
    let mut dated: Vec<_> = dated.collect();
    dated.sort();
    let mut newest_first = dated.into_iter().rev().map(|(_, path)| path);
    Ok(newest_first.find(|path| read_header(path).is_some()))
}

/// Returns the sessions of `dir` whose id begins with `prefix`, the last written first. If one
/// has exactly the id `prefix`, only that one is returned.
pub fn find_by_id(dir: &Path, prefix: &str) -> Result<Vec<SessionRef>, SessionError> {
    let mut found = session_refs(dir)?;
    found.retain(|session| session.header.id.starts_with(prefix));
    if let Some(exact) = found.iter().position(|session| session.header.id == prefix) {
        found = vec![found.swap_remove(exact)];
    }
    Ok(found)
}

/// Returns the session files of a folder, the last written first; of two with the same time the
/// one with the later name first.
fn session_refs(dir: &Path) -> Result<Vec<SessionRef>, SessionError> {
    let mut session_refs: Vec<SessionRef> = session_files(dir)?
        .into_iter()
        .filter_map(|path| read_ref(path).ok().flatten())
        .collect();
    session_refs.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
    Ok(session_refs)
}

pub(crate) fn session_files(dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let mut files = children(dir)?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    Ok(files)
}

fn children(dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SessionError::io("list", dir)(error)),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths
        .collect::<io::Result<_>>()
        .map_err(SessionError::io("list", dir))
}

/// Reads the header of a file; `None` if the file is not a session.
pub fn read_header(path: &Path) -> Option<Header> {
    let found = read_ref(path.to_owned()).ok().flatten();
    found.map(|found| found.header)
}

fn read_ref(path: PathBuf) -> io::Result<Option<SessionRef>> {
    // Opening a pipe would block.
    let about = fs::metadata(&path)?;
    if !about.is_file() {
        return Ok(None);
    }
    let file = File::open(&path)?;
    let modified = about.modified()?;
    let lines = BufReader::with_capacity(512, file.take(MAX_HEADER_BYTES)).lines();
    // Invalid UTF-8 ends the search: a header has none.
    let header = Header::find(lines.map_while(Result::ok));
    Ok(header.map(|header| SessionRef {
        path,
        header,
        modified,
    }))
}
