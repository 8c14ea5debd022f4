//! Runs this program in the place of node. Extensions fork modules and start `process.execPath`
//! with a script; inside pi, `process.execPath` is this program.

mod args;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use js_runtime::{
    IpcChannel, Preload, RuntimeOptions, Script, Source, StartError, SyntaxProblem, check_syntax,
    run_script,
};

use pi_modes::print_stderr;
use pi_resources::paths::Paths;

/// deno_node's `fork` sets this variable to the forked module, because the arguments alone do not
/// separate node's options from the script.
const FORKED_MODULE_VARIABLE: &str = "DENO_INTERNAL_CHILD_ENTRYPOINT";
/// Node's names for the descriptor and the serialization of the channel to the parent.
const CHANNEL_VARIABLE: &str = "NODE_CHANNEL_FD";
const SERIALIZATION_VARIABLE: &str = "NODE_CHANNEL_SERIALIZATION_MODE";

/// `pi test` sets this variable to the file that gets the stack of a hanging test
/// (`test/child.rs`).
pub(super) const STACK_FILE_VARIABLE: &str = "PI_TEST_WHEREABOUTS";

/// Node's exit code for an unknown option.
const UNKNOWN_OPTION_CODE: u8 = 9;

#[derive(Debug, PartialEq, Eq)]
pub struct NodeInvocation {
    action: NodeAction,
    /// Options before the script; `process.execArgv`.
    options: Vec<String>,
    preloads: Vec<Preload>,
    args: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum NodeAction {
    Module(PathBuf),
    /// Evaluate the code of `-e`.
    Code(String),
    /// Evaluate the code of `-p` and print its value.
    Print(String),
    /// Evaluate code from stdin. `named` is true if a `-` stands for it, which is then in
    /// `process.argv`.
    Input {
        named: bool,
    },
    /// Check the syntax of the module of `--check`.
    Check(PathBuf),
    /// Fail: an option of node is not supported. Holds the message.
    Refused(String),
}

/// Parses the arguments of node, if an extension or its child started this program; `None` if it
/// was started as pi.
pub fn parse_invocation(args: &[OsString]) -> Option<NodeInvocation> {
    let inside_pi = std::env::var_os("PI_CODING_AGENT").is_some();
    let forked = std::env::var_os(FORKED_MODULE_VARIABLE);
    match forked {
        Some(module) => Some(args::parse_fork(args, &module)),
        None if inside_pi => args::parse_command_line(args),
        None => None,
    }
}

/// Runs the invocation and returns the exit code.
pub fn run(invocation: NodeInvocation, paths: &Paths) -> Result<u8, StartError> {
    let channel = channel();
    for name in [
        FORKED_MODULE_VARIABLE,
        CHANNEL_VARIABLE,
        SERIALIZATION_VARIABLE,
    ] {
        remove_variable(name);
    }
    let (script, source) = match invocation.action {
        NodeAction::Module(module) => (module, Source::File),
        NodeAction::Code(code) => (PathBuf::from("[eval].ts"), Source::Code(code)),
        NodeAction::Print(code) => (PathBuf::from("[eval].ts"), Source::Printed(code)),
        NodeAction::Input { named } => {
            let mut code = String::new();
            if let Err(error) = std::io::stdin().read_to_string(&mut code) {
                print_stderr(&format!(
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
        NodeAction::Check(module) => return Ok(check_module(&paths.cwd.join(module))),
        NodeAction::Refused(why) => {
            print_stderr(&format!("Error: {why}"));
            return Ok(UNKNOWN_OPTION_CODE);
        }
    };
    let options = RuntimeOptions {
        cache_dir: Some(paths.agent_dir.join("cache").join("js")),
        script: paths.cwd.join(script),
        ..RuntimeOptions::default()
    };
    let script = Script {
        args: invocation.args,
        options: invocation.options,
        preloads: invocation.preloads,
        source,
        channel,
        stack_dump_file: std::env::var_os(STACK_FILE_VARIABLE).map(PathBuf::from),
    };
    run_script(options, script)
}

/// Checks the syntax of a module and returns the exit code. The parser accepts TypeScript in
/// JavaScript files, which fails only when it runs.
fn check_module(path: &Path) -> u8 {
    match check_syntax(path) {
        Ok(()) | Err(SyntaxProblem::Unchecked(_)) => 0,
        Err(SyntaxProblem::Fatal(problem) | SyntaxProblem::Doubtful(problem)) => {
            print_stderr(&format!("Error: {}: {problem}", path.display()));
            1
        }
    }
}

fn channel() -> Option<IpcChannel> {
    let descriptor = std::env::var(CHANNEL_VARIABLE).ok()?.parse().ok()?;
    let advanced = std::env::var(SERIALIZATION_VARIABLE).is_ok_and(|mode| mode == "advanced");
    Some(IpcChannel {
        descriptor,
        advanced,
    })
}

/// Removes a variable that is meant for this process and not for its children.
#[expect(clippy::disallowed_methods, reason = "the only thread there is yet")]
fn remove_variable(name: &str) {
    // SAFETY: no other thread runs that could be reading the environment.
    unsafe { std::env::remove_var(name) }
}
