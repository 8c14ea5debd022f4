//! Parses the arguments of node. Some of node's options are pi's as well (`-e`, `-p`, `-c`,
//! `-r`); the arguments after them decide which program is meant.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use js_runtime::{Preload, is_javascript, is_script};

use super::{NodeAction, NodeInvocation};

/// Options of node that may come before the script and are ignored.
const IGNORED_OPTIONS: [&str; 10] = [
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
/// The type of code on the command line, which is detected from the code.
const INPUT_TYPE: &str = "--input-type=";

/// Options that would change what a script does, and are not supported.
const UNSUPPORTED_OPTIONS: [&str; 14] = [
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

/// Texts that mark code for node, as opposed to a prompt for a model.
const NODE_CODE_MARKERS: [&str; 13] = [
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

pub(super) fn parse_fork(words: &[OsString], module: &OsStr) -> NodeInvocation {
    let at = words.iter().position(|word| word == module);
    let options = &words[..at.unwrap_or(0)];
    let args = &words[at.map_or(0, |at| at + 1)..];
    let read = Options::read(options);
    let action = read.unsupported.map_or_else(
        || NodeAction::Module(PathBuf::from(module)),
        |option| refused(&option),
    );
    NodeInvocation {
        action,
        options: strings(options),
        preloads: read.preloads,
        args: strings(args),
    }
}

pub(super) fn parse_command_line(words: &[OsString]) -> Option<NodeInvocation> {
    let read = Options::read(words);
    let (before, rest) = words.split_at(read.count);
    let runs_script = |rest: &[OsString]| {
        let first = rest.iter().find(|word| !text(word).starts_with('-'));
        first.is_some_and(|first| is_script(Path::new(first)))
    };
    let (action, taken) = match &read.unsupported {
        Some(option) => {
            // The option may be one of an extension, unless a script follows.
            return runs_script(rest).then(|| invocation(refused(option), words, &[], Vec::new()));
        }
        None => read.action(rest)?,
    };
    let mut args = &rest[taken..];
    let options = match action {
        NodeAction::Code(_) | NodeAction::Print(_) => &words[..words.len() - args.len()],
        _ => before,
    };
    if let (NodeAction::Code(_) | NodeAction::Print(_), [dashes, others @ ..]) = (&action, args)
        && dashes == "--"
    {
        args = others;
    }
    Some(invocation(action, options, args, read.preloads))
}

fn invocation(
    action: NodeAction,
    options: &[OsString],
    args: &[OsString],
    preloads: Vec<Preload>,
) -> NodeInvocation {
    NodeInvocation {
        action,
        options: strings(options),
        preloads,
        args: strings(args),
    }
}

fn refused(option: &str) -> NodeAction {
    NodeAction::Refused(format!(
        "{option} is an option of node that pi does not have: scripts run here without it"
    ))
}

/// Node's options at the beginning of the arguments.
#[derive(Default)]
struct Options {
    /// Number of arguments that they take.
    count: usize,
    preloads: Vec<Preload>,
    unsupported: Option<String>,
}

impl Options {
    fn read(words: &[OsString]) -> Self {
        let mut read = Self::default();
        while let Some(word) = words.get(read.count) {
            let word = text(word);
            let name = word.split('=').next().unwrap_or_default();
            if UNSUPPORTED_OPTIONS.contains(&name) || name.starts_with("--test-") {
                read.unsupported = Some(name.to_owned());
                read.count += 1;
                return read;
            }
            if let Some((preload, taken)) = preload(&word, &words[read.count + 1..]) {
                read.preloads.push(preload);
                read.count += taken;
            } else if IGNORED_OPTIONS
                .iter()
                .any(|option| word.starts_with(option))
            {
                read.count += 1;
            } else {
                break;
            }
        }
        read
    }

    /// Returns what is run, and the number of arguments that name it.
    fn action(&self, rest: &[OsString]) -> Option<(NodeAction, usize)> {
        let Some((first, others)) = rest.split_first() else {
            // Without an option, or with one that has a value, pi may be meant.
            let is_meant = self.count > 0 && self.preloads.is_empty();
            return is_meant.then_some((NodeAction::Input { named: false }, 0));
        };
        let word = text(first);
        if let Some(code) = word.strip_prefix("--eval=") {
            return Some((NodeAction::Code(code.to_owned()), 1));
        }
        if let Some(code) = word.strip_prefix("--print=") {
            return Some((NodeAction::Print(code.to_owned()), 1));
        }
        let next = others.first().map(text);
        match (word.as_str(), next) {
            ("-", _) => return Some((NodeAction::Input { named: true }, 1)),
            ("--eval", Some(code)) => return Some((NodeAction::Code(code), 2)),
            ("-e", Some(code)) if self.count > 0 || is_code(&code) => {
                return Some((NodeAction::Code(code), 2));
            }
            ("-pe", Some(code)) => return Some((NodeAction::Print(code), 2)),
            ("-p" | "--print", Some(code)) if self.count > 0 || is_node_code(&code) => {
                return Some((NodeAction::Print(code), 2));
            }
            ("--check", Some(path)) => return Some((NodeAction::Check(path.into()), 2)),
            ("-c", Some(path)) if others.len() == 1 && is_script(Path::new(&path)) => {
                return Some((NodeAction::Check(path.into()), 2));
            }
            _ => {}
        }
        let is_missing = !self.preloads.is_empty() && has_name_of_script(&word);
        let is_meant = is_missing || is_script(Path::new(first));
        is_meant.then(|| (NodeAction::Module(PathBuf::from(first)), 1))
    }
}

fn has_name_of_script(word: &str) -> bool {
    let name = Path::new(word).extension().and_then(OsStr::to_str);
    matches!(name, Some("js" | "mjs" | "cjs" | "ts" | "mts" | "cts"))
}

/// Parses a preload option and returns the number of its arguments. `-r` is an option of pi, too,
/// which has no value.
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

/// Whether a text is code and neither a path nor the name of a package: pi's `-e` takes the name of
/// an extension.
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

/// Whether a text is code for node and not a prompt: pi's `-p` has no value, and a prompt may
/// follow it.
fn is_node_code(code: &str) -> bool {
    NODE_CODE_MARKERS.iter().any(|word| code.contains(word)) && is_javascript(code)
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

    fn args(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn scripts_and_code_are_distinguished_from_prompts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b.mjs");
        std::fs::write(&path, "").unwrap();
        let script = path.to_str().unwrap();
        let found = |args: &[&str]| Some((NodeAction::Module(path.clone()), args.join(" ")));
        for (input, expected) in [
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
            let parsed =
                parse_command_line(&args(input)).map(|found| (found.action, found.args.join(" ")));
            assert_eq!(parsed, expected, "{input:?}");
        }
        let found =
            |code: &str, args: &[&str]| Some((NodeAction::Code(code.into()), args.join(" ")));
        let typed = "--input-type=module";
        for (input, expected) in [
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
            let parsed =
                parse_command_line(&args(input)).map(|found| (found.action, found.args.join(" ")));
            assert_eq!(parsed, expected, "{input:?}");
        }
        let printed = |code: &str| Some((NodeAction::Print(code.into()), String::new()));
        let input = |named| Some((NodeAction::Input { named }, String::new()));
        let check = || Some((NodeAction::Check(path.clone()), String::new()));
        for (input, expected) in [
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
                Some((NodeAction::Module(path.clone()), String::new())),
            ),
            (&["--test"], None),
            (&["--import", "session"], None),
            (&["--import", "session", "say it"], None),
        ] {
            let parsed =
                parse_command_line(&args(input)).map(|found| (found.action, found.args.join(" ")));
            assert_eq!(parsed, expected, "{input:?}");
        }
        let refused = parse_command_line(&args(&["--test", script])).map(|found| found.action);
        assert!(matches!(refused, Some(NodeAction::Refused(why)) if why.starts_with("--test is")));
        assert_eq!(
            parse_fork(
                &args(&[
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
            NodeInvocation {
                action: NodeAction::Module("./child".into()),
                options: strings(&args(&["--no-warnings", "--import=a", "--require", "b"])),
                preloads: vec![Preload::Import("a".into()), Preload::Require("b".into()),],
                args: vec!["--x".into(), "y".into()],
            }
        );
    }
}
