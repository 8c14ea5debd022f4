//! The binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    js_runtime::survive_file_size_limit();
    match js_runtime::run_if_host_process() {
        Some(code) => code.into(),
        None => pi::cli::main(),
    }
}
