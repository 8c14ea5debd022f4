//! Measures many agents on one machine: what they cost together, child processes included, while
//! they wait and while they work. `PI_BENCH_AGENTS` is their number (50); a tenth of them is
//! measured for the original.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::join_all;
use model_server::{Answer, ModelServer};
use serde_json::json;

use super::print;
use super::process::{Program, Rpc, home, small};

const DEFAULT_AGENTS: usize = 50;
const FLEET_IDLE_PERIOD: Duration = Duration::from_secs(5);
/// Deltas of an answer like that of a model: about 50 a second, for five seconds.
const FLEET_DELTAS: usize = 250;
const DELTA_DELAY_MS: u64 = 20;

/// Cost of the agents.
struct Cost {
    /// Milliseconds from the first start until all have answered.
    ready: f64,
    /// MiB, and milliseconds of processor time per second, of one idle agent.
    idle: (f64, f64),
    /// MiB, and milliseconds of processor time per second, of one agent in the middle of an answer.
    working: (f64, f64),
    /// Milliseconds by which the slowest answer exceeded the duration of the model's stream.
    delay: f64,
}

pub async fn many_agents(ours: &Program, original: Option<&Program>) {
    let number = std::env::var("PI_BENCH_AGENTS").ok();
    let agents = number.and_then(|text| text.parse().ok());
    let agents: usize = agents.unwrap_or(DEFAULT_AGENTS).max(1);
    let few = agents.div_ceil(10);
    for extensions in [0, 10] {
        let server = ModelServer::start().await;
        server.repeat(Answer::deltas(FLEET_DELTAS, "word ").delay(DELTA_DELAY_MS));
        let home = home(extensions, small, &server);
        // The first start fills the caches.
        drop(start(ours, home.path(), 1).await);
        let mine = measure(ours, home.path(), agents).await;
        let theirs = match original {
            Some(program) => measure(program, home.path(), few).await,
            None => None,
        };
        let Some(mine) = mine else {
            println!("{agents} agents: there is no /proc to measure them with");
            return;
        };
        println!("{agents} agents, {extensions} extensions (the original: {few})");
        let line = |what: &str, unit: &str, of: fn(&Cost) -> f64| {
            let mut their = theirs.as_ref().map(|theirs| [of(theirs)]);
            let their = their.as_mut().map(|their| &mut their[..]);
            print(what, unit, &mut [of(&mine)], their);
        };
        line("  until all have answered, together", "ms", |it| it.ready);
        line("  idle: memory of one (PSS)", "MiB", |it| it.idle.0);
        line("  idle: processor time of one", "ms/s", |it| it.idle.1);
        line("  50 deltas/s: memory of one (PSS)", "MiB", |it| {
            it.working.0
        });
        line("  50 deltas/s: processor time of one", "ms/s", |it| {
            it.working.1
        });
        line("  the slowest answer came late by", "ms", |it| it.delay);
    }
}

/// Starts all agents at once.
async fn start(program: &Program, home: &Path, agents: usize) -> Vec<Rpc> {
    let one = async || {
        let mut rpc = Rpc::with(program, home, &[]);
        rpc.send(json!({ "id": "1", "type": "get_state" })).await;
        rpc.until(|line| line.contains("\"response\"")).await;
        rpc
    };
    join_all((0..agents).map(|_| one())).await
}

async fn measure(program: &Program, home: &Path, agents: usize) -> Option<Cost> {
    let begun = Instant::now();
    let mut all = start(program, home, agents).await;
    let ready = milliseconds(begun);
    // Wait for work that the start left over.
    tokio::time::sleep(FLEET_IDLE_PERIOD).await;
    let before = ProcessTotals::measure(&all)?;
    let begun = Instant::now();
    tokio::time::sleep(FLEET_IDLE_PERIOD).await;
    let idle = ProcessTotals::measure(&all)?.per_agent(&before, begun, agents);

    let begun = Instant::now();
    let answers = all.iter_mut().map(async |rpc| {
        rpc.send(json!({ "type": "prompt", "message": "go" })).await;
        // Measure between one third and the end of the answer.
        let mut seen = 0;
        rpc.until(|_| true).await;
        while seen < FLEET_DELTAS / 3 {
            seen += rpc
                .until(|line| line.starts_with("{\"type\":\"message_update\""))
                .await;
        }
    });
    join_all(answers).await;
    let before = ProcessTotals::measure(&all)?;
    let middle = Instant::now();
    let ends = all.iter_mut().map(async |rpc| {
        rpc.until(|line| line.starts_with("{\"type\":\"agent_end\""))
            .await;
    });
    join_all(ends).await;
    let took = milliseconds(begun);
    let working = ProcessTotals::measure(&all)?.per_agent(&before, middle, agents);
    let alone = (FLEET_DELTAS as u64 * DELTA_DELAY_MS) as f64;
    Some(Cost {
        ready,
        idle,
        working,
        delay: took - alone,
    })
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Memory and processor time of the agents' processes and their children.
struct ProcessTotals {
    mebibytes: f64,
    /// Processor time in seconds.
    processor: f64,
}

impl ProcessTotals {
    fn measure(agents: &[Rpc]) -> Option<Self> {
        let mut parents = HashMap::new();
        let mut times = HashMap::new();
        for process in fs::read_dir("/proc").ok()? {
            let process = process.ok()?.file_name();
            let Ok(pid) = process.to_string_lossy().parse::<u32>() else {
                continue;
            };
            // The process may have ended.
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
                continue;
            };
            // The name, in parentheses, may contain blanks.
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            parents.insert(pid, fields.get(1)?.parse::<u32>().ok()?);
            let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
            times.insert(pid, (ticks(11)? + ticks(12)?) / 100.0);
        }
        let roots: Vec<u32> = agents.iter().filter_map(Rpc::process_id).collect();
        let belongs = |mut pid: u32| loop {
            if roots.contains(&pid) {
                return true;
            }
            match parents.get(&pid) {
                Some(&parent) => pid = parent,
                None => return false,
            }
        };
        let mut sum = Self {
            mebibytes: 0.0,
            processor: 0.0,
        };
        for (&pid, time) in times.iter().filter(|(pid, _)| belongs(**pid)) {
            sum.processor += time;
            let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else {
                continue;
            };
            let pss = text.lines().find(|line| line.starts_with("Pss:"))?;
            sum.mebibytes += pss.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0;
        }
        Some(sum)
    }

    /// Returns the MiB and the milliseconds of processor time per second of one agent.
    fn per_agent(&self, before: &Self, since: Instant, agents: usize) -> (f64, f64) {
        let agents = agents as f64;
        let seconds = since.elapsed().as_secs_f64();
        let processor = (self.processor - before.processor) * 1000.0 / seconds / agents;
        (self.mebibytes / agents, processor)
    }
}
