//! Credentials of providers: `auth.json`, which the original may read and write at the same time,
//! and keys for the current process only.

use pi_base::regular_file;
use std::collections::HashMap;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use parking_lot::RwLock;
use serde_json::{Map, Value, json};

use super::oauth::{OAuthCredentials, SignIn, SignInError};
use crate::message::now;
use pi_base::file_lock::FileLock;
use pi_base::secrets;
use pi_base::stale_temp_files;

/// Number of attempts to read a file that another process is writing.
const REREAD_TRIES: u32 = 25;
const REREAD_PAUSE: Duration = Duration::from_millis(20);

/// A usable entry of `auth.json`.
#[derive(Clone, PartialEq)]
pub enum AuthEntry {
    /// An API key. `key` is the configured text: see [`super::secret_value`].
    ApiKey { key: String },
    OAuth {
        access: String,
        refresh: String,
        /// Time of expiry in milliseconds since the epoch. Without one the token never expires.
        expires: Option<i64>,
    },
}

impl fmt::Debug for AuthEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey { .. } => f.write_str("ApiKey(..)"),
            Self::OAuth { expires, .. } => f
                .debug_struct("OAuth")
                .field("expires", expires)
                .finish_non_exhaustive(),
        }
    }
}

impl AuthEntry {
    fn parse(value: &Value) -> Option<Self> {
        let text = |name: &str| {
            let text = value[name].as_str().unwrap_or_default();
            (!text.is_empty()).then(|| text.to_owned())
        };
        match value["type"].as_str()? {
            "api_key" => Some(Self::ApiKey { key: text("key")? }),
            "oauth" => Some(Self::OAuth {
                access: text("access")?,
                refresh: text("refresh").unwrap_or_default(),
                // JavaScript writes large numbers in several notations.
                expires: value["expires"].as_f64().map(|time| time as i64),
            }),
            _ => None,
        }
    }

    fn to_fields(&self) -> Value {
        match self {
            Self::ApiKey { key } => json!({"type": "api_key", "key": key}),
            Self::OAuth {
                access,
                refresh,
                expires,
            } => {
                let mut fields = json!({"type": "oauth", "refresh": refresh, "access": access});
                if let Some(expires) = expires {
                    fields["expires"] = json!(expires);
                }
                fields
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AuthFileError {
    #[error("Cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    /// The message shows nothing of the content: the file is full of keys.
    #[error(
        "{path} is not valid JSON (line {line}, column {column}); correct it, or move it away and add the keys again"
    )]
    Syntax {
        path: PathBuf,
        line: usize,
        column: usize,
    },
    #[error("{0} must hold one JSON object, with an entry for each provider")]
    NotAnObject(PathBuf),
    #[error("Cannot write {path}: {error}")]
    Write { path: PathBuf, error: io::Error },
}

/// The entries of `auth.json`, and the keys of the current process.
pub struct AuthStore {
    path: PathBuf,
    file: RwLock<Loaded>,
    runtime: RwLock<HashMap<String, String>>,
}

#[derive(Default)]
struct Loaded {
    entries: Map<String, Value>,
    error: Option<String>,
    /// Providers whose changed or removed entries exist only in memory, because the file could
    /// not be written, and the entries that the file had then. The next successful write stores
    /// them.
    unsaved: HashMap<String, Option<Value>>,
}

impl Loaded {
    /// Updates from the `entries` of the file. An entry that another process has changed since is
    /// newer than the unsaved one and replaces it.
    fn refresh(&mut self, mut entries: Map<String, Value>) {
        (self.unsaved).retain(|provider, before| entries.get(provider) == before.as_ref());
        add_secrets(&entries);
        for provider in self.unsaved.keys() {
            match self.entries.get(provider) {
                Some(entry) => entries.insert(provider.clone(), entry.clone()),
                None => entries.shift_remove(provider),
            };
        }
        self.entries = entries;
    }
}

impl fmt::Debug for AuthStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthStore")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl AuthStore {
    /// Opens the file. A missing file is treated as empty; the first write creates it.
    pub fn open(path: PathBuf) -> Self {
        let store = Self {
            path,
            file: RwLock::default(),
            runtime: RwLock::default(),
        };
        store.reload();
        store
    }

    /// Makes a store that reads and writes no file.
    pub fn in_memory(entries: Map<String, Value>) -> Self {
        let store = Self {
            path: PathBuf::new(),
            file: RwLock::default(),
            runtime: RwLock::default(),
        };
        store.keep(entries);
        store
    }

    fn is_in_memory(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    /// Returns the path of the file, which is empty for credentials in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again. If that fails, only unsaved entries remain, and [`Self::error`]
    /// gives the reason.
    pub fn reload(&self) {
        if self.is_in_memory() {
            return;
        }
        let read = read_with_retries(&self.path);
        let mut file = self.file.write();
        file.error = read.as_ref().err().map(ToString::to_string);
        match read {
            Ok(entries) => file.refresh(entries),
            Err(_) => {
                let Loaded {
                    entries, unsaved, ..
                } = &mut *file;
                entries.retain(|provider, _| unsaved.contains_key(provider));
            }
        }
    }

    pub fn error(&self) -> Option<String> {
        self.file.read().error.clone()
    }

    pub fn entry(&self, provider: &str) -> Option<AuthEntry> {
        let file = self.file.read();
        file.entries.get(provider).and_then(AuthEntry::parse)
    }

    /// Returns all stored members of a sign-in.
    pub fn oauth(&self, provider: &str) -> Option<OAuthCredentials> {
        let file = self.file.read();
        oauth_credentials(file.entries.get(provider)?)
    }

    /// Returns the providers with a usable entry, in the order of the file.
    pub fn providers(&self) -> Vec<String> {
        let file = self.file.read();
        let usable = |(_, value): &(&String, &Value)| AuthEntry::parse(value).is_some();
        let entries = file.entries.iter().filter(usable);
        entries.map(|(provider, _)| provider.clone()).collect()
    }

    pub fn runtime_key(&self, provider: &str) -> Option<String> {
        self.runtime.read().get(provider).cloned()
    }

    /// Sets a key for this process only; an empty key removes it.
    pub fn set_runtime_key(&self, provider: &str, key: &str) {
        secrets::add(key);
        let mut runtime = self.runtime.write();
        if key.is_empty() {
            runtime.remove(provider);
        } else {
            runtime.insert(provider.to_owned(), key.to_owned());
        }
    }

    /// Copies the keys of another store of this process.
    pub fn adopt_runtime_keys(&self, other: &Self) {
        let keys = other.runtime.read().clone();
        self.runtime.write().extend(keys);
    }

    /// Stores an entry, waiting a limited time for the lock of the file. Fields that pi does not
    /// know are kept if the entry has the same type. After an error the entry still applies to
    /// this process.
    pub fn set(&self, provider: &str, entry: &AuthEntry) -> Result<(), AuthFileError> {
        let fields = entry.to_fields();
        self.update(&[provider], |entries| {
            let old = entries.get_mut(provider).and_then(Value::as_object_mut);
            match (old, fields) {
                (Some(old), Value::Object(new)) if old.get("type") == new.get("type") => {
                    old.extend(new);
                }
                (_, fields) => {
                    entries.insert(provider.to_owned(), fields);
                }
            }
        })
    }

    /// Replaces a provider's entry by the result of a sign-in. After an error the entry still
    /// applies to this process.
    pub fn put(&self, provider: &str, entry: Value) -> Result<(), AuthFileError> {
        self.update(&[provider], |entries| {
            entries.insert(provider.to_owned(), entry);
        })
    }

    /// Returns the entries in the form of the file.
    pub fn entries(&self) -> Map<String, Value> {
        self.file.read().entries.clone()
    }

    /// Renews expired credentials. Only one process does so at a time: the lock is held
    /// meanwhile, and credentials that another process has renewed are used. Returns `None` if
    /// the credentials are gone.
    pub async fn renew(
        &self,
        provider: &str,
        sign_in: &dyn SignIn,
    ) -> Result<Option<OAuthCredentials>, SignInError> {
        if self.is_in_memory() {
            let Some(stored) = self.oauth(provider) else {
                return Ok(None);
            };
            let renewed = sign_in.refresh(stored).await?;
            let mut entries = self.entries();
            entries.insert(provider.to_owned(), oauth_entry(&renewed));
            self.keep(entries);
            return Ok(Some(renewed));
        }
        let failed = |error: AuthFileError| SignInError::new(error.to_string());
        let lock = FileLock::acquire_for_request(&self.path)
            .await
            .map_err(|error| SignInError::new(error.to_string()))?;
        // For a renewal the original locks the target of a link.
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|file| file.is_symlink());
        let target = fs::canonicalize(&self.path).ok().filter(|_| is_link);
        let _target = match target {
            None => None,
            Some(target) => Some(
                FileLock::acquire_for_request(&target)
                    .await
                    .map_err(|error| SignInError::new(error.to_string()))?,
            ),
        };
        let mut entries = self.read().map_err(failed)?;
        let Some(stored) = entries.get(provider).and_then(oauth_credentials) else {
            return Ok(None);
        };
        if !has_expired(&stored) {
            return Ok(Some(stored));
        }
        let renewed = sign_in.refresh(stored).await?;
        entries.insert(provider.to_owned(), oauth_entry(&renewed));
        // If this fails, the credentials remain valid until the program ends.
        if let Err(error) = self.write(entries, &[provider]) {
            tracing::error!("{error}");
        }
        drop(lock);
        Ok(Some(renewed))
    }

    fn keep(&self, entries: Map<String, Value>) {
        add_secrets(&entries);
        *self.file.write() = Loaded {
            entries,
            ..Loaded::default()
        };
    }

    /// Reads the file and adds the entries that could not be written before.
    fn read(&self) -> Result<Map<String, Value>, AuthFileError> {
        let entries = read(&self.path)?;
        let mut file = self.file.write();
        file.error = None;
        file.refresh(entries);
        Ok(file.entries.clone())
    }

    /// Writes `entries`. They apply to this process even if that fails; `providers` names the
    /// changed ones.
    fn write(&self, entries: Map<String, Value>, providers: &[&str]) -> Result<(), AuthFileError> {
        let written = write(&self.path, &entries);
        match &written {
            Ok(()) => self.stored(entries, providers),
            Err(_) => self.keep_unsaved(providers, |kept| *kept = entries),
        }
        written.map_err(|error| AuthFileError::Write {
            path: self.path.clone(),
            error,
        })
    }

    /// Records that the file now has `entries`; `providers` names the changed ones.
    fn stored(&self, entries: Map<String, Value>, providers: &[&str]) {
        let file = &mut *self.file.write();
        // Other changes may have come while the file was locked.
        let now = &file.entries;
        file.unsaved.retain(|provider, before| {
            *before = entries.get(provider).cloned();
            !providers.contains(&provider.as_str()) && now.get(provider) != before.as_ref()
        });
        file.error = None;
        file.refresh(entries);
    }

    fn keep_unsaved(&self, providers: &[&str], change: impl FnOnce(&mut Map<String, Value>)) {
        let file = &mut *self.file.write();
        for &provider in providers {
            let before = file.entries.get(provider);
            (file.unsaved.entry(provider.to_owned())).or_insert_with(|| before.cloned());
        }
        change(&mut file.entries);
        add_secrets(&file.entries);
    }

    /// Adds entries in the format of an earlier version; existing entries are kept.
    pub fn insert_all(&self, more: Map<String, Value>) -> Result<(), AuthFileError> {
        let providers: Vec<String> = more.keys().cloned().collect();
        let providers: Vec<&str> = providers.iter().map(String::as_str).collect();
        self.update(&providers, |entries| {
            for (provider, entry) in more {
                entries.entry(provider).or_insert(entry);
            }
        })
    }

    pub fn remove(&self, provider: &str) -> Result<(), AuthFileError> {
        self.update(&[provider], |entries| {
            entries.shift_remove(provider);
        })
    }

    /// Changes the current content of the file, not the content that was read before: other
    /// processes write the file too. A file that cannot be read is left alone.
    fn update(
        &self,
        providers: &[&str],
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), AuthFileError> {
        if self.is_in_memory() {
            let file = &mut *self.file.write();
            change(&mut file.entries);
            add_secrets(&file.entries);
            return Ok(());
        }
        let read = self.lock().and_then(|lock| Ok((lock, self.read()?)));
        match read {
            Ok((_lock, mut entries)) => {
                change(&mut entries);
                self.write(entries, providers)
            }
            Err(error) => {
                self.keep_unsaved(providers, change);
                Err(error)
            }
        }
    }

    fn lock(&self) -> Result<FileLock, AuthFileError> {
        let failed = |error| AuthFileError::Write {
            path: self.path.clone(),
            error,
        };
        if let Some(parent) = self.path.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(parent).map_err(failed)?;
        }
        FileLock::acquire(&self.path).map_err(failed)
    }
}

/// Makes the keys and tokens known as secrets.
fn add_secrets(entries: &Map<String, Value>) {
    const NAMES: [&str; 8] = [
        "key",
        "access",
        "refresh",
        "token",
        "apiKey",
        "idToken",
        "id_token",
        "clientSecret",
    ];
    for entry in entries.values() {
        for name in NAMES {
            if let Some(value) = entry.get(name).and_then(Value::as_str) {
                secrets::add(value);
            }
        }
    }
}

/// Converts credentials into an entry of the file.
pub fn oauth_entry(credentials: &OAuthCredentials) -> Value {
    let mut entry = Map::new();
    entry.insert("type".into(), "oauth".into());
    let others = credentials.iter().filter(|(name, _)| *name != "type");
    entry.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(entry)
}

/// Returns true if the credentials have expired. Without an expiry they never do.
pub fn has_expired(credentials: &OAuthCredentials) -> bool {
    let expires = credentials.get("expires").and_then(Value::as_f64);
    expires.is_some_and(|expires| expires as i64 <= now())
}

/// Returns the credentials without `type`, the form that a provider's functions use.
fn oauth_credentials(entry: &Value) -> Option<OAuthCredentials> {
    let entry = entry.as_object().filter(|_| entry["type"] == "oauth")?;
    let mut credentials = entry.clone();
    credentials.shift_remove("type");
    Some(credentials)
}

fn read(path: &Path) -> Result<Map<String, Value>, AuthFileError> {
    let text = match regular_file::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => {
            return Err(AuthFileError::Read {
                path: path.to_owned(),
                error,
            });
        }
    };
    if text.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(&text) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(_) => Err(AuthFileError::NotAnObject(path.to_owned())),
        Err(error) => Err(AuthFileError::Syntax {
            path: path.to_owned(),
            line: error.line(),
            column: error.column(),
        }),
    }
}

/// Reads the file, trying again if it is incomplete: the original writes in place, so that other
/// processes can see an empty file, or a part of it, while the original holds the lock.
fn read_with_retries(path: &Path) -> Result<Map<String, Value>, AuthFileError> {
    for _ in 0..REREAD_TRIES {
        match read(path) {
            Err(AuthFileError::Syntax { .. }) => {}
            Ok(entries) if entries.is_empty() => {}
            result => return result,
        }
        if !FileLock::is_held(path) {
            break;
        }
        thread::sleep(REREAD_PAUSE);
    }
    // The writer may have finished after the last attempt.
    read(path)
}

/// Writes all or nothing. Only the owner can read the file, from its first byte.
fn write(path: &Path, entries: &Map<String, Value>) -> io::Result<()> {
    // A symbolic link, as dotfile managers make them, stays a link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("."));
    let prefix = ".auth-";
    stale_temp_files::remove(folder, prefix, "");
    let mut file = tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    serde_json::to_writer_pretty(&mut file, entries)?;
    file.flush()?;
    file.as_file().sync_all()?;
    file.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests;
