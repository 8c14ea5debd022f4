//! Rewrites `import x = require("y")` and `export = x`, TypeScript's syntax for CommonJS, which the
//! transpiler leaves as it is. Also keeps `export {} from "y"`, which the transpiler drops although
//! it runs y.

use deno_ast::swc::ast::{ModuleDecl, ModuleItem, TsModuleRef};
use deno_ast::{ParsedSource, ProgramRef, SourceRangedForSpanned, TextChange};

/// Returns changes to `const x = require("y")`, `module.exports = x` and `import "y"`.
pub(super) fn changes(parsed: &ParsedSource) -> Vec<TextChange> {
    let ProgramRef::Module(module) = parsed.program_ref() else {
        return Vec::new();
    };
    let start = parsed.range().start;
    let changes = module.body.iter().filter_map(|item| {
        let (from, to, replacement) = match item {
            ModuleItem::ModuleDecl(ModuleDecl::TsImportEquals(import)) => {
                let external = matches!(import.module_ref, TsModuleRef::TsExternalModuleRef(_));
                let replacement = match import.is_export {
                    true => "export const ",
                    false => "const ",
                };
                let is_value = !import.is_type_only && external;
                is_value.then(|| (import.start(), import.id.start(), replacement))?
            }
            ModuleItem::ModuleDecl(ModuleDecl::TsExportAssignment(export)) => {
                (export.start(), export.expr.start(), "module.exports = ")
            }
            ModuleItem::ModuleDecl(ModuleDecl::ExportNamed(export)) => {
                let is_bare = export.specifiers.is_empty() && !export.type_only;
                let source = export.src.as_ref().filter(|_| is_bare)?;
                (export.start(), source.start(), "import ")
            }
            _ => return None,
        };
        let (from, to) = (from.as_byte_index(start), to.as_byte_index(start));
        // The following text stays on its line.
        let lines = parsed.text()[from..to].matches('\n').count();
        let replacement = format!("{replacement}{}", "\n".repeat(lines));
        Some(TextChange::new(from, to, replacement))
    });
    changes.collect()
}
