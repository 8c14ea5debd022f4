//! Parses one rule: `Tool` or `Tool(pattern)`.

use std::fmt;

use crate::paths::PathPattern;
use crate::pattern::CommandPattern;

/// Names that other agents have for built-in tools, each with the name in pi.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("glob", "find"),
    ("multiedit", "edit"),
    ("notebookedit", "edit"),
    ("shell", "bash"),
    ("powershell", "bash"),
];

/// Built-in tools that read files. The pattern of their rules is a path.
const READING: [&str; 4] = ["read", "grep", "find", "ls"];
/// Built-in tools that change files. The pattern of their rules is a path.
const WRITING: [&str; 2] = ["write", "edit"];

/// The calls that a rule is about.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// All calls of tools whose name matches; `*` is any text.
    Tool(String),
    Command(CommandPattern),
    /// Reading a file, with every tool.
    Read(PathPattern),
    /// Changing a file, with every tool.
    Write(PathPattern),
    /// The value of a member of the input, or any text in it.
    Member {
        tool: String,
        /// The names on the way to the member, with dots between them.
        member: Option<String>,
        pattern: String,
    },
}

/// A rule with its text.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    pub(crate) subject: Subject,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule {text:?} cannot be used: {reason}")]
pub struct RuleError {
    text: String,
    reason: String,
}

impl Rule {
    /// Parses a rule. Fails if the name of the tool or the pattern cannot be read.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let subject = parse(text.trim()).map_err(|reason| RuleError {
            text: text.to_owned(),
            reason,
        })?;
        Ok(Self {
            text: text.trim().to_owned(),
            subject,
        })
    }

    /// Returns whether the rule names one call only, without wildcards.
    pub(crate) fn is_exact(&self) -> bool {
        match &self.subject {
            Subject::Tool(_) => false,
            Subject::Command(pattern) => pattern.is_exact(),
            Subject::Read(pattern) | Subject::Write(pattern) => pattern.is_exact(),
            Subject::Member { pattern, .. } => !has_star(pattern),
        }
    }
}

fn parse(text: &str) -> Result<Subject, String> {
    let Some((name, rest)) = text.split_once('(') else {
        return Ok(Subject::Tool(tool_name(text)?));
    };
    let pattern = rest
        .strip_suffix(')')
        .ok_or("the closing parenthesis is missing")?;
    let tool = tool_name(name.trim())?;
    if pattern.trim().is_empty() {
        return Err("the pattern is empty; without parentheses every call matches".into());
    }
    if pattern.trim() == "*" {
        return Ok(Subject::Tool(tool));
    }
    if tool == "bash" {
        return CommandPattern::parse(pattern).map(Subject::Command);
    }
    if READING.contains(&tool.as_str()) {
        return PathPattern::parse(pattern.trim()).map(Subject::Read);
    }
    if WRITING.contains(&tool.as_str()) {
        return PathPattern::parse(pattern.trim()).map(Subject::Write);
    }
    let is_name = |char: char| char.is_alphanumeric() || "_-.$".contains(char);
    let (member, pattern) = match pattern.split_once(':') {
        Some((member, rest)) if !member.is_empty() && member.chars().all(is_name) => {
            // An address, such as https://…, is no member.
            if rest.starts_with("//") {
                (None, pattern)
            } else {
                (Some(member.to_owned()), rest.trim_start())
            }
        }
        _ => (None, pattern),
    };
    Ok(Subject::Member {
        tool,
        member,
        pattern: pattern.to_owned(),
    })
}

/// Returns whether the tool is built in, so that its rules have a command or a path as pattern.
pub(crate) fn is_built_in(tool: &str) -> bool {
    tool == "bash" || READING.contains(&tool) || WRITING.contains(&tool)
}

/// Reads the name of a tool. Returns pi's name for names that other agents have for built-in tools.
fn tool_name(name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("the name of the tool is missing".into());
    }
    if let Some(char) = name
        .chars()
        .find(|it| it.is_whitespace() || ")(,\"'".contains(*it))
    {
        return Err(format!("{char:?} is in the name of the tool"));
    }
    let small = name.to_lowercase();
    if is_built_in(&small) {
        return Ok(small);
    }
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == small);
    Ok(other.map_or_else(|| name.to_owned(), |(_, tool)| (*tool).to_owned()))
}

/// Returns whether the name of a tool matches. `mcp__server` means all tools of the server.
pub(crate) fn name_matches(pattern: &str, tool: &str) -> bool {
    let is_server = pattern
        .strip_prefix("mcp__")
        .is_some_and(|server| !server.contains("__") && !server.contains('*'));
    text_matches(pattern, tool)
        || is_server
            && tool
                .strip_prefix(pattern)
                .is_some_and(|it| it.starts_with("__"))
}

fn has_star(pattern: &str) -> bool {
    pattern.replace("\\*", "").contains('*')
}

/// Returns whether a text matches a pattern, in which `*` stands for any text, `\*` for a star and
/// `\\` for a backslash. The options that select tools have no escapes, because names of tools have
/// neither character, and match their `*` on their own.
pub(crate) fn text_matches(pattern: &str, text: &str) -> bool {
    // The parts between the stars.
    let mut parts = vec![String::new()];
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '*' => parts.push(String::new()),
            '\\' if chars.as_str().starts_with(['*', '\\']) => {
                parts.last_mut().expect("there is one").extend(chars.next());
            }
            char => parts.last_mut().expect("there is one").push(char),
        }
    }
    let (last, first) = (parts.len() - 1, &parts[0]);
    if last == 0 {
        return text == first;
    }
    let Some(mut rest) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in &parts[1..last] {
        match rest.find(part.as_str()) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(parts[last].as_str())
}

/// Writes a text so that a pattern means exactly this text.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('*', "\\*")
}
