//! Finds and compiles a module with everything that it imports.

use std::rc::Rc;

use deno_core::{ModuleId, ModuleSpecifier, NoopModuleLoader, SourceMapper};
use deno_runtime::worker::MainWorker;
use futures::FutureExt;

use crate::error::Thrown;
use crate::loader::{BUILTINS_MODULE, Loader};

pub(crate) fn preload(
    worker: &mut MainWorker,
    module: &ModuleSpecifier,
) -> Result<ModuleId, Thrown> {
    // A failing load is repeated with source maps, which locate the error.
    load_without_maps(worker, module).or_else(|_| load_now(worker, module))
}

/// Loads the built-in modules of the last start before the first file.
pub(crate) fn preload_builtins(worker: &mut MainWorker, loader: &Loader) {
    if loader.take_builtins()
        && let Ok(builtins) = ModuleSpecifier::parse(BUILTINS_MODULE)
    {
        // The error is reported to the code that imports it.
        _ = load_without_maps(worker, &builtins);
    }
}

/// Loads the modules that were requested with `import()`.
pub(crate) fn preload_dynamic_imports(worker: &mut MainWorker, loader: &Loader) {
    for module in loader.take_dynamic_imports() {
        // The error is reported to the code that imports it.
        _ = load_without_maps(worker, &module);
    }
}

/// Loads a module while deno_core has no source maps. deno_core computes the position of each
/// import for the loader, for which it reads and decodes the source map of every file that has one;
/// our loader does not use the position.
fn load_without_maps(
    worker: &mut MainWorker,
    module: &ModuleSpecifier,
) -> Result<ModuleId, Thrown> {
    let mapper = worker.js_runtime.source_mapper();
    // Maps of packages that are registered meanwhile are lost; our loader finds these, too.
    let maps = mapper.replace(SourceMapper::new(Rc::new(NoopModuleLoader)));
    let loaded = load_now(worker, module);
    mapper.replace(maps);
    loaded
}

fn load_now(worker: &mut MainWorker, module: &ModuleSpecifier) -> Result<ModuleId, Thrown> {
    let loaded = worker.preload_side_module(module).now_or_never();
    let loaded = loaded.ok_or_else(|| Thrown::new("the loader did not answer at once"))?;
    loaded.map_err(|error| Thrown::from(&error))
}
