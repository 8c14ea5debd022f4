//! Emitted JavaScript, its source maps and V8's code caches on disk. An entry is
//! named by a hash of everything it depends on, so nothing is ever out of date and
//! several processes can share the folder; what nobody used for a month is deleted.

mod writer;

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use self::writer::Writer;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Entries that were not used for so long are deleted.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
        let mut file = File::open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        let mut data = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
        file.read_to_end(&mut data).ok()?;
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

fn sweep(dir: &Path) {
    _ = fs::write(dir.join(SWEPT), "");
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let limit = match path.extension().and_then(|extension| extension.to_str()) {
            // Left behind by a process that was killed.
            Some("tmp") => DAY,
            Some("js" | "map" | "deps" | "cjs" | "v8" | "hot") => MAX_AGE,
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
    fn an_unusable_folder_turns_the_cache_off() {
        let cache = DiskCache::new(Some("/dev/null/cache".into()), "test/1");
        assert!(!cache.is_on());
        let key = cache.key(&[b"a"]);
        cache.write(key, "js", b"x");
        assert_eq!(cache.read(key, "js"), None);
    }
}
