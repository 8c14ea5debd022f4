//! RPC mode beside the original: both programs get the same lines, the same home and the same
//! model. Their output has to be equal, in the same order and with members in the same order.
//!
//! The stories are in `stories/*.jsonl`, one step a line (`Step`). A difference is a defect, or a
//! member that all responses or events have (`KNOWN`), or a step's `known` with its reason;
//! docs/rpc.md has the list for readers.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use model_server::{Answer, ModelServer};
use regex::{Captures, Regex};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Home, Rpc, without};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    /// The next answers of the model.
    #[serde(default)]
    answers: Vec<Answer>,
    /// Commands, or literal lines. A command gets an `id` unless it has `"id": null`, and the step
    /// ends with its response. `<…>` stands for a value that was named so in earlier output.
    send: Vec<Value>,
    /// Events, or responses without an `id`, that must also come before the step ends.
    #[serde(default)]
    until: Vec<String>,
    /// Commands that are sent after those events; `<last>` is the id of the last event. The step
    /// ends with the responses to the earlier commands.
    #[serde(default)]
    after: Vec<Value>,
    /// Whether the order of responses among events is random.
    #[serde(default)]
    apart: bool,
    /// Events that are ignored here; a comment in the story has the reason.
    #[serde(default)]
    besides: Vec<String>,
    #[serde(default)]
    known: Option<Known>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    #[expect(dead_code, reason = "for those who read the story")]
    why: String,
    /// The relevant parts of each line; `…` stands for the rest of a text.
    ours: Vec<Value>,
    original: Vec<Value>,
}

impl Known {
    fn is_what_came(&self, ours: &[Value], original: &[Value]) -> bool {
        let has_all = |came: &[Value], wanted: &[Value]| {
            came.len() == wanted.len()
                && came
                    .iter()
                    .zip(wanted)
                    .all(|(came, wanted)| has(came, wanted))
        };
        has_all(ours, &self.ours) && has_all(original, &self.original)
    }
}

fn has(came: &Value, wanted: &Value) -> bool {
    match (came, wanted) {
        (Value::Object(came), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| has(came.get(name).unwrap_or(&Value::Null), wanted)),
        (Value::String(came), Value::String(wanted)) => match wanted.strip_suffix('…') {
            Some(beginning) => came.starts_with(beginning),
            None => came == wanted,
        },
        _ => came == wanted,
    }
}

/// Members that only pi has, by their position: `docs/rpc.md#what-differs-from-the-original`.
const KNOWN: [(&str, &[&str]); 11] = [
    // Error codes for programs, beside the message.
    ("", &["errorCode"]),
    // Members of later versions of the original.
    ("/data", &["disposition"]),
    ("/data", &["estimatedTokensAfter"]),
    ("/result", &["estimatedTokensAfter"]),
    ("", &["durationMs"]),
    ("/result/details", &["patch"]),
    // The reason why there is no model.
    ("/data", &["modelError"]),
    // Members for clients before 0.20.
    ("/data", &["queueMode", "queuedMessageCount"]),
    // The version, so that clients need no `hello`.
    ("/data", &["version"]),
    // Members for clients before 0.60.
    ("/data/commands/*", &["path", "location"]),
    // The source position of an extension's error.
    ("", &["extension", "location", "codeFrame", "stack"]),
];

/// Events that only pi has.
const EVENTS: [&str; 9] = [
    "agent_settled",
    "bash_execution_update",
    "session_info_changed",
    "thinking_level_changed",
    "entry_appended",
    "extension_warning",
    "extension_wait_start",
    "extension_wait_end",
    "extension_ui_end",
];

/// One of the two programs.
struct Side {
    server: ModelServer,
    home: Home,
    rpc: Rpc,
    names: Names,
    /// Number of lines that belong to finished steps.
    over: usize,
}

impl Side {
    async fn start(original: bool, prepare: impl Fn(&Home)) -> Self {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        prepare(&home);
        let rpc = match original {
            false => home.rpc(&[]),
            true => home.original_rpc(&[]),
        };
        let names = Names::new(&home);
        Self {
            server,
            home,
            rpc,
            names,
            over: 0,
        }
    }

    /// Plays a step and returns the lines that came out.
    async fn take(&mut self, number: usize, step: &Step) -> Vec<Value> {
        for answer in &step.answers {
            self.server.push(answer.clone());
        }
        let mut last = self.over;
        let mut ids = Vec::new();
        let mut id_of_last = String::new();
        for (index, line) in step.send.iter().enumerate() {
            let line = with_id(line, &format!("{number}.{index}"), &mut ids);
            self.rpc.send(&self.names.back(&line)).await;
        }
        let mut from = self.over;
        for kind in &step.until {
            let is_it = |line: &Value| match line["type"].as_str() {
                Some("response") => kind == "response" && !ids.contains(&line["id"]),
                _ => line["type"] == kind.as_str() || line["method"] == kind.as_str(),
            };
            let what = format!("step {number}: {kind}");
            let (at, found) = self.rpc.find(from, &what, is_it).await;
            from = at + 1;
            id_of_last = found["id"].as_str().unwrap_or_default().to_owned();
        }
        last = last.max(from);
        for (index, line) in step.after.iter().enumerate() {
            let line = with_id(line, &format!("{number}.after.{index}"), &mut ids);
            self.rpc.send(&line.replace("<last>", &id_of_last)).await;
        }
        for id in &ids {
            let is_response = |line: &Value| line["type"] == "response" && line["id"] == *id;
            let what = format!("step {number}: the response to {id}");
            last = last.max(self.rpc.find(self.over, &what, is_response).await.0 + 1);
        }
        let lines = self.rpc.raw_lines();
        let came = lines[self.over..last].iter();
        self.over = last;
        let mut came: Vec<Value> = came.filter_map(|line| self.comparable(line)).collect();
        came.retain(|line| {
            !step
                .besides
                .iter()
                .any(|kind| line["type"] == kind.as_str())
        });
        if step.apart {
            // Events come first, in their order.
            came.sort_by_key(|line| match line["type"] == "response" {
                true => line["id"].to_string(),
                false => String::new(),
            });
        }
        came
    }

    fn comparable(&mut self, line: &str) -> Option<Value> {
        let line = self.names.forth(line);
        let mut line: Value = serde_json::from_str(&line).expect("names are plain");
        if EVENTS.iter().any(|event| line["type"] == *event) {
            return None;
        }
        if line["type"] == "message_update" {
            // The original's message is the growing object itself, written when its turn comes, so
            // its length depends on timing.
            line = without(&line, &["message", "usage"]);
            let members = ["partial", "id", "toolName"];
            drop_members(&mut line, "/assistantMessageEvent", &members);
        }
        // Both programs have `willRetry` in a compaction.
        if line["type"] == "agent_end" {
            line = without(&line, &["willRetry"]);
        }
        for (place, members) in KNOWN {
            drop_members(&mut line, place, members);
        }
        if line["type"] == "response" && line["data"] == json!({}) && is_disposed(&line) {
            line = without(&line, &["data"]);
        }
        Some(line)
    }

    /// Returns the lines after the last step, and the files that are left.
    async fn end(mut self) -> Vec<Value> {
        self.rpc.close_stdin();
        let status = self.rpc.end().await;
        let lines = self.rpc.raw_lines();
        let rest: Vec<Value> = lines[self.over..]
            .iter()
            .filter_map(|line| self.comparable(line))
            .collect();
        let mut left = vec![json!({"status": status.code(), "rest": rest})];
        let requests = self.server.requests();
        let reported = requests
            .iter()
            .rev()
            .map(|request| request.body["messages"].to_string());
        // Each program words its request for a summary differently.
        let requested = { reported }.find(|reported| !reported.contains("</conversation>"));
        let requested = requested.unwrap_or_else(|| "null".into());
        left.push(serde_json::from_str(&self.names.forth(&requested)).expect("names are plain"));
        let settings = fs::read_to_string(self.home.agent_dir().join("settings.json")).unwrap();
        let settings: Value = serde_json::from_str(&settings).unwrap();
        // The stories explain the setting that a level without a model leaves.
        left.push(without(&settings, &["defaultThinkingLevel"]));
        left
    }
}

/// Prepares a line for sending and adds its id to the awaited ones.
fn with_id(line: &Value, id: &str, ids: &mut Vec<Value>) -> String {
    let mut command = match line {
        Value::String(line) => return line.clone(),
        command => command.clone(),
    };
    match command.get("id") {
        Some(Value::Null) => command = without(&command, &["id"]),
        _ if command["type"] == "extension_ui_response" => {}
        Some(id) => ids.push(id.clone()),
        None => {
            command["id"] = json!(id);
            ids.push(command["id"].clone());
        }
    }
    command.to_string()
}

fn is_disposed(line: &Value) -> bool {
    ["prompt", "steer", "follow_up"]
        .iter()
        .any(|command| line["command"] == *command)
}

fn drop_members(value: &mut Value, place: &str, members: &[&str]) {
    match place
        .strip_prefix('/')
        .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
    {
        None => *value = without(value, members),
        Some(("*", rest)) => {
            for value in value.as_array_mut().into_iter().flatten() {
                drop_members(value, &at(rest), members);
            }
        }
        Some((name, rest)) => {
            if let Some(value) = value.get_mut(name) {
                drop_members(value, &at(rest), members);
            }
        }
    }
}

fn at(rest: &str) -> String {
    match rest {
        "" => String::new(),
        rest => format!("/{rest}"),
    }
}

/// Names for values that differ between runs, equal in both programs.
struct Names {
    root: String,
    pattern: Regex,
    times: Regex,
    names: HashMap<String, String>,
    /// The number of names of each kind.
    counts: HashMap<&'static str, usize>,
}

impl Names {
    fn new(home: &Home) -> Self {
        let root = home.cwd();
        let root = root.parent().unwrap().to_str().unwrap().to_owned();
        let uuid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
        let pattern = format!(
            r#"(?<session>[0-9TZ-]{{20,}}_{uuid})|(?<uuid>{uuid})|(?<output>pi-bash-[0-9a-f]+)|(?<answer>msg_[0-9]+|call_[0-9_]+|signature-[-0-9]+)|"(?<entry>[0-9a-f]{{8}})""#
        );
        Self {
            root,
            pattern: Regex::new(&pattern).unwrap(),
            times: Regex::new(
                r#""timestamp":\d{13}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z|127\.0\.0\.1:\d+"#,
            )
            .unwrap(),
            names: HashMap::new(),
            counts: HashMap::new(),
        }
    }

    fn forth(&mut self, line: &str) -> String {
        let line = line.replace(&self.root, "<root>");
        let line = line.replace(&self.root[1..].replace('/', "-"), "<root>");
        let line = self.times.replace_all(&line, |found: &Captures| {
            if found[0].starts_with('"') {
                "\"timestamp\":0"
            } else {
                "TIME"
            }
        });
        let (names, counts) = (&mut self.names, &mut self.counts);
        let named = self.pattern.replace_all(&line, |found: &Captures| {
            let kinds = ["session", "uuid", "output", "answer", "entry"].into_iter();
            let (kind, text) = { kinds }
                .find_map(|kind| Some((kind, found.name(kind)?.as_str())))
                .expect("one of them was found");
            let name = names.entry(text.to_owned()).or_insert_with(|| {
                let count = counts.entry(kind).or_default();
                *count += 1;
                format!("<{kind}-{count}>")
            });
            found[0].replace(text, name)
        });
        named.into_owned()
    }

    fn back(&self, line: &str) -> String {
        let mut line = line.replace("<root>", &self.root);
        for (text, name) in &self.names {
            line = line.replace(name, text);
        }
        line
    }
}

async fn story(name: &str, prepare: impl Fn(&Home)) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/rpc/stories")
        .join(name);
    let text = fs::read_to_string(file).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    let steps: Vec<Step> = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let (mut ours, mut original) =
        tokio::join!(Side::start(false, &prepare), Side::start(true, &prepare));
    let mut differences = 0;
    for (number, step) in steps.iter().enumerate() {
        let (we, it) = tokio::join!(ours.take(number, step), original.take(number, step));
        let is_right = match &step.known {
            Some(known) => known.is_what_came(&we, &it),
            None => same(&we, &it),
        };
        if !is_right {
            let sent = json!(step.send);
            differences += 1;
            println!("\n--- step {number}: {sent}\n{}", differing(&we, &it));
        }
    }
    let (we, it) = tokio::join!(ours.end(), original.end());
    if !same(&we, &it) {
        differences += 1;
        println!("\n--- what is left\n{}", differing(&we, &it));
    }
    assert_eq!(differences, 0);
}

/// Whether both have the same lines; in responses the order of members counts, too.
fn same(one: &[Value], other: &[Value]) -> bool {
    let members = |lines: &[Value]| -> Vec<Vec<String>> {
        let responses = lines.iter().filter(|line| line["type"] == "response");
        let members = responses.map(|line| {
            line.as_object()
                .expect("it has a type")
                .keys()
                .cloned()
                .collect()
        });
        members.collect()
    };
    one == other && members(one) == members(other)
}

/// Describes the parts that only one of the programs has.
fn differing(ours: &[Value], original: &[Value]) -> String {
    let text = |lines: &[Value]| -> String {
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            text += &format!("line {number}, {} {}\n", line["type"], line["command"]);
            let mut line = line.clone();
            line.sort_all_objects();
            leaves(&line, "", &mut text);
        }
        text
    };
    let (ours, original) = (text(ours), text(original));
    let diff = similar::TextDiff::from_lines(&original, &ours);
    let mut diff = diff.unified_diff();
    diff.context_radius(1)
        .header("the original", "we")
        .to_string()
}

fn leaves(value: &Value, path: &str, text: &mut String) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                leaves(value, &format!("{path}/{name}"), text);
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                leaves(value, &format!("{path}/{index}"), text);
            }
        }
        leaf => *text += &format!("  {path} = {leaf}\n"),
    }
}

const EXTENSION: &str = include_str!("stories/extension.ts");

#[tokio::test]
async fn every_command_behaves_as_in_the_original() {
    story("commands.jsonl", |home| {
        home.extension("both.ts", EXTENSION);
        let agent = home.agent_dir();
        let skill = agent.join("skills/count");
        fs::create_dir_all(&skill).unwrap();
        let text = "---\nname: count\ndescription: How to count.\n---\nOne by one.\n";
        fs::write(skill.join("SKILL.md"), text).unwrap();
        fs::create_dir_all(agent.join("prompts")).unwrap();
        let text = "---\ndescription: Greets.\n---\nGreet $1, then $2: $@.\n";
        fs::write(agent.join("prompts/greet.md"), text).unwrap();
        let root = home.cwd();
        let root = root.parent().unwrap();
        fs::write(root.join("broken.jsonl"), "no session\n").unwrap();
        let session = |cwd: &Path| {
            let header = json!({
                "type": "session", "version": 3, "id": "old-session",
                "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd,
            });
            let output = json!({
                "type": "message", "id": "0a0b0c0d", "parentId": null,
                "timestamp": "2026-01-01T00:00:01.000Z",
                "message": {"role": "user", "content": "long ago", "timestamp": 1_767_225_601_000_u64},
            });
            format!("{header}\n{output}\n")
        };
        fs::write(root.join("moved.jsonl"), session(&root.join("gone"))).unwrap();
        fs::write(root.join("old.jsonl"), session(&home.cwd())).unwrap();
    })
    .await;
}

#[tokio::test]
async fn waiting_and_oversized_commands_match_the_original() {
    story("waiting.jsonl", |home| {
        home.extension("both.ts", EXTENSION);
        let models = home.agent_dir().join("models.json");
        let text = fs::read_to_string(&models).unwrap();
        fs::write(&models, text.replace("200000", "8000")).unwrap();
        home.settings(json!({"compaction": {"reserveTokens": 1500, "keepRecentTokens": 5}}));
        let settings = home.agent_dir().join("settings.json");
        let text = fs::read_to_string(&settings).unwrap();
        fs::write(
            settings,
            text.replace("\"baseDelayMs\":1", "\"baseDelayMs\":60000"),
        )
        .unwrap();
    })
    .await;
}

#[tokio::test]
async fn commands_without_a_model_match_the_original() {
    story("nothing.jsonl", |home| {
        fs::remove_file(home.agent_dir().join("models.json")).unwrap();
        fs::write(home.agent_dir().join("settings.json"), "{}").unwrap();
    })
    .await;
}
