//! The ops: two ways into the host, and replacements for ops of Deno that would
//! end the process or use the program's own standard streams.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use deno_core::{OpDecl, OpState, op2};
use deno_error::JsErrorBox;
use deno_runtime::deno_os::ExitCode;
use futures::FutureExt;

use crate::host::{Fault, Host, HostError};
use crate::modules::virtual_module;

/// How the error starts that `process.exit` throws.
pub const EXIT_MESSAGE: &str = "process.exit(";

fn to_js(error: HostError) -> JsErrorBox {
    JsErrorBox::new(error.class, error.message)
}

#[op2]
#[string]
pub(crate) fn op_host_call_sync(
    state: Rc<RefCell<OpState>>,
    #[string] method: &str,
    #[string] args: &str,
) -> Result<String, JsErrorBox> {
    // Cloned, so that nothing is borrowed while the host works.
    let host = state.borrow().borrow::<Arc<dyn Host>>().clone();
    caught(method, || host.call_sync(method, args)).map_err(to_js)
}

/// V8 calls the ops, and a panic that unwinds into it ends the process.
fn caught<T>(method: &str, work: impl FnOnce() -> Result<T, HostError>) -> Result<T, HostError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(internal_error(method)))
}

/// [`caught`] for what takes time.
async fn caught_later<T>(
    method: &str,
    work: impl Future<Output = Result<T, HostError>>,
) -> Result<T, HostError> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(internal_error(method)))
}

fn internal_error(method: &str) -> HostError {
    HostError::new(format!("internal error in {method}: this is a bug of pi"))
}

#[op2]
#[string]
pub(crate) async fn op_host_call(
    state: Rc<RefCell<OpState>>,
    #[string] method: String,
    #[string] args: String,
) -> Result<String, JsErrorBox> {
    let host = state.borrow().borrow::<Arc<dyn Host>>().clone();
    let name = method.clone();
    let work = async move { host.call(method, args).await };
    caught_later(&name, work).await.map_err(to_js)
}

/// Applied to every op of the runtime when it is registered.
pub(crate) fn replace(op: OpDecl) -> OpDecl {
    match op.name {
        "op_exit" => op.with_implementation_from(&op_exit()),
        "op_process_abort" => op.with_implementation_from(&op_process_abort()),
        "op_node_translate_cli_args" => op.with_implementation_from(&op_node_translate_cli_args()),
        _ => op,
    }
}

/// `process.exit()`. The program is not the extension's to end, and tearing down
/// the isolate would punish every other extension in it. An exception unwinds what
/// is running now, promises settle as usual, and the isolate stays whole.
#[op2(fast)]
fn op_exit(state: &mut OpState) -> Result<(), JsErrorBox> {
    let code = state
        .try_borrow::<ExitCode>()
        .map(ExitCode::get)
        .unwrap_or_default();
    // The next `process.exit()` without a code means 0 again.
    if let Some(code) = state.try_borrow_mut::<ExitCode>() {
        code.set(0);
    }
    if let Some(host) = state.try_borrow::<Arc<dyn Host>>() {
        host.fault(Fault::Exit { code });
    }
    Err(JsErrorBox::generic(format!(
        "{EXIT_MESSAGE}{code}) was called: code inside the program cannot end it"
    )))
}

#[op2(fast)]
fn op_process_abort() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::generic(
        "process.abort() was called: code inside the program cannot end it",
    ))
}

/// deno_node takes a shell command that starts with this program for one of the
/// `deno` command and translates its arguments; if it cannot, it leaves them alone.
#[op2(nofast)]
fn op_node_translate_cli_args() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::generic("this program is not deno"))
}

/// The module behind a name that `require` was asked for, or nothing.
#[op2]
#[string]
pub(crate) fn op_virtual_module(#[string] name: &str) -> &'static str {
    virtual_module(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_host_becomes_an_exception() {
        let expected = HostError::new("internal error in pi.on: this is a bug of pi");
        let sync = caught::<()>("pi.on", || panic!("a bug"));
        assert_eq!(sync, Err(expected.clone()));
        let later = caught_later::<()>("pi.on", async { panic!("a bug") });
        assert_eq!(futures::executor::block_on(later), Err(expected));
    }
}
