//! Lends descriptors to Deno that Node's API has not opened: inherited ones, and those of native
//! addons. Descriptors of the program itself stay out of reach, because code could close them, or
//! read from them.

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::rc::Rc;

use deno_core::{OpState, op2, v8};
use deno_error::JsErrorBox;
use deno_runtime::deno_io::fs::File;
use deno_runtime::deno_io::{FdTable, StdFileResourceInner};
use nix::libc;

use super::ownership::{is_foreign, is_open, refuse};
use crate::node::process::owns_process;

/// Files that belong to the process, not to the isolate. They are dropped only when code closes
/// them.
#[derive(Default)]
struct BorrowedFiles(HashMap<i32, ManuallyDrop<Rc<dyn File>>>);

/// Returns true if the descriptor is foreign; it can be used from now on.
#[op2(nofast)]
pub(crate) fn op_allow_foreign_descriptor(
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
    if !is_foreign(state, descriptor) {
        // A script that closes a number twice gets `EBADF`, whatever the program has opened since.
        if is_open(descriptor) && !owns_process(state) {
            refuse(scope, state, descriptor, "node:fs");
        }
        return false;
    }
    // SAFETY: the descriptor is open, and only code that closes it drops the file (`ManuallyDrop`).
    let file = unsafe { std::fs::File::from_raw_fd(descriptor) };
    let file: Rc<dyn File> = Rc::new(StdFileResourceInner::file(file, None));
    state
        .borrow_mut::<FdTable>()
        .register_inherited_extra_stdio(descriptor, file.clone());
    if !state.has::<BorrowedFiles>() {
        state.put(BorrowedFiles::default());
    }
    let BorrowedFiles(borrowed) = state.borrow_mut();
    borrowed.insert(descriptor, ManuallyDrop::new(file));
    true
}

/// Closes the descriptor if it is foreign. Returns whether it was.
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
    let borrowed = state.try_borrow_mut::<BorrowedFiles>();
    match borrowed.and_then(|BorrowedFiles(borrowed)| borrowed.remove(&descriptor)) {
        Some(file) => drop(ManuallyDrop::into_inner(file)),
        // Deno had a copy of the file.
        None => nix::unistd::close(descriptor)
            .map_err(|error| JsErrorBox::from_err(std::io::Error::from(error)))?,
    }
    Ok(true)
}
