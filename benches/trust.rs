//! Measures what trust in a project costs at the start: a folder with a thousand files that need
//! it, left out and used, with and without the check.

use std::fs;
use std::path::Path;
use std::time::Duration;

use model_server::ModelServer;
use serde_json::json;

use super::print;
use super::process::{Program, Rpc, home, small};

const FILES: usize = 1000;
const RUNS: usize = 31;
/// The state of a file counts once it is this old; before that, files are read at each start.
const SETTLED: Duration = Duration::from_millis(2500);

pub async fn starts(program: &Program) {
    let server = ModelServer::start().await;
    let home = home(0, small, &server);
    let times = async |args: &[&str]| {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            times.push(start(program, home.path(), args).await);
        }
        times
    };
    print(
        "rpc start: nothing that needs trust",
        "ms",
        &mut times(&[]).await,
        None,
    );
    let skill = home.path().join(".pi/skills/many");
    fs::create_dir_all(skill.join("files")).expect("a folder");
    let text = "---\nname: many\ndescription: has many files\n---\n";
    fs::write(skill.join("SKILL.md"), text).expect("a file");
    for n in 0..FILES {
        fs::write(skill.join(format!("files/{n}.md")), format!("File {n}.\n")).expect("a file");
    }
    let flag = "rpc start: 1,000 files, --no-approve";
    print(flag, "ms", &mut times(&["--no-approve"]).await, None);
    allow(program, home.path(), "deny").await;
    print(
        "rpc start: 1,000 files, not trusted",
        "ms",
        &mut times(&[]).await,
        None,
    );
    tokio::time::sleep(SETTLED).await;
    let flag = "rpc start: 1,000 files used without the check (--approve)";
    print(flag, "ms", &mut times(&["--approve"]).await, None);
    allow(program, home.path(), "allow").await;
    print(
        "rpc start: 1,000 files, trusted and unchanged",
        "ms",
        &mut times(&[]).await,
        None,
    );
}

async fn allow(program: &Program, home: &Path, answer: &str) {
    let output = program.command(home, &["trust", answer]).output().await;
    assert!(output.expect("the program runs").status.success());
}

/// Returns the milliseconds from the start of the process to its first response.
async fn start(program: &Program, home: &Path, args: &[&str]) -> f64 {
    let started = std::time::Instant::now();
    let mut rpc = Rpc::with(program, home, &[&["--no-session"], args].concat());
    rpc.send(json!({"id": "1", "type": "get_state"})).await;
    rpc.until(|line| line.contains("\"get_state\"")).await;
    started.elapsed().as_secs_f64() * 1000.0
}
