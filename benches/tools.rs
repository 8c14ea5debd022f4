//! Measures the built-in tools with much input: searches of a large tree beside `rg` and `fd` where
//! they are installed, a file of a gigabyte, a gigabyte of output.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use pi_tools::tool::ToolInvocation;
use pi_tools::{ToolOptions, builtin};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::print;

const SEARCH_RUNS: usize = 7;
const GIB: usize = 1 << 30;

pub async fn measure() {
    println!();
    searches().await;
    let folder = TempDir::with_prefix("pi-bench-").expect("a temporary folder");
    large_read(folder.path()).await;
    large_edit(folder.path()).await;
    much_output(folder.path()).await;
}

/// Calls a tool and returns its duration in milliseconds. An error is printed.
async fn call(cwd: &Path, name: &str, args: Value) -> f64 {
    let tools = builtin(cwd.to_owned(), ToolOptions::default());
    let tool = tools.iter().find(|tool| tool.spec().name == name);
    let tool = tool.expect("a built-in tool");
    let call = ToolInvocation {
        id: "x".to_owned(),
        args,
        cancel: CancellationToken::new(),
        updates: Arc::new(|_| {}),
        started: None,
        unreadable: None,
    };
    let begun = Instant::now();
    let result = tool.execute(call).await;
    let took = begun.elapsed();
    match result {
        // The tool keeps its whole output in a file, which is not needed here.
        Ok(output) => {
            let log = output
                .details
                .and_then(|mut all| all["fullOutputPath"].take().as_str().map(str::to_owned));
            if let Some(log) = log {
                std::fs::remove_file(log).expect("it was just written");
            }
        }
        Err(error) => println!("{name}: {error}"),
    }
    took.as_secs_f64() * 1000.0
}

/// Runs a program and returns its duration in milliseconds; `None` if it is not installed.
async fn program(names: [&str; 2], args: &[&str], cwd: &Path) -> Option<f64> {
    for name in names {
        let mut command = Command::new(name);
        command.args(args).current_dir(cwd);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let begun = Instant::now();
        if command.status().await.is_ok() {
            return Some(begun.elapsed().as_secs_f64() * 1000.0);
        }
    }
    None
}

/// The sources of all crates that pi is built of, or pi's own.
fn tree() -> PathBuf {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = cargo.map(|cargo| cargo.join("registry/src"));
    let here = || env!("CARGO_MANIFEST_DIR").into();
    sources.filter(|path| path.is_dir()).unwrap_or_else(here)
}

async fn searches() {
    let tree = tree();
    println!("searches in {}", tree.display());
    let rg = ["--json", "--line-number", "--color=never", "--hidden"];
    let fd = ["--glob", "--color=never", "--hidden", "--no-require-git"];
    let rg = |pattern| [&rg[..], &[pattern, "."]].concat();
    let fd = |pattern| [&fd[..], &["--max-results", "1000", pattern, "."]].concat();
    let rows = [
        (
            "grep",
            "found nowhere",
            "zzz[0-9]nowhere",
            rg("zzz[0-9]nowhere"),
        ),
        ("grep", "found everywhere, first 100", "the", Vec::new()),
        ("find", "found nowhere", "*.nowhere", fd("*.nowhere")),
        ("find", "found everywhere, first 1000", "*.rs", fd("*.rs")),
    ];
    for (tool, what, pattern, args) in rows {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..SEARCH_RUNS {
            ours.push(call(&tree, tool, json!({ "pattern": pattern })).await);
            if !args.is_empty() {
                let names = if tool == "grep" {
                    ["rg", "rg"]
                } else {
                    ["fd", "fdfind"]
                };
                theirs.extend(program(names, &args, &tree).await);
            }
        }
        let what = format!("{tool}: {what}");
        print(&what, "ms", &mut ours, None);
        if !theirs.is_empty() {
            let name = if tool == "grep" { "rg" } else { "fd" };
            print(&format!("  {name}, as a process"), "ms", &mut theirs, None);
        }
    }
}

fn lines(path: &Path, bytes: usize) {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    let mut written = 0;
    let mut number = 0;
    while written < bytes {
        number += 1;
        let line = format!("line {number} of a file that is as large as it has to be\n");
        file.write_all(line.as_bytes()).expect("room on the disk");
        written += line.len();
    }
    file.flush().expect("room on the disk");
}

async fn large_read(folder: &Path) {
    let path = folder.join("large.txt");
    lines(&path, GIB);
    let before = reset_peak();
    let args = json!({ "path": "large.txt", "offset": 15_000_000, "limit": 100 });
    let mut took = vec![call(folder, "read", args.clone()).await];
    took.push(call(folder, "read", args).await);
    print(
        "read: 100 lines in the midst of 1 GiB",
        "ms",
        &mut took,
        None,
    );
    print_peak(before);
    std::fs::remove_file(path).expect("it is there");
}

async fn large_edit(folder: &Path) {
    let path = folder.join("edit.txt");
    lines(&path, 50 << 20);
    let before = reset_peak();
    let mut took = Vec::new();
    for (old, new) in [("400000 of", "400000  of"), ("400000  of", "400000 of")] {
        let edits = json!([{ "oldText": format!("line {old}"), "newText": format!("line {new}") }]);
        took.push(
            call(
                folder,
                "edit",
                json!({ "path": "edit.txt", "edits": edits }),
            )
            .await,
        );
    }
    print("edit: one line of 50 MiB", "ms", &mut took, None);
    print_peak(before);
}

async fn much_output(folder: &Path) {
    let before = reset_peak();
    let command = format!("yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c {GIB}");
    let mut took = vec![call(folder, "bash", json!({ "command": command })).await];
    print("bash: 1 GiB of output", "ms", &mut took, None);
    print_peak(before);
}

/// Returns the memory of the process in MiB. Its peak is counted from here on, where the system
/// supports that.
fn reset_peak() -> Option<f64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

fn print_peak(before: Option<f64>) {
    if let (Some(before), Some(peak)) = (before, status("VmHWM:")) {
        println!("  memory: {peak:.0} MiB at most, {before:.0} MiB before");
    }
}

fn status(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
