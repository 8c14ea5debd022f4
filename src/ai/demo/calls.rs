//! Chooses the tool and the arguments for a request.

use serde_json::{Map, Value, json};

use super::intent::Intent;

pub(super) type Call = (String, Map<String, Value>);

/// The flags by which [`super::texts`] recognises a listing.
pub(super) const LISTING: &str = "ls -Ap -- ";

/// Returns the call. The error is the name of the missing tool.
pub(super) fn call_for(intent: &Intent, tools: &[&str]) -> Result<Call, String> {
    let direct = direct(intent);
    if tools.contains(&direct.0.as_str()) {
        return Ok(direct);
    }
    match in_shell(intent) {
        Some(command) if tools.contains(&"bash") => Ok(call("bash", json!({"command": command}))),
        _ => Err(direct.0),
    }
}

fn direct(intent: &Intent) -> Call {
    match intent {
        Intent::List { path } => call("ls", json!({"path": path})),
        Intent::Read { path } => call("read", json!({"path": path})),
        Intent::Run { command } => call("bash", json!({"command": command})),
        Intent::Edit { path, old, new } => call(
            "edit",
            json!({"path": path, "edits": [{"oldText": old, "newText": new}]}),
        ),
        Intent::Write { path, content } => call("write", json!({"path": path, "content": content})),
        Intent::Search { text, path } => {
            let mut arguments = json!({"pattern": text, "literal": true});
            if let Some(path) = path {
                arguments["path"] = json!(path);
            }
            call("grep", arguments)
        }
        Intent::FindFiles { pattern } => call("find", json!({"pattern": pattern})),
        Intent::Call { tool, arguments } => call(tool, arguments.clone()),
    }
}

/// Returns a shell command for the request, if there is a safe one.
fn in_shell(intent: &Intent) -> Option<String> {
    match intent {
        Intent::List { path } => Some(format!("{LISTING}{}", quote(path))),
        Intent::Read { path } => Some(format!("cat -- {}", quote(path))),
        Intent::Search { text, path } => Some(format!(
            "grep -rnIF --exclude-dir=.git -e {} -- {}",
            quote(text),
            quote(path.as_deref().unwrap_or("."))
        )),
        Intent::FindFiles { pattern } => Some(format!(
            "find . -path ./.git -prune -o -name {} -print",
            quote(pattern)
        )),
        Intent::Run { .. } | Intent::Edit { .. } | Intent::Write { .. } | Intent::Call { .. } => {
            None
        }
    }
}

fn call(tool: &str, arguments: Value) -> Call {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    (tool.to_owned(), arguments)
}

/// Quotes any text as one word of a shell command.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &[&str]) -> Result<Call, String> {
        let path = "it's; rm -rf x".to_owned();
        call_for(&Intent::List { path }, tools)
    }

    #[test]
    fn the_right_tool_is_preferred_to_the_shell() {
        assert_eq!(
            list(&["bash", "ls"]),
            Ok(call("ls", json!({"path": "it's; rm -rf x"})))
        );
    }

    #[test]
    fn a_shell_gets_names_as_one_word() {
        assert_eq!(
            list(&["bash"]),
            Ok(call(
                "bash",
                json!({"command": r"ls -Ap -- 'it'\''s; rm -rf x'"})
            ))
        );
    }

    #[test]
    fn files_are_not_changed_through_a_shell() {
        let intent = Intent::Write {
            path: "a".into(),
            content: "b".into(),
        };
        assert_eq!(call_for(&intent, &["bash"]), Err("write".into()));
        assert_eq!(list(&[]), Err("ls".into()));
    }
}
