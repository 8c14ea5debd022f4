//! Where this program is, as it was when it started. An upgrade while it runs puts another
//! file there, and of the old one the system says from then on that it is deleted.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use deno_core::op2;
use deno_error::JsErrorBox;

/// `process.argv[1]` of extensions: where a program that Bun has compiled finds its script.
/// Extensions that start pi again know such a program by it, and run `process.execPath` alone.
/// There is no file of this name; `stat`, `lstat` and `realpath` answer as if it were a
/// name of this program.
pub const SCRIPT: &str = "/$bunfs/root/pi";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// To be asked for the first time when the process begins.
pub fn program() -> io::Result<&'static Path> {
    if let Some(known) = PROGRAM.get() {
        return Ok(known);
    }
    let found = std::env::current_exe()?;
    Ok(PROGRAM.get_or_init(|| found))
}

/// In a process that was started by another name.
pub fn set_program(path: PathBuf) {
    // Nobody has asked before.
    let _ = PROGRAM.set(path);
}

/// The command line without the name of the program. An extension that starts
/// `process.execPath` with the script of `process.argv[1]` means this program: the script is
/// no argument.
pub fn arguments() -> impl Iterator<Item = OsString> {
    let mut words = std::env::args_os().skip(1).peekable();
    words.next_if(|word| word == SCRIPT);
    words
}

/// For `realpath`, which is Deno's.
#[op2(fast)]
pub(crate) fn op_is_script(#[string] path: &str) -> bool {
    path == SCRIPT
}

/// What `process.execPath` says.
#[op2]
#[string]
pub(crate) fn op_exec_path() -> Result<String, JsErrorBox> {
    let path = program().map_err(JsErrorBox::from_err)?;
    Ok(path.to_string_lossy().into_owned())
}
