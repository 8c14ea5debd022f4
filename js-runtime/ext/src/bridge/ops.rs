//! Ops through which JavaScript calls the host, and through which uncaught exceptions reach
//! the event loop.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use deno_core::error::JsError;
use deno_core::{OpState, op2, v8};
use deno_error::JsErrorBox;
use futures::FutureExt;

use super::attribution::author;
use super::host::{Author, Host, HostError};
use crate::virtual_modules::virtual_module;

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
    // The host is cloned, so that the state is not borrowed while it works.
    let host = state.borrow().borrow::<Arc<dyn Host>>().clone();
    catch_panic(method, || host.call_sync(method, args)).map_err(to_js)
}

/// Calls a function that may panic. V8 calls the ops, and a panic that unwinds into V8 ends the
/// process.
pub fn catch_panic<T>(
    method: &str,
    work: impl FnOnce() -> Result<T, HostError>,
) -> Result<T, HostError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(internal_error(method)))
}

/// Awaits a future that may panic, and turns a panic into an error that names `method`.
pub async fn catch_async_panic<T>(
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
    catch_async_panic(&name, work).await.map_err(to_js)
}

/// Uncaught exceptions that the event loop has not reported yet.
#[derive(Default)]
pub struct Uncaught(Vec<(JsError, Option<Author>)>);

impl Uncaught {
    /// Maximum number of exceptions, so that code which keeps throwing does not use up the memory.
    const MAX_QUEUED: usize = 256;

    /// Returns the exceptions with their authors, as far as the code was marked.
    pub fn take(state: &mut OpState) -> Vec<(JsError, Option<Author>)> {
        let uncaught = state.try_borrow_mut::<Self>();
        uncaught
            .map(|uncaught| std::mem::take(&mut uncaught.0))
            .unwrap_or_default()
    }
}

/// Records an exception; see `js/node/uncaught.ts`. Reading its stack may run JavaScript.
#[op2(fast, reentrant)]
pub(crate) fn op_uncaught<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    state: Rc<RefCell<OpState>>,
    error: v8::Local<'s, v8::Value>,
) {
    let author = author(scope);
    let error = JsError::from_v8_exception(scope, error);
    let mut state = state.borrow_mut();
    if !state.has::<Uncaught>() {
        state.put(Uncaught::default());
    }
    let Uncaught(waiting) = state.borrow_mut();
    if waiting.len() < Uncaught::MAX_QUEUED {
        waiting.push((*error, author));
    }
}

/// Returns the module for a name that `require` was given, or an empty text.
#[op2]
#[string]
pub(crate) fn op_virtual_module(#[string] name: &str) -> &'static str {
    virtual_module(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_panic_becomes_an_exception() {
        let expected = HostError::new("internal error in pi.on: this is a bug of pi");
        let sync = catch_panic::<()>("pi.on", || panic!("a bug"));
        assert_eq!(sync, Err(expected.clone()));
        let later = catch_async_panic::<()>("pi.on", async { panic!("a bug") });
        assert_eq!(futures::executor::block_on(later), Err(expected));
    }
}
