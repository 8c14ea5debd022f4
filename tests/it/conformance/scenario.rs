//! What a scenario file may say. Each describes one extension and what is done
//! with it; `tests/conformance/README.md` explains the members.

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
    /// The name of its row in the table; the file's name.
    #[serde(skip)]
    pub name: String,
    /// One of the original's examples, installed where the user's extensions are.
    pub example: Option<String>,
    /// Packages from npm, `name@version`, instead; the first is the extension.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Written for the newest original, which is what it is compared with.
    #[serde(default)]
    pub newest: bool,
    /// Whether it is put in front of a made terminal, see `harness.ts`.
    #[serde(default)]
    pub terminal: bool,
    /// Runs with the other tests, not only when everything is asked for.
    #[serde(default)]
    pub slice: bool,
    /// What it uses exists only once: one program after the other.
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
    /// By path, below the working directory, or `~/` for the agent's folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Programs that are found first.
    #[serde(default)]
    pub bin: BTreeMap<String, String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Makes a repository of the files, with one commit.
    #[serde(default)]
    pub git: bool,
    /// What a shell does before the program starts.
    #[serde(default)]
    pub before: Vec<String>,
    pub settings: Option<Value>,
    /// What to change in `models.json`.
    pub models: Option<Value>,
    #[serde(default)]
    pub answers: Vec<Answer>,
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What is typed into the made terminal, see `harness.ts`.
    #[serde(default)]
    pub keys: Value,
    /// Patterns of what is another in each run, in the extension's own way.
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
    /// `steps` is ignored, `arguments` has the prompt.
    Json,
    Print,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Step {
    /// A prompt, until the agent is at rest again.
    Run(String),
    /// A prompt, until it is taken; a command of an extension, until it is done.
    Say(String),
    /// A prompt, and no waiting.
    Begin(String),
    /// A command of the protocol, with its response.
    Ask(Value),
    /// The same without waiting for the response.
    Send(Value),
    /// Waits for a question of the extension and answers it.
    Reply(String, Value),
    /// Waits for a line that has these members.
    Wait(Value),
    /// Asks for a fork at the nth prompt, and does not wait.
    Fork(usize),
    /// Asks for a switch to the nth session, and does not wait.
    Switch(usize),
    /// Waits until a file of the working directory is there.
    WaitFile(String),
    /// Waits until so many requests have reached the model.
    Requests(usize),
    /// Waits until nothing is at work.
    Rest,
    /// What a shell prints in the working directory.
    Shell(String),
    /// Ends the program and starts it again with more arguments.
    Restart(Vec<String>),
    /// Closes stdin without looking whether anything is at work.
    End,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ignored {
    /// The members that tell it.
    pub line: Value,
    /// For the reader of the scenario.
    #[serde(rename = "why")]
    pub _why: String,
}

/// A difference that is not a defect, or not repaired yet.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// As [`super::compare::Difference`] prints it; `*` is anything.
    pub at: String,
    pub why: String,
    /// Whether it depends on time.
    #[serde(default)]
    pub sometimes: bool,
    /// Only in this scenario.
    #[serde(rename = "in")]
    pub scenario: Option<String>,
}

impl Scenario {
    /// Puts the places of a program where the scenario names them.
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

/// All of them, by name.
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

/// What holds for all of them.
pub(super) fn known_everywhere() -> Vec<Known> {
    let text = fs::read_to_string(folder().join("known.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Whether a value has all that `wanted` has: members of objects, the elements at
/// the beginning of arrays; `*` at the end of a text is anything.
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
