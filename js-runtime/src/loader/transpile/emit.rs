//! Makes the JavaScript that V8 gets of a file: strips types, makes imports tolerant, and caches
//! the result together with its dependencies.

use std::path::PathBuf;

use deno_ast::{
    DecoratorsTranspileOption, EmitOptions, MediaType, ParsedSource, SourceMapOption,
    TranspileModuleOptions, TranspileOptions,
};
use deno_core::ModuleSpecifier;
use deno_error::JsErrorBox;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::{enums, erasable, import_equals};
use crate::loader::Loader;
use crate::loader::cache::Key;
use crate::loader::files::to_js_error;
use crate::loader::interop::compat;
use crate::loader::interop::missing_exports::{self, MissingExport};
use crate::loader::resolve::scan_imports;
use crate::loader::transpile::decorators;
use crate::loader::transpile::parsing::with_parsed;

/// Source code that determines cached files: when it changes, they are invalid.
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
    include_str!("erasable.rs"),
    include_str!("../interop/import_usage.rs")
);

/// A dependency of emitted code outside its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Consulted {
    /// The target of an import; `None` if there is none.
    Import {
        specifier: String,
        target: Option<String>,
    },
    /// Hash of the content of a file.
    Contents { path: PathBuf, hash: Option<u64> },
    /// Whether a module may be CommonJS.
    MaybeCjs { url: ModuleSpecifier, maybe: bool },
}

/// Record that is stored beside the code of a file.
#[derive(Default, Serialize, Deserialize)]
struct EmitRecord {
    consulted: Vec<Consulted>,
    missing: Vec<MissingExport>,
}

impl Loader {
    /// Emits JavaScript of a file by jiti's rules if it is `lenient`, otherwise by Node's.
    pub(in crate::loader) fn emit(
        &self,
        specifier: &ModuleSpecifier,
        source: &str,
        lenient: bool,
    ) -> Result<String, JsErrorBox> {
        if !lenient && (!mentions_our_modules(source) || self.has_its_imports(specifier, source)) {
            return Ok(source.to_owned());
        }
        let key = self.emit_key(specifier, source, lenient);
        // The record beside the code refers to files. A pinned module may import other texts.
        if self.files.is_pinned(specifier) {
            let (code, map, record) = self.compile(key, specifier, source, lenient)?;
            if let Some(map) = map {
                self.files.keep_map(specifier, map);
            }
            self.note_missing_exports(specifier, record.missing);
            return Ok(code);
        }
        let _turn = self.files.cache.wait_compile_turn(key);
        if let Some(code) = self.files.cache.read(key, "js")
            && let Some(record) = self.record(key)
            && self.are_unchanged(&record.consulted, specifier)
            && let Ok(code) = String::from_utf8(code)
        {
            self.files.remember_map(specifier, key, None);
            self.note_missing_exports(specifier, record.missing);
            return Ok(code);
        }
        let (code, record) = self.compile_and_store(key, specifier, source, lenient)?;
        self.note_missing_exports(specifier, record.missing);
        Ok(code)
    }

    pub(in crate::loader) fn note_missing_exports(
        &self,
        specifier: &ModuleSpecifier,
        missing: Vec<MissingExport>,
    ) {
        self.missing_exports.borrow_mut().add(specifier, missing);
    }

    /// Returns true if a file of a package needs no change, because pi's modules export what it
    /// imports.
    fn has_its_imports(&self, specifier: &ModuleSpecifier, source: &str) -> bool {
        let Some(statements) = scan_imports::virtual_imports(source) else {
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

    /// Compiles a TypeScript file if it is not in the cache. Returns its imports; those of
    /// `import()` come last.
    pub(in crate::loader) fn emit_for_prefetch(
        &self,
        specifier: &ModuleSpecifier,
    ) -> Vec<ModuleSpecifier> {
        let Ok(source) = self.files.text_of(specifier) else {
            return Vec::new();
        };
        let key = self.emit_key(specifier, &source, true);
        let _turn = self.files.cache.wait_compile_turn(key);
        let has_code = self.files.cache.read(key, "js").is_some();
        let consulted = match self.record(key).filter(|_| has_code) {
            Some(record) if self.are_unchanged(&record.consulted, specifier) => record.consulted,
            // The error is reported to the code that imports the file.
            _ => match self.compile_and_store(key, specifier, &source, true) {
                Ok((_, record)) => record.consulted,
                Err(_) => return Vec::new(),
            },
        };
        let target = |consulted| match consulted {
            Consulted::Import { target, .. } => target,
            _ => None,
        };
        let imported = consulted.into_iter().filter_map(target);
        let late = dynamic_import_paths(&source).filter_map(|late| self.target(late, specifier));
        let urls = imported.chain(late).map(|url| ModuleSpecifier::parse(&url));
        urls.filter_map(Result::ok).collect()
    }

    /// Returns the cache key of what is made of a file with this `source`.
    pub(in crate::loader) fn emit_key(
        &self,
        specifier: &ModuleSpecifier,
        source: &str,
        lenient: bool,
    ) -> Key {
        let path = specifier.path().as_bytes();
        let rules: &[u8] = if lenient { b"emit" } else { b"emit strictly" };
        self.files.cache.key(&[rules, path, source.as_bytes()])
    }

    fn compile_and_store(
        &self,
        key: Key,
        specifier: &ModuleSpecifier,
        source: &str,
        lenient: bool,
    ) -> Result<(String, EmitRecord), JsErrorBox> {
        let (code, map, record) = self.compile(key, specifier, source, lenient)?;
        let cache = &self.files.cache;
        if let Some(map) = map {
            cache.write(key, "map", map.as_bytes());
            self.files.remember_map(specifier, key, Some(map));
        }
        // The code is written last: its presence implies the rest.
        if let Ok(json) = serde_json::to_vec(&record) {
            cache.write(key, "deps", &json);
            cache.write(key, "js", code.as_bytes());
        }
        Ok((code, record))
    }

    /// Returns the code, its source map and the record to store beside it.
    fn compile(
        &self,
        key: Key,
        specifier: &ModuleSpecifier,
        source: &str,
        lenient: bool,
    ) -> Result<(String, Option<String>, EmitRecord), JsErrorBox> {
        let known = self.transpiled.borrow_mut().remove(&key);
        let (code, map) = match known {
            Some(transpiled) => transpiled,
            None => transpile(specifier, source.to_owned())?,
        };
        let EmitRecord {
            mut consulted,
            mut missing,
        } = EmitRecord::default();
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
                    compat::rewrite(&parsed, is_typescript, &mut exports_of, &mut missing)
                }
                false => compat::rewrite_imports(&parsed, &mut exports_of),
            },
        );
        let code = rewritten?.unwrap_or(code);
        missing_exports::locate_all(&mut missing, specifier, source);
        Ok((code, map, EmitRecord { consulted, missing }))
    }

    /// Returns the record of a compiled file.
    fn record(&self, key: Key) -> Option<EmitRecord> {
        let json = self.files.cache.read(key, "deps")?;
        serde_json::from_slice(&json).ok()
    }

    /// Returns true if the dependencies are unchanged.
    pub(in crate::loader) fn are_unchanged(
        &self,
        consulted: &[Consulted],
        importer: &ModuleSpecifier,
    ) -> bool {
        if let Some(consulted_log) = &mut *self.consulted.borrow_mut() {
            consulted_log.extend_from_slice(consulted);
        }
        consulted.iter().all(|consulted| match consulted {
            Consulted::Import { specifier, target } => self.target(specifier, importer) == *target,
            Consulted::Contents { path, hash } => self.contents_hash(path) == *hash,
            Consulted::MaybeCjs { url, maybe } => {
                self.files.is_maybe_cjs(url).unwrap_or(false) == *maybe
            }
        })
    }

    /// Returns the target of an import, without the queries of copies.
    pub(in crate::loader) fn target(
        &self,
        specifier: &str,
        importer: &ModuleSpecifier,
    ) -> Option<String> {
        let url = self.resolver.find(specifier, importer.as_str()).ok()?;
        let url = url.as_str();
        Some(url.split_once('?').map_or(url, |(url, _)| url).to_string())
    }

    pub(in crate::loader) fn contents_hash(&self, path: &std::path::Path) -> Option<u64> {
        (self.files.disk).hash(path, |bytes| XxHash64::oneshot(0, bytes))
    }
}

/// Returns the paths in `import("./x")`, including those in comments.
fn dynamic_import_paths(source: &str) -> impl Iterator<Item = &str> {
    let after = source.split("import(").skip(1);
    after.filter_map(|text| {
        let text = text.trim_start();
        let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
        let (path, _) = text[1..].split_once(quote)?;
        path.starts_with('.').then_some(path)
    })
}

/// Returns true if the text names pi's modules. A package that imports them must tolerate missing
/// names as well.
fn mentions_our_modules(source: &str) -> bool {
    js_runtime_ext::SCOPES
        .iter()
        .any(|scope| source.contains(scope))
}

/// Transpiles TypeScript to JavaScript, with a source map. JavaScript is returned unchanged, and
/// declaration files become empty.
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
            let text = decorators::MISPLACED_DECORATOR;
            let text = format!("SyntaxError: {text}\n    at {specifier}:{line}:{column}");
            return Err(JsErrorBox::new("SyntaxError", text));
        }
        let mut changes = import_equals::changes(&parsed);
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
    if parsed.text().len() >= erasable::LONG_TEXT
        && let Some(emitted) = erasable::erase_types(&parsed)
    {
        return Ok((emitted.text, emitted.source_map));
    }
    let emitted = parsed
        .transpile(
            &TranspileOptions {
                decorators: DecoratorsTranspileOption::LegacyTypeScript {
                    emit_metadata: true,
                },
                ..Default::default()
            },
            &TranspileModuleOptions::default(),
            &emit_options(),
        )
        .map_err(to_js_error)?
        .into_source();
    Ok((emitted.text, emitted.source_map))
}

pub(super) fn emit_options() -> EmitOptions {
    EmitOptions {
        source_map: SourceMapOption::Separate,
        inline_sources: false,
        // V8 would read comments at each start; errors show the lines of the source.
        remove_comments: true,
        ..Default::default()
    }
}
