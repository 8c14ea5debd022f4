//! Statuses and widgets of extensions. Line mode prints those that changed before the next
//! prompt.

use std::collections::{BTreeMap, BTreeSet};

use super::sanitize::{one_line, sanitize};

/// Maximum lines of a widget, as in the original.
const MAX_WIDGET_LINES: usize = 10;

#[derive(Debug, Default)]
pub struct Widgets {
    statuses: BTreeMap<String, String>,
    widgets: BTreeMap<String, Vec<String>>,
    statuses_changed: bool,
    changed_widgets: BTreeSet<String>,
}

impl Widgets {
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
            let mut lines: Vec<String> = lines.iter().map(|line| sanitize(line)).collect();
            if lines.len() > MAX_WIDGET_LINES {
                lines.truncate(MAX_WIDGET_LINES);
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

    /// Returns the lines that changed since the last call.
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
    fn only_changes_are_returned() {
        let mut widgets = Widgets::default();
        widgets.set_status("b", Some("tests:\n\x1b[32mok\x1b[0m"));
        widgets.set_status("a", Some("main"));
        widgets.set_widget("todo", Some(&["1. a".into(), "2. b".into()]));
        assert_eq!(widgets.changes(), ["1. a", "2. b", "[main | tests: ok]"]);
        widgets.set_status("a", Some("main"));
        assert_eq!(widgets.changes(), [""; 0]);
        widgets.set_widget("todo", None);
        widgets.set_status("b", None);
        assert_eq!(widgets.changes(), ["[main]"]);
        widgets.set_status("a", None);
        assert_eq!(widgets.changes(), [""; 0]);
    }

    #[test]
    fn long_widgets_are_truncated() {
        let mut widgets = Widgets::default();
        let lines: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        widgets.set_widget("w", Some(&lines));
        let changes = widgets.changes();
        assert_eq!(changes.len(), 11);
        assert_eq!(changes[10], "... (widget truncated)");
    }
}
