//! Rewrites a module so that it is pure ASCII: non-ASCII characters are masked in comments and
//! escaped in strings and regular expressions. Names, and templates whose raw text a function sees,
//! cannot be rewritten.

use std::ops::Range;

use deno_ast::swc::ast;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{
    MediaType, ModuleSpecifier, ParsedSource, ProgramRef, SourceRange, SourceRangedForSpanned,
};
use pi_base::utf16;

use super::column_map::ColumnMap;
use crate::loader::transpile::parsing::with_parsed;

pub(super) struct AsciiText {
    pub text: String,
    /// `None` if every character kept its position.
    pub columns: Option<ColumnMap>,
}

/// Returns `None` if the text cannot be rewritten.
pub(super) fn in_ascii(specifier: &ModuleSpecifier, text: &str) -> Option<AsciiText> {
    // These characters end lines anywhere.
    if text.contains(['\u{2028}', '\u{2029}']) {
        return None;
    }
    let source = text.to_string();
    let found = with_parsed(specifier, MediaType::JavaScript, source, false, |parsed| {
        convert(&parsed, text)
    });
    found.ok()?
}

fn convert(parsed: &ParsedSource, text: &str) -> Option<AsciiText> {
    let start = parsed.text_info_lazy().range().start;
    let bytes = |range: SourceRange| range.as_byte_range(start);
    let comments = parsed.comments().get_vec();
    let comments = Vec::from_iter(comments.iter().map(|comment| bytes(comment.range())));
    let mut literals = Literals::default();
    match parsed.program_ref() {
        ProgramRef::Module(module) => module.visit_with(&mut literals),
        ProgramRef::Script(script) => script.visit_with(&mut literals),
    }
    let mut edits = Vec::new();
    for comment in &comments {
        edits.extend(mask_comment(text, comment)?);
    }
    for range in literals.texts {
        edits.extend(escape_string(text, bytes(range))?);
    }
    for range in literals.patterns {
        if let Some(edit) = regexp_call(text, bytes(range))? {
            // The name `RegExp` must refer to the built-in class.
            edits.extend((!literals.has_own_regexp).then_some(edit));
        }
    }
    if edits.iter().any(|edit| edit.shifts(text)) {
        // The map is found by the name of the file then; with the comment both maps would be
        // applied.
        edits.extend(comments.into_iter().filter_map(|at| mask_map_url(text, at)));
    }
    edits.sort_by_key(|edit| edit.at.start);
    let (text, columns) = apply(text, &edits);
    text.is_ascii().then_some(AsciiText { text, columns })
}

/// Replaces the text at `at` by `to`.
struct Edit {
    at: Range<usize>,
    to: String,
}

impl Edit {
    fn shifts(&self, text: &str) -> bool {
        utf16::len(&text[self.at.clone()]) != self.to.len()
    }
}

/// Literals in which characters can be escaped.
#[derive(Default)]
struct Literals {
    texts: Vec<SourceRange>,
    patterns: Vec<SourceRange>,
    has_own_regexp: bool,
}

impl Literals {
    fn declares(&mut self, name: &ast::Ident) {
        self.has_own_regexp |= name.sym == "RegExp";
    }
}

impl Visit for Literals {
    fn visit_str(&mut self, text: &ast::Str) {
        self.texts.push(text.range());
    }

    fn visit_tpl_element(&mut self, text: &ast::TplElement) {
        self.texts.push(text.range());
    }

    fn visit_tagged_tpl(&mut self, template: &ast::TaggedTpl) {
        template.tag.visit_with(self);
        template.tpl.exprs.visit_with(self);
    }

    fn visit_regex(&mut self, pattern: &ast::Regex) {
        self.patterns.push(pattern.range());
    }

    fn visit_binding_ident(&mut self, name: &ast::BindingIdent) {
        self.declares(name);
    }

    fn visit_fn_decl(&mut self, function: &ast::FnDecl) {
        self.declares(&function.ident);
        function.visit_children_with(self);
    }

    fn visit_fn_expr(&mut self, function: &ast::FnExpr) {
        function.ident.iter().for_each(|name| self.declares(name));
        function.visit_children_with(self);
    }

    fn visit_class_decl(&mut self, class: &ast::ClassDecl) {
        self.declares(&class.ident);
        class.visit_children_with(self);
    }

    fn visit_class_expr(&mut self, class: &ast::ClassExpr) {
        class.ident.iter().for_each(|name| self.declares(name));
        class.visit_children_with(self);
    }

    fn visit_import_specifier(&mut self, import: &ast::ImportSpecifier) {
        self.declares(import.local());
        import.visit_children_with(self);
    }

    fn visit_with_stmt(&mut self, with: &ast::WithStmt) {
        self.has_own_regexp = true;
        with.visit_children_with(self);
    }
}

/// Masks a comment with one question mark per UTF-16 unit. `None` if the comment has a meaning.
fn mask_comment(text: &str, at: &Range<usize>) -> Option<Vec<Edit>> {
    let comment = text.get(at.clone())?;
    if !comment.is_ascii() && (comment.contains(MAP_COMMENT) || comment.contains("sourceURL")) {
        return None;
    }
    let edits = non_ascii_chars(text, at.clone()).map(|(at, character)| Edit {
        at,
        to: "?".repeat(character.len_utf16()),
    });
    Some(edits.collect())
}

/// Escapes the characters of a string or a template. `None` if one follows a backslash, because
/// that would be another escape.
fn escape_string(text: &str, at: Range<usize>) -> Option<Vec<Edit>> {
    let edit = |(at, character): (Range<usize>, char)| {
        let is_escaped = text[..at.start].ends_with('\\');
        (!is_escaped).then(|| Edit {
            at,
            to: escaped(character),
        })
    };
    non_ascii_chars(text, at).map(edit).collect()
}

/// Replaces a regular expression by a call with strings: an escape in the literal would change its
/// `source`. `None` is an error.
fn regexp_call(text: &str, at: Range<usize>) -> Option<Option<Edit>> {
    let literal = text.get(at.clone())?;
    if literal.is_ascii() {
        return Some(None);
    }
    let (pattern, flags) = literal.strip_prefix('/')?.rsplit_once('/')?;
    let mut quoted = String::with_capacity(literal.len());
    for character in pattern.chars() {
        match character {
            '\\' | '"' => quoted.extend(['\\', character]),
            _ if character.is_ascii() => quoted.push(character),
            _ => quoted.push_str(&escaped(character)),
        }
    }
    // In parentheses, the call may stand wherever a literal may.
    let to = format!("(RegExp(\"{quoted}\",\"{flags}\"))");
    Some(Some(Edit { at, to }))
}

const MAP_COMMENT: &str = "sourceMappingURL";

fn mask_map_url(text: &str, at: Range<usize>) -> Option<Edit> {
    let map = at.start + text[at].find(MAP_COMMENT)?;
    Some(Edit {
        at: map..map + MAP_COMMENT.len(),
        to: "?".repeat(MAP_COMMENT.len()),
    })
}

fn non_ascii_chars(text: &str, at: Range<usize>) -> impl Iterator<Item = (Range<usize>, char)> {
    let found = text[at.clone()].char_indices();
    found
        .filter(|(_, character)| !character.is_ascii())
        .map(move |(offset, character)| {
            let start = at.start + offset;
            (start..start + character.len_utf8(), character)
        })
}

fn escaped(character: char) -> String {
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units).iter();
    units.map(|unit| format!("\\u{unit:04x}")).collect()
}

fn apply(text: &str, edits: &[Edit]) -> (String, Option<ColumnMap>) {
    let mut changed = String::with_capacity(text.len() + text.len() / 16);
    let mut columns = ColumnMap::default();
    let mut done = 0;
    for edit in edits {
        let before = &text[done..edit.at.start];
        columns.copy(before);
        changed.push_str(before);
        columns.replace(utf16::len(&text[edit.at.clone()]), edit.to.len());
        changed.push_str(&edit.to);
        done = edit.at.end;
    }
    columns.copy(&text[done..]);
    changed.push_str(&text[done..]);
    (changed, columns.if_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascii(text: &str) -> Option<AsciiText> {
        let url = ModuleSpecifier::parse("file:///node_modules/a/index.js").unwrap();
        in_ascii(&url, text)
    }

    #[test]
    fn comments_are_masked_without_shifting_columns() {
        let text =
            "/* – 😀 */ const a = 'x'; // “b”\nconst b = /\\/* [/*] /; // …\nexports.b = a\n";
        let changed = ascii(text).unwrap();
        assert_eq!(
            changed.text,
            "/* ? ?? */ const a = 'x'; // ?b?\nconst b = /\\/* [/*] /; // ?\nexports.b = a\n"
        );
        assert_eq!(changed.text.len(), text.encode_utf16().count());
        assert!(changed.columns.is_none());
    }

    #[test]
    fn escaped_literals_keep_their_values() {
        for (text, expected) in [
            ("a = 'é–';", "a = '\\u00e9\\u2013';"),
            (
                "a = `–${'😀'}…`;",
                "a = `\\u2013${'\\ud83d\\ude00'}\\u2026`;",
            ),
            (
                "a = {'–': 1, b: \"–\"};",
                "a = {'\\u2013': 1, b: \"\\u2013\"};",
            ),
            ("import a from './é.js';", "import a from './\\u00e9.js';"),
            (
                "a = /[\"\\/–]\\d/gu.source",
                "a = (RegExp(\"[\\\"\\\\/\\u2013]\\\\d\",\"gu\")).source",
            ),
            (
                "return_(typeof/–/)",
                "return_(typeof(RegExp(\"\\u2013\",\"\")))",
            ),
            // Literals in ASCII are not changed.
            (
                "a = String.raw`${'–'}x` + /y/;",
                "a = String.raw`${'\\u2013'}x` + /y/;",
            ),
            (
                "a = '–';\n//# sourceMappingURL=a.js.map",
                "a = '\\u2013';\n//# ????????????????=a.js.map",
            ),
        ] {
            let changed = ascii(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(changed.text, expected);
            assert!(changed.columns.is_some());
        }
        // The map comment stays where no columns change.
        let text = "a = 1; // –\n//# sourceMappingURL=a.js.map";
        assert!(
            ascii(text)
                .unwrap()
                .text
                .ends_with("sourceMappingURL=a.js.map")
        );
    }

    #[test]
    fn unescapable_text_is_refused() {
        for text in [
            "a = String.raw`–`;",
            "a = '\\–';",
            "const é = 1;",
            "a\u{a0}= 1;",
            "/* \u{2028} */ a = 1;",
            "a = '\u{2029}';",
            "a = 1; //# sourceMappingURL=–.map",
            "function f(RegExp) { return /–/ }",
            "class RegExp {} a = /–/",
            "import { x as RegExp } from 'y'; a = /–/",
            "this is no JavaScript –",
        ] {
            assert!(ascii(text).is_none(), "{text}");
        }
    }
}
