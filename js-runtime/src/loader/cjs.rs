//! CommonJS: `require()`, and what `import` sees of a CommonJS module.

use std::borrow::Cow;
use std::path::Path;

use deno_ast::MediaType;
use deno_core::{FastString, ModuleSpecifier};
use deno_error::JsErrorBox;
use deno_path_util::url_from_file_path;
use deno_runtime::deno_node::NodeRequireLoader;
use deno_runtime::deno_permissions::PermissionsContainer;
use node_resolver::DenoIsBuiltInNodeModuleChecker;
use node_resolver::analyze::{
    CjsAnalysis, CjsAnalysisExports, CjsAnalysisSourceProvider, CjsCodeAnalyzer,
    CjsModuleExportAnalyzer, EsmAnalysisMode, NodeCodeTranslator, NodeCodeTranslatorMode,
};
use node_resolver::errors::PackageJsonLoadError;

use super::disk::Disk;
use super::emit::{parse, transpile};
use super::files::{Checker, Files, error, read_text};
use super::resolve::{FolderResolver, Resolver};
use crate::imports::Imports;

/// Makes an ES module around a CommonJS module.
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

/// `require()` from CommonJS modules.
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
        // Who requires a file again has changed it.
        let source = read_text(path)?;
        self.imports.note_required(path);
        if !MediaType::from_path(path).is_emittable() {
            return Ok(source.into());
        }
        let url = url_from_file_path(path).map_err(error)?;
        Ok(transpile(&url, source)?.0.into())
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
    /// Whether it is no ES module.
    pub fn is_script(&self, specifier: &ModuleSpecifier, source: &str) -> bool {
        matches!(self.analyze_cjs(specifier, source), Ok(Some(_)))
    }

    /// What a CommonJS module exports; `None` for an ES module.
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
        let parsed = parse(specifier, MediaType::JavaScript, source.to_string(), false)?;
        let exports = parsed.compute_is_script().then(|| {
            let found = parsed.analyze_cjs();
            CjsAnalysisExports {
                exports: found.exports,
                reexports: found.reexports,
                member_reexports: vec![],
            }
        });
        if let Ok(json) = serde_json::to_vec(&exports) {
            self.cache.write(key, "cjs", &json);
        }
        Ok(exports)
    }
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
