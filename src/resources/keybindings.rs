//! `keybindings.json`: the keys of each action. This is data only; the code that reads keys
//! uses [`Keybindings::keys`].

use pi_base::regular_file;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::diagnostic::Diagnostic;

mod table;

pub use table::DEFAULTS;
use table::OLD_NAMES;

/// The keys of every action: those of the user, or the default ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keybindings {
    keys: IndexMap<&'static str, Vec<String>>,
    /// Keys that the user bound to several actions, with these actions.
    pub conflicts: Vec<(String, Vec<&'static str>)>,
}

impl Default for Keybindings {
    fn default() -> Self {
        Self::new(&Map::new(), Path::new(""), &mut Vec::new())
    }
}

impl Keybindings {
    /// Loads the file. If it is missing or cannot be read, all keys are the default ones.
    pub fn load(path: &Path) -> (Self, Vec<Diagnostic>) {
        let mut problems = Vec::new();
        let text = match regular_file::read_text(path) {
            Ok(text) => text,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    problems.push(Diagnostic::unreadable(path, &error));
                }
                return (Self::default(), problems);
            }
        };
        let wrong = |what: &dyn std::fmt::Display| {
            let message = format!("{} is ignored: {what}", path.display());
            Diagnostic::error(path, message)
        };
        let bindings = match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Self::new(&object, path, &mut problems),
            Ok(_) => {
                problems.push(wrong(&"it has to hold one object"));
                Self::default()
            }
            Err(error) => {
                problems.push(wrong(&error));
                Self::default()
            }
        };
        (bindings, problems)
    }

    /// Returns the keys of an action; none if it is unbound or unknown.
    pub fn keys(&self, action: &str) -> &[String] {
        self.keys.get(action).map_or(&[], Vec::as_slice)
    }

    /// Iterates over all actions in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        self.keys
            .iter()
            .map(|(action, keys)| (*action, keys.as_slice()))
    }

    fn new(file: &Map<String, Value>, path: &Path, problems: &mut Vec<Diagnostic>) -> Self {
        let mut complain = |message: String| {
            let message = format!("{}: {message}", path.display());
            problems.push(Diagnostic::warning(path, message));
        };
        let mut keys: IndexMap<_, Vec<String>> = DEFAULTS
            .iter()
            .map(|(action, keys)| (*action, keys.iter().map(|key| (*key).to_owned()).collect()))
            .collect();
        let mut claims: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
        for (written, value) in file {
            let action = today(written);
            if action != written && file.contains_key(action) {
                complain(format!(
                    "\"{written}\" is an old name of \"{action}\", which is there, too"
                ));
                continue;
            }
            let Some((action, _)) = DEFAULTS.iter().find(|(known, _)| *known == action) else {
                complain(format!("\"{written}\" is no action that has keys"));
                continue;
            };
            let Some(wanted) = keys_of(value) else {
                complain(format!(
                    "\"{written}\" is ignored: expected a key or a list of keys"
                ));
                continue;
            };
            for key in &wanted {
                match normalize_key(key) {
                    Some(normal) => claims.entry(normal).or_default().push(action),
                    None => complain(format!("\"{written}\": \"{key}\" is no key")),
                }
            }
            keys.insert(action, wanted);
        }
        let conflicts = claims.into_iter().filter(|(_, actions)| actions.len() > 1);
        Self {
            keys,
            conflicts: conflicts.collect(),
        }
    }
}

/// Returns the file with current names in the order of the table, as the original writes it;
/// `None` if nothing changes.
pub fn migrated(file: &Map<String, Value>) -> Option<Map<String, Value>> {
    if file.keys().all(|name| today(name) == name) {
        return None;
    }
    let mut renamed = Map::new();
    for (name, value) in file {
        let new = today(name);
        if new == name || !file.contains_key(new) {
            renamed.insert(new.to_owned(), value.clone());
        }
    }
    let mut ordered = Map::new();
    for (action, _) in &DEFAULTS {
        if let Some(value) = renamed.shift_remove(*action) {
            ordered.insert((*action).to_owned(), value);
        }
    }
    renamed.sort_keys();
    ordered.extend(renamed);
    Some(ordered)
}

fn today(name: &str) -> &str {
    let old = OLD_NAMES.iter().find(|(old, _)| *old == name);
    old.map_or(name, |(_, new)| *new)
}

/// Returns the keys of an action without duplicates.
fn keys_of(value: &Value) -> Option<Vec<String>> {
    let mut keys: Vec<String> = Vec::new();
    let listed = match value {
        Value::String(key) => return Some(vec![key.clone()]),
        Value::Array(listed) => listed,
        _ => return None,
    };
    for key in listed {
        let key = key.as_str()?;
        if !keys.iter().any(|known| known == key) {
            keys.push(key.to_owned());
        }
    }
    Some(keys)
}

const MODIFIERS: [&str; 4] = ["ctrl", "shift", "alt", "super"];
const NAMED_KEYS: [&str; 30] = [
    "escape",
    "esc",
    "enter",
    "return",
    "tab",
    "space",
    "backspace",
    "delete",
    "insert",
    "clear",
    "home",
    "end",
    "pageup",
    "pagedown",
    "up",
    "down",
    "left",
    "right",
    "f1",
    "f2",
    "f3",
    "f4",
    "f5",
    "f6",
    "f7",
    "f8",
    "f9",
    "f10",
    "f11",
    "f12",
];

/// Returns the normal form of a key: modifiers may be written in any order and case.
pub fn normalize_key(key: &str) -> Option<String> {
    let lower = key.to_lowercase();
    // `ctrl++` is the key `+`.
    let (modifiers, base) = match lower.strip_suffix("++") {
        Some(modifiers) => (modifiers, "+"),
        None if lower == "+" => ("", "+"),
        None => lower.rsplit_once('+').unwrap_or(("", &lower)),
    };
    let mut held: Vec<&str> = modifiers
        .split('+')
        .filter(|part| !part.is_empty())
        .collect();
    let known = held.iter().all(|part| MODIFIERS.contains(part));
    held.sort_unstable();
    held.dedup();
    let base = match base {
        "esc" => "escape",
        "return" => "enter",
        other => other,
    };
    let one = base.len() == 1 && base.bytes().all(|byte| byte.is_ascii_graphic());
    let is_key = one || NAMED_KEYS.contains(&base);
    (known && is_key).then(|| {
        held.push(base);
        held.join("+")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use serde_json::json;

    fn load(text: &str) -> (Keybindings, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keybindings.json");
        fs::write(&path, text).unwrap();
        let (bindings, problems) = Keybindings::load(&path);
        let prefix = path.display().to_string();
        let texts = problems
            .iter()
            .map(|problem| problem.to_string().replace(&prefix, "FILE"));
        (bindings, texts.collect())
    }

    #[test]
    fn keys_of_the_user_replace_default_keys() {
        let text = json!({"app.clear": "ctrl+x", "tui.editor.undo": [], "cursorUp": ["up", "ctrl+k", "up"]});
        let (bindings, problems) = load(&text.to_string());
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(bindings.keys("app.clear"), ["ctrl+x"]);
        assert!(bindings.keys("tui.editor.undo").is_empty());
        assert_eq!(bindings.keys("tui.editor.cursorUp"), ["up", "ctrl+k"]);
        assert_eq!(bindings.keys("app.exit"), ["ctrl+d"]);
        assert_eq!(bindings.iter().count(), DEFAULTS.len());
        assert_eq!(bindings.conflicts, []);
    }

    #[test]
    fn invalid_parts_are_reported_and_the_rest_is_used() {
        let text = json!({"app.clear": 5, "app.gone": "x", "interrupt": "esc", "app.interrupt": "Hyper+x",
            "app.exit": ["ctrl+alt+q"], "app.suspend": "alt+CTRL+q"});
        let (bindings, problems) = load(&text.to_string());
        assert_eq!(
            problems,
            [
                "FILE: \"app.clear\" is ignored: expected a key or a list of keys",
                "FILE: \"app.gone\" is no action that has keys",
                "FILE: \"interrupt\" is an old name of \"app.interrupt\", which is there, too",
                "FILE: \"app.interrupt\": \"Hyper+x\" is no key",
            ]
        );
        assert_eq!(bindings.keys("app.clear"), ["ctrl+c"]);
        let conflict = ("alt+ctrl+q".to_owned(), vec!["app.exit", "app.suspend"]);
        assert_eq!(bindings.conflicts, [conflict]);
        for text in ["[]", "{", ""] {
            let (bindings, problems) = load(text);
            assert_eq!(
                (bindings, problems.len()),
                (Keybindings::default(), 1),
                "{text}"
            );
        }
    }

    #[test]
    fn keys_have_one_form() {
        for (written, form) in [
            ("Ctrl+Shift+P", "ctrl+shift+p"),
            ("shift+ctrl+p", "ctrl+shift+p"),
            ("ctrl++", "ctrl++"),
            ("+", "+"),
            ("esc", "escape"),
            ("alt+Return", "alt+enter"),
            ("ctrl+]", "ctrl+]"),
            ("pageUp", "pageup"),
        ] {
            assert_eq!(normalize_key(written).as_deref(), Some(form), "{written}");
        }
        for wrong in ["", "ctrl+", "hyper+x", "f13", "xx", "é"] {
            assert_eq!(normalize_key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn own_settings_are_known_keys() {
        for (action, keys) in &DEFAULTS {
            for key in *keys {
                assert!(normalize_key(key).is_some(), "{action}: {key}");
            }
        }
        for (_, new) in &OLD_NAMES {
            assert!(DEFAULTS.iter().any(|(action, _)| action == new), "{new}");
        }
        assert_eq!((DEFAULTS.len(), OLD_NAMES.len()), (59, 59));
    }

    #[test]
    fn old_names_are_migrated() {
        let object = |value: Value| value.as_object().unwrap().clone();
        assert_eq!(migrated(&object(json!({"app.clear": "x", "own": 1}))), None);
        let old =
            object(json!({"zzz": 1, "clear": "a", "cursorUp": "b", "app.exit": "c", "exit": "d"}));
        let new = migrated(&old).unwrap();
        let text = serde_json::to_string(&new).unwrap();
        let expected = r#"{"tui.editor.cursorUp":"b","app.clear":"a","app.exit":"c","zzz":1}"#;
        assert_eq!(text, expected);
    }
}
