//! Asks the bridge, after each stretch of JavaScript, whether what everything relies on
//! is still there (`js/bridge/intrinsics-guard.ts`), and who took away what is not.

use deno_core::{JsRuntime, v8};
use js_runtime_ext::Damage;

/// What somebody replaced with something that does not work.
pub(crate) struct Missing {
    pub damage: Damage,
    /// The file of the function that took its place.
    pub file: Option<String>,
}

/// Runs code of an extension only if it has replaced something.
pub(crate) fn missing(runtime: &mut JsRuntime, ask: &v8::Global<v8::Function>) -> Option<Missing> {
    deno_core::scope!(scope, runtime);
    v8::tc_scope!(let scope, scope);
    let ask = v8::Local::new(scope, ask);
    let receiver: v8::Local<v8::Value> = v8::undefined(scope).into();
    loop {
        // An exception would be a termination: nothing is left to ask.
        let answer = ask.call(scope, receiver, &[])?;
        if answer.is_undefined() {
            return None;
        }
        if let Ok(found) = v8::Local::<v8::Array>::try_from(answer) {
            let name = found.get_index(scope, 0)?.to_rust_string_lossy(scope);
            let replacement = found.get_index(scope, 1)?;
            return Some(Missing {
                damage: damage(&name),
                file: file(scope, replacement),
            });
        }
        scope.perform_microtask_checkpoint();
        if scope.is_execution_terminating() || scope.has_terminated() {
            return None;
        }
    }
}

fn damage(name: &str) -> Damage {
    Damage::new(&format!(
        "it changed {name}, which everything here relies on"
    ))
}

fn file(scope: &mut v8::PinScope<'_, '_>, replacement: v8::Local<'_, v8::Value>) -> Option<String> {
    let function = v8::Local::<v8::Function>::try_from(replacement).ok()?;
    // Built-in functions have none.
    let name = function.get_script_origin(scope).resource_name()?;
    Some(name.to_rust_string_lossy(scope))
}
