//! Adds values to enum members that follow a computed member: the transpiler leaves them
//! `undefined`. Each is the previous value plus one, as with Babel.

use deno_ast::swc::ast::{EsReserved, Expr, Lit, TsEnumDecl, TsEnumMemberId};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{ParsedSource, ProgramRef, SourceRangedForSpanned, TextChange};

/// Returns the changes that add the values.
pub(super) fn changes(parsed: &ParsedSource) -> Vec<TextChange> {
    let mut finder = EnumFinder {
        parsed,
        changes: Vec::new(),
    };
    if parsed.text().contains("enum") {
        match parsed.program_ref() {
            ProgramRef::Module(module) => module.visit_with(&mut finder),
            ProgramRef::Script(script) => script.visit_with(&mut finder),
        }
    }
    finder.changes
}

struct EnumFinder<'a> {
    parsed: &'a ParsedSource,
    changes: Vec<TextChange>,
}

impl Visit for EnumFinder<'_> {
    fn visit_ts_enum_decl(&mut self, found: &TsEnumDecl) {
        let start = self.parsed.range().start;
        let mut is_known = true;
        for (before, member) in found.members.iter().zip(found.members.iter().skip(1)) {
            if let Some(value) = &before.init {
                is_known = matches!(&**value, Expr::Lit(Lit::Num(_) | Lit::Str(_)));
            }
            if is_known || member.init.is_some() {
                continue;
            }
            let before = match &before.id {
                // A keyword can be a member's name, but not a variable.
                TsEnumMemberId::Ident(name) if name.sym.is_reserved_in_any() => {
                    format!("{}.{}", found.id.sym, name.sym)
                }
                TsEnumMemberId::Ident(name) => name.sym.to_string(),
                TsEnumMemberId::Str(name) => {
                    let name = serde_json::Value::from(name.value.to_string_lossy());
                    format!("{}[{name}]", found.id.sym)
                }
            };
            let end = member.range().as_byte_range(start).end;
            let value = format!(" = {before} + 1");
            self.changes.push(TextChange::new(end, end, value));
        }
    }
}
