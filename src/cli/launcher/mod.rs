//! `pi launcher`: writes a script that starts this program, for clients that can only start
//! `node <path>`, as the `RpcClient` of the original's npm package does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{CliError, output, print_stderr};

const USAGE: &str = "\
Usage: pi launcher [PATH]

Writes a JavaScript file that starts this program, for clients that start pi as
`node <PATH>`: new RpcClient({ cliPath: PATH }). It hands on arguments, input,
output, signals and the exit code, and works as .js, .mjs and .cjs. Without a
PATH it goes to stdout. The variable PI_PROGRAM names another pi to start.
";

const SCRIPT: &str = include_str!("launcher.js");
/// Placeholder in the script for the path of the program.
const PROGRAM_PLACEHOLDER: &str = "\"@PROGRAM@\"";
/// Marks files written by this command, which may be overwritten.
const LAUNCHER_MARK: &str = "Written by: pi launcher\n";

#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    #[error("pi launcher cannot find this program: {0}")]
    Program(io::Error),
    #[error("pi launcher cannot write {path}: {source}", path = path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{path} is there and is no launcher: remove it, or name another file",
        path = .0.display()
    )]
    Taken(PathBuf),
}

/// Runs the command and returns the exit code.
pub fn run(args: &[String]) -> Result<u8, CliError> {
    match &args[1..] {
        [] => output(&script()?)?,
        [arg] if arg == "-h" || arg == "--help" => output(USAGE)?,
        [path] if !path.starts_with('-') => {
            let path = Path::new(path);
            write(path, &script()?)?;
            output(&format!("{}\n", path.display()))?;
        }
        [arg, ..] => {
            print_stderr(&format!("pi launcher takes one path, not {arg}."));
            print_stderr("Usage: pi launcher [PATH]");
            return Ok(1);
        }
    }
    Ok(0)
}

fn script() -> Result<String, LauncherError> {
    let program = js_runtime::program().map_err(LauncherError::Program)?;
    let program = serde_json::Value::from(program.to_string_lossy());
    Ok(SCRIPT.replacen(PROGRAM_PLACEHOLDER, &program.to_string(), 1))
}

fn write(path: &Path, script: &str) -> Result<(), LauncherError> {
    let failed = |source| LauncherError::Write {
        path: path.to_owned(),
        source,
    };
    match fs::read(path) {
        Ok(existing) if !String::from_utf8_lossy(&existing).contains(LAUNCHER_MARK) => {
            return Err(LauncherError::Taken(path.to_owned()));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, script).map_err(failed)?;
    make_executable(path).map_err(failed)
}

/// Makes the file executable, so that it also starts without naming node.
#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_mode(permissions.mode() | 0o111);
    fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_one_placeholder_and_the_mark() {
        assert_eq!(SCRIPT.matches(PROGRAM_PLACEHOLDER).count(), 1);
        assert!(SCRIPT.contains(LAUNCHER_MARK));
    }
}
