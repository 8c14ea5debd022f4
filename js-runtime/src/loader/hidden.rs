//! `Deno` is a variable of the layer that Node's API is made of, which is in the snapshot and
//! knows it as a global one (`js/globals.ts`). Whoever else looks for it is to find none, as
//! in Node: a file that names it gets a variable of its own, which is `undefined`.

use deno_ast::swc::ast;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{MediaType, ParsedSource, ProgramRef};
use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use memchr::memmem;

use super::Loader;
use super::ascii::Text;
use super::files::Files;
use crate::parsing::with_parsed;

const NAME: &str = "Deno";
/// Of every place in the file the line and the column stay what they are.
const OWN: &str = "\nvar Deno;";

impl Loader {
    pub(super) fn javascript(
        &self,
        specifier: &ModuleSpecifier,
        media_type: MediaType,
        source: &str,
    ) -> Result<String, JsErrorBox> {
        let code = self.made(specifier, media_type, source)?;
        Ok(self.files.without_deno(specifier, code))
    }
}

impl Files {
    /// What is required of a file of JavaScript that says this.
    pub fn to_require(&self, specifier: &ModuleSpecifier, text: String) -> Text {
        let text = self.without_deno(specifier, text);
        self.in_ascii(specifier, text)
    }

    /// What V8 is to have of a file that says this.
    pub fn without_deno(&self, specifier: &ModuleSpecifier, text: String) -> String {
        let looks = match at_a_glance(&text) {
            Glance::Nowhere => false,
            Glance::Used => true,
            Glance::Unclear => self.looks_for_deno(specifier, &text),
        };
        if looks { text + OWN } else { text }
    }

    fn looks_for_deno(&self, specifier: &ModuleSpecifier, text: &str) -> bool {
        let key = self.cache.key(&[b"deno", text.as_bytes()]);
        match self.cache.read(key, "deno").as_deref() {
            Some([answer]) => *answer == 1,
            _ => {
                let looks = looks_for_it(specifier, text);
                self.cache.write(key, "deno", &[u8::from(looks)]);
                looks
            }
        }
    }
}

/// What can be told of a file without parsing it, which takes 50 ms for each megabyte.
#[derive(Debug, PartialEq, Eq)]
enum Glance {
    Nowhere,
    /// Where nothing is declared: a variable of its own does no harm, though the name may only
    /// stand in a text or a comment.
    Used,
    Unclear,
}

fn at_a_glance(text: &str) -> Glance {
    let mut glance = Glance::Nowhere;
    for at in memmem::find_iter(text.as_bytes(), NAME.as_bytes()) {
        let (before, after) = (&text[..at], &text[at + NAME.len()..]);
        let is_named = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let is_part = before.ends_with(is_named) || after.starts_with(is_named);
        if is_part || before.ends_with('.') {
            continue;
        }
        if may_declare(before.trim_end(), after.trim_start()) {
            return Glance::Unclear;
        }
        glance = Glance::Used;
    }
    glance
}

/// Whether a name between these may be one that is declared there.
fn may_declare(before: &str, after: &str) -> bool {
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next();
    let words = ["const", "let", "var", "class", "function", "import", "as"];
    if word.is_some_and(|word| words.contains(&word)) {
        return true;
    }
    // Else it is the name of a member, a variable that is read, an argument.
    let is_read = after.starts_with([':', '.', '?', ')', '(', '[', '&', '|', '!', '"', '\'', '`']);
    !is_read && before.ends_with([',', '{', '[', '*', ':'])
}

/// Whether a file names it and does not declare it. What does not compile is left alone.
fn looks_for_it(specifier: &ModuleSpecifier, text: &str) -> bool {
    struct Finder<'a> {
        parsed: &'a ParsedSource,
        found: bool,
    }

    impl Visit for Finder<'_> {
        fn visit_ident(&mut self, ident: &ast::Ident) {
            let is_free = ident.ctxt == self.parsed.unresolved_context();
            self.found |= is_free && ident.sym.as_ref() == NAME;
        }
    }

    let text = text.to_owned();
    let found = with_parsed(specifier, MediaType::JavaScript, text, true, |parsed| {
        let mut finder = Finder {
            parsed: &parsed,
            found: false,
        };
        match parsed.program_ref() {
            ProgramRef::Module(module) => module.visit_with(&mut finder),
            ProgramRef::Script(script) => script.visit_with(&mut finder),
        }
        finder.found
    });
    found.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_files_need_not_be_parsed() {
        for (text, expected) in [
            ("Denoting", Glance::Nowhere),
            ("globalThis.Deno", Glance::Nowhere),
            ("typeof Deno !== 'undefined'", Glance::Used),
            ("x = \"Deno\" in globalThis && Deno.build", Glance::Used),
            ("f(a, Deno)", Glance::Used),
            ("({ Deno: 1 })", Glance::Used),
            ("const Deno = {};", Glance::Unclear),
            ("let a, Deno;", Glance::Unclear),
            ("const { a: Deno } = b", Glance::Unclear),
            ("import * as Deno from 'x'", Glance::Unclear),
            ("import Deno from 'x'", Glance::Unclear),
            ("function Deno() {}", Glance::Unclear),
        ] {
            assert_eq!(at_a_glance(text), expected, "{text}");
        }
    }

    #[test]
    fn only_what_is_not_declared_is_looked_for() {
        let url = ModuleSpecifier::parse("file:///a.js").unwrap();
        for (text, expected) in [
            ("exports.is = typeof Deno !== 'undefined'", true),
            (
                "export const is = 'Deno' in globalThis || Deno?.build;",
                true,
            ),
            ("function a() { let Deno; } Deno.a()", true),
            ("'Deno' // Deno", false),
            ("globalThis.Deno", false),
            ("const { Deno } = require('shim'); Deno.a()", false),
            ("import { Deno } from 'shim'; Deno.a()", false),
            ("a(); var Deno; typeof Deno", false),
            ("function a(Deno) { return Deno; }", false),
            ("Deno is no JavaScript", false),
        ] {
            assert_eq!(looks_for_it(&url, text), expected, "{text}");
        }
    }
}
