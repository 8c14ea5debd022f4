//! Registrations of one generation's extensions, in registration order. Conflicts between
//! extensions are resolved here.

pub mod inventory;
pub mod providers;
pub mod tool;

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events::table::{self, EVENTS};
use super::lifecycle::load_error::LoadFailure;
use pi_resources::source_info::{SourceInfo, SourceScope};

/// The position of an extension in its generation's load order.
pub type ExtensionId = u32;

/// The number under which JavaScript stores a function.
pub type FunctionId = u64;

#[derive(Clone, Debug)]
pub struct ExtensionInfo {
    pub path: String,
    pub source: SourceInfo,
    /// Why the extension is not loaded.
    pub error: Option<LoadFailure>,
    /// Why the last good version of the extension is loaded instead of its files.
    pub kept: Option<LoadFailure>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRegistration {
    pub extension: ExtensionId,
    pub id: FunctionId,
    pub name: String,
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub parameters: Value,
    #[serde(default)]
    pub prompt_snippet: Option<String>,
    #[serde(default)]
    pub prompt_guidelines: Vec<String>,
    #[serde(default)]
    pub execution_mode: Option<pi_tools::tool::ExecutionMode>,
    #[serde(default)]
    pub prepares: bool,
    /// Whether the tool stays inactive until it is named.
    #[serde(default)]
    pub inactive: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandRegistration {
    pub extension: ExtensionId,
    pub id: FunctionId,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub completes: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FlagRegistration {
    pub extension: ExtensionId,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    pub kind: FlagKind,
    #[serde(default)]
    pub default: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ShortcutRegistration {
    pub extension: ExtensionId,
    pub id: FunctionId,
    /// In lower case.
    pub key: String,
    #[serde(default)]
    pub description: Option<String>,
}

/// A function that draws for the terminal.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RendererRegistration {
    pub extension: ExtensionId,
    pub id: FunctionId,
    /// Type of the message or entry; absent for tools and Markdown.
    #[serde(default)]
    pub custom_type: Option<String>,
    /// `message`, `entry`, `tool` or `markdown`.
    pub kind: RendererKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RendererKind {
    Message,
    Entry,
    Tool,
    /// Transforms drawn Markdown; each extension may have one.
    Markdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    Boolean,
    String,
}

/// A command under the name by which users call it.
#[derive(Clone, Debug)]
pub struct InvokableCommand {
    /// Without the slash; `name:2` if several extensions use the name.
    pub name: String,
    pub command: CommandRegistration,
}

#[derive(Default)]
pub struct Registry {
    pub extensions: Vec<ExtensionInfo>,
    /// Handlers by the index of the event's row in the table.
    handlers: HashMap<usize, Vec<(ExtensionId, FunctionId)>>,
    tools: Vec<ToolRegistration>,
    commands: Vec<CommandRegistration>,
    flags: Vec<FlagRegistration>,
    shortcuts: Vec<ShortcutRegistration>,
    renderers: Vec<RendererRegistration>,
    /// Names of providers; their definitions are in the model registry.
    providers: Vec<(ExtensionId, String)>,
    /// Handlers of unknown events.
    unknown_events: HashSet<(ExtensionId, String)>,
}

impl Registry {
    pub fn new(extensions: Vec<ExtensionInfo>) -> Self {
        Self {
            extensions,
            ..Self::default()
        }
    }

    pub fn path(&self, id: ExtensionId) -> String {
        self.extensions
            .get(id as usize)
            .map_or_else(|| "<runtime>".to_string(), |info| info.path.clone())
    }

    /// Returns whether the files of the extension at `path` failed to load.
    pub fn has_failed(&self, path: &str) -> bool {
        let failed = |info: &&ExtensionInfo| info.error.is_some() || info.kept.is_some();
        self.extensions
            .iter()
            .filter(failed)
            .any(|info| info.path == path)
    }

    /// Removes all registrations of an extension that failed to load.
    pub fn remove_extension(&mut self, extension: ExtensionId) {
        for handlers in self.handlers.values_mut() {
            handlers.retain(|(owner, _)| *owner != extension);
        }
        self.tools.retain(|tool| tool.extension != extension);
        self.commands.retain(|one| one.extension != extension);
        self.flags.retain(|flag| flag.extension != extension);
        self.shortcuts.retain(|one| one.extension != extension);
        self.renderers.retain(|one| one.extension != extension);
        self.providers.retain(|(owner, _)| *owner != extension);
    }

    /// Adds a handler. `Err` is the message to the author, once per event, if no version
    /// has the event. Events of other versions are accepted, because extensions support
    /// several versions.
    pub fn add_handler(
        &mut self,
        extension: ExtensionId,
        event: &str,
        id: FunctionId,
    ) -> Result<(), String> {
        if let Some((index, _)) = table::find(event) {
            self.handlers
                .entry(index)
                .or_default()
                .push((extension, id));
            return Ok(());
        }
        let is_new = self.unknown_events.insert((extension, event.to_string()));
        if table::is_in_other_version(event) {
            tracing::info!(
                extension = self.path(extension),
                "{}",
                table::unknown_event_message(event)
            );
            return Ok(());
        }
        match is_new {
            true => Err(table::unknown_event_message(event)),
            false => Ok(()),
        }
    }

    /// Returns the names of other versions' events that an extension has handlers for.
    pub fn unknown_events_of(&self, extension: ExtensionId) -> Vec<String> {
        let own = (self.unknown_events.iter()).filter(|(owner, _)| *owner == extension);
        let mut names: Vec<String> = own
            .filter(|(_, name)| table::is_in_other_version(name))
            .map(|(_, name)| name.clone())
            .collect();
        names.sort_unstable();
        names
    }

    pub fn remove_handler(&mut self, id: FunctionId) {
        for handlers in self.handlers.values_mut() {
            handlers.retain(|(_, known)| *known != id);
        }
    }

    /// Returns the handlers in load order, then in registration order; extensions may
    /// subscribe late.
    pub fn handlers(&self, event: &str) -> Vec<(ExtensionId, FunctionId)> {
        let found = table::find(event).and_then(|(index, _)| self.handlers.get(&index));
        let mut handlers = found.cloned().unwrap_or_default();
        if event == "project_trust" {
            // A project does not decide about itself.
            handlers.retain(|(extension, _)| {
                let info = self.extensions.get(*extension as usize);
                info.is_some_and(|info| info.source.scope != SourceScope::Project)
            });
        }
        handlers.sort_by_key(|(extension, _)| *extension);
        handlers
    }

    /// Returns the names of the events that an extension has handlers for.
    pub fn events_of(&self, extension: ExtensionId) -> Vec<&'static str> {
        let lists = (EVENTS.iter().enumerate())
            .filter_map(|(index, kind)| Some((kind, self.handlers.get(&index)?)));
        let own = lists.filter(|(_, list)| list.iter().any(|(owner, _)| *owner == extension));
        own.map(|(kind, _)| kind.name).collect()
    }

    pub fn has_handlers(&self, event: &str) -> bool {
        let found = table::find(event).and_then(|(index, _)| self.handlers.get(&index));
        found.is_some_and(|handlers| !handlers.is_empty())
    }

    /// Adds a tool. An extension may register a name again; between extensions the first
    /// one loaded wins. `Err` names the winner.
    pub fn add_tool(&mut self, tool: ToolRegistration) -> Result<(), String> {
        match self.tools.iter_mut().find(|known| known.name == tool.name) {
            Some(known) if known.extension == tool.extension => *known = tool,
            Some(known) => {
                let winner = known.extension;
                return Err(format!(
                    "Tool \"{}\" conflicts with {}, which was loaded first and keeps the name",
                    tool.name,
                    self.path(winner)
                ));
            }
            None => self.tools.push(tool),
        }
        Ok(())
    }

    pub fn tools(&self) -> &[ToolRegistration] {
        &self.tools
    }

    pub fn add_command(&mut self, command: CommandRegistration) {
        let same = |known: &&mut CommandRegistration| {
            known.name == command.name && known.extension == command.extension
        };
        match self.commands.iter_mut().find(same) {
            Some(known) => *known = command,
            None => self.commands.push(command),
        }
    }

    /// Returns all commands. A name that several extensions use is numbered in load order;
    /// a number that is taken is skipped.
    pub fn commands(&self) -> Vec<InvokableCommand> {
        let mut commands = self.commands.clone();
        commands.sort_by_key(|command| command.extension);
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for command in &commands {
            *uses.entry(&command.name).or_default() += 1;
        }
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut taken = HashSet::new();
        commands
            .iter()
            .map(|command| {
                let number = seen.entry(&command.name).or_default();
                *number += 1;
                let numbered = |number: usize| format!("{}:{number}", command.name);
                let mut name = match uses[command.name.as_str()] {
                    1 => command.name.clone(),
                    _ => numbered(*number),
                };
                let mut next = *number;
                while !taken.insert(name.clone()) {
                    next += 1;
                    name = numbered(next);
                }
                InvokableCommand {
                    name,
                    command: command.clone(),
                }
            })
            .collect()
    }

    /// Adds a flag. Extensions with the same flag all read its value; the first one
    /// describes it. `Err` names the first.
    pub fn add_flag(&mut self, flag: FlagRegistration) -> Result<(), String> {
        let same = |known: &&FlagRegistration| known.name == flag.name;
        let first = self.flags.iter().find(same).map(|first| first.extension);
        let again = |known: &&mut FlagRegistration| {
            known.name == flag.name && known.extension == flag.extension
        };
        if let Some(known) = self.flags.iter_mut().find(again) {
            *known = flag;
            return Ok(());
        }
        let conflict = first.map(|first| {
            let (name, first) = (&flag.name, self.path(first));
            format!("Flag \"--{name}\" conflicts with {first}")
        });
        self.flags.push(flag);
        conflict.map_or(Ok(()), Err)
    }

    /// Adds a shortcut; shortcuts are kept in load order.
    pub fn add_shortcut(&mut self, mut shortcut: ShortcutRegistration) {
        shortcut.key.make_ascii_lowercase();
        self.shortcuts.push(shortcut);
        self.shortcuts.sort_by_key(|shortcut| shortcut.extension);
    }

    pub fn shortcuts(&self) -> &[ShortcutRegistration] {
        &self.shortcuts
    }

    /// Adds a renderer. The first one of a message or entry type wins; renderers of tools
    /// are all called. `Err` names the first.
    pub fn add_renderer(&mut self, renderer: RendererRegistration) -> Result<(), String> {
        let same = |known: &&mut RendererRegistration| {
            let is_same = known.kind == renderer.kind && known.custom_type == renderer.custom_type;
            is_same
                && match known.kind {
                    RendererKind::Message | RendererKind::Entry => true,
                    RendererKind::Tool => false,
                    RendererKind::Markdown => known.extension == renderer.extension,
                }
        };
        match self.renderers.iter_mut().find(same) {
            Some(known) if known.extension == renderer.extension => *known = renderer,
            Some(known) => {
                let first = known.extension;
                return Err(format!(
                    "The renderer of \"{}\" conflicts with {}, which was loaded first and keeps \
                     it",
                    renderer.custom_type.unwrap_or_default(),
                    self.path(first)
                ));
            }
            None => self.renderers.push(renderer),
        }
        Ok(())
    }

    pub fn renderers(&self) -> &[RendererRegistration] {
        &self.renderers
    }

    /// Adds a provider. Registering a name again changes the provider, also one of another
    /// extension.
    pub fn add_provider(&mut self, extension: ExtensionId, name: &str) {
        let new = (extension, name.to_owned());
        if !self.providers.contains(&new) {
            self.providers.push(new);
        }
    }

    pub fn remove_provider(&mut self, name: &str) {
        self.providers.retain(|(_, known)| known != name);
    }

    pub fn providers_of(&self, extension: ExtensionId) -> Vec<String> {
        let own = self.providers.iter().filter(|(by, _)| *by == extension);
        own.map(|(_, name)| name.clone()).collect()
    }

    pub fn flags(&self) -> &[FlagRegistration] {
        &self.flags
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn command(extension: ExtensionId, name: &str) -> CommandRegistration {
        serde_json::from_value(json!({ "extension": extension, "id": extension, "name": name }))
            .unwrap()
    }

    #[test]
    fn commands_with_equal_names_are_numbered() {
        let mut registry = Registry::default();
        for (extension, name) in [(1, "deploy"), (0, "deploy"), (0, "test")] {
            registry.add_command(command(extension, name));
        }
        let names: Vec<(String, ExtensionId)> = registry
            .commands()
            .into_iter()
            .map(|command| (command.name, command.command.extension))
            .collect();
        assert_eq!(
            names,
            [
                ("deploy:1".to_string(), 0),
                ("test".to_string(), 0),
                ("deploy:2".to_string(), 1)
            ]
        );
    }

    /// Otherwise the third command could not be called.
    #[test]
    fn command_named_like_a_numbered_one_is_callable() {
        let mut registry = Registry::default();
        for (extension, name) in [(0, "same"), (1, "same"), (2, "same:1"), (3, "same:1:2")] {
            registry.add_command(command(extension, name));
        }
        let commands = registry.commands().into_iter();
        let names: Vec<String> = commands.map(|command| command.name).collect();
        assert_eq!(names, ["same:1", "same:2", "same:1:2", "same:1:2:2"]);
    }

    #[test]
    fn first_extension_keeps_a_tool_name() {
        let tool = |extension: u32, description: &str| -> ToolRegistration {
            serde_json::from_value(json!({
                "extension": extension, "id": 1, "name": "x", "description": description
            }))
            .unwrap()
        };
        let mut registry = Registry::default();
        registry.add_tool(tool(0, "a")).unwrap();
        registry.add_tool(tool(1, "b")).unwrap_err();
        registry.add_tool(tool(0, "c")).unwrap();
        assert_eq!(registry.tools().len(), 1);
        assert_eq!(registry.tools()[0].description, "c");
    }

    #[test]
    fn unknown_event_is_reported_once() {
        let mut registry = Registry::default();
        let error = registry.add_handler(0, "tool_cal", 1).unwrap_err();
        assert!(error.contains("tool_call"), "{error}");
        registry.add_handler(0, "tool_cal", 2).unwrap();
        registry.add_handler(1, "tool_cal", 3).unwrap_err();
        assert!(!registry.has_handlers("tool_cal"));
    }

    #[test]
    fn two_extensions_may_have_one_flag() {
        let flag = |extension: u32| -> FlagRegistration {
            let flag = json!({"extension": extension, "name": "x", "kind": "boolean"});
            serde_json::from_value(flag).unwrap()
        };
        let mut registry = Registry::default();
        registry.add_flag(flag(0)).unwrap();
        registry.add_flag(flag(0)).unwrap();
        registry.add_flag(flag(1)).unwrap_err();
        assert_eq!(registry.flags().len(), 2);
    }

    #[test]
    fn first_extension_renders_a_type() {
        let renderer = |extension: u32, kind: &str| -> RendererRegistration {
            let renderer = json!({
                "extension": extension, "id": extension, "kind": kind, "customType": "x",
            });
            serde_json::from_value(renderer).unwrap()
        };
        let mut registry = Registry::default();
        registry.add_renderer(renderer(0, "message")).unwrap();
        registry.add_renderer(renderer(1, "message")).unwrap_err();
        registry.add_renderer(renderer(1, "entry")).unwrap();
        registry.add_renderer(renderer(0, "tool")).unwrap();
        registry.add_renderer(renderer(1, "tool")).unwrap();
        let kept: Vec<u32> = registry
            .renderers()
            .iter()
            .map(|one| one.extension)
            .collect();
        assert_eq!(kept, [0, 1, 0, 1]);
    }
}
