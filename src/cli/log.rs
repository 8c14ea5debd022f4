//! The log: a file in the agent folder, because stdout and the terminal belong to
//! the mode. `PI_LOG` says what goes in, as `debug` or `pi=debug,extension=info`.
//!
//! Never logged: API keys and sign-ins, headers of requests, prompts, answers and
//! files, values of the environment. Our own code does not hand them to `tracing`.
//! Libraries might at their chattiest, so nothing below `info` is taken from them,
//! whatever `PI_LOG` says. What an extension prints is logged in line mode, as it
//! printed it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use js_runtime::Console;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt, ParseError, filter_fn};
use tracing_subscriber::fmt::writer::{MakeWriter, OptionalWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};

use crate::extensions::ConsoleSink;

/// Under which extensions' output is logged.
const EXTENSION: &str = "extension";
const OWN: [&str; 4] = ["pi", "js_runtime", "js_runtime_ext", EXTENSION];
const DEFAULT: &str = "warn,extension=info";
const VERBOSE: &str = "info,pi=debug,js_runtime=debug";
/// A longer file is moved away when the log is opened.
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("PI_LOG={text} is not understood ({source}); logging as without it")]
    Filter { text: String, source: ParseError },
    #[error("there is no log: {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// From here on `tracing` is written down. A problem is worth a warning, no more.
pub fn start(agent_dir: &Path, asked: Option<String>, verbose: bool) -> Result<(), LogError> {
    let file = LogFile::new(agent_dir);
    let default = if verbose { VERBOSE } else { DEFAULT };
    let asked = asked.filter(|text| !text.trim().is_empty());
    let (filter, problem) = match asked.as_deref().map(EnvFilter::try_new) {
        None => (EnvFilter::new(default), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(source)) => (EnvFilter::new(default), Some(source)),
    };
    // Fails if the program has a log already: whoever embeds us keeps theirs.
    let _ = tracing::subscriber::set_global_default(subscriber(file.clone(), filter));
    match (asked, problem) {
        (Some(text), Some(source)) => Err(LogError::Filter { text, source }),
        // Somebody wants to read it.
        (Some(_), None) => file.check(),
        (None, _) => Ok(()),
    }
}

/// Where extensions' output goes while the terminal is the line mode's.
pub fn console() -> ConsoleSink {
    Arc::new(|console, line| match console {
        Console::Out => tracing::info!(target: EXTENSION, "{line}"),
        Console::Err => tracing::warn!(target: EXTENSION, "{line}"),
    })
}

fn subscriber(file: LogFile, filter: EnvFilter) -> impl Subscriber + Send + Sync {
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(file)
        .with_filter(filter.and(filter_fn(is_harmless)));
    tracing_subscriber::registry().with(lines)
}

fn is_harmless(event: &Metadata<'_>) -> bool {
    let root = event.target().split("::").next().unwrap_or_default();
    *event.level() <= Level::INFO || OWN.contains(&root)
}

/// Opened by the first line: most runs have none.
#[derive(Clone)]
struct LogFile {
    path: Arc<Path>,
    file: Arc<OnceLock<io::Result<File>>>,
}

impl LogFile {
    fn new(agent_dir: &Path) -> Self {
        Self {
            path: agent_dir.join("logs").join("pi.log").into(),
            file: Arc::default(),
        }
    }

    fn open(&self) -> Result<&File, &io::Error> {
        self.file.get_or_init(|| open(&self.path)).as_ref()
    }

    fn check(&self) -> Result<(), LogError> {
        self.open().map(|_| ()).map_err(|error| LogError::File {
            path: self.path.to_path_buf(),
            source: io::Error::new(error.kind(), error.to_string()),
        })
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = OptionalWriter<&'a File>;

    fn make_writer(&'a self) -> Self::Writer {
        match self.open() {
            Ok(file) => OptionalWriter::some(file),
            Err(_) => OptionalWriter::none(),
        }
    }
}

/// Several processes may write to it: a line is one write at the end.
fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    if fs::metadata(path).is_ok_and(|found| found.len() > MAX_BYTES) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in the log after `work`, without the times.
    fn logged(dir: &Path, filter: &str, work: impl FnOnce()) -> Vec<String> {
        let subscriber = subscriber(LogFile::new(dir), EnvFilter::new(filter));
        tracing::subscriber::with_default(subscriber, work);
        let text = fs::read_to_string(dir.join("logs/pi.log")).unwrap_or_default();
        text.lines()
            .map(|line| line.split_once(' ').unwrap().1.trim().to_string())
            .collect()
    }

    fn everything() {
        tracing::trace!(target: "pi::app", "ours");
        tracing::debug!(target: "js_runtime::loader", "ours, too");
        tracing::debug!(target: "hyper::proto", "authorization: Bearer secret");
        tracing::trace!(target: "pirate", "not ours");
        tracing::info!(target: "hyper::proto", "harmless");
        tracing::warn!(target: "pi", "careful");
        console()(Console::Out, "said");
        console()(Console::Err, "shouted");
    }

    #[test]
    fn libraries_are_heard_only_from_info_on() {
        let dir = tempfile::tempdir().unwrap();
        let lines = logged(dir.path(), "trace", everything);
        assert_eq!(
            lines,
            [
                "TRACE pi::app: ours",
                "DEBUG js_runtime::loader: ours, too",
                "INFO hyper::proto: harmless",
                "WARN pi: careful",
                "INFO extension: said",
                "WARN extension: shouted",
            ]
        );
    }

    #[test]
    fn without_being_asked_it_keeps_warnings_and_what_extensions_say() {
        let dir = tempfile::tempdir().unwrap();
        let lines = logged(dir.path(), DEFAULT, everything);
        let expected = [
            "WARN pi: careful",
            "INFO extension: said",
            "WARN extension: shouted",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn nothing_to_say_opens_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let lines = logged(
            dir.path(),
            DEFAULT,
            || tracing::debug!(target: "pi", "quiet"),
        );
        assert_eq!(lines, Vec::<String>::new());
        assert!(!dir.path().join("logs").exists());
    }

    #[test]
    fn a_long_log_is_moved_away_and_a_short_one_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/pi.log");
        logged(dir.path(), "warn", || tracing::warn!(target: "pi", "one"));
        let two = logged(dir.path(), "warn", || tracing::warn!(target: "pi", "two"));
        assert_eq!(two, ["WARN pi: one", "WARN pi: two"]);
        let long = OpenOptions::new().write(true).open(&path).unwrap();
        long.set_len(MAX_BYTES + 1).unwrap();
        let three = logged(dir.path(), "warn", || tracing::warn!(target: "pi", "three"));
        assert_eq!(three, ["WARN pi: three"]);
        let old = fs::metadata(path.with_extension("log.old")).unwrap();
        assert_eq!(old.len(), MAX_BYTES + 1);
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        LogFile::new(dir.path()).check().unwrap();
        let mode = fs::metadata(dir.path().join("logs/pi.log"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("logs"), "in the way").unwrap();
        let error = LogFile::new(dir.path()).check().unwrap_err().to_string();
        let path = dir.path().join("logs/pi.log");
        let prefix = format!("there is no log: {}: ", path.display());
        assert!(error.starts_with(&prefix), "{error}");
    }
}
