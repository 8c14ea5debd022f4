//! What the modules that a file imports really export, found without running them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use deno_ast::MediaType;
use deno_core::ModuleSpecifier;
use deno_path_util::url_to_file_path;
use js_runtime_snapshot::EXPORTS;
use node_resolver::InNpmPackageChecker;

use super::Loader;
use super::compat::{Exports, Missing, exports_by_assignment, may_name_module};
use super::emit::{Consulted, transpile};
use crate::cache::Key;
use crate::parsing::with_parsed;

impl Loader {
    /// For `lenient` importers all modules count, for others only ours.
    pub(super) fn exports_of(
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
            // Depends on nothing but this program.
            return ours(&url, imported);
        }
        if !lenient {
            return Exports::Unknown;
        }
        if url.scheme() == "node" {
            return Exports::Open {
                names: ["default".into()].into(),
                place: Some(url.into()),
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
                answer: maybe,
            });
            if maybe {
                self.consult(&url, consulted);
                if self.is_commonjs(&url) {
                    return Exports::CommonJs(in_package.then(|| url.to_string()));
                }
            }
            if in_package {
                return self.of_package(&url, consulted);
            }
        }
        let mut found = Found::default();
        let known = self.collect(&url, &mut found);
        for url in &found.seen {
            self.consult(url, consulted);
        }
        match known {
            Some(()) if found.is_open => Exports::Open {
                names: found.names,
                place: None,
            },
            Some(()) => Exports::Known(found.names, Missing::Undefined),
            None => match self.analysis(&url).as_deref() {
                Some(Analysis::Assigned) => Exports::CommonJs(None),
                _ => Exports::Unknown,
            },
        }
    }

    /// Of an ES module of a package, which may be large: whether it has a default.
    fn of_package(&self, url: &ModuleSpecifier, consulted: &mut Vec<Consulted>) -> Exports {
        let Ok(source) = self.files.text_of(url) else {
            return Exports::Unknown;
        };
        let has_default = may_export_default(&source);
        if !has_default {
            self.consult(url, consulted);
        }
        Exports::Open {
            names: has_default.then(|| "default".into()).into_iter().collect(),
            place: Some(url.to_string()),
        }
    }

    /// Of JavaScript that may be CommonJS.
    fn is_commonjs(&self, url: &ModuleSpecifier) -> bool {
        if self.files.checker.in_npm_package(url) {
            // It will be asked for its names next, and is large: it is read once for both.
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

    /// The names that one of the extension's own modules exports when it runs.
    /// `None` where they cannot be known before.
    fn collect(&self, url: &ModuleSpecifier, found: &mut Found) -> Option<()> {
        if url.scheme() == "pi" {
            let names = exports_of_ours(url)?.iter();
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
            // Of types alone nothing is left.
            Analysis::Script if !may_be_commonjs(url) => return Some(()),
            Analysis::Script | Analysis::Assigned => return None,
        };
        found.names.extend(exports.iter().cloned());
        for star in stars {
            let mut inner = Found {
                seen: std::mem::take(&mut found.seen),
                ..Found::default()
            };
            let target = self.resolver.find(star, url.as_str()).ok();
            let known = target.and_then(|target| self.collect(&target, &mut inner));
            found.is_open |= inner.is_open || known.is_none();
            found.seen = inner.seen;
            inner.names.remove("default");
            found.names.extend(inner.names);
        }
        Some(())
    }

    /// What is in a file, looked at once as long as it says the same: many import it.
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
            // It will be wanted next.
            self.transpiled.borrow_mut().insert(key, (code, map));
        }
        Some(found)
    }
}

/// By what a file says; `None` if that is not JavaScript.
pub(super) type Analyses = RefCell<HashMap<Key, Option<Rc<Analysis>>>>;

/// By what a file says: its code and source map, until they are asked for.
pub(super) type Transpiled = RefCell<HashMap<Key, (String, Option<String>)>>;

pub(super) enum Analysis {
    /// No `import` and no `export`: CommonJS, if its name allows it.
    Script,
    /// What it exports, it puts into `module.exports`; see [`super::compat`].
    Assigned,
    Module {
        exports: Vec<String>,
        /// Where all of what is exported comes from, too.
        stars: Vec<String>,
    },
}

/// What [`Loader::collect`] has found.
#[derive(Default)]
struct Found {
    names: HashSet<String>,
    seen: HashSet<ModuleSpecifier>,
    /// There may be more names than these.
    is_open: bool,
}

/// Whether a text, a comment perhaps, says `export default` or `as default`.
fn may_export_default(source: &str) -> bool {
    source.match_indices("default").any(|(at, word)| {
        let (before, after) = (&source[..at], &source[at + word.len()..]);
        let is_word = !before.ends_with(is_of_name) && !after.starts_with(is_of_name);
        is_word && !ends_in_comment(before) && is_exported(before, after)
    })
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.')
}

/// Of a line that begins with a comment, and of the comments above declarations.
fn ends_in_comment(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    let is_open = line.starts_with("/*") && !line.contains("*/");
    is_open || line.starts_with("//") || line.starts_with('*') && !line.starts_with("*/")
}

/// Whether a `default` between these is a name that is exported.
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
        rest.is_some_and(|rest| !rest.ends_with(is_of_name))
    };
    let is_listed = after.starts_with(['}', ',']);
    follows("export")
        || follows("as") && (is_listed || after.starts_with("from"))
        || before.ends_with(['{', ',']) && is_listed
}

/// Whether a file without `import` and `export` is one of CommonJS when it is imported.
fn may_be_commonjs(url: &ModuleSpecifier) -> bool {
    let media_type = MediaType::from_specifier(url);
    !media_type.is_emittable() && !media_type.is_declaration()
}

fn ours(url: &ModuleSpecifier, imported: &str) -> Exports {
    match exports_of_ours(url) {
        Some(names) => Exports::Known(
            names.iter().map(|name| name.to_string()).collect(),
            Missing::Throws(imported.to_string()),
        ),
        None => Exports::Unknown,
    }
}

fn exports_of_ours(url: &ModuleSpecifier) -> Option<&'static [&'static str]> {
    let found = EXPORTS.binary_search_by_key(&url.as_str(), |(specifier, _)| specifier);
    Some(EXPORTS[found.ok()?].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_told_from_the_word() {
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
