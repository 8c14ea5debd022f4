//! Registers handlers, tools, commands, flags, shortcuts and renderers of extensions.

use serde_json::Value;

use super::envelope::{FlagArgs, HandlerArgs, check_tool, parse, parse_explained};
use crate::bridge::{BridgeHost, BridgeResult};
use crate::diagnostics::tool_schema;
use crate::registry::{
    CommandRegistration, FlagRegistration, RendererRegistration, ShortcutRegistration,
    ToolRegistration,
};
use pi_resources::keybindings;

/// The error says why nothing was registered: the name is taken, or no such event exists.
type Registered = Result<(), String>;

/// Returns a warning if the shortcut's key cannot be typed.
fn untypable_key(key: &str) -> Option<String> {
    keybindings::normalize_key(key).is_none().then(|| {
        format!(
            "pi.registerShortcut: there is no key \"{key}\". Write \"ctrl+x\", \"alt+enter\", \
             \"shift+f5\": ctrl, shift, alt or super, and a character or the name of a key"
        )
    })
}

impl BridgeHost {
    pub(super) fn register(&self, method: &str, args: &str) -> Option<BridgeResult> {
        // A stale generation must not register anything. Ending a subscription has no
        // effect then, and is allowed.
        let changes = ["pi.on", "pi.unregisterProvider"];
        let is_change = method.starts_with("pi.register") || changes.contains(&method);
        if is_change && let Err(error) = self.check_stale(args) {
            return Some(Err(error));
        }
        let mut registry = self.registry.lock();
        // A warning about a registration that is accepted.
        let mut warning = None;
        let registered: Result<Registered, _> = match method {
            "pi.on" => parse(method, args)
                .map(|on: HandlerArgs| registry.add_handler(on.extension, &on.event, on.id)),
            "pi.off" => parse(method, args).map(|on: HandlerArgs| {
                registry.remove_handler(on.id);
                Ok(())
            }),
            "pi.registerTool" => {
                parse_explained(method, args).and_then(|tool: ToolRegistration| {
                    check_tool(&tool)?;
                    tracing::debug!(tool.name, "a tool is registered");
                    warning = tool_schema::schema_problem(&tool.name, &tool.parameters);
                    Ok(registry.add_tool(tool))
                })
            }
            "pi.registerCommand" => parse(method, args).map(|command: CommandRegistration| {
                registry.add_command(command);
                Ok(())
            }),
            "pi.registerFlag" => {
                parse(method, args).map(|flag: FlagRegistration| registry.add_flag(flag))
            }
            "pi.registerShortcut" => parse(method, args).map(|shortcut: ShortcutRegistration| {
                warning = untypable_key(&shortcut.key);
                registry.add_shortcut(shortcut);
                Ok(())
            }),
            "pi.registerRenderer" => parse(method, args)
                .map(|renderer: RendererRegistration| registry.add_renderer(renderer)),
            _ => return None,
        };
        drop(registry);
        let result = registered.map(|added| {
            match added {
                // JavaScript reports the problem, because it knows the source position.
                Err(problem) => return Value::String(problem),
                // Before the session is bound it asks for the tools itself.
                Ok(()) if method == "pi.registerTool" => {
                    if let Ok(actions) = self.actions(args) {
                        actions.tools_changed();
                    }
                }
                Ok(()) => {}
            }
            warning.map_or(Value::Null, Value::String)
        });
        Some(result)
    }

    pub(super) fn flag(&self, args: &str) -> BridgeResult {
        self.check_stale(args)?;
        let flag: FlagArgs = parse("pi.getFlag", args)?;
        let registry = self.registry.lock();
        let own = registry
            .flags()
            .iter()
            .find(|known| known.extension == flag.extension && known.name == flag.name);
        let Some(own) = own else {
            return Ok(Value::Null);
        };
        let args_of_replacement = self.flags.lock().get(&flag.name).cloned();
        // The first extension with a default sets the default for all.
        let defaults = registry
            .flags()
            .iter()
            .filter(|known| known.name == own.name);
        let default = || defaults.filter_map(|known| known.default.clone()).next();
        Ok(args_of_replacement.or_else(default).unwrap_or(Value::Null))
    }
}
