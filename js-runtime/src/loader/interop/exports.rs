//! Finds the exports of imported modules without running them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use js_runtime_snapshot::EXPORTS;
use node_resolver::InNpmPackageChecker;

use super::compat::{Exports, Substitute, exports_by_assignment, may_name_module};
use crate::loader::Loader;
use crate::loader::cache::Key;
use crate::loader::transpile::emit::{Consulted, transpile};
use crate::loader::transpile::parsing::with_parsed;

impl Loader {
    /// Returns the exports of an imported module: of all modules for `lenient` importers, otherwise
    /// only of pi's.
    pub(in crate::loader) fn exports_of(
        &self,
        imported: &str,
        importer: &ModuleSpecifier,
        lenient: bool,
        consulted: &mut Vec<Consulted>,
    ) -> Exports {
        let Ok(url) = self.resolver.find(imported, importer.as_str()) else {
            return Exports::Unknown;
        };
        if url.scheme() == "pi" {
            // The result depends only on this program.
            return builtin_exports(&url, imported);
        }
        if !lenient {
            return Exports::Unknown;
        }
        if url.scheme() == "node" {
            return Exports::Partial {
                names: ["default".into()].into(),
                url: Some(url.into()),
            };
        }
        if url.scheme() != "file" {
            return Exports::Unknown;
        }
        consulted.push(Consulted::Import {
            specifier: imported.to_string(),
            target: self.target(imported, importer),
        });
        let media_type = MediaType::from_specifier(&url);
        if media_type == MediaType::Json {
            return Exports::CommonJs(None);
        }
        let in_package = self.files.checker.in_npm_package(&url);
        if !media_type.is_emittable() && !media_type.is_declaration() {
            let maybe = self.files.is_maybe_cjs(&url).unwrap_or(false);
            consulted.push(Consulted::MaybeCjs {
                url: url.clone(),
                maybe,
            });
            if maybe {
                self.consult(&url, consulted);
                if self.is_commonjs(&url) {
                    return Exports::CommonJs(in_package.then(|| url.to_string()));
                }
            }
            if in_package {
                return self.package_exports(&url, consulted);
            }
        }
        let mut found = CollectedNames::default();
        let known = self.collect(&url, &mut found);
        for url in &found.seen {
            self.consult(url, consulted);
        }
        match known {
            Some(()) if found.is_partial => Exports::Partial {
                names: found.names,
                url: None,
            },
            Some(()) => Exports::Known(found.names, Substitute::Undefined),
            None => match self.analysis(&url).as_deref() {
                Some(Analysis::Assigned) => Exports::CommonJs(None),
                _ => Exports::Unknown,
            },
        }
    }

    /// Returns the exports of an ES module of a package, which may be large: only whether it has a
    /// default.
    fn package_exports(&self, url: &ModuleSpecifier, consulted: &mut Vec<Consulted>) -> Exports {
        let Ok(source) = self.files.text_of(url) else {
            return Exports::Unknown;
        };
        let has_default = may_export_default(&source);
        if !has_default {
            self.consult(url, consulted);
        }
        Exports::Partial {
            names: has_default.then(|| "default".into()).into_iter().collect(),
            url: Some(url.to_string()),
        }
    }

    /// Returns true if a file that may be CommonJS is.
    fn is_commonjs(&self, url: &ModuleSpecifier) -> bool {
        if self.files.checker.in_npm_package(url) {
            // The names of a package's file are needed next, and the file is large: it is analysed
            // once for both.
            let source = self.files.text_of(url);
            return source.is_ok_and(|source| self.files.is_script(url, &source));
        }
        let analysis = self.analysis(url);
        matches!(
            analysis.as_deref(),
            Some(Analysis::Script | Analysis::Assigned)
        )
    }

    fn consult(&self, url: &ModuleSpecifier, consulted: &mut Vec<Consulted>) {
        if let Ok(path) = url_to_file_path(url) {
            let hash = self.contents_hash(&path);
            consulted.push(Consulted::Contents { path, hash });
        }
    }

    /// Collects the names that a module of an extension exports when it runs. `None` if they cannot
    /// be known.
    fn collect(&self, url: &ModuleSpecifier, found: &mut CollectedNames) -> Option<()> {
        if url.scheme() == "pi" {
            let names = builtin_names(url)?.iter();
            found.names.extend(names.map(|name| name.to_string()));
            return Some(());
        }
        if !self.files.is_lenient(url) {
            return None;
        }
        if !found.seen.insert(url.clone()) {
            return Some(());
        }
        let analysis = self.analysis(url)?;
        let (exports, stars) = match &*analysis {
            Analysis::Module { exports, stars } => (exports, stars),
            // A file of types only has no code.
            Analysis::Script if !may_be_commonjs(url) => return Some(()),
            Analysis::Script | Analysis::Assigned => return None,
        };
        found.names.extend(exports.iter().cloned());
        for star in stars {
            let mut inner = CollectedNames {
                seen: std::mem::take(&mut found.seen),
                ..CollectedNames::default()
            };
            let target = self.resolver.find(star, url.as_str()).ok();
            let known = target.and_then(|target| self.collect(&target, &mut inner));
            found.is_partial |= inner.is_partial || known.is_none();
            found.seen = inner.seen;
            inner.names.remove("default");
            found.names.extend(inner.names);
        }
        Some(())
    }

    /// Returns the analysis of a file. It is done once per content, because many files import the
    /// same.
    fn analysis(&self, url: &ModuleSpecifier) -> Option<Rc<Analysis>> {
        let source = self.files.text_of(url).ok()?;
        let key = self.emit_key(url, &source, true);
        if let Some(known) = self.analyses.borrow().get(&key) {
            return known.clone();
        }
        let analysis = self.analyse(key, url, source.to_string()).map(Rc::new);
        self.analyses.borrow_mut().insert(key, analysis.clone());
        analysis
    }

    fn analyse(&self, key: Key, url: &ModuleSpecifier, source: String) -> Option<Analysis> {
        let (code, map) = transpile(url, source).ok()?;
        let names_module = self.files.is_lenient(url) && may_name_module(&code);
        let text = code.clone();
        let found = with_parsed(url, MediaType::JavaScript, text, names_module, |parsed| {
            if names_module && exports_by_assignment(&parsed) {
                return Analysis::Assigned;
            }
            if parsed.compute_is_script() {
                return Analysis::Script;
            }
            let found = parsed.analyze_es_runtime_exports();
            Analysis::Module {
                exports: found.exports,
                stars: found.reexports,
            }
        });
        let found = found.ok()?;
        if map.is_some() {
            // The emitted code is needed next.
            self.transpiled.borrow_mut().insert(key, (code, map));
        }
        Some(found)
    }
}

/// Analyses by key of the content; `None` if the content is not JavaScript.
pub(in crate::loader) type Analyses = RefCell<HashMap<Key, Option<Rc<Analysis>>>>;

/// Code and source map by key of the content, until they are requested.
pub(in crate::loader) type Transpiled = RefCell<HashMap<Key, (String, Option<String>)>>;

pub(in crate::loader) enum Analysis {
    /// The file has neither `import` nor `export`: it is CommonJS if its name allows it.
    Script,
    /// The file exports by assigning to `module.exports`; see [`super::compat`].
    Assigned,
    Module {
        exports: Vec<String>,
        /// Modules of which everything is exported, too.
        stars: Vec<String>,
    },
}

/// Names that [`Loader::collect`] has found.
#[derive(Default)]
struct CollectedNames {
    names: HashSet<String>,
    seen: HashSet<ModuleSpecifier>,
    /// Whether there may be more names than these.
    is_partial: bool,
}

/// Returns true if a text, possibly in a comment, says `export default` or `as default`.
fn may_export_default(source: &str) -> bool {
    source.match_indices("default").any(|(at, word)| {
        let (before, after) = (&source[..at], &source[at + word.len()..]);
        let is_word = !before.ends_with(is_name_char) && !after.starts_with(is_name_char);
        is_word && !ends_in_comment(before) && is_exported(before, after)
    })
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.')
}

/// Returns true if the text ends within a comment that begins its line, or within a documentation
/// comment.
fn ends_in_comment(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    let is_partial = line.starts_with("/*") && !line.contains("*/");
    is_partial || line.starts_with("//") || line.starts_with('*') && !line.starts_with("*/")
}

/// Returns true if a `default` between these texts is an exported name.
fn is_exported(before: &str, after: &str) -> bool {
    let between = |c: char| c.is_whitespace() || c == '"' || c == '\'';
    let before = before.trim_end_matches(between);
    let after = after.trim_start_matches(between);
    if let Some(commented) = before.strip_suffix("*/") {
        let begin = commented.rfind("/*").unwrap_or_default();
        return is_exported(&commented[..begin], after);
    }
    let follows = |word: &str| {
        let rest = before.strip_suffix(word);
        rest.is_some_and(|rest| !rest.ends_with(is_name_char))
    };
    let is_listed = after.starts_with(['}', ',']);
    follows("export")
        || follows("as") && (is_listed || after.starts_with("from"))
        || before.ends_with(['{', ',']) && is_listed
}

/// Returns true if a file without `import` and `export` is CommonJS when it is imported.
fn may_be_commonjs(url: &ModuleSpecifier) -> bool {
    let media_type = MediaType::from_specifier(url);
    !media_type.is_emittable() && !media_type.is_declaration()
}

fn builtin_exports(url: &ModuleSpecifier, imported: &str) -> Exports {
    match builtin_names(url) {
        Some(names) => Exports::Known(
            names.iter().map(|name| name.to_string()).collect(),
            Substitute::Throws(imported.to_string()),
        ),
        None => Exports::Unknown,
    }
}

fn builtin_names(url: &ModuleSpecifier) -> Option<&'static [&'static str]> {
    let found = EXPORTS.binary_search_by_key(&url.as_str(), |(specifier, _)| specifier);
    Some(EXPORTS[found.ok()?].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_export_is_distinguished_from_the_word() {
        for source in [
            "export default 1",
            "x;export default function(){}",
            "/*! 1 */export{a as default};",
            "export { default } from './a'",
            "export { a, default } from './a'",
            "export * as default from 'a'",
            "export {\n  a as default,\n}",
            "export { a as \"default\" }",
            "export /* it */ default 1",
            "/* it */ export default 1",
        ] {
            assert!(may_export_default(source), "{source}");
        }
        for source in [
            "export { a as defaultScalarTag }",
            "/**\n * export default app\n */",
            "// export default 1",
            "switch (a) { /* else */ default: }",
            "/** used as default */ let a",
            "const a = { default: 1 }",
            "a.default, b",
            "import { default as a } from 'b'",
            "reexport default",
        ] {
            assert!(!may_export_default(source), "{source}");
        }
    }
}
