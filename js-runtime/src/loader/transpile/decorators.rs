//! Finds decorators outside classes, which the parser drops together with the calls in them.

use deno_ast::swc::ast::{BlockStmt, Decl, Module, ModuleDecl, ModuleItem, Script, Stmt};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{ParsedSource, ProgramRef, SourceRange, SourceRangedForSpanned};

pub(crate) const MISPLACED_DECORATOR: &str =
    "A decorator must be before a class or a member of one";

/// Returns line and column of the first one.
pub(crate) fn misplaced(parsed: &ParsedSource) -> Option<(usize, usize)> {
    if !parsed.text().contains('@') {
        return None;
    }
    let mut finder = DecoratorFinder {
        parsed,
        found: None,
    };
    match parsed.program_ref() {
        ProgramRef::Module(module) => module.visit_with(&mut finder),
        ProgramRef::Script(script) => script.visit_with(&mut finder),
    }
    let start = parsed.range().start + finder.found?;
    let position = parsed.text_info_lazy().line_and_column_display(start);
    Some((position.line_number, position.column_number))
}

struct DecoratorFinder<'a> {
    parsed: &'a ParsedSource,
    /// Offset in bytes.
    found: Option<usize>,
}

impl DecoratorFinder<'_> {
    /// Checks consecutive statements from offset `start` on, each with whether it is a class.
    fn check(&mut self, mut start: usize, statements: impl Iterator<Item = (SourceRange, bool)>) {
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

impl Visit for DecoratorFinder<'_> {
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
        self.check(0, items);
        module.visit_children_with(self);
    }

    fn visit_script(&mut self, script: &Script) {
        self.check(0, ranges(&script.body));
        script.visit_children_with(self);
    }

    fn visit_block_stmt(&mut self, block: &BlockStmt) {
        let range = block.range().as_byte_range(self.parsed.range().start);
        self.check(range.start + 1, ranges(&block.stmts));
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
    use crate::loader::transpile::parsing::with_parsed;

    #[test]
    fn decorators_outside_classes_are_misplaced() {
        let specifier = ModuleSpecifier::parse("file:///a.ts").unwrap();
        let check = |text: &str| {
            let text = text.to_owned();
            let found = with_parsed(&specifier, MediaType::TypeScript, text, false, |parsed| {
                misplaced(&parsed)
            });
            found.unwrap()
        };
        for (text, position) in [
            ("#!/usr/bin/env pi\nf(); // a@b\n/* c */ @ d.e(1);", (3, 9)),
            ("@d\nconst a = 1;", (1, 1)),
            ("@d() function f() {}", (1, 1)),
            ("@d export const a = 1;", (1, 1)),
            ("export default () => {\n  @d;\n};", (2, 3)),
            ("class A { m() { if (a) { @d f(); } } }", (1, 26)),
        ] {
            assert_eq!(check(text), Some(position), "{text}");
        }
        for text in [
            "/** @a */ import a from '@a/b'; // @b",
            "@d class A { @d m(@d a) {} @d p = 1 }\n@d() abstract class B {}",
            "@d export class A {}\nexport @d class B {}\n@d export default class C {}",
            "const a = @d class {}; export const b = '@', c = `@`;",
            "{ @d class A {} }",
        ] {
            assert_eq!(check(text), None, "{text}");
        }
    }
}
