//! Reads, migrates and writes one settings file. Writing keeps changes that other processes
//! made meanwhile, and unreadable files are not touched.

use pi_base::regular_file;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Change, edit};
use crate::trust;
use pi_base::file_lock::FileLock;
use pi_base::stale_temp_files;

pub(super) type Object = Map<String, Value>;

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{}: could not be read: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The message of `source` ends with line and column.
    #[error("{}: {source}. Until it is valid JSON again, it is neither read nor written", .path.display())]
    Parse {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("{}: expected an object at the top. Until it holds one, it is neither read nor written", .path.display())]
    NotAnObject { path: PathBuf },
    #[error("{}: has no text, as while it is being written, so its last values stay in effect. Write {{}} for no settings", .path.display())]
    Truncated { path: PathBuf },
    #[error("{}: could not be written: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: could not be locked: {source}", .path.display())]
    Lock { path: PathBuf, source: io::Error },
}

/// Loads a file in the current form; empty if there is none.
pub(super) fn load(path: &Path) -> Result<Object, SettingsError> {
    match read(path) {
        // The TypeScript pi writes in place. Invalid text may be half written, so read again
        // under the lock.
        Err(SettingsError::Parse { .. }) if path.exists() => {
            let _lock = FileLock::acquire(path).ok();
            read(path)
        }
        read => read,
    }
    .map(|found| found.object)
}

/// [`load`] for a file whose settings are in effect as `current`. A file without text is an error
/// then: editors and scripts truncate a file before they write it.
pub(super) fn load_again(path: &Path, current: &Object) -> Result<Object, SettingsError> {
    let object = load(path)?;
    let is_truncated = || fs::metadata(path).is_ok_and(|file| file.len() == 0);
    if object.is_empty() && !current.is_empty() && is_truncated() {
        let path = path.to_owned();
        return Err(SettingsError::Truncated { path });
    }
    Ok(object)
}

/// Returns one value of the user's file, for code that runs before settings are loaded.
/// Problems with the file are ignored; loading the settings reports them.
pub fn global_value(path: &Path, key: &str) -> Option<Value> {
    let text = regular_file::read_text(path).ok()?;
    // Most users do not have the setting, so parsing is avoided.
    if !text.contains(key) {
        return None;
    }
    edit::parse(&text).ok()?.as_object_mut()?.remove(key)
}

/// Applies changes to the current content of the file, which may be newer than the loaded one.
pub(super) fn write(path: &Path, changes: &[Change<'_>]) -> Result<(), SettingsError> {
    edit(path, |object| {
        for change in changes {
            change.apply(object);
        }
    })
    .map(drop)
}

/// Like [`write`], for changes that depend on the content. Returns the new content.
pub(super) fn edit(path: &Path, change: impl FnOnce(&mut Object)) -> Result<Object, SettingsError> {
    let failed = |source| SettingsError::Write {
        path: path.to_owned(),
        source,
    };
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    let _lock = FileLock::acquire(path).map_err(|source| SettingsError::Lock {
        path: path.to_owned(),
        source,
    })?;
    let found = read(path)?;
    let mut object = found.object;
    change(&mut object);
    if object != found.written {
        let text = edit::rewrite(&found.text, &found.written, &object);
        replace(path, &text.map_err(|e| failed(e.into()))?).map_err(failed)?;
        trust::accept_own_change(path);
    }
    Ok(object)
}

/// Content of a file.
#[derive(Default)]
struct FileContent {
    text: String,
    /// The content as it is written.
    written: Object,
    /// The content in the current form.
    object: Object,
}

fn read(path: &Path) -> Result<FileContent, SettingsError> {
    let read = regular_file::read_text(path).and_then(|text| {
        trust::check(path, text.as_bytes())?;
        Ok(text)
    });
    let text = match read {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(source) => {
            let path = path.to_owned();
            return Err(SettingsError::Read { path, source });
        }
    };
    understand(path, &text)
}

/// Parses a text that is not in a file.
pub(super) fn parse(text: &str) -> Result<Object, SettingsError> {
    understand(Path::new("settings"), text).map(|found| found.object)
}

fn understand(path: &Path, text: &str) -> Result<FileContent, SettingsError> {
    let json = text.trim_start_matches('\u{feff}');
    if json.trim().is_empty() {
        return Ok(Default::default());
    }
    match edit::parse(json) {
        Ok(Value::Object(written)) => {
            let mut object = written.clone();
            migrate(&mut object);
            Ok(FileContent {
                text: json.to_owned(),
                written,
                object,
            })
        }
        Ok(_) => Err(SettingsError::NotAnObject {
            path: path.to_owned(),
        }),
        Err(source) => Err(SettingsError::Parse {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Writes a temporary file and renames it, so that readers see the old or the new text. A
/// symbolic link (dotfiles) and the mode of the file are kept.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| linked(path));
    // A rename would circumvent the write protection of the file.
    match fs::OpenOptions::new().write(true).open(&target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let dir = target.parent().unwrap_or(Path::new("."));
    let (prefix, suffix) = (".settings-", ".tmp");
    stale_temp_files::remove(dir, prefix, suffix);
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix);
    let mode = fs::metadata(&target).map(|meta| meta.permissions());
    if let Some(permissions) = mode.as_ref().ok().cloned().or_else(new_file_mode) {
        builder.permissions(permissions);
    }
    let mut file = builder.tempfile_in(dir)?;
    file.write_all(text.as_bytes())?;
    if let Ok(permissions) = mode {
        // Set again because creating a file applies the umask.
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Returns the target of a link, which may not exist yet.
fn linked(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::read_link(path).map_or_else(|_| path.to_owned(), |target| folder.join(target))
}

/// Returns the mode of a new file before the umask: readable, as if an editor had created it.
/// The mode of a temporary file would make it unreadable for others.
#[cfg(unix)]
fn new_file_mode() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn new_file_mode() -> Option<Permissions> {
    None
}

/// Migrates settings of earlier versions to the current form.
fn migrate(settings: &mut Object) {
    if !settings.contains_key("steeringMode")
        && let Some(mode) = settings.shift_remove("queueMode")
    {
        settings.insert("steeringMode".to_owned(), mode);
    }
    if !settings.contains_key("transport")
        && let Some(Value::Bool(websockets)) = settings.get("websockets")
    {
        let transport = if *websockets { "websocket" } else { "sse" };
        settings.shift_remove("websockets");
        settings.insert("transport".to_owned(), transport.into());
    }
    if let Some(Value::Object(skills)) = settings.get("skills") {
        let enabled = skills.get("enableSkillCommands").cloned();
        let directories = skills.get("customDirectories").cloned();
        match directories {
            Some(Value::Array(list)) if !list.is_empty() => {
                settings.insert("skills".to_owned(), Value::Array(list));
            }
            _ => {
                settings.shift_remove("skills");
            }
        }
        if let Some(enabled) = enabled
            && !settings.contains_key("enableSkillCommands")
        {
            settings.insert("enableSkillCommands".to_owned(), enabled);
        }
    }
}
