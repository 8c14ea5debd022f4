//! Settings that all isolates share: of main workers, of web workers and of scripts.

use deno_core::JsRuntime;
use deno_runtime::deno_fetch;
use deno_runtime::deno_node::NODE_VERSION;
use deno_runtime::{BootstrapOptions, UNSTABLE_FEATURES};

/// Lets `fetch` accept as many response headers as Node's HTTP does. hyper refuses more than 100,
/// which some proxies and gateways send.
pub(crate) fn take_many_headers(runtime: &JsRuntime) {
    const MOST_HEADERS: usize = 2000;
    let state = runtime.op_state();
    let mut state = state.borrow_mut();
    if let Some(options) = state.try_borrow_mut::<deno_fetch::Options>() {
        options.client_builder_hook = Some(|mut builder| {
            builder.http1_max_headers(MOST_HEADERS);
            builder
        });
    }
}

/// Returns the options that are the same for every isolate.
pub(crate) fn bootstrap() -> BootstrapOptions {
    let major = NODE_VERSION.split('.').next().unwrap_or(NODE_VERSION);
    BootstrapOptions {
        // `navigator.userAgent`
        user_agent: format!("Node.js/{major}"),
        has_node_modules_dir: true,
        // Otherwise deno_node rewrites the arguments of every child process that is this program to
        // those of the `deno` command.
        is_standalone: true,
        // Node has `Object.prototype.__proto__`, and packages use it.
        unstable_features: UNSTABLE_FEATURES
            .iter()
            .filter(|feature| feature.name == "unsafe-proto")
            .map(|feature| feature.id)
            .collect(),
        ..Default::default()
    }
}
