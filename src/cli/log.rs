//! The log: a file in the agent folder, because stdout and the terminal belong to the mode.
//! `PI_LOG` selects what is logged, such as `debug` or `pi=debug,extension=info`.
//!
//! The log never contains API keys, credentials, headers of requests, prompts, answers, contents
//! of files or values of environment variables. pi's own code does not pass them to `tracing`.
//! Libraries might do so below `info`, so their events below `info` are dropped, whatever
//! `PI_LOG` says. In line mode console output of extensions is logged unchanged.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use js_runtime::Console;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt, ParseError, filter_fn};
use tracing_subscriber::fmt::writer::{MakeWriter, OptionalWriter};
use tracing_subscriber::layer::{Layer, SubscriberExt};

use pi_base::secrets;
use pi_extensions::ConsoleSink;
use pi_resources::paths::Paths;

/// The target under which console output of extensions is logged.
const EXTENSION_TARGET: &str = "extension";
const OWN_TARGETS: [&str; 4] = ["pi", "js_runtime", "js_runtime_ext", EXTENSION_TARGET];
/// Prefix of the targets of pi's layers, such as `pi_ai`. The filter `pi=debug` matches them, too.
const LAYER_PREFIX: &str = "pi_";
const DEFAULT_FILTER: &str = "warn,extension=info";
const VERBOSE_FILTER: &str = "info,pi=debug,js_runtime=debug";
/// Size in bytes above which the file is renamed when the log is opened.
const MAX_LOG_BYTES: u64 = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("PI_LOG={text} is not understood ({source}); logging as without it")]
    Filter { text: String, source: ParseError },
    #[error("cannot open log file {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Installs the log. An error is worth a warning only: pi works without a log.
pub fn start(paths: &Paths, requested: Option<String>, verbose: bool) -> Result<(), LogError> {
    let file = LogFile::new(&paths.agent_dir, &paths.home, &paths.cwd);
    let default = if verbose {
        VERBOSE_FILTER
    } else {
        DEFAULT_FILTER
    };
    let requested = requested.filter(|text| !text.trim().is_empty());
    let (filter, problem) = match requested.as_deref().map(EnvFilter::try_new) {
        None => (EnvFilter::new(default), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(source)) => (EnvFilter::new(default), Some(source)),
    };
    // An error means that an embedding program has installed its own log, which stays.
    let _ = tracing::subscriber::set_global_default(subscriber(file.clone(), filter));
    match (requested, problem) {
        (Some(text), Some(source)) => Err(LogError::Filter { text, source }),
        // The user asked for a log, so it is opened now to report errors.
        (Some(_), None) => file.check(),
        (None, _) => Ok(()),
    }
}

/// Sends console output of extensions to the log, while the terminal belongs to line mode.
pub fn console() -> ConsoleSink {
    Arc::new(|console, line| match console {
        Console::Out => tracing::info!(target: EXTENSION_TARGET, "{line}"),
        Console::Err => tracing::warn!(target: EXTENSION_TARGET, "{line}"),
    })
}

fn subscriber(file: LogFile, filter: EnvFilter) -> impl Subscriber + Send + Sync {
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(file)
        .with_filter(filter.and(filter_fn(is_safe_to_log)));
    tracing_subscriber::registry().with(lines)
}

fn is_safe_to_log(event: &Metadata<'_>) -> bool {
    let root = event.target().split("::").next().unwrap_or_default();
    *event.level() <= Level::INFO || OWN_TARGETS.contains(&root) || root.starts_with(LAYER_PREFIX)
}

/// The file of the log, opened by the first line: most runs have none.
#[derive(Clone)]
struct LogFile {
    path: Arc<Path>,
    /// The folders of the user and the project, whose `.npmrc` may have secrets.
    folders: Arc<[PathBuf; 2]>,
    file: Arc<OnceLock<io::Result<File>>>,
}

impl LogFile {
    fn new(agent_dir: &Path, home: &Path, project: &Path) -> Self {
        Self {
            path: agent_dir.join("logs").join("pi.log").into(),
            folders: Arc::new([home.to_owned(), project.to_owned()]),
            file: Arc::default(),
        }
    }

    fn open(&self) -> Result<&File, &io::Error> {
        let open = || {
            let [home, project] = &*self.folders;
            secrets::add_registry_tokens(home, project);
            open(&self.path)
        };
        self.file.get_or_init(open).as_ref()
    }

    fn check(&self) -> Result<(), LogError> {
        self.open().map(|_| ()).map_err(|error| LogError::File {
            path: self.path.to_path_buf(),
            source: io::Error::new(error.kind(), error.to_string()),
        })
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = OptionalWriter<RedactedFile<'a>>;

    fn make_writer(&'a self) -> Self::Writer {
        match self.open() {
            Ok(file) => OptionalWriter::some(RedactedFile(file)),
            Err(_) => OptionalWriter::none(),
        }
    }
}

/// A log file that gets each line without known secrets. tracing writes a line with one call.
struct RedactedFile<'a>(&'a File);

impl io::Write for RedactedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let redacted = secrets::redact_bytes(bytes);
        io::Write::write_all(&mut self.0, &redacted)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::Write::flush(&mut self.0)
    }
}

/// Opens the log for appending. Several processes may write to it, each line with one write.
fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    if fs::metadata(path).is_ok_and(|found| found.len() > MAX_LOG_BYTES) {
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

    fn log_file(dir: &Path) -> LogFile {
        LogFile::new(dir, dir, dir)
    }

    /// Returns the lines that `work` logs, without their times.
    fn logged(dir: &Path, filter: &str, work: impl FnOnce()) -> Vec<String> {
        let subscriber = subscriber(log_file(dir), EnvFilter::new(filter));
        tracing::subscriber::with_default(subscriber, work);
        let text = fs::read_to_string(dir.join("logs/pi.log")).unwrap_or_default();
        text.lines()
            .map(|line| line.split_once(' ').unwrap().1.trim().to_string())
            .collect()
    }

    fn log_everything() {
        tracing::trace!(target: "pi_app::run", "ours");
        tracing::debug!(target: "js_runtime::loader", "ours, too");
        tracing::debug!(target: "hyper::proto", "authorization: Bearer secret");
        tracing::trace!(target: "pirate", "not ours");
        tracing::info!(target: "hyper::proto", "harmless");
        tracing::warn!(target: "pi", "careful");
        console()(Console::Out, "said");
        console()(Console::Err, "shouted");
    }

    #[test]
    fn libraries_are_logged_from_info_on() {
        let dir = tempfile::tempdir().unwrap();
        let lines = logged(dir.path(), "trace", log_everything);
        assert_eq!(
            lines,
            [
                "TRACE pi_app::run: ours",
                "DEBUG js_runtime::loader: ours, too",
                "INFO hyper::proto: harmless",
                "WARN pi: careful",
                "INFO extension: said",
                "WARN extension: shouted",
            ]
        );
    }

    #[test]
    fn the_default_is_warnings_and_extension_output() {
        let dir = tempfile::tempdir().unwrap();
        let lines = logged(dir.path(), DEFAULT_FILTER, log_everything);
        let expected = [
            "WARN pi: careful",
            "INFO extension: said",
            "WARN extension: shouted",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_filter_of_pi_matches_its_layers() {
        let dir = tempfile::tempdir().unwrap();
        let lines = logged(dir.path(), "warn,pi=debug", || {
            tracing::debug!(target: "pi_ai::http", "a request is sent");
        });
        assert_eq!(lines, ["DEBUG pi_ai::http: a request is sent"]);
    }

    #[test]
    fn no_line_opens_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let lines = logged(
            dir.path(),
            DEFAULT_FILTER,
            || tracing::debug!(target: "pi", "quiet"),
        );
        assert_eq!(lines, Vec::<String>::new());
        assert!(!dir.path().join("logs").exists());
    }

    #[test]
    fn a_long_log_is_renamed_and_a_short_one_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/pi.log");
        logged(dir.path(), "warn", || tracing::warn!(target: "pi", "one"));
        let two = logged(dir.path(), "warn", || tracing::warn!(target: "pi", "two"));
        assert_eq!(two, ["WARN pi: one", "WARN pi: two"]);
        let long = OpenOptions::new().write(true).open(&path).unwrap();
        long.set_len(MAX_LOG_BYTES + 1).unwrap();
        let three = logged(dir.path(), "warn", || tracing::warn!(target: "pi", "three"));
        assert_eq!(three, ["WARN pi: three"]);
        let old = fs::metadata(path.with_extension("log.old")).unwrap();
        assert_eq!(old.len(), MAX_LOG_BYTES + 1);
    }

    #[test]
    fn tokens_of_npm_are_replaced_in_the_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let token = "npm_token0of0the0log";
        let text = format!("//registry.example/:_authToken={token}");
        fs::write(dir.path().join(".npmrc"), text).unwrap();
        let lines = logged(
            dir.path(),
            "warn",
            || tracing::warn!(target: "pi", "got {token}"),
        );
        assert_eq!(lines, ["WARN pi: got [redacted]"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_log() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        log_file(dir.path()).check().unwrap();
        let mode = fs::metadata(dir.path().join("logs/pi.log"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn the_error_names_the_log_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("logs"), "in the way").unwrap();
        let error = log_file(dir.path()).check().unwrap_err().to_string();
        let path = dir.path().join("logs/pi.log");
        let prefix = format!("cannot open log file {}: ", path.display());
        assert!(error.starts_with(&prefix), "{error}");
    }
}
