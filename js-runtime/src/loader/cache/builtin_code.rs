//! Compiles built-in modules with their code caches before deno_core compiles them. deno_core
//! compiles statically imported modules without a code cache, but V8 finds what it has compiled in
//! an isolate by text and name. So it is enough to compile such a module with its cache just
//! before.

use std::cell::RefCell;
use std::collections::HashSet;

use deno_core::{ModuleSpecifier, v8};

use super::hot_code::{CompiledSource, module_origin};
use crate::loader::Loader;

/// Built-in modules that this isolate has compiled with their caches.
#[derive(Default)]
pub(crate) struct CompiledBuiltins(RefCell<HashSet<&'static str>>);

impl Loader {
    /// Compiles `specifier`, which deno_core is about to compile, and everything that it imports.
    pub(in crate::loader) fn compile_builtins(
        &self,
        scope: &mut v8::PinScope,
        specifier: &ModuleSpecifier,
    ) {
        if !self.files.cache.is_on() || specifier.scheme() == "file" {
            return;
        }
        let mut queue = vec![specifier.to_string()];
        while let Some(next) = queue.pop() {
            let Some((name, text)) = builtin_module(&next) else {
                continue;
            };
            if self.compiled_builtins.0.borrow_mut().insert(name)
                && let Some(imported) = self.compile_builtin(scope, name, text)
            {
                queue.extend(imported);
            }
        }
    }

    /// Returns the specifiers that the module imports. `None` if it cannot be compiled; deno_core
    /// will report the error.
    fn compile_builtin(
        &self,
        scope: &mut v8::PinScope,
        name: &'static str,
        text: &'static str,
    ) -> Option<Vec<String>> {
        let specifier = ModuleSpecifier::parse(name).ok()?;
        let cached = self.compiled_by_hash(&specifier, 0, || CompiledSource::Builtin);
        v8::tc_scope!(let scope, scope);
        let text = v8::String::new_external_onebyte_static(scope, text.as_bytes())?;
        let origin = module_origin(scope, name)?;
        let (module, is_new) = match &cached {
            Some(data) => {
                let data = v8::CachedData::new(data);
                let mut source =
                    v8::script_compiler::Source::new_with_cached_data(text, Some(&origin), data);
                let module = v8::script_compiler::compile_module2(
                    scope,
                    &mut source,
                    v8::script_compiler::CompileOptions::ConsumeCodeCache,
                    v8::script_compiler::NoCacheReason::NoReason,
                )?;
                let rejected = source.get_cached_data().is_none_or(|data| data.rejected());
                (module, rejected)
            }
            None => {
                let mut source = v8::script_compiler::Source::new(text, Some(&origin));
                (
                    v8::script_compiler::compile_module(scope, &mut source)?,
                    true,
                )
            }
        };
        if is_new {
            let data = module
                .get_unbound_module_script(scope)
                .create_code_cache()?;
            self.write_compiled(&specifier, 0, &data);
        }
        let requests = module.get_module_requests();
        let imported = (0..requests.length()).filter_map(|index| {
            let request: v8::Local<v8::ModuleRequest> =
                requests.get(scope, index)?.try_into().ok()?;
            Some(request.get_specifier().to_rust_string_lossy(scope))
        });
        Some(imported.collect())
    }
}

/// Returns name and text of an ES module that is not in the snapshot.
fn builtin_module(name: &str) -> Option<(&'static str, &'static str)> {
    let table = js_runtime_snapshot::RESIDUAL_LAZY_ESM;
    let found = table.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(table[found])
}
