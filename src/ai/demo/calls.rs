//! Chooses the tool and the arguments for a request.

use serde_json::{Map, Value, json};

use super::intent::Wish;

pub(super) type Call = (String, Map<String, Value>);

/// The flags by which [`super::texts`] recognises a listing.
pub(super) const LISTING: &str = "ls -Ap -- ";

/// Returns the call. The error is the name of the missing tool.
pub(super) fn call_for(wish: &Wish, tools: &[&str]) -> Result<Call, String> {
    let direct = direct(wish);
    if tools.contains(&direct.0.as_str()) {
        return Ok(direct);
    }
    match in_shell(wish) {
        Some(command) if tools.contains(&"bash") => Ok(call("bash", json!({"command": command}))),
        _ => Err(direct.0),
    }
}

fn direct(wish: &Wish) -> Call {
    match wish {
        Wish::List { path } => call("ls", json!({"path": path})),
        Wish::Read { path } => call("read", json!({"path": path})),
        Wish::Run { command } => call("bash", json!({"command": command})),
        Wish::Edit { path, old, new } => call(
            "edit",
            json!({"path": path, "edits": [{"oldText": old, "newText": new}]}),
        ),
        Wish::Write { path, content } => call("write", json!({"path": path, "content": content})),
        Wish::Search { text, path } => {
            let mut arguments = json!({"pattern": text, "literal": true});
            if let Some(path) = path {
                arguments["path"] = json!(path);
            }
            call("grep", arguments)
        }
        Wish::FindFiles { pattern } => call("find", json!({"pattern": pattern})),
        Wish::Call { tool, arguments } => call(tool, arguments.clone()),
    }
}

/// Returns a shell command for the request, if there is a safe one.
fn in_shell(wish: &Wish) -> Option<String> {
    match wish {
        Wish::List { path } => Some(format!("{LISTING}{}", quote(path))),
        Wish::Read { path } => Some(format!("cat -- {}", quote(path))),
        Wish::Search { text, path } => Some(format!(
            "grep -rnIF --exclude-dir=.git -e {} -- {}",
            quote(text),
            quote(path.as_deref().unwrap_or("."))
        )),
        Wish::FindFiles { pattern } => Some(format!(
            "find . -path ./.git -prune -o -name {} -print",
            quote(pattern)
        )),
        Wish::Run { .. } | Wish::Edit { .. } | Wish::Write { .. } | Wish::Call { .. } => None,
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
        call_for(&Wish::List { path }, tools)
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
        let wish = Wish::Write {
            path: "a".into(),
            content: "b".into(),
        };
        assert_eq!(call_for(&wish, &["bash"]), Err("write".into()));
        assert_eq!(list(&[]), Err("ls".into()));
    }
}
