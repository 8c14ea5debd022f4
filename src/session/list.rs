//! Finding sessions: by folder, by age, by the beginning of their id. Opens
//! nothing for writing, so it works on sessions that are in use.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::SessionError;
use super::header::Header;
use super::paths;

/// A session as a list shows it. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub path: PathBuf,
    pub id: String,
    /// Empty for sessions of an age that did not store it.
    pub cwd: PathBuf,
    pub name: Option<String>,
    pub parent_session: Option<PathBuf>,
    pub created: i64,
    /// When the user or the model last said something.
    pub modified: i64,
    pub message_count: usize,
    pub first_message: String,
    /// What the user and the model said, for searching.
    pub all_messages_text: String,
}

/// What the first line of a file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef {
    pub path: PathBuf,
    pub header: Header,
    /// Of the file.
    pub modified: SystemTime,
}

/// A header is a few hundred bytes; what has no line end by here is none.
const LONGEST_HEADER: u64 = 64 * 1024;

/// The sessions of a folder, the last active first. A folder that does not exist
/// has none; files that are no sessions are not sessions.
pub fn list(dir: &Path) -> Result<Vec<SessionInfo>, SessionError> {
    let files = session_files(dir)?;
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(files.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(info) = read_info(path) {
                        found.lock().expect("no worker panics").push(info);
                    }
                }
            });
        }
    });
    let mut sessions = found.into_inner().expect("no worker panics");
    sessions.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
    Ok(sessions)
}

/// The folders under `<agent folder>/sessions`, one per working directory.
pub fn session_dirs(sessions: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let mut dirs = children(sessions)?;
    dirs.retain(|path| path.is_dir());
    dirs.sort();
    Ok(dirs)
}

/// The session file of `dir` that was written to last.
pub fn most_recent(dir: &Path) -> Result<Option<PathBuf>, SessionError> {
    Ok(refs(dir)?.into_iter().next().map(|session| session.path))
}

/// The sessions of `dir` whose id begins with `prefix`, the last written first;
/// only the one whose id is `prefix` if there is one.
pub fn find_by_id(dir: &Path, prefix: &str) -> Result<Vec<SessionRef>, SessionError> {
    let mut found = refs(dir)?;
    found.retain(|session| session.header.id.starts_with(prefix));
    if let Some(exact) = found.iter().position(|session| session.header.id == prefix) {
        found = vec![found.swap_remove(exact)];
    }
    Ok(found)
}

/// The last written first; of two at the same time the one with the later name.
fn refs(dir: &Path) -> Result<Vec<SessionRef>, SessionError> {
    let mut refs: Vec<SessionRef> = session_files(dir)?
        .into_iter()
        .filter_map(|path| read_ref(path).ok().flatten())
        .collect();
    refs.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
    Ok(refs)
}

fn session_files(dir: &Path) -> Result<Vec<PathBuf>, SessionError> {
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

fn read_ref(path: PathBuf) -> io::Result<Option<SessionRef>> {
    let file = File::open(&path)?;
    let modified = file.metadata()?.modified()?;
    let mut line = String::new();
    BufReader::with_capacity(512, file.take(LONGEST_HEADER)).read_line(&mut line)?;
    let header = Header::parse(line.trim_end());
    Ok(header.map(|header| SessionRef {
        path,
        header,
        modified,
    }))
}

/// `None` for what cannot be read or is no session.
fn read_info(path: &Path) -> Option<SessionInfo> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = Header::parse(lines.next()?)?;
    let mut summary = Summary::default();
    for line in lines {
        // What cannot be read is reported when the session is opened.
        if let Ok(line) = serde_json::from_str::<Line<'_>>(line) {
            summary.add(line);
        }
    }
    let created = match paths::millis(&header.timestamp) {
        0 => file_time(path),
        created => created,
    };
    Some(SessionInfo {
        path: path.to_owned(),
        id: header.id,
        cwd: header.cwd.unwrap_or_default(),
        name: summary.name,
        parent_session: header.parent_session,
        created,
        modified: summary.modified.unwrap_or(created),
        message_count: summary.message_count,
        first_message: summary
            .first_message
            .unwrap_or_else(|| "(no messages)".into()),
        all_messages_text: summary.texts.join(" "),
    })
}

fn file_time(path: &Path) -> i64 {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: String,
    name: Option<String>,
    timestamp: Option<String>,
    /// Most of a file is tool results, which a list does not look into.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    timestamp: Option<f64>,
}

#[derive(Deserialize)]
struct Block {
    r#type: String,
    text: Option<String>,
}

#[derive(Default)]
struct Summary {
    name: Option<String>,
    modified: Option<i64>,
    message_count: usize,
    first_message: Option<String>,
    texts: Vec<String>,
}

impl Summary {
    fn add(&mut self, line: Line<'_>) {
        match &*line.r#type {
            "session_info" => {
                let name = line
                    .name
                    .as_deref()
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                self.name = name.map(str::to_owned);
            }
            "message" => {
                self.message_count += 1;
                let message = line
                    .message
                    .map(|message| serde_json::from_str(message.get()));
                if let Some(Ok(message)) = message {
                    self.add_message(&message, line.timestamp.as_deref());
                }
            }
            _ => {}
        }
    }

    fn add_message(&mut self, message: &Message<'_>, entry_time: Option<&str>) {
        let Some(content) = message.content else {
            return;
        };
        if message.role != "user" && message.role != "assistant" {
            return;
        }
        let time = message.timestamp.map(|time| time as i64);
        let time = time.or_else(|| entry_time.map(paths::millis).filter(|time| *time > 0));
        self.modified = self.modified.max(time);
        let text = text_of(content);
        if text.is_empty() {
            return;
        }
        if message.role == "user" && self.first_message.is_none() {
            self.first_message = Some(text.clone());
        }
        self.texts.push(text);
    }
}

fn text_of(content: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str(content.get()) {
        return text;
    }
    let blocks: Vec<Block> = serde_json::from_str(content.get()).unwrap_or_default();
    let texts = blocks.into_iter().filter(|block| block.r#type == "text");
    texts
        .filter_map(|block| block.text)
        .collect::<Vec<_>>()
        .join(" ")
}
