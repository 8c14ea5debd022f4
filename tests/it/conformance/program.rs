//! The programs that are compared, and the packages from npm that they run with.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::support::{Home, Reference, cache_dir, locked, npm};

const NEWEST: &str = "@earendil-works/pi-coding-agent";
/// The version that pi says it has the API of: a newer one here is one in
/// `src/base/version.rs`, too.
pub const NEWEST_VERSION: &str = "0.87.1";
/// What the newest original asks for.
const NODE_VERSION: &str = "24.21.0";

#[derive(Clone)]
pub enum Program {
    Ours(PathBuf),
    Original { node: PathBuf, script: PathBuf },
}

impl Program {
    /// The one that was built, or the one that `PI_CONFORMANCE_BINARY` names.
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

    /// The newest one under its new name, with the node it needs.
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

    /// The folder with the packages of the newest one's scope.
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

    /// Makes it be found as `pi`.
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

/// Packages in a folder of their own, once per machine: where the first is.
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
