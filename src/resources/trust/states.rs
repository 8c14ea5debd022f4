//! States of files, by which an unchanged project is recognized without reading contents. One
//! digest stands for the states of all files, so that nothing of a record has to be parsed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;

use pi_base::FileState;
use sha2::{Digest, Sha256};

use super::file_set::{FileRole, Files, SearchedFolder, hash, path_of, to_hex};
use super::walk::Listing;

/// Number of files of which one thread gets the states.
const FILES_OF_THREAD: usize = 256;
const MAX_THREADS: usize = 4;

/// Returns whether the file could have been changed again without a difference, because it was
/// changed within two seconds before `now`, in seconds of the Unix time.
pub(super) fn is_recent(state: &FileState, now: i64) -> bool {
    state.changed.seconds + 2 > now
}

fn add_to(hasher: &mut Sha256, state: FileState) {
    for number in [state.length, state.inode, state.device] {
        hasher.update(number.to_le_bytes());
    }
    for time in [state.modified, state.changed] {
        for number in [time.seconds, time.nanoseconds] {
            hasher.update(number.to_le_bytes());
        }
    }
}

/// The form of the state of a file in a record: seven numbers, or `null`.
pub(super) mod stored_state {
    use pi_base::{FileState, FileTime};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Length, times of the last change of the content and of the inode, number of the inode and
    /// of the device.
    type Numbers = (u64, i64, i64, i64, i64, u64, u64);

    pub fn serialize<S: Serializer>(
        state: &Option<FileState>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let numbers = |state: &FileState| -> Numbers {
            (
                state.length,
                state.modified.seconds,
                state.modified.nanoseconds,
                state.changed.seconds,
                state.changed.nanoseconds,
                state.inode,
                state.device,
            )
        };
        state.as_ref().map(numbers).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<FileState>, D::Error> {
        let state = |numbers: Numbers| {
            let (length, modified, modified_nanoseconds, changed, changed_nanoseconds, ..) =
                numbers;
            FileState {
                length,
                modified: FileTime {
                    seconds: modified,
                    nanoseconds: modified_nanoseconds,
                },
                changed: FileTime {
                    seconds: changed,
                    nanoseconds: changed_nanoseconds,
                },
                inode: numbers.5,
                device: numbers.6,
            }
        };
        Ok(Option::<Numbers>::deserialize(deserializer)?.map(state))
    }
}

/// Returns the digest of the states that the files and `folders` have now; `None` if one is gone.
pub(super) fn digest_of_listing(listing: &Listing, folders: BTreeSet<PathBuf>) -> Option<String> {
    let mut searched = BTreeMap::new();
    for folder in folders {
        let state = FileState::from_metadata(&fs::metadata(&folder).ok()?);
        searched.insert(folder, state);
    }
    let states = states_of(listing)?;
    let links = listing.links.iter();
    let links = links.map(|(path, target)| (path.clone(), hash(target.as_os_str().as_bytes())));
    Some(digest(listing, &states, links, &searched))
}

/// Returns the digest of the states that the files had when they were read; `None` if one may have
/// changed right after it was read.
pub(super) fn digest_of_files(project: &Path, files: &Files) -> Option<String> {
    let mut found: Vec<(PathBuf, OsString, FileRole, FileState)> = Vec::new();
    let mut link_hashes: Vec<(PathBuf, &str)> = Vec::new();
    let mut searched = BTreeMap::new();
    for (key, file) in files {
        for SearchedFolder { key, state } in &file.searched {
            let state = (*state)?;
            // A file may have appeared after one of two modules was read.
            if searched
                .insert(path_of(project, key)?, state)
                .is_some_and(|other| other != state)
            {
                return None;
            }
        }
        let path = path_of(project, key)?;
        match file.role {
            FileRole::Link => link_hashes.push((path, &file.sha256)),
            role => {
                let (folder, name) = (path.parent()?.to_owned(), path.file_name()?.to_owned());
                found.push((folder, name, role, file.state?));
            }
        }
    }
    found.sort_unstable_by(|a, b| (&a.0, &a.1, a.2).cmp(&(&b.0, &b.1, b.2)));
    link_hashes.sort_unstable();
    let mut listing = Listing::default();
    let mut states = Vec::new();
    for (folder, name, role, state) in found {
        listing
            .folders
            .entry(folder)
            .or_default()
            .push((name, role));
        states.push(state);
    }
    let links = link_hashes.into_iter();
    let links = links.map(|(path, hash)| (path, hash.to_owned()));
    Some(digest(&listing, &states, links, &searched))
}

/// Returns the digest of names, purposes and states, of links with the hashes of their targets, and of
/// the folders that were searched.
fn digest(
    listing: &Listing,
    states: &[FileState],
    links: impl Iterator<Item = (PathBuf, String)>,
    searched: &BTreeMap<PathBuf, FileState>,
) -> String {
    let mut hasher = Sha256::new();
    let text = |hasher: &mut Sha256, bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    let mut states = states.iter();
    for (folder, names) in &listing.folders {
        text(&mut hasher, folder.as_os_str().as_bytes());
        hasher.update((names.len() as u64).to_le_bytes());
        // Both have the same number of items.
        for ((name, role), state) in names.iter().zip(states.by_ref()) {
            text(&mut hasher, name.as_bytes());
            hasher.update([*role as u8]);
            add_to(&mut hasher, *state);
        }
    }
    hasher.update(u64::MAX.to_le_bytes());
    for (path, hash) in links {
        text(&mut hasher, path.as_os_str().as_bytes());
        text(&mut hasher, hash.as_bytes());
    }
    hasher.update(u64::MAX.to_le_bytes());
    for (path, state) in searched {
        text(&mut hasher, path.as_os_str().as_bytes());
        add_to(&mut hasher, *state);
    }
    to_hex(&hasher.finalize())
}

/// Names of files in one folder.
type Piece<'a> = (&'a Path, &'a [(OsString, FileRole)]);

/// Returns the states of all files in the order of the listing, with a few threads if they are many.
fn states_of(listing: &Listing) -> Option<Vec<FileState>> {
    let count: usize = listing.folders.values().map(Vec::len).sum();
    let share = FILES_OF_THREAD.max(count.div_ceil(MAX_THREADS));
    let mut shares: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut free = share;
    for (folder, names) in &listing.folders {
        let mut names = names.as_slice();
        while !names.is_empty() {
            if free == 0 {
                shares.push(Vec::new());
                free = share;
            }
            let (piece, rest) = names.split_at(names.len().min(free));
            shares.last_mut()?.push((folder, piece));
            free -= piece.len();
            names = rest;
        }
    }
    thread::scope(|scope| {
        let (first, others) = shares.split_first()?;
        let others: Vec<_> = others
            .iter()
            .map(|share| scope.spawn(|| states_in(share)))
            .collect();
        let mut found = states_in(first)?;
        for other in others {
            found.extend(other.join().ok()??);
        }
        Some(found)
    })
}

fn states_in(pieces: &[Piece]) -> Option<Vec<FileState>> {
    let mut states = Vec::with_capacity(pieces.iter().map(|(_, names)| names.len()).sum());
    for (folder, names) in pieces {
        let folder = File::open(folder).ok()?;
        for (name, _) in *names {
            states.push(FileState::at(&folder, name)?);
        }
    }
    Some(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of earlier versions stay valid.
    #[test]
    fn state_is_stored_as_seven_numbers() {
        let text = r#"{"key":"a","state":[1,2,3,4,5,6,7]}"#;
        let folder: SearchedFolder = serde_json::from_str(text).unwrap();
        let state = folder.state.unwrap();
        assert_eq!((state.length, state.inode, state.device), (1, 6, 7));
        assert_eq!((state.modified.seconds, state.modified.nanoseconds), (2, 3));
        assert_eq!((state.changed.seconds, state.changed.nanoseconds), (4, 5));
        assert_eq!(serde_json::to_string(&folder).unwrap(), text);
        let unknown = r#"{"key":"a","state":null}"#;
        let folder: SearchedFolder = serde_json::from_str(unknown).unwrap();
        assert_eq!(serde_json::to_string(&folder).unwrap(), unknown);
    }

    #[test]
    fn states_are_the_same_by_path_and_in_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let mut listing = Listing::default();
        for (folder, count) in [("a", 3), ("b", 3 * FILES_OF_THREAD), ("c", 1)] {
            let folder = dir.path().join(folder);
            fs::create_dir(&folder).unwrap();
            for n in 0..count {
                let file = folder.join(n.to_string());
                fs::write(&file, "x".repeat(n)).unwrap();
                listing.insert(&file, FileRole::Skill);
            }
        }
        listing.sort();
        let expected: Vec<FileState> = listing
            .files()
            .map(|(path, _)| FileState::from_metadata(&fs::metadata(path).unwrap()))
            .collect();
        assert_eq!(states_of(&listing).unwrap(), expected);
        listing.insert(&dir.path().join("c/gone"), FileRole::Skill);
        assert_eq!(states_of(&listing), None);
    }
}
