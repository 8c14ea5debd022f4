//! The tools that are active at the start, from `--tools` and the setting `defaultTools`.

use crate::startup::config::ToolChoice;

use pi_tools::tool::Tool;

/// Returns whether `name` matches `entry`, in which `*` stands for any characters. An entry has no
/// escapes, unlike a pattern of the setting `permissions`: the names of tools that providers accept
/// have neither `*` nor `\`.
pub(crate) fn matches(entry: &str, name: &str) -> bool {
    let Some((first, rest)) = entry.split_once('*') else {
        return entry == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = name.find(part) else {
            return false;
        };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

impl ToolChoice {
    /// Returns whether a tool of this name may exist in the session.
    pub(crate) fn allows(&self, name: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|entry| matches(entry, name));
        let only = self.only.as_deref().filter(|_| self.no_others);
        only.is_none_or(is_in) && !is_in(&self.except)
    }

    /// Returns the entries of `--tools` that match no tool in `known`.
    pub(crate) fn unknown<'a>(&'a self, known: &[&str]) -> Vec<&'a str> {
        let only = self.only.iter().flatten().map(String::as_str);
        let added = self
            .changes
            .iter()
            .filter_map(|change| change.strip_prefix('+'));
        let mut unknown: Vec<&str> = only.chain(added).collect();
        unknown.retain(|entry| !known.iter().any(|name| matches(entry, name)));
        unknown
    }
}

/// A selection of tools. Plain names replace it; `+name` and `-name` change it.
pub(crate) struct ToolSelection {
    pub names: Vec<String>,
    /// Names that stay inactive even if an extension registers them.
    without: Vec<String>,
    /// Every existing tool is active, because those that are not named were removed.
    takes_all: bool,
}

impl ToolSelection {
    pub fn new(choice: &ToolChoice, setting: Option<&[String]>) -> Self {
        let usual = pi_tools::DEFAULT_ACTIVE.map(str::to_owned);
        let mut selection = Self {
            names: match &choice.only {
                Some(only) => only.clone(),
                None if choice.no_builtin => Vec::new(),
                None => usual.to_vec(),
            },
            without: Vec::new(),
            takes_all: choice.no_others,
        };
        if choice.only.is_none() {
            if let Some(setting) = setting.filter(|_| !choice.no_builtin) {
                selection.change(setting);
            }
            if !choice.changes.is_empty() {
                selection.change(&choice.changes);
            }
        }
        selection
    }

    /// Applies a list in the format of the setting. An empty list selects nothing.
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

    /// Returns whether a tool becomes active when it is registered.
    pub fn takes(&self, tool: &dyn Tool, builtin: bool) -> bool {
        let name = &tool.spec().name;
        let is_named = self.takes_all || self.names.contains(name);
        let is_usual = !builtin && tool.is_active_by_default() && !self.without.contains(name);
        is_named || is_usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_replace_and_signs_change() {
        let after = |lists: &[&[&str]]| {
            let choice = ToolChoice {
                only: Some(vec!["read".to_owned(), "bash".to_owned()]),
                ..ToolChoice::default()
            };
            let mut selection = ToolSelection::new(&choice, None);
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

    #[test]
    fn a_star_stands_for_any_characters() {
        for (entry, names) in [
            ("read", &["read"][..]),
            ("*", &["", "read", "mcp__a__b"]),
            ("mcp__*", &["mcp__", "mcp__a__b"]),
            ("*_file", &["_file", "read_file"]),
            ("a*b*c", &["abc", "abbc", "a_b_c", "abcbc"]),
            ("a**b", &["ab", "axb"]),
            ("a.c", &["a.c"]),
        ] {
            for name in names {
                assert!(matches(entry, name), "{entry} {name}");
            }
        }
        for (entry, name) in [
            ("read", "reads"),
            ("mcp__*", "mcp_a"),
            ("*_file", "_files"),
            ("ab*ba", "aba"),
            ("a*b*c", "acb"),
            ("a.c", "abc"),
            ("", "a"),
        ] {
            assert!(!matches(entry, name), "{entry} {name}");
        }
    }

    #[test]
    fn entries_without_a_tool_are_unknown() {
        let choice = ToolChoice {
            only: Some(["read", "reed", "mcp__*", "*"].map(str::to_owned).to_vec()),
            ..ToolChoice::default()
        };
        assert_eq!(choice.unknown(&["read", "bash"]), ["reed", "mcp__*"]);
        let choice = ToolChoice {
            changes: ["+ls", "+lss", "-cat"].map(str::to_owned).to_vec(),
            ..ToolChoice::default()
        };
        assert_eq!(choice.unknown(&["ls"]), ["lss"]);
    }
}
