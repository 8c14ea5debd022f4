//! Resolves conflicts between shortcuts of extensions and built-in keys. Only modes that
//! read keys use it.

use crate::registry::{ExtensionId, ShortcutRegistration};
use pi_resources::keybindings::Keybindings;

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
    pub problems: Vec<KeyConflict>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyConflict {
    /// The extension that registered the shortcut.
    pub extension: ExtensionId,
    pub text: String,
}

/// Resolves conflicts. `registered` is in load order; `path` returns the file of an
/// extension.
pub fn resolve(
    registered: &[ShortcutRegistration],
    keybindings: &Keybindings,
    path: impl Fn(u32) -> String,
) -> Shortcuts {
    let mut resolved = Shortcuts::default();
    for shortcut in registered {
        let (key, owner) = (&shortcut.key, path(shortcut.extension));
        let problem = |text| KeyConflict {
            extension: shortcut.extension,
            text,
        };
        let action = action_for_key(keybindings, key);
        if let Some(action) = action {
            let reserved = RESERVED_ACTIONS.contains(&action);
            resolved.problems.push(problem(match reserved {
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
                let before = path(known.extension);
                resolved.problems.push(problem(format!(
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

    fn resolved(keys: &[(u32, &str)]) -> (Vec<(u32, String)>, Vec<String>) {
        let registered: Vec<ShortcutRegistration> = keys
            .iter()
            .map(|(extension, key)| ShortcutRegistration {
                extension: *extension,
                id: 1,
                key: (*key).to_string(),
                description: None,
            })
            .collect();
        let resolved = resolve(&registered, &Keybindings::default(), |id| format!("e{id}"));
        let active = resolved.active.into_iter();
        let active = active.map(|one| (one.extension, one.key)).collect();
        let problems = resolved.problems.into_iter();
        (active, problems.map(|problem| problem.text).collect())
    }

    #[test]
    fn reserved_keys_are_not_taken() {
        let (active, problems) = resolved(&[(0, "escape"), (0, "ctrl+shift+x")]);
        assert_eq!(active, [(0, "ctrl+shift+x".to_string())]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].ends_with("Skipping."), "{problems:?}");
    }

    #[test]
    fn last_extension_gets_a_key() {
        let (active, problems) =
            resolved(&[(0, "ctrl+shift+x"), (1, "ctrl+shift+x"), (1, "ctrl+a")]);
        let expected = [(1, "ctrl+shift+x".to_string()), (1, "ctrl+a".to_string())];
        assert_eq!(active, expected);
        assert!(problems[0].contains("both e0 and e1. Using e1."));
        assert!(
            problems[1].contains("tui.editor.cursorLineStart"),
            "{problems:?}"
        );
    }
}
