//! Words errors about data for authors of JavaScript. Serde's own messages name types of Rust,
//! and the column of a text that the author does not see.

pub const MISSING: &str = " is missing";

/// Rewrites serde's error without names of Rust.
pub fn describe(error: impl ToString) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    if let Some(member) = text.strip_prefix("missing field ") {
        return format!("{}{MISSING}", member.trim_matches('`'));
    }
    let text = with_javascript_terms(text);
    let Some((before, name)) = text.split_once("expected ") else {
        return text;
    };
    let known = [
        "struct ",
        "internally tagged enum ",
        "externally tagged enum ",
    ];
    let Some(name) = known.iter().find_map(|kind| name.strip_prefix(kind)) else {
        return text;
    };
    let rest = name.find([' ', ',']).map_or("", |at| &name[at..]);
    format!("{before}expected an object{rest}")
}

/// Replaces names of Rust and serde by those of JavaScript.
fn with_javascript_terms(text: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("invalid type: sequence,", "invalid type: array,"),
        ("invalid type: map,", "invalid type: object,"),
        ("unknown variant ", "unknown value "),
        ("expected a sequence", "expected an array"),
        ("expected a map", "expected an object"),
        ("expected f64", "expected a number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
    ];
    let replaced = |text: String, (theirs, ours): &(&str, &str)| text.replace(theirs, ours);
    WORDS.iter().fold(text.to_owned(), replaced)
}
