//! Code caches with what ran. V8 makes the cache of a module when it compiles it, with the
//! functions that are needed at once; those that are called later, above all while the
//! module is evaluated, would be compiled anew in every start. So once a set of extensions
//! is at rest, the caches of its new modules are made again: V8 finds by text and name what
//! it has compiled, and gives it with all functions that have run.

use std::cell::RefCell;

use deno_core::{JsRuntime, ModuleSpecifier, v8};

use super::Loader;
use super::ascii::Seen;
use crate::cache::Key;

/// The ending of such a cache's file.
pub(crate) const HOT: &str = "hot";

/// What is compiled.
pub(crate) enum Text {
    Module(String),
    /// CommonJS, if it is what the file says.
    Script,
    /// One of our own modules, or of Node's.
    OfTheProgram,
}

/// Of the function around a CommonJS module.
const PARAMETERS: [&str; 5] = ["exports", "require", "module", "__filename", "__dirname"];

/// What was compiled and has no such cache yet.
struct Compiled {
    specifier: ModuleSpecifier,
    text: Text,
    key: Key,
}

#[derive(Default)]
pub(crate) struct Warm {
    /// `None` while nobody would ask for it: texts are large.
    compiled: RefCell<Option<Vec<Compiled>>>,
    /// Texts of packages beyond ASCII.
    foreign: RefCell<Vec<Seen>>,
}

impl Warm {
    /// What is compiled from now on is to get such a cache.
    pub fn begin(&self) {
        self.compiled.borrow_mut().get_or_insert_default();
    }

    pub fn note(&self, specifier: &ModuleSpecifier, text: impl FnOnce() -> Text, key: Key) {
        if let Some(all) = &mut *self.compiled.borrow_mut() {
            all.push(Compiled {
                specifier: specifier.clone(),
                text: text(),
                key,
            });
        }
    }

    /// Makes the cache of one of them. `false` if there is none left.
    pub fn next(&self, runtime: &mut JsRuntime, loader: &Loader) -> bool {
        let next = self.compiled.borrow_mut().as_mut().and_then(Vec::pop);
        let Some(compiled) = next else {
            *self.compiled.borrow_mut() = None;
            loader.make_ascii(self.foreign.take());
            return false;
        };
        if let Some((data, foreign)) = hot_cache(runtime, loader, &compiled) {
            loader.files.cache.write(compiled.key, HOT, &data);
            if let Some(text) = foreign {
                self.foreign.borrow_mut().push(Seen {
                    is_script: matches!(compiled.text, Text::Script),
                    specifier: compiled.specifier,
                    text,
                    compiled: data,
                });
            }
        }
        true
    }
}

/// With the text, if it is one of a package and not in ASCII. The text, the name and the way must
/// be those with which deno_core has compiled it.
fn hot_cache(
    runtime: &mut JsRuntime,
    loader: &Loader,
    compiled: &Compiled,
) -> Option<(Vec<u8>, Option<String>)> {
    let name = compiled.specifier.as_str();
    let in_program = |table: &[(&'static str, &'static str)]| {
        let found = table.binary_search_by_key(&name, |(name, _)| name);
        found.ok().map(|found| table[found].1)
    };
    let required;
    let (text, parameters): (&str, Option<&[&str]>) = match &compiled.text {
        Text::Module(text) => (text, None),
        Text::Script => {
            required = loader.required(&compiled.specifier, compiled.key)?;
            (&required, Some(&PARAMETERS))
        }
        Text::OfTheProgram => match in_program(js_runtime_snapshot::RESIDUAL_LAZY_ESM) {
            Some(text) => (text, None),
            None => (
                in_program(js_runtime_snapshot::RESIDUAL_LAZY_JS)?,
                Some(&["__bootstrap"]),
            ),
        },
    };
    let is_foreign = !text.is_ascii() && loader.files.is_packaged(&compiled.specifier);
    let foreign = is_foreign.then(|| text.to_string());
    deno_core::scope!(scope, runtime);
    let text = v8::String::new(scope, text)?;
    let data = if let Some(names) = parameters {
        let is_required = matches!(compiled.text, Text::Script);
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
    Some((data.to_vec(), foreign))
}

/// As deno_core says where a module is from.
pub(super) fn module_origin<'s>(
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
