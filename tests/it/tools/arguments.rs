//! Compares the parser of tool arguments with that of the newest original (1.5.2): both accept the
//! same texts with the same values, and refuse the same texts.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::support::{Home, finish, newest_json_parser};

const TEXTS: usize = 6000;

/// Fragments of texts as models send them, complete ones and parts, in any order.
const WORDS: [&str; 44] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\"a\"",
    "\"b\":",
    "{\"a\":\"",
    "\"}",
    "{\"a\":",
    "{}",
    "\\d+",
    "\\.",
    "\\'",
    "\\\"",
    "\\\\",
    "\\/",
    "\\b",
    "\\n",
    "\\t",
    "\\x41",
    "\\u",
    "\\u12",
    "\\u00e9",
    "\\uzzzz",
    "\\ud83d",
    "\\ude00",
    "\\ud83d\\ude00",
    "\n",
    "\t",
    "\u{1}",
    "\u{7f}",
    "\r",
    " ",
    "é",
    "😀",
    "true",
    "null",
    "NaN",
    "1E-2",
    "12",
];

fn text() -> impl Strategy<Value = String> {
    let word = || (0..WORDS.len()).prop_map(|word| WORDS[word]);
    let any = vec(word(), 0..14).prop_map(|words| words.concat());
    // Mostly complete texts with a mistake in a string or without their end.
    let inside = vec(word(), 0..6).prop_map(|words| format!("{{\"a\":\"{}\"}}", words.concat()));
    let value = vec(word(), 0..4).prop_map(|words| format!("{{\"a\":{}}}", words.concat()));
    let cut = (inside.clone(), 0_usize..40).prop_map(|(text, at)| {
        let at = text.floor_char_boundary(at.min(text.len()));
        text[..at].to_owned()
    });
    prop_oneof![2 => any, 4 => inside, 2 => value, 2 => cut]
}

const READ: &str = r#"
import { readFileSync } from "node:fs";
import { parseToolCallArguments } from "PARSER";
const wellFormed = (value) => {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name.toWellFormed(), wellFormed(one)]));
};
const results = JSON.parse(readFileSync("TEXTS", "utf8")).map((text) => {
  const { arguments: value, argumentsError } = parseToolCallArguments(text);
  return argumentsError === undefined ? wellFormed(value) : null;
});
process.stdout.write(JSON.stringify(results));
"#;

/// Converts numbers to JavaScript's.
fn compared(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(list) => list.iter().map(compared).collect(),
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, value)| (name.clone(), compared(value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

#[tokio::test]
async fn arguments_are_parsed_as_in_the_newest_original() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[36; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = text();
    let texts: Vec<String> = (0..TEXTS)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect();
    let home = Home::bare();
    let file = home.file("texts.json", &json!(texts).to_string());
    let script = READ
        .replace("PARSER", newest_json_parser().to_str().unwrap())
        .replace("TEXTS", file.to_str().unwrap());
    let mut command = home.command("node");
    command.arg(home.file("read.mjs", &script));
    let theirs: Vec<Value> = serde_json::from_str(&finish(command, "").await.ok()).unwrap();
    assert_eq!(theirs.len(), texts.len());
    let mut differences = Vec::new();
    let mut read = 0;
    for (text, theirs) in texts.iter().zip(theirs) {
        let ours = match pi_ai::stream::tool_arguments::read(text) {
            Ok(members) => Value::Object(members),
            Err(_) => Value::Null,
        };
        read += usize::from(!ours.is_null());
        if compared(&ours) != compared(&theirs) {
            differences.push(format!("{text:?}\n  ours  {ours}\n  their {theirs}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // Both kinds of text must occur.
    assert!((TEXTS / 10..TEXTS * 9 / 10).contains(&read), "{read}");
}
