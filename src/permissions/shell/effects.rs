//! Files that well-known commands visibly read or write.

use super::git_reads::git_reads;
use super::operands::{input_of_dd, sent_file};
use super::options::{OptionName, all_values};
use super::runs::InnerCommands;
use super::word::Word;
use super::{awk, sed};

/// Programs whose words are texts and no paths.
pub(super) const TEXT_PROGRAMS: [&str; 8] = [
    "echo", "printf", "git", "export", "alias", "true", ":", "kill",
];

/// Returns the arguments of a command that name files, and whether the command writes them.
pub(super) fn file_arguments(words: &[Word]) -> Vec<(Word, bool)> {
    let Some((name, args)) = words.split_first() else {
        return Vec::new();
    };
    // A program that only the shell knows may read its arguments.
    let name = name.base_name().known().unwrap_or_default();
    let mut read = Vec::new();
    match name.as_str() {
        "git" => read = git_reads(args).named,
        name if TEXT_PROGRAMS.contains(&name) => {}
        _ => {
            read.extend(args.iter().filter_map(as_path));
            read.extend(args.iter().filter_map(sent_file));
            read.extend(input_of_dd(args).filter(|_| name == "dd"));
        }
    }
    let mut files: Vec<(Word, bool)> = read.into_iter().map(|word| (word, false)).collect();
    let written = written(&name, args);
    files.extend(written.into_iter().map(|word| (word, true)));
    files
}

/// Returns an argument as a path: `file`, `--option=file`. A file that is left out is none.
pub(super) fn as_path(word: &Word) -> Option<Word> {
    let start = word.known_prefix();
    if !start.starts_with('-') {
        return Some(word.clone());
    }
    if start.starts_with("--exclude=") || start.starts_with("--exclude-dir=") {
        return None;
    }
    let at = start.find('=')?;
    Some(word.without_prefix(at + 1))
}

/// Returns the operands: what is no option, and everything after `--`.
pub(super) fn operands(args: &[Word]) -> Vec<Word> {
    let mut all_operands = false;
    let mut found = Vec::new();
    for word in args {
        let start = word.known_prefix();
        if !all_operands && start == "--" {
            all_operands = true;
        } else if all_operands || !start.starts_with('-') || start == "-" {
            found.push(word.clone());
        }
    }
    found
}

/// Returns the values of an option with a letter and a long name. The letter may be behind `flags`,
/// the letters of the program that take no value.
fn values(args: &[Word], flags: &str, letter: char, long: &str) -> Vec<Word> {
    let names = [
        OptionName::LetterAfter(flags, letter),
        OptionName::Long(long),
    ];
    all_values(args, &names)
}

/// Returns whether an option is set: by its letter, also beside other letters, or by its long name.
pub(super) fn has_flag(args: &[Word], letter: char, long: &str) -> bool {
    args.iter().any(|word| {
        let start = word.known_prefix();
        start.starts_with(long) && !long.is_empty()
            || start.starts_with('-') && !start.starts_with("--") && start.contains(letter)
    })
}

/// Returns the files that a copy may write: the target, and the files in it if it is a folder.
fn copied(sources: &[Word], target: &Word) -> Vec<Word> {
    let mut written = vec![target.clone()];
    for source in sources {
        let mut inside = target.clone();
        inside.push('/');
        for piece in source.base_name().0 {
            match piece {
                super::word::Piece::Text(text) => inside.push_text(&text),
                other => inside.0.push(other),
            }
        }
        written.push(inside);
    }
    written
}

/// Returns the files that a program writes by its arguments.
fn written(name: &str, args: &[Word]) -> Vec<Word> {
    let all = operands(args);
    match name {
        "tee" | "touch" | "rm" | "rmdir" | "unlink" | "shred" | "mkdir" | "truncate" | "mkfifo"
        | "mknod" | "ex" | "ed" | "vi" | "vim" | "nano" => all,
        "chmod" | "chown" | "chgrp" => all.get(1..).unwrap_or_default().to_vec(),
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" => {
            let mut found = Vec::new();
            // The letter keeps times in rsync.
            if !matches!(name, "rsync" | "scp") {
                // All letters without a value of cp, mv, install and ln.
                const FLAGS: &str = "CDFHLPRTZabcdfilnprsuvx";
                for folder in values(args, FLAGS, 't', "target-directory") {
                    found.extend(copied(&all, &folder));
                }
            }
            match all.split_last() {
                Some((target, [])) if name == "ln" => {
                    // `ln target` makes a link in the working folder.
                    found.push(target.base_name());
                }
                Some((target, sources)) => found.extend(copied(sources, target)),
                None => {}
            }
            if name == "mv" {
                found.extend(all);
            }
            found
        }
        "sed" | "gsed" => {
            let mut found: Vec<Word> = Vec::new();
            for script in sed::scripts(args, &mut InnerCommands::default()) {
                found.extend(sed::read(&script).writes);
            }
            if has_flag(args, 'i', "--in-place") {
                found.extend(all);
            }
            found
        }
        "awk" | "gawk" | "mawk" | "nawk" => {
            let programs = awk::programs(args, &mut InnerCommands::default());
            let written = |program: &Word| awk::read(program).writes;
            programs.iter().flat_map(written).collect()
        }
        "perl" | "ruby" if has_flag(args, 'i', "--in-place") => all,
        "dd" => {
            let target = |word: &Word| {
                let is_target = word.known_prefix().starts_with("of=");
                is_target.then(|| word.without_prefix(3))
            };
            args.iter().filter_map(target).collect()
        }
        "curl" => {
            const FLAGS: &str = "#012346:BGIJLMNORSVZafgijklnpqsv";
            values(args, FLAGS, 'o', "output")
        }
        "wget" => values(args, "46EFHKLNSVbcdhkmnpqrvx", 'O', "output-document"),
        "sort" => values(args, "CMRVbcdfghimnrsuz", 'o', "output"),
        "gcc" | "cc" | "clang" | "rustc" => values(args, "", 'o', "output"),
        "patch" => all,
        "find" => {
            let mut found = Vec::new();
            for option in ["fprint", "fprint0", "fls", "fprintf"] {
                found.extend(all_values(args, &[OptionName::AnyDashes(option)]));
            }
            found
        }
        "git" => {
            let mut found = git(args, &all);
            found.extend(all_values(args, &[OptionName::Long("output")]));
            found
        }
        _ => Vec::new(),
    }
}

/// Returns the files that `git` writes by the paths in its arguments.
fn git(args: &[Word], operands: &[Word]) -> Vec<Word> {
    let command = operands.first().and_then(Word::known);
    match command.as_deref() {
        Some("rm" | "mv" | "checkout" | "restore") => operands[1..].to_vec(),
        // In other commands, such as `ls-files`, the letter is a flag without a value.
        Some("archive" | "bugreport" | "diagnose" | "format-patch") => {
            const FLAGS: &str = "0123456789Nklnpsv";
            all_values(args, &[OptionName::LetterAfter(FLAGS, 'o')])
        }
        Some("config") => {
            const READING: [&str; 3] = ["get", "list", "blame"];
            const CHANGING: [&str; 8] = [
                "--add",
                "--edit",
                "--remove-section",
                "--rename-section",
                "--replace-all",
                "--unset",
                "--unset-all",
                "-e",
            ];
            const ELSEWHERE: [&str; 4] = ["--file", "--global", "--system", "-f"];
            let has = |names: &[&str]| {
                let mut starts = args.iter().map(Word::known_prefix);
                starts.any(|start| {
                    let name = start.split('=').next().unwrap_or_default();
                    names.contains(&name)
                })
            };
            let is_reading = (operands.get(1).and_then(Word::known))
                .is_some_and(|it| READING.contains(&it.as_str()))
                || has(&[
                    "--get",
                    "--get-all",
                    "--get-regexp",
                    "--get-urlmatch",
                    "--list",
                    "-l",
                ]);
            let changes = !is_reading && (operands.len() > 2 || has(&CHANGING));
            let mut found = values(args, "ez", 'f', "file");
            match changes {
                true if has(&["--global"]) => found.push(Word(vec![
                    super::word::Piece::Tilde,
                    super::word::Piece::Text("/.gitconfig".into()),
                ])),
                true if !has(&ELSEWHERE) => found.push(Word::text(".git/config")),
                true => {}
                false => found.clear(),
            }
            found
        }
        _ => Vec::new(),
    }
}
