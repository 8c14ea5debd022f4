//! How long the packages of the suite take to load, in both programs: from the
//! start of the process to the answer to its first command, less what that takes
//! without them. Needs a release build and a machine with nothing else to do:
//!
//! `PI_CONFORMANCE_BINARY=…/pi cargo nextest run -p pi --test it --run-ignored only load_times --no-capture`

use std::path::PathBuf;
use std::time::{Duration, Instant};

use model_server::ModelServer;
use serde_json::json;

use super::program::{Program, packages};
use super::scenario::suites;
use crate::support::{Home, Rpc};

/// Of each the median is told.
const RUNS: usize = 5;
/// A session of ours goes on for a while, in which its code caches are made.
const SETTLING: Duration = Duration::from_secs(4);

struct Times {
    cold: Duration,
    warm: Duration,
}

#[tokio::test]
#[ignore = "measures, and compares nothing"]
async fn load_times() {
    let suites = suites();
    let suites = suites.iter().filter(|suite| !suite.packages.is_empty());
    let mut rows = Vec::new();
    let mut all = [Vec::new(), Vec::new()];
    for suite in suites {
        let folder = packages(&suite.name, &suite.packages);
        all[usize::from(suite.newest)].push(folder.clone());
        rows.push((suite.name.clone(), suite.newest, vec![folder]));
    }
    let [old, newest] = all;
    rows.push(("all for 0.67.68".into(), false, old));
    rows.push(("all for the newest".into(), true, newest));
    println!("milliseconds            cold: ours  original  ratio    warm: ours  original  ratio");
    let ours = Program::ours();
    let nothing = measure(&ours, &[], SETTLING).await;
    for (name, is_new, folders) in rows {
        let original = match is_new {
            true => Program::newest(),
            false => Program::original(),
        };
        let without = measure(&original, &[], Duration::ZERO).await;
        let mine = measure(&ours, &folders, SETTLING).await;
        let theirs = measure(&original, &folders, Duration::ZERO).await;
        let less =
            |with: Duration, without: Duration| with.saturating_sub(without).as_secs_f64() * 1000.0;
        let cold = [
            less(mine.cold, nothing.cold),
            less(theirs.cold, without.cold),
        ];
        let warm = [
            less(mine.warm, nothing.warm),
            less(theirs.warm, without.warm),
        ];
        println!(
            "{name:<24}{:>10.0}{:>10.0}{:>7.1}{:>14.0}{:>10.0}{:>7.1}",
            cold[0],
            cold[1],
            cold[1] / cold[0],
            warm[0],
            warm[1],
            warm[1] / warm[0],
        );
    }
}

async fn measure(program: &Program, folders: &[PathBuf], stays: Duration) -> Times {
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let server = ModelServer::start().await;
        // A new home has nothing compiled in it.
        let home = Home::new(&server);
        home.settings(json!({"packages": folders}));
        cold.push(start(program, &home, stays).await);
        warm.push(start(program, &home, Duration::ZERO).await);
    }
    Times {
        cold: median(cold),
        warm: median(warm),
    }
}

async fn start(program: &Program, home: &Home, stays: Duration) -> Duration {
    let begun = Instant::now();
    let mut command = program.command(home);
    command.args(["--mode", "rpc"]);
    let mut rpc = Rpc::start(command);
    rpc.ok(json!({"type": "get_commands"})).await;
    let took = begun.elapsed();
    tokio::time::sleep(stays).await;
    rpc.close().await;
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
