//! Finds the original where the tests install it.

use std::path::PathBuf;

use super::process::Program;

pub const VERSION: &str = "0.67.68";

/// The folder in which the tests install packages of others.
pub fn tests_folder() -> Option<PathBuf> {
    let cache = match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => std::env::home_dir()?.join(".cache"),
    };
    Some(cache.join("pi-tests"))
}

pub fn package() -> Option<PathBuf> {
    let package = "node_modules/@mariozechner/pi-coding-agent";
    Some(tests_folder()?.join(VERSION).join(package))
}

/// Returns the original's program; `None` if it was never installed.
pub fn find() -> Option<Program> {
    let script = package()?.join("dist/cli.js");
    script.exists().then(|| Program {
        command: "node".into(),
        args: vec![script.into_os_string()],
    })
}
