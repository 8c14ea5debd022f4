//! `trust.json`: the user's recorded answers, in the format and under the lock of the original:
//! an object of canonical folders with `true` or `false`. `null` stands for no answer.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pi_base::file_lock::FileLock;
use pi_base::regular_file;
use serde_json::Value;

use super::file_set::TooManyFiles;

/// A problem with the recorded answers.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{}: {why}. Correct the file or remove it", .file.display())]
    Invalid { file: PathBuf, why: String },
    #[error("{0}, so it cannot be trusted. Remove files, or start pi with --approve")]
    TooManyFiles(#[from] TooManyFiles),
    #[error("{}: could not be read: {source}", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}: could not be written: {source}", .file.display())]
    Write { file: PathBuf, source: io::Error },
}

/// The answers by folder, as in the file.
pub type Answers = BTreeMap<String, Option<bool>>;

/// Reads all answers; empty if there is no file.
pub fn read(file: &Path) -> Result<Answers, TrustError> {
    let invalid = |why: String| TrustError::Invalid {
        file: file.to_owned(),
        why,
    };
    let text = match regular_file::read_text(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Answers::new()),
        Err(source) => {
            let file = file.to_owned();
            return Err(TrustError::Read { file, source });
        }
    };
    let object = match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(invalid("it is no object".to_owned())),
        Err(error) => return Err(invalid(error.to_string())),
    };
    let answers = object.into_iter().map(|(folder, answer)| match answer {
        Value::Null => Ok((folder, None)),
        Value::Bool(answer) => Ok((folder, Some(answer))),
        _ => Err(invalid(format!(
            "{folder:?} is neither true nor false nor null"
        ))),
    });
    answers.collect()
}

/// Returns the answer for `folder`, which is canonical, or for its nearest ancestor, with the
/// folder that has it.
pub fn nearest(answers: &Answers, folder: &Path) -> Option<(PathBuf, bool)> {
    folder.ancestors().find_map(|folder| {
        let answer = answers.get(folder.to_string_lossy().as_ref())?;
        Some((folder.to_path_buf(), (*answer)?))
    })
}

/// Records answers for canonical folders; `None` removes one.
pub fn record(file: &Path, changes: &[(PathBuf, Option<bool>)]) -> Result<(), TrustError> {
    let failed = |source| TrustError::Write {
        file: file.to_owned(),
        source,
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let _lock = FileLock::acquire(file).map_err(failed)?;
    let mut answers = read(file)?;
    for (folder, answer) in changes {
        let folder = folder.to_string_lossy().into_owned();
        match answer {
            Some(answer) => answers.insert(folder, Some(*answer)),
            None => answers.remove(&folder),
        };
    }
    let mut text = serde_json::to_string_pretty(&answers).map_err(|e| failed(e.into()))?;
    text.push('\n');
    replace(file, text.as_bytes()).map_err(failed)
}

/// Replaces a file in one step. Only the user may read it.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    // Users keep such files as links to others.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.persist(file)?;
    Ok(())
}
