//! The original program from npm, by name and version. Its examples look like our users'
//! extensions, and its sessions like theirs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "@mariozechner/pi-coding-agent";
const VERSION: &str = "0.67.68";
const NEWEST_PACKAGE: &str = "@earendil-works/pi-coding-agent";
const NEWEST_AI_PACKAGE: &str = "@earendil-works/pi-ai";
const NEWEST: &str = "1.5.2";

pub struct Reference {
    package: PathBuf,
}

impl Reference {
    /// Installs the original once per machine; concurrent tests wait.
    pub fn install() -> Self {
        let folder = cache_dir().join("pi-tests").join(VERSION);
        fs::create_dir_all(&folder).unwrap();
        let _lock = locked(&folder.join("lock"));
        let complete = folder.join("complete");
        if !complete.exists() {
            fs::write(folder.join("package.json"), r#"{"private": true}"#).unwrap();
            npm(&folder, &["install", &format!("{PACKAGE}@{VERSION}")]);
            fs::write(complete, "").unwrap();
        }
        Self {
            package: folder.join("node_modules").join(PACKAGE),
        }
    }

    /// An example: a file, or a folder with its dependencies.
    pub fn example(&self, name: &str) -> PathBuf {
        let path = self.package.join("examples/extensions").join(name);
        if path.join("package.json").exists() {
            let _lock = locked(&path.with_extension("lock"));
            // npm writes this file last.
            if !path.join("node_modules/.package-lock.json").exists() {
                npm(&path, &["install", "--omit=dev"]);
            }
        }
        assert!(path.exists(), "{} is not there", path.display());
        path
    }

    /// The folder of all examples.
    pub fn examples(&self) -> PathBuf {
        self.package.join("examples/extensions")
    }

    /// The folder of a package with a native addon.
    pub fn addon(&self) -> PathBuf {
        self.package.with_file_name("clipboard")
    }

    /// The folder of the package.
    pub fn package(&self) -> &Path {
        &self.package
    }

    /// The script that `node` runs.
    pub fn program(&self) -> PathBuf {
        self.package.join("dist/cli.js")
    }
}

/// The folder with the client of the newest original. The package needs a newer Node and other
/// packages, but these files need neither.
pub fn newest_client() -> PathBuf {
    let folder = cache_dir().join("pi-tests").join(NEWEST);
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let client = folder.join("package/dist/modes/rpc");
    let complete = folder.join("complete");
    if !complete.exists() {
        npm(&folder, &["pack", &format!("{NEWEST_PACKAGE}@{NEWEST}")]);
        unpack(
            &folder,
            &[
                "package/package.json",
                "package/docs",
                "package/dist/modes/rpc",
            ],
        );
        fs::write(complete, "").unwrap();
    }
    client
}

/// The interpreter of a virtual environment with this package from PyPI, created once per machine.
pub fn python_with(package: &str, version: &str) -> PathBuf {
    let folder = cache_dir()
        .join("pi-tests/python")
        .join(format!("{package}-{version}"));
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let python = folder.join("bin/python3");
    let complete = folder.join("complete");
    if !complete.exists() {
        let environment = folder.to_str().expect("UTF-8");
        python_runs(Path::new("python3"), &["-m", "venv", environment]);
        let wanted = format!("{package}=={version}");
        python_runs(&python, &["-m", "pip", "install", "--quiet", &wanted]);
        fs::write(complete, "").unwrap();
    }
    python
}

fn python_runs(python: &Path, arguments: &[&str]) {
    let output = Command::new(python).args(arguments).output();
    let output = output.expect("Python 3.11 or newer is installed");
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "python3 {arguments:?} (on Debian it needs python3-venv): {printed}"
    );
}

/// The module of the newest original that reads the arguments of tool calls.
pub fn newest_json_parser() -> PathBuf {
    let folder = cache_dir().join("pi-tests").join(format!("pi-ai-{NEWEST}"));
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let complete = folder.join("complete");
    if !complete.exists() {
        fs::write(folder.join("package.json"), r#"{"private": true}"#).unwrap();
        // The module needs only one of the package's dependencies.
        let package = format!("{NEWEST_AI_PACKAGE}@{NEWEST}");
        npm(&folder, &["install", "partial-json@0.1.7"]);
        npm(&folder, &["pack", &package]);
        unpack(&folder, &["package/package.json", "package/dist/utils"]);
        fs::write(complete, "").unwrap();
    }
    folder.join("package/dist/utils/json-parse.js")
}

/// Unpacks these members of the archive that npm has packed into the folder.
fn unpack(folder: &Path, members: &[&str]) {
    let archive = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let archive = { archive }.find(|path| path.extension().is_some_and(|it| it == "tgz"));
    let archive = archive.expect("npm has packed it");
    let unpacked = Command::new("tar")
        .arg("xzf")
        .arg(&archive)
        .args(members)
        .current_dir(folder)
        .status();
    assert!(unpacked.expect("tar is installed").success());
    fs::remove_file(archive).unwrap();
}

/// Holds a lock between processes until it is dropped.
pub fn locked(path: &Path) -> File {
    let file = File::create(path).unwrap();
    file.lock().unwrap();
    file
}

pub fn npm(folder: &Path, arguments: &[&str]) {
    let output = Command::new("npm")
        .args(arguments)
        .args(["--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(folder)
        .output()
        .expect("npm is installed (scripts/setup)");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "npm {arguments:?}: {printed}");
}

pub fn cache_dir() -> PathBuf {
    std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(std::env::home_dir()?.join(".cache")))
        .expect("a home folder")
}

/// `node_modules` with TypeScript and the packages of `extension-types`, installed once per
/// version of its lock file.
pub fn type_packages() -> PathBuf {
    let types = Path::new(env!("CARGO_MANIFEST_DIR")).join("extension-types");
    let folder = cache_dir().join("pi-tests/types");
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let wanted = fs::read(types.join("package-lock.json")).unwrap();
    let complete = folder.join("complete");
    if fs::read(&complete).ok().as_ref() != Some(&wanted) {
        for name in ["package.json", "package-lock.json"] {
            fs::copy(types.join(name), folder.join(name)).unwrap();
        }
        npm(&folder, &["ci"]);
        fs::write(complete, wanted).unwrap();
    }
    folder.join("node_modules")
}
