//! Whose code runs. The bridge marks what it calls for an extension in V8's async
//! context (continuation-preserved embedder data), which promises, timers and the
//! callbacks of Node's API carry along; `AsyncLocalStorage` lives in it, too, and keeps
//! members that it does not know.

use std::cell::Cell;

use deno_core::{op2, v8};

use crate::host::Author;
use crate::stretch::timer_begins;

/// The members of the context; `js/bridge/registry.ts` has the same names.
const ID: &str = "pi.author";
const WHAT: &str = "pi.what";

/// Of the code that runs now, or that ran when execution was terminated.
pub fn author(scope: &mut v8::PinScope<'_, '_>) -> Option<Author> {
    let context = scope.get_continuation_preserved_embedder_data();
    let context = v8::Local::<v8::Object>::try_from(context).ok()?;
    let member = |name| {
        let key = v8::String::new(scope, name)?;
        context.get(scope, key.into())
    };
    let (id, what) = (member(ID)?, member(WHAT)?);
    Some(Author {
        id: id.is_uint32().then(|| id.uint32_value(scope))??,
        what: what.to_rust_string_lossy(scope),
    })
}

thread_local! {
    static RAN: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Whose timer ran last on this thread. Ten thousand of them keep the runtime busy with
/// code that is nobody's.
#[op2(fast)]
pub(crate) fn op_ran(#[smi] extension: i32) {
    let extension = u32::try_from(extension).ok();
    RAN.set(extension);
    timer_begins(extension);
}

/// That extension, if nothing else was called since.
pub fn last_timer() -> Option<Author> {
    RAN.get().map(|id| Author {
        id,
        // What for is not known.
        what: String::new(),
    })
}

/// Something else is called.
pub fn forget_timer() {
    RAN.set(None);
}

/// A context in which the code of `author` runs.
pub fn author_context<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    author: &Author,
) -> Option<v8::Local<'s, v8::Value>> {
    let id: v8::Local<v8::Value> = v8::Integer::new_from_unsigned(scope, author.id).into();
    let what: v8::Local<v8::Value> = v8::String::new(scope, &author.what)?.into();
    let names = [v8::String::new(scope, ID)?, v8::String::new(scope, WHAT)?];
    let null: v8::Local<v8::Value> = v8::null(scope).into();
    let names = names.map(Into::into);
    let context = v8::Object::with_prototype_and_properties(scope, null, &names, &[id, what]);
    Some(context.into())
}
