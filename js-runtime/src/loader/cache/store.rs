//! Disk cache of emitted JavaScript, its source maps and V8's code caches. An entry is named by a
//! hash of everything it depends on, so entries are never stale and several processes can share the
//! folder. Entries that were not used for a month are deleted.
//!
//! Each file ends with a checksum: V8 crashes on a code cache with one wrong bit, and half a file
//! of JavaScript is another program, as is the file of another entry.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use js_runtime_ext::program_file_options;
use nix::dir::Dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use twox_hash::XxHash64;

use super::compiling::{CompileTurn, Compiling};
use super::writer::Writer;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Age of unused entries that are deleted.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Parts of an entry; none has all.
const PARTS: [&str; 9] = [
    "js", "map", "deps", "cjs", "v8", "hot", "trail", "ascii", "moves",
];

/// File whose age tells when the folder was last swept.
const SWEEP_MARKER: &str = "swept";

#[derive(Clone, Debug)]
pub(crate) struct DiskCache {
    /// `None` turns caching off.
    dir: Option<PathBuf>,
    /// Hash of what every entry depends on.
    base_hash: Arc<Sha256>,
    writer: Writer,
    compiling: Compiling,
}

/// Name of an entry: half a SHA-256, so that a collision cannot be constructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Key([u8; 16]);

impl Key {
    /// Returns a number for V8's interface, which passes it through.
    pub fn number(self) -> u64 {
        self.0[..8]
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn file_name(self, extension: &str) -> String {
        let mut name: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        name.push('.');
        name.push_str(extension);
        name
    }
}

impl DiskCache {
    pub fn new(dir: Option<PathBuf>, version: &str) -> Self {
        // Without a folder the cache is off; that is no error.
        let dir = dir.filter(|dir| fs::create_dir_all(dir).is_ok());
        let mut base_hash = Sha256::new();
        for part in [
            version,
            env!("CARGO_PKG_VERSION"),
            // The id covers V8, the polyfills and our own modules.
            js_runtime_snapshot::ID,
            crate::loader::transpile::emit::EMIT_SETTINGS,
        ] {
            base_hash.update(part);
            base_hash.update([0]);
        }
        Self {
            dir,
            base_hash: Arc::new(base_hash),
            writer: Writer::default(),
            compiling: Compiling::default(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.dir.is_some()
    }

    pub fn key(&self, parts: &[&[u8]]) -> Key {
        let mut hash = Sha256::clone(&self.base_hash);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut name = [0; 16];
        name.copy_from_slice(&hash.finalize()[..16]);
        Key(name)
    }

    /// Waits until no other thread makes the entry. The caller must read the entry before it makes
    /// it.
    pub fn wait_compile_turn(&self, key: Key) -> CompileTurn {
        self.compiling.wait_turn(key)
    }

    pub fn read(&self, key: Key, extension: &str) -> Option<Vec<u8>> {
        let path = self.dir.as_ref()?.join(key.file_name(extension));
        if let Some(data) = self.writer.queued(&path) {
            return Some(data.to_vec());
        }
        let mut file = program_file_options().read(true).open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        let mut data = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
        // Some devices have no end.
        if metadata.is_file() {
            file.read_to_end(&mut data).ok()?;
        }
        let Some(length) = checked_length(&path, &data) else {
            // One part may imply that the others exist.
            for part in PARTS {
                self.remove(key, part);
            }
            return None;
        };
        data.truncate(length);
        // Marks the entry as used, once a day. A failure only shortens its life.
        if is_older(&metadata, DAY) {
            _ = file.set_modified(SystemTime::now());
        }
        Some(data)
    }

    /// Queues the data for writing; see [`Self::flush`].
    pub fn write(&self, key: Key, extension: &str, data: &[u8]) {
        if let Some(dir) = &self.dir {
            self.writer.write(dir.join(key.file_name(extension)), data);
        }
    }

    pub fn remove(&self, key: Key, extension: &str) {
        if let Some(dir) = &self.dir {
            _ = fs::remove_file(dir.join(key.file_name(extension)));
        }
    }

    /// Waits until queued data is written, at most `limit`.
    pub fn flush(&self, limit: Duration) {
        self.writer.flush(limit);
    }

    /// Deletes old entries in the background, at most once a day.
    pub fn sweep_soon(&self) {
        let Some(dir) = self.dir.clone() else { return };
        if dir.join(SWEEP_MARKER).exists() && !older_than(&dir.join(SWEEP_MARKER), DAY) {
            return;
        }
        // Without a thread it happens another time.
        _ = std::thread::Builder::new()
            .name("js-cache-sweep".into())
            .spawn(move || sweep(&dir));
    }
}

/// Returns the checksum of data that is written to a file of this name. It depends on the length,
/// too.
pub(super) fn checksum(path: &Path, data: &[u8]) -> [u8; 8] {
    let name = path.file_name().unwrap_or_default();
    let seed = XxHash64::oneshot(0, name.as_encoded_bytes());
    XxHash64::oneshot(seed, data).to_le_bytes()
}

/// Returns the length of the data in a file, or `None` if the checksum does not match.
fn checked_length(path: &Path, file: &[u8]) -> Option<usize> {
    let (data, sum) = file.split_last_chunk()?;
    (checksum(path, data) == *sum).then_some(data.len())
}

fn sweep(dir: &Path) {
    let mut marker = program_file_options();
    let marker = marker.write(true).create(true).truncate(true);
    _ = marker.open(dir.join(SWEEP_MARKER));
    // `fs::read_dir` would open the folder without the mark of the program's files.
    let folder = program_file_options().read(true).open(dir);
    let Ok(entries) = folder
        .map(Into::into)
        .and_then(|folder| Ok(Dir::from_fd(folder)?))
    else {
        return;
    };
    let names = entries.into_iter().flatten();
    let names = names.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned());
    for path in names.map(|name| dir.join(name)) {
        let limit = match path.extension().and_then(|extension| extension.to_str()) {
            // A process that was killed left the file behind.
            Some("tmp") => DAY,
            Some(part) if PARTS.contains(&part) => MAX_AGE,
            _ => continue,
        };
        if older_than(&path, limit) {
            _ = fs::remove_file(path);
        }
    }
}

fn older_than(path: &Path, age: Duration) -> bool {
    fs::metadata(path).is_ok_and(|metadata| is_older(&metadata, age))
}

fn is_older(metadata: &Metadata, age: Duration) -> bool {
    let elapsed = metadata.modified().ok().and_then(|it| it.elapsed().ok());
    elapsed.is_some_and(|elapsed| elapsed > age)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> (DiskCache, PathBuf) {
        let dir = std::env::temp_dir().join(format!("js-cache-{name}-{}", std::process::id()));
        _ = fs::remove_dir_all(&dir);
        (DiskCache::new(Some(dir.clone()), "test/1"), dir)
    }

    fn age(path: &Path, age: Duration) {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn key_parts_are_separated() {
        let (cache, _) = cache("parts");
        assert_ne!(cache.key(&[b"ab", b"c"]), cache.key(&[b"a", b"bc"]));
        let other = DiskCache::new(None, "test/2");
        assert_ne!(cache.key(&[b"a"]), other.key(&[b"a"]));
        assert_eq!(cache.key(&[b"a"]), cache.key(&[b"a"]));
    }

    #[test]
    fn sweep_deletes_entries_unused_for_a_month() {
        let (cache, dir) = cache("sweep");
        let [old, used, new] = [b"old", b"use", b"new"].map(|part| cache.key(&[part]));
        for key in [old, used, new] {
            cache.write(key, "js", b"x");
        }
        cache.flush(DAY);
        for key in [old, used] {
            age(&dir.join(key.file_name("js")), MAX_AGE + DAY);
        }
        fs::write(dir.join("abandoned.js.1-1.tmp"), "").unwrap();
        age(&dir.join("abandoned.js.1-1.tmp"), DAY * 2);
        fs::write(dir.join("notes.txt"), "").unwrap();
        age(&dir.join("notes.txt"), MAX_AGE * 2);

        assert_eq!(cache.read(used, "js"), Some(b"x".to_vec()));
        sweep(&dir);
        let mut left: Vec<String> = fs::read_dir(&dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        let mut expected = vec![
            used.file_name("js"),
            new.file_name("js"),
            "notes.txt".into(),
            SWEEP_MARKER.into(),
        ];
        expected.sort();
        assert_eq!(left, expected);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn damaged_file_is_removed_with_its_entry() {
        let (cache, dir) = cache("damaged");
        let key = cache.key(&[b"entry"]);
        let path = dir.join(key.file_name("map"));
        let text = b"a text that is longer than a checksum".as_slice();
        for damage in [
            |file: &mut Vec<u8>| file.clear(),
            |file: &mut Vec<u8>| file.truncate(file.len() / 2),
            |file: &mut Vec<u8>| file.truncate(file.len() - 1),
            |file: &mut Vec<u8>| file.push(0),
            |file: &mut Vec<u8>| file[10] ^= 4,
            |file: &mut Vec<u8>| file.fill(0),
        ] {
            cache.write(key, "map", text);
            cache.write(key, "js", b"");
            cache.flush(DAY);
            assert_eq!(cache.read(key, "map").as_deref(), Some(text));
            assert_eq!(cache.read(key, "js"), Some(Vec::new()));
            let mut file = fs::read(&path).unwrap();
            damage(&mut file);
            fs::write(&path, file).unwrap();
            assert_eq!(cache.read(key, "map"), None);
            assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn foreign_and_special_files_are_removed() {
        let (cache, dir) = cache("swapped");
        let [one, other, pipe] = [b"one", b"two", b"pip"].map(|part| cache.key(&[part]));
        let file = |key: Key, part| dir.join(key.file_name(part));
        for key in [one, other] {
            cache.write(key, "js", b"text");
        }
        cache.flush(DAY);
        fs::copy(file(one, "js"), file(other, "js")).unwrap();
        fs::copy(file(one, "js"), file(one, "map")).unwrap();
        assert_eq!(cache.read(other, "js"), None);
        assert_eq!(cache.read(one, "map"), None);
        #[cfg(unix)]
        nix::unistd::mkfifo(&file(pipe, "js"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(cache.read(pipe, "js"), None);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn unusable_folder_turns_the_cache_off() {
        let cache = DiskCache::new(Some("/dev/null/cache".into()), "test/1");
        assert!(!cache.is_on());
        let key = cache.key(&[b"a"]);
        cache.write(key, "js", b"x");
        assert_eq!(cache.read(key, "js"), None);
    }
}
