//! The ways to use a session: clients of one `AgentSession` each.

pub mod json;
pub mod line;
mod output;
pub mod print;
mod reader;
pub mod rpc;
pub mod session_list;
pub mod signals;

use std::io::Write;

/// To stderr; with nobody there to read it, there is nobody to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
