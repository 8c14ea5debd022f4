//! Keys that extensions register: which may have theirs, and what the others are
//! told (behaviour.md §3.8). Only whoever reads keys asks.

use crate::extensions::registry::{ExtensionId, ShortcutRegistration};
use crate::resources::keybindings::Keybindings;

/// Actions whose keys no extension gets.
const RESERVED: [&str; 17] = [
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

/// What came of it.
#[derive(Debug, Default)]
pub struct Shortcuts {
    pub kept: Vec<ShortcutRegistration>,
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whose registration it is about.
    pub extension: ExtensionId,
    pub text: String,
}

/// `registered` in load order; `path` names an extension.
pub fn settle(
    registered: &[ShortcutRegistration],
    keybindings: &Keybindings,
    path: impl Fn(u32) -> String,
) -> Shortcuts {
    let mut settled = Shortcuts::default();
    for shortcut in registered {
        let (key, owner) = (&shortcut.key, path(shortcut.extension));
        let problem = |text| Problem {
            extension: shortcut.extension,
            text,
        };
        let action = action_of(keybindings, key);
        if let Some(action) = action {
            let reserved = RESERVED.contains(&action);
            settled.problems.push(problem(match reserved {
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
        match settled.kept.iter_mut().find(|known| known.key == *key) {
            Some(known) if known.extension == shortcut.extension => *known = shortcut.clone(),
            Some(known) => {
                let before = path(known.extension);
                settled.problems.push(problem(format!(
                    "Extension shortcut conflict: '{key}' registered by both {before} and \
                     {owner}. Using {owner}."
                )));
                *known = shortcut.clone();
            }
            None => settled.kept.push(shortcut.clone()),
        }
    }
    settled
}

/// A reserved one, if the key has several.
fn action_of(keybindings: &Keybindings, key: &str) -> Option<&'static str> {
    let bound = |keys: &[String]| keys.iter().any(|bound| bound.eq_ignore_ascii_case(key));
    let mut actions: Vec<&'static str> = keybindings
        .iter()
        .filter(|(_, keys)| bound(keys))
        .map(|(action, _)| action)
        .collect();
    actions.sort_by_key(|action| !RESERVED.contains(action));
    actions.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(keys: &[(u32, &str)]) -> (Vec<(u32, String)>, Vec<String>) {
        let registered: Vec<ShortcutRegistration> = keys
            .iter()
            .map(|(extension, key)| ShortcutRegistration {
                extension: *extension,
                id: 1,
                key: (*key).to_string(),
                description: None,
            })
            .collect();
        let settled = settle(&registered, &Keybindings::default(), |id| format!("e{id}"));
        let kept = settled.kept.into_iter();
        let kept = kept.map(|one| (one.extension, one.key)).collect();
        let problems = settled.problems.into_iter();
        (kept, problems.map(|problem| problem.text).collect())
    }

    #[test]
    fn reserved_keys_are_nobodys() {
        let (kept, problems) = settled(&[(0, "escape"), (0, "ctrl+shift+x")]);
        assert_eq!(kept, [(0, "ctrl+shift+x".to_string())]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].ends_with("Skipping."), "{problems:?}");
    }

    #[test]
    fn the_last_extension_gets_a_key_and_built_in_ones_may_be_taken() {
        let (kept, problems) = settled(&[(0, "ctrl+shift+x"), (1, "ctrl+shift+x"), (1, "ctrl+a")]);
        let expected = [(1, "ctrl+shift+x".to_string()), (1, "ctrl+a".to_string())];
        assert_eq!(kept, expected);
        assert!(problems[0].contains("both e0 and e1. Using e1."));
        assert!(
            problems[1].contains("tui.editor.cursorLineStart"),
            "{problems:?}"
        );
    }
}
