//! The ops: two ways into the host, and replacements for ops of Deno that would
//! end the process or use the program's own standard streams.

use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use deno_core::error::JsError;
use deno_core::{OpDecl, OpState, op2, v8};
use deno_error::JsErrorBox;
use deno_runtime::deno_os::ExitCode;
use futures::FutureExt;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::author::author;
use crate::environment;
use crate::host::{Author, Fault, Host, HostError};
use crate::modules::virtual_module;
use crate::numbers;
use crate::process_ids;
use crate::program;
use crate::spawn_sync;

/// How the error starts that `process.exit` throws.
pub const EXIT_MESSAGE: &str = "process.exit(";

fn to_js(error: HostError) -> JsErrorBox {
    JsErrorBox::new(error.class, error.message)
}

#[op2]
#[string]
pub(crate) fn op_host_call_sync(
    state: Rc<RefCell<OpState>>,
    #[string] method: &str,
    #[string] args: &str,
) -> Result<String, JsErrorBox> {
    // Cloned, so that nothing is borrowed while the host works.
    let host = state.borrow().borrow::<Arc<dyn Host>>().clone();
    caught(method, || host.call_sync(method, args)).map_err(to_js)
}

/// Lets a host work that may panic: V8 calls the ops, and a panic that unwinds into it
/// ends the process.
pub fn caught<T>(
    method: &str,
    work: impl FnOnce() -> Result<T, HostError>,
) -> Result<T, HostError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(internal_error(method)))
}

/// [`caught`] for what takes time.
pub async fn caught_later<T>(
    method: &str,
    work: impl Future<Output = Result<T, HostError>>,
) -> Result<T, HostError> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(internal_error(method)))
}

fn internal_error(method: &str) -> HostError {
    HostError::new(format!("internal error in {method}: this is a bug of pi"))
}

#[op2]
#[string]
pub(crate) async fn op_host_call(
    state: Rc<RefCell<OpState>>,
    #[string] method: String,
    #[string] args: String,
) -> Result<String, JsErrorBox> {
    let host = state.borrow().borrow::<Arc<dyn Host>>().clone();
    let name = method.clone();
    let work = async move { host.call(method, args).await };
    caught_later(&name, work).await.map_err(to_js)
}

/// Applied to every op of the runtime when it is registered.
pub(crate) fn replace(op: OpDecl) -> OpDecl {
    match op.name {
        "op_env" => op.with_implementation_from(&environment::op_env()),
        "op_get_env" => op.with_implementation_from(&environment::op_get_env()),
        "op_get_env_no_permission_check" => {
            op.with_implementation_from(&environment::op_get_env_no_permission_check())
        }
        "op_exec_path" => op.with_implementation_from(&program::op_exec_path()),
        "op_exit" => op.with_implementation_from(&op_exit()),
        "op_node_process_kill" => op.with_implementation_from(&op_node_process_kill()),
        "op_kill" => op.with_implementation_from(&op_kill()),
        "op_fs_umask" => op.with_implementation_from(&op_fs_umask()),
        "op_node_process_setuid" => {
            op.with_implementation_from(&process_ids::op_node_process_setuid())
        }
        "op_node_process_seteuid" => {
            op.with_implementation_from(&process_ids::op_node_process_seteuid())
        }
        "op_node_process_setgid" => {
            op.with_implementation_from(&process_ids::op_node_process_setgid())
        }
        "op_node_process_setegid" => {
            op.with_implementation_from(&process_ids::op_node_process_setegid())
        }
        "op_spawn_sync" => op.with_implementation_from(&spawn_sync::op_spawn_sync()),
        "op_process_abort" => op.with_implementation_from(&op_process_abort()),
        "op_panic" => op.with_implementation_from(&op_panic()),
        "op_tty_check_fd_permission" => {
            op.with_implementation_from(&numbers::op_tty_check_fd_permission())
        }
        "op_node_guess_handle_type" => {
            op.with_implementation_from(&numbers::op_node_guess_handle_type())
        }
        "op_node_translate_cli_args" => op.with_implementation_from(&op_node_translate_cli_args()),
        _ => op,
    }
}

/// `process.exit()`. The program is not the extension's to end, and tearing down
/// the isolate would punish every other extension in it. An exception unwinds what
/// is running now, promises settle as usual, and the isolate stays whole.
#[op2(nofast)]
fn op_exit(scope: &mut v8::PinScope<'_, '_>, state: &mut OpState) -> Result<(), JsErrorBox> {
    let code = state
        .try_borrow::<ExitCode>()
        .map(ExitCode::get)
        .unwrap_or_default();
    // The next `process.exit()` without a code means 0 again.
    if let Some(code) = state.try_borrow_mut::<ExitCode>() {
        code.set(0);
    }
    if let Some(host) = state.try_borrow::<Arc<dyn Host>>() {
        let author = author(scope);
        host.fault(Fault::Exit { code, author });
    }
    Err(JsErrorBox::generic(format!(
        "{EXIT_MESSAGE}{code}) was called: code inside the program cannot end it"
    )))
}

/// Exceptions that nobody caught, until the event loop tells of them.
#[derive(Default)]
pub struct Uncaught(Vec<(JsError, Option<Author>)>);

impl Uncaught {
    /// Those that may wait: code that throws and throws is not to fill the memory.
    const MOST: usize = 256;

    /// With whose code it was, as far as it is marked.
    pub fn take(state: &mut OpState) -> Vec<(JsError, Option<Author>)> {
        let uncaught = state.try_borrow_mut::<Self>();
        uncaught
            .map(|uncaught| std::mem::take(&mut uncaught.0))
            .unwrap_or_default()
    }
}

/// See `js/node/uncaught.ts`. The stack is asked for, which may run JavaScript.
#[op2(fast, reentrant)]
pub(crate) fn op_uncaught<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    state: Rc<RefCell<OpState>>,
    error: v8::Local<'s, v8::Value>,
) {
    let author = author(scope);
    let error = JsError::from_v8_exception(scope, error);
    let mut state = state.borrow_mut();
    if !state.has::<Uncaught>() {
        state.put(Uncaught::default());
    }
    let Uncaught(waiting) = state.borrow_mut();
    if waiting.len() < Uncaught::MOST {
        waiting.push((*error, author));
    }
}

/// What else would end the process.
fn refuse(scope: &mut v8::PinScope<'_, '_>, state: &OpState, call: &str) -> JsErrorBox {
    refuse_because(scope, state, call, "code inside the program cannot end it")
}

pub(crate) fn refuse_because(
    scope: &mut v8::PinScope<'_, '_>,
    state: &OpState,
    call: &str,
    why: &str,
) -> JsErrorBox {
    let what = format!("{call} was called: {why}");
    tell_of_refusal(scope, state, what.clone());
    JsErrorBox::generic(what)
}

/// `what` is a sentence.
pub(crate) fn tell_of_refusal(scope: &mut v8::PinScope<'_, '_>, state: &OpState, what: String) {
    if let Some(host) = state.try_borrow::<Arc<dyn Host>>() {
        let author = author(scope);
        host.fault(Fault::Refused { what, author });
    }
}

pub(crate) fn owns_process(state: &OpState) -> bool {
    let host = state.try_borrow::<Arc<dyn Host>>();
    host.is_some_and(|host| host.owns_process())
}

#[op2(nofast)]
fn op_process_abort(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
) -> Result<(), JsErrorBox> {
    if owns_process(state) {
        std::process::abort();
    }
    Err(refuse(scope, state, "process.abort()"))
}

/// deno_core's own way to end the process.
#[op2(nofast)]
fn op_panic(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[string] message: &str,
) -> Result<(), JsErrorBox> {
    Err(refuse(scope, state, &format!("op_panic({message:?})")))
}

/// Signals that do nothing to a process that does not ask for them.
const HARMLESS: [Signal; 4] = [
    Signal::SIGCHLD,
    Signal::SIGCONT,
    Signal::SIGURG,
    Signal::SIGWINCH,
];

/// Whether a signal to `pid` reaches this process, or the program whose host it is.
fn hits_us(pid: i32) -> bool {
    let group = nix::unistd::getpgrp().as_raw();
    let program = IS_HOST_PROCESS.load(Ordering::Relaxed) && pid == nix::unistd::getppid().as_raw();
    program || pid == nix::unistd::getpid().as_raw() || [0, -1, -group].contains(&pid)
}

/// Its parent is the program.
pub static IS_HOST_PROCESS: AtomicBool = AtomicBool::new(false);

/// `process.kill()`. The answer is an error number, or 0.
#[op2(nofast)]
#[smi]
fn op_node_process_kill(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] pid: i32,
    #[smi] signal: i32,
) -> Result<i32, JsErrorBox> {
    let known = Signal::try_from(signal).ok();
    let harmless = signal == 0 || known.is_some_and(|signal| HARMLESS.contains(&signal));
    if hits_us(pid) && !harmless && !owns_process(state) {
        let name = known.map_or_else(|| signal.to_string(), |signal| signal.to_string());
        return Err(refuse(
            scope,
            state,
            &format!("process.kill({pid}, {name})"),
        ));
    }
    let sent = match (signal, known) {
        (0, _) => kill(Pid::from_raw(pid), None),
        (_, Some(signal)) => kill(Pid::from_raw(pid), signal),
        (_, None) => Err(Errno::EINVAL),
    };
    Ok(sent.map_or_else(|error| error as i32, |()| 0))
}

/// Of the first listener to any signal on, Deno listens to those that end pi, too, and ends
/// the process at once if nobody else there does, also when that listener is long gone.
#[op2(fast)]
pub(crate) fn op_hold_signals(state: &OpState) {
    static HELD: Once = Once::new();
    if owns_process(state) || IS_HOST_PROCESS.load(Ordering::Relaxed) {
        return;
    }
    HELD.call_once(|| {
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
            // An error means that this one is not listened to.
            _ = deno_signals::register(signal as i32, true, Box::new(|| {}));
        }
    });
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SignalName {
    Name(String),
    Number(i32),
}

/// `Deno.kill()`, which throws.
#[op2]
fn op_kill(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] pid: i32,
    #[serde] signal: SignalName,
    #[string] name: String,
) -> Result<(), JsErrorBox> {
    let signal = match signal {
        SignalName::Name(name) => Signal::from_str(&name),
        SignalName::Number(number) => Signal::try_from(number),
    };
    let signal = signal.map_err(|_| JsErrorBox::type_error(format!("{name}: no such signal")))?;
    if hits_us(pid) && !HARMLESS.contains(&signal) && !owns_process(state) {
        return Err(refuse(scope, state, &format!("Deno.kill({pid}, {signal})")));
    }
    kill(Pid::from_raw(pid), signal).map_err(|error| JsErrorBox::from_err(io::Error::from(error)))
}

/// `process.umask()`. The answer is the mask before. It is the whole process's, and one
/// that takes rights from the owner takes them from the session files.
#[op2]
fn op_fs_umask(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    mask: Option<u32>,
) -> Result<u32, JsErrorBox> {
    let wanted = mask.map(Mode::from_bits_truncate);
    if let Some(mask) = wanted
        && mask.intersects(Mode::S_IRWXU)
        && !owns_process(state)
    {
        let call = format!("process.umask(0o{:03o})", mask.bits());
        let why = "the program could not read its own files any more";
        return Err(refuse_because(scope, state, &call, why));
    }
    // It can be read only by setting it.
    let before = umask(wanted.unwrap_or(Mode::empty()));
    if wanted.is_none() {
        umask(before);
    }
    Ok(before.bits())
}

/// deno_node takes a shell command that starts with this program for one of the
/// `deno` command and translates its arguments; if it cannot, it leaves them alone.
#[op2(nofast)]
fn op_node_translate_cli_args() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::generic("this program is not deno"))
}

/// The module behind a name that `require` was asked for, or nothing.
#[op2]
#[string]
pub(crate) fn op_virtual_module(#[string] name: &str) -> &'static str {
    virtual_module(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_host_becomes_an_exception() {
        let expected = HostError::new("internal error in pi.on: this is a bug of pi");
        let sync = caught::<()>("pi.on", || panic!("a bug"));
        assert_eq!(sync, Err(expected.clone()));
        let later = caught_later::<()>("pi.on", async { panic!("a bug") });
        assert_eq!(futures::executor::block_on(later), Err(expected));
    }
}
