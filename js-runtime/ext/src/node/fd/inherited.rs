//! Descriptors that Node's API has not opened: those that the process has inherited, and
//! those of native addons. Deno knows its own only; these are lent to it. What the program
//! has opened for itself stays out of reach: it could be closed, or read instead of it.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::rc::Rc;

use deno_core::{OpState, op2, v8};
use deno_error::JsErrorBox;
use deno_runtime::deno_io::fs::File;
use deno_runtime::deno_io::{FdTable, StdFileResourceInner};
use nix::libc;

use crate::numbers::{is_of_others, is_open, refuse};

/// Never dropped but by who closes them: they belong to the process, not to the isolate.
#[derive(Default)]
struct Lent(HashMap<i32, ManuallyDrop<Rc<dyn File>>>);

/// Whether it is such a descriptor, which can be used from now on.
#[op2(nofast)]
pub(crate) fn op_foreign(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] descriptor: i32,
) -> bool {
    let table = state.borrow::<FdTable>();
    if table.contains(descriptor) {
        return table.is_inherited_extra_stdio(descriptor);
    }
    if descriptor <= libc::STDERR_FILENO {
        return false;
    }
    if !is_of_others(state, descriptor) {
        if is_open(descriptor) {
            refuse(scope, state, descriptor, "node:fs");
        }
        return false;
    }
    // SAFETY: it is open, and is closed only by who says so (`ManuallyDrop`).
    let file = unsafe { std::fs::File::from_raw_fd(descriptor) };
    let file: Rc<dyn File> = Rc::new(StdFileResourceInner::file(file, None));
    state
        .borrow_mut::<FdTable>()
        .register_inherited_extra_stdio(descriptor, file.clone());
    if !state.has::<Lent>() {
        state.put(Lent::default());
    }
    let Lent(lent) = state.borrow_mut();
    lent.insert(descriptor, ManuallyDrop::new(file));
    true
}

/// Closes it if it is one.
#[op2(fast)]
pub(crate) fn op_foreign_close(
    state: &mut OpState,
    #[smi] descriptor: i32,
) -> Result<bool, JsErrorBox> {
    let table = state.borrow_mut::<FdTable>();
    if !table.is_inherited_extra_stdio(descriptor) {
        return Ok(false);
    }
    table.remove(descriptor);
    let lent = state.try_borrow_mut::<Lent>();
    match lent.and_then(|Lent(lent)| lent.remove(&descriptor)) {
        Some(file) => drop(ManuallyDrop::into_inner(file)),
        // Deno had a copy of it.
        None => nix::unistd::close(descriptor)
            .map_err(|error| JsErrorBox::from_err(std::io::Error::from(error)))?,
    }
    Ok(true)
}
