//! Extensions that stopped an isolate. They are not loaded until one of their files, or of
//! their packages, changes, or the user releases them by name.
//!
//! This module keeps the list. `bridge::record_stop` names the extension to blame, and
//! `lifecycle::recover` and `lifecycle::load` add it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use js_runtime::{InputAnswer, InputKind, LoadInput};
use parking_lot::Mutex;

use crate::bridge::BridgeHost;
use crate::diagnostics::error_context::extension_name;
use crate::registry::ExtensionId;

/// Entries by the path under which the extension is loaded.
#[derive(Default)]
pub struct Quarantine(Mutex<HashMap<PathBuf, Offender>>);

struct Offender {
    /// How the extension stopped the isolate.
    why: String,
    /// Inputs of its load.
    inputs: Inputs,
    packaged: Inputs,
}

type Inputs = Vec<(LoadInput, InputAnswer)>;

impl Offender {
    fn has_changed(&self) -> bool {
        let mut inputs = self.inputs.iter().chain(&self.packaged);
        inputs.any(|(input, answer)| input.answer() != *answer)
    }
}

/// The files that an extension was loaded from.
#[derive(Clone, Default)]
pub struct LoadedFiles {
    inputs: Inputs,
    /// Files of packages; other extensions may have loaded some of them.
    packaged: Vec<PathBuf>,
}

impl LoadedFiles {
    pub fn for_extension(host: &BridgeHost, extension: ExtensionId) -> Self {
        let Some(imports) = host.imports() else {
            return Self::default();
        };
        Self {
            inputs: imports.inputs_of(extension),
            packaged: imports.packages_of(extension),
        }
    }
}

impl Quarantine {
    /// Adds an extension. `why` says how it stopped the isolate.
    pub fn add(&self, path: &Path, loaded_files: LoadedFiles, why: String) {
        let LoadedFiles {
            mut inputs,
            packaged,
        } = loaded_files;
        let entry = LoadInput::new(InputKind::Content, path);
        if !inputs.iter().any(|(input, _)| *input == entry) {
            inputs.push(with_answer(entry));
        }
        let content = |file| with_answer(LoadInput::new(InputKind::Content, file));
        let offender = Offender {
            why,
            inputs,
            packaged: packaged.into_iter().map(content).collect(),
        };
        self.0.lock().insert(path.to_path_buf(), offender);
    }

    /// Returns what the loads of all quarantined extensions read and looked for, excluding files
    /// of packages.
    pub fn inputs(&self) -> Inputs {
        let offenders = self.0.lock();
        let inputs = offenders.values().flat_map(|offender| &offender.inputs);
        inputs.cloned().collect()
    }

    /// Releases extensions whose files have changed.
    pub fn release_changed(&self) {
        self.0.lock().retain(|_, offender| !offender.has_changed());
    }

    /// Releases an extension by its path, file or folder, or all extensions of a package by
    /// its name.
    pub fn release(&self, name: &str) -> Result<(), String> {
        let mut offenders = self.0.lock();
        let before = offenders.len();
        offenders.retain(|path, _| !matches_name(path, name));
        if offenders.len() < before {
            return Ok(());
        }
        let mut names: Vec<String> = offenders.keys().map(|path| short_name(path)).collect();
        names.sort_unstable();
        let others = match names.is_empty() {
            true => "no extension is".to_owned(),
            false => format!("these are: {}", names.join(", ")),
        };
        Err(format!(
            "\"{name}\" is not quarantined; {others}. A reload without a name loads all extensions"
        ))
    }

    /// Returns the message for an extension that is not loaded.
    pub fn reason(&self, path: &Path) -> Option<String> {
        let offenders = self.0.lock();
        let offender = offenders.get(path)?;
        Some(format!(
            "quarantined, because it was {} and has not changed since; {}",
            offender.why,
            release_hint(path)
        ))
    }
}

/// Returns the hint how a quarantined extension is released.
pub fn release_hint(path: &Path) -> String {
    format!(
        "it comes back when its code or that of its packages has changed and pi reloads, or with \
         /reload {}",
        short_name(path)
    )
}

/// Returns the name that users type.
fn short_name(path: &Path) -> String {
    let named = match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("index") => path.parent().unwrap_or(path),
        _ => path,
    };
    let name = named.file_name().unwrap_or(named.as_os_str());
    name.to_string_lossy().into_owned()
}

fn matches_name(path: &Path, name: &str) -> bool {
    let short = short_name(path);
    let stem = Path::new(&short).file_stem();
    let is_here = path == Path::new(name) || short == name || stem.is_some_and(|stem| stem == name);
    is_here || extension_name(path).name == name
}

fn with_answer(input: LoadInput) -> (LoadInput, InputAnswer) {
    let answer = input.answer();
    (input, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_releases_extension() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (entry, helper) = (file("a.ts", "1"), file("helper.ts", "1"));
        let packaged = vec![file("packaged.js", "1")];
        let own = || {
            let content = LoadInput::new(InputKind::Content, helper.clone());
            let inputs = vec![with_answer(content)];
            LoadedFiles {
                inputs,
                packaged: packaged.clone(),
            }
        };
        let quarantine = Quarantine::default();
        let add = || quarantine.add(&entry, own(), "why".into());
        let is_in = || quarantine.reason(&entry).is_some();
        add();
        quarantine.release_changed();
        assert!(is_in());
        file("helper.ts", "2");
        quarantine.release_changed();
        assert!(!is_in());
        add();
        std::fs::remove_file(&helper).unwrap();
        quarantine.release_changed();
        assert!(!is_in());
        add();
        assert!(
            !quarantine
                .inputs()
                .iter()
                .any(|(input, _)| input.path.ends_with("packaged.js"))
        );
        file("packaged.js", "2");
        quarantine.release_changed();
        assert!(!is_in());
    }

    #[test]
    fn release_matches_path_file_or_folder() {
        let quarantine = Quarantine::default();
        let paths = ["/e/a.ts", "/e/todo/index.ts"];
        for (name, path) in [
            ("a", paths[0]),
            ("a.ts", paths[0]),
            ("/e/a.ts", paths[0]),
            ("todo", paths[1]),
            ("/e/todo/index.ts", paths[1]),
        ] {
            for path in paths {
                quarantine.add(Path::new(path), LoadedFiles::default(), "why".into());
            }
            quarantine.release(name).unwrap();
            for other in paths {
                let is_in = quarantine.reason(Path::new(other)).is_some();
                assert_eq!(is_in, other != path, "{name}");
            }
        }
        let error = quarantine.release("index").unwrap_err();
        let advice = "A reload without a name loads all extensions";
        let expected = format!("\"index\" is not quarantined; these are: a.ts. {advice}");
        assert_eq!(error, expected);
        quarantine.release("a").unwrap();
        let error = quarantine.release("a").unwrap_err();
        let expected = format!("\"a\" is not quarantined; no extension is. {advice}");
        assert_eq!(error, expected);
    }
}
