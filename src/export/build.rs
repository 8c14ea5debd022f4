//! Build script: bundles the page of exported sessions.

#[path = "page/build.rs"]
mod page;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=page/build.rs");
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(out_dir), Some(here)) = (folder("OUT_DIR"), folder("CARGO_MANIFEST_DIR")) else {
        eprintln!("error: this is a build script of cargo, it does not run alone");
        return ExitCode::FAILURE;
    };
    match page::build(&here, &out_dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\nerror: {message}\n");
            ExitCode::FAILURE
        }
    }
}
