//! States of files, by which an unchanged file is recognized without reading it.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

/// Identifies the state of a file or folder without reading it. A program cannot set the time of
/// the last change of the inode, so every change makes another state, unless it follows the one
/// before within a step of the file system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    pub length: u64,
    /// Time of the last change of the content.
    pub modified: FileTime,
    /// Time of the last change of the inode.
    pub changed: FileTime,
    pub inode: u64,
    pub device: u64,
}

/// A time of a file, since the beginning of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTime {
    pub seconds: i64,
    /// Nanoseconds after `seconds`.
    pub nanoseconds: i64,
}

impl FileTime {
    /// Returns the nanoseconds since the beginning of 1970.
    pub fn total_nanoseconds(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }
}

impl FileState {
    pub fn from_metadata(found: &Metadata) -> Self {
        Self {
            length: found.len(),
            modified: FileTime {
                seconds: found.mtime(),
                nanoseconds: found.mtime_nsec(),
            },
            changed: FileTime {
                seconds: found.ctime(),
                nanoseconds: found.ctime_nsec(),
            },
            inode: found.ino(),
            device: found.dev(),
        }
    }

    /// Returns the state of a file in an open folder, which costs less than by a long path; `None`
    /// if there is none. A symbolic link has a state of its own.
    pub fn at(folder: &File, name: &OsStr) -> Option<Self> {
        let found = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        Some(Self {
            length: found.st_size as u64,
            modified: FileTime {
                seconds: found.st_mtime,
                nanoseconds: found.st_mtime_nsec,
            },
            changed: FileTime {
                seconds: found.st_ctime,
                nanoseconds: found.st_ctime_nsec,
            },
            inode: found.st_ino,
            device: found.st_dev as u64,
        })
    }
}
