//! Which tools a session begins with: what `--tools` and the setting `defaultTools` say.

use crate::tools::tool::Tool;

/// Plain names replace what was there; `+name` and `-name` change it.
pub(super) struct ToolSelection {
    pub names: Vec<String>,
    /// Also if an extension brings them.
    without: Vec<String>,
}

impl ToolSelection {
    pub fn of(names: &[String]) -> Self {
        Self {
            names: names.to_vec(),
            without: Vec::new(),
        }
    }

    /// As a list of the settings has it. An empty one is one of no names.
    pub fn change(&mut self, list: &[String]) {
        let is_change = |word: &&String| word.starts_with(['+', '-']);
        let (changes, plain): (Vec<_>, Vec<_>) = list.iter().partition(is_change);
        if changes.is_empty() || !plain.is_empty() {
            self.names.clear();
        }
        for name in plain {
            self.add(name);
        }
        for change in changes {
            let name = &change[1..];
            match change.starts_with('+') {
                true => self.add(name),
                false => {
                    self.names.retain(|one| one != name);
                    self.without.push(name.to_owned());
                }
            }
        }
    }

    fn add(&mut self, name: &str) {
        self.without.retain(|one| one != name);
        if !self.names.iter().any(|one| one == name) {
            self.names.push(name.to_owned());
        }
    }

    /// Whether a tool of an extension is active when it appears.
    pub fn takes(&self, tool: &dyn Tool) -> bool {
        let name = &tool.spec().name;
        let is_named = self.names.contains(name);
        is_named || (tool.is_active_by_default() && !self.without.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_replace_and_signs_change() {
        let after = |lists: &[&[&str]]| {
            let mut selection = ToolSelection::of(&["read".to_owned(), "bash".to_owned()]);
            for list in lists {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                selection.change(&list);
            }
            (selection.names.join(" "), selection.without.join(" "))
        };
        let is = |names: &str, without: &str| (names.to_owned(), without.to_owned());
        assert_eq!(after(&[&["ls", "grep", "ls"]]), is("ls grep", ""));
        assert_eq!(after(&[&["+ls", "-bash"]]), is("read ls", "bash"));
        assert_eq!(after(&[&["-bash"], &["+bash"]]), is("read bash", ""));
        assert_eq!(after(&[&["ls", "+read", "-ls"]]), is("read", "ls"));
        assert_eq!(after(&[&[]]), is("", ""));
    }
}
