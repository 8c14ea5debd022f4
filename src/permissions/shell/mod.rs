//! Finds the simple commands of a shell line, the files that it visibly reads and writes, and
//! what runs inside `sh -c`, `xargs`, substitutions and the like. The parser is tree-sitter with
//! the grammar of bash. If the meaning of a line is not certain, parsing fails with the reason.

mod assignments;
mod awk;
mod effects;
mod executors;
mod git;
mod git_reads;
mod lexer;
mod operands;
mod options;
mod redirections;
mod runs;
mod sed;
mod simple_command;
mod unnamed_reads;
mod values;
mod variables;
mod walk;
mod word;
mod wrappers;

use std::path::{Path, PathBuf};

use tree_sitter::Parser;

use pi_base::normalize;
pub(crate) use unnamed_reads::{Area, AreaKind, Skipped, UnnamedReads};
pub use word::{Piece, Word};

/// Longest line that is parsed, in bytes.
const MAX_LINE: usize = 64 << 10;
/// Deepest nesting of commands within commands.
const MAX_DEPTH: usize = 60;
/// Deepest nesting of scripts within scripts: `sh -c "sh -c …"`.
const MAX_SCRIPTS: usize = 6;

/// The reason why a line was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotUnderstood(String);

impl NotUnderstood {
    fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The folders from which the paths of a line start.
#[derive(Clone, Debug)]
pub struct BaseFolders {
    pub cwd: PathBuf,
    pub home: Option<PathBuf>,
}

/// A simple command with the commands that it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Variables that are set for this command only, such as `FOO=bar` in `FOO=bar make`.
    pub assignments: Vec<(String, Word)>,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Commands that it runs: those of `sh -c`, `find -exec`, `xargs`, `sudo`.
    pub inner: Vec<Command>,
    /// The index of the word with the first inner command, if it is among `words`.
    pub inner_at: Option<usize>,
    /// Whether the command adds nothing to what the inner commands do, as `nohup` and `timeout 5`.
    pub is_transparent: bool,
}

impl Command {
    /// Returns whether variables are set that may change what the command does.
    pub fn has_settings(&self) -> bool {
        let mut names = self.assignments.iter().map(|(name, _)| name);
        names.any(|name| !variables::is_harmless(name))
    }
}

/// A file that a line reads or writes, as it is written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    pub word: Word,
    pub is_write: bool,
    /// Whether the shell itself opens the file.
    pub is_redirection: bool,
    /// The folders that a relative path may start from; `None` after a `cd` to an unknown one.
    folders: Option<Vec<PathBuf>>,
}

impl FileUse {
    /// Returns the absolute paths that are possible; `None` if the path is open.
    pub fn paths(&self, base_folders: &BaseFolders) -> Option<Vec<PathBuf>> {
        let mut text = String::new();
        for piece in &self.word.0 {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Tilde | Piece::Home(_) => {
                    let home = base_folders.home.as_deref().filter(|_| text.is_empty())?;
                    text.push_str(home.to_str()?);
                }
                Piece::Open(_) => return None,
            }
        }
        if Path::new(&text).is_absolute() {
            return Some(vec![normalize(Path::new(&text))]);
        }
        let folders = self.folders.as_deref()?;
        let absolute = |folder: &PathBuf| normalize(&folder.join(&text));
        Some(folders.iter().map(absolute).collect())
    }
}

/// The visible effects of a shell line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub commands: Vec<Command>,
    pub files: Vec<FileUse>,
    /// Commands that read files which the line does not name.
    pub(crate) unnamed_reads: Vec<UnnamedReads>,
}

/// Files that a line writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Absolute paths, without `.` and `..`; symbolic links are not followed.
    pub files: Vec<PathBuf>,
    /// Targets that only the shell knows, such as `$file`, as they are written in the line.
    pub open: Vec<String>,
    /// Why the line was not understood. Then the other members are empty.
    pub not_understood: Option<String>,
}

/// Returns the files that a line visibly writes: through redirections and by commands such as
/// `tee`, `cp`, `mv`, `rm` and `sed -i`, also within `sh -c`, `sudo` or substitutions. A program
/// may write other files, too.
pub fn visible_writes(line: &str, base_folders: &BaseFolders) -> Writes {
    let parsed = match parse(line, base_folders) {
        Ok(parsed) => parsed,
        Err(NotUnderstood(reason)) => {
            return Writes {
                not_understood: Some(reason),
                ..Writes::default()
            };
        }
    };
    let mut writes = Writes::default();
    for file in parsed.files.iter().filter(|file| file.is_write) {
        match file.paths(base_folders) {
            Some(paths) => writes.files.extend(paths),
            None => writes.open.push(file.word.quoted()),
        }
    }
    writes.files.sort();
    writes.files.dedup();
    writes
}

/// Parses a line. The error is the reason why it was not understood.
pub fn parse(line: &str, base_folders: &BaseFolders) -> Result<Line, NotUnderstood> {
    let mut walk = walk::Walk::new(base_folders);
    walk.script(line)?;
    Ok(walk.finish())
}

/// Returns whether a backslash at the end of a line is behind a `$` or the name of a variable, or
/// before a `#`. The shell removes it first and reads `$(`, a longer name, or a word with a `#`; the
/// grammar does not.
fn has_unread_continuation(source: &str) -> bool {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    source.match_indices("\\\n").any(|(at, end)| {
        let before = source[..at].trim_end_matches(is_name);
        before.ends_with('$') || source[at + end.len()..].starts_with('#')
    })
}

/// Returns whether a character behind the digits of a brace, as in `{1..2}`, is one for which the
/// grammar reads outside of a table: <https://github.com/tree-sitter/tree-sitter-bash/issues/337>.
fn has_crashing_brace(source: &str) -> bool {
    const END_OF_TABLE: char = '\u{ff}';
    let is_digit = |char: char| char.is_ascii_digit();
    source.match_indices('{').any(|(at, _)| {
        let first = source[at + 1..].trim_start_matches(is_digit);
        let second = first
            .strip_prefix("..")
            .map(|rest| rest.trim_start_matches(is_digit));
        let mut next = [Some(first), second].into_iter().flatten();
        next.any(|rest| rest.starts_with(|char| char > END_OF_TABLE))
    })
}

/// Parses a script. Fails if the script is too long or has a form that the parser and the shell may
/// read in different ways.
fn syntax_tree(source: &str) -> Result<tree_sitter::Tree, NotUnderstood> {
    if source.len() > MAX_LINE {
        return Err(NotUnderstood::new(format!(
            "it is longer than {} KB",
            MAX_LINE >> 10
        )));
    }
    if source.contains('\0') {
        return Err(NotUnderstood::new("it contains a NUL character"));
    }
    if has_crashing_brace(source) {
        return Err(NotUnderstood::new("a special character follows a brace"));
    }
    if has_unread_continuation(source) {
        return Err(NotUnderstood::new("a word goes on in the next line"));
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .map_err(|error| NotUnderstood::new(error.to_string()))?;
    let tree = parser
        .parse(source, None)
        .ok_or_else(|| NotUnderstood::new("the parser stopped"))?;
    if tree.root_node().has_error() {
        return Err(NotUnderstood::new("its syntax was not understood"));
    }
    Ok(tree)
}

#[cfg(test)]
mod tests;
