//! Attributes running code to extensions. The bridge marks calls into an extension in V8's async
//! context (continuation-preserved embedder data), which promises, timers and the callbacks of
//! Node's API carry along. `AsyncLocalStorage` uses the same context and keeps members that it does
//! not know.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use deno_core::{op2, v8};

use super::host::Author;

/// Names of the context's members; `js/bridge/registry.ts` has the same.
const ID: &str = "pi.author";
const WHAT: &str = "pi.what";

/// Returns the author of the code that runs, or that ran when execution was terminated.
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
    static LAST_TIMER: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Records the extension whose timer runs. Ten thousand timers may keep the runtime busy with code
/// that carries no mark.
#[op2(fast)]
pub(crate) fn op_record_timer_extension(#[smi] extension: i32) {
    let extension = u32::try_from(extension).ok();
    LAST_TIMER.set(extension);
    timer_begins(extension);
}

/// Returns the extension of the last timer, if nothing else was called since.
pub fn last_timer() -> Option<Author> {
    LAST_TIMER.get().map(|id| Author {
        id,
        // The activity is not known.
        what: String::new(),
    })
}

/// Forgets the last timer, because other code is called.
pub fn forget_timer() {
    LAST_TIMER.set(None);
}

/// Returns a context that marks code as that of `author`.
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

/// Observer of the thread of one isolate.
pub trait ThreadMonitor {
    /// Code of the extension starts; `None` means code without an extension.
    fn begin_extension(&self, extension: Option<u32>);

    /// The running code has ended, and another callback starts a new time slice.
    fn restart_slice(&self);

    /// Returns how long all other extensions have occupied the thread.
    fn time_of_others(&self, extension: u32) -> Duration;
}

thread_local! {
    static MONITOR: RefCell<Option<Box<dyn ThreadMonitor>>> = const { RefCell::new(None) };
}

/// Sets the observer of the isolate on this thread.
pub fn set_thread_monitor(monitor: Option<Box<dyn ThreadMonitor>>) {
    MONITOR.set(monitor);
}

/// Notifies the observer that a timer of `extension` starts.
fn timer_begins(extension: Option<u32>) {
    MONITOR.with_borrow(|monitor| {
        if let Some(monitor) = monitor {
            monitor.restart_slice();
            monitor.begin_extension(extension);
        }
    });
}

/// Attributes the time on the thread from now on to `extension`.
#[op2(fast)]
pub(crate) fn op_enter_extension(#[smi] extension: u32) {
    MONITOR.with_borrow(|monitor| {
        if let Some(monitor) = monitor {
            monitor.begin_extension(Some(extension));
        }
    });
}

/// Returns how long all other extensions have occupied the thread since the isolate started, in
/// milliseconds.
#[op2(fast)]
pub(crate) fn op_thread_time_of_others(#[smi] extension: u32) -> f64 {
    MONITOR.with_borrow(|monitor| {
        let time = monitor
            .as_ref()
            .map(|monitor| monitor.time_of_others(extension));
        time.unwrap_or_default().as_secs_f64() * 1000.0
    })
}
