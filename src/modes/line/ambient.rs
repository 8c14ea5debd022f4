//! Statuses and widgets of extensions. A full screen would always show them;
//! here those that changed are said again before the next prompt.

use std::collections::{BTreeMap, BTreeSet};

use super::text::{clean, one_line};

/// As the original has it.
const WIDGET_LINES: usize = 10;

#[derive(Debug, Default)]
pub struct Ambient {
    statuses: BTreeMap<String, String>,
    widgets: BTreeMap<String, Vec<String>>,
    statuses_changed: bool,
    changed_widgets: BTreeSet<String>,
}

impl Ambient {
    pub fn set_status(&mut self, key: &str, text: Option<&str>) {
        let text = text.map(one_line).filter(|text| !text.is_empty());
        let before = match &text {
            Some(text) => self.statuses.insert(key.to_string(), text.clone()),
            None => self.statuses.remove(key),
        };
        self.statuses_changed |= before != text;
    }

    pub fn set_widget(&mut self, key: &str, lines: Option<&[String]>) {
        let lines = lines.filter(|lines| !lines.is_empty()).map(|lines| {
            let mut lines: Vec<String> = lines.iter().map(|line| clean(line)).collect();
            if lines.len() > WIDGET_LINES {
                lines.truncate(WIDGET_LINES);
                lines.push("... (widget truncated)".to_string());
            }
            lines
        });
        let before = match &lines {
            Some(lines) => self.widgets.insert(key.to_string(), lines.clone()),
            None => self.widgets.remove(key),
        };
        if before != lines {
            self.changed_widgets.insert(key.to_string());
        }
    }

    /// The lines that were not said yet.
    pub fn changes(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for key in std::mem::take(&mut self.changed_widgets) {
            lines.extend(self.widgets.get(&key).into_iter().flatten().cloned());
        }
        if std::mem::take(&mut self.statuses_changed) && !self.statuses.is_empty() {
            let statuses: Vec<&str> = self.statuses.values().map(String::as_str).collect();
            lines.push(format!("[{}]", statuses.join(" | ")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_said() {
        let mut ambient = Ambient::default();
        ambient.set_status("b", Some("tests:\n\x1b[32mok\x1b[0m"));
        ambient.set_status("a", Some("main"));
        ambient.set_widget("todo", Some(&["1. a".into(), "2. b".into()]));
        assert_eq!(ambient.changes(), ["1. a", "2. b", "[main | tests: ok]"]);
        ambient.set_status("a", Some("main"));
        assert_eq!(ambient.changes(), [""; 0]);
        ambient.set_widget("todo", None);
        ambient.set_status("b", None);
        assert_eq!(ambient.changes(), ["[main]"]);
        ambient.set_status("a", None);
        assert_eq!(ambient.changes(), [""; 0]);
    }

    #[test]
    fn long_widgets_are_cut() {
        let mut ambient = Ambient::default();
        let lines: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        ambient.set_widget("w", Some(&lines));
        let said = ambient.changes();
        assert_eq!(said.len(), 11);
        assert_eq!(said[10], "... (widget truncated)");
    }
}
