//! Makes an extension's error readable for its author: which extension and
//! version it was, which line, and what stands there.

use pi_base::regular_file;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use unicode_width::UnicodeWidthStr;

use super::unsupported_api;
use crate::agent::event::{ExtensionError, ExtensionName, Location};

/// Lines shown around the one where it happened.
const BEFORE: u32 = 2;
const AFTER: u32 = 1;
/// Of a line, in characters: the rest of compiled code is no help.
const WIDTH: usize = 120;
/// What is longer was not written by hand.
const MAX_SOURCE: u64 = 4 << 20;

/// Adds what can be found out; `path` is the extension's file, where it is known.
pub fn explain(error: &mut ExtensionError, path: Option<&str>) {
    let path = path.unwrap_or(&error.extension_path);
    // Whoever shows it does not know that it was explained.
    let is_explained = error.details.extension.is_some();
    if !is_explained && Path::new(path).is_absolute() {
        error.details.extension = Some(name_of(Path::new(path)));
    }
    if error.details.location.is_none() {
        // What a message quotes, the stack of another error, is not where this one was made.
        let whole = error.whole();
        let stack = whole
            .split_once(&error.error)
            .map_or("", |(_, stack)| stack);
        error.details.location = location(stack).or_else(|| location(whole));
    }
    if !is_explained {
        let reason = |text: &String| unsupported_api::told(text).into_owned();
        error.details.stack = error.details.stack.as_ref().map(reason);
        error.error = reason(&error.error);
    }
    // What cannot be parsed is shown by the parser already.
    let is_shown = error.whole().lines().any(|line| line.trim() == "|");
    if error.details.code_frame.is_none() && !is_shown {
        error.details.code_frame = error.details.location.as_ref().and_then(code_frame);
    }
}

/// The first place in a text that is not in somebody's package, else the first.
pub fn location(text: &str) -> Option<Location> {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)(?:\((?:imported at )?|^ *at (?:async )?)((?:/|[A-Za-z]:\\)[^\n]*?):(\d+):(\d+)\)?$")
            .expect("the pattern is constant and tested")
    });
    let places = PLACE.captures_iter(text).filter_map(|found| {
        // A file that is not there stands before the one that wants it.
        let file = found[1].rsplit("(imported at ").next()?;
        // A message may have such a parenthesis, too: "/(/: Unterminated group (/p/a.js:1:2)".
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
    // Folders may have parentheses in their names; what `eval` made has two places in a
    // line, and none of them is a line of the file.
    let places: Vec<Location> = places.filter(|place| !place.file.contains("), ")).collect();
    let own = places
        .iter()
        .find(|place| !place.file.contains("/node_modules/"));
    own.or(places.first()).cloned()
}

/// The line with a mark below it, and those around it.
pub(crate) fn code_frame(place: &Location) -> Option<String> {
    let about = fs::metadata(&place.file).ok()?;
    if !about.is_file() || about.len() > MAX_SOURCE {
        return None;
    }
    let source = regular_file::read(&place.file).ok()?;
    frame_of(&String::from_utf8_lossy(&source), place)
}

fn frame_of(source: &str, place: &Location) -> Option<String> {
    let first = place.line.saturating_sub(BEFORE).max(1);
    let last = place.line.saturating_add(AFTER);
    let digits = last.to_string().len();
    let mut frame = String::new();
    let mut found = false;
    for (number, line) in (1..)
        .zip(source.lines())
        .take(last as usize)
        .skip(first as usize - 1)
    {
        let here = number == place.line;
        // V8 counts UTF-16 code units.
        let column = utf16_to_byte(line, place.column.saturating_sub(1));
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

/// At most [`WIDTH`] characters of a line, around a byte of it; and where that is then.
fn excerpt(line: &str, at: usize) -> (&str, usize) {
    let starts: Vec<usize> = line.char_indices().map(|(byte, _)| byte).collect();
    if starts.len() <= WIDTH {
        return (line, at);
    }
    let character = starts.partition_point(|start| *start < at);
    let first = character
        .saturating_sub(WIDTH / 2)
        .min(starts.len() - WIDTH);
    let from = starts[first];
    let to = starts.get(first + WIDTH).copied().unwrap_or(line.len());
    (&line[from..to], at.clamp(from, to) - from)
}

fn utf16_to_byte(line: &str, units: u32) -> usize {
    let mut left = units as usize;
    for (byte, character) in line.char_indices() {
        if left < character.len_utf16() {
            return byte;
        }
        left -= character.len_utf16();
    }
    line.len()
}

#[derive(Deserialize)]
struct Manifest {
    name: Option<String>,
    version: Option<String>,
}

/// Of the package that the file belongs to; without one, the file's own name.
pub fn name_of(path: &Path) -> ExtensionName {
    let folders = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !is_home_of_extensions(folder));
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

/// A `package.json` there, or above, is not the extension's.
fn is_home_of_extensions(folder: &Path) -> bool {
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

    fn place(file: &str, line: u32, column: u32) -> Location {
        Location {
            file: file.into(),
            line,
            column,
        }
    }

    #[test]
    fn the_first_place_that_is_the_authors_own() {
        let stack = "TypeError: no\n    at deep (/p/node_modules/dep/index.js:1:2)\n    \
                     at async run (/p/my ext.ts:30:4)\n    at /p/other.ts:1:1";
        assert_eq!(location(stack), Some(place("/p/my ext.ts", 30, 4)));
        let alone = "Error: x\n    at /p/node_modules/dep/index.js:7:8";
        assert_eq!(
            location(alone),
            Some(place("/p/node_modules/dep/index.js", 7, 8))
        );
        assert_eq!(
            location("RangeError: from helper (/p/sub/helper.ts:3:9)"),
            Some(place("/p/sub/helper.ts", 3, 9))
        );
        assert_eq!(
            location("Cannot find module './no.ts' (imported at /p/ext.ts:1:21)"),
            Some(place("/p/ext.ts", 1, 21))
        );
        assert_eq!(
            location("Cannot find module './no.ts' (/p/no.ts) (imported at /p/ext.ts:1:21)"),
            Some(place("/p/ext.ts", 1, 21))
        );
        assert_eq!(
            location("Error: x\n    at f (/p/(routes)/a.ts:1:2)\n    at /p/b.ts:3:4"),
            Some(place("/p/(routes)/a.ts", 1, 2))
        );
        assert_eq!(
            location("Error: x\n    at eval (eval at f (/p/a.ts:1:2), <anonymous>:3:4)"),
            None
        );
        assert_eq!(location("Error: see http://x:1:2 for more"), None);
        assert_eq!(
            location("Invalid regular expression: /(/: Unterminated group (/p/a.js:4:15)"),
            Some(place("/p/a.js", 4, 15))
        );
    }

    #[test]
    fn what_a_message_quotes_is_not_the_place() {
        let quoted = "it said\n    at other (/p/other.ts:1:1)";
        let stack = format!("Error: {quoted}\n    at mine (/p/mine.ts:2:3)");
        let mut error = ExtensionError::thrown("/p/mine.ts", "load", quoted.into(), Some(stack));
        explain(&mut error, None);
        assert_eq!(error.details.location, Some(place("/p/mine.ts", 2, 3)));
    }

    #[test]
    fn what_is_meant_is_said_once() {
        let said = "ctx.ui.notfy is not a function";
        let mut error = ExtensionError::thrown("command:go", "command", said.into(), None);
        explain(&mut error, Some("/p/mine.ts"));
        explain(&mut error, None);
        assert_eq!(error.error, format!("{said}: is `ctx.ui.notify` meant?"));
    }

    #[test]
    fn the_line_is_marked() {
        let source = "one\ntwo\nthree\nfour\nfive\n";
        let frame = "  1 | one\n  2 | two\n> 3 | three\n    |   ^\n  4 | four";
        assert_eq!(frame_of(source, &place("x", 3, 3)).as_deref(), Some(frame));
        let first = "> 1 | one\n    | ^\n  2 | two";
        assert_eq!(frame_of(source, &place("x", 1, 1)).as_deref(), Some(first));
        assert_eq!(frame_of(source, &place("x", 9, 1)), None);
        assert_eq!(frame_of("", &place("x", 0, 0)), None);
    }

    #[test]
    fn marks_stand_below_tabs_wide_and_far_characters() {
        assert_eq!(
            frame_of("\tx.y", &place("x", 1, 4)).as_deref(),
            Some("> 1 | \tx.y\n    | \t  ^")
        );
        assert_eq!(
            frame_of("\u{4f60}\u{1f600}z", &place("x", 1, 4)).as_deref(),
            Some("> 1 | \u{4f60}\u{1f600}z\n    |     ^")
        );
        let long = format!("{}throw{}", "a".repeat(500), "b".repeat(500));
        let frame = frame_of(&long, &place("x", 1, 501)).unwrap();
        let mut lines = frame.lines();
        let (line, mark) = (lines.next().unwrap(), lines.next().unwrap());
        assert_eq!(line.chars().count(), WIDTH + "> 1 | ".len());
        assert_eq!(line.find("throw"), mark.find('^'));
        assert!(frame_of(&long, &place("x", 1, 99_999)).is_some());
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
        let named = name_of(&package.join("src/index.ts"));
        assert_eq!(
            (named.name.as_str(), named.version.as_deref()),
            ("@me/gate", Some("1.2.3"))
        );
        let alone = dir.path().join("agent/extensions");
        fs::create_dir_all(&alone).unwrap();
        // Not what these extensions belong to.
        fs::write(dir.path().join("package.json"), r#"{"name": "dotfiles"}"#).unwrap();
        assert_eq!(name_of(&alone.join("gate.ts")).name, "gate");
        assert_eq!(name_of(&alone.join("gate/index.ts")).name, "gate");
    }
}
