//! Calling a function of the bridge, and what becomes of it.

use std::pin::Pin;

use deno_core::error::JsError;
use deno_core::{JsRuntime, v8};
use js_runtime_ext::{Author, author_context};

use crate::error::Thrown;

/// The value that a promise will have.
pub(crate) type Pending =
    Pin<Box<dyn Future<Output = Result<v8::Global<v8::Value>, Box<JsError>>>>>;

pub(crate) enum Outcome {
    Done(Result<Option<String>, Thrown>),
    Pending(Pending),
    /// V8 was told to end what runs.
    Terminated,
}

/// Calls with `args`, and runs microtasks: a handler that awaits only what is there
/// already is finished when this returns, without a turn of the event loop.
pub(crate) fn call(
    runtime: &mut JsRuntime,
    function: &v8::Global<v8::Function>,
    args: impl FnOnce(&mut v8::PinScope<'_, '_>) -> Option<Vec<v8::Global<v8::Value>>>,
) -> Outcome {
    deno_core::scope!(scope, runtime);
    v8::tc_scope!(let scope, scope);
    let Some(args) = args(scope) else {
        return Outcome::Done(Err(Thrown::new("the arguments are too large for V8")));
    };
    let args: Vec<v8::Local<v8::Value>> =
        args.iter().map(|arg| v8::Local::new(scope, arg)).collect();
    let function = v8::Local::new(scope, function);
    let receiver: v8::Local<v8::Value> = v8::undefined(scope).into();
    let called = function.call(scope, receiver, &args);
    if called.is_some() {
        scope.perform_microtask_checkpoint();
    }
    if scope.is_execution_terminating() || scope.has_terminated() {
        return Outcome::Terminated;
    }
    // What the bridge marked (see `author`) was for this call and what follows from it.
    let unmarked: v8::Local<v8::Value> = v8::undefined(scope).into();
    scope.set_continuation_preserved_embedder_data(unmarked);
    let Some(value) = called else {
        return Outcome::Done(Err(match scope.exception() {
            Some(exception) => {
                let error = deno_core::exception_to_err(scope, exception, false, true);
                Thrown::from(&*error)
            }
            None => Thrown::new("an exception without a value"),
        }));
    };
    match v8::Local::<v8::Promise>::try_from(value) {
        Err(_) => Outcome::Done(Ok(text(scope, value))),
        Ok(promise) if promise.state() == v8::PromiseState::Fulfilled => {
            let value = promise.result(scope);
            Outcome::Done(Ok(text(scope, value)))
        }
        Ok(_) => {
            let value = v8::Global::new(scope, value);
            Outcome::Pending(Box::pin(JsRuntime::scoped_resolve(scope, value)))
        }
    }
}

/// Whose the code is that runs next.
pub(crate) fn mark(runtime: &mut JsRuntime, author: Option<&Author>) {
    deno_core::scope!(scope, runtime);
    let unmarked: v8::Local<v8::Value> = v8::undefined(scope).into();
    let context = author.and_then(|author| author_context(scope, author));
    scope.set_continuation_preserved_embedder_data(context.unwrap_or(unmarked));
}

/// One JSON text as the arguments.
pub(crate) fn json_argument(
    scope: &mut v8::PinScope<'_, '_>,
    json: &str,
) -> Option<Vec<v8::Global<v8::Value>>> {
    let text: v8::Local<v8::Value> = v8::String::new(scope, json)?.into();
    Some(vec![v8::Global::new(scope, text)])
}

pub(crate) fn settled(
    runtime: &mut JsRuntime,
    value: Result<v8::Global<v8::Value>, Box<JsError>>,
) -> Result<Option<String>, Thrown> {
    let value = value.map_err(|error| Thrown::from(&*error))?;
    deno_core::scope!(scope, runtime);
    let value = v8::Local::new(scope, value);
    Ok(text(scope, value))
}

fn text(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<v8::Value>) -> Option<String> {
    (!value.is_null_or_undefined()).then(|| value.to_rust_string_lossy(scope))
}
