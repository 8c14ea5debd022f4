//! `import x = require("y")` and `export = x`: TypeScript's own words for CommonJS, which
//! the transpiler leaves as they are and JavaScript does not know.

use std::ops::Range;

use deno_ast::swc::ast::{ModuleDecl, ModuleItem, TsModuleRef};
use deno_ast::{ParsedSource, ProgramRef, SourceRangedForSpanned};

/// The text with `const x = require("y")` and `module.exports = x` in their places;
/// `None` if there are none.
pub(super) fn rewritten(parsed: &ParsedSource) -> Option<String> {
    let ProgramRef::Module(module) = parsed.program_ref() else {
        return None;
    };
    let start = parsed.text_info_lazy().range().start;
    let edits: Vec<(Range<usize>, &str)> = module
        .body
        .iter()
        .filter_map(|item| {
            let (from, to, words) = match item {
                ModuleItem::ModuleDecl(ModuleDecl::TsImportEquals(import)) => {
                    let external = matches!(import.module_ref, TsModuleRef::TsExternalModuleRef(_));
                    let words = match import.is_export {
                        true => "export const ",
                        false => "const ",
                    };
                    let is_value = !import.is_type_only && external;
                    is_value.then(|| (import.start(), import.id.start(), words))?
                }
                ModuleItem::ModuleDecl(ModuleDecl::TsExportAssignment(export)) => {
                    (export.start(), export.expr.start(), "module.exports = ")
                }
                _ => return None,
            };
            Some((from.as_byte_index(start)..to.as_byte_index(start), words))
        })
        .collect();
    if edits.is_empty() {
        return None;
    }
    let mut text = parsed.text().to_string();
    for (range, words) in edits.into_iter().rev() {
        text.replace_range(range, words);
    }
    Some(text)
}
