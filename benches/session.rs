//! Measures long sessions: opening them, appending an entry, and their memory.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use model_server::{Answer, ModelServer};
use pi_session::Session;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::print;
use super::process::{Program, Rpc, home, small};

/// File size in MiB, and number of runs.
const SIZES: [(usize, usize); 2] = [(50, 10), (500, 2)];
const RECORDS: usize = 200;

pub async fn long_sessions(ours: &Program, original: Option<&Program>) {
    let folder = TempDir::with_prefix("pi-bench-").expect("a temporary folder");
    for (megabytes, runs) in SIZES {
        let file = folder.path().join(format!("{megabytes}.jsonl"));
        let messages = write(&file, megabytes << 20).expect("room for it");
        let (mut opened, mut appended) = in_process(&file, runs);
        let title = format!("session of {megabytes} MiB, {messages} messages");
        print(&format!("{title}: open"), "ms", &mut opened, None);
        print(&format!("{title}: append"), "us", &mut appended, None);

        let (mut times, mut peaks) = get_state(ours, &file, runs).await;
        let theirs = match original {
            Some(program) => Some(get_state(program, &file, runs.min(2)).await),
            None => None,
        };
        let (mut other_times, mut other_peaks) = theirs.unzip();
        print(
            "rpc: spawn to get_state with it",
            "ms",
            &mut times,
            other_times.as_deref_mut(),
        );
        print(
            "memory at most (RSS)",
            "MiB",
            &mut peaks,
            other_peaks.as_deref_mut(),
        );
        let (time, peak) = compact(ours, &file).await;
        let (mut other_time, mut other_peak) = match original {
            Some(program) => {
                let (time, peak) = compact(program, &file).await;
                (Some([time]), peak.map(|peak| [peak]))
            }
            None => (None, None),
        };
        let other_time = other_time.as_mut().map(|times| &mut times[..]);
        print("compact it", "ms", &mut [time], other_time);
        if let Some(peak) = peak {
            let other_peak = other_peak.as_mut().map(|peaks| &mut peaks[..]);
            print("memory at most (RSS)", "MiB", &mut [peak], other_peak);
        }
        fs::remove_file(&file).expect("it is ours");
    }
}

/// Measures compaction from the command to its response, including the request to the model. It
/// works on a copy, because compaction changes the file.
async fn compact(program: &Program, file: &Path) -> (f64, Option<f64>) {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("The summary of a long day."));
    let home = home(0, small, &server);
    let copy = file.with_extension("compact.jsonl");
    fs::copy(file, &copy).expect("room for it");
    let mut rpc = Rpc::with(
        program,
        home.path(),
        &["--session", copy.to_str().expect("a plain path")],
    );
    rpc.send(json!({ "id": "1", "type": "get_state" })).await;
    rpc.until(|line| line.contains("\"response\"")).await;
    let start = Instant::now();
    rpc.send(json!({ "id": "2", "type": "compact" })).await;
    let done = |line: &str| line.contains("\"response\"") && line.contains("\"compact\"");
    rpc.until(|line| {
        assert!(
            !done(line) || line.contains("\"success\":true"),
            "{}",
            line.chars().take(300).collect::<String>()
        );
        done(line)
    })
    .await;
    let took = start.elapsed().as_secs_f64() * 1e3;
    let peak = rpc.peak();
    drop(rpc);
    fs::remove_file(&copy).expect("it is ours");
    (took, peak)
}

/// Writes a session like that of a working day, the same every time: questions, calls and results.
fn write(file: &Path, bytes: usize) -> std::io::Result<usize> {
    let text = "let \u{e9}t\u{e9} = \"summer\";\n\tif (x > 0) { return Ok(()); } // an example\n";
    let mut out = BufWriter::new(File::create(file)?);
    let mut line = |value: Value| {
        let line = format!("{value}\n");
        out.write_all(line.as_bytes()).map(|()| line.len())
    };
    let usage = json!({
        "input": 10, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 30,
        "cost": { "input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.3 },
    });
    let time = "2026-01-01T00:00:00.000Z";
    let mut written = line(json!({
        "type": "session", "version": 3, "id": "bench", "timestamp": time, "cwd": "/",
    }))?;
    let mut count = 0;
    while written < bytes {
        let call = format!("call_{}", count / 2);
        let message = match count % 20 {
            0 => json!({
                "role": "user", "content": [{ "type": "text", "text": text.repeat(5) }],
                "timestamp": 1,
            }),
            19 => json!({
                "role": "assistant", "content": [{ "type": "text", "text": text.repeat(9) }],
                "api": "anthropic-messages", "provider": "p", "model": "m", "usage": usage,
                "stopReason": "stop", "timestamp": 1,
            }),
            step if step % 2 == 1 => json!({
                "role": "assistant",
                "content": [
                    { "type": "thinking", "thinking": text.repeat(12) },
                    { "type": "text", "text": text.repeat(3) },
                    { "type": "toolCall", "id": call, "name": "bash",
                      "arguments": { "command": "cargo test" } },
                ],
                "api": "anthropic-messages", "provider": "p", "model": "m",
                "usage": usage, "stopReason": "toolUse", "timestamp": 1,
            }),
            _ => json!({
                "role": "toolResult", "toolCallId": format!("call_{}", count / 2 - 1),
                "toolName": "bash",
                "content": [{ "type": "text", "text": text.repeat(10 + count % 120) }],
                "isError": false, "timestamp": 1,
            }),
        };
        let parent = count.checked_sub(1).map(|before| format!("{before:08x}"));
        written += line(json!({
            "type": "message", "id": format!("{count:08x}"), "parentId": parent,
            "timestamp": time, "message": message,
        }))?;
        count += 1;
    }
    out.flush()?;
    Ok(count)
}

/// Opens the session in this process, including its context, as the program does.
fn in_process(file: &Path, runs: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut opened, mut appended) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let start = Instant::now();
        let (mut session, _) = Session::open(file, Path::new("/")).expect("it is a session");
        assert!(!session.build_context().messages.is_empty());
        opened.push(start.elapsed().as_secs_f64() * 1e3);
        for _ in 0..RECORDS / runs {
            let start = Instant::now();
            session.append_session_info("bench").expect("it is stored");
            appended.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    (opened, appended)
}

async fn get_state(program: &Program, file: &Path, runs: usize) -> (Vec<f64>, Vec<f64>) {
    let server = ModelServer::start().await;
    let home = home(0, small, &server);
    let file = file.to_str().expect("a plain path");
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let start = Instant::now();
        let mut rpc = Rpc::with(program, home.path(), &["--session", file]);
        rpc.send(json!({ "id": "1", "type": "get_state" })).await;
        rpc.until(|line| line.contains("\"response\"")).await;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        peaks.extend(rpc.peak());
    }
    (times, peaks)
}
