//! What the compiler alone cannot do: the page of exported sessions is bundled, and
//! the linker is told what the program has to export.

#[path = "src/export/page/build.rs"]
mod page;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/export/page/build.rs");
    link();
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

/// Native addons (`*.node`) look the `napi_*` functions up in the program that loads
/// them, so the program has to export them. The lists are copies of the ones in the
/// deno_napi crate, and what `js-runtime/ext/src/uv.rs` adds: depending on it here would
/// link V8 into this build script, too.
fn link() {
    let Ok(os) = std::env::var("CARGO_CFG_TARGET_OS") else {
        return;
    };
    let (option, list) = match os.as_str() {
        "linux" => ("--export-dynamic-symbol-list", "napi_symbols_linux.def"),
        "macos" => ("-exported_symbols_list", "napi_symbols_macos.def"),
        // Windows exports them by attributes in the crate.
        _ => return,
    };
    let list = format!("{}/js-runtime/{list}", env!("CARGO_MANIFEST_DIR"));
    println!("cargo:rerun-if-changed={list}");
    let separator = if os == "macos" { "," } else { "=" };
    println!("cargo:rustc-link-arg-bins=-Wl,{option}{separator}{list}");
    if os == "linux" {
        // Functions that came out the same are kept once: a tenth of the program.
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        // Relocations as a bitmap: 4 MB less. The C library that V8's library is
        // built against (glibc 2.36) knows it.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
