//! The settings with their types and defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extensions::{ExtensionHost, ExtensionTimeouts, HeapMb};
use super::file::Object;
use super::permissions::PermissionSettings;
use super::shape::{object, objects, to_javascript_form};
use crate::paths::ResourceKind;
use pi_ai::json::errors::describe;
use pi_ai::model::{Model, ThinkingBudgets, ThinkingLevel};
use pi_ai::stream::{MAX_RETRY_DELAY_MS, Transport};

/// All settings that the program uses; other keys are kept in the file and ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsValues {
    pub default_provider: Option<String>,
    pub default_model: Option<String>,
    pub default_thinking_level: Option<ThinkingLevel>,
    pub enabled_models: Option<Vec<String>>,
    pub default_tools: Option<Vec<String>>,
    /// Only read from the global settings, see [`crate::trust`].
    pub default_project_trust: Option<ProjectTrust>,
    /// A project may only make it stricter.
    pub protected_paths: Option<ProtectedPaths>,
    #[serde(deserialize_with = "object")]
    pub thinking_budgets: ThinkingBudgets,
    pub transport: Transport,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    #[serde(deserialize_with = "object")]
    pub compaction: Compaction,
    #[serde(deserialize_with = "object")]
    pub branch_summary: BranchSummarySettings,
    #[serde(deserialize_with = "object")]
    pub retry: RetrySettings,
    #[serde(deserialize_with = "object")]
    pub images: ImageSettings,
    /// Only read from the global settings, before settings are loaded: see `cli::proxy`.
    pub http_proxy: Option<String>,
    pub shell_path: Option<String>,
    pub shell_command_prefix: Option<String>,
    pub session_dir: Option<String>,
    pub theme: Option<String>,
    pub quiet_startup: QuietStartup,
    pub hide_thinking_block: bool,
    pub npm_command: Option<Vec<String>>,
    /// Hours. Not in the original.
    pub minimum_release_age: Option<u64>,
    pub packages: Vec<PackageEntry>,
    pub extensions: Vec<String>,
    pub skills: Vec<String>,
    pub prompts: Vec<String>,
    pub themes: Vec<String>,
    pub enable_skill_commands: Option<bool>,
    pub last_changelog_version: Option<String>,
    pub collapse_changelog: bool,
    pub enable_install_telemetry: EnabledByDefault,
    #[serde(deserialize_with = "object")]
    pub terminal: TerminalSettings,
    pub double_escape_action: DoubleEscapeAction,
    pub tree_filter_mode: TreeFilterMode,
    pub editor_padding_x: EditorPadding,
    pub autocomplete_max_visible: AutocompleteRows,
    pub show_hardware_cursor: Option<bool>,
    #[serde(deserialize_with = "object")]
    pub markdown: MarkdownSettings,
    #[serde(deserialize_with = "object")]
    pub extension_timeouts: ExtensionTimeouts,
    pub extension_heap_mb: HeapMb,
    /// Where extensions run. Not in the original.
    pub extension_host: ExtensionHost,
    /// Whether extensions are reloaded when their files are saved. Not in the original.
    pub extension_watch: bool,
    /// Rules about tool calls. Not in the original. `Settings::raw_value` has the rules of each file,
    /// because those of the project only add to those of the user.
    #[serde(deserialize_with = "object")]
    pub permissions: PermissionSettings,
    /// The environment of shell commands. Not in the original.
    #[serde(deserialize_with = "object")]
    pub env: EnvSettings,
}

/// The setting `env`: the environment of shell commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EnvSettings {
    pub hide: HiddenVariables,
}

/// Variables that shell commands of the model and the user do not get.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum HiddenVariables {
    Names(Vec<String>),
    /// Whether the variables that keys of providers are read from are hidden.
    Keys(bool),
}

impl Default for HiddenVariables {
    fn default() -> Self {
        Self::Keys(false)
    }
}

impl SettingsValues {
    /// Returns the paths and patterns of one kind of resource.
    pub fn resources(&self, kind: ResourceKind) -> &[String] {
        match kind {
            ResourceKind::Extensions => &self.extensions,
            ResourceKind::Skills => &self.skills,
            ResourceKind::Prompts => &self.prompts,
            ResourceKind::Themes => &self.themes,
        }
    }

    /// Returns whether `/skill:name` is offered as a completion.
    pub fn offers_skill_commands(&self) -> bool {
        self.enable_skill_commands.unwrap_or(true)
    }

    /// Deserializes an object that passed [`valid_part`]. A value of the wrong type would reset
    /// all settings to their defaults.
    pub(super) fn read(object: &Object) -> Self {
        let tidied = to_javascript_form(&Value::Object(object.clone())).unwrap_or_default();
        Self::deserialize(tidied).unwrap_or_else(|error| {
            tracing::error!(%error, "settings that were valid one by one are not together");
            Self::default()
        })
    }
}

/// Keys of the original's settings, followed by pi's own.
pub const KEYS: [&str; 45] = [
    "lastChangelogVersion",
    "defaultProvider",
    "defaultModel",
    "defaultThinkingLevel",
    "transport",
    "steeringMode",
    "followUpMode",
    "theme",
    "compaction",
    "branchSummary",
    "retry",
    "hideThinkingBlock",
    "shellPath",
    "quietStartup",
    "shellCommandPrefix",
    "npmCommand",
    "collapseChangelog",
    "enableInstallTelemetry",
    "packages",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "enableSkillCommands",
    "terminal",
    "images",
    "enabledModels",
    "defaultTools",
    "defaultProjectTrust",
    "protectedPaths",
    "httpProxy",
    "doubleEscapeAction",
    "treeFilterMode",
    "thinkingBudgets",
    "editorPaddingX",
    "autocompleteMaxVisible",
    "showHardwareCursor",
    "markdown",
    "sessionDir",
    "extensionTimeouts",
    "extensionHeapMb",
    "extensionHost",
    "extensionWatch",
    "permissions",
    "env",
];

/// Lists with independent elements: an invalid element does not change the meaning of the
/// others.
const LISTS: [&str; 6] = [
    "packages",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "enabledModels",
];

/// Returns the keys with valid values, and a message for each invalid one, which counts as
/// absent. In an object or a list only the invalid part is removed.
pub(super) fn valid_part(object: &Object) -> (Object, Vec<String>) {
    let mut complaints = Vec::new();
    let valid = object.iter().filter_map(|(key, value)| {
        let right = |value| check(key, value);
        Some((
            key.clone(),
            valid_part_of(key, value, &right, &mut complaints)?,
        ))
    });
    (valid.collect(), complaints)
}

/// Returns the part of a value that `check` accepts.
fn valid_part_of(
    path: &str,
    value: &Value,
    check: &dyn Fn(Value) -> Result<(), serde_json::Error>,
    complaints: &mut Vec<String>,
) -> Option<Value> {
    let Err(error) = check(value.clone()) else {
        return Some(value.clone());
    };
    let mut part_complaints = Vec::new();
    let rest = match value {
        Value::Object(members) => {
            let members = members.iter().filter_map(|(name, member)| {
                let alone = |member| check(Object::from_iter([(name.clone(), member)]).into());
                let path = format!("{path}.{name}");
                Some((
                    name.clone(),
                    valid_part_of(&path, member, &alone, &mut part_complaints)?,
                ))
            });
            Value::Object(members.collect())
        }
        Value::Array(elements) if LISTS.contains(&path) => {
            let mut rest = Vec::new();
            for (index, element) in elements.iter().enumerate() {
                match check(Value::Array(vec![element.clone()])) {
                    Ok(()) => rest.push(element.clone()),
                    Err(error) => {
                        part_complaints.push(ignored(&format!("{path}[{index}]"), &error))
                    }
                }
            }
            Value::Array(rest)
        }
        _ => Value::Null,
    };
    if !rest.is_null() && check(rest.clone()).is_ok() {
        complaints.append(&mut part_complaints);
        return Some(rest);
    }
    complaints.push(ignored(path, &error));
    None
}

fn ignored(path: &str, error: &serde_json::Error) -> String {
    format!("\"{path}\" is ignored: {}", describe(error))
}

fn check(key: &str, value: Value) -> Result<(), serde_json::Error> {
    let one = Object::from_iter([(key.to_owned(), value)]);
    SettingsValues::deserialize(to_javascript_form(&Value::Object(one)).unwrap_or_default())
        .map(drop)
}

/// How many queued messages are delivered at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The compaction settings as they are written; [`Self::of`] returns those in effect for a
/// model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Compaction {
    pub enabled: bool,
    pub reserve_tokens: u64,
    pub keep_recent_tokens: u64,
    /// Overrides by `provider/id`, which newer versions have.
    #[serde(deserialize_with = "objects")]
    pub model_overrides: BTreeMap<String, CompactionOverride>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionOverride {
    pub reserve_tokens: Option<u64>,
    pub keep_recent_tokens: Option<u64>,
}

impl Default for Compaction {
    fn default() -> Self {
        let CompactionSettings {
            enabled,
            reserve_tokens,
            keep_recent_tokens,
        } = CompactionSettings::default();
        Self {
            enabled,
            reserve_tokens,
            keep_recent_tokens,
            model_overrides: BTreeMap::new(),
        }
    }
}

impl Compaction {
    /// Returns the settings for a model.
    pub fn for_model(&self, model: Option<&Model>) -> CompactionSettings {
        let overrides = model.and_then(|model| self.model_overrides.get(&model.reference()));
        let overrides = overrides.copied().unwrap_or_default();
        CompactionSettings {
            enabled: self.enabled,
            reserve_tokens: overrides.reserve_tokens.unwrap_or(self.reserve_tokens),
            keep_recent_tokens: overrides
                .keep_recent_tokens
                .unwrap_or(self.keep_recent_tokens),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSettings {
    pub enabled: bool,
    /// Tokens that are kept free for the answer.
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
    /// Maximum delay between two attempts in milliseconds.
    pub max_agent_delay_ms: u64,
    /// See [`Self::max_requested_delay_ms`].
    pub(super) max_delay_ms: u64,
    #[serde(deserialize_with = "object")]
    pub(super) provider: ProviderRetrySettings,
}

/// Newer versions have `maxDelayMs` here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProviderRetrySettings {
    pub(super) max_retry_delay_ms: Option<u64>,
}

impl RetrySettings {
    /// Returns the longest delay that a server may request, in milliseconds; requests with
    /// longer ones fail. 0 means no limit.
    pub fn max_requested_delay_ms(&self) -> u64 {
        self.provider
            .max_retry_delay_ms
            .unwrap_or(self.max_delay_ms)
    }
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_retries: 3,
            base_delay_ms: 2000,
            max_agent_delay_ms: 60_000,
            max_delay_ms: MAX_RETRY_DELAY_MS,
            provider: ProviderRetrySettings::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSettings {
    pub auto_resize: bool,
    /// Whether images are withheld from models.
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

/// A setting that is on by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct EnabledByDefault(pub bool);

impl Default for EnabledByDefault {
    fn default() -> Self {
        Self(true)
    }
}

/// Settings of the full-screen terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TerminalSettings {
    pub show_images: bool,
    /// Defaults to `PI_CLEAR_ON_SHRINK`.
    pub clear_on_shrink: Option<bool>,
}

impl Default for TerminalSettings {
    fn default() -> Self {
        Self {
            show_images: true,
            clear_on_shrink: None,
        }
    }
}

/// Trust of projects without a recorded answer, in newer versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectTrust {
    Ask,
    Always,
    Never,
}

/// The response to a write of the model to a place whose files run, from the least strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtectedPaths {
    Off,
    /// The user is told.
    #[default]
    Notify,
    /// The user is asked before.
    Ask,
}

/// How much of the startup output of the full-screen terminal is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum QuietStartup {
    #[default]
    Nothing,
    AllButHeader,
    All,
}

impl TryFrom<Value> for QuietStartup {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Bool(false) => Ok(Self::Nothing),
            Value::Bool(true) => Ok(Self::All),
            Value::String(text) if text == "header" => Ok(Self::AllButHeader),
            _ => Err("expected true, false or \"header\""),
        }
    }
}

/// The view that pressing Escape twice in an empty editor opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DoubleEscapeAction {
    Fork,
    #[default]
    Tree,
    None,
}

/// The entries that the session tree shows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeFilterMode {
    #[default]
    Default,
    NoTools,
    UserOnly,
    LabeledOnly,
    All,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MarkdownSettings {
    pub code_block_indent: String,
}

impl Default for MarkdownSettings {
    fn default() -> Self {
        Self {
            code_block_indent: "  ".to_owned(),
        }
    }
}

/// A number with a minimum and a maximum. Values outside are clamped, as in the original.
macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident, $least:literal..=$most:literal, $default:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(from = "f64")]
        pub struct $name(u8);

        impl $name {
            pub fn get(self) -> u8 {
                self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        }

        impl From<f64> for $name {
            fn from(value: f64) -> Self {
                // The clamped value fits into a u8.
                Self(value.floor().clamp($least as f64, $most as f64) as u8)
            }
        }
    };
}

bounded!(
    /// Columns left free on either side of the editor.
    EditorPadding,
    0..=3,
    0
);
bounded!(
    /// Rows of the completion list.
    AutocompleteRows,
    3..=20,
    5
);

/// An entry of `packages`: the whole package, or parts of it. An absent list selects
/// everything, an empty one nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "PackageForm")]
pub struct PackageEntry {
    pub source: String,
    /// The filter; `None` if the settings give only the source.
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
