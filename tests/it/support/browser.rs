//! A browser installed on the machine, driven by the scripts of `tests/browser`. Tests are skipped
//! without one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use tokio::process::Command;

use super::locked;
use super::reference::{cache_dir, npm};

const PROGRAMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
];
/// The exit code of a script whose browser did not start.
const NO_BROWSER: i32 = 77;
/// Time limit of one script.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(900);

pub struct Browser {
    program: PathBuf,
    scripts: PathBuf,
}

impl Browser {
    /// Finds a browser. Without one, reports a skipped test on stderr and returns `None`.
    pub fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(&path).collect();
        let found = PROGRAMS
            .iter()
            .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
            .find(|program| program.is_file());
        let Some(program) = found else {
            skipped(&format!("none of {} is installed", PROGRAMS.join(", ")));
            return None;
        };
        Some(Self {
            program,
            scripts: install(),
        })
    }

    /// Runs a script with the browser and a folder. If the browser does not start here, reports a
    /// skipped test and returns `false`.
    pub async fn run(&self, script: &str, folder: &Path) -> bool {
        let mut command = Command::new("node");
        command
            .arg(self.scripts.join(script))
            .arg(&self.program)
            .arg(folder)
            .kill_on_drop(true);
        let output = tokio::time::timeout(SCRIPT_TIMEOUT, command.output()).await;
        let output = output.expect("the script ends").expect("node is installed");
        let printed =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(NO_BROWSER) {
            skipped(&printed);
            return false;
        }
        assert!(output.status.success(), "{printed}");
        true
    }
}

/// Copies the scripts beside the packages that they import, once per version of both. A script that
/// is the same stays as it is: another test may be reading it.
fn install() -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let folder = cache_dir().join("pi-tests/browser");
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let lock_file = "package-lock.json";
    let wanted = fs::read(from.join(lock_file)).unwrap();
    let complete = folder.join("complete");
    if fs::read(&complete).ok().as_ref() != Some(&wanted) {
        for name in ["package.json", lock_file] {
            fs::copy(from.join(name), folder.join(name)).unwrap();
        }
        npm(&folder, &["ci"]);
        fs::write(complete, wanted).unwrap();
    }
    for entry in fs::read_dir(&from).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "mjs") {
            let copy = folder.join(path.file_name().expect("a file has a name"));
            let text = fs::read(&path).unwrap();
            if fs::read(&copy).ok().as_ref() != Some(&text) {
                fs::write(copy, text).unwrap();
            }
        }
    }
    folder
}

/// Writes to the real stderr, which the test runner does not capture.
fn skipped(reason: &str) {
    let line = format!("\nSKIPPED: a test that needs a browser: {reason}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}
