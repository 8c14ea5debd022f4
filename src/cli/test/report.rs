//! Reports of tests: converts the records of a process to text or JSON.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::child::TestProcess;
use pi_modes::line::sanitize::sanitize;
use pi_tools::text::diff::Changes;

/// A line that a process of tests writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum Record {
    /// The names of all tests, in order.
    Plan {
        names: Vec<String>,
    },
    Start {
        name: String,
        timeout: u64,
    },
    Passed {
        name: String,
        ms: f64,
    },
    Failed {
        name: String,
        ms: f64,
        error: Failure,
    },
    Skipped {
        name: String,
    },
    /// An error after the test had passed, from code that it did not await.
    Late {
        name: String,
        error: Failure,
    },
    /// The file could not be read to its end.
    Broken {
        error: Failure,
    },
    Done,
}

pub(super) struct Records(pub Vec<Record>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub message: String,
    /// Source position in the author's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Source position of the call in the test, if it is in another file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Position>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Position {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum TestOutcome {
    Passed,
    Failed,
    Skipped,
    /// The process ended before the test.
    NotRun,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TestReport {
    name: String,
    outcome: TestOutcome,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileReport {
    file: PathBuf,
    tests: Vec<TestReport>,
    /// The error outside any test.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Output of the tests, such as that of `console.log`.
    printed: String,
    duration_ms: f64,
}

impl FileReport {
    pub(super) fn new(
        file: PathBuf,
        records: Records,
        ended: io::Result<TestProcess>,
        took: Duration,
    ) -> Self {
        let mut report = Self {
            file,
            tests: Vec::new(),
            error: None,
            printed: String::new(),
            duration_ms: milliseconds(took),
        };
        let mut running = None;
        let mut done = false;
        let mut planned = Vec::new();
        let mut broken = None;
        for record in records.0 {
            let (name, outcome, duration_ms, error) = match record {
                Record::Plan { names } => {
                    planned = names;
                    continue;
                }
                Record::Start { name, .. } => {
                    running = Some(name);
                    continue;
                }
                Record::Done => {
                    done = true;
                    continue;
                }
                Record::Broken { error } => {
                    broken = Some(error);
                    continue;
                }
                Record::Late { name, error } => {
                    let known = report.tests.iter_mut().find(|test| test.name == name);
                    if let Some(test) = known {
                        test.outcome = TestOutcome::Failed;
                        test.error = Some(error);
                    }
                    continue;
                }
                Record::Passed { name, ms } => (name, TestOutcome::Passed, ms, None),
                Record::Failed { name, ms, error } => (name, TestOutcome::Failed, ms, Some(error)),
                Record::Skipped { name } => (name, TestOutcome::Skipped, 0.0, None),
            };
            running = None;
            report.tests.push(TestReport {
                name,
                outcome,
                duration_ms,
                error,
            });
        }
        let mut position = None;
        let problem = match ended {
            Err(error) => Some(format!("it cannot be run: {error}")),
            Ok(ended) if broken.is_some() => {
                report.printed = ended.output;
                broken.map(|error| error.describe_for_file())
            }
            Ok(ended) => {
                report.printed = ended.output;
                position = ended.position;
                let nothing = report.tests.is_empty() && planned.is_empty() && running.is_none();
                match (done, ended.killed) {
                    (true, false) => None,
                    (true, true) => Some("it did not end after its tests".into()),
                    (false, true) => Some(
                        "it did not give the thread back, or did not end in time, and was stopped"
                            .into(),
                    ),
                    (false, false) if nothing && ended.status.success() => {
                        Some("it has no tests".into())
                    }
                    (false, false) => Some(format!("it ended too early ({})", ended.status)),
                }
            }
        };
        match (running, problem) {
            (Some(name), Some(message)) => report.tests.push(TestReport {
                name,
                outcome: TestOutcome::Failed,
                duration_ms: 0.0,
                error: Some(Failure {
                    message,
                    file: position.as_ref().map(|at| at.file.clone().into()),
                    line: position.as_ref().map(|at| at.line as usize),
                    column: position.as_ref().map(|at| at.column as usize),
                    ..Failure::default()
                }),
            }),
            (_, problem) => {
                let at = position.map(|at| format!(" ({at})")).unwrap_or_default();
                report.error = problem.map(|problem| format!("{problem}{at}"));
            }
        }
        // Each test before them has one report.
        let rest = planned.into_iter().skip(report.tests.len());
        report.tests.extend(rest.map(|name| TestReport {
            name,
            outcome: TestOutcome::NotRun,
            duration_ms: 0.0,
            error: None,
        }));
        report
    }

    fn count(&self, outcome: TestOutcome) -> usize {
        let tests = self.tests.iter();
        tests.filter(|test| test.outcome == outcome).count()
    }

    pub(super) fn format(&self, cwd: &Path) -> String {
        let name = |path: &Path| path.strip_prefix(cwd).unwrap_or(path).display().to_string();
        let mut text = format!("{}\n", name(&self.file));
        for test in &self.tests {
            let word = match test.outcome {
                TestOutcome::Passed => "ok",
                TestOutcome::Failed => "FAILED",
                TestOutcome::Skipped => "skipped",
                TestOutcome::NotRun => "not run",
            };
            _ = write!(text, "  {word:<8}{}", test.name);
            text += &match test.outcome {
                TestOutcome::Skipped | TestOutcome::NotRun => "\n".to_owned(),
                _ => format!(" ({})\n", duration(test.duration_ms)),
            };
            if let Some(error) = &test.error {
                text += &indent(&error.format(&name), 4);
            }
        }
        if let Some(error) = &self.error {
            text += &indent(&format!("FAILED  {error}"), 2);
        }
        if !self.printed.trim().is_empty() {
            text += &indent(&format!("It printed:\n{}", self.printed.trim_end()), 2);
        }
        sanitize(&text)
    }
}

impl Failure {
    /// Describes a failure outside any test.
    fn describe_for_file(&self) -> String {
        let mut text = format!("it was not read to its end: {}", self.message.trim_end());
        if let (Some(line), Some(column)) = (self.line, self.column) {
            let file = self.file.as_deref().and_then(Path::file_name);
            let file = file.unwrap_or_default().to_string_lossy();
            _ = write!(text, " ({file}:{line}:{column})");
        }
        text
    }

    fn format(&self, name: &dyn Fn(&Path) -> String) -> String {
        let mut text = format!("{}\n", self.message.trim_end());
        if let (Some(expected), Some(actual)) = (&self.expected, &self.actual) {
            text += &difference(expected, actual);
        }
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            text += &format_position("at", file, (line, self.column.unwrap_or(1)), name);
        }
        if let Some(from) = &self.from {
            let position = (from.line, from.column);
            text += &format_position("called at", &from.file, position, name);
        }
        text
    }
}

/// Formats a source position and its line of code.
fn format_position(
    what: &str,
    file: &Path,
    (line, column): (usize, usize),
    name: &dyn Fn(&Path) -> String,
) -> String {
    let mut text = format!("{what} {}:{line}:{column}\n", name(file));
    let source = fs::read_to_string(file).unwrap_or_default();
    if let Some(code) = source.lines().nth(line.saturating_sub(1)) {
        _ = writeln!(text, "  {line} | {}", code.trim_end());
    }
    text
}

/// Formats a diff with line numbers: `-` was expected, `+` is the actual text.
fn difference(expected: &str, actual: &str) -> String {
    let lines = |text: &str| format!("{}\n", text.strip_suffix('\n').unwrap_or(text));
    let (expected, actual) = (lines(expected), lines(actual));
    let mut text = "- expected, + actual\n".to_owned();
    if expected == actual {
        text += "(they differ in the line feed at the end, or in their types)\n";
        return text;
    }
    text += &Changes::between(&expected, &actual).display(3).text;
    text.push('\n');
    text
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    files: Vec<FileReport>,
    passed: usize,
    failed: usize,
    skipped: usize,
    /// Tests that did not run, because an earlier one ended the process.
    not_run: usize,
    /// Number of files with an error outside their tests.
    broken: usize,
    duration_ms: f64,
}

impl Summary {
    pub(super) fn add(&mut self, report: FileReport) {
        self.passed += report.count(TestOutcome::Passed);
        self.failed += report.count(TestOutcome::Failed);
        self.skipped += report.count(TestOutcome::Skipped);
        self.not_run += report.count(TestOutcome::NotRun);
        self.broken += usize::from(report.error.is_some());
        self.files.push(report);
    }

    pub(super) fn set_duration(&mut self, time: Duration) {
        self.duration_ms = milliseconds(time);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.broken == 0 && self.files.iter().all(|file| file.tests.is_empty())
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed + self.broken + self.not_run > 0
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    pub(super) fn format(&self) -> String {
        let mut parts = vec![format!("{} passed", self.passed)];
        for (count, what) in [
            (self.failed, "failed"),
            (self.skipped, "skipped"),
            (self.not_run, "not run"),
            (self.broken, "not run to the end"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        let files = match self.files.len() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let time = duration(self.duration_ms);
        format!("\n{} in {files} ({time})\n", parts.join(", "))
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round()
}

fn duration(milliseconds: f64) -> String {
    match milliseconds {
        short if short < 1000.0 => format!("{short:.0} ms"),
        long => format!("{:.1} s", long / 1000.0),
    }
}

fn indent(text: &str, columns: usize) -> String {
    let lines = text.lines();
    let line = |line: &str| format!("{:columns$}{line}", "").trim_end().to_owned() + "\n";
    lines.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_line_by_line() {
        assert_eq!(
            difference("one\ntwo\nthree\n", "one\n2\nthree\n"),
            "- expected, + actual\n 1 one\n-2 two\n+2 2\n 3 three\n"
        );
        assert_eq!(difference("5", "6"), "- expected, + actual\n-1 5\n+1 6\n");
        assert!(difference("a", "a\n").contains("line feed"));
    }

    #[test]
    fn a_file_that_cannot_run_counts_as_failed() {
        let mut summary = Summary::default();
        assert!(summary.is_empty() && !summary.has_failed());
        let nothing = io::Error::other("no such program");
        let report = FileReport::new(
            "/p/a.test.ts".into(),
            Records(vec![]),
            Err(nothing),
            Duration::from_millis(1500),
        );
        assert_eq!(
            report.format(Path::new("/p")),
            "a.test.ts\n  FAILED  it cannot be run: no such program\n"
        );
        summary.add(report);
        summary.set_duration(Duration::from_millis(1500));
        assert!(summary.has_failed());
        assert_eq!(
            summary.format(),
            "\n0 passed, 1 not run to the end in 1 file (1.5 s)\n"
        );
    }

    #[test]
    fn a_failure_shows_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.test.ts");
        fs::write(&file, "one\n  two();\n").unwrap();
        let failure = Failure {
            message: "it is wrong".into(),
            file: Some(file),
            line: Some(2),
            column: Some(3),
            ..Failure::default()
        };
        assert_eq!(
            failure.format(&|_| "a.test.ts".into()),
            "it is wrong\nat a.test.ts:2:3\n  2 |   two();\n"
        );
        let with_caller = Failure {
            from: Some(Position {
                file: failure.file.clone().unwrap(),
                line: 1,
                column: 1,
            }),
            ..failure
        };
        assert_eq!(
            with_caller.format(&|_| "a.test.ts".into()),
            "it is wrong\nat a.test.ts:2:3\n  2 |   two();\ncalled at a.test.ts:1:1\n  1 | one\n"
        );
    }
}
