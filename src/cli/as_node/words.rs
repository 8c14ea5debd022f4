//! From the words of a command line to what node would do with them. Some options are
//! pi's as well (`-e`, `-p`, `-c`, `-r`): what follows them tells.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use js_runtime::{Preload, is_javascript, is_script};

use super::{Asked, What};

/// Options of node that may come before the script and mean nothing to us.
const HARMLESS: [&str; 10] = [
    "--no-warnings",
    "--no-deprecation",
    "--enable-source-maps",
    "--experimental-",
    "--expose-gc",
    "--max-old-space-size=",
    "--max-semi-space-size=",
    "--stack-trace-limit=",
    "--trace-",
    INPUT_TYPE,
];
/// Of code on the command line; which it is shows in the code.
const INPUT_TYPE: &str = "--input-type=";

/// Options that would change what a script does, and cannot here.
const MISSING: [&str; 14] = [
    "--conditions",
    "--cpu-prof",
    "--env-file",
    "--env-file-if-exists",
    "--experimental-loader",
    "--experimental-test-coverage",
    "--heap-prof",
    "--loader",
    "--permission",
    "--prof",
    "--run",
    "--test",
    "--watch",
    "--watch-path",
];

/// What is node's in a text that may also be something to say to a model.
const OF_NODE: [&str; 13] = [
    "process.",
    "require(",
    "globalThis",
    "JSON.",
    "Math.",
    "Object.",
    "Buffer.",
    "Date.",
    "typeof ",
    "new ",
    "fs.",
    "os.",
    "path.",
];

pub(super) fn of_fork(words: &[OsString], module: &OsStr) -> Asked {
    let at = words.iter().position(|word| word == module);
    let options = &words[..at.unwrap_or(0)];
    let args = &words[at.map_or(0, |at| at + 1)..];
    let read = Options::read(options);
    let what = read.missing.map_or_else(
        || What::Module(PathBuf::from(module)),
        |option| refused(&option),
    );
    Asked {
        what,
        options: strings(options),
        preloads: read.preloads,
        args: strings(args),
    }
}

pub(super) fn of_words(words: &[OsString]) -> Option<Asked> {
    let read = Options::read(words);
    let (before, rest) = words.split_at(read.count);
    let runs_script = |rest: &[OsString]| {
        let first = rest.iter().find(|word| !text(word).starts_with('-'));
        first.is_some_and(|first| is_script(Path::new(first)))
    };
    let (what, taken) = match &read.missing {
        Some(option) => {
            // pi's extensions have options, too.
            return runs_script(rest).then(|| asked(refused(option), words, &[], Vec::new()));
        }
        None => read.what(rest)?,
    };
    let mut args = &rest[taken..];
    let options = match what {
        What::Code(_) | What::Print(_) => &words[..words.len() - args.len()],
        _ => before,
    };
    if let (What::Code(_) | What::Print(_), [dashes, others @ ..]) = (&what, args)
        && dashes == "--"
    {
        args = others;
    }
    Some(asked(what, options, args, read.preloads))
}

fn asked(what: What, options: &[OsString], args: &[OsString], preloads: Vec<Preload>) -> Asked {
    Asked {
        what,
        options: strings(options),
        preloads,
        args: strings(args),
    }
}

fn refused(option: &str) -> What {
    What::Refused(format!(
        "{option} is an option of node that pi does not have: scripts run here without it"
    ))
}

/// Those at the beginning of the words.
#[derive(Default)]
struct Options {
    /// How many words they are.
    count: usize,
    preloads: Vec<Preload>,
    missing: Option<String>,
}

impl Options {
    fn read(words: &[OsString]) -> Self {
        let mut read = Self::default();
        while let Some(word) = words.get(read.count) {
            let word = text(word);
            let name = word.split('=').next().unwrap_or_default();
            if MISSING.contains(&name) || name.starts_with("--test-") {
                read.missing = Some(name.to_owned());
                read.count += 1;
                return read;
            }
            if let Some((preload, taken)) = preload(&word, &words[read.count + 1..]) {
                read.preloads.push(preload);
                read.count += taken;
            } else if HARMLESS.iter().any(|option| word.starts_with(option)) {
                read.count += 1;
            } else {
                break;
            }
        }
        read
    }

    /// What is run, and how many words say so.
    fn what(&self, rest: &[OsString]) -> Option<(What, usize)> {
        let Some((first, others)) = rest.split_first() else {
            // Without an option it may be pi that is to read its input, and with one that
            // has a value an option of an extension.
            let is_nodes = self.count > 0 && self.preloads.is_empty();
            return is_nodes.then_some((What::Input { named: false }, 0));
        };
        let word = text(first);
        if let Some(code) = word.strip_prefix("--eval=") {
            return Some((What::Code(code.to_owned()), 1));
        }
        if let Some(code) = word.strip_prefix("--print=") {
            return Some((What::Print(code.to_owned()), 1));
        }
        let next = others.first().map(text);
        match (word.as_str(), next) {
            ("-", _) => return Some((What::Input { named: true }, 1)),
            ("--eval", Some(code)) => return Some((What::Code(code), 2)),
            ("-e", Some(code)) if self.count > 0 || is_code(&code) => {
                return Some((What::Code(code), 2));
            }
            ("-pe", Some(code)) => return Some((What::Print(code), 2)),
            ("-p" | "--print", Some(code)) if self.count > 0 || is_nodes(&code) => {
                return Some((What::Print(code), 2));
            }
            ("--check", Some(path)) => return Some((What::Check(path.into()), 2)),
            ("-c", Some(path)) if others.len() == 1 && is_script(Path::new(&path)) => {
                return Some((What::Check(path.into()), 2));
            }
            _ => {}
        }
        let is_missing = !self.preloads.is_empty() && has_name_of_script(&word);
        let is_meant = is_missing || is_script(Path::new(first));
        is_meant.then(|| (What::Module(PathBuf::from(first)), 1))
    }
}

fn has_name_of_script(word: &str) -> bool {
    let name = Path::new(word).extension().and_then(OsStr::to_str);
    matches!(name, Some("js" | "mjs" | "cjs" | "ts" | "mts" | "cts"))
}

/// `-r` is an option of pi, too, which has no value.
fn preload(word: &str, rest: &[OsString]) -> Option<(Preload, usize)> {
    if let Some(module) = word.strip_prefix("--import=") {
        return Some((Preload::Import(module.to_owned()), 1));
    }
    if let Some(module) = word.strip_prefix("--require=") {
        return Some((Preload::Require(module.to_owned()), 1));
    }
    let (module, after) = rest.split_first()?;
    let module = text(module);
    match word {
        "--import" => Some((Preload::Import(module), 2)),
        "--require" => Some((Preload::Require(module), 2)),
        "-r" if after.iter().any(|word| is_script(Path::new(word))) => {
            Some((Preload::Require(module), 2))
        }
        _ => None,
    }
}

/// And neither a path nor the name of a package: `-e` is an option of pi, too, which has
/// the name of an extension.
fn is_code(text: &str) -> bool {
    let begins = [
        "~", ".", "/", "npm:", "git:", "git@", "ssh:", "http:", "https:", "file:",
    ];
    let ends = [".ts", ".js", ".mjs", ".cjs", ".mts", ".cts"];
    text.contains(['(', ';', '=', '{', '\n'])
        && !begins.iter().any(|prefix| text.starts_with(prefix))
        && !ends.iter().any(|suffix| text.ends_with(suffix))
        && !Path::new(text).exists()
}

/// And nothing to say to a model: pi's `-p` has no value, and a prompt may follow it.
fn is_nodes(code: &str) -> bool {
    OF_NODE.iter().any(|word| code.contains(word)) && is_javascript(code)
}

fn text(word: &OsString) -> String {
    word.to_string_lossy().into_owned()
}

fn strings(words: &[OsString]) -> Vec<String> {
    words.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn scripts_are_told_from_prompts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b.mjs");
        std::fs::write(&path, "").unwrap();
        let script = path.to_str().unwrap();
        let found = |args: &[&str]| Some((What::Module(path.clone()), args.join(" ")));
        for (given, expected) in [
            (&[script][..], found(&[])),
            (&[script, "-p", "x y"], found(&["-p", "x y"])),
            (
                &["--no-warnings", "--max-old-space-size=99", script, "1"],
                found(&["1"]),
            ),
            (&["--mode", "json", script], None),
            (&["/nowhere/a.mjs"], None),
            (&["-p", script], None),
            (&[], None),
        ] {
            let asked = of_words(&words(given)).map(|asked| (asked.what, asked.args.join(" ")));
            assert_eq!(asked, expected, "{given:?}");
        }
        let found = |code: &str, args: &[&str]| Some((What::Code(code.into()), args.join(" ")));
        let typed = "--input-type=module";
        for (given, expected) in [
            (&["-e", "go()", "x"][..], found("go()", &["x"])),
            (&["--eval=1", "--", "-x"], found("1", &["-x"])),
            (&["--no-warnings", typed, "-e", "1"], found("1", &[])),
            (&["-e", script, "-p", "say it"], None),
            (&["-e", "npm:thing", "-p", "a = b"], None),
            (&["-e", "gone (1).ts"], None),
            (&["-e", "~/my (work)=1", "-p", "hi"], None),
            (&["-e", "https://a.example/b?x=1"], None),
            (&["-p", "1 + 1;"], None),
        ] {
            let asked = of_words(&words(given)).map(|asked| (asked.what, asked.args.join(" ")));
            assert_eq!(asked, expected, "{given:?}");
        }
        let printed = |code: &str| Some((What::Print(code.into()), String::new()));
        let input = |named| Some((What::Input { named }, String::new()));
        let check = || Some((What::Check(path.clone()), String::new()));
        for (given, expected) in [
            (&["-p", "process.version"][..], printed("process.version")),
            (&["-pe", "1 + 1"], printed("1 + 1")),
            (&["-p", "what is process.env in node?"], None),
            (&["-p", "hello"], None),
            (&["-"], input(true)),
            (&[typed], input(false)),
            (&["--check", script], check()),
            (&["-c", script], check()),
            (&["-c", "say it"], None),
            (
                &["--import", "x", script],
                Some((What::Module(path.clone()), String::new())),
            ),
            (&["--test"], None),
            (&["--import", "session"], None),
            (&["--import", "session", "say it"], None),
        ] {
            let asked = of_words(&words(given)).map(|asked| (asked.what, asked.args.join(" ")));
            assert_eq!(asked, expected, "{given:?}");
        }
        let refused = of_words(&words(&["--test", script])).map(|asked| asked.what);
        assert!(matches!(refused, Some(What::Refused(why)) if why.starts_with("--test is")));
        assert_eq!(
            of_fork(
                &words(&[
                    "--no-warnings",
                    "--import=a",
                    "--require",
                    "b",
                    "./child",
                    "--x",
                    "y"
                ]),
                OsStr::new("./child")
            ),
            Asked {
                what: What::Module("./child".into()),
                options: strings(&words(&["--no-warnings", "--import=a", "--require", "b"])),
                preloads: vec![Preload::Import("a".into()), Preload::Require("b".into()),],
                args: vec!["--x".into(), "y".into()],
            }
        );
    }
}
