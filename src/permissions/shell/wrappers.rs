//! Commands that run other commands: `env`, `sudo`, `sh -c`, `xargs`, `find -exec`.

use super::options::OptionName::{Letter, Long};
use super::options::first_value;
use super::word::{Piece, Word};
use super::{executors, runs};

/// Text of the open word that stands for the standard input.
pub(super) const STDIN: &str = "what stdin contains";

/// A command or a script that a command runs.
pub(super) enum Inner {
    Words {
        assignments: Vec<(String, Word)>,
        words: Vec<Word>,
    },
    /// A script in an argument.
    Script(Word),
    /// A script in the standard input.
    Stdin,
}

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    /// `sh`, which may be any shell of this family: `((x))` runs `x` in some.
    Posix,
}

pub(super) struct Wrapped {
    pub inner: Vec<Inner>,
    /// The language of the scripts in `inner`; `None` for that of the line around them.
    pub dialect: Option<Dialect>,
    /// The index of the first word that belongs to `inner`, counted with the name of the command.
    pub at: Option<usize>,
    /// See [`super::Command::is_transparent`].
    pub is_transparent: bool,
}

/// A program that runs its first operand, with the operands behind it as arguments.
struct Prefix {
    name: &'static str,
    /// Options that take the next word, short ones as letters.
    short: &'static str,
    long: &'static [&'static str],
    /// Number of operands before the command.
    operands: usize,
    is_transparent: bool,
}

const fn prefix(
    name: &'static str,
    short: &'static str,
    long: &'static [&'static str],
    operands: usize,
    is_transparent: bool,
) -> Prefix {
    Prefix {
        name,
        short,
        long,
        operands,
        is_transparent,
    }
}

/// Programs that run their first operand.
const PREFIXES: &[Prefix] = &[
    prefix("builtin", "", &[], 0, true),
    prefix("busybox", "", &[], 0, false),
    prefix("catchsegv", "", &[], 0, false),
    prefix("caffeinate", "tw", &[], 0, true),
    prefix("chroot", "", &["--userspec", "--groups"], 1, false),
    prefix("chrt", "TPD", &[], 1, false),
    prefix("command", "", &[], 0, true),
    prefix("coproc", "", &[], 0, true),
    prefix("dbus-run-session", "", &[], 0, false),
    prefix("doas", "uC", &[], 0, false),
    prefix("exec", "a", &[], 0, true),
    prefix("fakeroot", "lbis", &[], 0, false),
    prefix("firejail", "", &[], 0, false),
    prefix(
        "flock",
        "wE",
        &["--timeout", "--wait", "--conflict-exit-code"],
        1,
        false,
    ),
    prefix("eatmydata", "", &[], 0, false),
    prefix("faketime", "", &[], 1, false),
    prefix("gosu", "", &[], 1, false),
    prefix("ionice", "cnpPu", &["--class", "--classdata"], 0, true),
    prefix("linux32", "", &[], 0, false),
    prefix("linux64", "", &[], 0, false),
    prefix("ltrace", "oepsanluFS", &[], 0, false),
    prefix("nice", "n", &["--adjustment"], 0, true),
    prefix("nocorrect", "", &[], 0, true),
    prefix("noglob", "", &[], 0, true),
    prefix("nohup", "", &[], 0, true),
    prefix("nsenter", "tSG", &["--target"], 0, false),
    prefix("pkexec", "", &["--user"], 0, false),
    prefix("prlimit", "p", &["--pid"], 0, false),
    prefix("proot", "rbwq", &[], 0, false),
    prefix("proxychains", "f", &[], 0, false),
    prefix("proxychains4", "f", &[], 0, false),
    prefix("rlwrap", "abcCDefFgHilmMNopPqrRsSStwz", &[], 0, false),
    prefix("run0", "u", &["--user"], 0, false),
    prefix("setarch", "", &[], 0, false),
    prefix("setpriv", "", &["--reuid", "--regid", "--groups"], 0, false),
    prefix("setsid", "", &[], 0, true),
    prefix(
        "stdbuf",
        "ioe",
        &["--input", "--output", "--error"],
        0,
        true,
    ),
    prefix(
        "strace",
        "oeEsapPOSIUbX",
        &["--output", "--trace"],
        0,
        false,
    ),
    prefix(
        "sudo",
        "CDghpRrTtUu",
        &[
            "--chdir",
            "--chroot",
            "--close-from",
            "--group",
            "--host",
            "--prompt",
            "--role",
            "--type",
            "--other-user",
            "--user",
            "--command-timeout",
        ],
        0,
        false,
    ),
    prefix(
        "systemd-run",
        "pEtuMHGd",
        &["--unit", "--property", "--setenv", "--uid"],
        0,
        false,
    ),
    prefix("taskset", "", &[], 1, false),
    prefix("time", "fo", &["--format", "--output"], 0, true),
    prefix("timeout", "ks", &["--kill-after", "--signal"], 1, true),
    prefix("timelimit", "tTsS", &[], 0, false),
    prefix("tini", "pe", &[], 0, false),
    prefix("toybox", "", &[], 0, false),
    prefix("torsocks", "", &[], 0, false),
    prefix("unbuffer", "", &[], 0, true),
    prefix(
        "unshare",
        "SGRw",
        &["--setuid", "--setgid", "--root", "--wd"],
        0,
        false,
    ),
    prefix("valgrind", "", &[], 0, false),
    prefix(
        "xvfb-run",
        "efnpsw",
        &["--server-num", "--server-args"],
        0,
        false,
    ),
];

/// Beginnings of the names of the programs that load others: `ld-linux-x86-64.so.2`.
const LOADERS: [&str; 3] = ["ld-linux", "ld-musl", "ld.so"];
/// Options of these programs.
const LOADER: Prefix = prefix(
    "",
    "",
    &["--argv0", "--audit", "--library-path", "--preload"],
    0,
    false,
);
/// Options of `runuser` without `-c`.
const RUNUSER: Prefix = prefix("", "ugGw", &["--group", "--supp-group", "--user"], 0, false);

/// Names of shells.
const SHELLS: [&str; 13] = [
    "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "yash",
    "zsh",
];

/// Returns what a command runs; `None` if it is not known to run another command. `is_assigned` says
/// whether the line sets a variable.
pub(super) fn unwrap_command(
    words: &[Word],
    is_assigned: &dyn Fn(&str) -> bool,
) -> Option<Wrapped> {
    let name = words.first()?.base_name().known()?;
    let args = &words[1..];
    match name.as_str() {
        "env" => Some(env(args)),
        "xargs" | "gxargs" => Some(xargs(args)),
        "find" | "gfind" | "fd" | "fdfind" | "bfs" => find(args, is_assigned),
        "eval" => {
            let has_end = args.first().and_then(Word::known).as_deref() == Some("--");
            let first = usize::from(has_end);
            Some(Wrapped {
                dialect: None,
                ..script(join(&args[first..]), Some(first + 1))
            })
        }
        "trap" => trap(args),
        "alias" => Some(alias(args)),
        "source" | "." => match args.first() {
            Some(file) if is_stdin(file) => Some(unknown(Inner::Stdin)),
            Some(file) if file.is_open() => Some(unknown(Inner::Script(file.clone()))),
            _ => None,
        },
        "su" => su(args),
        "runuser" => su(args).or_else(|| prefixed(&RUNUSER, args)),
        "script" => first_value(args, &[Letter('c'), Long("command")])
            .map(|(at, it)| script(it, Some(at + 1))),
        "watch" => Some(watch(args)),
        "parallel" | "sem" | "hyperfine" | "watchexec" | "entr" | "nodemon" | "tmux" | "screen"
        | "expect" | "gdb" | "bwrap" => Some(unknown(Inner::Script(open(&join(args))))),
        "hash" => hash(args),
        "enable" => {
            let (_, file) = first_value(args, &[Letter('f')])?;
            Some(unknown(Inner::Script(open(&file))))
        }
        "mapfile" | "readarray" | "complete" | "compgen" => {
            let (at, callback) = first_value(args, &[Letter('C')])?;
            Some(callback_script(callback, at + 1))
        }
        "bind" => bind(args),
        "at" | "batch" => Some(unknown(Inner::Stdin)),
        "sg" => su(args).or_else(|| {
            let command = args.get(1)?;
            Some(Wrapped {
                is_transparent: false,
                ..script(command.clone(), Some(2))
            })
        }),
        "capsh" => {
            let is_end = |word: &Word| word.known().is_some_and(|text| text == "--");
            let end = args.iter().position(is_end)?;
            shell_command("bash", &args[end + 1..])
        }
        name if LOADERS.iter().any(|loader| name.starts_with(loader)) => prefixed(&LOADER, args),
        shell if SHELLS.contains(&shell) => shell_command(shell, args),
        name => match PREFIXES.iter().find(|prefix| prefix.name == name) {
            Some(prefix) => prefixed(prefix, args),
            None => {
                let by_subcommand = executors::unwrap_subcommand(name, args);
                let by_option = runs::unwrap_arguments(name, args, is_assigned);
                match (by_subcommand, by_option) {
                    (Some(mut wrapped), Some(more)) => {
                        wrapped.inner.extend(more.inner);
                        wrapped.at = wrapped.at.max(more.at);
                        Some(wrapped)
                    }
                    (wrapped, more) => wrapped.or(more),
                }
            }
        },
    }
}

/// Makes a word open as a whole.
fn open(word: &Word) -> Word {
    Word::open(word.quoted())
}

/// Returns a script to which the shell adds arguments.
fn callback_script(mut value: Word, at: usize) -> Wrapped {
    value.push_text(" \"$@\"");
    Wrapped {
        dialect: None,
        is_transparent: false,
        ..script(value, Some(at))
    }
}

/// Reads `trap`: the first argument runs later, unless it is the only one.
fn trap(args: &[Word]) -> Option<Wrapped> {
    let has_end = args.first().and_then(Word::known).as_deref() == Some("--");
    let first = usize::from(has_end);
    if args.len() < first + 2 {
        return None;
    }
    Some(Wrapped {
        dialect: None,
        ..script(args[first].clone(), Some(first + 1))
    })
}

/// Reads `hash -p program name`, after which the name means the program.
fn hash(args: &[Word]) -> Option<Wrapped> {
    let (at, program) = first_value(args, &[Letter('p')])?;
    Some(Wrapped {
        inner: command(Vec::new(), &[program, Word::open("$@")]),
        dialect: None,
        at: Some(at + 1),
        is_transparent: false,
    })
}

/// Reads `bind -x '"keys": command'` and `bind -f file`.
fn bind(args: &[Word]) -> Option<Wrapped> {
    let run = first_value(args, &[Letter('x')]);
    let (at, value) = run.or_else(|| first_value(args, &[Letter('f')]))?;
    let start = value.known_prefix();
    match start.find(':') {
        Some(colon) => Some(script(value.without_prefix(colon + 1), Some(at + 1))),
        None => Some(unknown(Inner::Script(open(&value)))),
    }
}

/// Makes the result for an inner command whose words are not among those of the command.
fn unknown(inner: Inner) -> Wrapped {
    Wrapped {
        inner: vec![inner],
        dialect: None,
        at: None,
        is_transparent: false,
    }
}

/// Makes the result for a script in the word `at`.
fn script(word: Word, at: Option<usize>) -> Wrapped {
    Wrapped {
        inner: vec![Inner::Script(word)],
        dialect: Some(Dialect::Posix),
        at,
        is_transparent: true,
    }
}

pub(super) fn command(assignments: Vec<(String, Word)>, words: &[Word]) -> Vec<Inner> {
    vec![Inner::Words {
        assignments,
        words: words.to_vec(),
    }]
}

fn is_stdin(file: &Word) -> bool {
    let name = file.known().unwrap_or_default();
    matches!(
        name.as_str(),
        "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" | "-"
    )
}

/// Joins words with blanks, as `eval` does.
pub(super) fn join(words: &[Word]) -> Word {
    let mut joined = Word::default();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            joined.push(' ');
        }
        for piece in &word.0 {
            match piece {
                Piece::Text(text) => joined.push_text(text),
                Piece::Tilde => joined.push('~'),
                other => joined.0.push(other.clone()),
            }
        }
    }
    joined
}

/// Returns the index of the first operand. Fails if an open word before it may be an option.
fn first_operand(args: &[Word], short: &str, long: &[&str]) -> Result<usize, ()> {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let start = word.known_prefix();
        if !start.starts_with('-') {
            // An open word may be an option.
            return if start.is_empty() && word.is_open() {
                Err(())
            } else {
                Ok(at)
            };
        }
        let text = word.known().ok_or(())?;
        if text == "--" {
            return Ok(at + 1);
        }
        if text == "-" {
            return Ok(at);
        }
        at += 1;
        if text.starts_with("--") {
            at += usize::from(long.contains(&text.as_str()));
        } else {
            let mut letters = text[1..].chars();
            // A letter before the last has its value in the rest of the word.
            let takes_next = letters.find(|letter| short.contains(*letter)).is_some()
                && letters.as_str().is_empty();
            at += usize::from(takes_next);
        }
    }
    // The value of the last option may be missing.
    Ok(at.min(args.len()))
}

/// Reads the arguments of a program that runs its first operand.
fn prefixed(prefix: &Prefix, args: &[Word]) -> Option<Wrapped> {
    let first = |text: &str| {
        args.first()
            .and_then(Word::known)
            .is_some_and(|it| it == text)
    };
    if prefix.name == "command" && (first("-v") || first("-V")) {
        return None;
    }
    let Ok(operand) = first_operand(args, prefix.short, prefix.long) else {
        return Some(unknown(Inner::Script(join(args))));
    };
    if prefix.name == "flock"
        && let Some((at, value)) = first_value(&args[operand..], &[Letter('c'), Long("command")])
    {
        return Some(Wrapped {
            is_transparent: false,
            ..script(value, Some(operand + at + 1))
        });
    }
    let mut at = operand + prefix.operands;
    let mut assignments = Vec::new();
    if matches!(prefix.name, "sudo" | "time" | "coproc") {
        // `sudo A=b command`.
        while let Some(assignment) = args.get(at).and_then(assignment) {
            assignments.push(assignment);
            at += 1;
        }
    }
    let inner = args.get(at..).filter(|words| !words.is_empty())?;
    Some(Wrapped {
        inner: command(assignments, inner),
        dialect: None,
        at: Some(at + 1),
        is_transparent: prefix.is_transparent,
    })
}

/// Reads a word such as `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let start = word.known_prefix();
    let (name, _) = start.split_once('=')?;
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let is_variable = !name.is_empty()
        && name.chars().all(is_name)
        && !name.starts_with(|it: char| it.is_ascii_digit());
    is_variable.then(|| (name.to_owned(), word.without_prefix(name.len() + 1)))
}

/// Reads the arguments of `env`.
fn env(args: &[Word]) -> Wrapped {
    if let Some((at, value)) = first_value(args, &[Letter('S'), Long("split-string")]) {
        let is_plain = |char: char| char.is_alphanumeric() || " -_./=:,@%+".contains(char);
        let Some(text) = value.known().filter(|text| text.chars().all(is_plain)) else {
            return unknown(Inner::Script(open(&join(args))));
        };
        // The words of the value stand in its place.
        let mut words: Vec<Word> = text.split_whitespace().map(Word::text).collect();
        words.extend(args.get(at + 1..).unwrap_or_default().iter().cloned());
        return Wrapped {
            at: None,
            is_transparent: false,
            ..env(&words)
        };
    }
    let long = ["--unset", "--chdir"];
    let Ok(mut at) = first_operand(args, "uC", &long) else {
        return unknown(Inner::Script(join(args)));
    };
    // A single `-` means `-i`.
    while args.get(at).and_then(Word::known).as_deref() == Some("-") {
        at += 1;
    }
    let has_options = at > 0;
    let mut assignments = Vec::new();
    while let Some(word) = args.get(at) {
        // `env` takes every word with a `=` for an assignment, whatever the name.
        let start = word.known_prefix();
        let setting = (start.split_once('='))
            .map(|(name, _)| (name.to_owned(), word.without_prefix(name.len() + 1)));
        match setting {
            Some(assignment) => assignments.push(assignment),
            // The word may become an assignment, which hides the command.
            None if word.known_prefix().is_empty() && word.is_open() => {
                return unknown(Inner::Script(join(args)));
            }
            None => break,
        }
        at += 1;
    }
    let words = &args[at..];
    Wrapped {
        inner: match words {
            [] => Vec::new(),
            words => command(assignments, words),
        },
        dialect: None,
        at: (!words.is_empty()).then_some(at + 1),
        is_transparent: !has_options && !words.is_empty(),
    }
}

/// Reads the arguments of `xargs`, which adds words of its input to the command.
fn xargs(args: &[Word]) -> Wrapped {
    let long = [
        "--arg-file",
        "--delimiter",
        "--max-args",
        "--max-procs",
        "--max-lines",
        "--max-chars",
        "--process-slot-var",
    ];
    let Ok(at) = first_operand(args, "adEILnPsRSJ", &long) else {
        return unknown(Inner::Script(join(args)));
    };
    let replaced = first_value(&args[..at], &[Letter('I'), Long("replace")])
        .and_then(|(_, value)| value.known())
        .or_else(|| {
            let short = |word: &Word| word.known().is_some_and(|text| text.starts_with("-i"));
            args[..at].iter().any(short).then(|| "{}".to_owned())
        });
    let mut words = args[at..].to_vec();
    if words.is_empty() {
        words.push(Word::text("echo"));
    }
    match replaced.filter(|text| !text.is_empty()) {
        Some(text) => words = words.iter().map(|word| replace(word, &text)).collect(),
        None => words.push(Word::open(STDIN)),
    }
    Wrapped {
        inner: command(Vec::new(), &words),
        dialect: None,
        at: (at < args.len()).then_some(at + 1),
        is_transparent: true,
    }
}

/// Opens a word where `text` is replaced.
fn replace(word: &Word, text: &str) -> Word {
    match word.known() {
        Some(known) if !known.contains(text) => word.clone(),
        _ => {
            let mut opened = Word::default();
            for piece in &word.0 {
                match piece {
                    Piece::Text(part) => {
                        let mut parts = part.split(text);
                        opened.push_text(parts.next().unwrap_or_default());
                        for rest in parts {
                            opened.0.push(Piece::Open(text.to_owned()));
                            if !rest.is_empty() {
                                opened.push_text(rest);
                            }
                        }
                    }
                    other => opened.0.push(other.clone()),
                }
            }
            opened
                .0
                .retain(|piece| *piece != Piece::Text(String::new()));
            opened
        }
    }
}

/// Reads the actions of `find` and the options of `fd` that run a command.
fn find(args: &[Word], is_assigned: &dyn Fn(&str) -> bool) -> Option<Wrapped> {
    let mut inner = Vec::new();
    let mut at = None;
    let mut index = 0;
    while index < args.len() {
        if runs::may_be_option(&args[index], is_assigned, true) {
            at.get_or_insert(index + 1);
            inner.push(Inner::Script(open(&args[index])));
        }
        let text = args[index].known().unwrap_or_default();
        index += 1;
        match text.as_str() {
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch" => {
                let ends = |word: &Word| matches!(word.known().as_deref(), Some(";" | "+"));
                let rest = &args[index..];
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                let mut words: Vec<Word> = rest[..length].to_vec();
                let has_place = words
                    .iter()
                    .any(|word| word.known().is_none_or(|it| it.contains("{}")));
                words = words.iter().map(|word| replace(word, "{}")).collect();
                // `fd` adds the path at the end.
                if !has_place && (text.starts_with("--") || text.len() == 2) {
                    words.push(Word::open("{}"));
                }
                if !words.is_empty() {
                    at.get_or_insert(index + 1);
                    inner.extend(command(Vec::new(), &words));
                }
                index += length;
            }
            "-delete" => {
                inner.extend(command(Vec::new(), &[Word::text("rm"), Word::open("{}")]));
            }
            _ => {}
        }
    }
    (!inner.is_empty()).then_some(Wrapped {
        inner,
        dialect: None,
        at,
        is_transparent: false,
    })
}

/// Reads `alias name=command`: the command may run later.
fn alias(args: &[Word]) -> Wrapped {
    let mut inner = Vec::new();
    for word in args {
        let start = word.known_prefix();
        if let Some(at) = start.find('=') {
            let mut value = word.without_prefix(at + 1);
            // The alias is used with arguments.
            value.push_text(" \"$@\"");
            inner.push(Inner::Script(value));
        }
    }
    Wrapped {
        inner,
        dialect: None,
        at: None,
        is_transparent: false,
    }
}

/// Reads the option `-c` of `su`.
fn su(args: &[Word]) -> Option<Wrapped> {
    let (at, value) = first_value(args, &[Letter('c'), Long("command")])?;
    Some(Wrapped {
        is_transparent: false,
        ..script(value, Some(at + 1))
    })
}

/// Reads the arguments of `watch`, which joins them to a script.
fn watch(args: &[Word]) -> Wrapped {
    match first_operand(args, "nqd", &["--interval", "--equexit"]) {
        Ok(at) => script(join(&args[at..]), Some(at + 1)),
        Err(()) => unknown(Inner::Script(join(args))),
    }
}

/// Reads the arguments of the shell with this name.
fn shell_command(shell: &str, args: &[Word]) -> Option<Wrapped> {
    let mut wrapped = shell_script(args)?;
    wrapped.dialect = Some(match shell {
        "bash" => Dialect::Bash,
        _ => Dialect::Posix,
    });
    if !matches!(shell, "ash" | "bash" | "dash" | "sh") {
        // Other shells have more words that run commands, such as `not` and `repeat`.
        wrapped.is_transparent = false;
        wrapped.inner.push(Inner::Script(open(&join(args))));
    }
    Some(wrapped)
}

/// Reads the arguments of a shell: `-c script`, a script in its input, or a file.
fn shell_script(args: &[Word]) -> Option<Wrapped> {
    let mut has_script = false;
    let mut is_plain = true;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let start = word.known_prefix();
        if !start.starts_with(['-', '+']) {
            break;
        }
        let Some(text) = word.known() else {
            return Some(unknown(Inner::Script(join(args))));
        };
        at += 1;
        match text.as_str() {
            "-" | "--" => break,
            "--version" | "--help" => return None,
            "--rcfile" | "--init-file" => {
                is_plain = false;
                at += 1;
            }
            long if long.starts_with("--") => is_plain = false,
            cluster => {
                let letters = &cluster[1..];
                if letters.contains('s') {
                    return Some(unknown(Inner::Stdin));
                }
                has_script |= letters.contains('c') && cluster.starts_with('-');
                is_plain &= letters.chars().all(|letter| "ceuxo".contains(letter));
                at += letters.matches(['o', 'O']).count();
            }
        }
    }
    if has_script {
        let script_word = args.get(at)?;
        let mut wrapped = script(script_word.clone(), Some(at + 1));
        wrapped.is_transparent = is_plain;
        return Some(wrapped);
    }
    match args.get(at) {
        None => Some(unknown(Inner::Stdin)),
        Some(file) if is_stdin(file) => Some(unknown(Inner::Stdin)),
        Some(file) if file.is_open() && file.known_prefix().is_empty() => {
            Some(unknown(Inner::Script(file.clone())))
        }
        Some(_) => None,
    }
}
