//! The settings with their types and defaults.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::file::Object;
use crate::ai::model::{ThinkingBudgets, ThinkingLevel};
use crate::resources::paths::ResourceKind;

/// Everything the program reads from settings; other keys are kept in the file
/// and left alone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsValues {
    pub default_provider: Option<String>,
    pub default_model: Option<String>,
    pub default_thinking_level: Option<ThinkingLevel>,
    pub enabled_models: Option<Vec<String>>,
    pub thinking_budgets: ThinkingBudgets,
    pub transport: Transport,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub compaction: CompactionSettings,
    pub branch_summary: BranchSummarySettings,
    pub retry: RetrySettings,
    pub images: ImageSettings,
    pub shell_path: Option<String>,
    pub shell_command_prefix: Option<String>,
    pub session_dir: Option<String>,
    pub theme: Option<String>,
    pub quiet_startup: bool,
    pub hide_thinking_block: bool,
    pub npm_command: Option<Vec<String>>,
    pub packages: Vec<PackageEntry>,
    pub extensions: Vec<String>,
    pub skills: Vec<String>,
    pub prompts: Vec<String>,
    pub themes: Vec<String>,
    pub enable_skill_commands: Option<bool>,
    pub extension_timeouts: ExtensionTimeouts,
    pub extension_heap_mb: HeapMb,
}

impl SettingsValues {
    /// The paths and patterns of one kind of resource.
    pub fn resources(&self, kind: ResourceKind) -> &[String] {
        match kind {
            ResourceKind::Extensions => &self.extensions,
            ResourceKind::Skills => &self.skills,
            ResourceKind::Prompts => &self.prompts,
            ResourceKind::Themes => &self.themes,
        }
    }

    /// Skills are offered as `/skill:name` while typing.
    pub fn offers_skill_commands(&self) -> bool {
        self.enable_skill_commands.unwrap_or(true)
    }

    /// Expects what [`valid_part`] let through; a value of the wrong type would
    /// make it all defaults.
    pub(super) fn read(object: &Object) -> Self {
        let tidied = tidy(&Value::Object(object.clone())).unwrap_or_default();
        Self::deserialize(tidied).unwrap_or_else(|error| {
            tracing::error!(%error, "settings that were valid one by one are not together");
            Self::default()
        })
    }
}

/// The keys whose values have the right type; a message about each other one,
/// which counts as absent.
pub(super) fn valid_part(object: &Object) -> (Object, Vec<String>) {
    let mut valid = Object::new();
    let mut complaints = Vec::new();
    for (key, value) in object {
        let one = Object::from_iter([(key.clone(), value.clone())]);
        match SettingsValues::deserialize(tidy(&Value::Object(one)).unwrap_or_default()) {
            Ok(_) => {
                valid.insert(key.clone(), value.clone());
            }
            Err(error) => complaints.push(format!("\"{key}\" is ignored: {error}")),
        }
    }
    (valid, complaints)
}

/// JavaScript's view of a value: `null` is as good as absent, and 3.0
/// is a whole number.
fn tidy(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(object) => {
            let entries = object.iter();
            let kept = entries.filter_map(|(key, value)| Some((key.clone(), tidy(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Number(number) => Some(match number.as_f64() {
            Some(float)
                if number.is_f64() && float.fract() == 0.0 && float.abs() < 2f64.powi(53) =>
            {
                Value::from(float as i64)
            }
            _ => value.clone(),
        }),
        other => Some(other.clone()),
    }
}

/// How streamed answers travel where a provider offers a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    #[default]
    Sse,
    Websocket,
    Auto,
}

/// How many queued messages are delivered at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    All,
    #[default]
    OneAtATime,
}

impl QueueMode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::OneAtATime => "one-at-a-time",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSettings {
    pub enabled: bool,
    /// Tokens kept free for the answer.
    pub reserve_tokens: u64,
    pub keep_recent_tokens: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: 16384,
            keep_recent_tokens: 20000,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummarySettings {
    pub reserve_tokens: u64,
    pub skip_prompt: bool,
}

impl Default for BranchSummarySettings {
    fn default() -> Self {
        Self {
            reserve_tokens: 16384,
            skip_prompt: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetrySettings {
    pub enabled: bool,
    pub max_retries: u32,
    pub base_delay_ms: u64,
    /// A server that asks for a longer wait is not waited for.
    pub max_delay_ms: u64,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_retries: 3,
            base_delay_ms: 2000,
            max_delay_ms: 60000,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSettings {
    pub auto_resize: bool,
    /// Images are not sent to models.
    pub block_images: bool,
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self {
            auto_resize: true,
            block_images: false,
        }
    }
}

/// An entry of `packages`: the whole package, or parts of it. A list that is
/// absent means everything, an empty one nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "PackageForm")]
pub struct PackageEntry {
    pub source: String,
    /// `None` when the settings give only the source.
    pub filter: Option<PackageFilter>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PackageFilter {
    extensions: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    prompts: Option<Vec<String>>,
    themes: Option<Vec<String>>,
}

impl PackageFilter {
    pub fn patterns(&self, kind: ResourceKind) -> Option<&[String]> {
        match kind {
            ResourceKind::Extensions => self.extensions.as_deref(),
            ResourceKind::Skills => self.skills.as_deref(),
            ResourceKind::Prompts => self.prompts.as_deref(),
            ResourceKind::Themes => self.themes.as_deref(),
        }
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected the source of a package, or an object with \"source\" and lists of patterns"
)]
enum PackageForm {
    Source(String),
    Filtered {
        source: String,
        #[serde(flatten)]
        filter: PackageFilter,
    },
}

impl From<PackageForm> for PackageEntry {
    fn from(form: PackageForm) -> Self {
        match form {
            PackageForm::Source(source) => Self {
                source,
                filter: None,
            },
            PackageForm::Filtered { source, filter } => Self {
                source,
                filter: Some(filter),
            },
        }
    }
}

/// How long extensions may take before they are stopped. Ours; the original
/// waits for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ExtensionTimeouts {
    /// For a handler, a tool or a command to settle.
    #[serde(deserialize_with = "milliseconds")]
    pub handler: Duration,
    /// For a module and its factory to load.
    #[serde(deserialize_with = "milliseconds")]
    pub load: Duration,
    /// For JavaScript to run without a pause.
    #[serde(deserialize_with = "milliseconds")]
    pub spin: Duration,
    /// For `session_shutdown` handlers.
    #[serde(deserialize_with = "milliseconds")]
    pub shutdown: Duration,
}

impl Default for ExtensionTimeouts {
    fn default() -> Self {
        Self {
            handler: Duration::from_secs(30),
            load: Duration::from_secs(60),
            spin: Duration::from_secs(10),
            shutdown: Duration::from_secs(5),
        }
    }
}

fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let value = NonZeroU64::deserialize(deserializer)
        .map_err(|error| D::Error::custom(format!("{error} of milliseconds")))?;
    Ok(Duration::from_millis(value.get()))
}

/// The heap that all extensions of a session share, in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct HeapMb(u64);

impl HeapMb {
    /// With less, V8 gives up before an extension has run.
    const LEAST: u64 = 64;

    pub fn get(self) -> u64 {
        self.0
    }
}

impl Default for HeapMb {
    fn default() -> Self {
        Self(512)
    }
}

impl TryFrom<u64> for HeapMb {
    type Error = String;

    fn try_from(value: u64) -> Result<Self, String> {
        if value < Self::LEAST {
            return Err(format!("expected at least {} (MiB)", Self::LEAST));
        }
        Ok(Self(value))
    }
}
