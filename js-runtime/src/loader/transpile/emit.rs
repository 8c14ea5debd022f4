//! From what a file says to the JavaScript that V8 gets: types stripped, imports
//! made tolerant, and the result cached together with what it was made from.

use std::path::PathBuf;

use deno_ast::{
    DecoratorsTranspileOption, EmitOptions, MediaType, ParsedSource, SourceMapOption,
    TranspileModuleOptions, TranspileOptions,
};
use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::absent::{self, Absent};
use super::files::error;
use super::{Loader, compat, enums, legacy, statements};
use crate::cache::Key;
use crate::decorators;
use crate::parsing::with_parsed;

/// The code that makes cached files: when it changes, they do not count any more.
pub(crate) const EMIT_SETTINGS: &str = concat!(
    include_str!("emit.rs"),
    include_str!("ascii.rs"),
    include_str!("ascii_escapes.rs"),
    include_str!("column_map.rs"),
    include_str!("../interop/compat.rs"),
    include_str!("../interop/missing_exports.rs"),
    include_str!("../interop/exports.rs"),
    include_str!("../interop/cjs.rs"),
    include_str!("import_equals.rs"),
    include_str!("enums.rs"),
    include_str!("../interop/import_usage.rs")
);

/// Something outside a file that shaped what was made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Consulted {
    /// Where an import leads; `None` if nowhere.
    Import {
        specifier: String,
        target: Option<String>,
    },
    /// What is in a file.
    Contents { path: PathBuf, hash: Option<u64> },
    /// Whether a module may be CommonJS.
    MaybeCjs { url: ModuleSpecifier, answer: bool },
}

/// What is kept beside the code of a file.
#[derive(Default, Serialize, Deserialize)]
struct About {
    consulted: Vec<Consulted>,
    absent: Vec<Absent>,
}

impl Loader {
    /// Makes JavaScript of a file by jiti's rules, if it is `lenient`; otherwise Node's hold.
    pub(super) fn emit(
        &self,
        specifier: &ModuleSpecifier,
        source: &str,
        lenient: bool,
    ) -> Result<String, JsErrorBox> {
        if !lenient && (!mentions_our_modules(source) || self.has_its_imports(specifier, source)) {
            return Ok(source.to_owned());
        }
        let key = self.emit_key(specifier, source, lenient);
        if let Some(code) = self.files.cache.read(key, "js")
            && let Some(about) = self.about(key)
            && self.are_current(&about.consulted, specifier)
            && let Ok(code) = String::from_utf8(code)
        {
            self.files.remember_map(specifier, key, None);
            self.note_absent(specifier, about.absent);
            return Ok(code);
        }
        let (code, about) = self.compile(key, specifier, source, lenient)?;
        self.note_absent(specifier, about.absent);
        Ok(code)
    }

    pub(super) fn note_absent(&self, specifier: &ModuleSpecifier, absent: Vec<Absent>) {
        self.absent.borrow_mut().note(specifier, absent);
    }

    /// Whether a file of a package needs no change, since our modules have what it imports.
    fn has_its_imports(&self, specifier: &ModuleSpecifier, source: &str) -> bool {
        let Some(statements) = statements::about_ours(source) else {
            return false;
        };
        let mut exports_of =
            |imported: &str| self.exports_of(imported, specifier, false, &mut Vec::new());
        with_parsed(
            specifier,
            MediaType::JavaScript,
            statements,
            false,
            |parsed| compat::rewrite_imports(&parsed, &mut exports_of).is_none(),
        )
        .unwrap_or(false)
    }

    /// Compiles a file of TypeScript if it is not in the cache. Gives what it imports, what
    /// it does with `import()` at the end.
    pub(super) fn emit_ahead(&self, specifier: &ModuleSpecifier) -> Vec<ModuleSpecifier> {
        let Ok(source) = self.files.text_of(specifier) else {
            return Vec::new();
        };
        let key = self.emit_key(specifier, &source, true);
        let has_code = self.files.cache.read(key, "js").is_some();
        let consulted = match self.about(key).filter(|_| has_code) {
            Some(about) if self.are_current(&about.consulted, specifier) => about.consulted,
            // Whoever needs it will be told what is wrong.
            _ => match self.compile(key, specifier, &source, true) {
                Ok((_, about)) => about.consulted,
                Err(_) => return Vec::new(),
            },
        };
        let target = |consulted| match consulted {
            Consulted::Import { target, .. } => target,
            _ => None,
        };
        let imported = consulted.into_iter().filter_map(target);
        let late = later_imports(&source).filter_map(|late| self.target(late, specifier));
        let urls = imported.chain(late).map(|url| ModuleSpecifier::parse(&url));
        urls.filter_map(Result::ok).collect()
    }

    /// What is made of a file that says `source` is known by this.
    pub(super) fn emit_key(&self, specifier: &ModuleSpecifier, source: &str, lenient: bool) -> Key {
        let path = specifier.path().as_bytes();
        let rules: &[u8] = if lenient { b"emit" } else { b"emit strictly" };
        self.files.cache.key(&[rules, path, source.as_bytes()])
    }

    fn compile(
        &self,
        key: Key,
        specifier: &ModuleSpecifier,
        source: &str,
        lenient: bool,
    ) -> Result<(String, About), JsErrorBox> {
        let known = self.transpiled.borrow_mut().remove(&key);
        let (code, map) = match known {
            Some(transpiled) => transpiled,
            None => transpile(specifier, source.to_owned())?,
        };
        let About {
            mut consulted,
            mut absent,
        } = About::default();
        let mut exports_of =
            |imported: &str| self.exports_of(imported, specifier, lenient, &mut consulted);
        let rewritten = with_parsed(
            specifier,
            MediaType::JavaScript,
            code.clone(),
            lenient,
            |parsed| match lenient {
                true => {
                    let is_typescript = MediaType::from_specifier(specifier).is_emittable();
                    compat::rewrite(&parsed, is_typescript, &mut exports_of, &mut absent)
                }
                false => compat::rewrite_imports(&parsed, &mut exports_of),
            },
        );
        let code = rewritten?.unwrap_or(code);
        absent::place_all(&mut absent, specifier, source);
        let about = About { consulted, absent };
        let cache = &self.files.cache;
        if let Some(map) = map {
            cache.write(key, "map", map.as_bytes());
            self.files.remember_map(specifier, key, Some(map));
        }
        // The code last: whoever finds it finds the rest.
        if let Ok(json) = serde_json::to_vec(&about) {
            cache.write(key, "deps", &json);
            cache.write(key, "js", code.as_bytes());
        }
        Ok((code, about))
    }

    /// What was found out about a file when it was compiled.
    fn about(&self, key: Key) -> Option<About> {
        let json = self.files.cache.read(key, "deps")?;
        serde_json::from_slice(&json).ok()
    }

    /// Whether that is as it was.
    pub(super) fn are_current(&self, consulted: &[Consulted], importer: &ModuleSpecifier) -> bool {
        if let Some(witnessed) = &mut *self.witnessed.borrow_mut() {
            witnessed.extend_from_slice(consulted);
        }
        consulted.iter().all(|consulted| match consulted {
            Consulted::Import { specifier, target } => self.target(specifier, importer) == *target,
            Consulted::Contents { path, hash } => self.contents_hash(path) == *hash,
            Consulted::MaybeCjs { url, answer } => {
                self.files.is_maybe_cjs(url).unwrap_or(false) == *answer
            }
        })
    }

    /// Where an import leads, without the marks of copies.
    pub(super) fn target(&self, specifier: &str, importer: &ModuleSpecifier) -> Option<String> {
        let url = self.resolver.find(specifier, importer.as_str()).ok()?;
        let url = url.as_str();
        Some(url.split_once('?').map_or(url, |(url, _)| url).to_string())
    }

    pub(super) fn contents_hash(&self, path: &std::path::Path) -> Option<u64> {
        (self.files.disk).hash(path, |bytes| XxHash64::oneshot(0, bytes))
    }
}

/// The files that `import("./x")` names, in comments as well.
fn later_imports(source: &str) -> impl Iterator<Item = &str> {
    let after = source.split("import(").skip(1);
    after.filter_map(|text| {
        let text = text.trim_start();
        let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
        let (path, _) = text[1..].split_once(quote)?;
        path.starts_with('.').then_some(path)
    })
}

/// A package that imports pi's modules must survive a missing name as well.
fn mentions_our_modules(source: &str) -> bool {
    js_runtime_ext::SCOPES
        .iter()
        .any(|scope| source.contains(scope))
}

/// TypeScript to JavaScript, with a source map; JavaScript passes through, and of
/// declarations nothing is left.
pub(crate) fn transpile(
    specifier: &ModuleSpecifier,
    source: String,
) -> Result<(String, Option<String>), JsErrorBox> {
    let media_type = MediaType::from_specifier(specifier);
    if media_type.is_declaration() {
        return Ok((String::new(), None));
    }
    if !media_type.is_emittable() {
        return Ok((source, None));
    }
    let emitted = with_parsed(specifier, media_type, source, false, |parsed| {
        if let Some((line, column)) = decorators::misplaced(&parsed) {
            let text = decorators::MISPLACED;
            let text = format!("SyntaxError: {text}\n    at {specifier}:{line}:{column}");
            return Err(JsErrorBox::new("SyntaxError", text));
        }
        let mut changes = legacy::changes(&parsed);
        changes.extend(enums::changes(&parsed));
        if changes.is_empty() {
            return emitted(parsed);
        }
        let source = deno_ast::apply_text_changes(parsed.text(), changes);
        with_parsed(specifier, media_type, source, false, emitted)?
    });
    emitted?
}

fn emitted(parsed: ParsedSource) -> Result<(String, Option<String>), JsErrorBox> {
    let emitted = parsed
        .transpile(
            &TranspileOptions {
                decorators: DecoratorsTranspileOption::LegacyTypeScript {
                    emit_metadata: true,
                },
                ..Default::default()
            },
            &TranspileModuleOptions::default(),
            &EmitOptions {
                source_map: SourceMapOption::Separate,
                inline_sources: false,
                // V8 would read them at each start; errors show the lines of the source.
                remove_comments: true,
                ..Default::default()
            },
        )
        .map_err(error)?
        .into_source();
    Ok((emitted.text, emitted.source_map))
}
