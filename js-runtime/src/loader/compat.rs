//! Makes ES modules as forgiving as the CommonJS that jiti makes of extensions.
//!
//! 1. `require`, `__filename` and `__dirname` are available.
//! 2. An import of a name that is not there (most often a type) is `undefined`
//!    instead of an error before anything runs; if a module of ours lacks the name,
//!    it throws when it is used.
//! 3. A default import of a CommonJS package compiled from ES modules is its
//!    `exports.default`, and every property can be imported by name.
//! 4. A file without exports that uses `module` or `exports` is CommonJS; one with
//!    exports may use them as well.
//!
//! Everything stays on its line, so that source maps stay true.

use std::collections::HashSet;
use std::fmt::Write;

use deno_ast::swc::ast;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{ParsedSource, ProgramRef, SourceRangedForSpanned, TextChange};

/// What an imported module is known to export.
pub(crate) enum Exports {
    /// Leave the import as it is.
    Unknown,
    /// An ES module with exactly these names.
    Known(HashSet<String>, Missing),
    CommonJs,
}

/// What stands in for a name that is not there.
pub(crate) enum Missing {
    Undefined,
    /// A value that throws; with the name by which the module was imported.
    Throws(String),
}

impl Missing {
    fn value_of(&self, name: &str) -> String {
        match self {
            Self::Undefined => "undefined".into(),
            Self::Throws(module) => format!(
                "globalThis[Symbol.for(\"pi.missing\")]({},{})",
                quote(name),
                quote(module)
            ),
        }
    }
}

const DEFINE_REQUIRE: &str = "import{Module as __pi_Module}from\"node:module\";\
    const require=globalThis[Symbol.for(\"pi.requireOf\")](import.meta,__pi_Module);";

/// All of it, for a file that was written for jiti. `parsed` is JavaScript, parsed
/// with scope analysis.
pub(crate) fn rewrite(
    parsed: &ParsedSource,
    exports_of: &mut dyn FnMut(&str) -> Exports,
) -> Option<String> {
    let free = free_names(parsed);
    let names_module = free.contains("module") || free.contains("exports");
    let is_cjs = parsed.compute_is_script() && names_module;
    let mut prelude = String::new();
    if names_module || free.contains("require") {
        prelude.push_str(DEFINE_REQUIRE);
    }
    for (name, value) in [("__filename", "filename"), ("__dirname", "dirname")] {
        if is_cjs || free.contains(name) {
            _ = write!(prelude, "const {name}=import.meta.{value};");
        }
    }
    if is_cjs {
        return Some(format!(
            "{prelude}const module={{exports:{{}},require,filename:__filename}};\
             (function(exports){{{}\n}}).call(module.exports,module.exports);\
             export default module.exports;",
            without_shebang(parsed.text())
        ));
    }
    let body = rewrite_imports(parsed, exports_of);
    if prelude.is_empty() {
        return body;
    }
    let body = body.unwrap_or_else(|| parsed.text().to_string());
    let body = without_shebang(&body);
    if !names_module {
        return Some(format!("{prelude}{body}"));
    }
    let end = match has_exports(parsed) {
        true => "",
        false => "\nexport default module.exports;",
    };
    Some(format!(
        "{prelude}const module={{exports:{{}},require,id:import.meta.filename,\
         filename:import.meta.filename,loaded:false,children:[],paths:[]}},exports=module.exports;\
         {body}{end}"
    ))
}

/// Whether what a file exports is what it puts into `module.exports`. `parsed` is
/// JavaScript, parsed with scope analysis if it may name that.
pub(crate) fn exports_by_assignment(parsed: &ParsedSource) -> bool {
    let free = free_names(parsed);
    !has_exports(parsed) && (free.contains("module") || free.contains("exports"))
}

/// Whether a text may name what CommonJS modules are given.
pub(crate) fn may_name_module(text: &str) -> bool {
    NODE_NAMES.iter().any(|name| text.contains(name))
}

fn has_exports(parsed: &ParsedSource) -> bool {
    let ProgramRef::Module(module) = parsed.program_ref() else {
        return false;
    };
    module.body.iter().any(|item| {
        let is_import = |declaration: &_| matches!(declaration, ast::ModuleDecl::Import(_));
        matches!(item, ast::ModuleItem::ModuleDecl(declaration) if !is_import(declaration))
    })
}

/// Only the imports.
pub(crate) fn rewrite_imports(
    parsed: &ParsedSource,
    exports_of: &mut dyn FnMut(&str) -> Exports,
) -> Option<String> {
    let ProgramRef::Module(module) = parsed.program_ref() else {
        return None;
    };
    let start = parsed.range().start;
    let mut changes = Vec::new();
    for (index, item) in module.body.iter().enumerate() {
        let ast::ModuleItem::ModuleDecl(declaration) = item else {
            continue;
        };
        let replacement =
            match declaration {
                ast::ModuleDecl::Import(import) if import.with.is_none() => {
                    let specifier = import.src.value.to_string_lossy();
                    match exports_of(&specifier) {
                        Exports::Unknown => None,
                        Exports::Known(names, missing) => import_known(import, &names, &missing),
                        Exports::CommonJs => import_cjs(import, index),
                    }
                }
                ast::ModuleDecl::ExportNamed(export) => export.src.as_ref().and_then(|src| {
                    match exports_of(&src.value.to_string_lossy()) {
                        Exports::Known(names, missing) => {
                            reexport_known(export, index, &names, &missing)
                        }
                        _ => None,
                    }
                }),
                _ => None,
            };
        if let Some(text) = replacement {
            let range = declaration.range().as_byte_range(start);
            // As many lines as before.
            let lines = parsed.text()[range.clone()].matches('\n').count();
            let text = format!("{text}{}", "\n".repeat(lines));
            changes.push(TextChange::new(range.start, range.end, text));
        }
    }
    (!changes.is_empty()).then(|| deno_ast::apply_text_changes(parsed.text(), changes))
}

fn without_shebang(text: &str) -> String {
    match text.starts_with("#!") {
        // A comment of the same kind may stand anywhere.
        true => format!("//{text}"),
        false => text.to_string(),
    }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn import_known(
    import: &ast::ImportDecl,
    names: &HashSet<String>,
    missing: &Missing,
) -> Option<String> {
    let (mut kept, mut absent) = (Vec::new(), String::new());
    for specifier in &import.specifiers {
        let (name, local) = match specifier {
            ast::ImportSpecifier::Named(named) => (imported_name(named), &named.local.sym),
            ast::ImportSpecifier::Default(default) => ("default".into(), &default.local.sym),
            ast::ImportSpecifier::Namespace(_) => return None,
        };
        if names.contains(&name) {
            kept.push(format!("{} as {local}", quote(&name)));
        } else {
            _ = write!(absent, "const {local}={};", missing.value_of(&name));
        }
    }
    if absent.is_empty() {
        return None;
    }
    let source = quote(&import.src.value.to_string_lossy());
    Some(format!("import{{{}}}from{source};{absent}", kept.join(",")))
}

fn import_cjs(import: &ast::ImportDecl, index: usize) -> Option<String> {
    if import.specifiers.is_empty() {
        return None;
    }
    let module = format!("__pi_cjs{index}");
    let source = quote(&import.src.value.to_string_lossy());
    let mut out = format!("import {module} from {source};");
    for specifier in &import.specifiers {
        let (local, value) = match specifier {
            ast::ImportSpecifier::Named(named) => {
                let value = match imported_name(named) {
                    name if name == "default" => default_of(&module),
                    name => format!("{module}?.[{}]", quote(&name)),
                };
                (&named.local.sym, value)
            }
            ast::ImportSpecifier::Default(default) => (&default.local.sym, default_of(&module)),
            ast::ImportSpecifier::Namespace(namespace) => (
                &namespace.local.sym,
                format!(
                    "{module}?.__esModule?{module}:\
                     Object.assign(Object.create(null),{module},{{default:{module}}})"
                ),
            ),
        };
        _ = write!(out, "const {local}={value};");
    }
    Some(out)
}

/// Babel's interop.
fn default_of(module: &str) -> String {
    format!("{module}?.__esModule&&\"default\" in {module}?{module}.default:{module}")
}

fn reexport_known(
    export: &ast::NamedExport,
    index: usize,
    names: &HashSet<String>,
    missing: &Missing,
) -> Option<String> {
    let source = quote(&export.src.as_ref()?.value.to_string_lossy());
    let (mut kept, mut absent) = (Vec::new(), String::new());
    for (number, specifier) in export.specifiers.iter().enumerate() {
        let ast::ExportSpecifier::Named(named) = specifier else {
            return None;
        };
        let original = named.orig.atom().to_string();
        let exported = match &named.exported {
            Some(exported) => exported.atom().to_string(),
            None => original.clone(),
        };
        if names.contains(&original) {
            kept.push(format!("{} as {}", quote(&original), quote(&exported)));
        } else {
            // Exported all the same: whoever imports it counts on that.
            let local = format!("__pi_missing{index}_{number}");
            _ = write!(
                absent,
                "const {local}={};export{{{local} as {}}};",
                missing.value_of(&original),
                quote(&exported)
            );
        }
    }
    let kept = kept.join(",");
    (!absent.is_empty()).then(|| format!("export{{{kept}}}from{source};{absent}"))
}

fn imported_name(named: &ast::ImportNamedSpecifier) -> String {
    match &named.imported {
        Some(imported) => imported.atom().to_string(),
        None => named.local.sym.to_string(),
    }
}

const NODE_NAMES: [&str; 5] = ["require", "__filename", "__dirname", "module", "exports"];

/// The CommonJS names that the file uses and does not declare.
fn free_names(parsed: &ParsedSource) -> HashSet<String> {
    struct Finder {
        unresolved: deno_ast::swc::common::SyntaxContext,
        found: HashSet<String>,
    }

    impl Visit for Finder {
        fn visit_ident(&mut self, ident: &ast::Ident) {
            if ident.ctxt == self.unresolved && NODE_NAMES.contains(&ident.sym.as_ref()) {
                self.found.insert(ident.sym.to_string());
            }
        }
    }

    if !may_name_module(parsed.text()) {
        return HashSet::new();
    }
    let mut finder = Finder {
        unresolved: parsed.unresolved_context(),
        found: HashSet::new(),
    };
    match parsed.program_ref() {
        ProgramRef::Module(module) => module.visit_with(&mut finder),
        ProgramRef::Script(script) => script.visit_with(&mut finder),
    }
    finder.found
}
