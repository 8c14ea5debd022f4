//! Runs one file of tests in a process of its own and watches it from outside: a test that blocks
//! the thread cannot time itself out.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::report::{FileReport, Record, Records};
use super::signals::{self, Interruption};
use crate::cli::node_compat::STACK_FILE_VARIABLE;
use pi_agent::event::Location;
use pi_extensions::diagnostics::error_context::find_location;

/// How often the process and its records are polled.
const CHILD_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Time after a test's timeout in which it may clean up, on a busy machine.
const CLEANUP_GRACE: Duration = Duration::from_secs(15);
/// How long reading the file may take, before its first test.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the process may take to report its stack.
const STACK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the process may take to end its child processes after SIGTERM.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// Settings that all files of a run share.
pub(super) struct TestRun {
    folder: TempDir,
    filter: String,
    timeout: Duration,
    interruption: Interruption,
}

impl TestRun {
    pub(super) fn new(
        filter: &str,
        timeout: Duration,
        interruption: Interruption,
    ) -> io::Result<Self> {
        Ok(Self {
            interruption,
            folder: TempDir::with_prefix("pi-tests-")?,
            filter: filter.to_owned(),
            timeout,
        })
    }

    pub(super) fn run(&self, index: usize, file: PathBuf) -> FileReport {
        let records = self.folder.path().join(format!("{index}.jsonl"));
        let stack_file = self.folder.path().join(format!("{index}.stack"));
        let begun = Instant::now();
        let ended = self
            .start(&file, &records, &stack_file)
            .and_then(|child| watch(child, &records, &stack_file, &self.interruption));
        let recorded = Records::read(&records);
        FileReport::new(file, recorded, ended, begun.elapsed())
    }

    fn start(&self, file: &Path, records: &Path, stack_file: &Path) -> io::Result<Child> {
        fs::write(records, "")?;
        Command::new(js_runtime::program()?)
            .arg(file)
            // Makes this program run the file as node would (node_compat).
            .env("PI_CODING_AGENT", "true")
            // Nothing of the user is read or written, caches included.
            .env("PI_CODING_AGENT_DIR", self.folder.path().join("agent"))
            .env("PI_TEST_REPORT", records)
            .env(STACK_FILE_VARIABLE, stack_file)
            .env("PI_TEST_FILTER", &self.filter)
            .env("PI_TEST_TIMEOUT", self.timeout.as_millis().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

/// How the process of a file ended, and its output.
pub(super) struct TestProcess {
    pub status: ExitStatus,
    /// Whether the process was killed because its time was over.
    pub killed: bool,
    /// The source position at that moment, if code was running.
    pub position: Option<Location>,
    pub output: String,
}

fn watch(
    mut child: Child,
    records: &Path,
    stack_file: &Path,
    interruption: &Interruption,
) -> io::Result<TestProcess> {
    let readers = [
        child.stdout.take().map(read_all),
        child.stderr.take().map(read_all),
    ];
    let mut killed = false;
    let mut position = None;
    let mut end_requested: Option<Instant> = None;
    let mut seen = 0;
    let mut since = Instant::now();
    let mut limit = LOAD_TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let length = fs::metadata(records).map_or(0, |about| about.len());
        if length != seen {
            seen = length;
            since = Instant::now();
            let timeout = Records::read(records).newest_timeout();
            limit = timeout.map_or(LOAD_TIMEOUT, |timeout| {
                timeout.saturating_add(CLEANUP_GRACE)
            });
        }
        if interruption.code().is_some() && end_requested.is_none() {
            end_requested = Some(Instant::now());
            signals::request_end(&child);
        }
        let is_late = end_requested.map_or(since.elapsed() > limit, |requested| {
            requested.elapsed() > SHUTDOWN_TIMEOUT
        });
        if !killed && is_late {
            killed = true;
            position = blocked_position(&mut child, stack_file);
            child.kill()?;
        }
        std::thread::sleep(CHILD_POLL_INTERVAL);
    };
    let readers = readers.into_iter().flatten();
    Ok(TestProcess {
        status,
        killed,
        position,
        // A reader that panicked has no text.
        output: readers.flat_map(|reader| reader.join()).collect(),
    })
}

/// Returns the source position of the code that blocks the thread.
fn blocked_position(child: &mut Child, stack_file: &Path) -> Option<Location> {
    signals::request_stack(child);
    let since = Instant::now();
    while since.elapsed() < STACK_TIMEOUT && child.try_wait().ok()?.is_none() {
        let stack = fs::read_to_string(stack_file).unwrap_or_default();
        if let Some(position) = find_location(&stack) {
            return Some(position);
        }
        std::thread::sleep(CHILD_POLL_INTERVAL);
    }
    None
}

fn read_all(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output from before an error is still shown.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Records {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        // The last line may be incomplete: it may be written at this moment.
        let records = text.lines().map(serde_json::from_str::<Record>);
        Self(records.flatten().collect())
    }

    /// The timeout of the test that runs now.
    fn newest_timeout(&self) -> Option<Duration> {
        match self.0.last() {
            Some(Record::Start { timeout, .. }) => Some(Duration::from_millis(*timeout)),
            _ => None,
        }
    }
}
