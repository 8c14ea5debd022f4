//! This program in the place of node. Extensions fork modules, and start
//! `process.execPath` with a script; for them that is this program.

mod words;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use js_runtime::{
    Channel, Preload, RuntimeOptions, Script, Source, StartError, SyntaxProblem, check_syntax,
    run_script,
};

use crate::modes::complain;
use crate::resources::paths::Paths;

/// deno_node's `fork` says here what it forks: the arguments alone do not tell the
/// options of node from the script.
const FORKED: &str = "DENO_INTERNAL_CHILD_ENTRYPOINT";
/// Node's own names.
const CHANNEL: &str = "NODE_CHANNEL_FD";
const SERIALIZATION: &str = "NODE_CHANNEL_SERIALIZATION_MODE";

/// `pi test` asks where a file of tests hangs (`test/child.rs`).
pub(super) const WHEREABOUTS: &str = "PI_TEST_WHEREABOUTS";

/// As node ends when it does not know an option.
const BAD_OPTION: u8 = 9;

#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    what: What,
    /// Before the script; `process.execArgv`.
    options: Vec<String>,
    preloads: Vec<Preload>,
    args: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Module(PathBuf),
    /// `-e`
    Code(String),
    /// `-p`
    Print(String),
    /// Code comes in; with a `-` that is in `process.argv`, too.
    Input {
        named: bool,
    },
    /// `--check`
    Check(PathBuf),
    /// What is node's and not here.
    Refused(String),
}

/// What is to be run instead of pi, if it is an extension, or a child of one, that
/// starts us.
pub fn asked(words: &[OsString]) -> Option<Asked> {
    let inside_pi = std::env::var_os("PI_CODING_AGENT").is_some();
    let forked = std::env::var_os(FORKED);
    match forked {
        Some(module) => Some(words::of_fork(words, &module)),
        None if inside_pi => words::of_words(words),
        None => None,
    }
}

/// Returns the exit code.
pub fn run(asked: Asked, paths: &Paths) -> Result<u8, StartError> {
    let channel = channel();
    for name in [FORKED, CHANNEL, SERIALIZATION] {
        forget(name);
    }
    let (script, source) = match asked.what {
        What::Module(module) => (module, Source::File),
        What::Code(code) => (PathBuf::from("[eval].ts"), Source::Code(code)),
        What::Print(code) => (PathBuf::from("[eval].ts"), Source::Printed(code)),
        What::Input { named } => {
            let mut code = String::new();
            if let Err(error) = std::io::stdin().read_to_string(&mut code) {
                complain(&format!(
                    "Error: cannot read the code from the input: {error}"
                ));
                return Ok(1);
            }
            let source = match named {
                true => Source::Input(code),
                false => Source::Code(code),
            };
            (PathBuf::from("[stdin].ts"), source)
        }
        What::Check(module) => return Ok(check(&paths.cwd.join(module))),
        What::Refused(why) => {
            complain(&format!("Error: {why}"));
            return Ok(BAD_OPTION);
        }
    };
    let options = RuntimeOptions {
        cache_dir: Some(paths.agent_dir.join("cache").join("js")),
        script: paths.cwd.join(script),
        ..RuntimeOptions::default()
    };
    js_runtime::init();
    let script = Script {
        args: asked.args,
        options: asked.options,
        preloads: asked.preloads,
        source,
        channel,
        whereabouts: std::env::var_os(WHEREABOUTS).map(PathBuf::from),
    };
    run_script(options, script)
}

/// The parser goes on after TypeScript in JavaScript, which does not run.
fn check(path: &Path) -> u8 {
    match check_syntax(path) {
        Ok(()) | Err(SyntaxProblem::Unchecked(_)) => 0,
        Err(SyntaxProblem::Fatal(problem) | SyntaxProblem::Doubtful(problem)) => {
            complain(&format!("Error: {}: {problem}", path.display()));
            1
        }
    }
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
