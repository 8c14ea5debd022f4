//! Decorators of what is no class: the parser drops them, with the calls that are in them.

use deno_ast::swc::ast::{BlockStmt, Decl, Module, ModuleDecl, ModuleItem, Script, Stmt};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{ParsedSource, ProgramRef, SourceRange, SourceRangedForSpanned};

pub(crate) const MISPLACED: &str = "A decorator must be before a class or a member of one";

/// Line and column of the first.
pub(crate) fn misplaced(parsed: &ParsedSource) -> Option<(usize, usize)> {
    if !parsed.text().contains('@') {
        return None;
    }
    let mut finder = Finder {
        parsed,
        found: None,
    };
    match parsed.program_ref() {
        ProgramRef::Module(module) => module.visit_with(&mut finder),
        ProgramRef::Script(script) => script.visit_with(&mut finder),
    }
    let start = parsed.range().start + finder.found?;
    let place = parsed.text_info_lazy().line_and_column_display(start);
    Some((place.line_number, place.column_number))
}

struct Finder<'a> {
    parsed: &'a ParsedSource,
    /// In bytes.
    found: Option<usize>,
}

impl Finder<'_> {
    /// At statements that follow one another from `start` on, each with whether it is a class.
    fn look(&mut self, mut start: usize, statements: impl Iterator<Item = (SourceRange, bool)>) {
        let text = self.parsed.text();
        for (range, is_class) in statements {
            let range = range.as_byte_range(self.parsed.range().start);
            let between = text.get(start..range.end).unwrap_or_default();
            let rest = past_comments(between);
            if !is_class && rest.starts_with('@') && self.found.is_none() {
                self.found = Some(range.end - rest.len());
            }
            start = range.end;
        }
    }
}

impl Visit for Finder<'_> {
    fn visit_module(&mut self, module: &Module) {
        let items = module.body.iter().map(|item| {
            let is_class = match item {
                ModuleItem::Stmt(statement) => is_class(statement),
                ModuleItem::ModuleDecl(ModuleDecl::ExportDecl(export)) => export.decl.is_class(),
                ModuleItem::ModuleDecl(ModuleDecl::ExportDefaultDecl(export)) => {
                    export.decl.is_class()
                }
                ModuleItem::ModuleDecl(_) => false,
            };
            (item.range(), is_class)
        });
        self.look(0, items);
        module.visit_children_with(self);
    }

    fn visit_script(&mut self, script: &Script) {
        self.look(0, ranges(&script.body));
        script.visit_children_with(self);
    }

    fn visit_block_stmt(&mut self, block: &BlockStmt) {
        let range = block.range().as_byte_range(self.parsed.range().start);
        self.look(range.start + 1, ranges(&block.stmts));
        block.visit_children_with(self);
    }
}

fn ranges(statements: &[Stmt]) -> impl Iterator<Item = (SourceRange, bool)> {
    let statements = statements.iter();
    statements.map(|statement| (statement.range(), is_class(statement)))
}

fn is_class(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Decl(Decl::Class(_)))
}

fn past_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let end = match text.as_bytes() {
            [b'/', b'/', ..] | [b'#', b'!', ..] => "\n",
            [b'/', b'*', ..] => "*/",
            _ => return text,
        };
        text = text.split_once(end).map_or("", |(_, after)| after);
    }
}

#[cfg(test)]
mod tests {
    use deno_ast::{MediaType, ModuleSpecifier};

    use super::*;
    use crate::parsing::with_parsed;

    #[test]
    fn only_those_of_classes_have_a_place() {
        let specifier = ModuleSpecifier::parse("file:///a.ts").unwrap();
        let look = |text: &str| {
            let text = text.to_owned();
            let found = with_parsed(&specifier, MediaType::TypeScript, text, false, |parsed| {
                misplaced(&parsed)
            });
            found.unwrap()
        };
        for (text, place) in [
            ("#!/usr/bin/env pi\nf(); // a@b\n/* c */ @ d.e(1);", (3, 9)),
            ("@d\nconst a = 1;", (1, 1)),
            ("@d() function f() {}", (1, 1)),
            ("@d export const a = 1;", (1, 1)),
            ("export default () => {\n  @d;\n};", (2, 3)),
            ("class A { m() { if (a) { @d f(); } } }", (1, 26)),
        ] {
            assert_eq!(look(text), Some(place), "{text}");
        }
        for text in [
            "/** @a */ import a from '@a/b'; // @b",
            "@d class A { @d m(@d a) {} @d p = 1 }\n@d() abstract class B {}",
            "@d export class A {}\nexport @d class B {}\n@d export default class C {}",
            "const a = @d class {}; export const b = '@', c = `@`;",
            "{ @d class A {} }",
        ] {
            assert_eq!(look(text), None, "{text}");
        }
    }
}
