//! Parses with as much stack as a file may need. The parser and all visitors recurse once for each
//! level of nesting, and a stack overflow would end the program.

use deno_ast::swc::parser::error::SyntaxError;
use deno_ast::{MediaType, ModuleSpecifier, ParseDiagnostic, ParseParams, ParsedSource};
use deno_error::JsErrorBox;

/// Maximum nesting of brackets. Real files have less, and the parser would take too long.
const MAX_NESTING: usize = 5000;
/// Maximum number of operators without the end of a statement or a list: each is one level of
/// recursion.
const MAX_OPERATORS: usize = 100_000;
/// Maximum number of JSX elements within each other. A comma in their text ends no expression.
const MAX_ELEMENTS: usize = 10_000;
/// Bytes of stack per byte of text. A level takes at least two characters, and only used stack
/// costs memory.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 8 } else { 4 } << 10;
/// Minimum and maximum size of the stack. Most files need no more than every thread has; the
/// maximum suits a small machine.
const STACK: (usize, usize) = (2 << 20, 256 << 20);

/// Returns the result of `work` on a parsed file. An error says why the file cannot be parsed.
pub(crate) fn with_parsed<T>(
    specifier: &ModuleSpecifier,
    media_type: MediaType,
    source: String,
    scope_analysis: bool,
    work: impl FnOnce(ParsedSource) -> T,
) -> Result<T, JsErrorBox> {
    let syntax_error = |text: String| JsErrorBox::new("SyntaxError", text);
    let too_many = || {
        let has_elements = matches!(media_type, MediaType::Tsx | MediaType::Jsx);
        (has_elements && open_elements(&source) > MAX_ELEMENTS).then(|| {
            format!("More than {MAX_ELEMENTS} elements are within each other, which is too deep to be compiled")
        })
    };
    if let Some(problem) = too_deep(&source).or_else(too_many) {
        return Err(syntax_error(format!("{problem}\n    at {specifier}:1:1")));
    }
    let length = source.len();
    let parsed = move || {
        let parsed = deno_ast::parse_program(ParseParams {
            specifier: specifier.clone(),
            text: source.into(),
            media_type,
            capture_tokens: false,
            scope_analysis,
            maybe_syntax: None,
        });
        let parsed = parsed.and_then(without_conflict);
        parsed
            .map(work)
            .map_err(|error| syntax_error(error.to_string()))
    };
    with_stack(length, parsed)
}

/// Runs `work` on a stack that is large enough for a parsed text of `length` bytes.
pub(crate) fn with_stack<T>(length: usize, work: impl FnOnce() -> T) -> T {
    let stack = (length * STACK_PER_BYTE).clamp(STACK.0, STACK.1);
    stacker::maybe_grow(stack, stack, work)
}

/// Rejects merge conflict markers: the parser continues after them, and both sides would run.
fn without_conflict(parsed: ParsedSource) -> Result<ParsedSource, ParseDiagnostic> {
    let mut doubts = parsed.diagnostics().iter();
    match doubts.find(|doubt| matches!(doubt.kind(), SyntaxError::TS1185)) {
        Some(conflict) => Err(conflict.clone()),
        None => Ok(parsed),
    }
}

/// Returns the reason why a text is not given to the parser.
pub(crate) fn too_deep(text: &str) -> Option<String> {
    let Complexity { depth, length } = complexity(text);
    if depth > MAX_NESTING {
        return Some(format!(
            "More than {MAX_NESTING} brackets are within each other, which is too deep to be compiled"
        ));
    }
    (length > MAX_OPERATORS).then(|| {
        format!("An expression has some {length} operators, which is too long to be compiled")
    })
}

/// Estimates how many JSX elements are open at a time. Type arguments count as elements that are not
/// closed.
fn open_elements(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for pair in text.as_bytes().windows(2) {
        match pair {
            b"</" | b"/>" => open = open.saturating_sub(1),
            [b'<', b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'>'] => open += 1,
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Maximum nesting and length in a text.
#[derive(Default)]
pub(crate) struct Complexity {
    /// Depth of nested brackets.
    pub depth: usize,
    /// Operators and words without the end of a statement or a list between them.
    length: usize,
}

/// Estimates the complexity of a text. Regular expressions are not recognized; their brackets are
/// mostly balanced.
pub(crate) fn complexity(text: &str) -> Complexity {
    let mut found = Complexity::default();
    let mut levels = vec![Level::default()];
    let mut rest = text.as_bytes();
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        match byte {
            b'"' | b'\'' => rest = after_text(rest, *byte),
            b'`' => rest = template(rest, &mut levels),
            b'/' if rest.starts_with(b"/") => rest = after(rest, b"\n"),
            b'/' if rest.starts_with(b"*") => rest = after(rest, b"*/"),
            b'(' | b'[' | b'{' => levels.push(Level::default()),
            b')' | b']' | b'}' if levels.len() > 1 => rest = close(rest, &mut levels),
            _ => {}
        }
        found.depth = found.depth.max(levels.len() - 1);
        let Some(Level { length, .. }) = levels.last_mut() else {
            continue;
        };
        match byte {
            b';' | b',' => *length = 0,
            b'}' if begins_declaration(rest) => *length = 0,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80.. => {}
            _ => *length += 1,
        }
        found.length = found.length.max(*length);
    }
    found
}

/// Words that begin a statement and continue no expression on the line before.
const DECLARATIONS: [&[u8]; 12] = [
    b"abstract",
    b"async",
    b"class",
    b"const",
    b"declare",
    b"enum",
    b"export",
    b"function",
    b"interface",
    b"let",
    b"type",
    b"var",
];

/// Returns true if the text after a bracket is a declaration on another line, perhaps after
/// comments.
fn begins_declaration(text: &[u8]) -> bool {
    let mut rest = text.trim_ascii_start();
    loop {
        rest = match rest {
            [b'/', b'/', comment @ ..] => after(comment, b"\n").trim_ascii_start(),
            [b'/', b'*', comment @ ..] => after(comment, b"*/").trim_ascii_start(),
            _ => break,
        };
    }
    let skipped = &text[..text.len() - rest.len()];
    let is_word = |word: &&[u8]| {
        rest.strip_prefix(*word)
            .is_some_and(|after| after.first().is_some_and(u8::is_ascii_whitespace))
    };
    skipped.contains(&b'\n') && DECLARATIONS.iter().any(is_word)
}

#[derive(Default)]
struct Level {
    length: usize,
    /// Whether the level is between `${` and `}`.
    is_in_template: bool,
}

fn close<'a>(text: &'a [u8], levels: &mut Vec<Level>) -> &'a [u8] {
    let closed = levels.pop();
    match closed.is_some_and(|level| level.is_in_template) {
        true => template(text, levels),
        false => text,
    }
}

fn after<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = memchr::memmem::find(text, end).map(|at| at + end.len());
    &text[at.unwrap_or(text.len())..]
}

/// Returns the text after a quoted string, which ends with its line at the latest.
fn after_text(mut text: &[u8], quote: u8) -> &[u8] {
    while let Some((byte, after)) = text.split_first() {
        text = after;
        match *byte {
            b'\\' => text = text.get(1..).unwrap_or_default(),
            b'\n' => break,
            byte if byte == quote => break,
            _ => {}
        }
    }
    text
}

/// Returns the text after a template's text, at its end or at an expression in it.
fn template<'a>(mut text: &'a [u8], levels: &mut Vec<Level>) -> &'a [u8] {
    while let Some((byte, after)) = text.split_first() {
        text = after;
        match byte {
            b'\\' => text = text.get(1..).unwrap_or_default(),
            b'`' => break,
            b'$' if text.starts_with(b"{") => {
                levels.push(Level {
                    is_in_template: true,
                    ..Level::default()
                });
                return &text[1..];
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str) -> (usize, usize) {
        let Complexity { depth, length } = complexity(text);
        (depth, length)
    }

    #[test]
    fn complexity_is_estimated() {
        assert_eq!(measured("f([{}])").0, 3);
        assert_eq!(measured("a(\"((((\") + '\\'((' + b(1)").0, 1);
        assert_eq!(measured("it's (\n((").0, 2);
        assert_eq!(measured(")))(").0, 1);
        assert_eq!(measured("1+1+1;1+1").1, 2);
        assert!(measured(&"p.then(() => { a; })".repeat(100)).1 >= 200);
        assert!(measured(&"f(a, b);\n".repeat(100)).1 < 5);
        let function = "/** Adds. */\nexport function f(a: number): number { return a + 1 }\n";
        assert!(measured(&function.repeat(100)).1 < 20);
        assert!(measured(&"a = {} +\n".repeat(100)).1 >= 200);
    }

    #[test]
    fn accepted_text_has_enough_stack() {
        let specifier = ModuleSpecifier::parse("file:///a.ts").unwrap();
        let parse = |text: String| {
            with_parsed(&specifier, MediaType::TypeScript, text, false, |_| ())
                .map_err(|error| error.to_string())
        };
        let parens = |depth| format!("x = {}1{}", "(".repeat(depth), ")".repeat(depth));
        parse(parens(500)).unwrap();
        parse(parens(MAX_NESTING)).unwrap();
        let refused = parse(parens(MAX_NESTING + 1)).unwrap_err();
        assert!(
            refused.contains("brackets are within each other"),
            "{refused}"
        );
        parse(format!("x = 1{}", "+1".repeat(MAX_OPERATORS - 8))).unwrap();
        let refused = parse(format!("x = 1{}", "+1".repeat(MAX_OPERATORS + 8))).unwrap_err();
        assert!(refused.contains("operators"), "{refused}");
        let parse_elements = |text: String| {
            with_parsed(&specifier, MediaType::Tsx, text, false, |_| ())
                .map_err(|error| error.to_string())
        };
        let elements = |depth| format!("x = {}{}", "<a>,".repeat(depth), "</a>".repeat(depth));
        parse_elements(elements(MAX_ELEMENTS)).unwrap();
        parse_elements("x = <a/>; f<T>();\n".repeat(1000)).unwrap();
        let refused = parse_elements("<a>,".repeat(400_000)).unwrap_err();
        assert!(refused.contains("elements are within"), "{refused}");
    }
}
