//! The deno_core extension `js_runtime`: the ops through which JavaScript reaches
//! the program, and the list of the JavaScript that is in the snapshot. Used twice:
//! by the build script that makes the snapshot, and at run time.

#[path = "node/addons.rs"]
mod addons;
#[path = "bridge/attribution.rs"]
mod author;
#[path = "node/fd/openers.rs"]
mod descriptors;
pub mod diff_words;
#[path = "node/environment.rs"]
mod environment;
#[path = "node/fetch.rs"]
mod fetch;
#[path = "node/readdir.rs"]
mod folder;
#[path = "node/fd/inherited.rs"]
mod foreign;
pub mod highlight;
#[path = "bridge/host.rs"]
mod host;
pub mod markdown;
#[path = "virtual_modules.rs"]
mod modules;
#[path = "node/fd/ownership.rs"]
mod numbers;
#[path = "bridge/ops.rs"]
mod ops;
#[path = "bridge/source_positions.rs"]
mod places;
#[path = "resolve_extension.rs"]
mod probe;
#[path = "node/process_ids.rs"]
mod process_ids;
mod program;
#[path = "node/promise_hooks.rs"]
mod promise_hooks;
#[path = "node/spawn_sync.rs"]
mod spawn_sync;
#[path = "node/stat.rs"]
mod stat;
mod stretch;
#[path = "node/terminals.rs"]
mod terminals;
pub mod text;
#[path = "node/uv.rs"]
mod uv;
#[path = "node/watch_tree.rs"]
mod watch_tree;
#[path = "node/zstd.rs"]
mod zstd;

use std::sync::Arc;

pub use self::author::{author, author_context, forget_timer, last_timer};
pub use self::descriptors::Opened;
pub use self::host::{Author, Console, Damage, Death, Fault, Held, Host, HostError, Share, Stop};
pub use self::modules::{SCOPES, virtual_module, virtual_modules};
pub use self::ops::{EXIT_MESSAGE, IS_HOST_PROCESS, Uncaught, caught, caught_later};
pub use self::places::Places;
pub use self::probe::{EXTENSIONS, directory, index, past_empty_package, probe, probe_package};
pub use self::program::{SCRIPT, arguments, program, set_program};
pub use self::stretch::{Watch, watch};

/// Where this crate's build script installed its npm packages, esbuild among them;
/// for the build script that makes the snapshot.
pub const NPM_DIR: &str = concat!(env!("OUT_DIR"), "/npm");

deno_core::extension!(
    js_runtime,
    deps = [runtime],
    ops = [
        ops::op_host_call,
        ops::op_host_call_sync,
        ops::op_uncaught,
        ops::op_virtual_module,
        author::op_ran,
        stretch::op_begins,
        stretch::op_held_by_others,
        descriptors::op_opened,
        places::op_place_of,
        fetch::op_fetch_http,
        folder::op_folder,
        folder::op_folder_now,
        foreign::op_foreign,
        foreign::op_foreign_close,
        numbers::op_descriptor_to_copy,
        numbers::op_descriptor_to_take,
        numbers::op_descriptor_drop,
        numbers::op_descriptor_give,
        probe::op_probe,
        probe::op_probe_package,
        promise_hooks::op_promise_hooks,
        ops::op_hold_signals,
        process_ids::op_process_groups,
        program::op_is_script,
        addons::op_addon_lacks,
        stat::op_stat,
        stat::op_stat_descriptor,
        stat::op_stat_now,
        terminals::op_terminal_write,
        text::op_text_width,
        text::op_text_truncate,
        text::op_text_wrap,
        text::op_text_slice,
        text::op_text_strip,
        text::op_text_around,
        markdown::op_markdown_parse,
        highlight::op_highlight,
        diff_words::op_diff_words,
        watch_tree::op_watch_tree,
        watch_tree::op_watch_tree_next,
    ],
    objects = [zstd::ZstdFrames],
    esm_entry_point = "ext:js_runtime/main.ts",
    esm = [dir "../js", "main.ts"],
    // "Lazy" means: evaluated when somebody imports it, which `main.ts` does while
    // the snapshot is made. The names need a file extension: deno_runtime picks the
    // parser by it.
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
    middleware = ops::replace,
    state = |state, options| {
        if let Some(host) = options.host {
            state.put::<Arc<dyn Host>>(host);
        }
    },
    customizer = modules::add_files,
);
