//! Messages to and from models. The member names are those of the session file and of the RPC
//! protocol.

use std::borrow::Cow;
use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::stream::tool_arguments;

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    User(UserMessage),
    Assistant(AssistantMessage),
    ToolResult(ToolResultMessage),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserMessage {
    pub content: UserContent,
    /// Milliseconds since the Unix epoch, like all timestamps in these types.
    #[serde(default, deserialize_with = "milliseconds")]
    pub timestamp: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "it must be a text, or an array of blocks of text and pictures"
)]
pub enum UserContent {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

impl Default for UserContent {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

/// One part of a message of a user or a tool: text or an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ContentBlock {
    Text(#[cfg_attr(feature = "schema", schemars(with = "TextContent"))] WithExtra<TextContent>),
    Image(#[cfg_attr(feature = "schema", schemars(with = "ImageContent"))] WithExtra<ImageContent>),
    /// A block of another type, for example from an MCP server of an extension. Extensions and
    /// clients see it, and the session keeps it; models do not get it.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other(Map<String, Value>),
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let block = Map::deserialize(deserializer)?;
        let known = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                WithExtra::read(block, &["type", "text", "textSignature"]).map(Self::Text)
            }
            Some("image") => WithExtra::read(block, &["type", "data", "mimeType"]).map(Self::Image),
            Some(_) => return Ok(Self::Other(block)),
            None => return Err(D::Error::missing_field("type")),
        };
        known.map_err(D::Error::custom)
    }
}

/// A block with the members that pi does not know, such as `annotations` of an MCP server. They
/// are kept like [`ContentBlock::Other`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WithExtra<T> {
    #[serde(flatten)]
    pub block: T,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    extra: Option<Box<Map<String, Value>>>,
}

impl<T: DeserializeOwned> WithExtra<T> {
    fn read(block: Map<String, Value>, names: &[&str]) -> serde_json::Result<Self> {
        let is_extra = |name: &String| !names.contains(&name.as_str());
        let extra = block.keys().any(is_extra).then(|| {
            let extra = block.iter().filter(|(name, _)| is_extra(name));
            Box::new(
                extra
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        });
        let block = T::deserialize(Value::Object(block))?;
        Ok(Self { block, extra })
    }
}

impl<T> From<T> for WithExtra<T> {
    fn from(block: T) -> Self {
        Self { block, extra: None }
    }
}

impl<T> Deref for WithExtra<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.block
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    pub text: String,
    /// Opaque data that the provider wants back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Image data in base64.
    pub data: String,
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub mime_type: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    pub content: Vec<AssistantBlock>,
    /// Name of the wire API that produced the answer (`anthropic-messages`, …).
    pub api: String,
    pub provider: String,
    /// The model's id.
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    pub usage: Usage,
    pub stop_reason: StopReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(default, deserialize_with = "milliseconds")]
    pub timestamp: i64,
}

/// An answer in the form that it has among other messages.
#[derive(Serialize)]
pub struct WithRole<'a> {
    role: &'static str,
    #[serde(flatten)]
    message: &'a AssistantMessage,
}

impl<'a> WithRole<'a> {
    pub fn new(message: &'a AssistantMessage) -> Self {
        Self {
            role: "assistant",
            message,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AssistantBlock {
    Text(TextContent),
    Thinking(ThinkingContent),
    ToolCall(ToolCall),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThinkingContent {
    pub thinking: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// True if the provider hid the text; the signature holds it encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// An object. While the call is streamed, it has the members that have arrived.
    pub arguments: Value,
    /// The reason why `arguments` is empty: the text of the model was no JSON object, or was cut
    /// off. The reason quotes that text. The call is kept and does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// The text of the arguments so far; only while the call is streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_json: Option<String>,
}

impl ToolCall {
    /// Sets the arguments from their complete text.
    pub fn set_arguments(&mut self, text: &str) {
        let (arguments, error) = tool_arguments::read_or_explain(text);
        self.arguments = Value::Object(arguments);
        self.arguments_error = error;
    }

    /// Returns the arguments for APIs that accept only an object.
    pub fn input(&self) -> Cow<'_, Value> {
        match &self.arguments {
            Value::Object(_) => Cow::Borrowed(&self.arguments),
            _ => Cow::Owned(Value::Object(Map::new())),
        }
    }
}

/// Reads a member that may be `null`: it is present with the value `null`.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    pub tool_call_id: String,
    pub tool_name: String,
    pub content: Vec<ContentBlock>,
    /// Data for the user interface and for extensions; models do not get it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub details: Option<Value>,
    /// The [`Usage`] of models that the tool called, in the tool's own form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    pub is_error: bool,
    #[serde(default, deserialize_with = "milliseconds")]
    pub timestamp: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    Stop,
    Length,
    ToolUse,
    Error,
    Aborted,
}

/// Token counts as the provider reports them, and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    #[serde(deserialize_with = "tokens")]
    pub input: u64,
    #[serde(deserialize_with = "tokens")]
    pub output: u64,
    #[serde(deserialize_with = "tokens")]
    pub cache_read: u64,
    #[serde(deserialize_with = "tokens")]
    pub cache_write: u64,
    #[serde(deserialize_with = "tokens")]
    pub total_tokens: u64,
    pub cost: Cost,
}

/// Cost in US dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    #[serde(serialize_with = "js_number", deserialize_with = "price")]
    pub input: f64,
    #[serde(serialize_with = "js_number", deserialize_with = "price")]
    pub output: f64,
    #[serde(serialize_with = "js_number", deserialize_with = "price")]
    pub cache_read: f64,
    #[serde(serialize_with = "js_number", deserialize_with = "price")]
    pub cache_write: f64,
    #[serde(serialize_with = "js_number", deserialize_with = "price")]
    pub total: f64,
}

/// Writes `0` where serde_json writes `0.0`, like JavaScript, so that session files of both
/// programs agree byte for byte.
pub fn js_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if value.fract() == 0.0 && value.abs() < EXACT {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Like [`js_number`]; writes `null` for `None`.
pub fn js_number_or_null<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => js_number(value, serializer),
        None => serializer.serialize_none(),
    }
}

/// Text in place of an image that the model must not see.
const NO_IMAGE: &str = "Image reading is disabled.";

impl Message {
    /// Replaces each image by a sentence.
    pub fn without_images(mut self) -> Self {
        let content = match &mut self {
            Self::User(UserMessage {
                content: UserContent::Blocks(blocks),
                ..
            }) => blocks,
            Self::ToolResult(result) => &mut result.content,
            _ => return self,
        };
        for block in content.iter_mut() {
            if matches!(block, ContentBlock::Image(_)) {
                *block = ContentBlock::text(NO_IMAGE);
            }
        }
        // Adjacent images get one sentence.
        content.dedup_by(|next, block| {
            let is_sentence = |block: &ContentBlock| *block == ContentBlock::text(NO_IMAGE);
            is_sentence(next) && is_sentence(block)
        });
        self
    }
}

impl ContentBlock {
    pub fn text(text: impl Into<String>) -> Self {
        let text = TextContent {
            text: text.into(),
            text_signature: None,
        };
        Self::Text(text.into())
    }

    pub fn image(image: ImageContent) -> Self {
        Self::Image(image.into())
    }
}

impl UserContent {
    /// Returns the text blocks, joined with newlines.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => join_text(blocks),
        }
    }
}

/// Returns the text blocks, joined with newlines; images are left out.
pub fn join_text(blocks: &[ContentBlock]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            ContentBlock::Image(_) | ContentBlock::Other(_) => None,
        })
        .collect();
    texts.join("\n")
}

impl UserMessage {
    /// Makes a message of blocks: the text, then the images, as the original stores it.
    pub fn new(text: impl Into<String>, images: Vec<ImageContent>) -> Self {
        let mut blocks = vec![ContentBlock::text(text)];
        blocks.extend(images.into_iter().map(ContentBlock::image));
        Self {
            content: UserContent::Blocks(blocks),
            timestamp: now(),
        }
    }
}

impl AssistantMessage {
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the text blocks, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
    }
}

/// Returns the current time in milliseconds since the Unix epoch.
pub fn now() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

/// Reads a time in milliseconds. Extensions write fractions, because JavaScript has only one type
/// of number.
pub fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = Value::deserialize(deserializer)?;
    Ok(number.as_i64().unwrap_or_else(|| float(&number) as i64))
}

/// Reads a token count. Extensions estimate counts that their provider does not report; the
/// estimates may be fractions or negative.
fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = Value::deserialize(deserializer)?;
    Ok(number
        .as_u64()
        .unwrap_or_else(|| float(&number).round() as u64))
}

fn price<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(float(&Value::deserialize(deserializer)?))
}

/// Converts a value to a number; other values become 0, so that the message is not lost. NaN is
/// `null` in JSON.
fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// Returns true if the messages have calls or results: proxies then require a list of tools,
/// which may be empty.
pub fn mentions_tools(messages: &[Message]) -> bool {
    messages.iter().any(|message| match message {
        Message::User(_) => false,
        Message::Assistant(answer) => answer.tool_calls().next().is_some(),
        Message::ToolResult(_) => true,
    })
}
