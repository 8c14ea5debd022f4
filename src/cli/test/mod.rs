//! `pi test`: runs the tests of extensions. Each file runs in a process of this program in the
//! place of node; the API of tests is in `js-runtime/js/modules/pi-coding-agent/test`.

mod child;
mod discover;

mod report;
mod signals;

use std::collections::VecDeque;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use self::child::TestRun;
use self::discover::find_test_files;
use self::report::{FileReport, Summary};
use self::signals::Interruption;
use super::{CliError, output, paths, print_stderr, runtime};

const USAGE: &str = "\
Usage: pi test [FILE|FOLDER]... [--filter TEXT] [--timeout MS] [--jobs N] [--json]

Runs the *.test.ts files (also .js, .mts, .mjs) of the folders, or of this one: the
tests of extensions, each with a pi, a project and a scripted model of its own. How
to write them is in docs/extensions.md. The exit code is 0 if all pass.

  --filter TEXT   only tests with TEXT in their names
  --timeout MS    how long a test may take that says nothing else (30000)
  --jobs N        files at a time (as many as there are processors)
  --json          the report as one JSON object
";

/// Default timeout of a test.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq)]
struct TestArgs {
    paths: Vec<PathBuf>,
    filter: String,
    timeout: Duration,
    jobs: Option<NonZero<usize>>,
    json: bool,
    help: bool,
}

/// Runs the command and returns the exit code.
pub fn run(args: &[String]) -> Result<u8, CliError> {
    let options = match parse(&args[1..]) {
        Ok(options) => options,
        Err(problem) => {
            print_stderr(&format!("Error: {problem}\n\n{USAGE}"));
            return Ok(1);
        }
    };
    if options.help {
        output(USAGE)?;
        return Ok(0);
    }
    let cwd = paths()?.cwd;
    let files = match find_test_files(&options.paths, &cwd) {
        Ok(files) => files,
        Err(problem) => {
            print_stderr(&format!("Error: {problem}"));
            return Ok(1);
        }
    };
    let runtime = runtime()?;
    let interruption = Interruption::listen(&runtime);
    let run = TestRun::new(&options.filter, options.timeout, interruption.clone());
    let run = match run {
        Ok(run) => run,
        Err(error) => {
            print_stderr(&format!("Error: no temporary folder can be made: {error}"));
            return Ok(1);
        }
    };
    let begun = Instant::now();
    let mut summary = Summary::default();
    let jobs = options.jobs.or(std::thread::available_parallelism().ok());
    run_files(files, &run, &interruption, jobs, &mut |report| {
        let text = match options.json {
            true => Ok(()),
            false => output(&report.format(&cwd)),
        };
        summary.add(report);
        text
    })?;
    runtime.shutdown_background();
    if let Some(code) = interruption.code() {
        print_stderr("Interrupted: the tests that ran were stopped, the others were not run");
        return Ok(code);
    }
    summary.set_duration(begun.elapsed());
    output(&match options.json {
        true => summary.json(),
        false => summary.format(),
    })?;
    if summary.is_empty() {
        print_stderr(&match options.filter.as_str() {
            "" => "Error: there are no tests".to_string(),
            filter => format!("Error: no test has {filter:?} in its name"),
        });
    }
    Ok(u8::from(summary.is_empty() || summary.has_failed()))
}

/// Runs several files at a time until the run is interrupted. `on_report` gets the reports in the
/// order of the files.
fn run_files(
    files: Vec<PathBuf>,
    test_run: &TestRun,
    interruption: &Interruption,
    jobs: Option<NonZero<usize>>,
    on_report: &mut dyn FnMut(FileReport) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let jobs = jobs.map_or(1, NonZero::get).min(files.len());
    let mut reports: Vec<Option<FileReport>> = files.iter().map(|_| None).collect();
    let waiting: Mutex<VecDeque<_>> = Mutex::new(files.into_iter().enumerate().collect());
    // No thread panics while it holds the lock.
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_front()
    };
    std::thread::scope(|scope| {
        let (done, finished) = mpsc::sync_channel(jobs);
        for _ in 0..jobs {
            let done = done.clone();
            scope.spawn(move || {
                while let Some((index, file)) = next() {
                    let report = test_run.run(index, file);
                    // A stopped file has no report. An error means that a report could not be
                    // printed.
                    if interruption.code().is_some() || done.send((index, report)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut reported = 0;
        for (index, report) in finished {
            reports[index] = Some(report);
            while let Some(report) = reports.get_mut(reported).and_then(Option::take) {
                reported += 1;
                on_report(report)?;
            }
        }
        Ok(())
    })
}

fn parse(args: &[String]) -> Result<TestArgs, String> {
    let mut options = TestArgs {
        paths: Vec::new(),
        filter: String::new(),
        timeout: DEFAULT_TIMEOUT,
        jobs: None,
        json: false,
        help: false,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (arg.as_str(), None),
        };
        let mut value = || {
            inline
                .clone()
                .or_else(|| args.next().cloned())
                .ok_or_else(|| format!("{name} needs a value"))
        };
        match name {
            "--filter" => options.filter = value()?,
            "--timeout" => {
                let value = value()?;
                let number = value.parse().ok().filter(|number| *number > 0);
                let number = number.ok_or_else(|| format!("{value} is no number of ms"))?;
                options.timeout = Duration::from_millis(number);
            }
            "--jobs" => {
                let value = value()?;
                let number = value.parse().ok();
                options.jobs =
                    Some(number.ok_or_else(|| format!("{value} is no number of files"))?);
            }
            "--json" => options.json = true,
            "-h" | "--help" => options.help = true,
            "--offline" => {}
            option if option.starts_with('-') && option.len() > 1 => {
                return Err(format!("unknown option {option}"));
            }
            _ => options.paths.push(PathBuf::from(arg)),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<TestArgs, String> {
        parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_and_files_are_separated() {
        assert_eq!(
            parsed(&["a.test.ts", "--filter", "a b", "dir", "--json", "--jobs=2"]),
            Ok(TestArgs {
                paths: vec!["a.test.ts".into(), "dir".into()],
                filter: "a b".into(),
                timeout: DEFAULT_TIMEOUT,
                jobs: NonZero::new(2),
                json: true,
                help: false,
            })
        );
        let timeout = parsed(&["--timeout", "5"]).map(|parsed| parsed.timeout);
        assert_eq!(timeout, Ok(Duration::from_millis(5)));
    }

    #[test]
    fn errors_name_the_option() {
        for (words, problem) in [
            (&["--fliter", "x"][..], "unknown option --fliter"),
            (&["--filter"], "--filter needs a value"),
            (&["--timeout", "0"], "0 is no number of ms"),
            (&["--jobs", "0"], "0 is no number of files"),
        ] {
            assert_eq!(parsed(words), Err(problem.into()));
        }
    }
}
