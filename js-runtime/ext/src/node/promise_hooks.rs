//! Implements `v8.promiseHooks` in the contexts of `node:vm`. V8 keeps hooks per context, and Node
//! sets them in all.

use deno_core::{op2, v8};

/// Sets hooks in the context in which `of` was made. A value that is not a function removes the
/// hook.
#[op2(fast)]
pub(crate) fn op_promise_hooks<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    of: v8::Local<'s, v8::Object>,
    init: v8::Local<'s, v8::Value>,
    before: v8::Local<'s, v8::Value>,
    after: v8::Local<'s, v8::Value>,
    settled: v8::Local<'s, v8::Value>,
) {
    let Some(context) = of.get_creation_context(scope) else {
        return;
    };
    let hooks =
        [init, before, after, settled].map(|hook| v8::Local::<v8::Function>::try_from(hook).ok());
    let [init, before, after, settled] = hooks;
    let scope = &mut v8::ContextScope::new(scope, context);
    scope.set_promise_hooks(init, before, after, settled);
}
