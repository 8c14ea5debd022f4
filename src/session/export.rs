//! Export of a branch to a file, and import of such a file.

use pi_base::{regular_file, secrets};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::entry::Entry;
use crate::error::SessionError;
use crate::format::header::Header;
use crate::format::json_line::with_parent;
use crate::format::load::load;
use crate::list::read_header;
use crate::session::{Session, absolute};

impl Session {
    /// Writes the entries from the root to the leaf as a session file of its own. An existing
    /// file at `path` is replaced atomically.
    pub fn export_branch(&self, path: &Path) -> Result<PathBuf, SessionError> {
        let path = absolute(path);
        if self.path().is_some_and(|own| is_same(own, &path)) {
            return Err(SessionError::ExportOntoItself { path });
        }
        // Refuse to overwrite another conversation, which may be open elsewhere. An earlier
        // export of this session is replaced.
        let there = session_header(&path);
        if there.is_some_and(|there| there.id != self.id()) {
            return Err(SessionError::ExportOntoSession { path });
        }
        let header = Header::new(Some(self.id().to_owned()), self.cwd(), None);
        let mut text = format!("{}\n", header.raw);
        let branch = self.branch(None);
        let mut parent: Option<&Entry> = None;
        for entry in &branch {
            text += &secrets::redact(&in_line(entry, parent));
            text.push('\n');
            parent = Some(entry);
        }
        write_whole(&path, text.as_bytes()).map_err(SessionError::io("write", &path))?;
        Ok(path)
    }
}

/// Returns whether the file begins with the header of a session.
pub fn is_session_file(path: &Path) -> bool {
    session_header(path).is_some()
}

fn session_header(path: &Path) -> Option<Header> {
    // Reading from a pipe would block.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    is_file.then(|| read_header(path)).flatten()
}

fn in_line(entry: &Entry, parent: Option<&Entry>) -> String {
    match entry.parent_id.as_deref() == parent.map(|parent| parent.id.as_str()) {
        true => entry.raw.to_string(),
        false => with_parent(entry, parent.map(Entry::id_ref)),
    }
}

/// Copies a session file into `dir`, under its own name if that is free, and returns the path
/// of the copy. Does not copy a file that is in `dir` already or was imported before.
pub fn import(source: &Path, dir: &Path) -> Result<PathBuf, SessionError> {
    let source = absolute(source);
    let bytes = regular_file::read(&source).map_err(SessionError::io("read", &source))?;
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
        match regular_file::read(&path) {
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

/// Yields `talk.jsonl`, `talk-2.jsonl`, …
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

/// Writes the file completely or not at all, readable only by its owner.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
