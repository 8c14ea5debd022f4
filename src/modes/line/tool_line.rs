//! A tool call on one line: its name, the argument that matters, how it ended
//! and how long it took.

use std::time::Duration;

use serde_json::Value;

use super::style::Style;
use super::text::{clean, cut, first_line, one_line};
use crate::ai::message::join_text;
use crate::tools::tool::ToolOutput;

/// Characters of the argument.
const ARGUMENT: usize = 100;
/// Names of arguments that say what a call is about, the best first.
const TELLING: [&str; 8] = [
    "command",
    "path",
    "file_path",
    "file",
    "pattern",
    "query",
    "url",
    "action",
];

/// `* bash: ls -la`
pub fn call(style: Style, name: &str, args: &Value) -> String {
    let argument = match built_in(name, args) {
        Some(text) => cut(&one_line(&text), ARGUMENT),
        None => argument(args),
    };
    let name = clean(name);
    match argument.is_empty() {
        true => format!("* {}", style.bold(&name)),
        false => format!("* {}: {argument}", style.bold(&name)),
    }
}

/// `ok (0.3 s)`
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

/// What a command printed comes before why it failed, so the line that says it
/// is the last one there; other tools have only one.
fn error_line(text: &str) -> String {
    let verdict = text.lines().rev().find(|line| {
        [
            "Command exited with",
            "Command timed out",
            "Command aborted",
        ]
        .iter()
        .any(|start| line.starts_with(start))
    });
    match verdict {
        Some(verdict) => {
            let first = first_line(text);
            let verdict = one_line(verdict);
            match first == verdict || first == "(no output)" {
                true => verdict,
                false => format!("{verdict}: {first}"),
            }
        }
        None => first_line(text),
    }
}

/// Tools that search say what for and where; `None` for others, and where an
/// extension's tool of the same name takes other arguments.
fn built_in(name: &str, args: &Value) -> Option<String> {
    let text = |name: &str| args[name].as_str().filter(|text| !text.is_empty());
    let place = text("path").unwrap_or(".");
    match name {
        "ls" => Some(place.to_owned()),
        "find" => Some(format!("{} in {place}", text("pattern")?)),
        "grep" => {
            let sign = if args["literal"] == true { '"' } else { '/' };
            let only = text("glob").map_or(String::new(), |glob| format!(" ({glob})"));
            Some(format!("{sign}{}{sign} in {place}{only}", text("pattern")?))
        }
        _ => None,
    }
}

fn argument(args: &Value) -> String {
    let Value::Object(members) = args else {
        return String::new();
    };
    let telling = TELLING.iter().find_map(|name| members.get(*name)?.as_str());
    let text = telling.or_else(|| members.values().find_map(Value::as_str));
    let text = match text {
        Some(text) => one_line(text),
        None if members.is_empty() => String::new(),
        None => one_line(&args.to_string()),
    };
    cut(&text, ARGUMENT)
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
    fn the_argument_that_matters() {
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
    fn searches_say_what_for_and_where() {
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
    fn the_first_line_of_an_error() {
        let took = Duration::from_millis(1234);
        let said = |text: &str, is_error| outcome(PLAIN, &ToolOutput::text(text), is_error, took);
        assert_eq!(said("whatever", false), "ok (1.2 s)");
        assert_eq!(
            said("\x1b[31mNo such file\nmore", true),
            "error: No such file (1.2 s)"
        );
        assert_eq!(
            said("boom\nmore\n\nCommand exited with code 3", true),
            "error: Command exited with code 3: boom (1.2 s)"
        );
        assert_eq!(
            said("(no output)\n\nCommand exited with code 1", true),
            "error: Command exited with code 1 (1.2 s)"
        );
        assert_eq!(said("", true), "error (1.2 s)");
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
