//! Replaces the content of a file in one step: a reader finds the old content or the new one,
//! never a part. The new content is written to a temporary file in the same folder, which then
//! takes the name of the old one.
//!
//! A rename makes a new file. Where that would lose something that belongs to the old one (other
//! names of it, its owner, its extended attributes), the old file is rewritten in place instead.

use std::fs;
use std::io;
use std::path::Path;

/// Writes `content` to `path`. A missing file is created. Symbolic links are followed and kept;
/// permission bits, owner, group, access control lists and hard links of the file are kept. If
/// the new content cannot be written, the file keeps the old content.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    if rename::replace_by_rename(path, content)? {
        return Ok(());
    }
    fs::write(path, content)
}

#[cfg(unix)]
mod rename {
    use std::fs::{self, File, Metadata, Permissions};
    use std::io::{self, Write};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    use std::path::Path;

    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    use rustix::io::Errno;
    use tempfile::{Builder, NamedTempFile};

    /// Permission bits that make a program run as its owner or group. A write in place clears
    /// them where necessary.
    const SET_ID: u32 = 0o6000;
    const PERMISSIONS: u32 = 0o7777;
    /// Maximum size in bytes on Linux of the list of attributes, and of one attribute.
    const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

    /// Replaces the file by a rename. Returns `false` if nothing was done, because the file must
    /// be written in place, or because a write in place gives the best error.
    pub fn replace_by_rename(path: &Path, content: &[u8]) -> io::Result<bool> {
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            // A link without a target determines the path of the new file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::symlink_metadata(path) {
                    Ok(_) => Ok(false),
                    Err(_) => create(path, content),
                };
            }
            Err(_) => return Ok(false),
        };
        let Some(metadata) = fs::metadata(&target).ok().filter(can_be_renamed_over) else {
            return Ok(false);
        };
        // A file without write permission must not be replaced.
        let old = File::options().write(true).open(&target)?;
        let Some(mut new) = temporary_file(&target, None) else {
            return Ok(false);
        };
        new.write_all(content)?;
        if copy_metadata(&old, &metadata, new.as_file()).is_err() {
            return Ok(false);
        }
        // The rename fails, for example, for the name of a mount point.
        Ok(new.persist(&target).is_ok())
    }

    fn create(path: &Path, content: &[u8]) -> io::Result<bool> {
        // The umask of the process applies, as for every new file.
        let Some(mut new) = temporary_file(path, Some(Permissions::from_mode(0o666))) else {
            return Ok(false);
        };
        new.write_all(content)?;
        Ok(new.persist(path).is_ok())
    }

    fn can_be_renamed_over(metadata: &Metadata) -> bool {
        metadata.is_file() && metadata.nlink() == 1 && metadata.mode() & SET_ID == 0
    }

    /// Creates a file in the folder of `target`, because a rename must not cross file systems.
    /// Returns `None` if the folder accepts no new file. Without `permissions` only the owner can
    /// read the file.
    fn temporary_file(target: &Path, permissions: Option<Permissions>) -> Option<NamedTempFile> {
        let mut builder = Builder::new();
        builder.prefix(".pi-").suffix(".tmp");
        if let Some(permissions) = permissions {
            builder.permissions(permissions);
        }
        builder.tempfile_in(target.parent()?).ok()
    }

    /// Gives `new` the owner, the permissions and the attributes of `old`.
    fn copy_metadata(old: &File, old_metadata: &Metadata, new: &File) -> io::Result<()> {
        let owner = |metadata: &Metadata| (metadata.uid(), metadata.gid());
        let (uid, gid) = owner(old_metadata);
        if owner(&new.metadata()?) != (uid, gid) {
            fchown(new, Some(uid), Some(gid))?;
        }
        let mode = old_metadata.mode() & PERMISSIONS;
        new.set_permissions(Permissions::from_mode(mode))?;
        copy_attributes(old, new)
    }

    /// Copies extended attributes, including access control lists.
    fn copy_attributes(old: &File, new: &File) -> io::Result<()> {
        let length = match rustix::fs::flistxattr_query(old) {
            Ok(0) | Err(Errno::NOTSUP) => return Ok(()),
            length => length?.min(MAX_ATTRIBUTE_BYTES),
        };
        let mut names = vec![0; length];
        let length = flistxattr(old, names.as_mut_slice())?;
        let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
        let mut present = vec![0; MAX_ATTRIBUTE_BYTES];
        for name in names[..length].split(|byte| *byte == 0) {
            if name.is_empty() {
                continue;
            }
            let value_length = fgetxattr(old, name, value.as_mut_slice())?;
            let value = &value[..value_length];
            // A label that the system gives to every new file of the folder is present already.
            let has = fgetxattr(new, name, present.as_mut_slice());
            if !has.is_ok_and(|length| present[..length] == *value) {
                fsetxattr(new, name, value, XattrFlags::empty())?;
            }
        }
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_reader_finds_the_old_content_or_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let contents = [b'a', b'b'].map(|letter| vec![letter; 300_000]);
        fs::write(&file, &contents[0]).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let read = fs::read(&file).unwrap();
                    assert!(contents.contains(&read), "{} bytes were read", read.len());
                }
            });
            for _ in 0..100 {
                for content in &contents {
                    replace_file(&file, content).unwrap();
                }
            }
            is_over.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn permissions_stay_and_new_files_have_the_usual_ones() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("script");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        fs::write(&file, "old").unwrap();
        for bits in [0o755, 0o600, 0o664, 0o4755] {
            fs::set_permissions(&file, Permissions::from_mode(bits)).unwrap();
            replace_file(&file, b"new").unwrap();
            assert_eq!(mode(&file) & 0o1777, bits & 0o1777);
        }
        let (usual, new) = (folder.path().join("usual"), folder.path().join("new"));
        fs::write(&usual, "").unwrap();
        replace_file(&new, b"").unwrap();
        assert_eq!(mode(&new), mode(&usual));
    }

    #[test]
    fn a_file_that_may_not_be_written_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        // Root may write every file.
        let may_write = fs::OpenOptions::new().write(true).open(&file).is_ok();
        assert_eq!(replace_file(&file, b"new").is_ok(), may_write);
        let expected = if may_write { "new" } else { "old" };
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        fs::write(path("sub/file"), "old").unwrap();
        symlink("sub/file", path("link")).unwrap();
        symlink("sub/later", path("dangling")).unwrap();
        replace_file(&path("link"), b"new").unwrap();
        replace_file(&path("dangling"), b"made").unwrap();
        assert_eq!(fs::read_to_string(path("sub/file")).unwrap(), "new");
        assert_eq!(fs::read_to_string(path("sub/later")).unwrap(), "made");
        for link in ["link", "dangling"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
        }
        fs::hard_link(path("sub/file"), path("other")).unwrap();
        replace_file(&path("sub/file"), b"both").unwrap();
        assert_eq!(fs::read_to_string(path("other")).unwrap(), "both");
        assert_eq!(fs::metadata(path("other")).unwrap().nlink(), 2);
    }

    #[test]
    fn extended_attributes_stay() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "old").unwrap();
        let name = "user.origin";
        // Not every file system supports attributes.
        if setxattr(&file, name, b"here", XattrFlags::empty()).is_err() {
            return;
        }
        replace_file(&file, b"new").unwrap();
        let mut value = [0; 16];
        let length = getxattr(&file, name, value.as_mut_slice()).unwrap();
        assert_eq!(&value[..length], b"here");
    }

    #[test]
    fn a_folder_that_takes_no_new_file_is_no_hindrance() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
        let written = replace_file(&file, b"new");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        written.unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn watchers_of_the_folder_and_of_the_file_see_the_change() {
        use notify::{RecursiveMode, Watcher};
        use std::sync::mpsc::channel;
        use std::time::Duration;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().canonicalize().unwrap().join("a");
        fs::write(&file, "old").unwrap();
        for watched in [file.parent().unwrap(), &file] {
            let (events, seen) = channel();
            let mut watcher = notify::recommended_watcher(events).unwrap();
            watcher.watch(watched, RecursiveMode::NonRecursive).unwrap();
            replace_file(&file, b"new").unwrap();
            let is_seen = |event: notify::Event| event.paths.contains(&file);
            while !is_seen(seen.recv_timeout(Duration::from_secs(60)).unwrap().unwrap()) {}
        }
    }

    #[test]
    fn special_files_are_written_in_place() {
        replace_file(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let error = replace_file(Path::new("/"), b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(nix::libc::EISDIR));
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("none/a");
        let error = replace_file(&below, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
