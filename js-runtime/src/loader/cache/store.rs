//! Emitted JavaScript, its source maps and V8's code caches on disk. An entry is
//! named by a hash of everything it depends on, so nothing is ever out of date and
//! several processes can share the folder; what nobody used for a month is deleted.
//!
//! Each file ends with a checksum: V8 dies of a code cache with one wrong bit, and half
//! a file of JavaScript is another program, as is the file of another entry.

#[path = "writer.rs"]
mod writer;

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use twox_hash::XxHash64;

use self::writer::Writer;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Entries that were not used for so long are deleted.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What an entry consists of; none has all.
const PARTS: [&str; 9] = [
    "js", "map", "deps", "cjs", "v8", "hot", "trail", "ascii", "moves",
];

/// Its age tells when the folder was last swept.
const SWEPT: &str = "swept";

#[derive(Clone, Debug)]
pub(crate) struct DiskCache {
    /// `None` turns caching off.
    dir: Option<PathBuf>,
    /// What every entry depends on.
    base: Arc<Sha256>,
    writer: Writer,
}

/// The name of an entry: half a SHA-256, which nobody can aim at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Key([u8; 16]);

impl Key {
    /// For V8's interface, which passes a number through.
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
        // Without a folder there is no cache; that is no reason to fail.
        let dir = dir.filter(|dir| fs::create_dir_all(dir).is_ok());
        let mut base = Sha256::new();
        for part in [
            version,
            env!("CARGO_PKG_VERSION"),
            // Covers V8, the polyfills and our own modules.
            js_runtime_snapshot::ID,
            crate::loader::EMIT_SETTINGS,
        ] {
            base.update(part);
            base.update([0]);
        }
        Self {
            dir,
            base: Arc::new(base),
            writer: Writer::default(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.dir.is_some()
    }

    pub fn key(&self, parts: &[&[u8]]) -> Key {
        let mut hash = Sha256::clone(&self.base);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut name = [0; 16];
        name.copy_from_slice(&hash.finalize()[..16]);
        Key(name)
    }

    pub fn read(&self, key: Key, extension: &str) -> Option<Vec<u8>> {
        let path = self.dir.as_ref()?.join(key.file_name(extension));
        if let Some(data) = self.writer.waiting(&path) {
            return Some(data.to_vec());
        }
        let mut file = open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        let mut data = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
        // Some devices never end.
        if metadata.is_file() {
            file.read_to_end(&mut data).ok()?;
        }
        let Some(length) = checked_length(&path, &data) else {
            // One part may say that the others are there.
            for part in PARTS {
                self.remove(key, part);
            }
            return None;
        };
        data.truncate(length);
        // Marks it as used, once a day. Failing only shortens its life.
        if is_older(&metadata, DAY) {
            _ = file.set_modified(SystemTime::now());
        }
        Some(data)
    }

    /// Does not wait for the disk; see [`Self::settle`].
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

    /// At the end: what is being written has this long to get onto the disk.
    pub fn settle(&self, limit: Duration) {
        self.writer.settle(limit);
    }

    /// Deletes what is old, in the background and at most once a day.
    pub fn sweep_soon(&self) {
        let Some(dir) = self.dir.clone() else { return };
        if dir.join(SWEPT).exists() && !older_than(&dir.join(SWEPT), DAY) {
            return;
        }
        // Without a thread it happens another time.
        _ = std::thread::Builder::new()
            .name("js-cache-sweep".into())
            .spawn(move || sweep(&dir));
    }
}

/// Does not wait for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
    }
    options.open(path)
}

/// Of what was written to a file of this name, which is to be followed by this. It depends on
/// the length, too.
fn checksum(path: &Path, data: &[u8]) -> [u8; 8] {
    let name = path.file_name().unwrap_or_default();
    let seed = XxHash64::oneshot(0, name.as_encoded_bytes());
    XxHash64::oneshot(seed, data).to_le_bytes()
}

/// How much of a file was written into it; `None` if that is not what is there.
fn checked_length(path: &Path, file: &[u8]) -> Option<usize> {
    let (data, sum) = file.split_last_chunk()?;
    (checksum(path, data) == *sum).then_some(data.len())
}

fn sweep(dir: &Path) {
    _ = fs::write(dir.join(SWEPT), "");
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let limit = match path.extension().and_then(|extension| extension.to_str()) {
            // Left behind by a process that was killed.
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
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn parts_of_a_key_do_not_run_together() {
        let (cache, _) = cache("parts");
        assert_ne!(cache.key(&[b"ab", b"c"]), cache.key(&[b"a", b"bc"]));
        let other = DiskCache::new(None, "test/2");
        assert_ne!(cache.key(&[b"a"]), other.key(&[b"a"]));
        assert_eq!(cache.key(&[b"a"]), cache.key(&[b"a"]));
    }

    #[test]
    fn the_sweep_takes_what_nobody_used_for_a_month() {
        let (cache, dir) = cache("sweep");
        let [old, used, new] = [b"old", b"use", b"new"].map(|part| cache.key(&[part]));
        for key in [old, used, new] {
            cache.write(key, "js", b"x");
        }
        cache.settle(DAY);
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
            SWEPT.into(),
        ];
        expected.sort();
        assert_eq!(left, expected);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_damaged_file_is_removed_with_its_entry() {
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
            cache.settle(DAY);
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
    fn the_file_of_another_entry_and_what_is_no_file_are_removed() {
        let (cache, dir) = cache("swapped");
        let [one, other, pipe] = [b"one", b"two", b"pip"].map(|part| cache.key(&[part]));
        let file = |key: Key, part| dir.join(key.file_name(part));
        for key in [one, other] {
            cache.write(key, "js", b"text");
        }
        cache.settle(DAY);
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
    fn an_unusable_folder_turns_the_cache_off() {
        let cache = DiskCache::new(Some("/dev/null/cache".into()), "test/1");
        assert!(!cache.is_on());
        let key = cache.key(&[b"a"]);
        cache.write(key, "js", b"x");
        assert_eq!(cache.read(key, "js"), None);
    }
}
