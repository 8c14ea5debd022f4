//! `pi test`: runs the tests that authors write beside their extensions. Each file is
//! a process of this program in the place of node; what a test is allowed to do is in
//! `js-runtime/js/modules/pi-coding-agent/test`.

mod child;
mod find;
mod interruption;
mod report;

use std::collections::VecDeque;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use self::child::Surroundings;
use self::find::find;
use self::interruption::Interruption;
use self::report::{FileReport, Summary};
use super::{CliError, complain, output, paths, runtime};

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

/// How long a test may take.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq)]
struct Asked {
    paths: Vec<PathBuf>,
    filter: String,
    timeout: Duration,
    jobs: Option<NonZero<usize>>,
    json: bool,
    help: bool,
}

/// Gives the exit code.
pub fn run(words: &[String]) -> Result<u8, CliError> {
    let asked = match parse(&words[1..]) {
        Ok(asked) => asked,
        Err(problem) => {
            complain(&format!("Error: {problem}\n\n{USAGE}"));
            return Ok(1);
        }
    };
    if asked.help {
        output(USAGE)?;
        return Ok(0);
    }
    let cwd = paths()?.cwd;
    let files = match find(&asked.paths, &cwd) {
        Ok(files) => files,
        Err(problem) => {
            complain(&format!("Error: {problem}"));
            return Ok(1);
        }
    };
    let runtime = runtime()?;
    let interruption = Interruption::listen(&runtime);
    let made = Surroundings::new(&asked.filter, asked.timeout, interruption.clone());
    let surroundings = match made {
        Ok(surroundings) => surroundings,
        Err(error) => {
            complain(&format!("Error: no temporary folder can be made: {error}"));
            return Ok(1);
        }
    };
    let begun = Instant::now();
    let mut summary = Summary::default();
    let jobs = asked.jobs.or(std::thread::available_parallelism().ok());
    run_files(files, &surroundings, &interruption, jobs, &mut |report| {
        let text = match asked.json {
            true => Ok(()),
            false => output(&report.in_words(&cwd)),
        };
        summary.add(report);
        text
    })?;
    runtime.shutdown_background();
    if let Some(code) = interruption.code() {
        complain("Interrupted: the tests that ran were stopped, the others were not run");
        return Ok(code);
    }
    summary.took(begun.elapsed());
    output(&match asked.json {
        true => summary.json(),
        false => summary.in_words(),
    })?;
    if summary.is_empty() {
        complain(&match asked.filter.as_str() {
            "" => "Error: there are no tests".to_string(),
            filter => format!("Error: no test has {filter:?} in its name"),
        });
    }
    Ok(u8::from(summary.is_empty() || summary.has_failed()))
}

/// Several at a time, until it is interrupted; `tell` hears of them in order.
fn run_files(
    files: Vec<PathBuf>,
    surroundings: &Surroundings,
    interruption: &Interruption,
    jobs: Option<NonZero<usize>>,
    tell: &mut dyn FnMut(FileReport) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let jobs = jobs.map_or(1, NonZero::get).min(files.len());
    let mut reports: Vec<Option<FileReport>> = files.iter().map(|_| None).collect();
    let waiting: Mutex<VecDeque<_>> = Mutex::new(files.into_iter().enumerate().collect());
    // Nobody panics while it is held.
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
                    let report = surroundings.run(index, file);
                    // What was stopped says nothing. An error means that the report cannot
                    // be written any more.
                    if interruption.code().is_some() || done.send((index, report)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut told = 0;
        for (index, report) in finished {
            reports[index] = Some(report);
            while let Some(report) = reports.get_mut(told).and_then(Option::take) {
                told += 1;
                tell(report)?;
            }
        }
        Ok(())
    })
}

fn parse(words: &[String]) -> Result<Asked, String> {
    let mut asked = Asked {
        paths: Vec::new(),
        filter: String::new(),
        timeout: TIMEOUT,
        jobs: None,
        json: false,
        help: false,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            inline
                .clone()
                .or_else(|| words.next().cloned())
                .ok_or_else(|| format!("{name} needs a value"))
        };
        match name {
            "--filter" => asked.filter = value()?,
            "--timeout" => {
                let value = value()?;
                let number = value.parse().ok().filter(|number| *number > 0);
                let number = number.ok_or_else(|| format!("{value} is no number of ms"))?;
                asked.timeout = Duration::from_millis(number);
            }
            "--jobs" => {
                let value = value()?;
                let number = value.parse().ok();
                asked.jobs = Some(number.ok_or_else(|| format!("{value} is no number of files"))?);
            }
            "--json" => asked.json = true,
            "-h" | "--help" => asked.help = true,
            "--offline" => {}
            option if option.starts_with('-') && option.len() > 1 => {
                return Err(format!("unknown option {option}"));
            }
            _ => asked.paths.push(PathBuf::from(word)),
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Asked, String> {
        parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_told_from_files() {
        assert_eq!(
            parsed(&["a.test.ts", "--filter", "a b", "dir", "--json", "--jobs=2"]),
            Ok(Asked {
                paths: vec!["a.test.ts".into(), "dir".into()],
                filter: "a b".into(),
                timeout: TIMEOUT,
                jobs: NonZero::new(2),
                json: true,
                help: false,
            })
        );
        let timeout = parsed(&["--timeout", "5"]).map(|asked| asked.timeout);
        assert_eq!(timeout, Ok(Duration::from_millis(5)));
    }

    #[test]
    fn what_is_wrong_is_named() {
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
