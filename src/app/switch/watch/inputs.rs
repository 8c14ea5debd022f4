//! Inputs of the last load, and whether another load would find the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::path_states::{PathStates, first_missing};
use pi_extensions::{InputAnswer, InputKind, LoadInput};

#[derive(Default)]
pub(super) struct WatchedInputs {
    inputs: BTreeMap<LoadInput, Watched>,
    states: PathStates,
}

struct Watched {
    /// The answer that the load got.
    answer: InputAnswer,
    /// While the states of these paths are the same, so is the answer.
    witnesses: Vec<PathBuf>,
    has_changed: bool,
}

impl WatchedInputs {
    /// Replaces the inputs by those of another load, or adds later ones.
    pub fn renew(&mut self, inputs: Vec<(LoadInput, InputAnswer)>) {
        let mut before = std::mem::take(&mut self.inputs);
        let used = before.len();
        for (input, answer) in inputs {
            let known = before.remove(&input).filter(|known| known.answer == answer);
            let watched = known.unwrap_or_else(|| self.watch(&input, answer));
            // Two isolates of a load may have got different answers.
            let differs = |other: &Watched| other.answer != answer;
            match self.inputs.get_mut(&input) {
                Some(other) => other.has_changed |= differs(other),
                None => _ = self.inputs.insert(input, watched),
            }
        }
        // Otherwise paths of deleted files would be looked at for ever.
        if used > 0 && before.len() > used / 2 {
            self.forget_states();
        }
    }

    fn forget_states(&mut self) {
        self.states = PathStates::default();
        let inputs = std::mem::take(&mut self.inputs);
        for (input, watched) in inputs {
            let watched = self.watch(&input, watched.answer);
            self.inputs.insert(input, watched);
        }
    }

    /// Answers the input anew, and watches the paths that the answer depends on.
    fn watch(&mut self, input: &LoadInput, answer: InputAnswer) -> Watched {
        let witnesses = witnesses(input);
        for path in &witnesses {
            self.states.add(path);
        }
        Watched {
            has_changed: input.answer() != answer,
            answer,
            witnesses,
        }
    }

    /// Looks at all paths again. Returns the files that have changed.
    pub fn look(&mut self) -> BTreeSet<PathBuf> {
        if self.states.look() {
            let Self { inputs, states } = self;
            let is_suspect = |watched: &Watched| {
                let mut witnesses = watched.witnesses.iter();
                witnesses.any(|path| states.is_suspect(path))
            };
            let suspect = inputs.iter().filter(|(_, watched)| is_suspect(watched));
            let suspect: Vec<(LoadInput, InputAnswer)> = suspect
                .map(|(input, watched)| (input.clone(), watched.answer))
                .collect();
            for (input, answer) in suspect {
                let watched = self.watch(&input, answer);
                self.inputs.insert(input, watched);
            }
        }
        let changed = self
            .inputs
            .iter()
            .filter(|(_, watched)| watched.has_changed);
        changed.map(|(input, _)| named(input)).collect()
    }

    /// Returns the folders in which the extensions' own files are, or would appear. Packages would
    /// be too many; they are looked at without notifications.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let mut folders = BTreeSet::new();
        for input in self.inputs.keys() {
            let is_own = match input.kind {
                InputKind::Content => !input.path.ends_with("package.json"),
                InputKind::Presence => false,
                InputKind::Entry | InputKind::Import | InputKind::Folder | InputKind::Listing => {
                    true
                }
            };
            let mut parts = input.path.components();
            let is_packaged = parts.any(|part| part.as_os_str() == "node_modules");
            if is_own && !is_packaged {
                let from = usize::from(input.kind != InputKind::Listing);
                let above = input.path.ancestors().skip(from);
                folders.extend(above.map(Path::to_path_buf).find(|above| above.is_dir()));
            }
        }
        folders
    }

    /// Returns the number of paths that a look takes into account.
    #[cfg(test)]
    pub fn path_count(&self) -> usize {
        self.states.count()
    }
}

/// Returns the paths of which the states show that an answer is still the same.
fn witnesses(input: &LoadInput) -> Vec<PathBuf> {
    let path = &input.path;
    let mut witnesses = vec![first_missing(path).to_path_buf()];
    if !leads_to_file(input.kind) {
        return witnesses;
    }
    // A file with another ending may appear beside, or a `main` inside.
    if let Some(folder) = path.parent() {
        witnesses.push(first_missing(folder).to_path_buf());
    }
    if path.is_dir() {
        witnesses.push(path.join("package.json"));
    }
    witnesses.extend(input.find());
    witnesses
}

/// Returns the path by which a change is named to the user.
fn named(input: &LoadInput) -> PathBuf {
    let found = leads_to_file(input.kind).then(|| input.find()).flatten();
    found.unwrap_or_else(|| input.path.clone())
}

/// Returns whether the file may have another name than the path.
fn leads_to_file(kind: InputKind) -> bool {
    matches!(
        kind,
        InputKind::Entry | InputKind::Import | InputKind::Folder
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::*;

    fn loaded(inputs: impl IntoIterator<Item = LoadInput>) -> WatchedInputs {
        let requested = inputs.into_iter().map(|input| {
            let answer = input.answer();
            (input, answer)
        });
        let mut watched = WatchedInputs::default();
        watched.renew(requested.collect());
        watched
    }

    #[test]
    fn change_before_the_first_look_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ts");
        fs::write(&path, "new").unwrap();
        let input = LoadInput::new(InputKind::Content, &path);
        let mut watched = WatchedInputs::default();
        // The load had read another text.
        watched.renew(vec![(input.clone(), Some(1))]);
        assert_eq!(watched.look(), [path.clone()].into());
        let answer = input.answer();
        watched.renew(vec![(input, answer)]);
        assert_eq!(watched.look(), BTreeSet::new());
    }

    #[test]
    fn missing_and_nearer_files_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("near.ts"), "").unwrap();
        let mut watched = loaded([
            LoadInput::new(InputKind::Import, at("near")),
            LoadInput::new(InputKind::Import, at("later/lib")),
            LoadInput::new(InputKind::Presence, at("node_modules/pkg")),
            LoadInput::new(InputKind::Content, at("package.json")),
        ]);
        assert_eq!(watched.look(), BTreeSet::new());
        fs::write(at("near.js"), "").unwrap();
        assert_eq!(watched.look(), [at("near.js")].into());
        fs::remove_file(at("near.js")).unwrap();
        assert_eq!(watched.look(), BTreeSet::new());
        fs::create_dir(at("later")).unwrap();
        assert_eq!(watched.look(), BTreeSet::new());
        fs::write(at("later/lib.ts"), "").unwrap();
        fs::create_dir_all(at("node_modules/pkg")).unwrap();
        fs::write(at("package.json"), r#"{"type": "module"}"#).unwrap();
        let expected = ["later/lib.ts", "node_modules/pkg", "package.json"];
        assert_eq!(watched.look(), expected.map(at).into());
    }

    /// Writes `count` extensions that have not changed for an hour, and their inputs.
    fn extensions(folder: &Path, count: usize) -> Vec<LoadInput> {
        let mut inputs = Vec::new();
        for number in 0..count {
            let file = folder.join(format!("extension{number}.ts"));
            fs::write(&file, "export default () => {};").unwrap();
            let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
            let open = fs::File::options().write(true).open(&file).unwrap();
            open.set_modified(old).unwrap();
            inputs.push(LoadInput::new(InputKind::Content, &file));
            inputs.push(LoadInput::new(InputKind::Entry, &file));
        }
        inputs
    }

    #[test]
    fn a_path_with_two_inputs_is_looked_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = loaded(extensions(folder.path(), 500));
        assert_eq!(watched.look(), BTreeSet::new());
        assert!(watched.path_count() <= 510);
    }

    /// Prints the cost that docs/performance.md has:
    /// `cargo test --release -p pi-app --lib five_hundred -- --ignored --nocapture`.
    #[test]
    #[ignore = "prints a figure for docs/performance.md"]
    fn look_at_five_hundred_files_is_cheap() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = loaded(extensions(folder.path(), 500));
        let mut best = std::time::Duration::MAX;
        // The metadata of the files is recent at first.
        std::thread::sleep(std::time::Duration::from_millis(2600));
        watched.look();
        for _ in 0..20 {
            let started = Instant::now();
            assert_eq!(watched.look(), BTreeSet::new());
            best = best.min(started.elapsed());
        }
        println!("{} paths: {best:?}", watched.path_count());
    }
}
