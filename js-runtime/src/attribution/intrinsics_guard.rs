//! Detects modified built-in objects after each time slice, and the extension that modified them.
//! The checks are JavaScript (`js/bridge/intrinsics-guard.ts`).

use deno_core::{JsRuntime, v8};
use js_runtime_ext::TamperedIntrinsic;

/// A built-in object that code replaced with something that does not work.
pub(crate) struct Tampering {
    pub intrinsic: TamperedIntrinsic,
    /// File of the function that replaced it.
    pub file: Option<String>,
}

/// Asks the bridge for a modified built-in object. Runs code of an extension only if it has
/// replaced one.
pub(crate) fn find_tampering(
    runtime: &mut JsRuntime,
    check: &v8::Global<v8::Function>,
) -> Option<Tampering> {
    deno_core::scope!(scope, runtime);
    v8::tc_scope!(let scope, scope);
    let check = v8::Local::new(scope, check);
    let receiver: v8::Local<v8::Value> = v8::undefined(scope).into();
    loop {
        // An exception can only be a termination, after which no check is possible.
        let result = check.call(scope, receiver, &[])?;
        if result.is_undefined() {
            return None;
        }
        if let Ok(found) = v8::Local::<v8::Array>::try_from(result) {
            let name = found.get_index(scope, 0)?.to_rust_string_lossy(scope);
            let replacement = found.get_index(scope, 1)?;
            return Some(Tampering {
                intrinsic: intrinsic(&name),
                file: file(scope, replacement),
            });
        }
        scope.perform_microtask_checkpoint();
        if scope.is_execution_terminating() || scope.has_terminated() {
            return None;
        }
    }
}

fn intrinsic(name: &str) -> TamperedIntrinsic {
    TamperedIntrinsic::new(&format!(
        "it modified the built-in {name}, which pi and other extensions depend on"
    ))
}

fn file(scope: &mut v8::PinScope<'_, '_>, replacement: v8::Local<'_, v8::Value>) -> Option<String> {
    let function = v8::Local::<v8::Function>::try_from(replacement).ok()?;
    // Built-in functions have no resource name.
    let name = function.get_script_origin(scope).resource_name()?;
    Some(name.to_rust_string_lossy(scope))
}
