//! Invariants of the line reader and of the command parser, checked by the fuzzers.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use super::handle::response;
use super::lines::{Line, next_line};
use super::parse::parse;
use pi_app::CommandError;

/// Reads lines with buffers of every small size, with a limit that long lines exceed.
pub fn fuzz_lines(bytes: &[u8]) {
    const MAX_FUZZED_BYTES: usize = 16;
    // The simple implementation, for input that fits into memory.
    let mut expected: Vec<Line> = bytes.split(|byte| *byte == b'\n').map(line).collect();
    fn line(line: &[u8]) -> Line {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Line::Text(line.to_vec())
    }
    if bytes.is_empty() || bytes.ends_with(b"\n") {
        expected.pop();
    }
    for capacity in [1, 2, 3, 7, 64] {
        let mut input = BufReader::with_capacity(capacity, bytes);
        let read = |longest: usize, input: &mut dyn BufRead| {
            let mut input = input;
            std::iter::from_fn(move || next_line(&mut input, longest).expect("memory can be read"))
                .collect::<Vec<_>>()
        };
        assert_eq!(read(usize::MAX - 2, &mut input), expected);
        let mut input = BufReader::with_capacity(capacity, bytes);
        let limited = read(MAX_FUZZED_BYTES, &mut input);
        assert_eq!(limited.len(), expected.len());
        for (limited, expected) in limited.iter().zip(&expected) {
            match (limited, expected) {
                (Line::Text(text), Line::Text(whole)) => assert_eq!(text, whole),
                (Line::TooLong(_), Line::Text(whole)) => assert!(whole.len() > MAX_FUZZED_BYTES),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Parses a command and serializes its response.
pub fn fuzz_command(bytes: &[u8]) {
    let value = serde_json::from_slice::<Value>(bytes).ok();
    let member = |name: &str| value.as_ref().and_then(|value| value.get(name).cloned());
    let id = member("id").filter(|id| !id.is_null());
    let (answered, answer) = match parse(bytes) {
        Ok(parsed) => {
            if let Some(kind) = member("type") {
                assert_eq!(kind, parsed.name.as_str());
            }
            assert!(id.is_none() || parsed.id == id);
            (response(parsed.id, parsed.name, &Ok(None)), true)
        }
        Err(bad) => {
            assert!(!bad.error.is_empty());
            if value.is_some() {
                assert_eq!(bad.id, id);
            }
            let refusal = CommandError::new(bad.code, bad.error);
            (response(bad.id, bad.command, &Err(refusal)), false)
        }
    };
    let line = serde_json::to_string(&answered).expect("an answer can be written");
    assert!(!line.contains('\n'));
    let again: Value = serde_json::from_str(&line).expect("an answer can be read");
    assert_eq!(again["success"], answer);
}
