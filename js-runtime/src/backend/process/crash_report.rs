//! Whose code it is that crashes: the thread of the isolate says so while the signal
//! kills the process. What is said last is not always said well: the heap may be broken,
//! V8 in the midst of something. So the signal is told first, the rest must take no
//! longer than a second, and whatever goes wrong in it ends the process as well.

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

/// Where the program listens.
static PROGRAM: OnceLock<RawFd> = OnceLock::new();
/// How it begins: others may have written to what was standard output.
const MARK: &[u8; 8] = b"\0crashed";

/// A crash while it speaks is not spoken of.
static SPEAKS: AtomicBool = AtomicBool::new(false);

/// What a process dies of by its own fault.
const CRASHES: [Signal; 6] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGTRAP,
    Signal::SIGABRT,
];

thread_local! {
    /// The isolate of this thread, which lives as long as the process.
    static WITNESS: RefCell<Option<(v8::Global<v8::Context>, v8::UnsafeRawIsolatePtr)>> =
        const { RefCell::new(None) };
}

/// On the thread of the isolate, before code runs in it. `program` is told.
pub(super) fn prepare(runtime: &mut JsRuntime, program: UnixStream) {
    let context = runtime.main_context();
    // SAFETY: it is used on this thread only, and the isolate goes with the process.
    let isolate = unsafe { runtime.v8_isolate().as_raw_isolate_ptr() };
    WITNESS.with_borrow_mut(|witness| *witness = Some((context, isolate)));
    // Open for as long as the process lives.
    PROGRAM.get_or_init(|| program.into_raw_fd());
    // On the stack of the thread: V8 wants to see that it has room.
    let action = SigAction::new(
        SigHandler::Handler(crashed),
        SaFlags::empty(),
        SigSet::empty(),
    );
    for signal in CRASHES {
        // SAFETY: the handler is made for that; see there. It takes the place of the one
        // of Rust, which explains stack overflows.
        // Without it nothing is told.
        _ = unsafe { sigaction(signal, &action) };
    }
}

/// The signal has come back to its usual meaning when this returns, and comes again.
/// What is done here is not allowed in a handler when the thread was interrupted in the
/// midst of an allocation; then the alarm, or another crash, ends it.
extern "C" fn crashed(number: libc::c_int) {
    let Ok(signal) = Signal::try_from(number) else {
        return;
    };
    let usual = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in CRASHES {
        // SAFETY: nothing of ours is called from now on.
        _ = unsafe { sigaction(signal, &usual) };
    }
    if !SPEAKS.swap(true, Ordering::SeqCst) {
        nix::unistd::alarm::set(1);
        say(MARK);
        say(&number.to_le_bytes());
        if let Some(author) = author() {
            say(wire::json(&author).as_bytes());
        }
    }
    // It waits until this returns.
    _ = raise(signal);
}

fn say(bytes: &[u8]) {
    if let Some(program) = PROGRAM.get() {
        // SAFETY: the descriptor is open, and is not closed here.
        let stream = unsafe { UnixStream::from_raw_fd(*program) };
        _ = (&*ManuallyDrop::new(stream)).write(bytes);
    }
}

fn author() -> Option<Author> {
    WITNESS.with(|witness| {
        let witness = witness.try_borrow().ok()?;
        let (context, isolate) = witness.as_ref()?;
        // SAFETY: the isolate of this thread, which has not gone yet.
        let mut isolate = unsafe { v8::Isolate::from_raw_isolate_ptr(*isolate) };
        v8::callback_scope!(unsafe scope, &mut isolate);
        let context = v8::Local::new(scope, context);
        let scope = &mut v8::ContextScope::new(scope, context);
        js_runtime_ext::author(scope)
    })
}

/// What a dead process has said, in the program: the signal, and whose code it was.
pub(super) fn heard(mut program: &UnixStream) -> Option<(i32, Option<Author>)> {
    let mut said = Vec::new();
    // It does not block: there may be a child that has the other end, too.
    _ = program.read_to_end(&mut said);
    let mark = said.windows(MARK.len()).position(|found| found == MARK)?;
    let words = &said[mark + MARK.len()..];
    let (signal, author) = words.split_first_chunk::<4>()?;
    let author = serde_json::from_slice(author).ok();
    Some((i32::from_le_bytes(*signal), author))
}
