//! Options and arguments with which well-known programs run commands: `tar --to-command`,
//! `git -c core.pager=…`, `sed e`, `awk 'BEGIN { system(…) }'`. A rule with a wildcard for the
//! program does not mean these commands.

use super::options::{OptionName, value_at};
use super::word::{Piece, Word};
use super::wrappers::{Dialect, Inner, Wrapped};
use super::{awk, sed};

/// Options of a program that run their value, as a command of a shell.
struct Options {
    programs: &'static [&'static str],
    /// Options of one letter.
    short: &'static str,
    /// Options with one or two dashes, which are written without their dashes here.
    long: &'static [&'static str],
    /// Options whose value is no command but leads to one: code, a file with settings.
    opaque: &'static [&'static str],
}

const OPTIONS: &[Options] = &[
    Options {
        programs: &["tar", "gtar", "bsdtar"],
        short: "IF",
        long: &[
            "info-script",
            "new-volume-script",
            "rmt-command",
            "rsh-command",
            "to-command",
            "use-compress-program",
        ],
        opaque: &[],
    },
    options(&["sort", "gsort"], "", &["compress-program"], &[]),
    options(&["split", "gsplit"], "", &["filter"], &[]),
    options(&["rsync"], "e", &["rsh", "rsync-path"], &[]),
    options(&["scp", "sftp"], "SD", &[], &["F"]),
    options(&["ssh", "autossh"], "", &[], &["F"]),
    options(&["rg"], "", &["pre", "hostname-bin"], &[]),
    options(&["ag", "ack"], "", &["pager"], &[]),
    options(&["zip"], "", &["TT", "unzip-command"], &[]),
    options(&["man"], "PH", &["pager", "html"], &["C", "config-file"]),
    options(&["wget"], "", &["use-askpass"], &["e", "execute"]),
    options(&["go"], "", &["exec", "toolexec", "vettool"], &[]),
    options(&["cargo"], "", &[], &["config"]),
    options(
        &["npm", "npx", "pnpm"],
        "c",
        &["call", "editor", "git", "script-shell", "viewer"],
        &["node-options"],
    ),
    options(
        &["nix", "nix-build", "nix-shell"],
        "c",
        &["command", "run"],
        &[],
    ),
    options(&["start-stop-daemon"], "ax", &["exec", "startas"], &[]),
    options(&["less"], "", &[], &[]),
    options(&["make", "gmake"], "", &[], &["E", "eval"]),
    options(
        &["cc", "c++", "gcc", "g++", "clang", "clang++"],
        "",
        &["wrapper"],
        &["fplugin", "specs"],
    ),
    options(
        &["vi", "vim", "nvim", "view", "vimdiff", "gvim"],
        "",
        &[],
        &["c", "cmd", "S", "s", "u"],
    ),
    options(
        &["emacs"],
        "",
        &[],
        &["eval", "execute", "f", "funcall", "l", "load", "script"],
    ),
    options(&["mysql", "mariadb"], "", &["pager"], &[]),
];

const fn options(
    programs: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    opaque: &'static [&'static str],
) -> Options {
    Options {
        programs,
        short,
        long,
        opaque,
    }
}

/// Returns what the arguments of a program run; `None` if nothing is known to run.
/// `is_assigned` says whether the line itself sets a variable.
pub(super) fn unwrap_arguments(
    name: &str,
    args: &[Word],
    is_assigned: &dyn Fn(&str) -> bool,
) -> Option<Wrapped> {
    let mut found = InnerCommands::default();
    match name {
        "git" => super::git::find(args, is_assigned, &mut found),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => {
            for word in awk::programs(args, &mut found) {
                found.add_all(awk::read(&word).runs);
            }
        }
        "sed" | "gsed" => {
            for word in sed::scripts(args, &mut found) {
                found.add_all(sed::read(&word).runs);
            }
        }
        _ => {
            let options = (OPTIONS.iter()).find(|options| options.programs.contains(&name))?;
            options.find(args, &mut found);
            special(name, args, &mut found);
            let takes_files = matches!(name, "tar" | "gtar" | "bsdtar" | "rsync");
            found.open_options(args, is_assigned, takes_files);
        }
    }
    found.finish()
}

/// The inner commands that were found.
#[derive(Default)]
pub(super) struct InnerCommands {
    inner: Vec<Inner>,
    /// See [`Wrapped::at`].
    at: Option<usize>,
}

impl InnerCommands {
    /// Adds a command. `at` is the index of its word among the arguments.
    pub fn script(&mut self, at: usize, script: Word) {
        // The name of the program counts, too.
        self.at.get_or_insert(at + 1);
        self.inner.push(Inner::Script(script));
    }

    /// Adds a command whose text cannot be read, such as one in a file.
    pub fn unknown(&mut self, at: usize, word: &Word) {
        self.script(at, Word::open(word.quoted()));
    }

    /// Adds a command that is given as words. `at` is the index of the first among the arguments.
    pub fn words(&mut self, at: usize, words: &[Word]) {
        if !words.is_empty() {
            self.at.get_or_insert(at + 1);
            self.inner.push(Inner::Words {
                assignments: Vec::new(),
                words: words.to_vec(),
            });
        }
    }

    fn add_all(&mut self, scripts: Vec<Word>) {
        self.inner.extend(scripts.into_iter().map(Inner::Script));
    }

    /// Adds open words that may become an option which runs a command. See [`may_be_option`].
    pub fn open_options(
        &mut self,
        args: &[Word],
        is_assigned: &dyn Fn(&str) -> bool,
        with_files: bool,
    ) {
        for (index, word) in args.iter().enumerate() {
            if word.known().as_deref() == Some("--") {
                return;
            }
            if may_be_option(word, is_assigned, with_files) {
                self.unknown(index, word);
            }
        }
    }

    fn finish(self) -> Option<Wrapped> {
        (!self.inner.is_empty()).then_some(Wrapped {
            inner: self.inner,
            dialect: Some(Dialect::Posix),
            at: self.at,
            is_transparent: false,
        })
    }
}

/// Returns whether an open word may become an option: if the line, the output of a command or its
/// input determines the text. Variables that the line does not set count as names of files. With
/// `with_files`, a file that a wildcard finds may have the name of an option.
pub(super) fn may_be_option(
    word: &Word,
    is_assigned: &dyn Fn(&str) -> bool,
    with_files: bool,
) -> bool {
    let start = word.known_prefix();
    if !start.is_empty() && !start.starts_with('-') {
        return false;
    }
    word.0.iter().any(|piece| match piece {
        Piece::Open(text) => {
            let name = text.trim_start_matches(['$', '{']);
            let name = name.split(|char: char| !char.is_alphanumeric() && char != '_');
            let name = name.into_iter().next().unwrap_or_default();
            text.starts_with("$(")
                || text.starts_with('`')
                || text == super::wrappers::STDIN
                || with_files && text.starts_with(['*', '?', '['])
                || text.starts_with('$') && is_assigned(name)
        }
        _ => false,
    })
}

impl Options {
    fn find(&self, args: &[Word], found: &mut InnerCommands) {
        for index in 0..args.len() {
            if args[index].known().as_deref() == Some("--") {
                return;
            }
            for letter in self.short.chars() {
                if let Some((at, value)) = value_at(args, index, OptionName::Letter(letter)) {
                    found.script(at, value);
                }
            }
            for name in self.long {
                if let Some((at, value)) = value_at(args, index, OptionName::of(name)) {
                    found.script(at, value);
                }
            }
            for name in self.opaque {
                if let Some((at, value)) = value_at(args, index, OptionName::of(name)) {
                    found.unknown(at, &value);
                }
            }
        }
    }
}

/// Finds commands in options and arguments whose form is that of one program only.
fn special(name: &str, args: &[Word], found: &mut InnerCommands) {
    for (index, word) in args.iter().enumerate() {
        let start = word.known_prefix();
        match name {
            "tar" | "gtar" | "bsdtar" => {
                if let Some((at, value)) =
                    value_at(args, index, OptionName::AnyDashes("checkpoint-action"))
                {
                    match value.known_prefix().strip_prefix("exec=") {
                        Some(_) => found.script(at, value.without_prefix("exec=".len())),
                        None if value.is_open() => found.unknown(at, &value),
                        None => {}
                    }
                }
                // `tar xIf` is the old form of `tar -x -I -f`.
                if index == 0 && !start.starts_with('-') && start.contains(['I', 'F']) {
                    found.unknown(index, word);
                }
            }
            "ssh" | "autossh" | "scp" | "sftp" => {
                if let Some((at, value)) = value_at(args, index, OptionName::Letter('o')) {
                    let setting = value.known_prefix().to_lowercase();
                    let runs = ["proxycommand", "localcommand", "knownhostscommand", "match"];
                    if value.known_prefix().is_empty() && value.is_open() {
                        found.unknown(at, &value);
                    } else if let Some(key) = runs.iter().find(|key| setting.starts_with(**key)) {
                        found.script(at, value.without_prefix(key.len() + 1));
                    }
                }
            }
            "make" | "gmake"
                if start.starts_with("SHELL=") || start.contains("$(") || start.contains("!=") =>
            {
                found.unknown(index, word);
            }
            "less" | "vi" | "vim" | "nvim" | "view" | "vimdiff" | "gvim"
                if start.starts_with('+') =>
            {
                found.unknown(index, word);
            }
            _ => {}
        }
    }
}
