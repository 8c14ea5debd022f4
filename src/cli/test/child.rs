//! One file of tests in a process of its own, watched from outside: a test that does
//! not give the thread back cannot time itself out.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::interruption::{self, Interruption};
use super::report::{FileReport, Record, Recorded};
use crate::agent::event::Location;
use crate::cli::as_node::WHEREABOUTS;
use crate::extensions::diagnostics::error_context::find_location;

/// How often is looked whether a process has ended.
const PAUSE: Duration = Duration::from_millis(25);
/// For what a test cleans up after its time is over, on a busy machine.
const GRACE: Duration = Duration::from_secs(15);
/// For reading the file, before its first test.
const READING: Duration = Duration::from_secs(60);
/// For a process to say where it is.
const ANSWER: Duration = Duration::from_secs(1);
/// For a process to end its pis when it is asked to end.
const FAREWELL: Duration = Duration::from_secs(8);

/// What all files of a run have in common.
pub(super) struct Surroundings {
    folder: TempDir,
    filter: String,
    timeout: Duration,
    interruption: Interruption,
}

impl Surroundings {
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
        let whereabouts = self.folder.path().join(format!("{index}.stack"));
        let begun = Instant::now();
        let ended = self
            .start(&file, &records, &whereabouts)
            .and_then(|child| watch(child, &records, &whereabouts, &self.interruption));
        let recorded = Recorded::read(&records);
        FileReport::new(file, recorded, ended, begun.elapsed())
    }

    fn start(&self, file: &Path, records: &Path, whereabouts: &Path) -> io::Result<Child> {
        fs::write(records, "")?;
        Command::new(js_runtime::program()?)
            .arg(file)
            // Makes this program run it as node would (as_node.rs).
            .env("PI_CODING_AGENT", "true")
            // Nothing of the user's own is read or written, caches included.
            .env("PI_CODING_AGENT_DIR", self.folder.path().join("agent"))
            .env("PI_TEST_REPORT", records)
            .env(WHEREABOUTS, whereabouts)
            .env("PI_TEST_FILTER", &self.filter)
            .env("PI_TEST_TIMEOUT", self.timeout.as_millis().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

/// How a file of tests ended, and what it printed.
pub(super) struct Ended {
    pub status: ExitStatus,
    /// It was killed because the time was over.
    pub killed: bool,
    /// Where it was then, if it ran.
    pub place: Option<Location>,
    pub printed: String,
}

fn watch(
    mut child: Child,
    records: &Path,
    whereabouts: &Path,
    interruption: &Interruption,
) -> io::Result<Ended> {
    let printed = [
        child.stdout.take().map(read_all),
        child.stderr.take().map(read_all),
    ];
    let mut killed = false;
    let mut place = None;
    let mut asked: Option<Instant> = None;
    let mut seen = 0;
    let mut since = Instant::now();
    let mut patience = READING;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let length = fs::metadata(records).map_or(0, |about| about.len());
        if length != seen {
            seen = length;
            since = Instant::now();
            let timeout = Recorded::read(records).newest_timeout();
            patience = timeout.map_or(READING, |timeout| timeout.saturating_add(GRACE));
        }
        if interruption.code().is_some() && asked.is_none() {
            asked = Some(Instant::now());
            interruption::ask_to_end(&child);
        }
        let is_late = asked.map_or(since.elapsed() > patience, |asked| {
            asked.elapsed() > FAREWELL
        });
        if !killed && is_late {
            killed = true;
            place = place_of(&mut child, whereabouts);
            child.kill()?;
        }
        std::thread::sleep(PAUSE);
    };
    let printed = printed.into_iter().flatten();
    Ok(Ended {
        status,
        killed,
        place,
        // A reader that panicked has read nothing.
        printed: printed.flat_map(|reader| reader.join()).collect(),
    })
}

/// Where its code runs that does not give the thread back.
fn place_of(child: &mut Child, whereabouts: &Path) -> Option<Location> {
    interruption::ask_where(child);
    let since = Instant::now();
    while since.elapsed() < ANSWER && child.try_wait().ok()?.is_none() {
        let stack = fs::read_to_string(whereabouts).unwrap_or_default();
        if let Some(place) = find_location(&stack) {
            return Some(place);
        }
        std::thread::sleep(PAUSE);
    }
    None
}

fn read_all(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is worth showing.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Recorded {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        // A line may be written at this moment.
        let records = text.lines().map(serde_json::from_str::<Record>);
        Self(records.flatten().collect())
    }

    /// How long the test may take that runs now.
    fn newest_timeout(&self) -> Option<Duration> {
        match self.0.last() {
            Some(Record::Start { timeout, .. }) => Some(Duration::from_millis(*timeout)),
            _ => None,
        }
    }
}
