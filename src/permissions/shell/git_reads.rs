//! Finds what `git` prints of the contents of files: of those in the working tree, and of those in its
//! history, into which pi does not look.

use std::path::Path;

use pi_base::normalize;

use super::effects::has_flag;
use super::unnamed_reads::{Area, AreaKind, Target, UnnamedReads};
use super::values::Values;
use super::word::Word;
use super::{BaseFolders, effects};

/// Options of `git` before the subcommand that take the next word.
const TAKING_NEXT: [&str; 6] = [
    "-c",
    "-C",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--config-env",
];

/// Options with which a list of commits prints the changes.
const WITH_PATCH: [&str; 17] = [
    "-p",
    "-u",
    "-U",
    "-c",
    "-L",
    "-m",
    "-W",
    "--patch",
    "--patch-with-raw",
    "--patch-with-stat",
    "--unified",
    "--cc",
    "--dd",
    "--binary",
    "--remerge-diff",
    "--diff-merges",
    "--function-context",
];

/// Options with which a difference prints no contents.
const WITHOUT_CONTENT: [&str; 11] = [
    "-s",
    "--no-patch",
    "--stat",
    "--numstat",
    "--shortstat",
    "--dirstat",
    "--compact-summary",
    "--name-only",
    "--name-status",
    "--summary",
    "--raw",
];

/// Options that take no value, so that an operand behind them is one.
const WITHOUT_VALUE: [&str; 12] = [
    "-p",
    "-u",
    "-w",
    "-b",
    "-i",
    "--patch",
    "--cached",
    "--staged",
    "--oneline",
    "--follow",
    "--all",
    "--reverse",
];

/// The repository in which a command reads, and what its operands mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repository {
    /// The value of `-C`.
    folder: Option<Word>,
    /// Whether the repository is elsewhere, as `--git-dir` says.
    is_elsewhere: bool,
    /// Whether contents from the history are printed, also without a revision.
    reads_history: bool,
    /// Whether contents of the working tree or of `HEAD` are printed if no operand is a revision.
    reads_files: bool,
    /// Whether only the working folder counts, not the whole repository.
    is_in_folder: bool,
    /// Operands that are paths if these exist, or else revisions.
    operands: Vec<Word>,
    /// Operands behind `--`.
    paths: Vec<Word>,
    /// Paths of `REVISION:PATH`.
    blobs: Vec<Word>,
}

/// The reading of files by one command of `git`.
#[derive(Default)]
pub(super) struct GitReads {
    /// The files that it names.
    pub named: Vec<Word>,
    pub unnamed: Option<UnnamedReads>,
}

/// The words of a command of `git` by their meaning.
struct Parts<'a> {
    repository: Repository,
    command: String,
    /// The words behind the subcommand, up to `--`.
    args: &'a [Word],
}

/// Splits the arguments of `git`. Returns `None` without a subcommand.
fn parts(args: &[Word]) -> Option<Parts<'_>> {
    let mut repository = Repository::default();
    let mut at = 0;
    loop {
        let word = args.get(at)?;
        let start = word.known_prefix();
        if !start.starts_with('-') {
            break;
        }
        let next = args.get(at + 1);
        match start.as_str() {
            "-C" if repository.folder.is_none() => repository.folder = next.cloned(),
            "-C" => repository.is_elsewhere = true,
            _ => {}
        }
        repository.is_elsewhere |= ["--git-dir", "--work-tree"]
            .iter()
            .any(|option| start.starts_with(option));
        at += 1 + usize::from(TAKING_NEXT.contains(&start.as_str()));
    }
    // A subcommand that only the shell knows has no name, and may read anything anywhere.
    let command = args[at].known().unwrap_or_default();
    repository.is_elsewhere |= command.is_empty();
    let rest = &args[at + 1..];
    let dashes = rest
        .iter()
        .position(|word| word.known().as_deref() == Some("--"));
    let (args, paths) = match dashes {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[][..]),
    };
    repository.paths = paths.to_vec();
    Some(Parts {
        repository,
        command,
        args,
    })
}

/// Returns whether one of the words begins with one of the options, or is an abbreviation of it.
fn has(args: &[Word], options: &[&str]) -> bool {
    args.iter().any(|word| {
        let start = word.known_prefix();
        let name = start.split('=').next().unwrap_or_default();
        options.iter().any(|option| match option.starts_with("--") {
            true => start == *option || name.len() > 3 && option.starts_with(name),
            false => start.starts_with(option) && !start.starts_with("--"),
        })
    })
}

/// Returns whether a word as a whole is known to the shell only, so that it may be an option.
fn has_unknown_word(args: &[Word]) -> bool {
    args.iter()
        .any(|word| word.is_open() && word.known_prefix().is_empty() && word.0.len() == 1)
}

/// Returns what a command of `git` with these arguments prints of files.
pub(super) fn git_reads(args: &[Word]) -> GitReads {
    let Some(Parts {
        mut repository,
        command,
        args,
    }) = parts(args)
    else {
        return GitReads::default();
    };
    let with_patch = has(args, &WITH_PATCH);
    let is_diff = || with_patch || !has(args, &WITHOUT_CONTENT);
    let mut args = args;
    match command.as_str() {
        "" => repository.reads_history = true,
        "show" => repository.reads_history = is_diff(),
        "diff" | "difftool" if has(args, &["--no-index"]) => {
            let named = all_operands(&repository, args);
            return GitReads {
                named: named.clone(),
                unnamed: Some(UnnamedReads::of_folders(named)),
            };
        }
        "diff" | "difftool" => repository.reads_files = is_diff(),
        "log" | "reflog" | "whatchanged" => {
            repository.reads_history = with_patch || has_unknown_word(args);
        }
        "stash" => {
            repository.reads_history = has(args, &["-p", "--patch"]);
        }
        "format-patch" | "fast-export" | "archive" | "bundle" | "range-diff" | "send-email" => {
            repository.reads_history = true;
        }
        "diff-tree" | "diff-index" | "diff-files" => repository.reads_history = with_patch,
        "add" | "checkout" | "commit" | "reset" | "restore" => {
            // Operands are what is added or taken back, and most of them are no revisions.
            repository.reads_files = has(args, &["-p", "--patch"]) || is_verbose(&command, args);
        }
        "status" => repository.reads_files = is_verbose(&command, args),
        "blame" | "annotate" | "merge-file" => {
            let named = all_operands(&repository, args);
            return GitReads {
                named: named.clone(),
                unnamed: Some(UnnamedReads::of_operands(named)),
            };
        }
        "cat-file" => {
            let starts = || args.iter().map(Word::known_prefix);
            let only_checks = starts().any(|start| start.starts_with("--batch-check"));
            repository.reads_history = !only_checks && !has(args, &["-t", "-s", "-e"]);
            let is_type = |word: &Word| {
                let known = word.known();
                known.is_some_and(|it| matches!(it.as_str(), "blob" | "tree" | "commit" | "tag"))
            };
            if args.first().is_some_and(is_type) {
                args = &args[1..];
            }
        }
        "grep" => {
            repository.reads_files = true;
            repository.is_in_folder = true;
        }
        _ => {}
    }
    read(repository, &command, args)
}

/// Returns whether `status` and `commit` show differences.
fn is_verbose(command: &str, args: &[Word]) -> bool {
    matches!(command, "status" | "commit") && has_flag(args, 'v', "--verbose")
}

/// Finds the operands of a command, and which files they name.
fn read(mut repository: Repository, command: &str, args: &[Word]) -> GitReads {
    let mut named: Vec<Word> = Vec::new();
    let mut has_revision = false;
    let mut option = None;
    let mut has_pattern = command != "grep" || has(args, &["-e", "-f"]);
    for word in args {
        let start = word.known_prefix();
        if start.starts_with('-') {
            option = Some(start);
            continue;
        }
        let option = option.take();
        if is_magic(word) || command == "grep" && is_value_of_grep(option.as_deref(), word) {
            continue;
        }
        let is_value = option.is_some_and(|option| may_have_value(&option));
        match blob(word) {
            _ if !has_pattern => has_pattern = true,
            Some(path) => {
                named.push(in_folder(&repository, &path));
                repository.blobs.push(path);
            }
            // The value of an option limits nothing, even if it is the name of a file.
            None if is_value && command != "grep" => has_revision = true,
            None => {
                has_revision = true;
                repository.operands.push(word.clone());
            }
        }
    }
    let paths = std::mem::take(&mut repository.paths);
    // `:(glob)…` and the like may be anything, and `:!…` leaves something out.
    if paths
        .iter()
        .all(|word| !is_magic(word) || is_exclusion(word))
    {
        let plain = paths.into_iter().filter(|word| !is_magic(word));
        repository.paths = plain.collect();
    }
    let reads_any = repository.reads_history || repository.reads_files;
    let reads_blobs = !repository.blobs.is_empty()
        && matches!(
            command,
            "show" | "cat-file" | "diff" | "difftool" | "grep" | "archive"
        );
    if !reads_any && !reads_blobs {
        return GitReads::default();
    }
    if reads_blobs && !has_revision && command != "grep" {
        repository.reads_history = false;
        repository.reads_files = false;
    }
    if reads_any {
        let words = repository.operands.iter().chain(&repository.paths);
        named.extend(words.map(|word| in_folder(&repository, word)));
    }
    GitReads {
        named,
        unnamed: Some(UnnamedReads::of_repository(
            repository,
            !has(args, &["--no-index", "--no-exclude-standard"]),
        )),
    }
}

/// Returns whether the word behind an option may be its value.
fn may_have_value(option: &str) -> bool {
    let ends_with_number = option.ends_with(|char: char| char.is_ascii_digit());
    !option.contains('=') && !ends_with_number && !WITHOUT_VALUE.contains(&option)
}

/// Returns whether a word is a path with options, such as `:!file` and `:(glob)*.ts`.
fn is_magic(word: &Word) -> bool {
    let start = word.known_prefix();
    [":!", ":^", ":("].iter().any(|it| start.starts_with(it))
}

fn is_exclusion(word: &Word) -> bool {
    let start = word.known_prefix();
    [":!", ":^", ":(exclude"]
        .iter()
        .any(|it| start.starts_with(it))
}

/// Returns whether a word is the value of an option of `git grep`: `-A 3`, `-e pattern`.
fn is_value_of_grep(option: Option<&str>, word: &Word) -> bool {
    let is_number = || {
        let known = word.known();
        known.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    option.is_some_and(|option| matches!(option, "-e" | "-f") || is_number())
}

/// Returns all operands of a command, as they are relative to the working folder of the shell.
fn all_operands(repository: &Repository, args: &[Word]) -> Vec<Word> {
    let operands = effects::operands(args).into_iter();
    let all = operands.chain(repository.paths.iter().cloned());
    all.map(|word| in_folder(repository, &word)).collect()
}

/// Returns the path in `REVISION:PATH`, `:PATH` and `:0:PATH`.
fn blob(word: &Word) -> Option<Word> {
    let start = word.known_prefix();
    let at = start.find(':')?;
    let (revision, path) = (&start[..at], &start[at + 1..]);
    // `:/text` and `HEAD@{12:00}` are revisions.
    if revision.contains('{') || revision.is_empty() && path.starts_with('/') {
        return None;
    }
    let stage = ["0:", "1:", "2:", "3:"]
        .iter()
        .any(|it| path.starts_with(it));
    let stage = if revision.is_empty() && stage { 2 } else { 0 };
    Some(word.without_prefix(at + 1 + stage))
}

/// Returns a path as it is relative to the working folder of the shell.
fn in_folder(repository: &Repository, word: &Word) -> Word {
    let start = word.known_prefix();
    let Some(folder) = &repository.folder else {
        return word.clone();
    };
    if start.starts_with(['/', '~']) {
        return word.clone();
    }
    let mut joined = folder.clone();
    joined.push('/');
    for piece in &word.0 {
        match piece {
            super::word::Piece::Text(text) => joined.push_text(text),
            other => joined.0.push(other.clone()),
        }
    }
    joined
}

impl Repository {
    /// Puts the values of variables in the place of words, as far as the line sets them. Returns the
    /// files that they name.
    pub fn resolve(&mut self, values: &Values) -> Vec<Word> {
        let mut named = Vec::new();
        let lists = [&mut self.operands, &mut self.paths, &mut self.blobs];
        for list in lists {
            for word in std::mem::take(list) {
                let words = values.expand(&word).filter(|_| word.is_open());
                let Some(words) = words else {
                    list.push(word);
                    continue;
                };
                named.extend(words.iter().cloned());
                list.extend(words);
            }
        }
        named.iter().map(|word| in_folder(self, word)).collect()
    }

    /// Returns what the command may read; `None` if that is unknown. Accesses the file system.
    pub fn areas(&self, reads: &UnnamedReads, base_folders: &BaseFolders) -> Option<Vec<Area>> {
        if self.is_elsewhere {
            return None;
        }
        let base = self.folder.clone().unwrap_or_else(|| Word::text("."));
        let mut areas = Vec::new();
        for target in reads.targets(&base, base_folders) {
            let Target::Path(folder) = target else {
                return None;
            };
            // Without a repository the command fails.
            let mut above = folder.ancestors();
            let Some(root) = above.find(|it| it.join(".git").exists()) else {
                continue;
            };
            areas.extend(self.areas_in(&folder, root, reads, base_folders)?);
        }
        Some(areas)
    }

    fn areas_in(
        &self,
        folder: &Path,
        root: &Path,
        reads: &UnnamedReads,
        base_folders: &BaseFolders,
    ) -> Option<Vec<Area>> {
        let mut areas = Vec::new();
        for path in &self.blobs {
            let text = path.known().filter(|text| !text.contains("{}"))?;
            let from = match text.starts_with("./") || text.starts_with("../") {
                true => folder,
                false => root,
            };
            areas.push(Area::of(normalize(&from.join(text)), AreaKind::File));
        }
        let mut reads_history = self.reads_history;
        let mut limits: Vec<Target> = Vec::new();
        for word in &self.operands {
            // The newest commit has hardly more than the working tree.
            if word.known().is_some_and(|it| it == "HEAD" || it == "@") {
                continue;
            }
            let path = word.known().map(|text| folder.join(text));
            match path.filter(|path| path.symlink_metadata().is_ok()) {
                Some(path) => limits.push(Target::Path(normalize(&path))),
                None => reads_history = true,
            }
        }
        // A revision that prints nothing by itself, as in `git log main`.
        reads_history &= self.reads_history || self.reads_files;
        for word in &self.paths {
            limits.extend(reads.targets(&in_folder(self, word), base_folders));
        }
        if !reads_history && !self.reads_files {
            return Some(areas);
        }
        let kind = match reads_history {
            true => AreaKind::History,
            false => AreaKind::Folder,
        };
        if limits.is_empty() {
            let whole = if self.is_in_folder { folder } else { root };
            areas.push(Area::of(whole.to_owned(), kind));
        }
        for limit in limits {
            match limit {
                Target::Unknown => return None,
                // A file that exists is named, and is no folder that may be one in the history.
                Target::Path(path) if path.is_file() => {}
                Target::Path(path) => areas.push(Area::of(path, kind)),
                Target::Wildcard { mut area, .. } => {
                    area.kind = kind;
                    area.depth = None;
                    areas.push(area);
                }
            }
        }
        Some(areas)
    }
}
