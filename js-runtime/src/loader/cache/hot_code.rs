//! Code caches after execution. V8 makes the cache of a module when it compiles it, with the
//! functions that are needed at once; functions that are called later, above all while the module
//! is evaluated, would be compiled again in every start. So some time after a load the caches of
//! new modules are made again: V8 finds what it has compiled by text and name, and adds all
//! functions that have run.

use std::cell::RefCell;

use deno_core::{JsRuntime, ModuleSpecifier, v8};

use crate::loader::Loader;
use crate::loader::cache::Key;
use crate::loader::transpile::ascii::NonAsciiText;

/// File extension of such a cache.
pub(crate) const HOT: &str = "hot";

/// Source of a compiled text.
pub(crate) enum CompiledSource {
    Module(String),
    /// A CommonJS module, if the file still has that text.
    Script,
    /// A module of pi or of Node.
    Builtin,
}

/// Parameters of the function around a CommonJS module.
const COMMONJS_PARAMETERS: [&str; 5] = ["exports", "require", "module", "__filename", "__dirname"];

/// A compiled text that has no such cache yet.
struct PendingEntry {
    specifier: ModuleSpecifier,
    text: CompiledSource,
    key: Key,
}

#[derive(Default)]
pub(crate) struct HotCode {
    /// `None` while no load is active, because texts are large.
    pending: RefCell<Option<Vec<PendingEntry>>>,
    /// Texts of packages that are not ASCII.
    non_ascii: RefCell<Vec<NonAsciiText>>,
}

impl HotCode {
    /// Collects what is compiled from now on.
    pub fn begin(&self) {
        self.pending.borrow_mut().get_or_insert_default();
    }

    pub fn note(
        &self,
        specifier: &ModuleSpecifier,
        text: impl FnOnce() -> CompiledSource,
        key: Key,
    ) {
        if let Some(all) = &mut *self.pending.borrow_mut() {
            all.push(PendingEntry {
                specifier: specifier.clone(),
                text: text(),
                key,
            });
        }
    }

    /// Makes the cache of one entry. Returns false if there is none left.
    pub fn make_next(&self, runtime: &mut JsRuntime, loader: &Loader) -> bool {
        let next = self.pending.borrow_mut().as_mut().and_then(Vec::pop);
        let Some(entry) = next else {
            *self.pending.borrow_mut() = None;
            loader.write_missing_ascii(self.non_ascii.take());
            return false;
        };
        if let Some((data, non_ascii)) = hot_cache(runtime, loader, &entry) {
            loader.files.cache.write(entry.key, HOT, &data);
            if let Some(text) = non_ascii {
                self.non_ascii.borrow_mut().push(NonAsciiText {
                    is_script: matches!(entry.text, CompiledSource::Script),
                    specifier: entry.specifier,
                    text,
                    compiled: data,
                });
            }
        }
        true
    }
}

/// Makes a cache. Returns the text as well if it is one of a package and not ASCII. Text, name and
/// compile options must equal those that deno_core has used.
fn hot_cache(
    runtime: &mut JsRuntime,
    loader: &Loader,
    entry: &PendingEntry,
) -> Option<(Vec<u8>, Option<String>)> {
    let name = entry.specifier.as_str();
    let builtin_text = |table: &[(&'static str, &'static str)]| {
        let found = table.binary_search_by_key(&name, |(name, _)| name);
        found.ok().map(|found| table[found].1)
    };
    let required;
    let (text, parameters): (&str, Option<&[&str]>) = match &entry.text {
        CompiledSource::Module(text) => (text, None),
        CompiledSource::Script => {
            required = loader.required_text(&entry.specifier, entry.key)?;
            (&required, Some(&COMMONJS_PARAMETERS))
        }
        CompiledSource::Builtin => match builtin_text(js_runtime_snapshot::RESIDUAL_LAZY_ESM) {
            Some(text) => (text, None),
            None => (
                builtin_text(js_runtime_snapshot::RESIDUAL_LAZY_JS)?,
                Some(&["__bootstrap"]),
            ),
        },
    };
    let is_non_ascii = !text.is_ascii() && loader.files.is_packaged(&entry.specifier);
    let non_ascii = is_non_ascii.then(|| text.to_string());
    deno_core::scope!(scope, runtime);
    let text = v8::String::new(scope, text)?;
    let data = if let Some(names) = parameters {
        let is_required = matches!(entry.text, CompiledSource::Script);
        let host_options =
            is_required.then(|| deno_runtime::deno_node::create_host_defined_options(scope));
        let script = if is_required { 0 } else { -1 };
        let origin = origin(scope, name, script, false, host_options)?;
        let mut source = v8::script_compiler::Source::new(text, Some(&origin));
        let parameters = names.iter().map(|name| v8::String::new(scope, name));
        let parameters = parameters.collect::<Option<Vec<_>>>()?;
        let function = v8::script_compiler::compile_function(
            scope,
            &mut source,
            &parameters,
            &[],
            v8::script_compiler::CompileOptions::NoCompileOptions,
            v8::script_compiler::NoCacheReason::NoReason,
        )?;
        function.create_code_cache()?
    } else {
        let origin = module_origin(scope, name)?;
        let mut source = v8::script_compiler::Source::new(text, Some(&origin));
        let module = v8::script_compiler::compile_module(scope, &mut source)?;
        module
            .get_unbound_module_script(scope)
            .create_code_cache()?
    };
    Some((data.to_vec(), non_ascii))
}

/// Returns the origin that deno_core uses for a module.
pub(in crate::loader) fn module_origin<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    name: &str,
) -> Option<v8::ScriptOrigin<'s>> {
    origin(scope, name, 0, true, None)
}

fn origin<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    name: &str,
    script: i32,
    is_module: bool,
    host_options: Option<v8::Local<'s, v8::Data>>,
) -> Option<v8::ScriptOrigin<'s>> {
    let name = v8::String::new(scope, name)?.into();
    Some(v8::ScriptOrigin::new(
        scope,
        name,
        0,
        0,
        false,
        script,
        None,
        false,
        false,
        is_module,
        host_options,
    ))
}
