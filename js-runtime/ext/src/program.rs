//! The path of this program as it was at the start. An upgrade while it runs puts another file
//! there, and the system then reports the old one as deleted.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use deno_core::op2;
use deno_error::JsErrorBox;

/// `process.argv[1]` of extensions: the path at which a program that Bun has compiled finds its
/// script. Extensions that start pi again recognize such a program by it, and run
/// `process.execPath` alone. No file has this name; `stat`, `lstat` and `realpath` answer as if it
/// were a name of this program.
pub const SCRIPT: &str = "/$bunfs/root/pi";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Returns the path of this program. The first call must come at the start of the process.
pub fn program() -> io::Result<&'static Path> {
    if let Some(known) = PROGRAM.get() {
        return Ok(known);
    }
    let found = std::env::current_exe()?;
    Ok(PROGRAM.get_or_init(|| found))
}

/// Sets the path, in a process that was started under another name.
pub fn set_program(path: PathBuf) {
    // `program` was not called before.
    let _ = PROGRAM.set(path);
}

/// Returns the command line without the name of the program. An extension that starts
/// `process.execPath` with the script of `process.argv[1]` means this program, so the script is
/// skipped.
pub fn arguments() -> impl Iterator<Item = OsString> {
    let mut words = std::env::args_os().skip(1).peekable();
    words.next_if(|word| word == SCRIPT);
    words
}

/// Returns true for [`SCRIPT`]; for `realpath`, which is implemented by Deno.
#[op2(fast)]
pub(crate) fn op_is_script(#[string] path: &str) -> bool {
    path == SCRIPT
}

/// Returns the value of `process.execPath`.
#[op2]
#[string]
pub(crate) fn op_exec_path() -> Result<String, JsErrorBox> {
    let path = program().map_err(JsErrorBox::from_err)?;
    Ok(path.to_string_lossy().into_owned())
}
