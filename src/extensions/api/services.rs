use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::{NoContext, Timestamp, Uuid};

use crate::agent::AgentMessage;
use crate::ai::message::{StopReason, ToolCall};
use crate::ai::stream::ToolSpec;
use crate::ai::{api, catalogue, classify, partial_json, secret_value::Env};
use crate::extensions::bridge::{BridgeResult, parse, to_value};
use crate::resources::settings::{self, Change, SettingsError};
use crate::tools::diff::Changes;
use crate::tools::edit;
use crate::tools::image::{self, ImageType, Limits};
use crate::tools::mutation_queue::{FileMutationGuard, lock_file};
use crate::tools::replace::Replacement;
use crate::tools::validate::validate;

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
    pub async fn acquire(&self, method: &str, args: &str, token: u64) -> BridgeResult {
        let file: FilePath = parse(method, args)?;
        let guard = lock_file(Path::new(&file.path)).await;
        self.held.lock().insert(token, guard);
        Ok(json!({ "token": token }))
    }

    pub fn release(&self, method: &str, args: &str) -> BridgeResult {
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

/// Two texts to compare.
#[derive(Deserialize)]
struct Texts {
    #[serde(default)]
    path: String,
    old: String,
    new: String,
    context: usize,
}

#[derive(Deserialize)]
struct Provider {
    provider: String,
    /// Environment as the extension sees it.
    #[serde(default)]
    env: HashMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Overflow {
    message: Said,
    #[serde(default)]
    context_window: u64,
}

/// The members of an assistant message that are used; others may be missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    stop_reason: StopReason,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    usage: Sent,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Sent {
    input: u64,
    cache_read: u64,
}

#[derive(Deserialize)]
struct Messages {
    messages: Vec<AgentMessage>,
}

#[derive(Deserialize)]
struct SettingsText {
    text: String,
}

#[derive(Deserialize)]
struct SettingsChange {
    path: PathBuf,
    #[serde(default)]
    changes: Vec<OneChange>,
}

#[derive(Deserialize)]
struct OneChange {
    key: String,
    #[serde(default)]
    nested: Option<String>,
    #[serde(default)]
    value: Option<Value>,
}

fn loaded(found: Result<Map<String, Value>, SettingsError>) -> Value {
    match found {
        Ok(settings) => json!({ "settings": settings }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn change_settings(given: &SettingsChange) -> BridgeResult {
    let changes: Vec<Change<'_>> = given
        .changes
        .iter()
        .map(|change| Change {
            key: &change.key,
            nested: change.nested.as_deref(),
            value: change.value.clone(),
        })
        .collect();
    settings::change_file(&given.path, &changes)
        .map(|()| Value::Null)
        .map_err(|error| HostError::new(error.to_string()))
}

#[derive(Deserialize)]
struct Moment {
    /// Milliseconds since the epoch.
    #[serde(default)]
    timestamp: Option<u64>,
}

pub fn env_api_key(provider: &str) -> Option<String> {
    catalogue::env_key(provider, &Env::process())
}

pub fn serve(method: &str, args: &str) -> Option<BridgeResult> {
    Some(match method {
        "tools.validate" => parse::<Validation>(method, args).and_then(|given| {
            let spec = ToolSpec {
                name: given.name,
                description: String::new(),
                parameters: given.parameters,
            };
            validate(&spec, given.arguments).map_err(|error| HostError::new(error.0))
        }),
        "diff.display" => parse::<Texts>(method, args).map(|given| {
            let diff = Changes::between(&given.old, &given.new).display(given.context);
            json!({ "diff": diff.text, "firstChangedLine": diff.first_changed_line })
        }),
        "diff.unified" => parse::<Texts>(method, args).map(|given| {
            json!(Changes::between(&given.old, &given.new).patch(&given.path, given.context))
        }),
        "ai.parse_partial_json" => {
            parse::<Text>(method, args).map(|given| partial_json::parse(&given.text))
        }
        "ai.read_tool_arguments" => parse::<Text>(method, args).map(|given| {
            let mut call = ToolCall::default();
            call.set_arguments(&given.text);
            let mut read = json!({ "arguments": call.arguments });
            if let Some(error) = call.arguments_error {
                read["argumentsError"] = json!(error);
            }
            read
        }),
        "ai.key_variables" => parse::<Provider>(method, args)
            .map(|given| json!(catalogue::key_variables(&given.provider))),
        "ai.env_api_key" => parse::<Provider>(method, args).map(|given| {
            let env = Env::of(given.env);
            json!(catalogue::env_key(&given.provider, &env))
        }),
        "settings.load" => parse::<SettingsChange>(method, args)
            .map(|given| loaded(settings::load_file(&given.path))),
        "settings.parse" => parse::<SettingsText>(method, args)
            .map(|given| loaded(settings::parse_text(&given.text))),
        "settings.change" => {
            parse::<SettingsChange>(method, args).and_then(|given| change_settings(&given))
        }
        "uuid.v7" => parse::<Moment>(method, args).map(|given| {
            let id = match given.timestamp {
                Some(time) => {
                    let (seconds, rest) = (time / 1000, time % 1000);
                    let nanoseconds = rest as u32 * 1_000_000;
                    Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanoseconds))
                }
                None => Uuid::now_v7(),
            };
            json!(id.to_string())
        }),
        "ai.apis" => Ok(json!(api::WIRE_NAMES)),
        "ai.providers" => Ok(catalogue::PROVIDERS.iter().map(|known| known.id).collect()),
        "ai.models" => parse::<Provider>(method, args).and_then(|given| {
            let known = catalogue::provider(&given.provider);
            to_value(known.map(|known| known.load().models).unwrap_or_default())
        }),
        "ai.overflow_patterns" => Ok(json!(classify::overflow_patterns())),
        "ai.is_context_overflow" => parse::<Overflow>(method, args).map(|given| {
            let Said {
                stop_reason,
                error_message,
                usage,
            } = given.message;
            json!(classify::overflowed(
                stop_reason,
                error_message.as_deref(),
                usage.input.saturating_add(usage.cache_read),
                given.context_window
            ))
        }),
        "ai.is_retryable" => {
            parse::<Text>(method, args).map(|given| json!(classify::is_retryable(&given.text)))
        }
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
#[serde(rename_all = "camelCase")]
struct Picture {
    data: String,
    mime_type: String,
    max_width: Option<u32>,
    max_height: Option<u32>,
    max_bytes: Option<usize>,
    jpeg_quality: Option<u8>,
}

#[derive(Deserialize)]
struct File {
    path: PathBuf,
}

/// Detects the type of an image file from its content, as the read tool does.
pub async fn image_type(method: &str, args: &str) -> BridgeResult {
    let File { path } = parse(method, args)?;
    let read = {
        let path = path.clone();
        move || {
            let mut start = Vec::new();
            std::fs::File::open(path)?
                .take(image::SNIFF_BYTES as u64)
                .read_to_end(&mut start)?;
            std::io::Result::Ok(start)
        }
    };
    let failed = |error: &dyn std::fmt::Display| HostError::new(error.to_string());
    let start = tokio::task::spawn_blocking(read)
        .await
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&format!("{}: {error}", path.display())))?;
    Ok(json!(image::detect(&start).map(ImageType::mime)))
}

pub async fn resize_image(method: &str, args: &str) -> BridgeResult {
    let given: Picture = parse(method, args)?;
    let usual = Limits::default();
    let limits = Limits {
        width: given.max_width.unwrap_or(usual.width),
        height: given.max_height.unwrap_or(usual.height),
        base64: given.max_bytes.unwrap_or(usual.base64),
        quality: given.jpeg_quality.unwrap_or(usual.quality).clamp(1, 100),
    };
    let resized = tokio::task::spawn_blocking(move || {
        let bytes = STANDARD.decode(&given.data).ok()?;
        let kind = ImageType::of_mime(&given.mime_type)?;
        image::resize(&bytes, kind, &limits)
    });
    let resized = resized
        .await
        .map_err(|error| HostError::new(error.to_string()))?;
    Ok(resized.map_or(Value::Null, |resized| {
        json!({
            "data": resized.image.data,
            "mimeType": resized.image.mime_type,
            "originalWidth": resized.original.0,
            "originalHeight": resized.original.1,
            "width": resized.size.0,
            "height": resized.size.1,
            "wasResized": resized.was_resized,
        })
    }))
}

pub async fn image_to_png(method: &str, args: &str) -> BridgeResult {
    let given: Picture = parse(method, args)?;
    let made = tokio::task::spawn_blocking(move || {
        let bytes = STANDARD.decode(&given.data).ok()?;
        image::to_png(&bytes, ImageType::of_mime(&given.mime_type)?)
    });
    let made = made
        .await
        .map_err(|error| HostError::new(error.to_string()))?;
    to_value(made)
}

#[derive(Deserialize)]
struct EditPreview {
    path: String,
    edits: Vec<Replacement>,
    cwd: PathBuf,
}

/// Returns the diff that a call of the edit tool would make.
pub async fn preview_edit(method: &str, args: &str) -> BridgeResult {
    let EditPreview { path, edits, cwd } = parse(method, args)?;
    let preview = edit::preview(path, edits, cwd).await;
    Ok(match preview {
        Ok(diff) => json!({ "diff": diff.text, "firstChangedLine": diff.first_changed_line }),
        Err(error) => json!({ "error": error.to_string() }),
    })
}
