//! Measures and cuts text with escape sequences by terminal columns: width, truncation, wrapping
//! and slicing. Components of extensions (through the ops below) and the program share one
//! implementation, because a line that one of them believes to fit and the other does not breaks
//! the screen.

mod ansi;
mod around;
mod width;
mod wrap;

use deno_core::op2;

pub use self::ansi::{Piece, pieces};
pub use self::around::around_columns;
pub use self::width::{Slice, grapheme_width, slice_columns, truncate_to_width, visible_width};
pub use self::wrap::wrap_text;

#[op2(fast)]
#[smi]
pub(crate) fn op_text_width(#[string] text: &str) -> u32 {
    // V8 has no string longer than 4 GiB.
    visible_width(text) as u32
}

#[op2]
#[string]
pub(crate) fn op_text_truncate(
    #[string] text: &str,
    #[smi] columns: u32,
    #[string] ellipsis: &str,
    pad: bool,
) -> String {
    truncate_to_width(text, columns as usize, ellipsis, pad)
}

/// Returns the lines, joined with line feeds: cheaper across the bridge than an array, and no line
/// contains one.
#[op2]
#[string]
pub(crate) fn op_text_wrap(#[string] text: &str, #[smi] columns: u32) -> String {
    wrap_text(text, columns as usize).join("\n")
}

#[op2]
#[string]
pub(crate) fn op_text_slice(
    #[string] line: &str,
    #[smi] start: u32,
    #[smi] columns: u32,
    strict: bool,
) -> String {
    slice_columns(line, start as usize, columns as usize, strict).text
}

/// Returns the text without its escape sequences.
#[op2]
#[string]
pub(crate) fn op_text_strip(#[string] text: &str) -> String {
    let plain = pieces(text).filter_map(|piece| match piece {
        Piece::Plain(plain) => Some(plain),
        Piece::Escape(_) => None,
    });
    plain.collect()
}

/// Returns the parts of a line around columns that something is drawn over.
#[op2]
#[serde]
pub(crate) fn op_text_around(
    #[string] line: &str,
    #[smi] start: u32,
    #[smi] end: u32,
    #[smi] columns: u32,
) -> (String, String) {
    let (before, after) = around_columns(line, start as usize, end as usize, columns as usize);
    (before.text, after.text)
}

#[cfg(test)]
mod tests {
    use deno_core::serde_json::{self, Value, json};

    use super::*;

    /// Results of pi-tui 0.67.68, on which extensions rely: function, text, further arguments,
    /// result.
    const CASES: &str = include_str!("cases.json");

    fn number(value: &Value) -> usize {
        value.as_u64().expect("the case has a number here") as usize
    }

    #[test]
    fn results_are_those_of_pi_tui() {
        let cases: Vec<(String, String, Vec<Value>, Value)> =
            serde_json::from_str(CASES).expect("cases.json has this form");
        for (function, text, args, expected) in cases {
            let result = match (function.as_str(), &args[..]) {
                ("width", []) => json!(visible_width(&text)),
                ("wrap", [columns]) => json!(wrap_text(&text, number(columns))),
                ("truncate", [columns, Value::String(ellipsis), Value::Bool(pad)]) => {
                    json!(truncate_to_width(&text, number(columns), ellipsis, *pad))
                }
                ("slice", [start, columns, Value::Bool(strict)]) => {
                    json!(slice_columns(&text, number(start), number(columns), *strict).text)
                }
                _ => panic!("unknown case {function} {args:?}"),
            };
            assert_eq!(result, expected, "{function} of {text:?} with {args:?}");
        }
    }
}
