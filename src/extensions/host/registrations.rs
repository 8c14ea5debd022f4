//! What extensions register: handlers, tools, commands, flags, shortcuts, renderers.

use serde_json::Value;

use super::arguments::{Name, On, check_tool, parse, parse_told};
use super::{Answer, BridgeHost};
use crate::extensions::registry::{
    CommandRegistration, ExtensionId, FlagRegistration, RendererRegistration, ShortcutRegistration,
    ToolRegistration,
};

impl BridgeHost {
    pub(super) fn register(&self, method: &str, args: &str) -> Option<Answer> {
        let mut registry = self.registry.lock();
        let answer = match method {
            "pi.on" => parse::<On>(method, args).map(|on| {
                let added = registry.add_handler(on.extension, &on.event, on.id);
                drop(registry);
                self.report_conflict(on.extension, added);
            }),
            "pi.off" => parse::<On>(method, args).map(|on| registry.remove_handler(on.id)),
            "pi.registerTool" => parse_told::<ToolRegistration>(method, args).and_then(|tool| {
                check_tool(&tool)?;
                let (extension, name) = (tool.extension, tool.name.clone());
                if let Err(conflict) = registry.add_tool(tool) {
                    drop(registry);
                    self.report(extension, "load", conflict);
                    return Ok(());
                }
                drop(registry);
                tracing::debug!(name, "tool registered");
                // Before the session is bound it asks for the tools itself.
                if let Ok(actions) = self.actions(args) {
                    actions.tools_changed();
                }
                Ok(())
            }),
            "pi.registerCommand" => parse::<CommandRegistration>(method, args)
                .map(|command| registry.add_command(command)),
            "pi.registerFlag" => parse::<FlagRegistration>(method, args).map(|flag| {
                let extension = flag.extension;
                let added = registry.add_flag(flag);
                drop(registry);
                self.report_conflict(extension, added);
            }),
            "pi.registerShortcut" => parse::<ShortcutRegistration>(method, args)
                .map(|shortcut| registry.add_shortcut(shortcut)),
            "pi.registerRenderer" => parse::<RendererRegistration>(method, args).map(|renderer| {
                let extension = renderer.extension;
                let added = registry.add_renderer(renderer);
                drop(registry);
                self.report_conflict(extension, added);
            }),
            _ => return None,
        };
        Some(answer.map(|()| Value::Null))
    }

    /// Whoever came too late, or listens to nothing, is named.
    fn report_conflict(&self, extension: ExtensionId, added: Result<(), String>) {
        if let Err(conflict) = added {
            self.report(extension, "load", conflict);
        }
    }

    pub(super) fn flag(&self, args: &str) -> Answer {
        let flag: Name = parse("pi.getFlag", args)?;
        let registry = self.registry.lock();
        let own = registry
            .flags()
            .iter()
            .find(|known| known.extension == flag.extension && known.name == flag.name);
        let Some(own) = own else {
            return Ok(Value::Null);
        };
        let given = self.flags.lock().get(&flag.name).cloned();
        // The first that has one sets the default of all.
        let defaults = registry
            .flags()
            .iter()
            .filter(|known| known.name == own.name);
        let default = || defaults.filter_map(|known| known.default.clone()).next();
        Ok(given.or_else(default).unwrap_or(Value::Null))
    }
}
