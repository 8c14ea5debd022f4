//! Node's API where Deno's layer lacks something, differs from Node, or reaches what belongs to
//! the program.

pub(crate) mod addons;
mod environment;
pub(crate) mod fd;
pub(crate) mod fetch;
pub(crate) mod process;
pub(crate) mod process_ids;
pub(crate) mod promise_hooks;
pub(crate) mod readdir;
mod spawn_sync;
pub(crate) mod stat;
pub(crate) mod terminals;
mod uv;
pub(crate) mod watch_tree;
pub(crate) mod zstd;

use deno_core::OpDecl;

/// Replaces the implementation of an op. Applied to every op of the runtime when it is registered.
pub(crate) fn replace_op(op: OpDecl) -> OpDecl {
    match op.name {
        "op_env" => op.with_implementation_from(&environment::op_env()),
        "op_get_env" => op.with_implementation_from(&environment::op_get_env()),
        "op_get_env_no_permission_check" => {
            op.with_implementation_from(&environment::op_get_env_no_permission_check())
        }
        "op_exec_path" => op.with_implementation_from(&crate::program::op_exec_path()),
        "op_exit" => op.with_implementation_from(&process::op_exit()),
        "op_node_process_kill" => op.with_implementation_from(&process::op_node_process_kill()),
        "op_kill" => op.with_implementation_from(&process::op_kill()),
        "op_fs_umask" => op.with_implementation_from(&process::op_fs_umask()),
        "op_node_process_setuid" => {
            op.with_implementation_from(&process_ids::op_node_process_setuid())
        }
        "op_node_process_seteuid" => {
            op.with_implementation_from(&process_ids::op_node_process_seteuid())
        }
        "op_node_process_setgid" => {
            op.with_implementation_from(&process_ids::op_node_process_setgid())
        }
        "op_node_process_setegid" => {
            op.with_implementation_from(&process_ids::op_node_process_setegid())
        }
        "op_spawn_sync" => op.with_implementation_from(&spawn_sync::op_spawn_sync()),
        "op_process_abort" => op.with_implementation_from(&process::op_process_abort()),
        "op_panic" => op.with_implementation_from(&process::op_panic()),
        "op_tty_check_fd_permission" => {
            op.with_implementation_from(&fd::ownership::op_tty_check_fd_permission())
        }
        "op_node_guess_handle_type" => {
            op.with_implementation_from(&fd::ownership::op_node_guess_handle_type())
        }
        "op_node_translate_cli_args" => {
            op.with_implementation_from(&process::op_node_translate_cli_args())
        }
        _ => op,
    }
}
