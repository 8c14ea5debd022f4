//! How a file uses what it imports, as far as that says what an import may be of.

use std::collections::HashSet;

use deno_ast::swc::ast::{
    CallExpr, Callee, ComputedPropName, ExportDefaultExpr, Expr, Id, Ident, ImportDecl,
    ImportPhase, Lit, MemberExpr, MemberProp, MetaPropExpr, MetaPropKind, NamedExport, UnaryExpr,
    UnaryOp,
};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{ParsedSource, ProgramRef, SourceRange, SourceRangedForSpanned};

#[derive(Default)]
pub(super) struct Uses {
    plain: HashSet<Id>,
    guarded: HashSet<Id>,
    /// Where it says `import` of `import(…)`.
    pub dynamic: Vec<SourceRange>,
    /// True if the file reads `import.meta.env`.
    pub environment: bool,
}

impl Uses {
    /// `parsed` with scope analysis.
    pub fn of(parsed: &ParsedSource) -> Self {
        let mut uses = Self::default();
        match parsed.program_ref() {
            ProgramRef::Module(module) => module.visit_with(&mut uses),
            ProgramRef::Script(script) => script.visit_with(&mut uses),
        }
        uses
    }

    /// Whether it may be the name of a type in TypeScript: it is only exported again, or is
    /// asked for by `typeof` as the metadata of decorators do.
    pub fn may_be_type(&self, local: &Id) -> bool {
        self.guarded.contains(local) || !self.plain.contains(local)
    }
}

fn is_import_meta(object: &Expr) -> bool {
    matches!(
        object,
        Expr::MetaProp(MetaPropExpr {
            kind: MetaPropKind::ImportMeta,
            ..
        })
    )
}

fn is_named_env(property: &MemberProp) -> bool {
    match property {
        MemberProp::Ident(name) => name.sym == "env",
        MemberProp::Computed(ComputedPropName { expr, .. }) => {
            matches!(&**expr, Expr::Lit(Lit::Str(name)) if name.value.to_string_lossy() == "env")
        }
        MemberProp::PrivateName(_) => false,
    }
}

impl Visit for Uses {
    fn visit_import_decl(&mut self, _import: &ImportDecl) {}

    fn visit_named_export(&mut self, _export: &NamedExport) {}

    fn visit_export_default_expr(&mut self, export: &ExportDefaultExpr) {
        if !export.expr.is_ident() {
            export.visit_children_with(self);
        }
    }

    fn visit_unary_expr(&mut self, unary: &UnaryExpr) {
        match &*unary.arg {
            Expr::Ident(name) if unary.op == UnaryOp::TypeOf => {
                self.guarded.insert(name.to_id());
            }
            _ => unary.visit_children_with(self),
        }
    }

    fn visit_ident(&mut self, name: &Ident) {
        self.plain.insert(name.to_id());
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        self.environment |= is_import_meta(&member.obj) && is_named_env(&member.prop);
        member.visit_children_with(self);
    }

    fn visit_call_expr(&mut self, call: &CallExpr) {
        if let Callee::Import(import) = &call.callee
            && import.phase == ImportPhase::Evaluation
        {
            self.dynamic.push(import.range());
        }
        call.visit_children_with(self);
    }
}
