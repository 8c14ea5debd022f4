//! Renders a tool call in one line: its name, its most important argument, its outcome and its
//! duration.

use std::time::Duration;

use serde_json::Value;

use super::sanitize::{first_line, one_line, sanitize, truncate};
use super::style::Style;
use pi_ai::message::join_text;
use pi_tools::tool::ToolOutput;

/// Maximum characters of the argument.
const MAX_ARGUMENT_CHARS: usize = 100;
/// Names of arguments that are shown, the most important first.
const MAIN_ARGUMENTS: [&str; 8] = [
    "command",
    "path",
    "file_path",
    "file",
    "pattern",
    "query",
    "url",
    "action",
];

/// Renders a call, such as `* bash: ls -la`.
pub fn call(style: Style, name: &str, args: &Value) -> String {
    let argument = match built_in(name, args) {
        Some(text) => truncate(&one_line(&text), MAX_ARGUMENT_CHARS),
        None => argument(args),
    };
    let name = sanitize(name);
    match argument.is_empty() {
        true => format!("* {}", style.bold(&name)),
        false => format!("* {}: {argument}", style.bold(&name)),
    }
}

/// Renders an outcome, such as `ok (0.3 s)`.
pub fn outcome(style: Style, result: &ToolOutput, is_error: bool, took: Duration) -> String {
    let time = style.dim(&format!("({:.1} s)", took.as_secs_f64()));
    if !is_error {
        return format!("{} {time}", style.green("ok"));
    }
    let text = join_text(&result.content);
    let why = error_line(&text);
    match why.is_empty() {
        true => format!("{} {time}", style.red("error")),
        false => format!("{} {time}", style.red(&format!("error: {why}"))),
    }
}

/// Returns the line of an error that states the reason. After the output of a command this is
/// the last line; the errors of other tools have only one.
fn error_line(text: &str) -> String {
    let reason = text.lines().rev().find(|line| {
        [
            "Command exited with",
            "Command timed out",
            "Command aborted",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    });
    match reason {
        Some(reason) => {
            let first = first_line(text);
            let reason = one_line(reason);
            match first == reason || first == "(no output)" {
                true => reason,
                false => format!("{reason}: {first}"),
            }
        }
        None => first_line(text),
    }
}

/// Renders the arguments of the search tools: pattern and folder. `None` for other tools, and if
/// an extension's tool of the same name takes other arguments.
fn built_in(name: &str, args: &Value) -> Option<String> {
    let text = |name: &str| args[name].as_str().filter(|text| !text.is_empty());
    let folder = text("path").unwrap_or(".");
    match name {
        "ls" => Some(folder.to_owned()),
        "find" => Some(format!("{} in {folder}", text("pattern")?)),
        "grep" => {
            let sign = if args["literal"] == true { '"' } else { '/' };
            let only = text("glob").map_or(String::new(), |glob| format!(" ({glob})"));
            Some(format!(
                "{sign}{}{sign} in {folder}{only}",
                text("pattern")?
            ))
        }
        _ => None,
    }
}

fn argument(args: &Value) -> String {
    let Value::Object(members) = args else {
        return String::new();
    };
    let main = MAIN_ARGUMENTS
        .iter()
        .find_map(|name| members.get(*name)?.as_str());
    let text = main.or_else(|| members.values().find_map(Value::as_str));
    let text = match text {
        Some(text) => one_line(text),
        None if members.is_empty() => String::new(),
        None => one_line(&args.to_string()),
    };
    truncate(&text, MAX_ARGUMENT_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLAIN: Style = Style {
        colours: false,
        dumb: true,
    };

    #[test]
    fn the_main_argument_is_shown() {
        let cases = [
            (json!({"timeout": 3, "command": "ls\n -la"}), "* x: ls -la"),
            (json!({"content": "…", "path": "a.txt"}), "* x: a.txt"),
            (json!({"n": 1, "who": "me"}), "* x: me"),
            (json!({"n": 1}), "* x: {\"n\":1}"),
            (json!({}), "* x"),
            (json!(null), "* x"),
        ];
        for (args, expected) in cases {
            assert_eq!(call(PLAIN, "x", &args), expected);
        }
        let long = call(PLAIN, "x", &json!({ "command": "y".repeat(500) }));
        assert_eq!(long.len(), "* x: ".len() + 100 + "...".len());
    }

    #[test]
    fn searches_show_pattern_and_folder() {
        let cases = [
            ("ls", json!({}), "* ls: ."),
            ("ls", json!({"path": "src", "limit": 3}), "* ls: src"),
            ("find", json!({"pattern": "*.rs"}), "* find: *.rs in ."),
            (
                "grep",
                json!({"path": "src", "pattern": "fn\n x", "glob": "*.rs"}),
                "* grep: /fn x/ in src (*.rs)",
            ),
            (
                "grep",
                json!({"pattern": "a.b", "literal": true}),
                "* grep: \"a.b\" in .",
            ),
            ("grep", json!({"path": "x"}), "* grep: x"),
            ("grep", json!(null), "* grep"),
        ];
        for (name, args, expected) in cases {
            assert_eq!(call(PLAIN, name, &args), expected);
        }
    }

    #[test]
    fn an_error_shows_its_reason() {
        let took = Duration::from_millis(1234);
        let rendered =
            |text: &str, is_error| outcome(PLAIN, &ToolOutput::text(text), is_error, took);
        assert_eq!(rendered("whatever", false), "ok (1.2 s)");
        assert_eq!(
            rendered("\x1b[31mNo such file\nmore", true),
            "error: No such file (1.2 s)"
        );
        assert_eq!(
            rendered("boom\nmore\n\nCommand exited with code 3", true),
            "error: Command exited with code 3: boom (1.2 s)"
        );
        assert_eq!(
            rendered("(no output)\n\nCommand exited with code 1", true),
            "error: Command exited with code 1 (1.2 s)"
        );
        assert_eq!(rendered("", true), "error (1.2 s)");
    }

    #[test]
    fn colours_mark_names_and_outcomes() {
        let style = Style {
            colours: true,
            dumb: false,
        };
        assert_eq!(call(style, "x", &json!({})), "* \x1b[1mx\x1b[0m");
        let ended = outcome(style, &ToolOutput::text(""), false, Duration::ZERO);
        assert_eq!(ended, "\x1b[32mok\x1b[0m \x1b[2m(0.0 s)\x1b[0m");
    }
}
