//! The ways to use a session: clients of one `AgentSession` each.

pub mod json;
pub mod line;
mod output;
pub mod print;
mod reader;
pub mod rpc;
pub mod session_list;
pub mod signals;
pub(crate) mod wire;

use std::io::{self, Write};

/// To stderr; with nobody there to read it, there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Why stdout cannot be written; `false` if its reader is gone, who knows.
fn complain_of_stdout(error: &io::Error) -> bool {
    let is_told = error.kind() != io::ErrorKind::BrokenPipe;
    if is_told {
        complain(&format!("Error: stdout: {error}"));
    }
    is_told
}
