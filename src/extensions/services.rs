//! What the modules that extensions import need of the program, whatever session
//! there is: validation, conversion, the queue of file changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::host::{Answer, parse, to_value};
use crate::agent::AgentMessage;
use crate::ai::message::AssistantMessage;
use crate::ai::stream::ToolSpec;
use crate::ai::{api, catalogue, classify, partial_json, secret_value::Env};
use crate::tools::edit;
use crate::tools::mutation_queue::{FileMutationGuard, lock_file};
use crate::tools::replace::Replacement;
use crate::tools::validate::validate;

/// Files that extensions are changing (`withFileMutationQueue`).
#[derive(Default)]
pub struct FileMutations {
    held: Mutex<HashMap<u64, FileMutationGuard>>,
}

#[derive(Deserialize)]
struct FilePath {
    path: String,
}

#[derive(Deserialize)]
struct Release {
    token: u64,
}

impl FileMutations {
    pub async fn acquire(&self, method: &str, args: &str, token: u64) -> Answer {
        let file: FilePath = parse(method, args)?;
        let guard = lock_file(Path::new(&file.path)).await;
        self.held.lock().insert(token, guard);
        Ok(json!({ "token": token }))
    }

    pub fn release(&self, method: &str, args: &str) -> Answer {
        let release: Release = parse(method, args)?;
        self.held.lock().remove(&release.token);
        Ok(Value::Null)
    }
}

#[derive(Deserialize)]
struct Validation {
    name: String,
    parameters: Value,
    arguments: Value,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Provider {
    provider: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Overflow {
    message: AssistantMessage,
    #[serde(default)]
    context_window: u64,
}

#[derive(Deserialize)]
struct Messages {
    messages: Vec<AgentMessage>,
}

pub fn env_api_key(provider: &str) -> Option<String> {
    let env = Env::process();
    let names = catalogue::provider(provider).map_or(&[][..], |known| known.key_env);
    names.iter().find_map(|name| env.get(name))
}

/// `None` if there is no such service.
pub fn serve(method: &str, args: &str) -> Option<Answer> {
    Some(match method {
        "tools.validate" => parse::<Validation>(method, args).and_then(|given| {
            let spec = ToolSpec {
                name: given.name,
                description: String::new(),
                parameters: given.parameters,
            };
            validate(&spec, given.arguments).map_err(|error| HostError::new(error.0))
        }),
        "ai.parse_partial_json" => {
            parse::<Text>(method, args).map(|given| partial_json::parse(&given.text))
        }
        "ai.env_api_key" => {
            parse::<Provider>(method, args).map(|given| json!(env_api_key(&given.provider)))
        }
        "ai.apis" => Ok(json!(api::WIRE_NAMES)),
        "ai.providers" => Ok(catalogue::PROVIDERS.iter().map(|known| known.id).collect()),
        "ai.models" => parse::<Provider>(method, args).and_then(|given| {
            let known = catalogue::provider(&given.provider);
            to_value(known.map(|known| known.load().models).unwrap_or_default())
        }),
        "ai.overflow_patterns" => Ok(json!(classify::overflow_patterns())),
        "ai.is_context_overflow" => parse::<Overflow>(method, args).map(|given| {
            json!(classify::is_context_overflow(
                &given.message,
                given.context_window
            ))
        }),
        "messages.to_llm" => parse::<Messages>(method, args).and_then(|given| {
            let told: Vec<_> = given
                .messages
                .iter()
                .filter_map(AgentMessage::to_llm)
                .collect();
            to_value(told)
        }),
        _ => return None,
    })
}

#[derive(Deserialize)]
struct EditPreview {
    path: String,
    edits: Vec<Replacement>,
    cwd: PathBuf,
}

/// What a call of the edit tool would change.
pub async fn preview_edit(method: &str, args: &str) -> Answer {
    let EditPreview { path, edits, cwd } = parse(method, args)?;
    let preview = edit::preview(path, edits, cwd).await;
    Ok(match preview {
        Ok(diff) => json!({ "diff": diff.text, "firstChangedLine": diff.first_changed_line }),
        Err(error) => json!({ "error": error.to_string() }),
    })
}
