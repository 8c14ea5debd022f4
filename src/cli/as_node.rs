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
const NODE_OPTIONS: [&str; 9] = [
    "--no-warnings",
    "--no-deprecation",
    "--enable-source-maps",
    "--experimental-",
    "--expose-gc",
    "--max-old-space-size=",
    "--max-semi-space-size=",
    "--stack-trace-limit=",
    "--trace-",
];

#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    module: PathBuf,
    args: Vec<String>,
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
        module: PathBuf::from(module),
        args: strings(&words[after.map_or(0, |at| at + 1)..]),
    }
}

fn of_words(words: &[OsString]) -> Option<Asked> {
    let is_option = |word: &&OsString| {
        let word = word.to_string_lossy();
        NODE_OPTIONS.iter().any(|option| word.starts_with(option))
    };
    let options = words.iter().take_while(is_option).count();
    let (module, args) = words[options..].split_first()?;
    is_script(Path::new(module)).then(|| Asked {
        module: PathBuf::from(module),
        args: strings(args),
    })
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
    let options = RuntimeOptions {
        cache_dir: Some(paths.agent_dir.join("cache").join("js")),
        script: paths.cwd.join(asked.module),
        ..RuntimeOptions::default()
    };
    js_runtime::init();
    let args = asked.args;
    run_script(options, Script { args, channel })
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
                module: path.clone(),
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
        assert_eq!(
            of_fork(
                &words(&["--x", "./child", "--x", "y"]),
                OsStr::new("./child")
            ),
            Asked {
                module: "./child".into(),
                args: vec!["--x".into(), "y".into()],
            }
        );
    }
}
