//! Modes: each one is a client of one `AgentSession`.

pub mod json;
pub mod line;
mod output;
pub mod print;
pub mod rpc;
pub mod session_list;
pub mod signals;
mod stdout_watch;
pub mod wire;

use std::io::{self, Write};

/// Writes a line to stderr. Errors are ignored: there is no other place to report them.
pub fn print_stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints why stdout cannot be written, and returns whether it was printed. A closed pipe is
/// not reported: the reader closed it.
fn report_stdout_error(error: &io::Error) -> bool {
    let is_reported = error.kind() != io::ErrorKind::BrokenPipe;
    if is_reported {
        print_stderr(&format!("Error: stdout: {error}"));
    }
    is_reported
}
