//! Reads files that anybody may have put where they are looked for. Whoever opens a pipe
//! waits for its other end, and some devices never end.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Whether what is at `path` can be read without waiting for somebody else.
pub fn check_regular(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    check(path, &fs::metadata(path)?)
}

/// What is in a file, unless it is a pipe, a socket or a device. `/dev/null` is as good as an
/// empty file: files are hidden with it.
pub fn read_regular(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    check(path, &fs::metadata(path)?)?;
    fs::read(path)
}

/// Reads text that people or their editors write, without a byte order mark.
pub fn read_regular_text(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref();
    check(path, &fs::metadata(path)?)?;
    fs::read_to_string(path).map(without_mark)
}

/// [`read_regular_text`] for files that may not be UTF-8: such bytes become U+FFFD.
pub fn read_regular_lossy(path: impl AsRef<Path>) -> io::Result<String> {
    read_regular(path).map(|bytes| text_of(&bytes))
}

/// The text of a file that was read already: see [`read_regular_lossy`].
pub fn text_of(bytes: &[u8]) -> String {
    without_mark(String::from_utf8_lossy(bytes).into_owned())
}

/// Some editors begin a file with U+FEFF to mark it as UTF-8.
fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    text
}

/// Nothing of one that is larger than `limit`.
pub(crate) fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    check(path, &found)?;
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(limit + 1);
    if found.len() <= limit {
        file.read_to_end(&mut bytes)?;
    }
    // It may have grown, and of some files the system does not know how large they are.
    match found.len() > limit || bytes.len() as u64 > limit {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

/// Reading a folder fails by itself.
fn check(path: &Path, found: &Metadata) -> io::Result<()> {
    match found.is_file() || found.is_dir() || is_null(path, found) {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe, a socket or a device, and not opened: a regular file is wanted",
        )),
    }
}

/// Also where it is mounted over a file.
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
        assert_eq!(read_regular_text(&file).unwrap(), "text");
        assert_eq!(read_regular(&null).unwrap(), b"");
        for path in [&pipe, &zero] {
            let error = read_regular(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(read_at_most(path, 1 << 20).is_err());
        }
        fs::write(folder.join("marked"), "\u{feff}text").unwrap();
        assert_eq!(read_regular_text(folder.join("marked")).unwrap(), "text");
        assert_eq!(read_regular_lossy(folder.join("marked")).unwrap(), "text");
        let missing = read_regular(folder.join("gone")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(read_at_most(&file, 4).unwrap(), b"text");
        let large = read_at_most(&file, 3).unwrap_err();
        assert_eq!(large.kind(), io::ErrorKind::FileTooLarge);
        fs::remove_dir_all(folder).unwrap();
    }
}
