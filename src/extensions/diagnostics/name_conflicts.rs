//! Compares the names that extensions register with those of pi: flags, commands, tools and
//! keys. The registry itself compares the names of extensions with each other.

use crate::registry::{ExtensionId, InvokableCommand, Registry, ShortcutRegistration};
use pi_resources::keybindings::Keybindings;

/// Names that pi uses itself.
#[derive(Clone, Copy)]
pub struct OwnNames {
    /// Returns whether pi has an option of this name, given without dashes.
    pub is_option: fn(&str) -> bool,
    /// Returns whether the mode has a slash command of this name, given without the slash.
    pub is_command: fn(&str) -> bool,
    pub tools: &'static [&'static str],
}

impl OwnNames {
    pub const NONE: Self = Self {
        is_option: |_| false,
        is_command: |_| false,
        tools: &[],
    };

    pub fn flag_conflict(&self, name: &str) -> Option<String> {
        (self.is_option)(name).then(|| {
            format!(
                "Flag \"--{name}\" conflicts with pi's own option, which gets what the user gives"
            )
        })
    }

    pub fn command_conflict(&self, name: &str) -> Option<String> {
        (self.is_command)(name).then(|| {
            format!(
                "Command \"/{name}\" conflicts with pi's own command, which comes first; this one \
                 can be run over RPC only"
            )
        })
    }

    pub fn tool_conflict(&self, name: &str) -> Option<String> {
        let is_own = self.tools.contains(&name);
        is_own.then(|| format!("Tool \"{name}\" replaces the built-in one"))
    }
}

/// A name that an extension and pi, or two extensions, have given to different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameConflict {
    /// The extension that registered the name.
    pub extension: ExtensionId,
    pub text: String,
}

/// Returns all conflicts, those of keys only with `keybindings`.
pub fn find_conflicts(
    registry: &Registry,
    own: &OwnNames,
    keybindings: Option<&Keybindings>,
) -> Vec<NameConflict> {
    let mut conflicts = Vec::new();
    let mut add = |extension, text: Option<String>| {
        conflicts.extend(text.map(|text| NameConflict { extension, text }));
    };
    for flag in registry.flags() {
        add(flag.extension, own.flag_conflict(&flag.name));
    }
    for InvokableCommand { name, command } in registry.commands() {
        add(command.extension, own.command_conflict(&name));
    }
    for tool in registry.tools() {
        add(tool.extension, own.tool_conflict(&tool.name));
    }
    if let Some(keybindings) = keybindings {
        conflicts.extend(resolve_shortcuts(registry, keybindings).conflicts);
    }
    conflicts
}

/// Actions whose keys no extension may take.
const RESERVED_ACTIONS: [&str; 17] = [
    "app.interrupt",
    "app.clear",
    "app.exit",
    "app.suspend",
    "app.thinking.cycle",
    "app.model.cycleForward",
    "app.model.cycleBackward",
    "app.model.select",
    "app.tools.expand",
    "app.thinking.toggle",
    "app.editor.external",
    "app.message.followUp",
    "tui.input.submit",
    "tui.select.confirm",
    "tui.select.cancel",
    "tui.input.copy",
    "tui.editor.deleteToLineEnd",
];

/// Shortcuts after all conflicts are resolved.
#[derive(Debug, Default)]
pub struct Shortcuts {
    pub active: Vec<ShortcutRegistration>,
    pub conflicts: Vec<NameConflict>,
}

/// Resolves the conflicts of keys.
pub fn resolve_shortcuts(registry: &Registry, keybindings: &Keybindings) -> Shortcuts {
    let mut resolved = Shortcuts::default();
    for shortcut in registry.shortcuts() {
        let (key, owner) = (&shortcut.key, registry.path(shortcut.extension));
        let conflict = |text| NameConflict {
            extension: shortcut.extension,
            text,
        };
        let action = action_for_key(keybindings, key);
        if let Some(action) = action {
            let reserved = RESERVED_ACTIONS.contains(&action);
            resolved.conflicts.push(conflict(match reserved {
                true => format!(
                    "Extension shortcut '{key}' from {owner} conflicts with built-in shortcut. \
                     Skipping."
                ),
                false => format!(
                    "Extension shortcut conflict: '{key}' is built-in shortcut for {action} and \
                     {owner}. Using {owner}."
                ),
            }));
            if reserved {
                continue;
            }
        }
        match resolved.active.iter_mut().find(|known| known.key == *key) {
            Some(known) if known.extension == shortcut.extension => *known = shortcut.clone(),
            Some(known) => {
                let before = registry.path(known.extension);
                resolved.conflicts.push(conflict(format!(
                    "Extension shortcut conflict: '{key}' registered by both {before} and \
                     {owner}. Using {owner}."
                )));
                *known = shortcut.clone();
            }
            None => resolved.active.push(shortcut.clone()),
        }
    }
    resolved
}

/// Returns the action of a key, a reserved one if there are several.
fn action_for_key(keybindings: &Keybindings, key: &str) -> Option<&'static str> {
    let bound = |keys: &[String]| keys.iter().any(|bound| bound.eq_ignore_ascii_case(key));
    let mut actions: Vec<&'static str> = keybindings
        .iter()
        .filter(|(_, keys)| bound(keys))
        .map(|(action, _)| action)
        .collect();
    actions.sort_by_key(|action| !RESERVED_ACTIONS.contains(action));
    actions.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::CommandRegistration;

    fn registry(keys: &[(u32, &str)]) -> Registry {
        let mut registry = Registry::default();
        for (extension, key) in keys {
            registry.add_shortcut(ShortcutRegistration {
                extension: *extension,
                id: 1,
                key: (*key).to_string(),
                description: None,
            });
        }
        registry
    }

    fn resolved(keys: &[(u32, &str)]) -> (Vec<(u32, String)>, Vec<NameConflict>) {
        let resolved = resolve_shortcuts(&registry(keys), &Keybindings::default());
        let active = resolved.active.into_iter();
        let active = active.map(|one| (one.extension, one.key)).collect();
        (active, resolved.conflicts)
    }

    #[test]
    fn reserved_keys_are_not_taken() {
        let (active, conflicts) = resolved(&[(0, "escape"), (0, "ctrl+shift+x")]);
        assert_eq!(active, [(0, "ctrl+shift+x".to_string())]);
        assert_eq!(conflicts.len(), 1);
        assert!(conflicts[0].text.ends_with("Skipping."), "{conflicts:?}");
    }

    #[test]
    fn last_extension_gets_a_key() {
        let (active, conflicts) =
            resolved(&[(0, "ctrl+shift+x"), (1, "ctrl+shift+x"), (1, "ctrl+a")]);
        let expected = [(1, "ctrl+shift+x".to_string()), (1, "ctrl+a".to_string())];
        assert_eq!(active, expected);
        let NameConflict { extension, text } = &conflicts[0];
        assert_eq!(*extension, 1);
        assert!(text.contains("'ctrl+shift+x' registered by both"), "{text}");
        let text = &conflicts[1].text;
        assert!(text.contains("tui.editor.cursorLineStart"), "{text}");
    }

    #[test]
    fn names_are_compared_with_those_of_the_mode() {
        let mut registry = registry(&[(0, "escape")]);
        for name in ["model", "deploy"] {
            registry.add_command(CommandRegistration {
                extension: 2,
                id: 1,
                name: name.to_owned(),
                description: None,
                completes: false,
            });
        }
        let own = OwnNames {
            is_command: |name| name == "model",
            ..OwnNames::NONE
        };
        let conflicts = find_conflicts(&registry, &own, None);
        assert_eq!(conflicts.len(), 1, "{conflicts:?}");
        assert_eq!(conflicts[0].extension, 2);
        let keybindings = Keybindings::default();
        let conflicts = find_conflicts(&registry, &OwnNames::NONE, Some(&keybindings));
        assert_eq!(conflicts.len(), 1, "{conflicts:?}");
        assert_eq!(conflicts[0].extension, 0);
    }
}
