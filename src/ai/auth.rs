//! Who may pay for a request: `auth.json` (shared with the original, which may be
//! running at the same time) and keys given for this run only.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use js_runtime::read_regular_text;
use parking_lot::RwLock;
use serde_json::{Map, Value, json};

use super::file_lock::FileLock;
use super::leftovers;
use super::message::now;
use super::oauth::{OAuthCredentials, SignIn, SignInError};

/// How long to wait for somebody who is in the middle of writing the file.
const REREAD_TRIES: u32 = 25;
const REREAD_PAUSE: Duration = Duration::from_millis(20);

/// A usable entry of `auth.json`.
#[derive(Clone, PartialEq)]
pub enum AuthEntry {
    /// `key` as written: see [`super::secret_value`].
    ApiKey { key: String },
    OAuth {
        access: String,
        refresh: String,
        /// Milliseconds since the epoch; never, if the file does not say.
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
                // JavaScript writes large numbers as it likes.
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

    pub fn is_expired(&self) -> bool {
        matches!(self, Self::OAuth { expires: Some(expires), .. } if *expires <= now())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AuthFileError {
    #[error("Cannot read {path}: {error}")]
    Read { path: PathBuf, error: io::Error },
    /// No details of the content: it is full of keys.
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

/// `auth.json`, and the keys of this run.
pub struct AuthStore {
    path: PathBuf,
    file: RwLock<Loaded>,
    runtime: RwLock<HashMap<String, String>>,
}

#[derive(Default)]
struct Loaded {
    entries: Map<String, Value>,
    error: Option<String>,
    /// Providers whose entries hold, or are gone, here alone, and what the file had for
    /// them: it did not take the change. The next one that can be written takes them along.
    unsaved: HashMap<String, Option<Value>>,
}

impl Loaded {
    /// The file has `entries`. What somebody else has changed there since is newer than
    /// what it did not take.
    fn refresh(&mut self, mut entries: Map<String, Value>) {
        (self.unsaved).retain(|provider, before| entries.get(provider) == before.as_ref());
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
    /// A missing file is an empty one; it is made by the first write.
    pub fn open(path: PathBuf) -> Self {
        let store = Self {
            path,
            file: RwLock::default(),
            runtime: RwLock::default(),
        };
        store.reload();
        store
    }

    /// Nothing is read or written.
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

    /// Empty for credentials in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again. If it cannot be read, there are no entries but those that
    /// it did not take, and [`Self::error`] says why.
    pub fn reload(&self) {
        if self.is_in_memory() {
            return;
        }
        let read = read_patiently(&self.path);
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

    /// All that is kept of a sign-in.
    pub fn oauth(&self, provider: &str) -> Option<OAuthCredentials> {
        let file = self.file.read();
        oauth_of(file.entries.get(provider)?)
    }

    /// The providers with a usable entry, in the order of the file.
    pub fn providers(&self) -> Vec<String> {
        let file = self.file.read();
        let usable = |(_, value): &(&String, &Value)| AuthEntry::parse(value).is_some();
        let entries = file.entries.iter().filter(usable);
        entries.map(|(provider, _)| provider.clone()).collect()
    }

    pub fn runtime_key(&self, provider: &str) -> Option<String> {
        self.runtime.read().get(provider).cloned()
    }

    /// For this run only; an empty key takes it back.
    pub fn set_runtime_key(&self, provider: &str, key: &str) {
        let mut runtime = self.runtime.write();
        if key.is_empty() {
            runtime.remove(provider);
        } else {
            runtime.insert(provider.to_owned(), key.to_owned());
        }
    }

    /// Those of another store, for the same run.
    pub fn adopt_runtime_keys(&self, other: &Self) {
        let keys = other.runtime.read().clone();
        self.runtime.write().extend(keys);
    }

    /// Waits for the lock of the file for a while. Fields that an entry of the same
    /// type has besides ours stay. Also in an error it holds for this run.
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

    /// What a sign-in gave, in the place of whatever was there. Also in an error it
    /// holds for this run.
    pub fn put(&self, provider: &str, entry: Value) -> Result<(), AuthFileError> {
        self.update(&[provider], |entries| {
            entries.insert(provider.to_owned(), entry);
        })
    }

    /// The entries as they stand in the file.
    pub fn entries(&self) -> Map<String, Value> {
        self.file.read().entries.clone()
    }

    /// Has expired credentials renewed, once by all processes: the lock is held
    /// meanwhile, and what another has renewed is taken. `None` if they are gone.
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
        let lock = FileLock::acquire_for_long(&self.path)
            .await
            .map_err(|error| SignInError::new(error.to_string()))?;
        // For this work the original locks what a link leads to.
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|file| file.is_symlink());
        let target = fs::canonicalize(&self.path).ok().filter(|_| is_link);
        let _target = match target {
            None => None,
            Some(target) => Some(
                FileLock::acquire_for_long(&target)
                    .await
                    .map_err(|error| SignInError::new(error.to_string()))?,
            ),
        };
        let mut entries = self.read().map_err(failed)?;
        let Some(stored) = entries.get(provider).and_then(oauth_of) else {
            return Ok(None);
        };
        if !has_expired(&stored) {
            return Ok(Some(stored));
        }
        let renewed = sign_in.refresh(stored).await?;
        entries.insert(provider.to_owned(), oauth_entry(&renewed));
        // Lost when the program ends, but good until then.
        if let Err(error) = self.write(entries, &[provider]) {
            tracing::error!("{error}");
        }
        drop(lock);
        Ok(Some(renewed))
    }

    fn keep(&self, entries: Map<String, Value>) {
        *self.file.write() = Loaded {
            entries,
            ..Loaded::default()
        };
    }

    /// What the file says now, and what it did not take before.
    fn read(&self) -> Result<Map<String, Value>, AuthFileError> {
        let entries = read(&self.path)?;
        let mut file = self.file.write();
        file.error = None;
        file.refresh(entries);
        Ok(file.entries.clone())
    }

    /// They hold in any case; those of `providers` are new.
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

    /// The file has `entries` now; those of `providers` are new.
    fn stored(&self, entries: Map<String, Value>, providers: &[&str]) {
        let file = &mut *self.file.write();
        // Others came while the file was locked.
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
    }

    /// Entries as an earlier version had them; those that are there stay.
    pub(crate) fn insert_all(&self, more: Map<String, Value>) -> Result<(), AuthFileError> {
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

    /// Changes what is in the file now, not what was read before: other
    /// processes write it too. A file that cannot be read is left alone.
    fn update(
        &self,
        providers: &[&str],
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<(), AuthFileError> {
        if self.is_in_memory() {
            change(&mut self.file.write().entries);
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

/// As it stands in the file.
pub fn oauth_entry(credentials: &OAuthCredentials) -> Value {
    let mut entry = Map::new();
    entry.insert("type".into(), "oauth".into());
    let others = credentials.iter().filter(|(name, _)| *name != "type");
    entry.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(entry)
}

/// Credentials that do not say when they expire never do.
pub fn has_expired(credentials: &OAuthCredentials) -> bool {
    let expires = credentials.get("expires").and_then(Value::as_f64);
    expires.is_some_and(|expires| expires as i64 <= now())
}

/// Without the `type`, as the functions of a provider have it.
fn oauth_of(entry: &Value) -> Option<OAuthCredentials> {
    let entry = entry.as_object().filter(|_| entry["type"] == "oauth")?;
    let mut credentials = entry.clone();
    credentials.shift_remove("type");
    Some(credentials)
}

fn read(path: &Path) -> Result<Map<String, Value>, AuthFileError> {
    let text = match read_regular_text(path) {
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

/// The original writes in place, so that half a file, or an empty one, can be seen
/// while it holds the lock.
fn read_patiently(path: &Path) -> Result<Map<String, Value>, AuthFileError> {
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
    // Whoever wrote may have finished between the look at the file and at the lock.
    read(path)
}

/// All or nothing, readable by the owner only from its first byte.
fn write(path: &Path, entries: &Map<String, Value>) -> io::Result<()> {
    // A link (dotfile managers make them) stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().unwrap_or(Path::new("."));
    let prefix = ".auth-";
    leftovers::sweep(folder, prefix, "");
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
