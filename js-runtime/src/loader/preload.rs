//! Finds and compiles a module with everything that it imports.

use std::rc::Rc;

use deno_core::{ModuleId, ModuleSpecifier, NoopModuleLoader, SourceMapper};
use deno_runtime::worker::MainWorker;
use futures::FutureExt;

use crate::error::Thrown;
use crate::loader::{KNOWN, Loader};

pub(crate) fn preload(
    worker: &mut MainWorker,
    module: &ModuleSpecifier,
) -> Result<ModuleId, Thrown> {
    // Whoever fails does so once more, to say where.
    without_maps(worker, module).or_else(|_| at_once(worker, module))
}

/// What the last start imported of the program, before the first file does.
pub(crate) fn preload_known(worker: &mut MainWorker, loader: &Loader) {
    if loader.takes_known()
        && let Ok(known) = ModuleSpecifier::parse(KNOWN)
    {
        // What is wrong with it is told to whoever imports it.
        _ = without_maps(worker, &known);
    }
}

/// What was asked for with `import()`.
pub(crate) fn preload_coming(worker: &mut MainWorker, loader: &Loader) {
    for module in loader.coming() {
        // The same.
        _ = without_maps(worker, &module);
    }
}

/// deno_core tells the loader where each import stands, for which it reads and decodes the
/// source map of every file that has one, and our loader does not want to know. So there
/// are none meanwhile.
fn without_maps(worker: &mut MainWorker, module: &ModuleSpecifier) -> Result<ModuleId, Thrown> {
    let mapper = worker.js_runtime.source_mapper();
    // What it is told of the maps of packages goes with it: our loader finds these, too.
    let maps = mapper.replace(SourceMapper::new(Rc::new(NoopModuleLoader)));
    let loaded = at_once(worker, module);
    mapper.replace(maps);
    loaded
}

fn at_once(worker: &mut MainWorker, module: &ModuleSpecifier) -> Result<ModuleId, Thrown> {
    let loaded = worker.preload_side_module(module).now_or_never();
    let loaded = loaded.ok_or_else(|| Thrown::new("the loader did not answer at once"))?;
    loaded.map_err(|error| Thrown::from(&error))
}
