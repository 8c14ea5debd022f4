//! Words errors of file operations like Node: `ENOENT: no such file or directory, open '/x'`.

use std::io;
use std::path::Path;

use crate::tool::ToolError;

pub(crate) fn describe(error: &io::Error, operation: &str, path: Option<&Path>) -> ToolError {
    let place = path.map_or(String::new(), |path| format!(" '{}'", path.display()));
    let text = match code(error) {
        Some((code, text)) => format!("{code}: {text}, {operation}{place}"),
        None => format!("{error}, {operation}{place}"),
    };
    ToolError::new(text)
}

/// Describes why a program could not be started: `spawn gh ENOENT`.
pub fn spawn(error: &io::Error, program: &str) -> String {
    match code(error) {
        Some((code, _)) => format!("spawn {program} {code}"),
        None => format!("spawn {program}: {error}"),
    }
}

#[cfg(unix)]
fn code(error: &io::Error) -> Option<(&'static str, &'static str)> {
    use nix::errno::Errno;
    Some(match Errno::from_raw(error.raw_os_error()?) {
        Errno::ENOENT => ("ENOENT", "no such file or directory"),
        Errno::EACCES => ("EACCES", "permission denied"),
        Errno::EPERM => ("EPERM", "operation not permitted"),
        Errno::EISDIR => ("EISDIR", "illegal operation on a directory"),
        Errno::ENOTDIR => ("ENOTDIR", "not a directory"),
        Errno::EEXIST => ("EEXIST", "file already exists"),
        Errno::ELOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::ENAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        Errno::EROFS => ("EROFS", "read-only file system"),
        Errno::ENOSPC => ("ENOSPC", "no space left on device"),
        Errno::EDQUOT => ("EDQUOT", "disk quota exceeded"),
        Errno::EMFILE => ("EMFILE", "too many open files"),
        Errno::ENFILE => ("ENFILE", "file table overflow"),
        Errno::EBUSY => ("EBUSY", "resource busy or locked"),
        Errno::ETXTBSY => ("ETXTBSY", "text file is busy"),
        Errno::EIO => ("EIO", "i/o error"),
        _ => return None,
    })
}

#[cfg(not(unix))]
fn code(error: &io::Error) -> Option<(&'static str, &'static str)> {
    Some(match error.kind() {
        io::ErrorKind::NotFound => ("ENOENT", "no such file or directory"),
        io::ErrorKind::PermissionDenied => ("EPERM", "operation not permitted"),
        io::ErrorKind::AlreadyExists => ("EEXIST", "file already exists"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_codes() {
        let missing = std::fs::metadata("/no/such/place").unwrap_err();
        assert_eq!(
            describe(&missing, "open", Some(Path::new("/no/such/place"))).0,
            "ENOENT: no such file or directory, open '/no/such/place'"
        );
        assert_eq!(spawn(&missing, "gh"), "spawn gh ENOENT");
        let odd = io::Error::other("the moon is full");
        assert_eq!(describe(&odd, "read", None).0, "the moon is full, read");
    }
}
