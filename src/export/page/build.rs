//! A part of the crate's build script: the script and the style of exported pages.
//! Their npm packages come from the registry, checked against the hashes of the lock
//! file, and are bundled in `OUT_DIR`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const OWN_FILES: [&str; 4] = [
    "package.json",
    "package-lock.json",
    "bundle.mjs",
    // The tests check the types in this folder, because it has the packages.
    "tsconfig.json",
];

/// Writes `OUT_DIR/page/{script.zlib,style.zlib,hashes.rs}`.
pub fn build(manifest_dir: &Path, out_dir: &Path) -> Result<(), String> {
    let here = manifest_dir.join("page");
    let work = out_dir.join("page-sources");
    let sources = work.join("src");
    // Deleted sources must not be bundled.
    if sources.exists() {
        fs::remove_dir_all(&sources).map_err(|error| failed("remove", &sources, &error))?;
    }
    fs::create_dir_all(&sources).map_err(|error| failed("make", &sources, &error))?;
    for name in OWN_FILES {
        copy(&here.join(name), &work.join(name))?;
    }
    for path in files(&here.join("src"))? {
        if let Some(name) = path.file_name() {
            copy(&path, &sources.join(name))?;
        }
    }
    install(&work)?;
    let mut bundle = Command::new("node");
    bundle
        .arg("bundle.mjs")
        .arg(out_dir.join("page"))
        .current_dir(&work);
    run(&mut bundle, "node")
}

/// Watches the folder itself as well, so that a new file is noticed.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).map_err(|error| failed("read", folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths
        .collect::<Result<_, _>>()
        .map_err(|error| failed("read", folder, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    println!("cargo:rerun-if-changed={}", from.display());
    let text = fs::read(from).map_err(|error| failed("read", from, &error))?;
    fs::write(to, text).map_err(|error| failed("write", to, &error))
}

/// Runs `npm ci`, unless the installed packages are those of the lock file.
fn install(work: &Path) -> Result<(), String> {
    let lock_file = work.join("package-lock.json");
    let lock = fs::read(&lock_file).map_err(|error| failed("read", &lock_file, &error))?;
    let stamp = work.join("node_modules/.installed-lock");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    run(
        Command::new(npm)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(work),
        "npm",
    )?;
    fs::write(&stamp, lock).map_err(|error| failed("write", &stamp, &error))
}

fn run(command: &mut Command, program: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| {
        format!(
            "cannot run {program}: {error}. The build makes the page of exported sessions of npm \
             packages (src/export/page/package.json) with Node.js 18 or newer and npm: install \
             them (https://nodejs.org, or `apt-get install nodejs npm`) and build again"
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?} failed with {}{}. If it is npm: it needs the npm registry (or a mirror, see \
         `npm config get registry`) once per change of src/export/page/package-lock.json. It \
         said:\n{}{}",
        output.status,
        match command.get_current_dir() {
            Some(dir) => format!(" in {}", dir.display()),
            None => String::new(),
        },
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    ))
}

fn failed(action: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {action} {}: {error}", path.display())
}
