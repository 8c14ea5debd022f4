//! Reads regular files only. Opening a pipe would wait for its other end, and some devices never
//! end, so files at paths that others choose are checked before they are opened.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Fails unless `path` is a regular file, a folder or `/dev/null`.
pub fn check(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    check_metadata(path, &fs::metadata(path)?)
}

/// Reads a file. Fails for pipes, sockets and devices. `/dev/null` counts as an empty file,
/// because users hide files with it.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    check(path)?;
    fs::read(path)
}

/// Reads a UTF-8 text file and removes a byte order mark, as [`read`] does.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    check(path)?;
    fs::read_to_string(path).map(strip_mark)
}

/// Reads a text file that may not be UTF-8: invalid bytes become U+FFFD.
pub fn read_lossy(path: impl AsRef<Path>) -> io::Result<String> {
    read(path).map(|bytes| decode_lossy(&bytes))
}

/// Decodes the bytes of a text file as [`read_lossy`] does.
pub fn decode_lossy(bytes: &[u8]) -> String {
    strip_mark(String::from_utf8_lossy(bytes).into_owned())
}

/// Removes the byte order mark U+FEFF, with which some editors mark a file as UTF-8.
fn strip_mark(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    text
}

/// Reads a file of at most `limit` bytes; fails with `FileTooLarge` for a larger one.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    check_metadata(path, &found)?;
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(limit + 1);
    if found.len() <= limit {
        file.read_to_end(&mut bytes)?;
    }
    // The file may have grown, and the system does not know the length of some files.
    match found.len() > limit || bytes.len() as u64 > limit {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

/// Accepts folders, too: reading one fails with an error of its own.
fn check_metadata(path: &Path, found: &Metadata) -> io::Result<()> {
    match found.is_file() || found.is_dir() || is_null(path, found) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe, a socket or a device; pi opens regular files only",
        )),
    }
}

/// Whether the file is `/dev/null`, also where that is mounted over another path.
#[cfg(unix)]
fn is_null(_path: &Path, found: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    found.file_type().is_char_device()
        && fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == found.rdev())
}

#[cfg(not(unix))]
fn is_null(path: &Path, _found: &Metadata) -> bool {
    path == Path::new("/dev/null")
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn only_files_are_opened() {
        let folder = std::env::temp_dir().join(format!("js-regular-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [file, pipe, null, zero] =
            ["file", "pipe", "null", "zero"].map(|name| folder.join(name));
        fs::write(&file, "text").unwrap();
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        symlink("/dev/null", &null).unwrap();
        symlink("/dev/zero", &zero).unwrap();
        assert_eq!(read_text(&file).unwrap(), "text");
        assert_eq!(read(&null).unwrap(), b"");
        for path in [&pipe, &zero] {
            let error = read(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(read_at_most(path, 1 << 20).is_err());
        }
        fs::write(folder.join("marked"), "\u{feff}text").unwrap();
        assert_eq!(read_text(folder.join("marked")).unwrap(), "text");
        assert_eq!(read_lossy(folder.join("marked")).unwrap(), "text");
        let missing = read(folder.join("gone")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(read_at_most(&file, 4).unwrap(), b"text");
        let large = read_at_most(&file, 3).unwrap_err();
        assert_eq!(large.kind(), io::ErrorKind::FileTooLarge);
        fs::remove_dir_all(folder).unwrap();
    }
}
