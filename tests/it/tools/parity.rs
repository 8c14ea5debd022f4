//! Compares the built-in tools with the original's, byte for byte. The original's results for a
//! slice of the comparison are in `tests/tool-parity`; the whole comparison runs from there (see
//! its README) and uses the second test here to run our tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pi_tools::ToolOptions;
use pi_tools::arguments::validate;
use pi_tools::builtin;
use pi_tools::tool::{ToolInvocation, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::TIMEOUT;

#[derive(Deserialize)]
struct Suite {
    #[serde(default)]
    root: PathBuf,
    files: Vec<Entry>,
    cases: Vec<Case>,
    /// The original's results for the slice.
    #[serde(default)]
    answers: Vec<Value>,
}

/// A file, folder or link to create.
#[derive(Deserialize)]
struct Entry {
    path: String,
    #[serde(default)]
    latin1: bool,
    #[serde(default)]
    dir: bool,
    text: Option<String>,
    base64: Option<String>,
    repeat: Option<(String, usize)>,
    link: Option<String>,
    mode: Option<u32>,
}

#[derive(Deserialize)]
struct Case {
    tool: String,
    args: Value,
    /// A folder in the tree or anywhere; without it the case has its own folder.
    cwd: Option<String>,
    #[serde(default)]
    files: Vec<Entry>,
    /// Files to compare afterwards.
    #[serde(default)]
    after: Vec<String>,
}

#[tokio::test]
async fn a_slice_has_the_results_of_the_original() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tool-parity/slice.json");
    let mut suite: Suite = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let root = tempfile::Builder::new().prefix("pi-it-").tempdir().unwrap();
    suite.root = root.path().canonicalize().unwrap();
    let answers = answer(&suite).await;
    assert_eq!(suite.answers.len(), suite.cases.len());
    let all = suite.cases.iter().zip(&suite.answers).zip(&answers);
    for ((case, expected), answer) in all {
        let Case { tool, args, .. } = case;
        assert_eq!(answer, expected, "{tool} {args} in {:?}", case.cwd);
    }
}

#[tokio::test]
#[ignore = "answers for tests/tool-parity/run.mjs, which says where the questions are"]
async fn answers_for_the_comparison() {
    let place = |name| std::env::var_os(name).expect("set by tests/tool-parity/run.mjs");
    let text = std::fs::read(place("PARITY_SUITE")).unwrap();
    let suite: Suite = serde_json::from_slice(&text).unwrap();
    let answers = answer(&suite).await;
    let text = serde_json::to_vec(&answers).unwrap();
    std::fs::write(place("PARITY_ANSWERS"), text).unwrap();
}

async fn answer(suite: &Suite) -> Vec<Value> {
    make(&suite.root, &suite.files);
    let root = suite.root.to_str().unwrap();
    let mut answers = Vec::new();
    for (index, case) in suite.cases.iter().enumerate() {
        let cwd = match &case.cwd {
            Some(cwd) => suite.root.join(cwd),
            None => {
                let cwd = suite.root.join(format!("case-{index}"));
                std::fs::create_dir_all(&cwd).unwrap();
                make(&cwd, &case.files);
                cwd
            }
        };
        let args = case.args.to_string().replace("$ROOT", root);
        let args = serde_json::from_str(&args).unwrap();
        let result = tokio::time::timeout(TIMEOUT, run(&case.tool, &cwd, args)).await;
        let mut answer = match result.expect("an answer in time") {
            Ok(output) => without_patch(serde_json::to_value(output).unwrap()),
            Err(error) => json!({ "error": error }),
        };
        if !case.after.is_empty() {
            let content = |path: &String| {
                let bytes = std::fs::read(cwd.join(path)).ok();
                (path.clone(), bytes.map(|bytes| STANDARD.encode(bytes)))
            };
            let after: BTreeMap<_, _> = case.after.iter().map(content).collect();
            answer["after"] = json!(after);
        }
        let answer = answer.to_string().replace(root, "$ROOT");
        answers.push(serde_json::from_str(&answer).unwrap());
    }
    answers
}

/// Newer versions of the original add `patch` to the details of `edit`.
fn without_patch(mut output: Value) -> Value {
    let details = output.get_mut("details").and_then(Value::as_object_mut);
    if let Some(details) = details {
        details.remove("patch");
    }
    output
}

/// Runs a tool as the agent does.
async fn run(name: &str, cwd: &Path, args: Value) -> Result<ToolOutput, String> {
    let tools = builtin(cwd.to_owned(), ToolOptions::default());
    let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
    let output = |error: pi_tools::tool::ToolError| error.0;
    let args = tool.prepare_arguments(args).await.map_err(output)?;
    let args = validate::validate(tool.spec(), args).map_err(output)?;
    let call = ToolInvocation {
        id: "x".to_owned(),
        args,
        cancel: CancellationToken::new(),
        updates: Arc::new(|_| {}),
        started: None,
        unreadable: None,
    };
    tool.execute(call).await.map_err(output)
}

fn make(root: &Path, entries: &[Entry]) {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    let place = |entry: &Entry| match entry.latin1 {
        true => {
            let bytes = entry.path.chars().map(|sign| sign as u8).collect();
            root.join(std::ffi::OsString::from_vec(bytes))
        }
        false => root.join(&entry.path),
    };
    for entry in entries {
        let path = place(entry);
        if entry.dir {
            std::fs::create_dir_all(path).unwrap();
            continue;
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = match (&entry.base64, &entry.repeat, &entry.text) {
            (Some(base64), ..) => STANDARD.decode(base64).unwrap(),
            (_, Some((text, count)), _) => text.repeat(*count).into_bytes(),
            (_, _, text) => text.clone().unwrap_or_default().into_bytes(),
        };
        match &entry.link {
            Some(target) => symlink(target, path).unwrap(),
            None => std::fs::write(path, content).unwrap(),
        }
    }
    for entry in entries {
        if let Some(mode) = entry.mode {
            std::fs::set_permissions(place(entry), PermissionsExt::from_mode(mode)).unwrap();
        }
    }
}
