//! Finds out how a file uses its imports, which tells what an import may be.

use std::collections::HashSet;

use deno_ast::swc::ast::{
    CallExpr, Callee, ComputedPropName, ExportDefaultExpr, Expr, Id, Ident, ImportDecl,
    ImportPhase, Lit, MemberExpr, MemberProp, MetaPropExpr, MetaPropKind, NamedExport, UnaryExpr,
    UnaryOp,
};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{ParsedSource, ProgramRef, SourceRange, SourceRangedForSpanned};

#[derive(Default)]
pub(super) struct ImportUsage {
    used: HashSet<Id>,
    typeof_only: HashSet<Id>,
    /// Ranges of the word `import` in `import(…)`.
    pub dynamic: Vec<SourceRange>,
    /// Whether the file reads `import.meta.env`.
    pub reads_env: bool,
}

impl ImportUsage {
    /// Analyses a file that was parsed with scope analysis.
    pub fn in_file(parsed: &ParsedSource) -> Self {
        let mut uses = Self::default();
        match parsed.program_ref() {
            ProgramRef::Module(module) => module.visit_with(&mut uses),
            ProgramRef::Script(script) => script.visit_with(&mut uses),
        }
        uses
    }

    /// Returns true if the name may be a TypeScript type: it is only re-exported, or is only used
    /// by `typeof`, as the metadata of decorators do.
    pub fn may_be_type(&self, local: &Id) -> bool {
        self.typeof_only.contains(local) || !self.used.contains(local)
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

impl Visit for ImportUsage {
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
                self.typeof_only.insert(name.to_id());
            }
            _ => unary.visit_children_with(self),
        }
    }

    fn visit_ident(&mut self, name: &Ident) {
        self.used.insert(name.to_id());
    }

    fn visit_member_expr(&mut self, member: &MemberExpr) {
        self.reads_env |= is_import_meta(&member.obj) && is_named_env(&member.prop);
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
