//! Where this program is, as it was when it started. An upgrade while it runs puts another
//! file there, and of the old one the system says from then on that it is deleted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use deno_core::op2;
use deno_error::JsErrorBox;

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

/// What `process.execPath` says.
#[op2]
#[string]
pub(crate) fn op_exec_path() -> Result<String, JsErrorBox> {
    let path = program().map_err(JsErrorBox::from_err)?;
    Ok(path.to_string_lossy().into_owned())
}
