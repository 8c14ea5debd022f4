//! Kills a process with SIGKILL while it appends: acknowledged records must exist.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Command, Stdio};

use super::*;

const FILE: &str = "PI_TEST_SESSION_FILE";

/// Appends in an endless loop and prints what has been stored. Runs only as a child process of
/// the test below, which passes the file and kills the process.
#[test]
#[ignore = "the child process of sigkill_loses_nothing_that_was_acknowledged"]
fn appends_until_killed() {
    let path = env::var_os(FILE).expect("started by the test below, which sets it");
    let (mut session, _) = open(Path::new(&path));
    for number in 0u64.. {
        let text = format!("{number} {}", "x".repeat((number * 997 % 20_000) as usize));
        let entry = session.append_message(&user(&text)).unwrap();
        // The test harness would capture `println!`.
        let mut out = stdout().lock();
        writeln!(out, "\nstored {}", entry.id).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn sigkill_loses_nothing_that_was_acknowledged() {
    let dir = temp();
    let path = dir.path().join("s.jsonl");
    let module = module_path!().split_once("::").unwrap().1;
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..20 {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", &format!("{module}::appends_until_killed")])
            .args(["--ignored", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stored = |line: std::io::Result<String>| {
            let id = line.unwrap().strip_prefix("stored ").map(str::to_owned);
            let is_one = id.is_some();
            acknowledged.extend(id);
            is_one
        };
        // Kill at some moment after the nth record.
        let before_kill = 1 + round * 7;
        assert_eq!(
            lines
                .by_ref()
                .filter_map(|line| stored(line).then_some(()))
                .take(before_kill)
                .count(),
            before_kill
        );
        let second = Session::open(&path, Path::new("/w")).map(|_| ());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            matches!(second, Err(SessionError::Locked { .. })),
            "{second:?}"
        );
        for line in lines {
            stored(line);
        }

        let (session, _) = open(&path);
        let there: HashSet<&str> = session.entries().iter().map(|e| e.id.as_str()).collect();
        let lost: Vec<&String> = acknowledged
            .iter()
            .filter(|id| !there.contains(id.as_str()))
            .collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        // All entries form a single branch: none is orphaned.
        assert_eq!(session.branch(None).len(), session.entries().len());
    }
}
