//! Runs the original and pi with the same extensions through the same scenarios
//! (`tests/conformance`) and compares everything that is visible from outside.
//!
//! A slice runs with every change. `PI_CONFORMANCE=all` runs every scenario, `PI_CONFORMANCE=write`
//! also writes the table of `docs/compatibility.md`; any other value is a comma-separated list of
//! parts of names to run.

mod compare;
mod load;
mod normal;
pub mod program;
mod scenario;
mod side;
mod table;
mod words;

use futures::StreamExt;
use tokio::time::timeout;

use compare::{Difference, differences};
use program::Program;
use scenario::{Known, Scenario, Suite};
use side::play;
use table::Row;

/// How many scenarios are played at a time, each in two programs.
const AT_A_TIME: usize = 2;

/// The outcome of one scenario.
struct ScenarioOutcome {
    suite: String,
    scenario: String,
    /// Differences that are not listed as known.
    unknown: Vec<Difference>,
    /// Differences with their reasons.
    known: Vec<Known>,
    /// The failure that ended the scenario early.
    broken: Option<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_behave_as_in_the_original() {
    let wanted = std::env::var("PI_CONFORMANCE").unwrap_or_default();
    let all = matches!(wanted.as_str(), "all" | "write");
    let suites = scenario::suites()
        .into_iter()
        .filter(|suite| match wanted.as_str() {
            "" => suite.slice,
            "all" | "write" => true,
            parts => parts.split(',').any(|part| suite.name.contains(part)),
        });
    let suites: Vec<Suite> = suites.collect();
    assert!(!suites.is_empty(), "nothing is called {wanted}");
    let everywhere = scenario::known_everywhere();
    let pairs = suites.iter().flat_map(|suite| {
        suite
            .scenarios
            .iter()
            .map(move |scenario| (suite, scenario))
    });
    let outcomes = futures::stream::iter(pairs)
        .map(|(suite, scenario)| beside(suite.clone(), scenario.clone(), &everywhere))
        .buffered(AT_A_TIME);
    let outcomes: Vec<ScenarioOutcome> = outcomes.collect().await;
    let rows: Vec<Row> = suites
        .iter()
        .map(|suite| Row::from_outcomes(suite, &outcomes))
        .collect();
    let mut report = String::new();
    for outcome in &outcomes {
        outcome.describe(&mut report);
    }
    if all {
        report += &stale(&suites, &outcomes);
    }
    println!(
        "{} scenarios of {} extensions",
        outcomes.len(),
        suites.len()
    );
    if wanted == "write" {
        table::write(&rows);
    }
    report += &table::disagreements(&rows);
    assert!(report.is_empty(), "{report}");
}

/// Known differences that no longer occur.
fn stale(suites: &[Suite], outcomes: &[ScenarioOutcome]) -> String {
    let mut report = String::new();
    for suite in suites {
        for known in suite.known.iter().filter(|known| !known.sometimes) {
            let of_suite = outcomes
                .iter()
                .filter(|outcome| outcome.suite == suite.name);
            let mut seen = of_suite.flat_map(|outcome| &outcome.known);
            if !seen.any(|seen| seen.at == known.at) {
                report += &format!("{}: `{}` does not differ any more\n", suite.name, known.at);
            }
        }
    }
    report
}

/// Plays a scenario in both programs.
async fn beside(suite: Suite, scenario: Scenario, everywhere: &[Known]) -> ScenarioOutcome {
    let original = match suite.newest {
        true => Program::newest,
        false => Program::original,
    };
    // A program that breaks down fails its scenario, not the whole test.
    let start = |program: fn() -> Program| {
        let (suite, scenario) = (suite.clone(), scenario.clone());
        tokio::spawn(async move {
            let played = timeout(side::SCENARIO_TIMEOUT, play(program(), &suite, &scenario)).await;
            played.unwrap_or_else(|_| panic!("it takes too long"))
        })
    };
    let (ours, theirs) = match suite.alone {
        true => (start(Program::ours).await, start(original).await),
        false => tokio::join!(start(Program::ours), start(original)),
    };
    let mut outcome = ScenarioOutcome {
        suite: suite.name.clone(),
        scenario: scenario.name.clone(),
        unknown: Vec::new(),
        known: Vec::new(),
        broken: None,
    };
    let output = |error: tokio::task::JoinError| match error.try_into_panic() {
        Ok(panic) => match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(_) => "it panicked".to_owned(),
        },
        Err(error) => error.to_string(),
    };
    let (ours, theirs) = match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (ours, theirs) => {
            let which = [("ours", ours.err()), ("original", theirs.err())];
            let which = which.into_iter().filter_map(|(name, error)| {
                error.map(|error| format!("{name} breaks down: {}", output(error)))
            });
            outcome.broken = Some(which.collect::<Vec<_>>().join("\n"));
            return outcome;
        }
    };
    if let Some(folder) = std::env::var_os("PI_CONFORMANCE_KEEP") {
        table::write_transcripts(folder.as_ref(), &outcome, &ours, &theirs);
    }
    for difference in differences(&ours, &theirs) {
        let mut known = suite.known.iter().chain(everywhere);
        match known.find(|known| known.covers(&scenario.name, &difference)) {
            Some(known) => outcome.known.push(known.clone()),
            None => outcome.unknown.push(difference),
        }
    }
    outcome
}

impl ScenarioOutcome {
    fn describe(&self, report: &mut String) {
        const SHOWN: usize = 20;
        const WIDTH: usize = 200;
        if self.unknown.is_empty() && self.broken.is_none() {
            return;
        }
        *report += &format!("\n== {}: {}\n", self.suite, self.scenario);
        for line in self.broken.iter().flat_map(|broken| broken.lines()) {
            report.extend(line.chars().take(WIDTH));
            report.push('\n');
        }
        // A difference in one event shows up again in the events that repeat it.
        let mut reported: Vec<&Difference> = Vec::new();
        for difference in &self.unknown {
            let is_same = |other: &&Difference| {
                let same = (&other.ours, &other.theirs) == (&difference.ours, &difference.theirs);
                other.at == difference.at || same
            };
            if !reported.iter().any(is_same) && reported.len() < SHOWN {
                reported.push(difference);
                *report += &format!("  {difference}\n");
            }
        }
        *report += &format!("  {} differences\n", self.unknown.len());
    }
}
