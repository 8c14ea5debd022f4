//! Warns of imported names that do not exist. The file is loaded all the same (`compat.rs`) and may
//! fail much later, where the name is used.

use std::collections::{HashMap, HashSet};

use deno_ast::swc::ast;
use deno_ast::{MediaType, ParsedSource, ProgramRef, SourceRangedForSpanned};
use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use js_runtime_ext::{SCOPES, virtual_modules};
use js_runtime_snapshot::EXPORTS;
use pi_base::nearest;
use serde::{Deserialize, Serialize};

use super::compat::{Exports, Substitute};
use crate::loader::Loader;
use crate::loader::transpile::parsing::with_parsed;

/// Maximum number of exports that a warning lists.
const MAX_LISTED_EXPORTS: usize = 12;

/// A name that is imported and used, and that the module does not export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MissingExport {
    pub name: String,
    /// Module name as it is written in the import.
    pub module: String,
    /// Consequence of the missing name, and a suggestion.
    outcome: String,
    /// Line in the source from 1; 0 if the import was not found there.
    line: usize,
    column: usize,
}

/// The missing exports of all modules.
#[derive(Default)]
pub(in crate::loader) struct MissingExports {
    /// Code of a module may be made repeatedly; each name is reported once.
    by_module: HashMap<ModuleSpecifier, Vec<MissingExport>>,
    new: Vec<ModuleSpecifier>,
}

impl MissingExports {
    pub fn add(&mut self, module: &ModuleSpecifier, missing: Vec<MissingExport>) {
        if !missing.is_empty() && self.by_module.insert(module.clone(), missing).is_none() {
            self.new.push(module.clone());
        }
    }

    pub fn for_module(&self, module: &ModuleSpecifier) -> Vec<MissingExport> {
        self.by_module.get(module).cloned().unwrap_or_default()
    }

    /// Returns the entries that were added since the last call.
    pub fn take(&mut self) -> Vec<(ModuleSpecifier, Vec<MissingExport>)> {
        let new = std::mem::take(&mut self.new).into_iter();
        new.map(|module| {
            let missing = self.for_module(&module);
            (module, missing)
        })
        .collect()
    }
}

impl Loader {
    /// Returns the missing exports that were found since the last call: a sentence and a stack
    /// frame for each.
    pub fn take_missing_exports(&self) -> Vec<(String, Option<String>)> {
        let modules = self.missing_exports.borrow_mut().take();
        let warnings = modules
            .iter()
            .flat_map(|(url, missing)| missing.iter().map(|one| (one.sentence(), one.frame(url))));
        warnings.collect()
    }
}

impl MissingExport {
    /// Returns `None` if the exports of the module are not known.
    pub fn new(name: &str, module: &str, exports: &Exports) -> Option<Self> {
        let Exports::Known(names, missing) = exports else {
            return None;
        };
        let becomes = match missing {
            Substitute::Undefined => "it is undefined there",
            Substitute::Throws(_) => "it throws when it is used",
        };
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        let suggestion = nearest(name, &names);
        let elsewhere = match missing {
            Substitute::Throws(_) => modules_with(name, module),
            Substitute::Undefined => Vec::new(),
        };
        let hint = match (suggestion, names.len()) {
            _ if !elsewhere.is_empty() => format!(". It is in {}", elsewhere.join(" and ")),
            (Some(suggestion), _) => format!(". Is \"{suggestion}\" meant?"),
            (None, 0) => ". That exports nothing".to_owned(),
            (None, 1..=MAX_LISTED_EXPORTS) => format!(". That exports {}", names.join(", ")),
            (None, _) => String::new(),
        };
        Some(Self {
            name: name.to_owned(),
            module: module.to_owned(),
            outcome: format!("{becomes}{hint}"),
            line: 0,
            column: 0,
        })
    }

    pub fn sentence(&self) -> String {
        let Self {
            name,
            module,
            outcome,
            ..
        } = self;
        format!("\"{name}\" is imported from \"{module}\", which has no such export: {outcome}")
    }

    /// Returns a stack frame in the file of the module at `url`.
    pub fn frame(&self, url: &ModuleSpecifier) -> Option<String> {
        let path = url_to_file_path(url).ok()?;
        let Self { line, column, .. } = self;
        (*line > 0).then(|| format!("    at {}:{line}:{column}", path.display()))
    }
}

/// Returns pi's modules that export a name, in the scope that the importer of `module` uses.
fn modules_with(name: &str, module: &str) -> Vec<String> {
    let scope = module
        .split('/')
        .next()
        .filter(|scope| scope.starts_with('@'));
    let scope = scope
        .filter(|scope| SCOPES.contains(scope))
        .unwrap_or(SCOPES[0]);
    let has = |specifier: &str| {
        let found = EXPORTS.binary_search_by_key(&specifier, |(specifier, _)| specifier);
        found.is_ok_and(|index| EXPORTS[index].1.contains(&name))
    };
    let mut seen = HashSet::new();
    let found = virtual_modules().filter(|(known, specifier)| {
        let is_of_scope = !SCOPES.iter().any(|scope| known.starts_with(scope))
            || known.starts_with(&format!("{scope}/"));
        // A module has several names; the first is the usual one.
        is_of_scope && has(specifier) && seen.insert(*specifier)
    });
    found
        .map(|(known, _)| format!("\"{known}\""))
        .take(2)
        .collect()
}

/// Finds the positions of the imports in the source.
pub(in crate::loader) fn locate_all(
    missing: &mut [MissingExport],
    specifier: &ModuleSpecifier,
    source: &str,
) {
    if missing.is_empty() {
        return;
    }
    let media_type = MediaType::from_specifier(specifier);
    let source = source.to_owned();
    // If the source cannot be parsed there are no positions.
    _ = with_parsed(specifier, media_type, source, false, |parsed| {
        locate(missing, &parsed);
    });
}

fn locate(missing: &mut [MissingExport], parsed: &ParsedSource) {
    let ProgramRef::Module(module) = parsed.program_ref() else {
        return;
    };
    let imports = module.body.iter().filter_map(|item| match item {
        ast::ModuleItem::ModuleDecl(ast::ModuleDecl::Import(import)) => Some(import),
        _ => None,
    });
    for import in imports {
        for specifier in &import.specifiers {
            let ast::ImportSpecifier::Named(named) = specifier else {
                continue;
            };
            let name = imported_name(named);
            let is_it = |one: &&mut MissingExport| {
                one.line == 0
                    && one.name == name
                    && import.src.value.to_string_lossy() == one.module
            };
            if let Some(one) = missing.iter_mut().find(is_it) {
                let position = parsed
                    .text_info_lazy()
                    .line_and_column_display(named.range().start);
                (one.line, one.column) = (position.line_number, position.column_number);
            }
        }
    }
}

pub(in crate::loader) fn imported_name(named: &ast::ImportNamedSpecifier) -> String {
    match &named.imported {
        Some(imported) => imported.atom().to_string(),
        None => named.local.sym.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exports(names: &[&str], missing: Substitute) -> Exports {
        Exports::Known(names.iter().map(|name| name.to_string()).collect(), missing)
    }

    #[test]
    fn warning_suggests_a_name_or_lists_the_exports() {
        let warnings = |name: &str, exports: Exports| {
            let missing = MissingExport::new(name, "./helper", &exports);
            missing.map(|missing| missing.sentence())
        };
        let begin = |name: &str| {
            format!("\"{name}\" is imported from \"./helper\", which has no such export: ")
        };
        let names = ["wordCount", "wrap"];
        assert_eq!(
            warnings("wordCont", exports(&names, Substitute::Undefined)),
            Some(begin("wordCont") + "it is undefined there. Is \"wordCount\" meant?")
        );
        assert_eq!(
            warnings("quote", exports(&names, Substitute::Throws("x".into()))),
            Some(begin("quote") + "it throws when it is used. That exports wordCount, wrap")
        );
        assert_eq!(
            warnings("quote", exports(&[], Substitute::Undefined)),
            Some(begin("quote") + "it is undefined there. That exports nothing")
        );
        assert_eq!(warnings("quote", Exports::Unknown), None);
        // The name exists in another module of pi.
        let sentence = warnings("Type", exports(&names, Substitute::Throws("x".into()))).unwrap();
        assert!(
            sentence.ends_with("used. It is in \"@mariozechner/pi-ai\" and \"@sinclair/typebox\""),
            "{sentence}"
        );
    }
}
