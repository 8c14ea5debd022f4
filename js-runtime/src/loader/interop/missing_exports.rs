//! Names that a file imports and that are not there. It loads all the same (`compat.rs`),
//! and may fail much later, where one of them is used: its author is told at once.

use pi_base::nearest;
use std::collections::{HashMap, HashSet};

use deno_ast::swc::ast;
use deno_ast::{MediaType, ParsedSource, ProgramRef, SourceRangedForSpanned};
use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use js_runtime_ext::{SCOPES, virtual_modules};
use js_runtime_snapshot::EXPORTS;
use serde::{Deserialize, Serialize};

use super::Loader;
use super::compat::{Exports, Missing};
use crate::parsing::with_parsed;

/// Of two names, from which on one may be meant for the other.
const LIKENESS: f32 = 0.7;
/// What a module has instead is listed if there is no more of it.
const FEW: usize = 12;

/// A name that is imported, used, and not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Absent {
    pub name: String,
    /// As it is imported.
    pub module: String,
    /// What comes of it, and what may be meant.
    outcome: String,
    /// In the source, from 1; 0 if it was not found there.
    line: usize,
    column: usize,
}

/// Those of all modules.
#[derive(Default)]
pub(super) struct AbsentNames {
    /// Code is made for a module whenever somebody asks: it is told once.
    known: HashMap<ModuleSpecifier, Vec<Absent>>,
    new: Vec<ModuleSpecifier>,
}

impl AbsentNames {
    pub fn note(&mut self, module: &ModuleSpecifier, absent: Vec<Absent>) {
        if !absent.is_empty() && self.known.insert(module.clone(), absent).is_none() {
            self.new.push(module.clone());
        }
    }

    pub fn of(&self, module: &ModuleSpecifier) -> Vec<Absent> {
        self.known.get(module).cloned().unwrap_or_default()
    }

    /// What is new.
    pub fn take(&mut self) -> Vec<(ModuleSpecifier, Vec<Absent>)> {
        let new = std::mem::take(&mut self.new).into_iter();
        new.map(|module| {
            let absent = self.of(&module);
            (module, absent)
        })
        .collect()
    }
}

impl Loader {
    /// What was imported since this was asked, and is not there: a sentence for each, and where.
    pub fn take_absent(&self) -> Vec<(String, Option<String>)> {
        let modules = self.absent.borrow_mut().take();
        let told = modules
            .iter()
            .flat_map(|(url, absent)| absent.iter().map(|one| (one.sentence(), one.frame(url))));
        told.collect()
    }
}

impl Absent {
    /// `None` if the exports of the module are not known.
    pub fn of(name: &str, module: &str, exports: &Exports) -> Option<Self> {
        let Exports::Known(names, missing) = exports else {
            return None;
        };
        let becomes = match missing {
            Missing::Undefined => "it is undefined there",
            Missing::Throws(_) => "it throws when it is used",
        };
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        let meant = nearest(name, &names, LIKENESS);
        let elsewhere = match missing {
            Missing::Throws(_) => modules_with(name, module),
            Missing::Undefined => Vec::new(),
        };
        let hint = match (meant, names.len()) {
            _ if !elsewhere.is_empty() => format!(". It is in {}", elsewhere.join(" and ")),
            (Some(meant), _) => format!(". Is \"{meant}\" meant?"),
            (None, 0) => ". That exports nothing".to_owned(),
            (None, 1..=FEW) => format!(". That exports {}", names.join(", ")),
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

    /// As a frame of an error's stack, in the file of the module at `url`.
    pub fn frame(&self, url: &ModuleSpecifier) -> Option<String> {
        let path = url_to_file_path(url).ok()?;
        let Self { line, column, .. } = self;
        (*line > 0).then(|| format!("    at {}:{line}:{column}", path.display()))
    }
}

/// Those of ours that have a name, as whoever imports `module` would write them.
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
        // A module has several names: the first is the usual one.
        is_of_scope && has(specifier) && seen.insert(*specifier)
    });
    found
        .map(|(known, _)| format!("\"{known}\""))
        .take(2)
        .collect()
}

/// Finds out where they stand in the source.
pub(super) fn place_all(absent: &mut [Absent], specifier: &ModuleSpecifier, source: &str) {
    if absent.is_empty() {
        return;
    }
    let media_type = MediaType::from_specifier(specifier);
    let source = source.to_owned();
    // Without places if it cannot be parsed.
    _ = with_parsed(specifier, media_type, source, false, |parsed| {
        place(absent, &parsed);
    });
}

fn place(absent: &mut [Absent], parsed: &ParsedSource) {
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
            let is_it = |one: &&mut Absent| {
                one.line == 0
                    && one.name == name
                    && import.src.value.to_string_lossy() == one.module
            };
            if let Some(one) = absent.iter_mut().find(is_it) {
                let place = parsed
                    .text_info_lazy()
                    .line_and_column_display(named.range().start);
                (one.line, one.column) = (place.line_number, place.column_number);
            }
        }
    }
}

pub(super) fn imported_name(named: &ast::ImportNamedSpecifier) -> String {
    match &named.imported {
        Some(imported) => imported.atom().to_string(),
        None => named.local.sym.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exports(names: &[&str], missing: Missing) -> Exports {
        Exports::Known(names.iter().map(|name| name.to_string()).collect(), missing)
    }

    #[test]
    fn what_may_be_meant_is_said_or_what_there_is() {
        let told = |name: &str, exports: Exports| {
            let absent = Absent::of(name, "./helper", &exports);
            absent.map(|absent| absent.sentence())
        };
        let begin = |name: &str| {
            format!("\"{name}\" is imported from \"./helper\", which has no such export: ")
        };
        let names = ["wordCount", "wrap"];
        assert_eq!(
            told("wordCont", exports(&names, Missing::Undefined)),
            Some(begin("wordCont") + "it is undefined there. Is \"wordCount\" meant?")
        );
        assert_eq!(
            told("quote", exports(&names, Missing::Throws("x".into()))),
            Some(begin("quote") + "it throws when it is used. That exports wordCount, wrap")
        );
        assert_eq!(
            told("quote", exports(&[], Missing::Undefined)),
            Some(begin("quote") + "it is undefined there. That exports nothing")
        );
        assert_eq!(told("quote", Exports::Unknown), None);
        // Of another module of ours.
        let said = told("Type", exports(&names, Missing::Throws("x".into()))).unwrap();
        assert!(
            said.ends_with("used. It is in \"@mariozechner/pi-ai\" and \"@sinclair/typebox\""),
            "{said}"
        );
    }
}
