//! Lets V8 know what it has compiled before of the modules that are part of the program:
//! deno_core compiles those that are imported statically without a code cache. What V8 has
//! compiled in an isolate it finds again by text and name, so that it is enough to compile
//! them with their caches a moment before deno_core does without.

use std::cell::RefCell;
use std::collections::HashSet;

use deno_core::{ModuleSpecifier, v8};

use super::Loader;
use super::warm::{Text, module_origin};

/// The modules that this isolate has compiled in this way.
#[derive(Default)]
pub(crate) struct Primed(RefCell<HashSet<&'static str>>);

impl Loader {
    /// `specifier` is about to be compiled, and with it everything that it imports.
    pub(super) fn prime(&self, scope: &mut v8::PinScope, specifier: &ModuleSpecifier) {
        if !self.files.cache.is_on() || specifier.scheme() == "file" {
            return;
        }
        let mut wanted = vec![specifier.to_string()];
        while let Some(wanted_next) = wanted.pop() {
            let Some((name, text)) = of_the_program(&wanted_next) else {
                continue;
            };
            if self.primed.0.borrow_mut().insert(name)
                && let Some(imported) = self.compile_of_the_program(scope, name, text)
            {
                wanted.extend(imported);
            }
        }
    }

    /// Tells what it imports. `None` if it cannot be compiled: deno_core will say why.
    fn compile_of_the_program(
        &self,
        scope: &mut v8::PinScope,
        name: &'static str,
        text: &'static str,
    ) -> Option<Vec<String>> {
        let specifier = ModuleSpecifier::parse(name).ok()?;
        let cached = self.compiled_by_hash(&specifier, 0, || Text::OfTheProgram);
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
            self.keep_compiled(&specifier, 0, &data);
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

/// The name and the text of an ES module that is not in the snapshot.
fn of_the_program(name: &str) -> Option<(&'static str, &'static str)> {
    let table = js_runtime_snapshot::RESIDUAL_LAZY_ESM;
    let found = table.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(table[found])
}
