use std::path::Path;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::super::command::Command;
use super::super::handle::response;
use super::super::parse::parse;
use super::super::responses::{
    self, BranchMessages, Cancelled, Commands, ForkMessages, ForkedText, Greeting, Level, Levels,
    Messages, Models, Pong, PromptDisposition, Queues, Reloaded, ResponseData, Text, Trust,
};
use super::SCHEMA;
use crate::wire::OlderEvent;
use pi_agent::event::{Entry, Event, Nullable};
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::models::registry::ModelRegistry;
use pi_app::{
    CommandOutcome, CycledModel, ErrorCode, Forked, SessionState, SessionStats, TrustOutcome,
    UserCommandResult,
};
use pi_compaction::Compacted;
use pi_extensions::{LoadReport, Statistics};

/// Older names of commands. pi accepts them and answers with the same name.
const OLDER: [(&str, &str); 3] = [
    ("queue_message", "steer"),
    ("reset", "new_session"),
    ("set_queue_mode", "set_steering_mode"),
];

/// A line that a client writes.
#[derive(JsonSchema)]
#[schemars(rename = "RpcCommand")]
#[expect(dead_code, reason = "used for its schema only")]
struct CommandWithId {
    /// Returned in the response. Usually a string.
    id: Option<Value>,
    #[serde(flatten)]
    command: Command,
}

/// A line that pi writes without a command.
#[derive(JsonSchema)]
#[schemars(rename = "RpcEvent")]
#[expect(dead_code, reason = "used for its schema only")]
struct EventLine {
    #[serde(flatten)]
    event: AnyEvent,
    /// Counts from 1. Only for clients that asked for the capability `seq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
#[expect(dead_code, reason = "used for its schema only")]
enum AnyEvent {
    Event(Event),
    /// Only for clients that asked for the capability `autoCompactionEvents`.
    Older(OlderEvent),
}

/// The `data` by command. Commands that are not listed have no `data`.
#[derive(JsonSchema)]
#[schemars(tag = "command", content = "data", rename_all = "snake_case")]
#[expect(dead_code, reason = "used for its schema only")]
enum DataByCommand {
    Prompt(PromptDisposition),
    Steer(PromptDisposition),
    FollowUp(PromptDisposition),
    ClearQueue(Queues),
    NewSession(Cancelled),
    SwitchSession(Cancelled),
    Clone(Cancelled),
    Fork(ForkedText),
    Branch(ForkedText),
    GetState(Box<SessionState>),
    GetMessages(Messages),
    SetModel(Arc<Model>),
    CycleModel(Option<CycledModel>),
    GetAvailableModels(Models),
    CycleThinkingLevel(Option<Level>),
    GetAvailableThinkingLevels(Levels),
    Compact(Compacted),
    Bash(UserCommandResult),
    GetSessionStats(SessionStats),
    ExportHtml(responses::Path),
    GetForkMessages(ForkMessages),
    GetBranchMessages(BranchMessages),
    GetEntries(Entries),
    GetTree(Tree),
    GetLastAssistantText(Text),
    GetCommands(Commands),
    Hello(Greeting),
    Ping(Pong),
    GetEvents(Events),
    GetExtensionStats(Statistics),
    Reload(Reloaded),
    Trust(Trust),
}

/// Entries as they are in the file.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "used for its schema only")]
struct Entries {
    entries: Vec<Entry>,
    leaf_id: Nullable,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "used for its schema only")]
struct Tree {
    tree: Vec<TreeNode>,
    leaf_id: Nullable,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "used for its schema only")]
struct TreeNode {
    entry: Entry,
    children: Vec<TreeNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_timestamp: Option<String>,
}

/// Events as they were written, except that `message_update` lacks the message so far.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "used for its schema only")]
struct Events {
    events: Vec<EventLine>,
    /// Number of the last event.
    latest: u64,
}

/// The answer to a command.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "RpcResponse")]
#[expect(dead_code, reason = "used for its schema only")]
enum Response {
    Data(Box<DataResponse>),
    Empty(EmptyResponse),
    Error(ErrorResponse),
}

#[derive(JsonSchema)]
#[schemars(rename = "RpcDataResponse")]
#[expect(dead_code, reason = "used for its schema only")]
struct DataResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[schemars(extend("const" = "response"))]
    r#type: String,
    #[schemars(extend("const" = true))]
    success: bool,
    #[serde(flatten)]
    answer: DataByCommand,
}

#[derive(JsonSchema)]
#[schemars(rename = "RpcDoneResponse", extend("not" = {"required": ["data"]}))]
#[expect(dead_code, reason = "used for its schema only")]
struct EmptyResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[schemars(extend("const" = "response"))]
    r#type: String,
    command: CommandWithoutData,
    #[schemars(extend("const" = true))]
    success: bool,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[expect(dead_code, reason = "used for its schema only")]
enum CommandWithoutData {
    Abort,
    SetThinkingLevel,
    SetSteeringMode,
    SetQueueMode,
    SetFollowUpMode,
    SetAutoCompaction,
    SetAutoRetry,
    AbortRetry,
    AbortBash,
    SetSessionName,
    WaitForIdle,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RpcErrorResponse")]
#[expect(dead_code, reason = "used for its schema only")]
struct ErrorResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[schemars(extend("const" = "response"))]
    r#type: String,
    /// The command, or `parse` if the line is no command.
    command: String,
    #[schemars(extend("const" = false))]
    success: bool,
    error: String,
    error_code: ErrorCode,
}

/// Builds the schema: the definitions of all types, and the three kinds of lines.
fn schema() -> Value {
    let generator = |settings: SchemaSettings| settings.into_generator();
    let mut input = generator(SchemaSettings::draft07().for_deserialize());
    let mut output = generator(SchemaSettings::draft07().for_serialize());
    fn add<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
    add::<CommandWithId>(&mut input);
    add::<Response>(&mut output);
    add::<EventLine>(&mut output);
    let mut definitions = output.take_definitions(true);
    definitions.values_mut().for_each(absent_not_null);
    let taken = input.take_definitions(true);
    // Types whose written form differs from the accepted form get two names.
    let differ = taken
        .iter()
        .filter(|(name, schema)| definitions.get(*name).is_some_and(|other| other != *schema));
    let differ: Vec<String> = differ.map(|(name, _)| name.clone()).collect();
    let mut text = Value::Object(taken).to_string();
    for name in &differ {
        let reference = |name: &str| format!("\"#/definitions/{name}\"");
        text = text.replace(&reference(name), &reference(&format!("{name}Input")));
    }
    let taken: Map<String, Value> = serde_json::from_str(&text).unwrap();
    for (name, schema) in taken {
        let name = match differ.contains(&name) {
            true => format!("{name}Input"),
            false => name,
        };
        definitions.insert(name, schema);
    }
    for (definition, tag) in [("RpcCommand", "type"), ("RpcDataResponse", "command")] {
        add_older(&mut definitions[definition]["oneOf"], tag);
    }
    let mut sorted: Vec<_> = definitions.into_iter().collect();
    sorted.sort_by(|one, other| one.0.cmp(&other.0));
    let definitions: Map<String, Value> = sorted.into_iter().collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "RpcLine",
        "description": "A line of pi --mode rpc (docs/rpc.md). Made of the program's types: \
                        PI_RPC_SCHEMA=write cargo nextest run -p pi-modes --lib rpc::schema",
        "anyOf": [
            {"$ref": "#/definitions/RpcCommand"},
            {"$ref": "#/definitions/RpcResponse"},
            {"$ref": "#/definitions/RpcEvent"},
        ],
        "definitions": definitions,
    })
}

/// Adds a copy of a variant for each older name.
fn add_older(variants: &mut Value, tag: &str) {
    let variants = variants.as_array_mut().expect("it has variants");
    for (older, newer) in OLDER {
        let named = |variant: &&Value| variant["properties"][tag]["const"] == newer;
        // Commands without data are in another definition.
        let Some(mut variant) = variants.iter().find(named).cloned() else {
            continue;
        };
        variant["properties"][tag]["const"] = older.into();
        variant["description"] = format!("As `{newer}` was called once.").into();
        variants.push(variant);
    }
}

/// Removes `null` from optional members: pi omits them instead.
fn absent_not_null(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let optional = properties
            .iter_mut()
            .filter(|(name, _)| !required.iter().any(|one| one == name.as_str()));
        for (_, property) in optional {
            drop_null(property);
        }
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(absent_not_null),
        Value::Array(items) => items.iter_mut().for_each(absent_not_null),
        _ => {}
    }
}

fn drop_null(property: &mut Value) {
    if let Some(types) = property.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            property["type"] = one.clone();
        }
    }
    if let Some(schemas) = property.get_mut("anyOf").and_then(Value::as_array_mut) {
        schemas.retain(|one| *one != json!({"type": "null"}));
        if let [one] = schemas.as_slice() {
            let one = json!([one]);
            let members = property.as_object_mut().expect("it has a member");
            members.shift_remove("anyOf");
            members.insert("allOf".into(), one);
        }
    }
}

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn the_schema_matches_the_types() {
    let schema = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var("PI_RPC_SCHEMA").as_deref() == Ok("write") {
        std::fs::write(docs().join("rpc.schema.json"), schema).unwrap();
        return;
    }
    assert!(
        schema == SCHEMA,
        "docs/rpc.schema.json is stale: PI_RPC_SCHEMA=write cargo nextest run -p pi-modes --lib \
         rpc::schema, then node extension-types/rpc.mjs --write"
    );
}

/// Returns a validator for one definition.
fn validator(definition: &str) -> jsonschema::Validator {
    let mut schema = schema();
    schema["anyOf"] = json!([{ "$ref": format!("#/definitions/{definition}") }]);
    jsonschema::validator_for(&schema).expect("it is a schema")
}

/// Returns every line of JSON in the fenced blocks of docs/rpc.md, with its line number.
fn examples() -> Vec<(usize, Value)> {
    let text = std::fs::read_to_string(docs().join("rpc.md")).unwrap();
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced && line.starts_with('{') {
            let value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("docs/rpc.md:{}: {error}", number + 1));
            found.push((number + 1, value));
        }
    }
    assert!(found.len() > 20, "{} examples", found.len());
    found
}

#[test]
fn every_example_in_the_docs_is_valid() {
    let (responses, events) = (validator("RpcResponse"), validator("RpcEvent"));
    let commands = validator("RpcCommand");
    for (line, example) in examples() {
        let place = format!("docs/rpc.md:{line}: {example}");
        let kind = example["type"].as_str().expect(&place);
        if kind == "response" {
            let errors: Vec<String> = responses
                .iter_errors(&example)
                .map(|e| e.to_string())
                .collect();
            assert!(errors.is_empty(), "{place}: {errors:?}");
            continue;
        }
        if parse(example.to_string().as_bytes()).is_ok() {
            assert!(commands.is_valid(&example), "{place}");
            continue;
        }
        assert!(events.is_valid(&example), "{place}");
        read_back(&example, &place);
    }
}

/// Asserts that parsing and serializing an event keeps every member.
fn read_back(example: &Value, place: &str) {
    let mut event = example.clone();
    if let Some(members) = event.as_object_mut() {
        members.shift_remove("seq");
    }
    // Serialization needs the message, which this event lacks.
    if event["type"] == "message_update" && event.get("message").is_none() {
        return;
    }
    let again = match serde_json::from_value::<Event>(event.clone()) {
        Ok(event) => serde_json::to_value(event),
        Err(_) => {
            let older = serde_json::from_value::<OlderEvent>(event.clone());
            serde_json::to_value(older.unwrap_or_else(|error| panic!("{place}: {error}")))
        }
    };
    assert_eq!(again.unwrap(), event, "{place}");
}

/// [`DataByCommand`] only describes what `from_outcome` makes.
#[test]
fn outcomes_have_the_data_of_their_commands() {
    let responses = validator("RpcResponse");
    let is_valid = |command: &str, outcome: CommandOutcome| {
        let answer = Ok(ResponseData::from_outcome(outcome));
        let line = json!(response(None, command.to_owned(), &answer));
        (responses.is_valid(&line), line)
    };
    let registry = ModelRegistry::load(Path::new("/nowhere"));
    let model = registry.find("demo", "demo").expect("it is built in");
    let bash = || UserCommandResult {
        output: "a".into(),
        exit_code: Some(0),
        cancelled: false,
        truncated: false,
        full_output_path: None,
    };
    let forked = || CommandOutcome::Forked(Some(Forked { text: None }));
    let dequeued = || CommandOutcome::Dequeued {
        steering: vec!["a".into()],
        follow_up: Vec::new(),
    };
    let trust_outcome = CommandOutcome::Trust(TrustOutcome {
        needs_trust: true,
        answered: true,
        trusted: false,
    });
    let cases = [
        ("abort", CommandOutcome::Done),
        ("clear_queue", dequeued()),
        ("new_session", CommandOutcome::Switched(true)),
        ("switch_session", CommandOutcome::Switched(false)),
        ("clone", CommandOutcome::Switched(true)),
        ("fork", forked()),
        ("branch", CommandOutcome::Forked(None)),
        ("set_model", CommandOutcome::Model(model)),
        ("cycle_model", CommandOutcome::CycledModel(None)),
        (
            "cycle_thinking_level",
            CommandOutcome::CycledLevel(Some(ThinkingLevel::High)),
        ),
        ("bash", CommandOutcome::UserCommand(bash())),
        ("export_html", CommandOutcome::Exported("a.html".into())),
        ("reload", CommandOutcome::Reloaded(LoadReport::default())),
        ("trust", trust_outcome),
    ];
    for (command, outcome) in cases {
        let (is_valid, line) = is_valid(command, outcome);
        assert!(is_valid, "{line}");
    }
    for (command, outcome) in [
        ("fork", dequeued()),
        ("abort", forked()),
        ("bash", forked()),
    ] {
        let (is_valid, line) = is_valid(command, outcome);
        assert!(!is_valid, "{line}");
    }
}

#[test]
fn every_error_code_is_documented() {
    let text = std::fs::read_to_string(docs().join("rpc.md")).unwrap();
    let schema = schema();
    let codes = schema["definitions"]["ErrorCode"]["oneOf"]
        .as_array()
        .unwrap();
    assert!(codes.len() > 10);
    for code in codes {
        let code = code["const"].as_str().unwrap();
        assert!(
            text.contains(&format!("| `{code}` |")),
            "docs/rpc.md has no {code}"
        );
    }
}
