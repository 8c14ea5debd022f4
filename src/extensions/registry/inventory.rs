//! Describes each extension and what it registered, for `pi ext` and RPC clients.

use serde::Serialize;
use serde_json::Value;

use crate::diagnostics::error_context::extension_name;
use crate::lifecycle::Extensions;
use crate::lifecycle::load_error::LoadFailure;
use crate::registry::{FlagKind, Registry, RendererKind};
use pi_agent::event::ExtensionName;
use pi_resources::source_info::SourceInfo;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedExtension {
    #[serde(flatten)]
    pub name: ExtensionName,
    pub path: String,
    pub source: SourceInfo,
    /// The version that serves.
    pub state: LoadState,
    /// Why the extension did not load, or, if it is kept, why its files do not load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<LoadFailure>,
    /// Milliseconds; 0 if the code was not run.
    pub load_ms: f64,
    pub tools: Vec<DescribedTool>,
    pub commands: Vec<DescribedCommand>,
    pub flags: Vec<DescribedFlag>,
    pub shortcuts: Vec<DescribedShortcut>,
    pub renderers: Vec<DescribedRenderer>,
    /// Names of model providers.
    pub providers: Vec<String>,
    /// Names of events that the extension has handlers for.
    pub events: Vec<&'static str>,
    /// Names of events of other versions, which pi does not emit, that the extension has
    /// handlers for.
    #[serde(rename = "unheardEvents", skip_serializing_if = "Vec::is_empty")]
    pub unknown_events: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedTool {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedCommand {
    /// Without the slash; `name:2` if several extensions use the name.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedFlag {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: FlagKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedShortcut {
    pub key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescribedRenderer {
    /// Kind of drawn item: messages, entries, or rows of tools.
    pub kind: RendererKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_type: Option<String>,
}

/// The version of an extension that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LoadState {
    /// The files as they are.
    Loaded,
    /// The last good version, because the files do not load.
    Kept,
    /// No version: the extension is not loaded.
    Failed,
}

impl Extensions {
    /// Describes all extensions in load order.
    pub fn describe(&self) -> Vec<DescribedExtension> {
        let mut described = self.with_registry(describe_all);
        for one in &mut described {
            one.load_ms = self.load_ms(&one.path);
        }
        described
    }
}

fn describe_all(registry: &Registry) -> Vec<DescribedExtension> {
    let commands = registry.commands();
    let extensions = (0..).zip(&registry.extensions);
    let described = extensions.map(|(id, info)| DescribedExtension {
        name: extension_name(info.path.as_ref()),
        path: info.path.clone(),
        source: info.source.clone(),
        state: match (&info.error, &info.kept) {
            (Some(_), _) => LoadState::Failed,
            (None, Some(_)) => LoadState::Kept,
            (None, None) => LoadState::Loaded,
        },
        error: info.error.clone().or_else(|| info.kept.clone()),
        load_ms: 0.0,
        tools: (registry.tools().iter())
            .filter(|tool| tool.extension == id)
            .map(|tool| DescribedTool {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
            })
            .collect(),
        commands: (commands.iter())
            .filter(|command| command.command.extension == id)
            .map(|command| DescribedCommand {
                name: command.name.clone(),
                description: command.command.description.clone(),
            })
            .collect(),
        flags: (registry.flags().iter())
            .filter(|flag| flag.extension == id)
            .map(|flag| DescribedFlag {
                name: flag.name.clone(),
                kind: flag.kind,
                description: flag.description.clone(),
            })
            .collect(),
        shortcuts: (registry.shortcuts().iter())
            .filter(|shortcut| shortcut.extension == id)
            .map(|shortcut| DescribedShortcut {
                key: shortcut.key.clone(),
                description: shortcut.description.clone(),
            })
            .collect(),
        renderers: (registry.renderers().iter())
            .filter(|renderer| renderer.extension == id)
            .map(|renderer| DescribedRenderer {
                kind: renderer.kind,
                custom_type: renderer.custom_type.clone(),
            })
            .collect(),
        providers: registry.providers_of(id),
        events: registry.events_of(id),
        unknown_events: registry.unknown_events_of(id),
    });
    described.collect()
}
