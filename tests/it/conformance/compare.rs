//! Finds the differences between two transcripts and separates the known ones.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::scenario::Known;
use super::side::Transcript;

/// One difference. Its position is `channel kind.member.member`, where `kind` tells the lines of a
/// channel apart; indices of arrays are left out.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub at: String,
    pub ours: Value,
    pub theirs: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| {
            let text = value.to_string();
            match text.char_indices().nth(600) {
                Some((end, _)) => format!("{} ...", &text[..end]),
                None => text,
            }
        };
        let (ours, theirs) = apart(&self.ours, &self.theirs);
        write!(
            f,
            "{}\n    ours:     {}\n    original: {}",
            self.at,
            shown(&ours),
            shown(&theirs)
        )
    }
}

/// Removes the common beginning of two texts.
fn apart(ours: &Value, theirs: &Value) -> (Value, Value) {
    let (Value::String(a), Value::String(b)) = (ours, theirs) else {
        return (ours.clone(), theirs.clone());
    };
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(60);
    let rest = |text: &str| Value::String(text.chars().skip(from).collect());
    (rest(a), rest(b))
}

pub(super) fn differences(ours: &Transcript, theirs: &Transcript) -> Vec<Difference> {
    let mut found = Vec::new();
    let channels: BTreeSet<&String> = ours.channels.keys().chain(theirs.channels.keys()).collect();
    for channel in channels {
        let lines = |transcript: &Transcript| -> Vec<Value> {
            transcript
                .channels
                .get(channel)
                .cloned()
                .unwrap_or_default()
        };
        align(channel, &lines(ours), &lines(theirs), &mut found);
    }
    found
}

/// Aligns the lines of both, so that a line that only one has does not make all later lines differ.
fn align(channel: &str, ours: &[Value], theirs: &[Value], found: &mut Vec<Difference>) {
    let kinds = |lines: &[Value]| -> Vec<String> { lines.iter().map(Value::to_string).collect() };
    let (a, b) = (kinds(ours), kinds(theirs));
    for op in capture_diff_slices(Algorithm::Patience, &a, &b) {
        let (old, new) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        pair(channel, &ours[old], &theirs[new], found);
    }
}

/// Pairs lines of one kind within a range that differs.
fn pair(channel: &str, ours: &[Value], theirs: &[Value], found: &mut Vec<Difference>) {
    let kinds = |lines: &[Value]| -> Vec<String> { lines.iter().map(kind).collect() };
    let (a, b) = (kinds(ours), kinds(theirs));
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        let (old, new) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            for (ours, theirs) in ours[old].iter().zip(&theirs[new]) {
                inside(&format!("{channel} {}", kind(ours)), ours, theirs, found);
            }
            continue;
        }
        for line in &ours[old] {
            found.push(Difference {
                at: format!("{channel} {} only ours", kind(line)),
                ours: line.clone(),
                theirs: Value::Null,
            });
        }
        for line in &theirs[new] {
            found.push(Difference {
                at: format!("{channel} {} only original", kind(line)),
                ours: Value::Null,
                theirs: line.clone(),
            });
        }
    }
}

/// The kind of a line.
fn kind(line: &Value) -> String {
    let names = [
        "type",
        "method",
        "command",
        "path",
        "shell",
        "widgetKey",
        "statusKey",
        "width",
    ];
    let parts = names.iter().filter_map(|name| match &line[*name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

fn inside(at: &str, ours: &Value, theirs: &Value, found: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let (a, b) = (a.get(name), b.get(name));
                let missing = Value::String("(not there)".into());
                if a != b {
                    let (a, b) = (a.unwrap_or(&missing), b.unwrap_or(&missing));
                    inside(&format!("{at}.{name}"), a, b, found);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                inside(at, a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) => align(&format!("{at}[]"), a, b, found),
        _ if ours == theirs => {}
        _ => found.push(Difference {
            at: at.to_owned(),
            ours: ours.clone(),
            theirs: theirs.clone(),
        }),
    }
}

impl Known {
    pub fn covers(&self, scenario: &str, difference: &Difference) -> bool {
        let wanted = self.scenario.as_deref();
        wanted.is_none_or(|name| name == scenario) && like(&self.at, &difference.at)
    }
}

fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len())
                .filter(|place| text.is_char_boundary(*place))
                .any(|place| like(rest, &text[place..]))
        }),
    }
}
