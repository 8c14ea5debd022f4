//! Descriptors that JavaScript names by their numbers. Node's API takes numbers where a
//! socket, a terminal or the streams of a child process are made, and most numbers are the
//! program's: whoever closes them, or reads what comes there, ends it. The system tells
//! them apart: all that the program opens is closed when another program is started
//! (`FD_CLOEXEC`), and of what it opens for JavaScript a list is kept.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deno_core::uv_compat::{uv_guess_handle, uv_handle_type};
use deno_core::{OpState, op2, v8};
use deno_error::JsErrorBox;
use deno_runtime::deno_io::FdTable;
use deno_runtime::deno_io::fs::File;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::sys::stat::fstat;
use nix::unistd::{getsid, isatty};

use crate::ops::{IS_HOST_PROCESS, owns_process, tell_of_refusal};

/// What a number means that JavaScript was given by an operation. The number of what is
/// closed is the next one's that is opened, which may be the program's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Given {
    device: libc::dev_t,
    inode: libc::ino_t,
    /// Whether something of JavaScript has it already: it can be copied, but who took it,
    /// too, would close it a second time.
    has_owner: bool,
}

/// Numbers are those of the process, and an isolate has workers.
static GIVEN: Mutex<BTreeMap<RawFd, Given>> = Mutex::new(BTreeMap::new());

fn given() -> MutexGuard<'static, BTreeMap<RawFd, Given>> {
    // Nothing panics while it holds the lock; the data is whole in any case.
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is behind a number now; `None` if it is not open.
fn identity(descriptor: RawFd, has_owner: bool) -> Option<Given> {
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it is only asked about, which fails if it is not open.
    let found = fstat(unsafe { BorrowedFd::borrow_raw(descriptor) }).ok()?;
    Some(Given {
        device: found.st_dev,
        inode: found.st_ino,
        has_owner,
    })
}

pub(crate) fn is_open(descriptor: RawFd) -> bool {
    identity(descriptor, false).is_some()
}

/// JavaScript is given a number, of something that it has opened.
pub(crate) fn give(descriptor: RawFd, has_owner: bool) {
    if let Some(identity) = identity(descriptor, has_owner) {
        given().insert(descriptor, identity);
    }
}

/// What JavaScript wants to do with a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A child gets a copy.
    Copy,
    /// It is closed with what is made of it.
    Take,
}

enum Answer {
    Its,
    NotOpen,
    /// It is the program's.
    Refused,
}

fn ask(state: &OpState, descriptor: RawFd, wanted: Use) -> Answer {
    let Some(Given { device, inode, .. }) = identity(descriptor, false) else {
        return Answer::NotOpen;
    };
    let is_its = state.borrow::<FdTable>().contains(descriptor)
        || is_of_others(state, descriptor)
        || is_given(descriptor, (device, inode), wanted);
    match is_its {
        true => Answer::Its,
        false => Answer::Refused,
    }
}

fn is_given(descriptor: RawFd, identity: (libc::dev_t, libc::ino_t), wanted: Use) -> bool {
    let mut given = given();
    let Some(known) = given.get(&descriptor).copied() else {
        return false;
    };
    let is_same = (known.device, known.inode) == identity;
    let is_allowed = is_same && (wanted == Use::Copy || !known.has_owner);
    if !is_same || (is_allowed && wanted == Use::Take) {
        given.remove(&descriptor);
    }
    is_allowed
}

/// Whether it is open, and neither the program nor JavaScript has opened it.
pub(crate) fn is_of_others(state: &OpState, descriptor: RawFd) -> bool {
    // SAFETY: it is only asked about, which fails if it is not open.
    let flags = fcntl(
        unsafe { BorrowedFd::borrow_raw(descriptor) },
        FcntlArg::F_GETFD,
    );
    flags.is_ok_and(|flags| {
        owns_process(state)
            || !FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC)
            || is_others_terminal(descriptor)
            || is_file_of_host_process(descriptor)
    })
}

/// The process of the extensions keeps no file and no folder open for itself.
fn is_file_of_host_process(descriptor: RawFd) -> bool {
    // SAFETY: it is only asked about.
    let found = fstat(unsafe { BorrowedFd::borrow_raw(descriptor) });
    IS_HOST_PROCESS.load(Ordering::Relaxed)
        && found.is_ok_and(|found| {
            matches!(found.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR)
        })
}

/// One that an addon has opened (node-pty, serialport), and not the one that the program is
/// controlled by.
fn is_others_terminal(descriptor: RawFd) -> bool {
    // SAFETY: it only asks; what is no terminal fails.
    let session = unsafe { libc::tcgetsid(descriptor) };
    // SAFETY: the same.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    isatty(descriptor) == Ok(true) && getsid(None).is_ok_and(|ours| ours.as_raw() != session)
}

/// JavaScript's standard streams are not the process's (js-runtime/src/stdio.rs).
fn standard(state: &OpState, descriptor: RawFd) -> Option<RawFd> {
    let is_standard = (0..=libc::STDERR_FILENO).contains(&descriptor) && !owns_process(state);
    is_standard.then(|| {
        let file = state.borrow::<FdTable>().get(descriptor).cloned();
        // -1 is never open.
        file.and_then(File::backing_fd).unwrap_or(-1)
    })
}

fn bad() -> JsErrorBox {
    JsErrorBox::from_err(io::Error::from(Errno::EBADF))
}

fn allowed(
    scope: &mut v8::PinScope<'_, '_>,
    state: &OpState,
    descriptor: RawFd,
    wanted: Use,
    user: &str,
) -> Result<(), JsErrorBox> {
    match ask(state, descriptor, wanted) {
        Answer::Its => Ok(()),
        Answer::NotOpen => Err(bad()),
        Answer::Refused => {
            refuse(scope, state, descriptor, user);
            // What Node says of one that is not open.
            Err(bad())
        }
    }
}

pub(crate) fn refuse(
    scope: &mut v8::PinScope<'_, '_>,
    state: &OpState,
    descriptor: RawFd,
    user: &str,
) {
    let what = format!(
        "descriptor {descriptor} was given to {user}: it is the program's own, none that the \
         extension has opened. One of an addon is not told from those if it has `O_CLOEXEC`: open \
         it without, or set `extensionHost` to \"process\", where files and folders of addons are"
    );
    tell_of_refusal(scope, state, what);
}

/// The descriptor that a child process may get a copy of.
#[op2(nofast)]
#[smi]
pub(crate) fn op_descriptor_to_copy(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] descriptor: RawFd,
    #[string] user: &str,
) -> Result<RawFd, JsErrorBox> {
    if let Some(standard) = standard(state, descriptor) {
        return Ok(standard);
    }
    allowed(scope, state, descriptor, Use::Copy, user)?;
    Ok(descriptor)
}

/// The descriptor of which a socket may be made, which closes it. Of a standard stream it
/// is a copy.
#[op2(nofast)]
#[smi]
pub(crate) fn op_descriptor_to_take(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] descriptor: RawFd,
    #[string] user: &str,
) -> Result<RawFd, JsErrorBox> {
    let Some(standard) = standard(state, descriptor) else {
        allowed(scope, state, descriptor, Use::Take, user)?;
        return Ok(descriptor);
    };
    if standard < 0 {
        return Err(bad());
    }
    // SAFETY: the table keeps it open while this function runs.
    let copy = unsafe { BorrowedFd::borrow_raw(standard) }.try_clone_to_owned();
    copy.map(IntoRawFd::into_raw_fd)
        .map_err(JsErrorBox::from_err)
}

/// The copy of a standard stream of which nothing could be made.
#[op2(fast)]
pub(crate) fn op_descriptor_drop(#[smi] descriptor: RawFd) {
    // An error means that it is not open.
    _ = nix::unistd::close(descriptor);
}

/// `has_owner` is false of one that something is about to be made of.
#[op2(fast)]
pub(crate) fn op_descriptor_give(#[smi] descriptor: RawFd, has_owner: bool) {
    give(descriptor, has_owner);
    if !has_owner && let Some(identity) = identity(descriptor, false) {
        HANDED.with_borrow_mut(|Handed(handed)| handed.insert(descriptor, identity));
    }
}

thread_local! {
    static HANDED: RefCell<Handed> = RefCell::default();
}

/// Descriptors that the isolate of this thread was handed. A pipe that is made of one
/// (`uv_pipe_open`) closes it only if JavaScript closes the pipe, which an isolate that is
/// dropped does not: they go with its thread, after everything else that may close them.
#[derive(Default)]
struct Handed(BTreeMap<RawFd, Given>);

impl Drop for Handed {
    fn drop(&mut self) {
        for (descriptor, known) in &self.0 {
            // Otherwise it is closed, and the number another's.
            if identity(*descriptor, false) == Some(*known) {
                _ = nix::unistd::close(*descriptor);
            }
        }
    }
}

/// As Node throws it.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
#[class(generic)]
#[property("code" = "ERR_TTY_INIT_FAILED")]
#[error("TTY initialization failed: uv_tty_init returned {0}")]
struct NoTerminal(&'static str);

/// Whether a terminal may be made of it. JavaScript's standard streams are none.
#[op2(nofast)]
pub(crate) fn op_tty_check_fd_permission(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    descriptor: i32,
) -> Result<(), JsErrorBox> {
    if standard(state, descriptor).is_some_and(|standard| standard >= 0) {
        let none = NoTerminal("EINVAL (invalid argument)");
        return Err(JsErrorBox::from_err(none));
    }
    allowed(scope, state, descriptor, Use::Take, "a terminal")
        .map_err(|_| JsErrorBox::from_err(NoTerminal("EBADF (bad file descriptor)")))
}

/// Which of deno_node's names for what a descriptor is.
#[op2(fast)]
pub(crate) fn op_node_guess_handle_type(state: &mut OpState, descriptor: u32) -> u32 {
    let descriptor = i32::try_from(descriptor).unwrap_or(-1);
    let descriptor = standard(state, descriptor).unwrap_or(descriptor);
    match uv_guess_handle(descriptor) {
        uv_handle_type::UV_TCP => 0,
        uv_handle_type::UV_TTY => 1,
        uv_handle_type::UV_FILE => 3,
        uv_handle_type::UV_NAMED_PIPE => 4,
        _ => 5,
    }
}
