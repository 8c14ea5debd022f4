//! `examples/fleet`: a queue in a real Redis and several workers that each run the real program.
//! One worker is killed, and one job fails on every worker.

use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command as Blocking;
use std::sync::Mutex;

use model_server::{Answer, ModelServer, Received};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

use crate::support::{Home, TIMEOUT, cache_dir, finish, locked, pause, until_exists};

const CLIENT: &str = "redis==6.4.0";
/// Number of prompts that are answered without incident.
const JOBS: usize = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet")
}

fn can(program: &Path, arguments: &[&str]) -> bool {
    let output = Blocking::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// A Python with a Redis client: the system's, or one in a virtual environment.
fn python() -> Option<PathBuf> {
    let works = |python: &Path| can(python, &["-c", "import redis"]);
    let systems = Path::new("/usr/bin/python3");
    if works(systems) {
        return Some(systems.to_owned());
    }
    let folder = cache_dir().join("pi-tests/redis");
    fs::create_dir_all(&folder).unwrap();
    let _lock = locked(&folder.join("lock"));
    let python = folder.join("venv/bin/python");
    if !works(&python) {
        let venv = folder.join("venv").display().to_string();
        can(Path::new("python3"), &["-m", "venv", &venv]);
        can(&python, &["-m", "pip", "install", "-q", CLIENT]);
    }
    works(&python).then_some(python)
}

struct Fleet {
    home: Home,
    python: PathBuf,
    socket: PathBuf,
    redis: Child,
}

impl Fleet {
    /// `None` if there is no Redis.
    async fn start(server: &ModelServer) -> Option<Self> {
        let python = python()?;
        let home = Home::new(server);
        let socket = home.cwd().join("redis.sock");
        let redis = Self::redis(&home, &socket).await?;
        Some(Self {
            home,
            python,
            socket,
            redis,
        })
    }

    /// Starts a Redis that persists its data.
    async fn redis(home: &Home, socket: &Path) -> Option<Child> {
        let mut redis = home.command("redis-server");
        redis.args(["--port", "0", "--save", "", "--appendonly", "yes", "--dir"]);
        redis.arg(home.cwd()).arg("--unixsocket").arg(socket);
        let redis = redis.spawn().ok()?;
        let deadline = Instant::now() + TIMEOUT;
        while UnixStream::connect(socket).is_err() {
            assert!(Instant::now() < deadline, "redis-server does not listen");
            pause(10).await;
        }
        Some(redis)
    }

    async fn restart_redis(&mut self, away: u64) {
        signal(&self.redis, Signal::SIGTERM);
        self.redis.wait().await.unwrap();
        pause(away).await;
        let again = Self::redis(&self.home, &self.socket).await;
        self.redis = again.expect("it ran before");
    }

    /// Waits until this command was the last one of so many workers: `xreadgroup` of those that
    /// found no job to take over, `xclaim` of those that renewed a claim.
    async fn until_connected(&self, workers: usize, command: &str) {
        let deadline = Instant::now() + TIMEOUT;
        let last = format!(" cmd={command} ");
        loop {
            let clients = self.clients();
            if clients.matches(&last).count() == workers {
                return;
            }
            assert!(Instant::now() < deadline, "{workers} {command}: {clients}");
            pause(50).await;
        }
    }

    /// Returns Redis's list of its clients, one a line.
    fn clients(&self) -> String {
        let mut redis = BufReader::new(UnixStream::connect(&self.socket).unwrap());
        redis.get_mut().write_all(b"CLIENT LIST\r\n").unwrap();
        let mut length = String::new();
        redis.read_line(&mut length).unwrap();
        let length = length.trim().trim_start_matches('$').parse().unwrap();
        let mut list = vec![0; length];
        redis.read_exact(&mut list).unwrap();
        String::from_utf8(list).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(&self.python.display().to_string());
        command
            .arg(folder().join("fleet.py"))
            .args(arguments)
            .env(
                "PI_FLEET_REDIS",
                format!("unix://{}", self.socket.display()),
            )
            .env("PI_FLEET_FOLDER", self.home.cwd().join("jobs"))
            .env("PI_FLEET_LEASE", "4")
            .env("PI_PROGRAM", env!("CARGO_BIN_EXE_pi"));
        command
    }

    async fn submit(&self, prompts: &[&str]) -> Vec<String> {
        let arguments = [&["submit"], prompts].concat();
        let ids = finish(self.command(&arguments), "").await.ok();
        ids.lines().map(str::to_owned).collect()
    }

    async fn status(&self) -> Value {
        let output = finish(self.command(&["status"]), "").await.ok();
        serde_json::from_str(&output).unwrap()
    }

    /// Waits until the status satisfies a condition.
    async fn until(&self, what: &str, reached: impl Fn(&Value) -> bool) -> Value {
        // Leases have to expire twice.
        let deadline = Instant::now() + 2 * TIMEOUT;
        loop {
            let status = self.status().await;
            if reached(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "{what}: {status:#}");
            pause(100).await;
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = child.id().expect("it runs");
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

/// Every attempt at `poison` fails; `slow` and `sleepy` hang the first time, `endless` always.
fn script(server: &ModelServer) {
    let stalled = Mutex::new(HashSet::new());
    server.answer_by(move |request: &Received| {
        let requested = request.body["messages"].to_string();
        if requested.contains("poison") {
            return Some(Answer::error(400, "it is poisoned"));
        }
        if requested.contains("endless") {
            return Some(Answer::stall());
        }
        for slow in ["slow", "sleepy"] {
            if requested.contains(slow) && stalled.lock().unwrap().insert(slow) {
                return Some(Answer::text("Once upon a time").stall_after(1));
            }
        }
        Some(Answer::text("Done."))
    });
}

#[tokio::test]
async fn every_job_is_done_once_although_workers_are_killed() {
    let server = ModelServer::start().await;
    script(&server);
    let Some(fleet) = Fleet::start(&server).await else {
        eprintln!("SKIPPED: no redis-server, or no Python with a client of it");
        return;
    };
    let names = ["a", "b", "c"];
    let mut workers: Vec<Child> = names
        .iter()
        .map(|name| fleet.command(&["work", name]).spawn().unwrap())
        .collect();
    let prompts: Vec<String> = (0..JOBS).map(|number| format!("job {number}")).collect();
    let mut prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    prompts.extend(["slow", "sleepy", "poison"]);
    let ids = fleet.submit(&prompts).await;
    let id = |prompt: &str| {
        let at = prompts.iter().position(|one| *one == prompt);
        ids[at.unwrap()].clone()
    };
    let runs = |status: &Value, job: &str| status["running"][job].as_str().map(str::to_owned);
    let (slow, sleepy) = (id("slow"), id("sleepy"));
    let status = fleet
        .until("two hang, the others are done", |status| {
            let hang = runs(status, &slow).is_some() && runs(status, &sleepy).is_some();
            // If a worker were killed before its request, the next worker would hang in its place.
            let requested = ["slow", "sleepy"].map(|job| {
                let asks = |request: &Received| request.body["messages"].to_string().contains(job);
                server.requests().iter().any(asks)
            });
            let hang = hang && requested == [true, true];
            let done = status["results"].as_object().unwrap().len() == JOBS;
            hang && done && status["dead"].as_object().unwrap().len() == 1
        })
        .await;

    // One worker is killed, another is told to end.
    let worker = |job: &str| {
        let name = runs(&status, job).unwrap();
        names.iter().position(|one| *one == name).unwrap()
    };
    signal(&workers[worker(&slow)], Signal::SIGKILL);
    signal(&workers[worker(&sleepy)], Signal::SIGTERM);
    let stopped = &mut workers[worker(&sleepy)];
    let code = timeout(TIMEOUT, stopped.wait()).await.expect("it ends");
    assert_eq!(code.unwrap().code(), Some(0));
    let status = fleet
        .until("all are done", |status| {
            status["results"].as_object().unwrap().len() == JOBS + 2
        })
        .await;

    let results = status["results"].as_object().unwrap();
    for (prompt, id) in prompts.iter().zip(&ids) {
        match *prompt {
            "poison" => {
                assert!(!results.contains_key(id));
                let why = status["dead"][id].as_str().unwrap();
                assert!(why.starts_with("attempt 3: Refused: "), "{why}");
                assert!(why.contains("it is poisoned"), "{why}");
            }
            _ => assert_eq!(results[id]["answer"], "Done.", "{prompt}: {status:#}"),
        }
    }
    for job in [&slow, &sleepy] {
        assert_eq!(results[job]["attempt"], 2, "{status:#}");
        // The second worker continued the session of the first.
        let session = fleet
            .home
            .cwd()
            .join("jobs")
            .join(job)
            .join("session.jsonl");
        let session = fs::read_to_string(session).unwrap();
        assert!(session.contains("You were interrupted."), "{session}");
    }
    assert_eq!(status["running"], json!({}));
    assert_eq!(status["waiting"], json!([]));
    // Finished work was not requested again: `poison` was tried three times, the two others twice.
    assert_eq!(server.requests().len(), JOBS + 2 * 2 + 3);

    // A worker that drains the queue ends with it; a worker that is told to end earlier reports
    // that jobs are left.
    let last = fleet.submit(&["last"]).await.remove(0);
    let drained = finish(fleet.command(&["drain", "d"]), "").await;
    assert_eq!(drained.status.code(), Some(0), "{drained:?}");
    let status = fleet.status().await;
    assert_eq!(status["results"][last]["answer"], "Done.", "{status:#}");
    for worker in &mut workers {
        if worker.id().is_some() {
            signal(worker, Signal::SIGTERM);
            worker.wait().await.unwrap();
        }
    }
    let stuck = fleet.submit(&["endless"]).await.remove(0);
    let mut worker = fleet.command(&["drain", "e"]).spawn().unwrap();
    fleet
        .until("it has begun", |status| status["running"][&stuck] == "e")
        .await;
    signal(&worker, Signal::SIGTERM);
    let code = timeout(TIMEOUT, worker.wait()).await.expect("it ends");
    assert_eq!(code.unwrap().code(), Some(143));
}

/// The signal arrived while pi was starting, and the next prompt was still worked on.
#[tokio::test]
async fn a_worker_ends_on_a_signal_while_pi_starts() {
    let server = ModelServer::start().await;
    server.repeat(Answer::stall());
    let Some(fleet) = Fleet::start(&server).await else {
        eprintln!("SKIPPED: no redis-server, or no Python with a client of it");
        return;
    };
    let starts = fleet.home.cwd().join("starts");
    let script = format!(
        "#!/bin/sh\ntouch '{}'\nsleep 2\nexec '{}' \"$@\"\n",
        starts.display(),
        env!("CARGO_BIN_EXE_pi")
    );
    let program = fleet.home.file("slow-pi", &script);
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let job = fleet.submit(&["endless"]).await.remove(0);
    let mut worker = fleet.command(&["drain", "a"]);
    let mut worker = worker.env("PI_PROGRAM", &program).spawn().unwrap();
    until_exists(&starts).await;
    signal(&worker, Signal::SIGTERM);
    let code = timeout(TIMEOUT, worker.wait()).await.expect("it ends");
    assert_eq!(code.unwrap().code(), Some(143));
    assert!(server.requests().is_empty());
    // The job is available at once.
    let status = fleet.status().await;
    assert_eq!(status["running"], json!({(job): "a"}), "{status:#}");
}

/// The worker renews its claim when Redis is back, and no other worker takes the job.
#[tokio::test]
async fn a_running_job_survives_an_absence_of_redis() {
    let server = ModelServer::start().await;
    let wait = json!({"command": "touch begun; until [ -e go ]; do sleep 0.1; done"});
    server.push(Answer::tool("bash", wait));
    server.repeat(Answer::text("Done."));
    let Some(mut fleet) = Fleet::start(&server).await else {
        eprintln!("SKIPPED: no redis-server, or no Python with a client of it");
        return;
    };
    let mut workers = vec![fleet.command(&["work", "a"]).spawn().unwrap()];
    let job = fleet.submit(&["long"]).await.remove(0);
    let folder = fleet.home.cwd().join("jobs").join(&job);
    until_exists(&folder.join("begun")).await;
    for name in ["b", "c"] {
        workers.push(fleet.command(&["work", name]).spawn().unwrap());
    }
    // A claim is renewed every second and expires after four: other workers could take the job, and
    // must not.
    fleet.restart_redis(5000).await;
    fleet.until_connected(2, "xreadgroup").await;
    fleet.until_connected(1, "xclaim").await;
    let status = fleet.status().await;
    assert_eq!(status["dead"], json!({}), "{status:#}");
    fs::write(folder.join("go"), "").unwrap();
    let status = fleet
        .until("it is done", |status| status["results"][&job].is_object())
        .await;
    let result = &status["results"][&job];
    assert_eq!(
        (&result["worker"], &result["attempt"]),
        (&json!("a"), &json!(1)),
        "{status:#}"
    );
    assert_eq!(status["dead"], json!({}), "{status:#}");
    for worker in &mut workers {
        signal(worker, Signal::SIGTERM);
        let code = timeout(TIMEOUT, worker.wait()).await.expect("it ends");
        assert_eq!(code.unwrap().code(), Some(0));
    }
}

/// Checks what can be checked without a cluster.
#[test]
fn the_manifest_fits_the_worker_and_the_unit() {
    let read = |name: &str| fs::read_to_string(folder().join(name)).unwrap();
    let (manifest, worker, unit) = (
        read("job.yaml"),
        read("fleet.py"),
        read("pi-worker@.service"),
    );
    let documents: Vec<Value> = serde_yaml_ng::Deserializer::from_str(&manifest)
        .map(|document| Value::deserialize(document).unwrap())
        .collect();
    let of_kind = |kind: &str| {
        let found = documents.iter().find(|document| document["kind"] == kind);
        found.unwrap_or_else(|| panic!("there is no {kind}"))
    };
    let (job, redis) = (of_kind("Job"), of_kind("StatefulSet"));
    assert_eq!(job["spec"]["completionMode"], "Indexed");
    assert_eq!(job["spec"]["completions"], job["spec"]["parallelism"]);
    let pod = &job["spec"]["template"]["spec"];
    let container = &pod["containers"][0];

    // The container runs the command of the unit, and ends with the queue.
    let command: Vec<&str> = (container["command"].as_array().unwrap().iter())
        .map(|word| word.as_str().unwrap())
        .collect();
    let [python, program, "drain", "$(POD_NAME)"] = command[..] else {
        panic!("{command:?}");
    };
    assert!(
        unit.contains(&format!("/{python} {program} work ")),
        "{command:?}"
    );
    assert!(worker.contains("case [\"drain\", name]:"));

    // Every variable is read by the worker, and those of the unit are all present.
    let variables = container["env"].as_array().unwrap().iter();
    let variables: HashSet<&str> = variables.map(|one| one["name"].as_str().unwrap()).collect();
    for name in &variables {
        let is_ours = name.starts_with("PI_FLEET_") || *name == "PI_PROGRAM";
        let is_known = match is_ours {
            true => worker.contains(&format!("environ.get(\"{name}\"")),
            false => ["PI_OFFLINE", "PI_CODING_AGENT_DIR", "POD_NAME", "HOME"].contains(name),
        };
        assert!(is_known, "{name}");
    }
    let given = unit
        .lines()
        .filter_map(|line| line.strip_prefix("Environment="));
    for (name, _) in given
        .flat_map(str::split_whitespace)
        .filter_map(|one| one.split_once('='))
    {
        assert!(variables.contains(name), "{name}");
    }

    // The grace period equals the unit's, and is longer than an agent may take.
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(unit.contains(&format!("TimeoutStopSec={grace}\n")));
    assert!(grace > 30);

    // Everything that the manifest refers to exists.
    let address = container["env"].as_array().unwrap().iter();
    let address = { address }
        .find(|one| one["name"] == "PI_FLEET_REDIS")
        .unwrap();
    let service = of_kind("Service");
    let host = service["metadata"]["name"].as_str().unwrap();
    assert_eq!(address["value"], format!("redis://{host}:6379/0"));
    assert_eq!(service["spec"]["ports"][0]["port"], 6379);
    let labels = &redis["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&service["spec"]["selector"], labels);
    assert_eq!(&redis["spec"]["selector"]["matchLabels"], labels);
    let secret = container["envFrom"][0]["secretRef"]["name"]
        .as_str()
        .unwrap();
    assert!(manifest.contains(&format!("kubectl create secret generic {secret} ")));
    let mounts = container["volumeMounts"].as_array().unwrap();
    for volume in pod["volumes"].as_array().unwrap() {
        assert!(
            mounts.iter().any(|mount| mount["name"] == volume["name"]),
            "{volume}"
        );
    }
    assert_eq!(mounts.len(), pod["volumes"].as_array().unwrap().len());
    let claim = of_kind("PersistentVolumeClaim")["metadata"]["name"].clone();
    assert_eq!(
        pod["volumes"][0]["persistentVolumeClaim"]["claimName"],
        claim
    );
}

#[test]
fn systemd_accepts_the_unit() {
    if !can(Path::new("systemd-analyze"), &["--version"]) {
        eprintln!("SKIPPED: there is no systemd-analyze");
        return;
    }
    // Replace the programs by ones that exist here.
    let text = fs::read_to_string(folder().join("pi-worker@.service")).unwrap();
    let text = text.replace("/usr/bin/python3 ", "/bin/true ");
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("pi-worker@1.service");
    fs::write(&unit, text).unwrap();
    let output = Blocking::new("systemd-analyze")
        .args([Path::new("verify"), &unit])
        .output();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    // systemd may complain about the machine's own units.
    assert!(
        output.status.success() && !printed.contains("pi-worker"),
        "{printed}"
    );
}
