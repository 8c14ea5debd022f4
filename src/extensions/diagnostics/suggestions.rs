//! Suggestions for members of `pi` or `ctx` that do not exist. Packages test for members
//! before they call them, so no placeholder can exist, and V8 only reports "is not a
//! function".

use pi_base::nearest;

struct Group {
    /// Name of the object in the documentation.
    name: &'static str,
    members: &'static [&'static str],
}

const PI: Group = Group {
    name: "pi",
    members: &[
        "appendEntry",
        "events",
        "exec",
        "getActiveTools",
        "getAllTools",
        "getCommands",
        "getFlag",
        "getSessionName",
        "getSettings",
        "getThinkingLevel",
        "on",
        "registerCommand",
        "registerEntryRenderer",
        "registerFlag",
        "registerMarkdownTransformer",
        "registerMessageRenderer",
        "registerProvider",
        "registerShortcut",
        "registerTool",
        "registerToolRenderer",
        "sendMessage",
        "sendUserMessage",
        "setActiveTools",
        "setLabel",
        "setModel",
        "setSessionName",
        "setThinkingLevel",
        "unregisterProvider",
        "watch",
    ],
};
const CTX: Group = Group {
    name: "ctx",
    members: &[
        "abort",
        "compact",
        "cwd",
        "getContextUsage",
        "getSystemPrompt",
        "hasPendingMessages",
        "hasUI",
        "isIdle",
        "isProjectTrusted",
        "mode",
        "model",
        "modelRegistry",
        "scopedModels",
        "sessionManager",
        "shutdown",
        "signal",
        "thinkingLevel",
        "ui",
    ],
};
const COMMAND: Group = Group {
    name: "ctx of commands",
    members: &[
        "fork",
        "getSystemPromptOptions",
        "navigateTree",
        "newSession",
        "reload",
        "switchSession",
        "waitForIdle",
    ],
};
const UI: Group = Group {
    name: "ctx.ui",
    members: &[
        "addAutocompleteProvider",
        "confirm",
        "custom",
        "editor",
        "getAllThemes",
        "getEditorComponent",
        "getEditorText",
        "getTheme",
        "getToolsExpanded",
        "input",
        "notify",
        "onTerminalInput",
        "pasteToEditor",
        "select",
        "setEditorComponent",
        "setEditorText",
        "setFooter",
        "setHeader",
        "setHiddenThinkingLabel",
        "setStatus",
        "setTheme",
        "setTitle",
        "setToolsExpanded",
        "setWidget",
        "setWorkingIndicator",
        "setWorkingMessage",
        "setWorkingVisible",
        "theme",
    ],
};
const SESSION: Group = Group {
    name: "ctx.sessionManager",
    members: &[
        "buildContextEntries",
        "buildSessionContext",
        "getBranch",
        "getChildren",
        "getCwd",
        "getEntries",
        "getEntry",
        "getHeader",
        "getLabel",
        "getLeafEntry",
        "getLeafId",
        "getSessionDir",
        "getSessionFile",
        "getSessionId",
        "getSessionName",
        "getTree",
        "isPersisted",
    ],
};

const GROUPS: [&Group; 5] = [&PI, &CTX, &COMMAND, &UI, &SESSION];

/// Returns a suggestion for V8's message about a call, and where in the text to insert it.
/// Does not use a regular expression, because compiling one takes longer than the rest.
pub(crate) fn suggest(text: &str) -> Option<(usize, String)> {
    let absent = subjects_of(text, " is not defined").find_map(|(named, end)| {
        let suggestion = match named {
            "pi" => "it is the argument of the exported function: `export default (pi) => { … }`",
            "ctx" => {
                "it is the second argument of handlers, and the last one of commands and tools"
            }
            _ => return None,
        };
        Some((end, suggestion.to_owned()))
    });
    absent.or_else(|| {
        subjects_of(text, " is not a function").find_map(|(named, end)| {
            let (path, name) = named.rsplit_once('.')?;
            let receiver = path.rsplit('.').next().unwrap_or(path);
            Some((end, suggest_member(receiver, name)?))
        })
    })
}

/// Returns the names before `verb` in the text, each with the position after the verb.
fn subjects_of<'a>(text: &'a str, verb: &'a str) -> impl Iterator<Item = (&'a str, usize)> {
    let is_named = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    text.match_indices(verb).map(move |(at, _)| {
        let named = text[..at].rsplit(|c| !is_named(c)).next();
        (named.unwrap_or_default(), at + verb.len())
    })
}

/// Returns a suggestion for a member that `receiver` does not have.
fn suggest_member(receiver: &str, name: &str) -> Option<String> {
    let own = match receiver {
        "pi" | "api" => &PI,
        "ui" => &UI,
        "sessionManager" => &SESSION,
        "ctx" | "context" => &CTX,
        _ => return None,
    };
    let has = |group: &&&Group| group.members.contains(&name);
    if let Some(group) = GROUPS.iter().find(has) {
        return Some(match group.name == COMMAND.name {
            true => format!("only the `ctx` of commands has {name}"),
            false => format!("`{}.{name}` is meant", group.name),
        });
    }
    let nearest = nearest(name, own.members)?;
    Some(format!("is `{}.{nearest}` meant?", own.name))
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn missing_members_get_suggestions() {
        for (text, message) in [
            (
                "TypeError: pi.registerComand is not a function",
                "is `pi.registerCommand` meant?",
            ),
            (
                "ctx.ui.notfy is not a function",
                "is `ctx.ui.notify` meant?",
            ),
            ("ctx.notify is not a function", "`ctx.ui.notify` is meant"),
            ("pi.notify is not a function", "`ctx.ui.notify` is meant"),
            (
                "(intermediate value).ui.notfy is not a function",
                "is `ctx.ui.notify` meant?",
            ),
            (
                "ctx.sendMessage is not a function",
                "`pi.sendMessage` is meant",
            ),
            (
                "ctx.newSession is not a function",
                "only the `ctx` of commands has newSession",
            ),
            (
                "ReferenceError: pi is not defined",
                "it is the argument of the exported function: `export default (pi) => { … }`",
            ),
        ] {
            let suggestion = suggest(text).map(|(_, suggestion)| suggestion);
            assert_eq!(suggestion.as_deref(), Some(message), "{text}");
        }
        for text in [
            "text.notfy is not a function",
            "pi.xyz is not a function",
            "myapi.registerComand is not a function",
            "api is not defined",
        ] {
            assert_eq!(suggest(text), None, "{text}");
        }
    }

    #[test]
    fn groups_match_the_documentation() {
        let page = include_str!("../../../docs/extensions/api.md");
        let word = Regex::new(r"`(\w+)").unwrap();
        for group in GROUPS {
            let title = match group.name == COMMAND.name {
                true => "\n## `ctx` of commands\n".to_owned(),
                false => format!("\n## `{}`\n", group.name),
            };
            let (_, section) = page.split_once(&title).expect("a section");
            let section = section.split("\n## ").next().unwrap();
            let rows = section.lines().filter(|line| line.starts_with("| `"));
            let cells = rows.filter_map(|row| row.split(" | ").next());
            let mut documented: Vec<&str> = cells
                .flat_map(|cell| word.captures_iter(cell))
                .map(|name| name.get(1).unwrap().as_str())
                .collect();
            documented.sort_unstable();
            assert_eq!(documented, group.members, "{}", group.name);
        }
    }
}
