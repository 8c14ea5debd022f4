//! Protects the program's descriptors from code that uses them by number. Node's API accepts
//! numbers to make a socket, a terminal or the streams of a child process, and most numbers belong
//! to the program, which code could break by closing them or reading from them. The program's own
//! descriptors have `FD_CLOEXEC`, and those that it opens for JavaScript are in a list.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deno_core::uv_compat::{uv_guess_handle, uv_handle_type};
use deno_core::{OpState, op2, v8};
use deno_error::JsErrorBox;
use deno_runtime::deno_io::FdTable;
use deno_runtime::deno_io::fs::File;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::libc;
use nix::sys::stat::fstat;
use nix::unistd::{getsid, isatty};

use crate::node::process::{IS_HOST_PROCESS, owns_process, report_refusal};

/// Identity of a file that JavaScript has opened. The number of a closed file is reused for the
/// next one, which may be the program's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct OpenedFile {
    device: libc::dev_t,
    inode: libc::ino_t,
    /// Whether an object of JavaScript has the descriptor already. It can be copied, but a second
    /// owner would close it twice.
    has_owner: bool,
}

/// Files by descriptor. Numbers apply to the process, which all workers share.
static OPENED: Mutex<BTreeMap<RawFd, OpenedFile>> = Mutex::new(BTreeMap::new());

fn opened() -> MutexGuard<'static, BTreeMap<RawFd, OpenedFile>> {
    // No code panics while it holds the lock; the data is consistent in any case.
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the identity of an open descriptor; `None` if it is not open.
fn identity(descriptor: RawFd, has_owner: bool) -> Option<OpenedFile> {
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the descriptor is only queried, which fails if it is not open.
    let found = fstat(unsafe { BorrowedFd::borrow_raw(descriptor) }).ok()?;
    Some(OpenedFile {
        device: found.st_dev,
        inode: found.st_ino,
        has_owner,
    })
}

pub(crate) fn is_open(descriptor: RawFd) -> bool {
    identity(descriptor, false).is_some()
}

/// Records a descriptor that was opened for JavaScript.
pub(crate) fn note_opened(descriptor: RawFd, has_owner: bool) {
    if let Some(identity) = identity(descriptor, has_owner) {
        opened().insert(descriptor, identity);
    }
}

/// Intended use of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A child process gets a copy.
    Copy,
    /// An object takes it over and closes it.
    Take,
}

enum Access {
    Allowed,
    NotOpen,
    /// The descriptor belongs to the program.
    Refused,
}

fn access(state: &OpState, descriptor: RawFd, purpose: Purpose) -> Access {
    let Some(OpenedFile { device, inode, .. }) = identity(descriptor, false) else {
        return Access::NotOpen;
    };
    let is_allowed = state.borrow::<FdTable>().contains(descriptor)
        || is_foreign(state, descriptor)
        || is_opened_by_js(descriptor, (device, inode), purpose);
    match is_allowed {
        true => Access::Allowed,
        false => Access::Refused,
    }
}

fn is_opened_by_js(
    descriptor: RawFd,
    identity: (libc::dev_t, libc::ino_t),
    purpose: Purpose,
) -> bool {
    let mut opened = opened();
    let Some(known) = opened.get(&descriptor).copied() else {
        return false;
    };
    let is_same = (known.device, known.inode) == identity;
    let is_allowed = is_same && (purpose == Purpose::Copy || !known.has_owner);
    if !is_same || (is_allowed && purpose == Purpose::Take) {
        opened.remove(&descriptor);
    }
    is_allowed
}

/// Returns true if the descriptor is open, and neither the program nor JavaScript has opened it.
pub(crate) fn is_foreign(state: &OpState, descriptor: RawFd) -> bool {
    // SAFETY: the descriptor is only queried, which fails if it is not open.
    let flags = fcntl(
        unsafe { BorrowedFd::borrow_raw(descriptor) },
        FcntlArg::F_GETFD,
    );
    flags.is_ok_and(|flags| {
        let owns_process = owns_process(state);
        let is_host = IS_HOST_PROCESS.load(Ordering::Relaxed);
        !FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC)
            || is_foreign_terminal(descriptor)
            || match file_kind(descriptor) {
                // A thread of the program may have closed its file just now.
                None | Some(FileKind::OfProgram) => false,
                Some(FileKind::Other) => owns_process || is_host,
                Some(FileKind::NoFile) => owns_process,
            }
    })
}

/// Flag of files that threads of the program open while JavaScript runs. It has no effect on
/// regular files, and does not wait for the other end of a pipe.
const PROGRAM_FILE: OFlag = OFlag::O_NONBLOCK;

/// Returns options to open a file on another thread than that of JavaScript. Where JavaScript may
/// use files by number, these options distinguish the program's files from others: a script may
/// close a number twice, and the program may have opened a file of that number in between.
pub fn program_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(PROGRAM_FILE.bits());
    options
}

#[derive(Debug, PartialEq, Eq)]
enum FileKind {
    /// A file or a folder that a thread of the program has open.
    OfProgram,
    /// Another file or folder.
    Other,
    /// A socket, a pipe or a device.
    NoFile,
}

/// Returns `None` if the descriptor is not open.
fn file_kind(descriptor: RawFd) -> Option<FileKind> {
    // SAFETY: the descriptor is only queried.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let found = fstat(descriptor).ok()?;
    let flags = fcntl(descriptor, FcntlArg::F_GETFL).ok()?;
    let is_file = matches!(found.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR);
    Some(
        match OFlag::from_bits_retain(flags).contains(PROGRAM_FILE) {
            true if is_file => FileKind::OfProgram,
            false if is_file => FileKind::Other,
            _ => FileKind::NoFile,
        },
    )
}

/// Returns true for a terminal that an addon has opened (node-pty, serialport), other than the
/// controlling terminal of the program.
fn is_foreign_terminal(descriptor: RawFd) -> bool {
    // SAFETY: the call only queries, and fails if the descriptor is no terminal.
    let session = unsafe { libc::tcgetsid(descriptor) };
    // SAFETY: the descriptor is only queried.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    isatty(descriptor) == Ok(true) && getsid(None).is_ok_and(|ours| ours.as_raw() != session)
}

/// Returns the descriptor of a standard stream of JavaScript, which is not that of the process
/// (js-runtime/src/node/stdio.rs).
fn standard(state: &OpState, descriptor: RawFd) -> Option<RawFd> {
    let is_standard = (0..=libc::STDERR_FILENO).contains(&descriptor) && !owns_process(state);
    is_standard.then(|| {
        let file = state.borrow::<FdTable>().get(descriptor).cloned();
        // -1 is never open.
        file.and_then(File::backing_fd).unwrap_or(-1)
    })
}

fn bad_descriptor() -> JsErrorBox {
    JsErrorBox::from_err(io::Error::from(Errno::EBADF))
}

fn allowed(
    scope: &mut v8::PinScope<'_, '_>,
    state: &OpState,
    descriptor: RawFd,
    purpose: Purpose,
    target: &str,
) -> Result<(), JsErrorBox> {
    match access(state, descriptor, purpose) {
        Access::Allowed => Ok(()),
        Access::NotOpen => Err(bad_descriptor()),
        Access::Refused => {
            refuse(scope, state, descriptor, target);
            // Node's error for a descriptor that is not open.
            Err(bad_descriptor())
        }
    }
}

pub(crate) fn refuse(
    scope: &mut v8::PinScope<'_, '_>,
    state: &OpState,
    descriptor: RawFd,
    target: &str,
) {
    let what = format!(
        "{target} cannot use descriptor {descriptor}: it is the program's own, none that the \
         extension has opened. pi does not recognize a descriptor of an addon that has \
         `O_CLOEXEC`: open it without, or set `extensionHost` to \"process\", where pi recognizes \
         files and folders of addons"
    );
    report_refusal(scope, state, what);
}

/// Returns a descriptor of which a child process may get a copy.
#[op2(nofast)]
#[smi]
pub(crate) fn op_descriptor_to_copy(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] descriptor: RawFd,
    #[string] target: &str,
) -> Result<RawFd, JsErrorBox> {
    if let Some(standard) = standard(state, descriptor) {
        return Ok(standard);
    }
    allowed(scope, state, descriptor, Purpose::Copy, target)?;
    Ok(descriptor)
}

/// Returns a descriptor of which a socket may be made, which closes it. For a standard stream it is
/// a copy.
#[op2(nofast)]
#[smi]
pub(crate) fn op_descriptor_to_take(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] descriptor: RawFd,
    #[string] target: &str,
) -> Result<RawFd, JsErrorBox> {
    let Some(standard) = standard(state, descriptor) else {
        allowed(scope, state, descriptor, Purpose::Take, target)?;
        return Ok(descriptor);
    };
    if standard < 0 {
        return Err(bad_descriptor());
    }
    // SAFETY: the table keeps it open while this function runs.
    let copy = unsafe { BorrowedFd::borrow_raw(standard) }.try_clone_to_owned();
    copy.map(IntoRawFd::into_raw_fd)
        .map_err(JsErrorBox::from_err)
}

/// Closes the copy of a standard stream that was not used.
#[op2(fast)]
pub(crate) fn op_descriptor_drop(#[smi] descriptor: RawFd) {
    // An error means that it is not open.
    _ = nix::unistd::close(descriptor);
}

/// Records a descriptor. `has_owner` is false if an object is about to take it over.
#[op2(fast)]
pub(crate) fn op_descriptor_give(#[smi] descriptor: RawFd, has_owner: bool) {
    note_opened(descriptor, has_owner);
    if !has_owner && let Some(identity) = identity(descriptor, false) {
        HANDED_OVER.with_borrow_mut(|HandedOver(handed)| handed.insert(descriptor, identity));
    }
}

thread_local! {
    static HANDED_OVER: RefCell<HandedOver> = RefCell::default();
}

/// Descriptors that the isolate of this thread has taken over. A pipe made of one (`uv_pipe_open`)
/// closes it only if JavaScript closes the pipe, not if the isolate is dropped. They are closed
/// with the thread, after everything else that may close them.
#[derive(Default)]
struct HandedOver(BTreeMap<RawFd, OpenedFile>);

impl Drop for HandedOver {
    fn drop(&mut self) {
        for (descriptor, known) in &self.0 {
            // Otherwise the descriptor was closed, and its number may be reused.
            if identity(*descriptor, false) == Some(*known) {
                _ = nix::unistd::close(*descriptor);
            }
        }
    }
}

/// Node's error.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
#[class(generic)]
#[property("code" = "ERR_TTY_INIT_FAILED")]
#[error("TTY initialization failed: uv_tty_init returned {0}")]
struct TtyInitError(&'static str);

/// Fails if no terminal may be made of the descriptor. JavaScript's standard streams are none.
#[op2(nofast)]
pub(crate) fn op_tty_check_fd_permission(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    descriptor: i32,
) -> Result<(), JsErrorBox> {
    if standard(state, descriptor).is_some_and(|standard| standard >= 0) {
        let none = TtyInitError("EINVAL (invalid argument)");
        return Err(JsErrorBox::from_err(none));
    }
    allowed(scope, state, descriptor, Purpose::Take, "a terminal")
        .map_err(|_| JsErrorBox::from_err(TtyInitError("EBADF (bad file descriptor)")))
}

/// Returns deno_node's number for the kind of a descriptor.
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn files_of_the_program_are_known_by_their_flag() {
        let path = std::env::current_exe().unwrap();
        let ours = program_file_options().read(true).open(&path).unwrap();
        let other = File::open(path).unwrap();
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(file_kind(ours.as_raw_fd()), Some(FileKind::OfProgram));
        assert_eq!(file_kind(other.as_raw_fd()), Some(FileKind::Other));
        assert_eq!(file_kind(reader.as_raw_fd()), Some(FileKind::NoFile));
        assert_eq!(file_kind(1_000_000), None);
    }
}
