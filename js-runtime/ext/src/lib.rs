//! The deno_core extension `js_runtime`: the ops through which JavaScript reaches the program, and
//! the list of the JavaScript files in the snapshot. The build script that makes the snapshot uses
//! it, and the program at run time.

mod bridge;
pub mod diff_words;
pub mod highlight;
pub mod markdown;
mod node;
mod program;
mod resolve_extension;
pub mod text;
mod virtual_modules;

use std::sync::Arc;

pub use self::bridge::attribution::{
    ThreadMonitor, author, author_context, forget_timer, last_timer, set_thread_monitor,
};
pub use self::bridge::host::{
    Author, Console, Fault, Host, HostError, ProcessEnd, Stop, TamperedIntrinsic, ThreadEvent,
    ThreadShare,
};
pub use self::bridge::ops::{Uncaught, catch_async_panic, catch_panic};
pub use self::bridge::source_positions::SourcePositions;
pub use self::node::fd::openers::OpenedDescriptors;
pub use self::node::fd::ownership::program_file_options;
pub use self::node::process::{EXIT_MESSAGE, IS_HOST_PROCESS};
pub use self::program::{SCRIPT, arguments, program, set_program};
pub use self::resolve_extension::{
    EXTENSIONS, directory, index, package_name, past_empty_package, probe, probe_package,
};
pub use self::virtual_modules::{SCOPES, virtual_module, virtual_modules};

/// Folder where the build script of this crate installed its npm packages, including esbuild; for
/// the build script that makes the snapshot.
pub const NPM_DIR: &str = concat!(env!("OUT_DIR"), "/npm");

deno_core::extension!(
    js_runtime,
    deps = [runtime],
    ops = [
        bridge::ops::op_host_call,
        bridge::ops::op_host_call_sync,
        bridge::ops::op_uncaught,
        bridge::ops::op_virtual_module,
        bridge::attribution::op_record_timer_extension,
        bridge::attribution::op_enter_extension,
        bridge::attribution::op_thread_time_of_others,
        node::fd::openers::op_opened,
        bridge::source_positions::op_function_position,
        node::fetch::op_fetch_http,
        node::readdir::op_read_folder,
        node::readdir::op_read_folder_now,
        node::fd::inherited::op_allow_foreign_descriptor,
        node::fd::inherited::op_foreign_close,
        node::fd::ownership::op_descriptor_to_copy,
        node::fd::ownership::op_descriptor_to_take,
        node::fd::ownership::op_descriptor_drop,
        node::fd::ownership::op_descriptor_give,
        resolve_extension::op_probe,
        resolve_extension::op_probe_package,
        node::promise_hooks::op_promise_hooks,
        node::process::op_listen_to_exit_signals,
        node::process_ids::op_process_groups,
        program::op_is_script,
        node::addons::op_addon_lacks,
        node::stat::op_stat,
        node::stat::op_stat_descriptor,
        node::stat::op_stat_now,
        node::terminals::op_terminal_write,
        text::op_text_width,
        text::op_text_truncate,
        text::op_text_wrap,
        text::op_text_slice,
        text::op_text_strip,
        text::op_text_around,
        markdown::op_markdown_parse,
        highlight::op_highlight,
        diff_words::op_diff_words,
        node::watch_tree::op_watch_tree,
        node::watch_tree::op_watch_tree_next,
    ],
    objects = [node::zstd::ZstdFrames],
    esm_entry_point = "ext:js_runtime/main.ts",
    esm = [dir "../js", "main.ts"],
    // "Lazy" files are evaluated on their first import, which `main.ts` does while the snapshot is
    // made. The names need a file extension, because deno_runtime selects the parser by it.
    lazy_loaded_esm = [
        dir "../js",
        "bridge.ts",
        "bridge/api.ts",
        "bridge/calls.ts",
        "bridge/context.ts",
        "bridge/events.ts",
        "bridge/exit.ts",
        "bridge/host.ts",
        "bridge/intrinsics-guard.ts",
        "bridge/listeners.ts",
        "bridge/message-delta.ts",
        "bridge/model-refresh.ts",
        "bridge/providers.ts",
        "bridge/queue.ts",
        "bridge/recent-prompt.ts",
        "bridge/registry.ts",
        "bridge/release.ts",
        "bridge/session.ts",
        "bridge/stale.ts",
        "bridge/theme.ts",
        "bridge/turn-end.ts",
        "bridge/ui.ts",
        "bridge/validate/arguments.ts",
        "bridge/validate/members.ts",
        "bridge/validate/results.ts",
        "node/async-context.ts",
        "node/brotli.ts",
        "node/console.ts",
        "node/fd.ts",
        "node/fetch-body.ts",
        "node/fetch-encoding.ts",
        "node/fetch-over-http.ts",
        "node/fs-readdir.ts",
        "node/fs-stat.ts",
        "node/fs-watch.ts",
        "node/fs.ts",
        "node/globals.ts",
        "node/import-interop.ts",
        "node/lazy-node.ts",
        "node/preload.ts",
        "node/process.ts",
        "node/promise-hooks.ts",
        "node/require.ts",
        "node/segmenter.ts",
        "node/snapshot-fixes.ts",
        "node/test.ts",
        "node/uncaught.ts",
        "node/undici-dispatcher.ts",
        "node/url.ts",
        "node/zstd.ts",
        "primordials.ts",
        "register-modules.ts",
        "node:sea" = "node/sea.ts",
    ],
    options = { host: Option<Arc<dyn Host>> },
    middleware = node::replace_op,
    state = |state, options| {
        if let Some(host) = options.host {
            state.put::<Arc<dyn Host>>(host);
        }
    },
    customizer = virtual_modules::add_files,
);
