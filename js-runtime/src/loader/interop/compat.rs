//! Makes ES modules as forgiving as the CommonJS that jiti makes of extensions.
//!
//! 1. `require`, `__filename` and `__dirname` are available.
//! 2. An import of a missing name (most often a type) is `undefined` instead of an error
//!    before any code runs. If a module of pi lacks the name, it throws when it is used. The
//!    exports of packages and of Node's modules are not looked up: the rule applies there to
//!    names that may be TypeScript types ([`ImportUsage::may_be_type`]). A default import of
//!    an ES module without a default is the module.
//! 3. A default import of a CommonJS package compiled from ES modules is its
//!    `exports.default`, and every property can be imported by name. `import()` returns the
//!    same (js/node/import-interop.ts).
//! 4. A file without exports that uses `module` or `exports` is CommonJS; one with exports
//!    may use them as well.
//!
//! All code stays on its line, so that source maps stay true.

use std::collections::HashSet;
use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use deno_ast::swc::ast;
use deno_ast::swc::ecma_visit::{Visit, VisitWith};
use deno_ast::{ParsedSource, ProgramRef, SourceRangedForSpanned, TextChange};

use super::import_usage::ImportUsage;
use super::missing_exports::{MissingExport, imported_name};

/// Known exports of an imported module.
pub(crate) enum Exports {
    /// The import stays as it is.
    Unknown,
    /// An ES module with exactly these names.
    Known(HashSet<String>, Substitute),
    /// An ES module with these names and perhaps others, but no other `default`.
    Partial {
        names: HashSet<String>,
        url: ModuleUrl,
    },
    CommonJs(ModuleUrl),
}

/// URL of a module that is the same for all importers: of a package, or of Node.
pub(crate) type ModuleUrl = Option<String>;

/// Value of a name that is not exported.
pub(crate) enum Substitute {
    Undefined,
    /// A value that throws when it is used; holds the name by which the module was imported.
    Throws(String),
}

impl Exports {
    /// Returns true if a name can be imported as it is. With the import usage of a TypeScript file,
    /// a name that may be a type is taken to be missing; `local` is its name in that file.
    fn has(&self, name: &str, local: Option<&ast::Ident>, types: Option<&ImportUsage>) -> bool {
        let may_be_type =
            |uses: &ImportUsage| local.is_none_or(|local| uses.may_be_type(&local.to_id()));
        match self {
            Self::Unknown | Self::CommonJs(_) => true,
            Self::Known(names, _) => names.contains(name),
            Self::Partial { names, .. } => {
                names.contains(name) || (name != "default" && !types.is_some_and(may_be_type))
            }
        }
    }

    /// Returns the module in which uncertain names can be looked up.
    fn url(&self) -> Option<&str> {
        match self {
            Self::Partial { url, .. } => url.as_deref(),
            _ => None,
        }
    }

    /// Returns the code of the value for a missing name; `all` is the namespace of the module.
    fn substitute(&self, name: &str, all: &str) -> String {
        match self {
            Self::Known(_, Substitute::Throws(module)) => format!(
                "globalThis[Symbol.for(\"pi.missing\")]({},{})",
                quote(name),
                quote(module)
            ),
            _ if name == "default" => all.into(),
            Self::Partial { .. } => format!("{all}[{}]", quote(name)),
            _ => "undefined".into(),
        }
    }
}

const DEFINE_REQUIRE: &str = "import{Module as __pi_Module}from\"node:module\";\
    const require=globalThis[Symbol.for(\"pi.requireOf\")](import.meta,__pi_Module);";

/// `require` returns the export named "module.exports".
const EXPORT_ASSIGNED: &str = "const __pi_exports=module.exports;export{__pi_exports as default,__pi_exports as \"module.exports\"};";

const IMPORT: &str = "\nfunction __pi_i(specifier,options){\
    return globalThis[Symbol.for(\"pi.imported\")](import(specifier,options));}";

/// Rewrites a file that was written for jiti. `parsed` is JavaScript, parsed with scope analysis.
/// Names that are used and missing are added to `missing`.
pub(crate) fn rewrite(
    parsed: &ParsedSource,
    is_typescript: bool,
    exports_of: &mut dyn FnMut(&str) -> Exports,
    missing: &mut Vec<MissingExport>,
) -> Option<String> {
    let free = free_names(parsed);
    let uses = ImportUsage::in_file(parsed);
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
    if uses.reads_env {
        prelude.push_str("import.meta.env=globalThis.process.env;");
    }
    let types = is_typescript.then_some(&uses);
    let mut changes = import_changes(parsed, types, exports_of, &mut |local, name| {
        // Types, and names that are checked before they are used, get no warning.
        if !uses.may_be_type(&local.to_id()) {
            missing.push(name);
        }
    });
    let start = parsed.range().start;
    changes.extend(uses.dynamic.iter().map(|word| {
        let range = word.as_byte_range(start);
        // The replacement is as long as the word, so that columns stay true.
        TextChange::new(range.start, range.end, "__pi_i".into())
    }));
    let end = match uses.dynamic.is_empty() {
        true => "",
        false => IMPORT,
    };
    if changes.is_empty() && prelude.is_empty() {
        return None;
    }
    let body = deno_ast::apply_text_changes(parsed.text(), changes);
    let body = without_shebang(&body);
    if is_cjs {
        return Some(format!(
            "{prelude}const module={{exports:{{}},require,filename:__filename}};\
             (function(exports){{{body}\n}}).call(module.exports,module.exports);\
             {EXPORT_ASSIGNED}{end}"
        ));
    }
    if !names_module {
        return Some(format!("{prelude}{body}{end}"));
    }
    let exports = match has_exports(parsed) {
        true => "",
        false => EXPORT_ASSIGNED,
    };
    Some(format!(
        "{prelude}const module={{exports:{{}},require,id:import.meta.filename,\
         filename:import.meta.filename,loaded:false,children:[],paths:[]}},exports=module.exports;\
         {body}\n{exports}{end}"
    ))
}

/// Returns true if the file exports by assigning to `module.exports`. `parsed` is JavaScript,
/// parsed with scope analysis if it may contain that name.
pub(crate) fn exports_by_assignment(parsed: &ParsedSource) -> bool {
    let free = free_names(parsed);
    !has_exports(parsed) && (free.contains("module") || free.contains("exports"))
}

/// Returns true if a text may contain a variable that CommonJS modules are given.
pub(crate) fn may_name_module(text: &str) -> bool {
    COMMONJS_NAMES.iter().any(|name| text.contains(name))
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

/// Rewrites only the imports.
pub(crate) fn rewrite_imports(
    parsed: &ParsedSource,
    exports_of: &mut dyn FnMut(&str) -> Exports,
) -> Option<String> {
    let changes = import_changes(parsed, None, exports_of, &mut |_, _| {});
    (!changes.is_empty()).then(|| deno_ast::apply_text_changes(parsed.text(), changes))
}

fn import_changes(
    parsed: &ParsedSource,
    types: Option<&ImportUsage>,
    exports_of: &mut dyn FnMut(&str) -> Exports,
    on_missing: &mut dyn FnMut(&ast::Ident, MissingExport),
) -> Vec<TextChange> {
    let ProgramRef::Module(module) = parsed.program_ref() else {
        return Vec::new();
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
                    match exports_of(&import.src.value.to_string_lossy()) {
                        Exports::CommonJs(_) => import_cjs(import, index),
                        exports => import_es(import, index, &exports, types, on_missing),
                    }
                }
                ast::ModuleDecl::ExportNamed(export) => export.src.as_ref().and_then(|src| {
                    match exports_of(&src.value.to_string_lossy()) {
                        Exports::CommonJs(url) => reexport_cjs(export, &url?),
                        exports => reexport_es(export, index, &exports, types),
                    }
                }),
                _ => None,
            };
        if let Some(text) = replacement {
            let range = declaration.range().as_byte_range(start);
            // Keeps the number of lines.
            let lines = parsed.text()[range.clone()].matches('\n').count();
            let text = format!("{text}{}", "\n".repeat(lines));
            changes.push(TextChange::new(range.start, range.end, text));
        }
    }
    changes
}

fn without_shebang(text: &str) -> String {
    match text.starts_with("#!") {
        // A line comment may stand anywhere.
        true => format!("//{text}"),
        false => text.to_string(),
    }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn import_es(
    import: &ast::ImportDecl,
    index: usize,
    exports: &Exports,
    types: Option<&ImportUsage>,
    on_missing: &mut dyn FnMut(&ast::Ident, MissingExport),
) -> Option<String> {
    let all = format!("__pi_all{index}");
    let source = quote(&import.src.value.to_string_lossy());
    let (mut kept, mut missing) = (Vec::new(), String::new());
    let (mut namespaces, mut looked_up) = (Vec::new(), Vec::new());
    let mut is_whole = true;
    for specifier in &import.specifiers {
        let (name, local) = match specifier {
            ast::ImportSpecifier::Named(named) => (imported_name(named), &named.local),
            ast::ImportSpecifier::Default(default) => ("default".into(), &default.local),
            ast::ImportSpecifier::Namespace(namespace) => {
                namespaces.push(namespace.local.sym.to_string());
                continue;
            }
        };
        if exports.has(&name, Some(local), types) {
            kept.push(format!("{} as {}", quote(&name), local.sym));
            continue;
        }
        is_whole = false;
        // A missing default is replaced by the module.
        if name != "default"
            && let Some(missing) =
                MissingExport::new(&name, &import.src.value.to_string_lossy(), exports)
        {
            on_missing(local, missing);
        }
        match exports.substitute(&name, &all) {
            value if value == all => namespaces.push(local.sym.to_string()),
            _ if exports.url().is_some() => looked_up.push((name, local.sym.to_string())),
            value => _ = write!(missing, "const {}={value};", local.sym),
        }
    }
    if is_whole {
        return None;
    }
    if missing.contains(&all) {
        namespaces.push(all);
    }
    let mut out = format!("import{{{}}}from{source};", kept.join(","));
    for namespace in namespaces {
        _ = write!(out, "import*as {namespace} from{source};");
    }
    if let Some(url) = exports.url() {
        out.push_str(&import_by_lookup("import", url, false, &looked_up));
    }
    Some(out + missing.as_str())
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
                (&named.local.sym, cjs_member(&module, &imported_name(named)))
            }
            ast::ImportSpecifier::Default(default) => (&default.local.sym, default_of(&module)),
            ast::ImportSpecifier::Namespace(namespace) => {
                (&namespace.local.sym, namespace_of(&module))
            }
        };
        _ = write!(out, "const {local}={value};");
    }
    Some(out)
}

fn cjs_member(module: &str, name: &str) -> String {
    match name {
        "default" => default_of(module),
        name => format!("{module}?.[{}]", quote(name)),
    }
}

/// Returns the code of a namespace. It inherits what the exports inherit, if they are an instance
/// of a class.
fn namespace_of(module: &str) -> String {
    format!(
        "{module}?.__esModule?{module}:Object.assign(Object.create(\
         typeof {module}!==\"object\"||{module}===null||Object.getPrototypeOf({module})\
         ===Object.prototype?null:Object.getPrototypeOf({module})),{module},{{default:{module}}})"
    )
}

/// Returns the code of a default import, with Babel's interop.
fn default_of(module: &str) -> String {
    format!("{module}?.__esModule&&\"default\" in {module}?{module}.default:{module}")
}

/// Returns the names of a re-export, in the other module and in this one. `None` for a namespace.
fn reexported(export: &ast::NamedExport) -> Option<Vec<(String, String)>> {
    let names = export.specifiers.iter().map(|specifier| {
        let ast::ExportSpecifier::Named(named) = specifier else {
            return None;
        };
        let original = named.orig.atom().to_string();
        let exported = match &named.exported {
            Some(exported) => exported.atom().to_string(),
            None => original.clone(),
        };
        Some((original, exported))
    });
    names.collect()
}

fn reexport_es(
    export: &ast::NamedExport,
    index: usize,
    exports: &Exports,
    types: Option<&ImportUsage>,
) -> Option<String> {
    let all = format!("__pi_all{index}");
    let source = quote(&export.src.as_ref()?.value.to_string_lossy());
    let (mut kept, mut missing) = (Vec::new(), String::new());
    let mut looked_up = Vec::new();
    for (number, (name, exported)) in reexported(export)?.iter().enumerate() {
        if exports.has(name, None, types) {
            kept.push(format!("{} as {}", quote(name), quote(exported)));
            continue;
        }
        // The name is exported in any case, because other files import it.
        let exported = quote(exported);
        match exports.substitute(name, &all) {
            value if value == all => _ = write!(missing, "export{{{all} as {exported}}};"),
            _ if exports.url().is_some() => looked_up.push((name.clone(), exported)),
            value => {
                let local = format!("__pi_missing{index}_{number}");
                _ = write!(
                    missing,
                    "const {local}={value};export{{{local} as {exported}}};"
                );
            }
        }
    }
    if missing.is_empty() && looked_up.is_empty() {
        return None;
    }
    let mut out = format!("export{{{}}}from{source};", kept.join(","));
    if let Some(url) = exports.url() {
        out.push_str(&import_by_lookup("export", url, false, &looked_up));
    }
    if missing.contains(&all) {
        _ = write!(out, "import*as {all} from{source};");
    }
    Some(out + missing.as_str())
}

fn reexport_cjs(export: &ast::NamedExport, url: &str) -> Option<String> {
    // `export {} from "x"` runs the module.
    if export.specifiers.is_empty() {
        return None;
    }
    let names = reexported(export)?.into_iter();
    let names: Vec<_> = names.map(|(name, here)| (name, quote(&here))).collect();
    Some(import_by_lookup("export", url, true, &names))
}

/// Imports or exports names of the module at `url` that may be missing, under their names in this
/// file, from a generated module that looks them up. That module runs before this file, even if
/// other modules of a cycle run first.
fn import_by_lookup(word: &str, url: &str, is_cjs: bool, names: &[(String, String)]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let all = if is_cjs { "all" } else { "*as all" };
    let mut code = format!("import {all} from{};", quote(url));
    let mut list = Vec::new();
    for (number, (name, here)) in names.iter().enumerate() {
        let value = match is_cjs {
            true => cjs_member("all", name),
            false => format!("all[{}]", quote(name)),
        };
        _ = write!(code, "export const n{number}={value};");
        list.push(format!("n{number} as {here}"));
    }
    let code = BASE64_STANDARD.encode(code);
    let list = list.join(",");
    format!("{word}{{{list}}}from\"data:text/javascript;base64,{code}\";")
}

const COMMONJS_NAMES: [&str; 5] = ["require", "__filename", "__dirname", "module", "exports"];

/// Returns the CommonJS names that the file uses and does not declare.
fn free_names(parsed: &ParsedSource) -> HashSet<String> {
    struct FreeNameFinder {
        unresolved: deno_ast::swc::common::SyntaxContext,
        found: HashSet<String>,
    }

    impl Visit for FreeNameFinder {
        fn visit_ident(&mut self, ident: &ast::Ident) {
            if ident.ctxt == self.unresolved && COMMONJS_NAMES.contains(&ident.sym.as_ref()) {
                self.found.insert(ident.sym.to_string());
            }
        }
    }

    if !may_name_module(parsed.text()) {
        return HashSet::new();
    }
    let mut finder = FreeNameFinder {
        unresolved: parsed.unresolved_context(),
        found: HashSet::new(),
    };
    match parsed.program_ref() {
        ProgramRef::Module(module) => module.visit_with(&mut finder),
        ProgramRef::Script(script) => script.visit_with(&mut finder),
    }
    finder.found
}
