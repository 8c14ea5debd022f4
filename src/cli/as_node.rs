//! This program in the place of node. Extensions fork modules, and start
//! `process.execPath` with a script; for them that is this program.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use js_runtime::{Channel, RuntimeOptions, Script, StartError, is_script, run_script};

use crate::resources::paths::Paths;

/// deno_node's `fork` says here what it forks: the arguments alone do not tell the
/// options of node from the script.
const FORKED: &str = "DENO_INTERNAL_CHILD_ENTRYPOINT";
/// Node's own names.
const CHANNEL: &str = "NODE_CHANNEL_FD";
const SERIALIZATION: &str = "NODE_CHANNEL_SERIALIZATION_MODE";

/// Options of node that may come before the script and mean nothing to us.
const NODE_OPTIONS: [&str; 10] = [
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

#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    what: What,
    args: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Module(PathBuf),
    /// `-e`
    Code(String),
}

/// What is to be run instead of pi, if it is an extension, or a child of one, that
/// starts us.
pub fn asked(words: &[OsString]) -> Option<Asked> {
    let inside_pi = std::env::var_os("PI_CODING_AGENT").is_some();
    let forked = std::env::var_os(FORKED);
    match forked {
        Some(module) => Some(of_fork(words, &module)),
        None if inside_pi => of_words(words),
        None => None,
    }
}

fn of_fork(words: &[OsString], module: &OsStr) -> Asked {
    let after = words.iter().position(|word| word == module);
    Asked {
        what: What::Module(PathBuf::from(module)),
        args: strings(&words[after.map_or(0, |at| at + 1)..]),
    }
}

fn of_words(words: &[OsString]) -> Option<Asked> {
    let is_option = |word: &&OsString| {
        let word = word.to_string_lossy();
        NODE_OPTIONS.iter().any(|option| word.starts_with(option))
    };
    let options = words.iter().take_while(is_option).count();
    let (first, rest) = words[options..].split_first()?;
    if let Some((code, args)) = code(&words[..options], first, rest) {
        return Some(Asked {
            what: What::Code(code),
            args: strings(args),
        });
    }
    is_script(Path::new(first)).then(|| Asked {
        what: What::Module(PathBuf::from(first)),
        args: strings(rest),
    })
}

/// `-e` is an option of pi, too, which has the name of an extension.
fn code<'a>(
    options: &[OsString],
    first: &OsStr,
    rest: &'a [OsString],
) -> Option<(String, &'a [OsString])> {
    let first = first.to_string_lossy();
    let (code, args) = match first.strip_prefix("--eval=") {
        Some(code) => (code.to_owned(), rest),
        None if first == "-e" || first == "--eval" => {
            let (code, args) = rest.split_first()?;
            (code.to_string_lossy().into_owned(), args)
        }
        None => return None,
    };
    let typed = |word: &OsString| word.to_string_lossy().starts_with(INPUT_TYPE);
    let is_nodes = first != "-e" || options.iter().any(typed);
    let args = match args.split_first() {
        Some((dashes, args)) if dashes == "--" => args,
        _ => args,
    };
    (is_nodes || is_code(&code)).then_some((code, args))
}

/// And neither a path nor the name of a package.
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

fn strings(words: &[OsString]) -> Vec<String> {
    let string = |word: &OsString| word.to_string_lossy().into_owned();
    words.iter().map(string).collect()
}

/// Returns the exit code.
pub fn run(asked: Asked, paths: &Paths) -> Result<u8, StartError> {
    let channel = channel();
    for name in [FORKED, CHANNEL, SERIALIZATION] {
        forget(name);
    }
    let (script, code) = match asked.what {
        What::Module(module) => (module, None),
        What::Code(code) => (PathBuf::from("[eval].ts"), Some(code)),
    };
    let options = RuntimeOptions {
        cache_dir: Some(paths.agent_dir.join("cache").join("js")),
        script: paths.cwd.join(script),
        ..RuntimeOptions::default()
    };
    js_runtime::init();
    let script = Script {
        args: asked.args,
        code,
        channel,
    };
    run_script(options, script)
}

fn channel() -> Option<Channel> {
    let descriptor = std::env::var(CHANNEL).ok()?.parse().ok()?;
    let advanced = std::env::var(SERIALIZATION).is_ok_and(|mode| mode == "advanced");
    Some(Channel {
        descriptor,
        advanced,
    })
}

/// It is meant for this process, not for its children.
#[expect(clippy::disallowed_methods, reason = "the only thread there is yet")]
fn forget(name: &str) {
    // SAFETY: no other thread runs that could be reading the environment.
    unsafe { std::env::remove_var(name) }
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
        let found = |args: &[&str]| {
            Some(Asked {
                what: What::Module(path.clone()),
                args: args.iter().map(ToString::to_string).collect(),
            })
        };
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
            assert_eq!(of_words(&words(given)), expected, "{given:?}");
        }
        let found = |code: &str, args: &[&str]| {
            Some(Asked {
                what: What::Code(code.into()),
                args: args.iter().map(ToString::to_string).collect(),
            })
        };
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
            assert_eq!(of_words(&words(given)), expected, "{given:?}");
        }
        assert_eq!(
            of_fork(
                &words(&["--x", "./child", "--x", "y"]),
                OsStr::new("./child")
            ),
            Asked {
                what: What::Module("./child".into()),
                args: vec!["--x".into(), "y".into()],
            }
        );
    }
}
