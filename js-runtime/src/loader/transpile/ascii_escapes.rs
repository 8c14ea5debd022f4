//! What a file says, in ASCII. Comments, strings and regular expressions may have what is not;
//! in names, and in templates that a function sees as they are written, there is no other way
//! to write it.

use std::ops::Range;

use deno_ast::swc::ast;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{
    MediaType, ModuleSpecifier, ParsedSource, ProgramRef, SourceRange, SourceRangedForSpanned,
};

use super::moves::Moves;
use crate::parsing::with_parsed;

pub(super) struct InAscii {
    pub text: String,
    /// `None` if every character is where it was.
    pub moves: Option<Moves>,
}

/// `None` if there is no way.
pub(super) fn in_ascii(specifier: &ModuleSpecifier, text: &str) -> Option<InAscii> {
    // They end lines wherever they stand.
    if text.contains(['\u{2028}', '\u{2029}']) {
        return None;
    }
    let source = text.to_string();
    let found = with_parsed(specifier, MediaType::JavaScript, source, false, |parsed| {
        written_in_ascii(&parsed, text)
    });
    found.ok()?
}

fn written_in_ascii(parsed: &ParsedSource, text: &str) -> Option<InAscii> {
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
        edits.extend(in_comment(text, comment)?);
    }
    for range in literals.texts {
        edits.extend(in_text(text, bytes(range))?);
    }
    for range in literals.patterns {
        if let Some(edit) = pattern(text, bytes(range))? {
            // The name has to mean what the literal does.
            edits.extend((!literals.has_own_regexp).then_some(edit));
        }
    }
    if edits.iter().any(|edit| edit.moves(text)) {
        // The map is found by the name of the file then, and both count.
        edits.extend(comments.into_iter().filter_map(|at| without_map(text, at)));
    }
    edits.sort_by_key(|edit| edit.at.start);
    let (text, moves) = apply(text, &edits);
    text.is_ascii().then_some(InAscii { text, moves })
}

/// What stands at `at` becomes `to`.
struct Edit {
    at: Range<usize>,
    to: String,
}

impl Edit {
    fn moves(&self, text: &str) -> bool {
        units(&text[self.at.clone()]) != self.to.len()
    }
}

/// Where what is not ASCII may be written in another way.
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

/// Question marks, as many as V8 counts characters. `None` if what the comment says counts.
fn in_comment(text: &str, at: &Range<usize>) -> Option<Vec<Edit>> {
    let comment = text.get(at.clone())?;
    if !comment.is_ascii() && (comment.contains(MAP) || comment.contains("sourceURL")) {
        return None;
    }
    let edits = foreign(text, at.clone()).map(|(at, character)| Edit {
        at,
        to: "?".repeat(character.len_utf16()),
    });
    Some(edits.collect())
}

/// Escapes in a string or a template. `None` where one stands behind a backslash: that would
/// be another escape.
fn in_text(text: &str, at: Range<usize>) -> Option<Vec<Edit>> {
    let edit = |(at, character): (Range<usize>, char)| {
        let is_escaped = text[..at.start].ends_with('\\');
        (!is_escaped).then(|| Edit {
            at,
            to: escaped(character),
        })
    };
    foreign(text, at).map(edit).collect()
}

/// The same regular expression, made of strings: with an escape in it, it would not say the
/// same of its `source`. An error is `None`.
fn pattern(text: &str, at: Range<usize>) -> Option<Option<Edit>> {
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
    // In parentheses, it stands wherever a literal may.
    let to = format!("(RegExp(\"{quoted}\",\"{flags}\"))");
    Some(Some(Edit { at, to }))
}

const MAP: &str = "sourceMappingURL";

fn without_map(text: &str, at: Range<usize>) -> Option<Edit> {
    let map = at.start + text[at].find(MAP)?;
    Some(Edit {
        at: map..map + MAP.len(),
        to: "?".repeat(MAP.len()),
    })
}

fn foreign(text: &str, at: Range<usize>) -> impl Iterator<Item = (Range<usize>, char)> {
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

/// As V8 counts.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn apply(text: &str, edits: &[Edit]) -> (String, Option<Moves>) {
    let mut changed = String::with_capacity(text.len() + text.len() / 16);
    let mut moves = Moves::default();
    let mut done = 0;
    for edit in edits {
        let before = &text[done..edit.at.start];
        moves.pass(before);
        changed.push_str(before);
        moves.replace(units(&text[edit.at.clone()]), edit.to.len());
        changed.push_str(&edit.to);
        done = edit.at.end;
    }
    moves.pass(&text[done..]);
    changed.push_str(&text[done..]);
    (changed, moves.if_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ascii(text: &str) -> Option<InAscii> {
        let url = ModuleSpecifier::parse("file:///node_modules/a/index.js").unwrap();
        in_ascii(&url, text)
    }

    #[test]
    fn comments_lose_what_is_no_ascii_and_nothing_moves() {
        let text =
            "/* – 😀 */ const a = 'x'; // “b”\nconst b = /\\/* [/*] /; // …\nexports.b = a\n";
        let changed = ascii(text).unwrap();
        assert_eq!(
            changed.text,
            "/* ? ?? */ const a = 'x'; // ?b?\nconst b = /\\/* [/*] /; // ?\nexports.b = a\n"
        );
        assert_eq!(changed.text.len(), text.encode_utf16().count());
        assert!(changed.moves.is_none());
    }

    #[test]
    fn strings_templates_and_patterns_say_the_same() {
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
            // What needs no change gets none.
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
            assert!(changed.moves.is_some());
        }
        // Its map stays where nothing moves.
        let text = "a = 1; // –\n//# sourceMappingURL=a.js.map";
        assert!(
            ascii(text)
                .unwrap()
                .text
                .ends_with("sourceMappingURL=a.js.map")
        );
    }

    #[test]
    fn what_can_not_be_written_otherwise_stays() {
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
