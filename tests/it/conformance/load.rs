//! Measures the load times of the packages of the suite in both programs in turn: from the start of
//! the process until all extensions are loaded, and until the first command is answered, which
//! includes the work that they do in `session_start`. Prints the table of `docs/performance.md`.
//! Needs a release build and an otherwise idle machine:
//!
//! `PI_CONFORMANCE_BINARY=…/pi cargo nextest run -p pi --test it --run-ignored only load_times
//! --no-capture`

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model_server::ModelServer;
use serde_json::json;

use super::program::{Program, packages};
use super::scenario::suites;
use crate::support::{Home, Rpc};

/// The median of this many cold starts is printed.
const COLD_RUNS: usize = 3;
const WARM_RUNS: usize = 12;
/// How long the start before a warm one lasts: pi writes its code caches while it is idle.
const SETTLING: Duration = Duration::from_secs(4);

/// Loaded before the packages, so its handler of `session_start` runs first once all are loaded.
const PROBE: &str = "
export default (pi) => pi.on('session_start', (_event, ctx) => ctx.ui.notify(`loaded at ${Date.now()}`));
";

struct Row {
    name: String,
    is_newest: bool,
    packages: Vec<PathBuf>,
}

/// Milliseconds from the start of the process.
#[derive(Clone, Copy)]
struct Start {
    loaded: f64,
    answered: f64,
}

#[tokio::test]
#[ignore = "measures, and compares nothing"]
async fn load_times() {
    println!(
        "| milliseconds | loaded, cold: ours | original | ratio | warm: ours | original | ratio \
         | answered, cold: ours | original | ratio | warm: ours | original | ratio |"
    );
    println!("|---{}|", "|---".repeat(12));
    for row in rows() {
        let original = match row.is_newest {
            true => Program::newest(),
            false => Program::original(),
        };
        let programs = [Program::ours(), original];
        let [cold, warm] = [cold(&programs, &row).await, warm(&programs, &row).await];
        let mut line = format!("| `{}`{}", row.name, if row.is_newest { "" } else { " *" });
        for figure in [|start: &Start| start.loaded, |start: &Start| start.answered] {
            for starts in [&cold, &warm] {
                let [ours, original] = [0, 1].map(|of| median(starts[of].iter().map(figure)));
                let ratio = ours / original;
                line += &format!(" | {ours:.0} | {original:.0} | {ratio:.2}");
            }
        }
        println!("{line} |");
    }
}

/// One row for each package, and one for all packages of the same original together.
fn rows() -> Vec<Row> {
    let suites = suites();
    let with_packages = suites.iter().filter(|suite| !suite.packages.is_empty());
    let mut rows = Vec::from_iter(with_packages.map(|suite| Row {
        name: suite.name.clone(),
        is_newest: suite.newest,
        packages: vec![packages(&suite.name, &suite.packages)],
    }));
    for (name, is_newest) in [("all for 0.67.68", false), ("all for the newest", true)] {
        let these = rows.iter().filter(|row| row.is_newest == is_newest);
        rows.push(Row {
            name: name.into(),
            is_newest,
            packages: these.flat_map(|row| row.packages.clone()).collect(),
        });
    }
    rows
}

/// Starts with a new home each time, without code caches.
async fn cold(programs: &[Program; 2], row: &Row) -> [Vec<Start>; 2] {
    let mut starts = [Vec::new(), Vec::new()];
    for _ in 0..COLD_RUNS {
        for (program, starts) in programs.iter().zip(&mut starts) {
            let home = home(row).await;
            starts.push(start(program, &home, Duration::ZERO).await);
        }
    }
    starts
}

async fn warm(programs: &[Program; 2], row: &Row) -> [Vec<Start>; 2] {
    let homes = [home(row).await, home(row).await];
    for (program, home) in programs.iter().zip(&homes) {
        for _ in 0..2 {
            start(program, home, SETTLING).await;
        }
    }
    let mut starts = [Vec::new(), Vec::new()];
    for _ in 0..WARM_RUNS {
        for ((program, home), starts) in programs.iter().zip(&homes).zip(&mut starts) {
            starts.push(start(program, home, Duration::ZERO).await);
        }
    }
    starts
}

async fn home(row: &Row) -> Home {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"packages": row.packages}));
    home.file("probe.ts", PROBE);
    home
}

async fn start(program: &Program, home: &Home, stays: Duration) -> Start {
    let begun = Instant::now();
    let begun_at = SystemTime::now().duration_since(UNIX_EPOCH);
    let begun_at = begun_at.expect("after 1970").as_secs_f64() * 1000.0;
    let mut command = program.command(home);
    command.args(["--mode", "rpc", "--extension", "probe.ts"]);
    let mut rpc = Rpc::start(command);
    rpc.ok(json!({"type": "get_commands"})).await;
    let answered = begun.elapsed().as_secs_f64() * 1000.0;
    let output = rpc.lines();
    let loaded_at = output.iter().find_map(|line| {
        let loaded = line["message"].as_str()?.strip_prefix("loaded at ")?;
        loaded.parse::<f64>().ok()
    });
    tokio::time::sleep(stays).await;
    rpc.close().await;
    Start {
        loaded: loaded_at.expect("the probe has said so") - begun_at,
        answered,
    }
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    let mut times = Vec::from_iter(times);
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
