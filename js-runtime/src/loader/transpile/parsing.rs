//! Parsing with as much stack as a file may need: the parser, and all that walks over what it
//! makes, call themselves once for each level of nesting, and a stack that overflows ends the
//! program.

use deno_ast::swc::parser::error::SyntaxError;
use deno_ast::{MediaType, ModuleSpecifier, ParseDiagnostic, ParseParams, ParsedSource};
use deno_error::JsErrorBox;

/// Brackets within each other. Nobody writes more, and the parser would take for ever.
const DEEPEST: usize = 5000;
/// Operators in a row without an end of a statement or a list: each is one level more.
const LONGEST: usize = 100_000;
/// A level is two characters at least. Only what is used of it costs memory.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 8 } else { 4 } << 10;
/// Most files need no more than every thread has; the most is for a small machine.
const STACK: (usize, usize) = (2 << 20, 256 << 20);

/// What `work` makes of a parsed file. An error says why the file cannot be parsed.
pub(crate) fn with_parsed<T>(
    specifier: &ModuleSpecifier,
    media_type: MediaType,
    source: String,
    scope_analysis: bool,
    work: impl FnOnce(ParsedSource) -> T,
) -> Result<T, JsErrorBox> {
    let syntax_error = |text: String| JsErrorBox::new("SyntaxError", text);
    if let Some(problem) = too_deep(&source) {
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
    with_room(length, parsed)
}

/// Works on what a text of so many bytes was parsed to, where there is enough stack for it.
pub(crate) fn with_room<T>(length: usize, work: impl FnOnce() -> T) -> T {
    let stack = (length * STACK_PER_BYTE).clamp(STACK.0, STACK.1);
    stacker::maybe_grow(stack, stack, work)
}

/// The parser goes on after the marks of a merge, and both sides would run.
fn without_conflict(parsed: ParsedSource) -> Result<ParsedSource, ParseDiagnostic> {
    let mut doubts = parsed.diagnostics().iter();
    match doubts.find(|doubt| matches!(doubt.kind(), SyntaxError::TS1185)) {
        Some(conflict) => Err(conflict.clone()),
        None => Ok(parsed),
    }
}

/// Why a text is not given to the parser.
pub(crate) fn too_deep(text: &str) -> Option<String> {
    let Extent { depth, length } = extent(text);
    if depth > DEEPEST {
        return Some(format!(
            "More than {DEEPEST} brackets are within each other, which is too deep to be compiled"
        ));
    }
    (length > LONGEST).then(|| {
        format!("An expression has some {length} operators, which is too long to be compiled")
    })
}

/// How deep and how long something in a text is.
#[derive(Default)]
pub(crate) struct Extent {
    /// Brackets within each other.
    pub depth: usize,
    /// Operators, and words, without an end of a statement or a list between them.
    length: usize,
}

/// A guess: it does not know regular expressions. What they open they close, too, most of the
/// time.
pub(crate) fn extent(text: &str) -> Extent {
    let mut found = Extent::default();
    let mut levels = vec![Level::default()];
    let mut rest = text.as_bytes();
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        match byte {
            b'"' | b'\'' => rest = after_text(rest, *byte),
            b'`' => rest = template(rest, &mut levels),
            b'/' if rest.starts_with(b"/") => rest = behind(rest, b"\n"),
            b'/' if rest.starts_with(b"*") => rest = behind(rest, b"*/"),
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
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80.. => {}
            _ => *length += 1,
        }
        found.length = found.length.max(*length);
    }
    found
}

#[derive(Default)]
struct Level {
    length: usize,
    /// Between `${` and `}`.
    is_in_template: bool,
}

fn close<'a>(text: &'a [u8], levels: &mut Vec<Level>) -> &'a [u8] {
    let closed = levels.pop();
    match closed.is_some_and(|level| level.is_in_template) {
        true => template(text, levels),
        false => text,
    }
}

fn behind<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    let at = memchr::memmem::find(text, end).map(|at| at + end.len());
    &text[at.unwrap_or(text.len())..]
}

/// What follows a text in quotes, which ends with its line at the latest.
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

/// What follows the text of a template, to its end or to an expression in it.
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
        let Extent { depth, length } = extent(text);
        (depth, length)
    }

    #[test]
    fn what_is_nested_and_what_is_long() {
        assert_eq!(measured("f([{}])").0, 3);
        assert_eq!(measured("a(\"((((\") + '\\'((' + b(1)").0, 1);
        assert_eq!(measured("it's (\n((").0, 2);
        assert_eq!(measured(")))(").0, 1);
        assert_eq!(measured("1+1+1;1+1").1, 2);
        assert!(measured(&"p.then(() => { a; })".repeat(100)).1 >= 200);
        assert!(measured(&"f(a, b);\n".repeat(100)).1 < 5);
    }

    #[test]
    fn what_is_not_refused_has_the_stack_that_it_needs() {
        let specifier = ModuleSpecifier::parse("file:///a.ts").unwrap();
        let parse = |text: String| {
            with_parsed(&specifier, MediaType::TypeScript, text, false, |_| ())
                .map_err(|error| error.to_string())
        };
        let parens = |depth| format!("x = {}1{}", "(".repeat(depth), ")".repeat(depth));
        parse(parens(500)).unwrap();
        parse(parens(DEEPEST)).unwrap();
        let refused = parse(parens(DEEPEST + 1)).unwrap_err();
        assert!(
            refused.contains("brackets are within each other"),
            "{refused}"
        );
        parse(format!("x = 1{}", "+1".repeat(LONGEST - 8))).unwrap();
        let refused = parse(format!("x = 1{}", "+1".repeat(LONGEST + 8))).unwrap_err();
        assert!(refused.contains("operators"), "{refused}");
    }
}
