//! Runs the same script against the original's `SessionManager` and ours.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Home, Reference, prompt};

/// Uses a `SessionManager` in every way and reports the results; ids and times, which differ, are
/// numbered.
const EXERCISE: &str = include_str!("fixtures/session-manager.mjs");

/// A call of the script that writes its result to a file.
fn call(work: &str, folder: &Path, out: &Path) -> String {
    format!("writeFileSync({out:?}, await {work}(pi, {folder:?}));")
}

/// The file as lines, so that a failed assertion shows single lines.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn imports(script: &Path) -> String {
    format!(
        "import exercise, {{ read }} from {script:?}; import {{ writeFileSync }} from 'node:fs';\n"
    )
}

async fn original(home: &Home, script: &Path, calls: &str) {
    let module = Reference::install().program().with_file_name("index.js");
    let code = format!("import * as pi from {module:?}; {}{calls}", imports(script));
    let mut command = home.command("node");
    command.args(["--input-type=module", "-e", &code]);
    let output = command.output().await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

async fn ours(home: &Home, script: &Path, calls: &str) {
    home.extension(
        "exercise.js",
        &format!(
            "import * as pi from '@mariozechner/pi-coding-agent'; {}\
             export default (api) => api.registerCommand('exercise', {{\
               handler: async (_, ctx) => {{ {calls} ctx.ui.notify('done'); }} }});",
            imports(script)
        ),
    );
    let mut rpc = home.rpc(&["--no-session", "--provider", "demo", "--model", "demo"]);
    rpc.ok(prompt("/exercise")).await;
    let reported = rpc.lines();
    let errors = reported
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let errors: Vec<&Value> = errors.collect();
    assert_eq!(errors, Vec::<&Value>::new());
    rpc.notified("done").await;
    assert!(rpc.close().await.success());
}

fn assert_same(ours: &Path, theirs: &Path) {
    let (ours, theirs) = (lines(ours), lines(theirs));
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[tokio::test]
async fn a_session_manager_does_what_the_original_s_does() {
    let home = Home::bare();
    let script = home.file("exercise.mjs", EXERCISE);
    let cwd = home.cwd().canonicalize().unwrap();
    let path = |name: &str| -> PathBuf { cwd.join(name) };
    for folder in ["theirs", "ours"] {
        fs::create_dir_all(path(folder)).unwrap();
    }
    let (theirs, reported) = (path("theirs"), path("theirs.txt"));
    original(&home, &script, &call("exercise", &theirs, &reported)).await;
    let (mine, mine_told) = (path("ours"), path("ours.txt"));
    // The original must also read our files as we do.
    let both = call("exercise", &mine, &mine_told)
        + call("read", &theirs.join("own"), &path("theirs-by-us.txt")).as_str()
        + call("read", &mine.join("own"), &path("ours-by-us.txt")).as_str();
    ours(&home, &script, &both).await;
    assert_same(&mine_told, &reported);
    let both = call("read", &theirs.join("own"), &path("theirs-by-them.txt"))
        + call("read", &mine.join("own"), &path("ours-by-them.txt")).as_str();
    original(&home, &script, &both).await;
    assert_same(&path("theirs-by-us.txt"), &path("theirs-by-them.txt"));
    assert_same(&path("ours-by-us.txt"), &path("ours-by-them.txt"));
}
