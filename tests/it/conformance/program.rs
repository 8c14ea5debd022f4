//! The compared programs and the npm packages that they run with.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::support::{Home, Reference, cache_dir, locked, npm};

const NEWEST: &str = "@earendil-works/pi-coding-agent";
/// The version whose API pi claims to have. A newer version here also needs one in
/// `src/base/version.rs`.
pub const NEWEST_VERSION: &str = "0.87.1";
/// The version of Node that the newest original requires.
const NODE_VERSION: &str = "24.21.0";

#[derive(Clone)]
pub enum Program {
    Ours(PathBuf),
    Original { node: PathBuf, script: PathBuf },
}

impl Program {
    /// The built program, or the one that `PI_CONFORMANCE_BINARY` names.
    pub fn ours() -> Self {
        let named = std::env::var_os("PI_CONFORMANCE_BINARY");
        Self::Ours(named.map_or_else(|| env!("CARGO_BIN_EXE_pi").into(), PathBuf::from))
    }

    pub fn original() -> Self {
        Self::Original {
            node: "node".into(),
            script: Reference::install().program(),
        }
    }

    /// The newest original under its new package name, with the Node that it requires.
    pub fn newest() -> Self {
        let architecture = match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "x64",
        };
        let node = format!("node-linux-{architecture}");
        let wanted = [
            format!("{NEWEST}@{NEWEST_VERSION}"),
            format!("{node}@{NODE_VERSION}"),
        ];
        let modules = packages("newest-original", &wanted);
        let modules = modules
            .ancestors()
            .find(|path| path.ends_with("node_modules"));
        let modules = modules.expect("it is installed in one");
        Self::Original {
            node: modules.join(node).join("bin/node"),
            script: modules.join(NEWEST).join("dist/cli.js"),
        }
    }

    /// The folder with the packages of the newest original's scope.
    pub fn newest_scope() -> PathBuf {
        match Self::newest() {
            Self::Original { script, .. } => {
                let scope = script
                    .ancestors()
                    .find(|path| path.ends_with("@earendil-works"));
                scope.expect("it is a package of that scope").to_owned()
            }
            Self::Ours(_) => unreachable!("the newest one is an original"),
        }
    }

    pub fn command(&self, home: &Home) -> Command {
        match self {
            Self::Ours(path) => home.command(path.to_str().expect("UTF-8")),
            Self::Original { node, script } => {
                let mut command = home.command(node.to_str().expect("UTF-8"));
                command.arg(script);
                command
            }
        }
    }

    /// Links the program as `pi`.
    pub fn link(&self, path: &Path) {
        match self {
            Self::Ours(program) => symlink(program, path).unwrap(),
            Self::Original { node, script } => {
                let (node, script) = (node.display(), script.display());
                let text = format!("#!/bin/sh\nexec '{node}' '{script}' \"$@\"\n");
                fs::write(path, text).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }
}

/// Installs packages in a folder of their own, once per machine. Returns the folder of the first.
pub fn packages(name: &str, wanted: &[String]) -> PathBuf {
    let folder = cache_dir().join("pi-tests/packages").join(name);
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let complete = folder.join("complete");
    let all = wanted.join("\n");
    if fs::read_to_string(&complete).ok().as_deref() != Some(&all) {
        fs::write(folder.join("package.json"), r#"{"private": true}"#).unwrap();
        let mut arguments = vec![
            "install",
            "--omit=dev",
            "--legacy-peer-deps",
            "--save-exact",
        ];
        arguments.extend(wanted.iter().map(String::as_str));
        npm(&folder, &arguments);
        fs::write(complete, all).unwrap();
    }
    let first = wanted.first().expect("a package");
    let (first, _) = first.rsplit_once('@').expect("a version is pinned");
    folder.join("node_modules").join(first)
}

/// Installs a package with pi, once per machine and version. Returns its folder, from which both
/// programs load it.
pub fn installed(name: &str, wanted: &[String]) -> PathBuf {
    let folder = cache_dir().join("pi-tests/installed").join(name);
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let complete = folder.join("complete");
    let all = wanted.join("\n");
    let agent_dir = folder.join("agent");
    if fs::read_to_string(&complete).ok().as_deref() != Some(&all) {
        let Program::Ours(pi) = Program::ours() else {
            unreachable!("it is ours");
        };
        for package in wanted {
            let output = std::process::Command::new(&pi)
                .args(["install", &format!("npm:{package}")])
                .env("PI_CODING_AGENT_DIR", &agent_dir)
                .env_remove("PI_OFFLINE")
                .current_dir(&folder)
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "pi install npm:{package}: {printed}"
            );
        }
        fs::write(complete, all).unwrap();
    }
    let first = wanted.first().expect("a package");
    let (first, _) = first.rsplit_once('@').expect("a version is pinned");
    agent_dir.join("npm/node_modules").join(first)
}
