//! Commands that read files which their arguments do not name: what is in a folder (`grep -r`,
//! `tar`), and what a wildcard stands for (`cat *`).

use std::path::{Path, PathBuf};

use globset::Glob;
use pi_base::normalize;

use super::effects::{TEXT_PROGRAMS, as_path, has_flag, operands};
use super::git_reads::{Repository, git_reads};
use super::operands::file_operands;
use super::options::{OptionName, value_at};
use super::values::Values;
use super::{BaseFolders, Command, Piece, Word};
use crate::rule::{escape, text_matches};

/// Programs that use the files in their arguments without telling what is in them.
const NAME_PROGRAMS: [&str; 15] = [
    "basename", "chmod", "chown", "dirname", "du", "file", "ls", "mkdir", "realpath", "rm",
    "rmdir", "stat", "test", "touch", "wc",
];

/// A command that reads files which the line does not name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnnamedReads {
    /// The command, as one can write it.
    pub command: String,
    pub skipped: Skipped,
    /// Words that may be folders or have wildcards.
    words: Vec<Word>,
    /// Whether a folder is read with what is in it.
    is_recursive: bool,
    /// Whether the working folder is read if no word names a folder or file.
    reads_working_folder: bool,
    /// Whether the first word may be a pattern instead of a folder.
    begins_with_pattern: bool,
    /// Operands that name the files which are read.
    pub(super) operands: Vec<Word>,
    /// Whether only the shell knows one of the operands.
    pub(super) has_unknown: bool,
    pub(super) git: Option<Repository>,
    /// See [`super::FileUse::folders`].
    pub(super) folders: Option<Vec<PathBuf>>,
}

/// The files that a command leaves out, as far as its options tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Only files whose name matches one of these are read, if there are some.
    include: Vec<String>,
    exclude: Vec<String>,
    exclude_folders: Vec<String>,
    /// Whether ignore files count.
    pub is_ignoring: bool,
    /// Whether names that begin with a dot are left out.
    pub without_hidden: bool,
    /// Whether symbolic links to folders are followed.
    pub follows_links: bool,
}

impl Skipped {
    /// Returns whether a file or folder with this name is certainly not read.
    pub fn leaves_out(&self, name: &str, is_folder: bool) -> bool {
        let matches = |patterns: &[String], if_broken: bool| {
            patterns.iter().any(|pattern| match Glob::new(pattern) {
                Ok(glob) => glob.compile_matcher().is_match(name),
                Err(_) => if_broken,
            })
        };
        if is_folder {
            return matches(&self.exclude_folders, false);
        }
        match (self.include.as_slice(), self.exclude.as_slice()) {
            ([], exclude) => matches(exclude, false),
            (include, []) => !matches(include, true),
            // The last of the options that match wins.
            _ => false,
        }
    }
}

/// How an area is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaKind {
    /// The files in the folder.
    Folder,
    /// All that the folder had at some time, as a history has it.
    History,
    /// The folder's own path, which is that of a file.
    File,
}

/// The files below a folder that a command may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    pub folder: PathBuf,
    pub kind: AreaKind,
    /// The paths in the folder that a wildcard may stand for; see [`crate::rule::text_matches`].
    pub pattern: Option<String>,
    /// The number of levels below the folder that are read.
    pub depth: Option<usize>,
}

impl Area {
    /// Makes an area of all that is below a path.
    pub(super) fn of(folder: PathBuf, kind: AreaKind) -> Self {
        Self {
            folder,
            kind,
            pattern: None,
            depth: None,
        }
    }
}

impl UnnamedReads {
    /// Makes the reading of all that is in some folders.
    pub(super) fn of_folders(words: Vec<Word>) -> Self {
        Self {
            words,
            is_recursive: true,
            ..Self::default()
        }
    }

    /// Makes the reading of files that a command names.
    pub(super) fn of_operands(operands: Vec<Word>) -> Self {
        Self {
            operands,
            ..Self::default()
        }
    }

    /// Makes the reading of `git` in a repository. With `is_ignoring` ignored files do not count.
    pub(super) fn of_repository(repository: Repository, is_ignoring: bool) -> Self {
        Self {
            skipped: Skipped {
                is_ignoring,
                ..Skipped::default()
            },
            git: Some(repository),
            ..Self::default()
        }
    }

    /// Returns whether the command reads something besides what it names.
    pub(super) fn reads_something(&self) -> bool {
        let has_words = !self.words.is_empty() || self.reads_working_folder;
        has_words || self.has_unknown || self.git.is_some()
    }

    /// Puts the values of variables in the place of words, as far as the line sets them. Returns the
    /// files that operands name then.
    pub(super) fn resolve(&mut self, values: &Values, base_folders: &BaseFolders) -> Vec<Word> {
        let mut named = Vec::new();
        let is_unknown = |word: &Word| Form::of(word, base_folders).is_none();
        for word in std::mem::take(&mut self.operands) {
            if !is_unknown(&word) {
                continue;
            }
            match values.expand(&word) {
                Some(words) if !words.iter().any(is_unknown) => {
                    // A wildcard may stand for files, and other words name one.
                    let has_wildcard = |word: &Word| {
                        let mut pieces = word.0.iter();
                        pieces.any(|piece| matches!(piece, Piece::Open(_)))
                    };
                    let (open, known): (Vec<Word>, Vec<Word>) =
                        words.into_iter().partition(has_wildcard);
                    named.extend(known);
                    self.words.extend(open);
                }
                _ => self.has_unknown |= is_made_by_shell(&word),
            }
        }
        for word in std::mem::take(&mut self.words) {
            let words = values.expand(&word).filter(|_| is_unknown(&word));
            self.words.extend(words.unwrap_or_else(|| vec![word]));
        }
        if let Some(git) = &mut self.git {
            named.extend(git.resolve(values));
        }
        named
    }

    /// Returns what the command may read; `None` if that is unknown. Accesses the file system.
    pub fn areas(&self, base_folders: &BaseFolders) -> Option<Vec<Area>> {
        if self.has_unknown {
            return None;
        }
        if let Some(git) = &self.git {
            return git.areas(self, base_folders);
        }
        let mut areas = Vec::new();
        let mut names_something = false;
        for (index, word) in self.words.iter().enumerate() {
            for target in self.targets(word, base_folders) {
                let area = match target {
                    Target::Unknown if self.is_recursive => return None,
                    Target::Unknown => continue,
                    Target::Path(path) => {
                        let Ok(kind) = std::fs::metadata(&path) else {
                            continue;
                        };
                        let folder = (kind.is_dir() && self.is_recursive).then_some(path);
                        folder.map(|folder| Area::of(folder, AreaKind::Folder))
                    }
                    Target::Wildcard { area, is_something } => {
                        if !is_something {
                            areas.push(area);
                            continue;
                        }
                        Some(area)
                    }
                };
                names_something |= index > 0 || !self.begins_with_pattern;
                areas.extend(area);
            }
        }
        if self.reads_working_folder && !names_something {
            let folders = self.folders.as_ref()?.iter();
            areas.extend(folders.map(|folder| Area::of(folder.clone(), AreaKind::Folder)));
        }
        Some(areas)
    }

    /// Returns the paths that a word may stand for.
    pub(super) fn targets(&self, word: &Word, base_folders: &BaseFolders) -> Vec<Target> {
        let Some(form) = Form::of(word, base_folders) else {
            return vec![Target::Unknown];
        };
        let starts = match (Path::new(&form.folder).is_absolute(), &self.folders) {
            (true, _) => vec![PathBuf::new()],
            (false, Some(folders)) => folders.clone(),
            (false, None) => return vec![Target::Unknown],
        };
        let target = |start: PathBuf| {
            let folder = normalize(&start.join(&form.folder));
            match &form.pattern {
                None => Target::Path(folder),
                Some(pattern) => Target::Wildcard {
                    is_something: form.depth == Some(1) && has_entry(&folder, pattern),
                    area: Area {
                        folder,
                        kind: AreaKind::Folder,
                        pattern: Some(pattern.clone()),
                        depth: form.depth.filter(|_| !self.is_recursive),
                    },
                },
            }
        };
        starts.into_iter().map(target).collect()
    }
}

pub(super) enum Target {
    Path(PathBuf),
    Wildcard {
        area: Area,
        /// Whether the wildcard certainly stands for something. Otherwise it may be the value of an
        /// option, as in `rg x -g *.ts`.
        is_something: bool,
    },
    Unknown,
}

fn has_entry(folder: &Path, pattern: &str) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| text_matches(pattern, &name.to_string_lossy()))
}

/// A word as a folder and a pattern for what is in it.
struct Form {
    folder: String,
    pattern: Option<String>,
    depth: Option<usize>,
}

impl Form {
    /// Returns `None` if the word has a part other than text and wildcards.
    fn of(word: &Word, base_folders: &BaseFolders) -> Option<Self> {
        let mut text = String::new();
        let mut pattern: Option<String> = None;
        let mut is_deep = false;
        for piece in &word.0 {
            let (before, is_open, after) = match piece {
                Piece::Text(part) => (part.as_str(), false, ""),
                Piece::Tilde | Piece::Home(_) => {
                    let home = base_folders.home.as_deref().filter(|_| text.is_empty())?;
                    (home.to_str()?, false, "")
                }
                Piece::Open(source) => {
                    let (before, after) = wildcard(source)?;
                    is_deep |= source.contains('/');
                    (before, true, after)
                }
            };
            match &mut pattern {
                None => text.push_str(before),
                Some(pattern) => pattern.push_str(&escape(before)),
            }
            if is_open {
                // `**` may stand for several folders.
                is_deep |= pattern.as_ref().is_some_and(|it| it.ends_with('*'));
                let pattern = pattern.get_or_insert_with(|| {
                    let name = text.split_off(text.rfind('/').map_or(0, |at| at + 1));
                    escape(&name)
                });
                pattern.push('*');
                pattern.push_str(&escape(after));
            }
        }
        let levels = pattern.as_ref().map(|it| it.matches('/').count() + 1);
        Some(Self {
            folder: text,
            pattern,
            depth: levels.filter(|_| !is_deep),
        })
    }
}

/// Returns whether the shell makes the word of a variable or of the output of a command. `<(ls)` is no
/// such word, and neither is `{}` of `find -exec`, for which `find` counts.
fn is_made_by_shell(word: &Word) -> bool {
    word.0.iter().any(|piece| match piece {
        Piece::Open(source) => {
            let is_process = source.starts_with("<(") || source.starts_with(">(");
            !is_process && (source.contains(['$', '`']) || source.starts_with('~'))
        }
        _ => false,
    })
}

/// Returns the known text before and after a wildcard or braces; `None` for another expansion.
fn wildcard(source: &str) -> Option<(&str, &str)> {
    if matches!(source, "*" | "?") || source.starts_with('[') {
        return Some(("", ""));
    }
    let (before, rest) = source.split_once('{')?;
    if source.contains(['$', '`']) || !rest.contains(',') && !rest.contains("..") {
        return None;
    }
    let is_plain = |text: &&str| !text.contains(['*', '?', '[', '\\', '\'', '"']);
    let after = rest.rsplit('}').next().filter(is_plain);
    Some((
        Some(before).filter(is_plain).unwrap_or_default(),
        after.unwrap_or_default(),
    ))
}

/// Returns what a command reads without naming it. The commands that it runs are known.
pub(super) fn unnamed_reads(command: &Command) -> Option<UnnamedReads> {
    let (name, args) = command.words.split_first()?;
    let name = name.base_name().known()?;
    let mut reads = match name.as_str() {
        "git" => git_reads(args).unnamed,
        _ => recursive_reads(&name, args, &command.inner),
    };
    let by_name = [&TEXT_PROGRAMS[..], &NAME_PROGRAMS[..]].concat();
    if reads.is_none() && !by_name.contains(&name.as_str()) {
        let words: Vec<Word> = args.iter().filter_map(as_path).collect();
        let words = words.into_iter().filter(Word::is_open).collect();
        reads = Some(UnnamedReads {
            words,
            ..UnnamedReads::default()
        });
    }
    let operands = file_operands(&name, args);
    if !operands.is_empty() {
        reads.get_or_insert_default().operands = operands;
    }
    let mut reads = reads.filter(|it| it.reads_something() || !it.operands.is_empty())?;
    let words: Vec<String> = command.words.iter().map(Word::quoted).collect();
    reads.command = words.join(" ");
    Some(reads)
}

/// Returns what a command reads that takes folders with what is in them.
fn recursive_reads(name: &str, args: &[Word], inner: &[Command]) -> Option<UnnamedReads> {
    let words = operands(args);
    let reads = UnnamedReads {
        is_recursive: true,
        ..UnnamedReads::default()
    };
    let has = |options: &[&str]| {
        let mut starts = args.iter().map(Word::known_prefix);
        starts.any(|start| options.iter().any(|option| start.starts_with(option)))
    };
    let is_recursive =
        || has_flag(args, 'r', "--recursive") || has_flag(args, 'R', "--dereference");
    let search = UnnamedReads {
        words: words.clone(),
        reads_working_folder: true,
        begins_with_pattern: true,
        ..reads.clone()
    };
    match name {
        "grep" | "egrep" | "fgrep" | "ggrep" | "zgrep" | "rgrep" => {
            let by_directories = has(&["--directories=rec", "-drec"])
                || words
                    .iter()
                    .any(|word| word.known().as_deref() == Some("recurse"));
            (name == "rgrep" || is_recursive() || by_directories).then(|| UnnamedReads {
                skipped: Skipped {
                    follows_links: has_flag(args, 'R', "--dereference"),
                    ..skipped_by_options(args)
                },
                ..search
            })
        }
        "ag" | "ack" | "ugrep" | "ug" => Some(search),
        "rg" if !has(&["--files"]) => {
            let skips = !reads_all(args);
            Some(UnnamedReads {
                skipped: Skipped {
                    is_ignoring: skips,
                    without_hidden: skips,
                    follows_links: has_flag(args, 'L', "--follow"),
                    ..Skipped::default()
                },
                ..search
            })
        }
        "tar" | "gtar" | "bsdtar" => {
            let modes = args.first()?.known_prefix();
            let only_lists = !modes.starts_with("--") && modes.contains(['x', 't'])
                || has(&["--extract", "--get", "--list", "-x", "-t"]);
            let skipped = Skipped {
                follows_links: has_flag(args, 'h', "--dereference"),
                ..skipped_by_options(args)
            };
            (!only_lists).then_some(UnnamedReads {
                words,
                skipped,
                ..reads
            })
        }
        "cp" | "scp" | "rsync" => {
            let copies_folders =
                name == "rsync" || is_recursive() || has_flag(args, 'a', "--archive");
            let sources = words.len().saturating_sub(1);
            copies_folders.then(|| UnnamedReads {
                words: words[..sources].to_vec(),
                ..reads
            })
        }
        "diff" | "zip" => is_recursive().then_some(UnnamedReads { words, ..reads }),
        "7z" | "7za" | "7zz" => Some(UnnamedReads { words, ..reads }),
        "xargs" | "gxargs" | "parallel" if prints_contents(inner) => Some(UnnamedReads {
            reads_working_folder: true,
            ..reads
        }),
        "find" | "gfind" | "bfs" | "fd" | "fdfind" if prints_contents(inner) => {
            let is_start = |word: &&Word| !word.known_prefix().starts_with(['-', '(', '!']);
            let start: Vec<Word> = match name {
                "fd" | "fdfind" => words,
                _ => args.iter().take_while(is_start).cloned().collect(),
            };
            Some(UnnamedReads {
                words: start,
                reads_working_folder: true,
                skipped: skipped_by_find(args),
                begins_with_pattern: name.starts_with("fd"),
                ..reads
            })
        }
        _ => None,
    }
}

/// Returns whether options of `rg` may make it read hidden or ignored files.
fn reads_all(args: &[Word]) -> bool {
    args.iter().any(|word| {
        let start = word.known_prefix();
        let is_short = start.starts_with('-') && !start.starts_with("--");
        is_short && start.contains(['u', '.'])
            || ["--hidden", "--no-ignore", "--unrestricted"]
                .map(|it| start.starts_with(it))
                .contains(&true)
            || word.is_open() && start.is_empty()
    })
}

/// Returns whether one of the commands may print the contents of its files.
fn prints_contents(commands: &[Command]) -> bool {
    commands.iter().any(|command| {
        let name = command.words.first().map(Word::base_name);
        let name = name.and_then(|it| it.known()).unwrap_or_default();
        let by_itself =
            !NAME_PROGRAMS.contains(&name.as_str()) && !TEXT_PROGRAMS.contains(&name.as_str());
        by_itself || prints_contents(&command.inner)
    })
}

/// Reads `--include`, `--exclude` and `--exclude-dir` of `grep` and `tar`.
fn skipped_by_options(args: &[Word]) -> Skipped {
    let mut skipped = Skipped::default();
    for (index, word) in args.iter().enumerate() {
        if word.is_open() {
            continue;
        }
        let lists = [
            ("include", &mut skipped.include),
            ("exclude", &mut skipped.exclude),
            ("exclude-dir", &mut skipped.exclude_folders),
        ];
        for (option, list) in lists {
            // An abbreviation may be another option, which leaves nothing out.
            let value = value_at(args, index, OptionName::Exact(option));
            let Some(value) = value.and_then(|(_, value)| value.known()) else {
                continue;
            };
            let value = value.trim_end_matches('/').to_owned();
            match option {
                // A pattern with a folder is not compared with a name alone.
                "include" if value.contains('/') => list.push("*".into()),
                _ if value.contains('/') => {}
                _ => list.push(value),
            }
        }
    }
    let is_open = |word: &Word| word.is_open() && word.known_prefix().starts_with("--include");
    if args.iter().any(is_open) {
        skipped.include.push("*".into());
    }
    skipped
}

/// Reads `-name` of a `find` whose tests all have to hold.
fn skipped_by_find(args: &[Word]) -> Skipped {
    let has_choice = args.iter().any(|word| {
        let text = word.known();
        text.is_none_or(|it| matches!(it.as_str(), "-o" | "-or" | "," | "!" | "-not"))
    });
    let mut skipped = Skipped {
        follows_links: has_flag(args, 'L', "-follow"),
        ..Skipped::default()
    };
    let names: Vec<String> = (args.windows(2))
        .filter(|pair| pair[0].known().as_deref() == Some("-name"))
        .filter_map(|pair| pair[1].known())
        .collect();
    if !has_choice {
        // One of the names is enough to tell what is certainly left out.
        skipped.include.extend(names.into_iter().next());
    }
    skipped
}
