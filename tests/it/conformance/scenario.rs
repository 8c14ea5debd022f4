//! Types of the scenario files. A file describes one extension and the steps that use it;
//! `tests/conformance/README.md` explains the members.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use model_server::Answer;
use serde::Deserialize;
use serde_json::Value;

/// A file of `tests/conformance/scenarios`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Suite {
    /// The name of the suite's row in the table, which is the name of the file.
    #[serde(skip)]
    pub name: String,
    /// An example of the original, installed among the user's extensions.
    pub example: Option<String>,
    /// Alternatively, packages from npm as `name@version`; the first is the extension.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Whether the extension is written for the newest original and compared with that.
    #[serde(default)]
    pub newest: bool,
    /// Whether the extension gets an emulated terminal, see `harness.ts`.
    #[serde(default)]
    pub terminal: bool,
    /// Whether the suite is part of the slice that runs with the other tests.
    #[serde(default)]
    pub slice: bool,
    /// Whether the two programs must run one after the other, because they use something that
    /// exists once.
    #[serde(default)]
    pub alone: bool,
    #[serde(default)]
    pub known: Vec<Known>,
    pub scenarios: Vec<Scenario>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Scenario {
    pub name: String,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Files by path, below the working directory or, with `~/`, below the agent's folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Programs that come first in `PATH`.
    #[serde(default)]
    pub bin: BTreeMap<String, String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether the files become a git repository with one commit.
    #[serde(default)]
    pub git: bool,
    /// Shell commands that run before the program starts.
    #[serde(default)]
    pub before: Vec<String>,
    pub settings: Option<Value>,
    /// Changes to `models.json`.
    pub models: Option<Value>,
    #[serde(default)]
    pub answers: Vec<Answer>,
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Keys that are typed into the emulated terminal, see `harness.ts`.
    #[serde(default)]
    pub keys: Value,
    /// Patterns of values that differ between runs in a way of the extension's own.
    #[serde(default)]
    pub random: Vec<String>,
    /// Lines and requests that are left out of both transcripts.
    #[serde(default)]
    pub ignore: Vec<Ignored>,
}

#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) enum Mode {
    #[default]
    Rpc,
    /// `--mode json`: `steps` is ignored, `arguments` has the prompt.
    Json,
    Print,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Step {
    /// Sends a prompt and waits until the agent is idle.
    Run(String),
    /// Sends a prompt and waits until it is accepted; for a slash command, until its handler is
    /// done.
    Say(String),
    /// Sends a prompt without waiting.
    Begin(String),
    /// Sends a command of the protocol and waits for the response.
    Ask(Value),
    /// Sends a command of the protocol without waiting.
    Send(Value),
    /// Waits for a dialog of the extension and answers it.
    Reply(String, Value),
    /// Waits for a line with these members.
    Wait(Value),
    /// Forks at the nth prompt, without waiting.
    Fork(usize),
    /// Switches to the nth session, without waiting.
    Switch(usize),
    /// Waits until a file exists in the working directory.
    WaitFile(String),
    /// Waits until this many requests have reached the model.
    Requests(usize),
    /// Waits until the session is idle.
    Rest,
    /// Records what a shell prints in the working directory.
    Shell(String),
    /// Ends the program and starts it again with more arguments.
    Restart(Vec<String>),
    /// Closes stdin, whether or not anything is at work.
    End,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ignored {
    /// The members that identify the line.
    pub line: Value,
    /// A reason for readers of the scenario.
    #[serde(rename = "why")]
    pub _why: String,
}

/// A difference that is not a defect, or not repaired yet.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// The position as [`super::compare::Difference`] prints it; `*` matches any text.
    pub at: String,
    pub why: String,
    /// Whether the difference depends on timing.
    #[serde(default)]
    pub sometimes: bool,
    /// The only scenario that it applies to; `None` applies to all.
    #[serde(rename = "in")]
    pub scenario: Option<String>,
}

impl Scenario {
    /// Replaces placeholders of the scenario by paths of a program.
    pub fn fill(&mut self, places: &[(&str, String)]) {
        let fill = |text: &mut String| {
            for (name, place) in places {
                *text = text.replace(name, place);
            }
        };
        self.arguments.iter_mut().for_each(fill);
        self.files.values_mut().for_each(fill);
        self.bin.values_mut().for_each(fill);
        self.env.values_mut().for_each(fill);
        for value in [&mut self.settings, &mut self.models].into_iter().flatten() {
            fill_value(value, &fill);
        }
        for step in &mut self.steps {
            match step {
                Step::Run(text)
                | Step::Say(text)
                | Step::Begin(text)
                | Step::Shell(text)
                | Step::WaitFile(text) => {
                    fill(text);
                }
                Step::Ask(value)
                | Step::Send(value)
                | Step::Reply(_, value)
                | Step::Wait(value) => {
                    fill_value(value, &fill);
                }
                Step::Restart(arguments) => arguments.iter_mut().for_each(fill),
                Step::Requests(_) | Step::Fork(_) | Step::Switch(_) | Step::Rest | Step::End => {}
            }
        }
    }
}

fn fill_value(value: &mut Value, fill: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => fill(text),
        Value::Array(elements) => elements.iter_mut().for_each(|one| fill_value(one, fill)),
        Value::Object(members) => members.values_mut().for_each(|one| fill_value(one, fill)),
        _ => {}
    }
}

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// All suites, sorted by name.
pub(super) fn suites() -> Vec<Suite> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder().join("scenarios"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Suite {
    let text = fs::read_to_string(path).unwrap();
    let suite: Result<Suite, _> = serde_json::from_str(&text);
    let mut suite = suite.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_stem().expect("a file has a name");
    suite.name = name.to_string_lossy().into_owned();
    suite
}

/// Known differences of all suites.
pub(super) fn known_everywhere() -> Vec<Known> {
    let text = fs::read_to_string(folder().join("known.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Whether a value contains all of `wanted`: members of objects, and elements at the beginning of
/// arrays. A `*` at the end of a text matches any text.
pub(super) fn has(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            value
                .get(name)
                .map_or(wanted.is_null(), |value| has(value, wanted))
        }),
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() >= wanted.len()
                && value
                    .iter()
                    .zip(wanted)
                    .all(|(value, wanted)| has(value, wanted))
        }
        (Value::String(value), Value::String(wanted)) => match wanted.strip_suffix('*') {
            Some(start) => value.starts_with(start),
            None => value == wanted,
        },
        _ => value == wanted,
    }
}
