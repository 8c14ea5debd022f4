//! The table of `docs/compatibility.md`: the result of the comparison, one row per extension.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::ScenarioOutcome;
use super::scenario::Suite;
use super::side::Transcript;

const BEGIN: &str = "<!-- written by tests/it/conformance -->\n";
const HEAD: &str = "| extension | scenarios | result | known differences |\n|---|---|---|---|\n";

pub(super) struct Row {
    name: String,
    text: String,
}

impl Row {
    pub fn from_outcomes(suite: &Suite, outcomes: &[ScenarioOutcome]) -> Self {
        let own: Vec<&ScenarioOutcome> = outcomes
            .iter()
            .filter(|outcome| outcome.suite == suite.name)
            .collect();
        let what = match (&suite.example, suite.packages.first()) {
            (Some(example), _) => format!("`{example}`"),
            (None, Some(package)) => format!("`{package}`"),
            (None, None) => format!("`{}`", suite.name),
        };
        let scenarios: Vec<&str> = suite
            .scenarios
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        let fails = own
            .iter()
            .any(|outcome| outcome.broken.is_some() || !outcome.unknown.is_empty());
        let mut reasons: Vec<&str> = Vec::new();
        for known in &suite.known {
            if !reasons.contains(&known.why.as_str()) {
                reasons.push(&known.why);
            }
        }
        let result = match (fails, reasons.is_empty()) {
            (true, _) => "**fails**",
            (false, true) => "same",
            (false, false) => "same but for",
        };
        let text = format!(
            "| {what} | {} | {result} | {} |",
            scenarios.join("; "),
            reasons.join(" ")
        );
        Self {
            name: suite.name.clone(),
            text,
        }
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md")
}

/// Replaces the rows; the text before them is written by hand.
pub(super) fn write(rows: &[Row]) {
    let text = fs::read_to_string(path()).unwrap();
    let (head, _) = text
        .split_once(BEGIN)
        .expect("the mark of the table is there");
    let rows: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
    fs::write(path(), format!("{head}{BEGIN}{HEAD}{}\n", rows.join("\n"))).unwrap();
}

/// Rows that differ from those in the file.
pub(super) fn disagreements(rows: &[Row]) -> String {
    let text = fs::read_to_string(path()).unwrap();
    let written: Vec<&str> = text.lines().collect();
    let wrong = rows
        .iter()
        .filter(|row| !written.contains(&row.text.as_str()));
    wrong
        .map(|row| {
            format!(
                "\ndocs/compatibility.md is not right about {}, it should say\n{}\n",
                row.name, row.text
            )
        })
        .collect()
}

/// Writes both transcripts to a folder, for someone who needs more than the differences.
pub(super) fn write_transcripts(
    folder: &Path,
    outcome: &ScenarioOutcome,
    ours: &Transcript,
    theirs: &Transcript,
) {
    fs::create_dir_all(folder).unwrap();
    let name = format!(
        "{}--{}",
        outcome.suite,
        outcome.scenario.replace(['/', ' '], "-")
    );
    let both: BTreeMap<&str, _> = [("ours", ours), ("theirs", theirs)].into();
    for (which, transcript) in both {
        let text = serde_json::to_string_pretty(&json!(transcript.channels)).unwrap();
        fs::write(folder.join(format!("{name}.{which}.json")), text).unwrap();
    }
}
