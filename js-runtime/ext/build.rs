//! Gathers the modules that extensions import without installing them: our own TypeScript
//! (`../js/modules`) and the npm packages of `../npm`, which come from the registry, are checked
//! against the hashes of the lock file, and are bundled in `OUT_DIR`. Writes the list that
//! `src/virtual_modules.rs` includes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Modules outside `../js/modules` that those import.
const SHARED: &[&str] = &["unavailable.ts"];

fn main() -> ExitCode {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(out_dir), Some(here)) = (folder("OUT_DIR"), folder("CARGO_MANIFEST_DIR")) else {
        eprintln!("error: this is a build script of cargo, it does not run alone");
        return ExitCode::FAILURE;
    };
    match gather(&here.join(".."), &out_dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\nerror: {message}\n");
            ExitCode::FAILURE
        }
    }
}

/// Tables that `src/virtual_modules.rs` includes: names and the files behind them.
#[derive(Default)]
struct Lists {
    /// (what an extension writes, specifier)
    names: Vec<(String, String)>,
    /// (specifier, absolute path)
    files: Vec<(String, String)>,
}

fn gather(runtime_dir: &Path, out_dir: &Path) -> Result<(), String> {
    println!("cargo:rerun-if-changed=build.rs");
    let mut lists = Lists::default();
    let js = runtime_dir.join("js");
    for name in SHARED {
        own_file(&js.join(name), format!("pi:{name}"), &mut lists)?;
    }
    own_folder(&js.join("modules"), "pi:", &mut lists)?;
    version_module(&out_dir.join("version.ts"), &mut lists)?;
    bundled_packages(&runtime_dir.join("npm"), out_dir, &mut lists)?;
    lists.names.sort();
    lists.files.sort();
    write(&out_dir.join("virtual_modules.rs"), &lists.source())
}

impl Lists {
    fn source(&self) -> String {
        let mut code = String::new();
        for (table, rows) in [("NPM_MODULES", &self.names), ("FILES", &self.files)] {
            _ = writeln!(code, "pub(crate) const {table}: &[(&str, &str)] = &[");
            for (key, value) in rows {
                _ = writeln!(code, "    ({key:?}, {value:?}),");
            }
            _ = writeln!(code, "];");
        }
        code
    }
}

fn own_folder(folder: &Path, prefix: &str, lists: &mut Lists) -> Result<(), String> {
    // The folder is watched, so that a new file is noticed.
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            own_folder(&path, &format!("{prefix}{name}/"), lists)?;
        } else if name.ends_with(".ts") && !name.ends_with(".test.ts") && !name.ends_with(".d.ts") {
            own_file(&path, format!("{prefix}{name}"), lists)?;
        }
    }
    Ok(())
}

/// Writes `pi:version.ts`, whose type is in `js/modules/version.d.ts`.
fn version_module(path: &Path, lists: &mut Lists) -> Result<(), String> {
    write(
        path,
        &format!("export const VERSION = {:?};\n", pi_base::VERSION),
    )?;
    let path = path.to_str().ok_or("OUT_DIR is not UTF-8")?;
    lists.files.push(("pi:version.ts".into(), path.into()));
    Ok(())
}

fn own_file(path: &Path, specifier: String, lists: &mut Lists) -> Result<(), String> {
    println!("cargo:rerun-if-changed={}", path.display());
    let path = fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let source = read(&path)?;
    // A snapshot holds module sources as one-byte strings.
    if let Some(line) = source.lines().position(|line| !line.is_ascii()) {
        return Err(format!(
            "{}:{} has a character outside ASCII; write it as \\u{{...}}",
            path.display(),
            line + 1
        ));
    }
    let path = path
        .to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))?;
    lists.files.push((specifier, path.to_string()));
    Ok(())
}

fn bundled_packages(npm: &Path, out_dir: &Path, lists: &mut Lists) -> Result<(), String> {
    let work = out_dir.join("npm");
    fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
    for name in ["package.json", "package-lock.json", "bundle.mjs"] {
        let from = npm.join(name);
        println!("cargo:rerun-if-changed={}", from.display());
        write(&work.join(name), &read(&from)?)?;
    }
    install(&work)?;
    let bundles = out_dir.join("bundles");
    run(
        Command::new("node")
            .arg("bundle.mjs")
            .arg(&bundles)
            .current_dir(&work),
        "node",
    )?;
    for line in read(&bundles.join("manifest.tsv"))?.lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        match columns[..] {
            ["module", name, specifier] => lists.names.push((name.into(), specifier.into())),
            ["file", specifier, path] => lists.files.push((specifier.into(), path.into())),
            _ => {
                return Err(format!("unexpected output of bundle.mjs: {line}"));
            }
        }
    }
    Ok(())
}

/// Runs `npm ci`, unless the installed packages match the lock file.
fn install(work: &Path) -> Result<(), String> {
    let lock = read(&work.join("package-lock.json"))?;
    let stamp = work.join("node_modules/.installed-lock");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    run(
        Command::new(npm)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(work),
        "npm",
    )?;
    write(&stamp, &lock)
}

fn run(command: &mut Command, program: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| {
        format!(
            "cannot run {program}: {error}. The build gets the npm packages that extensions import \
             (js-runtime/npm/package.json) with Node.js 20 or newer and npm: install them \
             (https://nodejs.org, or `apt-get install nodejs npm`) and build again"
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{command:?} failed with {}{}. It needs the npm registry (or a mirror, see \
         `npm config get registry`) once per change of js-runtime/npm/package-lock.json. It said:\n{}{}",
        output.status,
        match command.get_current_dir() {
            Some(dir) => format!(" in {}", dir.display()),
            None => String::new(),
        },
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    ))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
