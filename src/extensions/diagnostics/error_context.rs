//! Adds context to an extension's error for its author: the extension's name and version,
//! the source position and the code around it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pi_base::{regular_file, utf16};
use regex::Regex;
use serde::Deserialize;
use unicode_width::UnicodeWidthStr;

use super::unsupported_api;
use pi_agent::event::{ExtensionError, ExtensionName, Location};

/// Lines shown around the position.
const LINES_BEFORE: u32 = 2;
const LINES_AFTER: u32 = 1;
/// Maximum width of a line, in characters; the rest of compiled code is not useful.
const MAX_LINE_WIDTH: usize = 120;
/// Larger files were not written by hand.
const MAX_SOURCE: u64 = 4 << 20;

/// Adds all context that can be found. `path` is the extension's file, if known.
pub fn explain(error: &mut ExtensionError, path: Option<&str>) {
    let path = path.unwrap_or(&error.extension_path);
    // Callers may pass an error that was explained before.
    let is_explained = error.details.extension.is_some();
    if !is_explained && Path::new(path).is_absolute() {
        error.details.extension = Some(extension_name(Path::new(path)));
    }
    if error.details.location.is_none() {
        // A stack that the message quotes belongs to another error.
        let whole = error.stack_or_message();
        let stack = whole
            .split_once(&error.error)
            .map_or("", |(_, stack)| stack);
        error.details.location = find_location(stack).or_else(|| find_location(whole));
    }
    if !is_explained {
        let reason = |text: &String| unsupported_api::explain_missing_member(text).into_owned();
        error.details.stack = error.details.stack.as_ref().map(reason);
        error.error = reason(&error.error);
    }
    // The parser includes the code of a syntax error already.
    let is_shown = error
        .stack_or_message()
        .lines()
        .any(|line| line.trim() == "|");
    if error.details.code_frame.is_none() && !is_shown {
        error.details.code_frame = error.details.location.as_ref().and_then(code_frame);
    }
}

/// Returns the first position in a text that is outside `node_modules`, else the first
/// position.
pub fn find_location(text: &str) -> Option<Location> {
    static POSITION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)(?:\((?:imported at )?|^ *at (?:async )?)((?:/|[A-Za-z]:\\)[^\n]*?):(\d+):(\d+)\)?$")
            .expect("the pattern is constant and tested")
    });
    let positions = POSITION.captures_iter(text).filter_map(|found| {
        // A missing file stands before the file that imports it.
        let file = found[1].rsplit("(imported at ").next()?;
        // A message may have such a parenthesis, too: "/(/: Unterminated group
        // (/p/a.js:1:2)".
        let file = match file.rsplit_once(" (") {
            Some((_, file)) if file.starts_with('/') && !Path::new(&found[1]).exists() => file,
            _ => file,
        };
        Some(Location {
            file: file.to_owned(),
            line: found[2].parse().ok()?,
            column: found[3].parse().ok()?,
        })
    });
    // Folder names may contain parentheses. Code from `eval` has two positions in a line,
    // and neither is a line of the file.
    let positions: Vec<Location> = positions
        .filter(|position| !position.file.contains("), "))
        .collect();
    let own = positions
        .iter()
        .find(|position| !position.file.contains("/node_modules/"));
    own.or(positions.first()).cloned()
}

/// Returns the line at the position with a mark below it, and the lines around it.
pub fn code_frame(position: &Location) -> Option<String> {
    let about = fs::metadata(&position.file).ok()?;
    if !about.is_file() || about.len() > MAX_SOURCE {
        return None;
    }
    let source = regular_file::read(&position.file).ok()?;
    format_frame(&String::from_utf8_lossy(&source), position)
}

fn format_frame(source: &str, position: &Location) -> Option<String> {
    let first = position.line.saturating_sub(LINES_BEFORE).max(1);
    let last = position.line.saturating_add(LINES_AFTER);
    let digits = last.to_string().len();
    let mut frame = String::new();
    let mut found = false;
    for (number, line) in (1..)
        .zip(source.lines())
        .take(last as usize)
        .skip(first as usize - 1)
    {
        let here = number == position.line;
        // V8 counts UTF-16 code units.
        let column = utf16::byte_index(line, position.column.saturating_sub(1) as usize);
        let (line, column) = excerpt(line, if here { column } else { 0 });
        let mark = if here { '>' } else { ' ' };
        frame.push_str(format!("{mark} {number:>digits$} | {line}").trim_end());
        frame.push('\n');
        if here {
            found = true;
            let before = &line[..column];
            let blank: String = match before.contains('\t') {
                true => before
                    .chars()
                    .map(|c| if c == '\t' { c } else { ' ' })
                    .collect(),
                false => " ".repeat(before.width()),
            };
            frame.push_str(&format!("  {:>digits$} | {blank}^\n", ""));
        }
    }
    found.then(|| frame.trim_end_matches('\n').to_owned())
}

/// Returns at most [`MAX_LINE_WIDTH`] characters around the byte `at`, and the byte's new
/// index.
fn excerpt(line: &str, at: usize) -> (&str, usize) {
    let starts: Vec<usize> = line.char_indices().map(|(byte, _)| byte).collect();
    if starts.len() <= MAX_LINE_WIDTH {
        return (line, at);
    }
    let character = starts.partition_point(|start| *start < at);
    let first = character
        .saturating_sub(MAX_LINE_WIDTH / 2)
        .min(starts.len() - MAX_LINE_WIDTH);
    let from = starts[first];
    let to = starts
        .get(first + MAX_LINE_WIDTH)
        .copied()
        .unwrap_or(line.len());
    (&line[from..to], at.clamp(from, to) - from)
}

#[derive(Deserialize)]
struct Manifest {
    name: Option<String>,
    version: Option<String>,
}

/// Returns name and version of the file's package; without a package, the file's name.
pub fn extension_name(path: &Path) -> ExtensionName {
    let folders = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !is_extensions_folder(folder));
    let manifest = folders
        .map(|folder| folder.join("package.json"))
        .find_map(read_manifest);
    if let Some(Manifest {
        name: Some(name),
        version,
    }) = manifest
    {
        return ExtensionName { name, version };
    }
    let stem = |path: &Path| {
        path.file_stem()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let name = match stem(path) {
        Some(name) if name == "index" => path.parent().and_then(stem).unwrap_or(name),
        Some(name) => name,
        None => path.display().to_string(),
    };
    ExtensionName {
        name,
        version: None,
    }
}

/// A `package.json` in this folder, or above, does not belong to the extension.
fn is_extensions_folder(folder: &Path) -> bool {
    let is = |name: &str| folder.file_name().is_some_and(|found| found == name);
    is("extensions")
        && folder.parent().is_some_and(|above| {
            above
                .file_name()
                .is_some_and(|name| name == "agent" || name == ".pi")
        })
}

fn read_manifest(path: PathBuf) -> Option<Manifest> {
    serde_json::from_slice(&regular_file::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(file: &str, line: u32, column: u32) -> Location {
        Location {
            file: file.into(),
            line,
            column,
        }
    }

    #[test]
    fn first_position_outside_packages_is_found() {
        let stack = "TypeError: no\n    at deep (/p/node_modules/dep/index.js:1:2)\n    \
                     at async run (/p/my ext.ts:30:4)\n    at /p/other.ts:1:1";
        assert_eq!(find_location(stack), Some(position("/p/my ext.ts", 30, 4)));
        let alone = "Error: x\n    at /p/node_modules/dep/index.js:7:8";
        assert_eq!(
            find_location(alone),
            Some(position("/p/node_modules/dep/index.js", 7, 8))
        );
        assert_eq!(
            find_location("RangeError: from helper (/p/sub/helper.ts:3:9)"),
            Some(position("/p/sub/helper.ts", 3, 9))
        );
        assert_eq!(
            find_location("Cannot find module './no.ts' (imported at /p/ext.ts:1:21)"),
            Some(position("/p/ext.ts", 1, 21))
        );
        assert_eq!(
            find_location("Cannot find module './no.ts' (/p/no.ts) (imported at /p/ext.ts:1:21)"),
            Some(position("/p/ext.ts", 1, 21))
        );
        assert_eq!(
            find_location("Error: x\n    at f (/p/(routes)/a.ts:1:2)\n    at /p/b.ts:3:4"),
            Some(position("/p/(routes)/a.ts", 1, 2))
        );
        assert_eq!(
            find_location("Error: x\n    at eval (eval at f (/p/a.ts:1:2), <anonymous>:3:4)"),
            None
        );
        assert_eq!(find_location("Error: see http://x:1:2 for more"), None);
        assert_eq!(
            find_location("Invalid regular expression: /(/: Unterminated group (/p/a.js:4:15)"),
            Some(position("/p/a.js", 4, 15))
        );
    }

    #[test]
    fn quoted_stack_is_not_the_position() {
        let quoted = "it said\n    at other (/p/other.ts:1:1)";
        let stack = format!("Error: {quoted}\n    at mine (/p/mine.ts:2:3)");
        let mut error =
            ExtensionError::from_thrown("/p/mine.ts", "load", quoted.into(), Some(stack));
        explain(&mut error, None);
        assert_eq!(error.details.location, Some(position("/p/mine.ts", 2, 3)));
    }

    #[test]
    fn suggestion_is_added_once() {
        let message = "ctx.ui.notfy is not a function";
        let mut error = ExtensionError::from_thrown("command:go", "command", message.into(), None);
        explain(&mut error, Some("/p/mine.ts"));
        explain(&mut error, None);
        assert_eq!(error.error, format!("{message}: is `ctx.ui.notify` meant?"));
    }

    #[test]
    fn line_is_marked() {
        let source = "one\ntwo\nthree\nfour\nfive\n";
        let frame = "  1 | one\n  2 | two\n> 3 | three\n    |   ^\n  4 | four";
        assert_eq!(
            format_frame(source, &position("x", 3, 3)).as_deref(),
            Some(frame)
        );
        let first = "> 1 | one\n    | ^\n  2 | two";
        assert_eq!(
            format_frame(source, &position("x", 1, 1)).as_deref(),
            Some(first)
        );
        assert_eq!(format_frame(source, &position("x", 9, 1)), None);
        assert_eq!(format_frame("", &position("x", 0, 0)), None);
    }

    #[test]
    fn marks_fit_tabs_wide_and_far_characters() {
        assert_eq!(
            format_frame("\tx.y", &position("x", 1, 4)).as_deref(),
            Some("> 1 | \tx.y\n    | \t  ^")
        );
        assert_eq!(
            format_frame("\u{4f60}\u{1f600}z", &position("x", 1, 4)).as_deref(),
            Some("> 1 | \u{4f60}\u{1f600}z\n    |     ^")
        );
        let long = format!("{}throw{}", "a".repeat(500), "b".repeat(500));
        let frame = format_frame(&long, &position("x", 1, 501)).unwrap();
        let mut lines = frame.lines();
        let (line, mark) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(line.chars().count(), MAX_LINE_WIDTH + "> 1 | ".len());
        assert_eq!(line.find("throw"), mark.find('^'));
        assert!(format_frame(&long, &position("x", 1, 99_999)).is_some());
    }

    #[test]
    fn names_come_from_the_package_or_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("pkg");
        fs::create_dir_all(package.join("src")).unwrap();
        fs::write(
            package.join("package.json"),
            r#"{"name": "@me/gate", "version": "1.2.3"}"#,
        )
        .unwrap();
        let named = extension_name(&package.join("src/index.ts"));
        assert_eq!(
            (named.name.as_str(), named.version.as_deref()),
            ("@me/gate", Some("1.2.3"))
        );
        let alone = dir.path().join("agent/extensions");
        fs::create_dir_all(&alone).unwrap();
        // This package does not contain the extensions.
        fs::write(dir.path().join("package.json"), r#"{"name": "dotfiles"}"#).unwrap();
        assert_eq!(extension_name(&alone.join("gate.ts")).name, "gate");
        assert_eq!(extension_name(&alone.join("gate/index.ts")).name, "gate");
    }
}
