//! Finds the position of an import in a file, for errors. V8 and deno_core do not report it.

use deno_ast::swc::ast;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{MediaType, ModuleSpecifier, ProgramRef, SourceRange, SourceRangedForSpanned};
use deno_path_util::url_to_file_path;

use super::files::read_text;
use crate::loader::transpile::parsing::with_parsed;

/// Returns `path:line:column` of the first import of `specifier` in the file `referrer`.
pub(crate) fn position_of_import(specifier: &str, referrer: &str) -> Option<String> {
    let url = ModuleSpecifier::parse(referrer).ok()?;
    let path = url_to_file_path(&url).ok()?;
    let source = read_text(&path).ok()?;
    let position = with_parsed(&url, MediaType::from_path(&path), source, false, |parsed| {
        let mut finder = ImportFinder {
            specifier,
            found: None,
        };
        match parsed.program_ref() {
            ProgramRef::Module(module) => module.visit_with(&mut finder),
            ProgramRef::Script(script) => script.visit_with(&mut finder),
        }
        let text = parsed.text_info_lazy();
        Some(text.line_and_column_display(finder.found?.start))
    });
    let position = position.ok()??;
    Some(format!(
        "{}:{}:{}",
        path.display(),
        position.line_number,
        position.column_number
    ))
}

struct ImportFinder<'a> {
    specifier: &'a str,
    found: Option<SourceRange>,
}

impl ImportFinder<'_> {
    fn check(&mut self, text: &ast::Str) {
        if self.found.is_none() && text.value.to_string_lossy() == self.specifier {
            self.found = Some(text.range());
        }
    }
}

impl Visit for ImportFinder<'_> {
    fn visit_import_decl(&mut self, import: &ast::ImportDecl) {
        self.check(&import.src);
    }

    fn visit_named_export(&mut self, export: &ast::NamedExport) {
        if let Some(src) = &export.src {
            self.check(src);
        }
    }

    fn visit_export_all(&mut self, export: &ast::ExportAll) {
        self.check(&export.src);
    }

    fn visit_call_expr(&mut self, call: &ast::CallExpr) {
        if let ast::Callee::Import(_) = call.callee
            && let Some(argument) = call.args.first()
            && let ast::Expr::Lit(ast::Lit::Str(text)) = &*argument.expr
        {
            self.check(text);
        }
        call.visit_children_with(self);
    }
}
