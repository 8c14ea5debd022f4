//! A conversation as a file to give away, and such a file taken in.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use js_runtime::read_regular;

use super::entry::Entry;
use super::error::SessionError;
use super::handle::{Session, absolute};
use super::header::Header;
use super::list::header_of;
use super::load::load;
use super::patch::with_parent;

impl Session {
    /// Writes the entries from the root to the leaf, one after the other, as a
    /// session of its own. What was at `path` is replaced, in one step.
    pub fn export_branch(&self, path: &Path) -> Result<PathBuf, SessionError> {
        let path = absolute(path);
        if self.path().is_some_and(|own| is_same(own, &path)) {
            return Err(SessionError::ExportOntoItself { path });
        }
        // Another conversation, perhaps open elsewhere, is not to be written over; an
        // earlier copy of this one is.
        let there = session_header(&path);
        if there.is_some_and(|there| there.id != self.id()) {
            return Err(SessionError::ExportOntoSession { path });
        }
        let header = Header::new(Some(self.id().to_owned()), self.cwd(), None);
        let mut text = format!("{}\n", header.raw);
        let branch = self.branch(None);
        let mut parent: Option<&Entry> = None;
        for entry in &branch {
            text += &in_line(entry, parent);
            text.push('\n');
            parent = Some(entry);
        }
        write_whole(&path, text.as_bytes()).map_err(SessionError::io("write", &path))?;
        Ok(path)
    }
}

/// Whether the file is a conversation.
pub fn is_session_file(path: &Path) -> bool {
    session_header(path).is_some()
}

fn session_header(path: &Path) -> Option<Header> {
    // Reading from a pipe would wait.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_file.then(|| header_of(path)).flatten()
}

fn in_line(entry: &Entry, parent: Option<&Entry>) -> String {
    match entry.parent_id.as_deref() == parent.map(|parent| parent.id.as_str()) {
        true => entry.raw.to_string(),
        false => with_parent(entry, parent.map(Entry::id_ref)),
    }
}

/// Copies a session file into `dir`, under its own name if that is free, and says
/// where it is. One that is there already, or was copied before, is not copied.
pub fn import(source: &Path, dir: &Path) -> Result<PathBuf, SessionError> {
    let source = absolute(source);
    let bytes = read_regular(&source).map_err(SessionError::io("read", &source))?;
    let mut warnings = Vec::new();
    if load(&source, bytes.clone(), &mut warnings)?
        .session
        .is_none()
    {
        return Err(SessionError::NotASession { path: source });
    }
    for name in names(&source) {
        let path = absolute(&dir.join(name));
        if is_same(&path, &source) {
            return Ok(source);
        }
        match read_regular(&path) {
            Ok(there) if there == bytes => return Ok(path),
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => continue,
        }
        write_whole(&path, &bytes).map_err(SessionError::io("write", &path))?;
        return Ok(path);
    }
    Err(SessionError::NotASession { path: source })
}

/// `talk.jsonl`, `talk-2.jsonl`, …
fn names(source: &Path) -> impl Iterator<Item = String> + use<> {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let stem = stem.into_owned();
    (1_u32..).map(move |number| match number {
        1 => format!("{stem}.jsonl"),
        number => format!("{stem}-{number}.jsonl"),
    })
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// All of it or nothing, readable by its owner alone.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
