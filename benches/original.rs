//! The original, as the tests install it.

use std::path::PathBuf;

use super::process::Program;

pub const VERSION: &str = "0.67.68";

/// `None` where it was never installed.
pub fn find() -> Option<Program> {
    let cache = match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => std::env::home_dir()?.join(".cache"),
    };
    let package = cache
        .join("pi-tests")
        .join(VERSION)
        .join("node_modules/@mariozechner/pi-coding-agent");
    let script = package.join("dist/cli.js");
    script.exists().then(|| Program {
        command: "node".into(),
        args: vec![script.into_os_string()],
    })
}
