//! Takes the functions of the JavaScript half of the bridge, and calls them.

use std::collections::HashMap;
use std::pin::Pin;

use deno_core::error::JsError;
use deno_core::{JsRuntime, v8};
use js_runtime_ext::{Author, author_context};

use crate::error::Thrown;

/// Resolves to the value of a promise.
pub(crate) type Pending =
    Pin<Box<dyn Future<Output = Result<v8::Global<v8::Value>, Box<JsError>>>>>;

pub(crate) enum CallOutcome {
    Done(Result<Option<String>, Thrown>),
    Pending(Pending),
    /// V8 was told to terminate the running code.
    Terminated,
}

/// Calls `function` with `args` and runs microtasks. A handler that awaits only settled promises
/// has therefore finished when this returns, without a turn of the event loop.
pub(crate) fn call(
    runtime: &mut JsRuntime,
    function: &v8::Global<v8::Function>,
    args: impl FnOnce(&mut v8::PinScope<'_, '_>) -> Option<Vec<v8::Global<v8::Value>>>,
) -> CallOutcome {
    deno_core::scope!(scope, runtime);
    v8::tc_scope!(let scope, scope);
    let Some(args) = args(scope) else {
        return CallOutcome::Done(Err(Thrown::new("the arguments are too large for V8")));
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
        return CallOutcome::Terminated;
    }
    // The mark that the bridge set (see `author`) applies to this call and to what follows from it.
    let unmarked: v8::Local<v8::Value> = v8::undefined(scope).into();
    scope.set_continuation_preserved_embedder_data(unmarked);
    let Some(value) = called else {
        return CallOutcome::Done(Err(match scope.exception() {
            Some(exception) => {
                let error = deno_core::exception_to_err(scope, exception, false, true);
                Thrown::from(&*error)
            }
            None => Thrown::new("an exception without a value"),
        }));
    };
    match v8::Local::<v8::Promise>::try_from(value) {
        Err(_) => CallOutcome::Done(Ok(to_text(scope, value))),
        Ok(promise) if promise.state() == v8::PromiseState::Fulfilled => {
            let value = promise.result(scope);
            CallOutcome::Done(Ok(to_text(scope, value)))
        }
        Ok(_) => {
            let value = v8::Global::new(scope, value);
            CallOutcome::Pending(Box::pin(JsRuntime::scoped_resolve(scope, value)))
        }
    }
}

/// Marks the code that runs next as that of `author`, or as that of no extension.
pub(crate) fn set_author(runtime: &mut JsRuntime, author: Option<&Author>) {
    deno_core::scope!(scope, runtime);
    let unmarked: v8::Local<v8::Value> = v8::undefined(scope).into();
    let context = author.and_then(|author| author_context(scope, author));
    scope.set_continuation_preserved_embedder_data(context.unwrap_or(unmarked));
}

/// Returns one JSON text as the arguments of a call.
pub(crate) fn json_argument(
    scope: &mut v8::PinScope<'_, '_>,
    json: &str,
) -> Option<Vec<v8::Global<v8::Value>>> {
    let text: v8::Local<v8::Value> = v8::String::new(scope, json)?.into();
    Some(vec![v8::Global::new(scope, text)])
}

pub(crate) fn settled_text(
    runtime: &mut JsRuntime,
    value: Result<v8::Global<v8::Value>, Box<JsError>>,
) -> Result<Option<String>, Thrown> {
    let value = value.map_err(|error| Thrown::from(&*error))?;
    deno_core::scope!(scope, runtime);
    let value = v8::Local::new(scope, value);
    Ok(to_text(scope, value))
}

fn to_text(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<v8::Value>) -> Option<String> {
    (!value.is_null_or_undefined()).then(|| value.to_rust_string_lossy(scope))
}

/// Removes the bridge from an isolate into which the program does not call.
pub(crate) fn remove_bridge(runtime: &mut JsRuntime) {
    // Every isolate of the snapshot has the bridge.
    let functions = take_functions(runtime).unwrap_or_default();
    if let Some(mark_other_isolate) = functions.get("markOtherIsolate") {
        call(runtime, mark_other_isolate, |_| Some(Vec::new()));
    }
}

/// Returns the functions that the bridge left on the global object, by name.
pub(crate) fn take_functions(
    runtime: &mut JsRuntime,
) -> Result<HashMap<String, v8::Global<v8::Function>>, String> {
    let context = runtime.main_context();
    deno_core::scope!(scope, runtime);
    let global = v8::Local::new(scope, context).global(scope);
    let key = v8::String::new(scope, "__pi").ok_or("V8 has no memory for a string")?;
    let bridge = global
        .get(scope, key.into())
        .filter(|value| value.is_object())
        .and_then(|value| value.to_object(scope))
        .ok_or("the snapshot has no bridge")?;
    global.delete(scope, key.into());
    let names = bridge
        .get_own_property_names(scope, Default::default())
        .ok_or("the bridge has no names")?;
    let mut functions = HashMap::new();
    for index in 0..names.length() {
        let Some(name) = names.get_index(scope, index) else {
            continue;
        };
        let value = bridge.get(scope, name);
        if let Some(Ok(function)) = value.map(v8::Local::<v8::Function>::try_from) {
            functions.insert(
                name.to_rust_string_lossy(scope),
                v8::Global::new(scope, function),
            );
        }
    }
    Ok(functions)
}
