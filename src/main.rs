//! The binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    js_runtime::survive_file_size_limit();
    match js_runtime::serve_if_asked() {
        Some(code) => code.into(),
        None => pi::cli::main(),
    }
}
