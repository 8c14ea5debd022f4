//! Removes the types of a long file whose TypeScript is nothing but types. swc ends with a pass that
//! makes names unique after other passes have added some. It compares each variable with all of
//! that name in the file: 18,000 functions with a parameter `a` take 160 million comparisons. Where
//! only types are removed, no name is added, and the pass is left out.

use deno_ast::swc::ast::{
    Decorator, Program, TsEnumDecl, TsExportAssignment, TsImportEqualsDecl, TsModuleDecl,
    TsParamProp,
};
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::swc::transforms::typescript::{self, ImportsNotUsedAsValues};
use deno_ast::swc::transforms::{fixer, resolver};
use deno_ast::{EmittedSourceText, MediaType, ParsedSource, ProgramRef, SourceMap};

use super::emit::emit_options;

/// Length in bytes from which a file counts as long. The pass takes little time in a shorter one.
pub(super) const LONG_TEXT: usize = 128 << 10;

/// Returns the JavaScript and its source map; `None` if there is more to do than to remove types.
pub(super) fn erase_types(parsed: &ParsedSource) -> Option<EmittedSourceText> {
    let is_plain = matches!(parsed.media_type(), MediaType::TypeScript | MediaType::Mts);
    let program = parsed.program();
    if !is_plain || !parsed.diagnostics().is_empty() || !is_erasable(&program) {
        return None;
    }
    let program = Program::clone(&program);
    if !program.is_module() {
        return None;
    }
    let comments = parsed.comments().as_single_threaded();
    let program = parsed.globals().with(|marks| {
        // The configuration of `ParsedSource::transpile`.
        let config = typescript::Config {
            import_not_used_as_values: ImportsNotUsedAsValues::Remove,
            no_empty_export: true,
            ts_enum_is_mutable: true,
            ..Default::default()
        };
        program.apply((
            resolver(marks.unresolved, marks.top_level, true),
            typescript::typescript(config, marks.unresolved, marks.top_level),
            fixer(Some(&comments)),
        ))
    });
    let source_map = SourceMap::single(parsed.specifier().clone(), parsed.text().to_string());
    let program = ProgramRef::from(&program);
    deno_ast::emit(program, &comments, &source_map, &emit_options()).ok()
}

/// Returns true if no syntax of TypeScript stands for code.
fn is_erasable(program: &Program) -> bool {
    let mut finder = CodeFinder::default();
    program.visit_with(&mut finder);
    !finder.found
}

/// Finds syntax of TypeScript that stands for code.
#[derive(Default)]
struct CodeFinder {
    found: bool,
}

impl Visit for CodeFinder {
    fn visit_ts_enum_decl(&mut self, _: &TsEnumDecl) {
        self.found = true;
    }

    fn visit_ts_module_decl(&mut self, _: &TsModuleDecl) {
        self.found = true;
    }

    /// A property initializer moves into the constructor, where a parameter may have a name of it.
    fn visit_ts_param_prop(&mut self, _: &TsParamProp) {
        self.found = true;
    }

    fn visit_ts_import_equals_decl(&mut self, _: &TsImportEqualsDecl) {
        self.found = true;
    }

    fn visit_ts_export_assignment(&mut self, _: &TsExportAssignment) {
        self.found = true;
    }

    fn visit_decorator(&mut self, _: &Decorator) {
        self.found = true;
    }
}

#[cfg(test)]
mod tests {
    use deno_ast::{ModuleSpecifier, TranspileModuleOptions, TranspileOptions};

    use super::*;
    use crate::loader::transpile::parsing::with_parsed;

    /// Returns what comes of a text here, and what comes of it with all passes.
    fn both(text: &str) -> (Option<EmittedSourceText>, EmittedSourceText) {
        let specifier = ModuleSpecifier::parse("file:///a.ts").unwrap();
        let transpile = |parsed: ParsedSource| {
            let erased = erase_types(&parsed);
            let options = (
                TranspileOptions::default(),
                TranspileModuleOptions::default(),
            );
            let all = parsed.transpile(&options.0, &options.1, &emit_options());
            (erased, all.unwrap().into_source())
        };
        with_parsed(
            &specifier,
            MediaType::TypeScript,
            text.into(),
            false,
            transpile,
        )
        .unwrap()
    }

    #[test]
    fn erased_types_leave_the_code_that_all_passes_leave() {
        let text = r#"#!/usr/bin/env pi
import { type A, B, c, d as e } from "./a.ts"; // a comment
import type { F } from "./f.ts";
import "./g.ts";
export type { F };
export { B, type A };
export * from "./h.ts";
interface I<T> extends A { x: T }
type Of<T> = T extends infer U ? U : never;
declare const global: number;
declare function over(a: number): void;
export function over(a: any, b?: string): number { const e = a as number; { const a = e!; return a; } }
export const g = async <T,>(x: T, ...rest: T[]): Promise<T> => { for (let x = 0; x < 1; x += 1) { void x; } return x; };
var h = function over(over: number) { return over satisfies number; };
export default abstract class K<T> extends (c as any)<T> implements I<T> {
    declare d: number; static #x?: string = "x"; y: A | undefined; readonly [key: string]: unknown;
    private z = (x => x)(1); abstract m(): void; constructor(a: number, override?: any) { super(); }
    get w(): number { return <number>this.z; } static { K.#x = `a${e}`; }
}
let { a, ...b }: { a: number } = h(1) as any; label: for (const c of [a, b]) continue label;
(<any>h)(global); (h as any) = undefined; let last: typeof e = e"#;
        let (erased, all) = both(text);
        assert_eq!(erased, Some(all));
    }

    #[test]
    fn syntax_that_stands_for_code_is_left_to_all_passes() {
        for text in [
            "enum E { A }",
            "namespace N { export const a = 1; }",
            "class C { constructor(private a: number) {} }",
            "@d class C {}",
            "import a = require(\"a\");",
            "export = 1;",
        ] {
            assert_eq!(both(text).0, None, "{text}");
        }
    }
}
