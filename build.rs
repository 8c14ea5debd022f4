//! Build script: passes the linker the list of symbols that the program exports.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    link();
}

/// Exports the `napi_*` functions: native addons (`*.node`) look them up in the program that loads
/// them. The lists are copies of those in the deno_napi crate, plus the functions that
/// `js-runtime/ext/src/node/uv.rs` adds: depending on that crate here would link V8 into this build
/// script.
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
        // Identical functions are merged, which saves a tenth of the program.
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        // Relocations are stored as a bitmap, which saves 4 MB. The C library that V8's library is
        // built against (glibc 2.36) supports it.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
