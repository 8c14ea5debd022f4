//! Measures the time from the start of a client to the first text of an answer: with the protocol
//! alone, with the original's `RpcClient`, and with `pi-acp`, which editors start.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model_server::{Answer, ModelServer};
use serde_json::json;
use tokio::time::timeout;

use super::original;
use super::print;
use super::process::{Program, Rpc, home};

const CLIENT_RUNS: usize = 7;
const ORIGINAL_RUNS: usize = 3;
/// How long a client may take. Behind pi-acp the original 0.67.68 never answered in this bench.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(30);

pub async fn first_text(pi: &Program, other: Option<&Program>) {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Hello."));
    let rpc = async |program: &Program, runs| {
        let home = home(0, |_| String::new(), &server);
        let mut times = Vec::new();
        for _ in 0..runs {
            let start = Instant::now();
            let mut rpc = Rpc::with(program, home.path(), &["--no-session"]);
            rpc.send(json!({"type": "prompt", "message": "hi"})).await;
            rpc.until(|line| line.contains("\"text_delta\"")).await;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times
    };
    let mut ours = rpc(pi, CLIENT_RUNS).await;
    let mut theirs = match other {
        Some(program) => Some(rpc(program, ORIGINAL_RUNS).await),
        None => None,
    };
    let what = "start to the first text, RPC";
    print(what, "ms", &mut ours, theirs.as_deref_mut());
    for (kind, what) in [
        (
            "rpc-client",
            "the same through RpcClient, which waits for 100 ms",
        ),
        ("pi-acp", "the same through pi-acp, without npm"),
    ] {
        let Some(files) = files(kind) else {
            println!("{what:<52} not installed: run the tests once");
            continue;
        };
        let ours = through(kind, &files, pi, &server, CLIENT_RUNS).await;
        let mut ours = ours.expect("pi answers in time");
        let mut theirs = None;
        if let Some(program) = other {
            theirs = through(kind, &files, program, &server, ORIGINAL_RUNS).await;
            if theirs.is_none() {
                println!("{what}: the original did not answer within {CLIENT_TIMEOUT:?}");
            }
        }
        print(what, "ms", &mut ours, theirs.as_deref_mut());
    }
}

/// Returns the files for `first_text.mjs` that the tests have installed; `None` if they are
/// missing.
fn files(kind: &str) -> Option<Vec<PathBuf>> {
    let tests = original::tests_folder()?;
    let files = match kind {
        "pi-acp" => {
            let packages = tests.join("packages/pi-acp/node_modules");
            vec![
                packages.join("pi-acp/dist/index.js"),
                packages.join("@agentclientprotocol/sdk/dist/acp.js"),
            ]
        }
        _ => vec![original::package()?.join("dist/modes/rpc/rpc-client.js")],
    };
    files.iter().all(|file| file.exists()).then_some(files)
}

/// Returns the milliseconds of each run; `None` if one took longer than [`CLIENT_TIMEOUT`].
async fn through(
    kind: &str,
    files: &[PathBuf],
    program: &Program,
    server: &ModelServer,
    runs: usize,
) -> Option<Vec<f64>> {
    let home = home(0, |_| String::new(), server);
    let bin = home.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let cli = commands(&bin, program).await;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(bin).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).expect("folders");
    let node = Program {
        command: "node".into(),
        args: Vec::new(),
    };
    let mut words: Vec<OsString> = vec![
        concat!(env!("CARGO_MANIFEST_DIR"), "/benches/first_text.mjs").into(),
        kind.into(),
    ];
    words.extend(files.iter().map(|file| file.clone().into_os_string()));
    if kind == "rpc-client" {
        words.push(cli.into_os_string());
    }
    let mut times = Vec::new();
    for _ in 0..runs {
        let output = node
            .command(home.path(), &[])
            .args(&words)
            .env("PATH", &path)
            .output();
        let output = timeout(CLIENT_TIMEOUT, output).await.ok()?;
        let output = output.expect("node is installed");
        let output_text = String::from_utf8_lossy(&output.stdout);
        times.push(output_text.trim().parse().expect("the client measures it"));
    }
    Some(times)
}

/// Installs the program as `pi` in `bin`, and returns the script for `node`. `npm` fails: pi-acp
/// asks it for the newest version and waits for the answer.
async fn commands(bin: &Path, program: &Program) -> PathBuf {
    let script = |name: &str, text: String| {
        let path = bin.join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    };
    script("npm", "#!/bin/sh\nexit 1\n".to_owned());
    let Some(cli) = program.args.first().map(PathBuf::from) else {
        symlink(&program.command, bin.join("pi")).expect("a link");
        let cli = bin.join("launcher.mjs");
        let path = cli.to_str().expect("UTF-8");
        let written = program.command(bin, &["launcher", path]).output().await;
        assert!(written.expect("it runs").status.success());
        return cli;
    };
    let text = format!("#!/bin/sh\nexec node '{}' \"$@\"\n", cli.display());
    script("pi", text);
    cli
}
