//! The commands that the demo understands, and the tool call that each of them is.

use serde_json::{Value, json};

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub tool: String,
    pub arguments: Value,
}

impl Step {
    fn new(tool: &str, arguments: Value) -> Self {
        let tool = tool.to_owned();
        Self { tool, arguments }
    }

    /// Lists a folder in the shell if there is no tool for it.
    pub fn for_tools(self, tools: &[&str]) -> Self {
        if self.tool != "ls" || tools.contains(&"ls") || !tools.contains(&"bash") {
            return self;
        }
        let folder = self.arguments["path"].as_str().unwrap_or(".");
        let command = format!("ls -Ap -- '{}'", folder.replace('\'', r"'\''"));
        Self::new("bash", json!({ "command": command }))
    }
}

/// Texts of more bytes are material, not commands.
const MAX_BYTES: usize = 8_000;

/// Reads one command per line, or several on a line with ", then", ", " or " and " between them.
/// Text that is no command is skipped.
pub(super) fn parse_steps(prompt: &str) -> Vec<Step> {
    let lines = prompt.lines().filter(|_| prompt.len() <= MAX_BYTES);
    lines.flat_map(|line| parse_line(line.trim())).collect()
}

fn parse_line(line: &str) -> Vec<Step> {
    for separator in [", then ", " then ", ", ", " and "] {
        if let Some((first, rest)) = line.split_once(separator)
            && first.matches('`').count() % 2 == 0
            && let (Some(step), rest) = (parse_step(first), parse_line(rest))
            && !rest.is_empty()
        {
            return std::iter::once(step).chain(rest).collect();
        }
    }
    parse_step(line).into_iter().collect()
}

fn parse_step(text: &str) -> Option<Step> {
    let text = text.trim();
    if let Some(command) = text.strip_prefix(['$', '!']) {
        return Some(Step::new("bash", json!({"command": command.trim()})));
    }
    let (verb, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match verb.to_lowercase().as_str() {
        "run" => quoted(rest).map(|command| Step::new("bash", json!({ "command": command }))),
        "list" | "ls" => Some(Step::new("ls", json!({ "path": folder(rest) }))),
        "read" => quoted(rest).map(|path| Step::new("read", json!({ "path": path }))),
        "write" => {
            let (content, path) = rest.rsplit_once(" to ")?;
            let (content, path) = (quoted(content)?, quoted(path)?);
            Some(Step::new(
                "write",
                json!({"path": path, "content": content}),
            ))
        }
        "replace" => {
            let (change, path) = rest.rsplit_once(" in ")?;
            let (old, new) = change.split_once(" with ")?;
            let edit = json!({"oldText": quoted(old)?, "newText": quoted(new)?});
            Some(Step::new(
                "edit",
                json!({"path": quoted(path)?, "edits": [edit]}),
            ))
        }
        "use" | "call" => {
            let rest = rest.strip_prefix("the ").unwrap_or(rest);
            let (tool, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let json = rest.find('{').map_or("{}", |start| &rest[start..]);
            let arguments = serde_json::from_str(json).ok()?;
            (!tool.is_empty()).then(|| Step::new(tool, arguments))
        }
        _ => None,
    }
}

/// Returns the folder of "the files in src", "files here" or "src".
fn folder(text: &str) -> &str {
    let named = text.rsplit_once("in ").map_or(text, |(_, folder)| folder);
    let last = named.split_whitespace().next_back().unwrap_or(".");
    match last.trim_matches('`') {
        "files" | "here" | "folder" | "" => ".",
        folder => folder,
    }
}

/// Returns the text without one pair of quotes, or `None` if nothing is left.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim();
    let inside = ['`', '"', '\''].into_iter().find_map(|quote| {
        let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inside.contains(quote)).then_some(inside)
    });
    let text = inside.unwrap_or(text);
    (!text.is_empty()).then_some(text)
}
