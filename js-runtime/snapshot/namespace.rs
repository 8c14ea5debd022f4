//! Renames Deno's global variable. Deno's own JavaScript reaches its namespace through a global
//! variable named `Deno`. Packages look for that name to find out where they run, and must not find
//! it. So the variable has another name in every text of the layer, and the texts of packages stay
//! as they are.

use deno_ast::swc::ast;
use deno_ast::swc::common::SyntaxContext;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{
    MediaType, ModuleSpecifier, ParseParams, ProgramRef, SourceRangedForSpanned, StartSourcePos,
    TextChange,
};

/// The name that Deno's sources use.
const DENO: &str = "Deno";
/// The name that the program uses instead; `js/node/globals.ts` declares it.
const NAMESPACE: &str = "__denoNamespace";

/// The one file that makes code of strings (`new Function`), and the expression in it that names
/// Deno.
const MADE_CODE: (&str, &str) = ("ext:deno_fs/30_fs.js", "Deno.build.os");

/// Renames every free `Deno` in a text of JavaScript. A `Deno` that the text declares itself,
/// and a property of that name (`globalThis.Deno`), stay.
pub fn renamed(specifier: &str, source: String) -> String {
    // Every file of Deno begins with a comment that names its authors.
    if !source.replace("the Deno authors", "").contains(DENO) {
        return source;
    }
    let parsed = deno_ast::parse_program(ParseParams {
        specifier: ModuleSpecifier::parse(specifier).expect("it has a scheme"),
        text: source.into(),
        media_type: MediaType::JavaScript,
        capture_tokens: false,
        scope_analysis: true,
        maybe_syntax: None,
    })
    .unwrap_or_else(|e| panic!("{specifier}: {e}"));
    let mut names = FreeNames {
        unresolved: parsed.unresolved_context(),
        start: parsed.range().start,
        changes: Vec::new(),
    };
    match parsed.program_ref() {
        ProgramRef::Module(module) => module.visit_with(&mut names),
        ProgramRef::Script(script) => script.visit_with(&mut names),
    }
    let renamed = deno_ast::apply_text_changes(parsed.text(), names.changes);
    let (file, words) = MADE_CODE;
    if specifier != file {
        return renamed;
    }
    assert!(
        renamed.contains(words),
        "{file} does not say {words} any more"
    );
    renamed.replace(words, &words.replace(DENO, NAMESPACE))
}

struct FreeNames {
    unresolved: SyntaxContext,
    start: StartSourcePos,
    changes: Vec<TextChange>,
}

impl FreeNames {
    fn is_free(&self, name: &ast::Ident) -> bool {
        name.ctxt == self.unresolved && name.sym == DENO
    }

    fn change(&mut self, name: &ast::Ident, text: String) {
        let place = name.range().as_byte_range(self.start);
        self.changes
            .push(TextChange::new(place.start, place.end, text));
    }
}

impl Visit for FreeNames {
    fn visit_ident(&mut self, name: &ast::Ident) {
        if self.is_free(name) {
            self.change(name, NAMESPACE.into());
        }
    }

    /// Expands `{ Deno }` to `{ Deno: Deno }`, of which only the second is the variable.
    fn visit_prop(&mut self, property: &ast::Prop) {
        match property {
            ast::Prop::Shorthand(name) if self.is_free(name) => {
                self.change(name, format!("{DENO}: {NAMESPACE}"));
            }
            _ => property.visit_children_with(self),
        }
    }
}
