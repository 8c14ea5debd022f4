//! The texts that the demo writes before, after and without tool calls.

use super::calls::LISTING;
use super::intent::Intent;
use crate::message::{ContentBlock, ToolCall, ToolResultMessage, join_text};

/// Lines of a file that are shown.
const FIRST_LINES: usize = 10;
/// Lines of a command's output that are shown.
const OUTPUT_LINES: usize = 40;
/// Names of a listing that are shown.
const NAMES: usize = 30;

/// Describes the demo and its abilities; the answer to every prompt that it does not understand.
pub(super) fn introduction(tools: &[&str]) -> String {
    let mut text = String::from(
        "Hello! I am pi's built-in demo: not a language model, just a few patterns that need no \
         key and no network. I show how the agent works by calling real tools in this folder. Try:\n\n\
         - list the files and read README.md\n\
         - run `cargo --version`\n\
         - find \"TODO\" in src\n\
         - write hello world to hello.txt\n\
         - replace hello with goodbye in hello.txt\n",
    );
    let known = ["read", "bash", "edit", "write", "grep", "find", "ls"];
    let others: Vec<&&str> = tools.iter().filter(|tool| !known.contains(tool)).collect();
    if let Some(tool) = others.first() {
        text.push_str(&format!(
            "- use the {tool} tool with {{}} (or another one, with its arguments as JSON)\n"
        ));
    }
    text.push_str(
        "\nFor a real model, set an API key such as ANTHROPIC_API_KEY or OPENAI_API_KEY.",
    );
    text
}

/// Completes the sentence "I'll …".
pub(super) fn describe_intent(intent: &Intent) -> String {
    match intent {
        Intent::List { path } if path == "." => "list the files here".to_owned(),
        Intent::List { path } => format!("list the files in {}", code(path)),
        Intent::Read { path } => format!("read {}", code(path)),
        Intent::Run { command } => format!("run {}", code(command)),
        Intent::Edit { path, .. } => format!("edit {}", code(path)),
        Intent::Write { path, .. } => format!("write {}", code(path)),
        Intent::Search { text, .. } => format!("search for {}", code(text)),
        Intent::FindFiles { pattern } => format!("look for files named {}", code(pattern)),
        Intent::Call { tool, .. } => format!("call the {} tool", code(tool)),
    }
}

pub(super) fn missing(intent: &Intent, tool: &str) -> String {
    format!(
        "To {} I would need the {} tool, which I was not given.",
        describe_intent(intent),
        code(tool)
    )
}

/// Joins texts: "a", "a and b", "a, b and c".
pub(super) fn join_list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Answers the request for a summary that compaction sends with the whole conversation as text.
pub(super) fn summary(request: &str) -> Option<String> {
    let (_, rest) = request.split_once("<conversation>")?;
    let (conversation, _) = rest.split_once("</conversation>")?;
    let said = conversation
        .lines()
        .filter_map(|line| line.strip_prefix("[User]: "));
    let said: Vec<String> = said.map(|line| format!("- {line}")).collect();
    Some(format!(
        "## Goal\nA demonstration of the agent.\n\n## What the user asked\n{}",
        said.join("\n")
    ))
}

pub(super) fn from_results(results: &[(&ToolCall, &ToolResultMessage)]) -> String {
    let answers = results.iter().map(|(call, result)| one(call, result));
    let answers: Vec<String> = answers.collect();
    answers.join("\n\n")
}

fn one(call: &ToolCall, result: &ToolResultMessage) -> String {
    let text = join_text(&result.content);
    let text = text.trim_end();
    let argument = |name: &str| call.arguments[name].as_str().unwrap_or_default();
    if result.is_error {
        return failure(call, text);
    }
    match call.name.as_str() {
        "ls" => listing(argument("path"), text),
        "bash" => match argument("command").strip_prefix(LISTING) {
            Some(path) => listing(path.trim_matches('\''), text),
            None => output(argument("command"), text),
        },
        "read" => file(argument("path"), result, text),
        "grep" => matches(argument("pattern"), text),
        "edit" | "write" => format!("Done. {text}"),
        name => format!("{} says:\n\n{}", code(name), fenced(text, OUTPUT_LINES)),
    }
}

/// Describes a failed call. If an extension or the user blocked the call, the text has the
/// reason.
fn failure(call: &ToolCall, text: &str) -> String {
    let subject = ["command", "path", "pattern"]
        .iter()
        .find_map(|name| call.arguments[*name].as_str());
    let what = match subject {
        Some(subject) => format!("{} on {}", code(&call.name), code(subject)),
        None => code(&call.name),
    };
    format!(
        "That did not work: {what} failed or was blocked.\n\n{}",
        fenced(text, OUTPUT_LINES)
    )
}

fn listing(path: &str, text: &str) -> String {
    let place = match path {
        "" | "." => "This folder".to_owned(),
        path => code(path),
    };
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with(['[', '(']);
    let names: Vec<&str> = text.lines().filter(is_name).collect();
    let folders = names.iter().filter(|name| name.ends_with('/')).count();
    let files = names.len() - folders;
    if names.is_empty() {
        return format!("{place} is empty.");
    }
    let shown: Vec<String> = names.iter().take(NAMES).map(|name| code(name)).collect();
    let more = match names.len().saturating_sub(NAMES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!(
        "{place} has {} and {}: {}{more}.",
        counted(folders, "folder"),
        counted(files, "file"),
        shown.join(", ")
    )
}

fn output(command: &str, text: &str) -> String {
    match text {
        "" | "(no output)" => format!("{} finished and printed nothing.", code(command)),
        text => format!(
            "{} printed:\n\n{}",
            code(command),
            fenced(text, OUTPUT_LINES)
        ),
    }
}

fn file(path: &str, result: &ToolResultMessage, text: &str) -> String {
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image(_));
    if result.content.iter().any(is_image) {
        return format!("{} is a picture, and I cannot see pictures.", code(path));
    }
    let lines = text.lines().count();
    match lines {
        0 => format!("{} is empty.", code(path)),
        lines if lines <= FIRST_LINES => {
            format!("{} says:\n\n{}", code(path), fenced(text, FIRST_LINES))
        }
        _ => format!("{} begins:\n\n{}", code(path), fenced(text, FIRST_LINES)),
    }
}

fn matches(pattern: &str, text: &str) -> String {
    if text.starts_with("No matches found") || text.is_empty() {
        return format!("I found no {}.", code(pattern));
    }
    format!(
        "I found {}:\n\n{}",
        code(pattern),
        fenced(text, OUTPUT_LINES)
    )
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Formats any text as inline code.
fn code(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = if text.lines().count() > 1 {
        format!("{line} …")
    } else {
        line.to_owned()
    };
    if line.contains('`') {
        format!("`` {line} ``")
    } else {
        format!("`{line}`")
    }
}

/// Formats the first lines of a text as a code block with a fence that the text cannot close.
fn fenced(text: &str, limit: usize) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines[..lines.len().min(limit)].join("\n");
    let more = match lines.len().saturating_sub(limit) {
        0 => String::new(),
        1 => "\n\n(1 more line)".to_owned(),
        more => format!("\n\n({more} more lines)"),
    };
    format!("{fence}\n{shown}\n{fence}{more}")
}
