//! Attributes crashes of a host process. A signal handler on the thread of the isolate writes the
//! author of the running code to the program before the signal kills the process. The heap may be
//! broken, or V8 in the middle of an operation. So the signal number is written first, the rest may
//! take one second, and any further error ends the process as well.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use deno_core::{JsRuntime, v8};
use js_runtime_ext::Author;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};

use super::wire;

/// Descriptor of the control channel to the program.
static PROGRAM: OnceLock<RawFd> = OnceLock::new();
/// Start of a report. Other code may have written to the descriptor of standard output.
const MARK: &[u8; 8] = b"\0crashed";

/// Whether a report is being written. A crash within the handler is not reported.
static REPORTING: AtomicBool = AtomicBool::new(false);

/// Signals of crashes.
const CRASH_SIGNALS: [Signal; 6] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGTRAP,
    Signal::SIGABRT,
];

thread_local! {
    /// The isolate of this thread, which lives as long as the process.
    static ISOLATE: RefCell<Option<(v8::Global<v8::Context>, v8::UnsafeRawIsolatePtr)>> =
        const { RefCell::new(None) };
}

/// Installs the handler. Must be called on the thread of the isolate, before code runs in it.
/// `program` receives the report.
pub(super) fn install(runtime: &mut JsRuntime, program: UnixStream) {
    let context = runtime.main_context();
    // SAFETY: the pointer is used on this thread only, and the isolate lives as long as the
    // process.
    let isolate = unsafe { runtime.v8_isolate().as_raw_isolate_ptr() };
    ISOLATE.with_borrow_mut(|isolate_ref| *isolate_ref = Some((context, isolate)));
    // The descriptor stays open as long as the process lives.
    PROGRAM.get_or_init(|| program.into_raw_fd());
    // The handler runs on the stack of the thread, because V8 checks that it has room there.
    let action = SigAction::new(
        SigHandler::Handler(on_crash),
        SaFlags::empty(),
        SigSet::empty(),
    );
    for signal in CRASH_SIGNALS {
        // SAFETY: `on_crash` states what it does in a signal handler. It replaces the handler of
        // Rust, which explains stack overflows. If the call fails, there is no report.
        _ = unsafe { sigaction(signal, &action) };
    }
}

/// Writes the report, restores the default action and raises the signal again. The handler calls
/// functions that are not allowed in it if the thread was interrupted in the middle of an
/// allocation; then the alarm, or another crash, ends the process.
extern "C" fn on_crash(number: libc::c_int) {
    let Ok(signal) = Signal::try_from(number) else {
        return;
    };
    let usual = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in CRASH_SIGNALS {
        // SAFETY: no handler of this program is called after this.
        _ = unsafe { sigaction(signal, &usual) };
    }
    if !REPORTING.swap(true, Ordering::SeqCst) {
        nix::unistd::alarm::set(1);
        write(MARK);
        write(&number.to_le_bytes());
        if let Some(author) = author() {
            write(wire::json(&author).as_bytes());
        }
    }
    // The signal is blocked until this function returns.
    _ = raise(signal);
}

fn write(bytes: &[u8]) {
    if let Some(program) = PROGRAM.get() {
        // SAFETY: the descriptor is open, and is not closed here.
        let stream = unsafe { UnixStream::from_raw_fd(*program) };
        _ = (&*ManuallyDrop::new(stream)).write(bytes);
    }
}

fn author() -> Option<Author> {
    ISOLATE.with(|isolate_ref| {
        let isolate_ref = isolate_ref.try_borrow().ok()?;
        let (context, isolate) = isolate_ref.as_ref()?;
        // SAFETY: this is the isolate of this thread, which still exists.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(*isolate) };
        v8::callback_scope!(unsafe scope, &mut isolate);
        let context = v8::Local::new(scope, context);
        let scope = &mut v8::ContextScope::new(scope, context);
        js_runtime_ext::author(scope)
    })
}

/// Reads the report of a process that has ended: the signal, and the author of the code that
/// crashed.
pub(super) fn read(mut program: &UnixStream) -> Option<(i32, Option<Author>)> {
    let mut bytes = Vec::new();
    // The socket does not block: a child of the process may hold the other end, too.
    _ = program.read_to_end(&mut bytes);
    let mark = bytes.windows(MARK.len()).position(|found| found == MARK)?;
    let report = &bytes[mark + MARK.len()..];
    let (signal, author) = report.split_first_chunk::<4>()?;
    let author = serde_json::from_slice(author).ok();
    Some((i32::from_le_bytes(*signal), author))
}
