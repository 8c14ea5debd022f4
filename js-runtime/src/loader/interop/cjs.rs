//! CommonJS: `require()`, and the exports that `import` sees of a CommonJS module.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use deno_ast::MediaType;
use deno_core::{FastString, ModuleSpecifier};
use deno_error::JsErrorBox;
use deno_path_util::url_from_file_path;
use deno_runtime::deno_node::NodeRequireLoader;
use deno_runtime::deno_permissions::PermissionsContainer;
use merve::LexerError;
use node_resolver::DenoIsBuiltInNodeModuleChecker;
use node_resolver::analyze::{
    CjsAnalysis, CjsAnalysisExports, CjsAnalysisSourceProvider, CjsCodeAnalyzer,
    CjsModuleExportAnalyzer, EsmAnalysisMode, NodeCodeTranslator, NodeCodeTranslatorMode,
};
use node_resolver::errors::PackageJsonLoadError;

use crate::attribution::imports::Imports;
use crate::loader::cache::manifest::LoadStep;
use crate::loader::cache::prefetched::{CachedText, FileStamp};
use crate::loader::disk::Disk;
use crate::loader::files::{Checker, Files, read_with_digest, to_js_error};
use crate::loader::resolve::{FolderResolver, Resolver};
use crate::loader::transpile::emit::transpile;
use crate::loader::transpile::parsing::with_parsed;

/// Wraps a CommonJS module in an ES module.
pub(crate) type Translator =
    NodeCodeTranslator<Analyzer, Checker, DenoIsBuiltInNodeModuleChecker, FolderResolver, Disk>;

pub(crate) fn translator(files: &Files, resolver: &Resolver) -> Translator {
    let analyzer = CjsModuleExportAnalyzer::new(
        Analyzer {
            files: files.clone(),
        },
        files.checker.clone(),
        resolver.node.clone(),
        resolver.npm.clone(),
        files.package_json.clone(),
        files.disk.clone(),
    );
    NodeCodeTranslator::new(
        deno_maybe_sync::new_rc(analyzer),
        NodeCodeTranslatorMode::ModuleLoader,
    )
}

/// Loads files for `require()` in CommonJS modules.
pub(crate) struct RequireLoader {
    pub files: Files,
    pub imports: Imports,
}

impl NodeRequireLoader for RequireLoader {
    fn ensure_read_permission<'a>(
        &self,
        _permissions: &mut PermissionsContainer,
        path: Cow<'a, Path>,
    ) -> Result<Cow<'a, Path>, JsErrorBox> {
        Ok(path)
    }

    fn load_text_file_lossy(&self, path: &Path) -> Result<FastString, JsErrorBox> {
        self.files
            .recorder
            .record(|| LoadStep::Text(path.to_path_buf()));
        // A file that is required again has changed.
        let prefetched = self.files.prefetched.text(path);
        let known = prefetched.or_else(|| self.files.memory_cache.text(path));
        self.imports.note_required(path);
        let media_type = MediaType::from_path(path);
        let url = url_from_file_path(path).map_err(to_js_error)?;
        let loading = self.imports.loading();
        let kept = loading.and_then(|extension| self.files.kept_sources(extension));
        let kept = kept.and_then(|kept| kept.text(&url));
        if let Some(text) = known.filter(|_| kept.is_none()) {
            if let Some(source) = &text.source {
                self.imports.note_required_text(path, source);
            }
            self.imports.note_content(path, Some(text.digest));
            self.files.note_ascii_key(&url, text.ascii_key);
            return Ok(text.code.into());
        }
        let file = FileStamp::of_settled(path).filter(|_| kept.is_none());
        let (source, digest): (Arc<str>, u64) = match kept {
            Some(kept) => (kept, 0),
            None => {
                let read = read_with_digest(path);
                let answer = read.as_ref().ok().map(|(_, digest)| *digest);
                self.imports.note_content(path, answer);
                let (source, digest) = read?;
                (source.into(), digest)
            }
        };
        let is_packaged = self.files.is_packaged(&url);
        if !is_packaged {
            self.imports.note_required_text(path, &source);
        }
        if !media_type.is_emittable() && !media_type.is_declaration() {
            let text = self.files.in_ascii(&url, source.to_string());
            let ascii_key = text.ascii_key;
            let code = self.files.code(&url, text);
            if let Some(file) = file {
                let text = CachedText {
                    file,
                    digest,
                    source: (!is_packaged).then_some(source),
                    code: code.clone(),
                    ascii_key,
                };
                self.files.memory_cache.insert_text(path, text);
            }
            return Ok(code.into());
        }
        let (code, map) = transpile(&url, source.to_string())?;
        if let Some(map) = map {
            self.files.keep_map(&url, map);
        }
        Ok(code.into())
    }

    fn is_maybe_cjs(&self, specifier: &ModuleSpecifier) -> Result<bool, PackageJsonLoadError> {
        self.files.is_maybe_cjs(specifier)
    }

    fn is_maybe_cjs_from_require(
        &self,
        specifier: &ModuleSpecifier,
    ) -> Result<bool, PackageJsonLoadError> {
        self.files.is_maybe_cjs(specifier)
    }
}

/// Finds the names that a CommonJS module exports.
pub(crate) struct Analyzer {
    files: Files,
}

impl Files {
    /// Returns true if the file is not an ES module.
    pub fn is_script(&self, specifier: &ModuleSpecifier, source: &str) -> bool {
        matches!(self.analyze_cjs(specifier, source), Ok(Some(_)))
    }

    /// Returns the exports of a CommonJS module; `None` for an ES module.
    fn analyze_cjs(
        &self,
        specifier: &ModuleSpecifier,
        source: &str,
    ) -> Result<Option<CjsAnalysisExports>, JsErrorBox> {
        let key = self.cache.key(&[b"cjs", source.as_bytes()]);
        if let Some(known) = self.cache.read(key, "cjs")
            && let Ok(known) = serde_json::from_slice(&known)
        {
            return Ok(known);
        }
        let exports = match lexed(source) {
            Lexed::Script(exports) => Some(exports),
            Lexed::Module => None,
            Lexed::Unclear => parsed(specifier, source)?,
        };
        if let Ok(json) = serde_json::to_vec(&exports) {
            self.cache.write(key, "cjs", &json);
        }
        Ok(exports)
    }
}

/// The only function of libstdc++ that merve (C++) calls, for a text beyond all limits. With this
/// definition the library need not be installed, nor be loaded at each start (a millisecond). The
/// symbol is hidden, because addons that bring the library must get its own.
#[cfg(target_os = "linux")]
#[unsafe(export_name = "_ZSt20__throw_length_errorPKc")]
extern "C" fn length_error(_what: *const std::ffi::c_char) -> ! {
    std::process::abort()
}
#[cfg(target_os = "linux")]
std::arch::global_asm!(".hidden _ZSt20__throw_length_errorPKc");

/// Result of Node's lexer, which takes a fiftieth of the time of the parser.
enum Lexed {
    Script(CjsAnalysisExports),
    Module,
    /// The lexer cannot decide; the parser has to.
    Unclear,
}

fn lexed(source: &str) -> Lexed {
    // The lexer reads up to two bytes after the end.
    let padded = format!("{source}\n\0\0\0");
    let found = match merve::parse_commonjs(&padded[..source.len()]) {
        Ok(found) => found,
        Err(error) => {
            return match error.kind {
                LexerError::UnexpectedEsmImport
                | LexerError::UnexpectedEsmExport
                | LexerError::UnexpectedEsmImportMeta => Lexed::Module,
                _ => Lexed::Unclear,
            };
        }
    };
    let names = |names: merve::ExportIter| names.map(|one| one.name.to_string()).collect();
    let exports = CjsAnalysisExports {
        exports: names(found.exports()),
        reexports: names(found.reexports()),
        member_reexports: vec![],
    };
    // The lexer notices neither a top-level `await` nor `import.meta` inside an expression, which
    // only ES modules have.
    let is_silent = exports.exports.is_empty() && exports.reexports.is_empty();
    let may_be_module = is_silent
        && ["await", "import.meta"]
            .iter()
            .any(|it| source.contains(it));
    match may_be_module || source.lines().any(assigns_object) {
        true => Lexed::Unclear,
        false => Lexed::Script(exports),
    }
}

/// Returns true for `module.exports = {…}` at the top level. The lexer stops at the first value
/// that is not a name; the parser reads all.
fn assigns_object(line: &str) -> bool {
    let mut value = line;
    for target in ["exports", "module.exports", "exports"] {
        let rest = value.strip_prefix(target).map(str::trim_start);
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('=')) {
            value = rest.trim_start();
        }
    }
    value.len() < line.len() && value.starts_with('{')
}

/// Parses the file. `None` for an ES module.
fn parsed(
    specifier: &ModuleSpecifier,
    source: &str,
) -> Result<Option<CjsAnalysisExports>, JsErrorBox> {
    let source = source.to_string();
    with_parsed(specifier, MediaType::JavaScript, source, false, |parsed| {
        parsed.compute_is_script().then(|| {
            let found = parsed.analyze_cjs();
            CjsAnalysisExports {
                exports: found.exports,
                reexports: found.reexports,
                member_reexports: vec![],
            }
        })
    })
}

#[async_trait::async_trait(?Send)]
impl CjsCodeAnalyzer for Analyzer {
    async fn analyze_cjs<'a>(
        &self,
        specifier: &ModuleSpecifier,
        source: Option<Cow<'a, str>>,
        _mode: EsmAnalysisMode,
    ) -> Result<CjsAnalysis<'a>, JsErrorBox> {
        let source = match source {
            Some(source) if !specifier.path().ends_with(".json") => source,
            _ => {
                return Ok(CjsAnalysis::Cjs(CjsAnalysisExports {
                    exports: vec![],
                    reexports: vec![],
                    member_reexports: vec![],
                }));
            }
        };
        let maybe = self.files.is_maybe_cjs(specifier);
        if !maybe.map_err(JsErrorBox::from_err)? {
            return Ok(CjsAnalysis::Esm(source, None));
        }
        Ok(match self.files.analyze_cjs(specifier, &source)? {
            Some(exports) => CjsAnalysis::Cjs(exports),
            None => CjsAnalysis::Esm(source, None),
        })
    }

    async fn analyze_cjs_member_props<'a>(
        &self,
        _specifier: &ModuleSpecifier,
        _source: Option<Cow<'a, str>>,
        _member: &str,
    ) -> Result<Option<Vec<String>>, JsErrorBox> {
        Ok(None)
    }
}

impl CjsAnalysisSourceProvider for Files {
    fn load_source<'a>(&'a self, specifier: &ModuleSpecifier) -> Option<Cow<'a, str>> {
        let text = self.text_of(specifier).ok()?;
        Some(Cow::Owned(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the names as one text; `None` for an ES module.
    fn names(exports: Option<CjsAnalysisExports>) -> Option<String> {
        exports.map(|found| format!("{:?} {:?}", found.exports, found.reexports))
    }

    #[test]
    fn lexer_and_parser_agree() {
        let url = ModuleSpecifier::parse("file:///a.js").unwrap();
        for source in [
            "exports.a = 1; exports['b'] = 2;",
            "module.exports = { a, b, 'c': 1 };",
            "module.exports = require('./other');",
            "Object.defineProperty(exports, '__esModule', { value: true });\nexports.x = void 0;",
            "__exportStar(require('./star'), exports);",
            "#!/usr/bin/env node\nexports.a = /[/]\\//.test('}') ? `${'`'}` : 1",
            "import './x'; exports.a = 1;",
            "export const a = 1;",
            "console.log(import.meta.url);",
            "await 1;",
            "module.exports.a = async () => { await 1; };",
            "import('./x').then((x) => { exports.a = x; });",
            "",
            "exports.ends = 'in the midst'",
            "exports.x = 1 //",
            "exports.x = a /",
        ] {
            let expected = parsed(&url, source).map(names).unwrap_or_default();
            let found = match lexed(source) {
                Lexed::Script(exports) => names(Some(exports)),
                Lexed::Module => None,
                Lexed::Unclear => continue,
            };
            // The lexer accepts texts that are not JavaScript.
            if with_parsed(
                &url,
                MediaType::JavaScript,
                source.to_string(),
                false,
                |_| (),
            )
            .is_ok()
            {
                assert_eq!(found, expected, "{source}");
            }
        }
        for source in [
            "await 1;",
            "log(import.meta.url);",
            "exports = module.exports = { a: 1, b };",
        ] {
            assert!(matches!(lexed(source), Lexed::Unclear), "{source}");
        }
        for source in ["exports.a = 1;", "exports.a = async () => { await 1; };"] {
            assert!(matches!(lexed(source), Lexed::Script(_)), "{source}");
        }
        assert!(matches!(lexed("export const a = 1;"), Lexed::Module));
    }
}
