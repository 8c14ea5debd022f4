//! Removes temporary files of processes that were killed before the rename to the final name: the
//! files hold keys, and nothing else removes them.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Age of a file after which no process can still be writing it.
const STALE_AGE: Duration = Duration::from_secs(60 * 60);

/// Removes old files with names that `tempfile` made from `prefix` and `suffix`.
pub fn remove(folder: &Path, prefix: &str, suffix: &str) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name
            .to_str()
            .and_then(|name| name.strip_prefix(prefix)?.strip_suffix(suffix));
        let is_ours = random.is_some_and(|random| {
            random.len() == 6 && random.bytes().all(|letter| letter.is_ascii_alphanumeric())
        });
        // A symbolic link is not followed.
        let is_old = || {
            let metadata = entry.metadata().ok().filter(|it| it.is_file());
            let modified = metadata.and_then(|metadata| metadata.modified().ok());
            modified.is_some_and(|time| time.elapsed().is_ok_and(|age| age > STALE_AGE))
        };
        if is_ours && is_old() {
            _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_what_is_old_and_named_so_goes() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::now() - STALE_AGE * 2;
        let old = ["a-x1Yz9Q.tmp", "a-short.tmp", "a-x1Yz9Q", "a-x1.z9Q.tmp"];
        for name in old {
            let file = File::create(dir.path().join(name)).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        fs::write(dir.path().join("a-ABCDEF.tmp"), "").unwrap();
        remove(dir.path(), "a-", ".tmp");
        let left = |name: &str| dir.path().join(name).exists();
        assert_eq!(old.map(left), [false, true, true, true]);
        assert!(left("a-ABCDEF.tmp"), "somebody may be writing it");
    }
}
