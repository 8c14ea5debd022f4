//! Unpacks archives that are not trusted: only files and folders, only below the target, and only
//! so many.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

/// Limits of one archive.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub files: usize,
    pub unpacked_bytes: u64,
    /// Unpacked size from which the ratio counts.
    pub small_bytes: u64,
    /// Unpacked bytes for each packed byte.
    pub ratio: u64,
}

/// The largest packages that are in use have about 30,000 files or 600 MB.
impl Default for Limits {
    fn default() -> Self {
        Self {
            files: 60_000,
            unpacked_bytes: 2 << 30,
            small_bytes: 32 << 20,
            ratio: 200,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{0:?} leads out of the package")]
    Outside(PathBuf),
    #[error("it has more than {0} files")]
    TooManyFiles(usize),
    #[error("it unpacks to more than {0} bytes")]
    TooLarge(u64),
    #[error("it unpacks to more than {0} times its size, as archives do that should fill a disk")]
    Bomb(u64),
    #[error("it is damaged ({0})")]
    Damaged(io::Error),
    #[error("{}: {source}", .path.display())]
    Files { path: PathBuf, source: io::Error },
}

/// Result of unpacking.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unpacked {
    pub files: usize,
    pub bytes: u64,
    /// Links and devices, which are left out.
    pub skipped: usize,
}

/// Unpacks an archive into a folder that does not exist yet, without the first component of each
/// path. Links are left out, as npm does.
pub(crate) fn unpack(
    bytes: &[u8],
    target: &Path,
    limits: &Limits,
) -> Result<Unpacked, ArchiveError> {
    let is_packed = bytes.starts_with(&[0x1f, 0x8b]);
    let reader: Box<dyn Read + '_> = match is_packed {
        true => Box::new(MultiGzDecoder::new(bytes)),
        false => Box::new(bytes),
    };
    let ratio_limit = (bytes.len() as u64)
        .saturating_mul(limits.ratio)
        .max(limits.small_bytes);
    let limit = ratio_limit.min(limits.unpacked_bytes);
    let too_large = || match ratio_limit < limits.unpacked_bytes {
        true => ArchiveError::Bomb(limits.ratio),
        false => ArchiveError::TooLarge(limits.unpacked_bytes),
    };
    let mut archive = Archive::new(Limited {
        reader,
        left: limit,
    });
    let mut unpacked = Unpacked::default();
    let mut folders = HashSet::new();
    // `tar` wraps the errors of its reader, so the text is what tells them apart.
    let failed = |error: io::Error| match error.to_string().contains(LIMIT_REACHED) {
        true => too_large(),
        false if error.raw_os_error().is_some() => ArchiveError::Files {
            path: target.to_owned(),
            source: error,
        },
        false => ArchiveError::Damaged(error),
    };
    create_folder(target, &mut folders)?;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let named = entry.path().map_err(failed)?.into_owned();
        let path = below(target, &named).ok_or(ArchiveError::Outside(named))?;
        unpacked.files += 1;
        if unpacked.files > limits.files {
            return Err(ArchiveError::TooManyFiles(limits.files));
        }
        match kind {
            EntryType::Directory => create_folder(&path, &mut folders)?,
            EntryType::Regular | EntryType::Continuous => {
                if path == target {
                    // A file that is the package's folder.
                    return Err(ArchiveError::Outside(path));
                }
                if let Some(parent) = path.parent() {
                    create_folder(parent, &mut folders)?;
                }
                let executable = entry.header().mode().unwrap_or_default() & 0o111 != 0;
                // A later file of the same name replaces an earlier one.
                let at = |source| ArchiveError::Files {
                    path: path.clone(),
                    source,
                };
                let mut file = create_file(&path, executable).map_err(at)?;
                unpacked.bytes += io::copy(&mut entry, &mut file).map_err(failed)?;
            }
            _ => unpacked.skipped += 1,
        }
    }
    Ok(unpacked)
}

fn create_folder(path: &Path, known: &mut HashSet<PathBuf>) -> Result<(), ArchiveError> {
    if !known.contains(path) {
        fs::create_dir_all(path).map_err(|source| ArchiveError::Files {
            path: path.to_owned(),
            source,
        })?;
        known.insert(path.to_owned());
    }
    Ok(())
}

/// Creates a file with plain rights: others must not write it, and it does not run as its owner.
fn create_file(path: &Path, executable: bool) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if executable { 0o755 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _ = executable;
    options.open(path)
}

/// Returns the path of an entry below the target. The first component is left out: it is the name
/// of a folder, or the dot of `./package.json`.
fn below(target: &Path, named: &Path) -> Option<PathBuf> {
    let mut parts = named.components();
    match parts.next()? {
        Component::Normal(_) | Component::CurDir => {}
        _ => return None,
    }
    let mut path = target.to_owned();
    for part in parts {
        match part {
            Component::Normal(name) => path.push(name),
            _ => return None,
        }
    }
    path.starts_with(target).then_some(path)
}

const LIMIT_REACHED: &str = "the limit of unpacked bytes is reached";

/// A reader that fails beyond a limit. The end of the data is not an error, unlike with `take`.
struct Limited<'a> {
    reader: Box<dyn Read + 'a>,
    left: u64,
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = (self.left)
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other(LIMIT_REACHED))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Packs entries of any name, also such that `tar` itself refuses to write.
    fn packed(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (kind, name, data) in entries {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o6755);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name_literal(data).unwrap();
                header.set_size(0);
                header.set_cksum();
                builder.append(&header, &[][..]).unwrap();
                continue;
            }
            header.set_size(data.len() as u64);
            header.set_cksum();
            builder.append(&header, *data).unwrap();
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&builder.into_inner().unwrap()).unwrap();
        encoder.finish().unwrap()
    }

    fn file<'a>(name: &'a str, data: &'a [u8]) -> (EntryType, &'a str, &'a [u8]) {
        (EntryType::Regular, name, data)
    }

    #[test]
    fn entries_that_lead_out_are_refused() {
        for name in [
            "package/../../out",
            "../out",
            "/package/out",
            "package/a/../../../out",
            "package/..",
            "package",
            "..",
            "package\\..\\..\\out",
        ] {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("deep/target");
            let bytes = packed(&[file("package/ok", b"1"), file(name, b"2")]);
            let error = unpack(&bytes, &target, &Limits::default()).unwrap_err();
            assert!(matches!(error, ArchiveError::Outside(_)), "{name}: {error}");
            for above in [dir.path().join("out"), dir.path().join("deep/out")] {
                assert!(!above.exists(), "{name}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_left_out_and_nothing_follows_them() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, "mine").unwrap();
        let target = dir.path().join("target");
        let out = dir.path().to_str().unwrap().as_bytes();
        let hard = secret.to_str().unwrap().as_bytes();
        let bytes = packed(&[
            (EntryType::Symlink, "package/away", out),
            file("package/away/secret", b"changed"),
            (EntryType::Link, "package/hard", hard),
            (EntryType::Symlink, "package/up", b"../secret"),
            (EntryType::Fifo, "package/fifo", b""),
            file("package/run.sh", b"x"),
        ]);
        let unpacked = unpack(&bytes, &target, &Limits::default()).unwrap();
        assert_eq!(unpacked.skipped, 4);
        assert_eq!(fs::read_to_string(secret).unwrap(), "mine");
        assert_eq!(
            fs::read_to_string(target.join("away/secret")).unwrap(),
            "changed"
        );
        for gone in ["hard", "up", "fifo"] {
            assert!(fs::symlink_metadata(target.join(gone)).is_err(), "{gone}");
        }
        let mode = fs::metadata(target.join("run.sh")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o7022, 0, "neither setuid nor for others");
        assert_eq!(mode.mode() & 0o100, 0o100);
    }

    proptest! {
        #[test]
        fn nothing_is_written_outside(
            entries in vec((0..4_usize, vec(select(&PARTS[..]), 1..6)), 1..8)
        ) {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("deep/target");
            let kinds = [EntryType::Regular, EntryType::Directory, EntryType::Symlink, EntryType::Link];
            let names: Vec<String> = entries.iter().map(|(_, parts)| parts.concat()).collect();
            let entries: Vec<_> = entries
                .iter()
                .zip(&names)
                .map(|((kind, _), name)| (kinds[*kind], name.as_str(), &b"../../x"[..]))
                .collect();
            // An error is fine, too.
            let _ = unpack(&packed(&entries), &target, &Limits::default());
            let names = |folder: &Path| {
                let entries = fs::read_dir(folder).unwrap();
                entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
            };
            prop_assert_eq!(names(dir.path()), ["deep"]);
            prop_assert_eq!(names(&dir.path().join("deep")), ["target"]);
        }
    }

    /// Parts of names of entries.
    const PARTS: [&str; 9] = ["package", "/", "..", "a", ".", "\\", "//", "b/", "../"];

    #[test]
    fn the_first_component_is_any_folder() {
        let dir = tempfile::tempdir().unwrap();
        for (index, first) in ["package", "name-1.0.0", "."].iter().enumerate() {
            let target = dir.path().join(index.to_string());
            let folder = format!("{first}/");
            let name = format!("{first}/lib/./a.js");
            let bytes = packed(&[(EntryType::Directory, &folder, b""), file(&name, b"x")]);
            unpack(&bytes, &target, &Limits::default()).unwrap();
            assert_eq!(fs::read(target.join("lib/a.js")).unwrap(), b"x", "{first}");
        }
    }

    #[test]
    fn files_and_bytes_are_limited() {
        let limits = Limits {
            files: 10,
            unpacked_bytes: 1 << 20,
            small_bytes: 64 << 10,
            ratio: 20,
        };
        let dir = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..11).map(|n| format!("package/{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| file(name, b"")).collect();
        let error = unpack(&packed(&many), &dir.path().join("a"), &limits).unwrap_err();
        assert!(matches!(error, ArchiveError::TooManyFiles(10)), "{error}");
        let zeros = vec![0; 512 << 10];
        let bomb = packed(&[file("package/zeros", &zeros)]);
        let error = unpack(&bomb, &dir.path().join("b"), &limits).unwrap_err();
        assert!(matches!(error, ArchiveError::Bomb(20)), "{error}");
        let large = Limits {
            unpacked_bytes: 100 << 10,
            ratio: 1 << 20,
            ..limits
        };
        let error = unpack(&bomb, &dir.path().join("c"), &large).unwrap_err();
        assert!(matches!(error, ArchiveError::TooLarge(_)), "{error}");
        let cut = &bomb[..bomb.len() / 2];
        let error = unpack(cut, &dir.path().join("d"), &Limits::default()).unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged(_)), "{error}");
        let error = unpack(b"this is no archive", &dir.path().join("e"), &limits).unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged(_)), "{error}");
    }
}
