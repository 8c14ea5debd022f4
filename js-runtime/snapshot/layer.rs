//! Makes the startup snapshot of deno_runtime's extensions and ours.
//!
//! deno_runtime has a function for that (`create_runtime_snapshot`), which does not let its caller
//! change the texts of the layer. Here each text passes through [`namespace::renamed`].

use std::path::{Path, PathBuf};
use std::rc::Rc;

use deno_resolver::npm::{DenoInNpmPackageChecker, NpmResolver};
use deno_runtime::deno_core::snapshot::{
    CreateSnapshotOptions, CreateSnapshotOutput, create_snapshot,
};
use deno_runtime::deno_core::{
    Extension, ExtensionFileSource, ExtensionFileSourceCode, JsRuntimeForSnapshot, v8,
};
use deno_runtime::ops;
use deno_runtime::ops::bootstrap::SnapshotOptions;
use deno_runtime::transpile::maybe_transpile_source;
use deno_runtime::{
    deno_cache, deno_canvas, deno_cron, deno_crypto, deno_fetch, deno_ffi, deno_fs, deno_http,
    deno_image, deno_io, deno_kv, deno_napi, deno_net, deno_node, deno_os, deno_process,
    deno_telemetry, deno_tls, deno_web, deno_webgpu, deno_webidl, deno_websocket, deno_webstorage,
};
use sys_traits::impls::RealSys;

use crate::namespace;

/// How a file is evaluated that is not evaluated with its extension.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `core.loadExtScript()`
    Script,
    /// `core.createLazyLoader()`, or an `import`
    Module,
}

/// A file that is evaluated when it is requested.
pub struct LazyFile {
    pub specifier: &'static str,
    pub path: PathBuf,
    pub kind: Kind,
}

pub struct Layer {
    pub snapshot: CreateSnapshotOutput,
    pub lazy_files: Vec<LazyFile>,
}

/// Makes the snapshot of deno_runtime's extensions and `own`.
pub fn layer(options: SnapshotOptions, own: Vec<Extension>) -> Layer {
    let mut extensions = extensions(options);
    extensions.extend(own);
    let lazy_files = lazy_files(&extensions);
    let snapshot = create_snapshot(
        CreateSnapshotOptions {
            cargo_manifest_dir: env!("CARGO_MANIFEST_DIR"),
            startup_snapshot: None,
            extensions,
            extension_transpiler: Some(Rc::new(|specifier, source| {
                let name = specifier.to_string();
                let (code, map) = maybe_transpile_source(specifier, source)?;
                let code = namespace::renamed(&name, code.as_str().to_owned());
                Ok((code.into(), map))
            })),
            with_runtime_cb: Some(Box::new(add_vm_context)),
            skip_op_registration: false,
        },
        None,
    )
    .unwrap_or_else(|e| panic!("the snapshot cannot be made: {e}"));
    Layer {
        snapshot,
        lazy_files,
    }
}

/// Returns deno_runtime's extensions in the order of its `worker.rs` and `web_worker.rs`: V8's
/// snapshot refers to their ops by number. A wrong order is an error at the start.
fn extensions(options: SnapshotOptions) -> Vec<Extension> {
    let cron = Box::new(deno_cron::local::LocalCronHandler::new());
    vec![
        deno_telemetry::deno_telemetry::lazy_init(),
        deno_webidl::deno_webidl::lazy_init(),
        deno_web::deno_web::lazy_init(),
        deno_webgpu::deno_webgpu::lazy_init(),
        deno_image::deno_image::lazy_init(),
        deno_canvas::deno_canvas::lazy_init(),
        deno_fetch::deno_fetch::lazy_init(),
        deno_cache::deno_cache::lazy_init(),
        deno_websocket::deno_websocket::lazy_init(),
        deno_webstorage::deno_webstorage::lazy_init(),
        deno_crypto::deno_crypto::lazy_init(),
        deno_ffi::deno_ffi::lazy_init(),
        deno_net::deno_net::lazy_init(),
        deno_tls::deno_tls::lazy_init(),
        deno_kv::deno_kv::lazy_init(),
        deno_cron::deno_cron::init(cron),
        deno_napi::deno_napi::lazy_init(),
        deno_http::deno_http::lazy_init(),
        deno_io::deno_io::lazy_init(),
        deno_fs::deno_fs::lazy_init(),
        deno_os::deno_os::lazy_init(),
        deno_process::deno_process::lazy_init(),
        deno_node_crypto::deno_node_crypto::lazy_init(),
        deno_node_sqlite::deno_node_sqlite::lazy_init(),
        deno_node::deno_node::lazy_init::<DenoInNpmPackageChecker, NpmResolver<RealSys>, RealSys>(),
        ops::runtime::deno_runtime::lazy_init(),
        ops::worker_host::deno_worker_host::lazy_init(),
        ops::fs_events::deno_fs_events::lazy_init(),
        ops::permissions::deno_permissions::lazy_init(),
        ops::tty::deno_tty::lazy_init(),
        ops::http::deno_http_runtime::lazy_init(),
        deno_bundle_runtime::deno_bundle_runtime::lazy_init(),
        ops::desktop::deno_desktop::lazy_init(),
        ops::bootstrap::deno_bootstrap::init(Some(options), false),
        deno_runtime::runtime::lazy_init(),
        ops::web_worker::deno_web_worker::lazy_init(),
    ]
}

/// Adds the context from which `node:vm` makes its contexts.
fn add_vm_context(runtime: &mut JsRuntimeForSnapshot) {
    let mode = || deno_node::ContextInitMode::ForSnapshot;
    let isolate = runtime.v8_isolate();
    v8::scope!(scope, isolate);
    let template = deno_node::init_global_template(scope, mode());
    let context = deno_node::create_v8_context(scope, template, mode(), std::ptr::null_mut());
    assert_eq!(scope.add_context(context), deno_node::VM_CONTEXT_INDEX);
}

/// Returns the files that the program may need as text, sorted by specifier.
fn lazy_files(extensions: &[Extension]) -> Vec<LazyFile> {
    let file = |source: &ExtensionFileSource, kind| match &source.code {
        ExtensionFileSourceCode::LoadedFromFsDuringSnapshot(path) => Some(LazyFile {
            specifier: source.specifier,
            path: Path::new(path).to_owned(),
            kind,
        }),
        _ => None,
    };
    let mut files = Vec::new();
    for extension in extensions {
        let scripts = extension.lazy_loaded_js_files.iter();
        files.extend(scripts.filter_map(|source| file(source, Kind::Script)));
        let modules = extension.lazy_loaded_esm_files.iter();
        files.extend(modules.filter_map(|source| file(source, Kind::Module)));
    }
    files.sort_by_key(|file| file.specifier);
    files.dedup_by_key(|file| file.specifier);
    files
}
