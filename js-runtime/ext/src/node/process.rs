//! Replacements for ops of Deno that end the process, signal it or change its umask. Code of
//! extensions may do neither: the process belongs to the program.

use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use deno_core::{OpState, op2, v8};
use deno_error::JsErrorBox;
use deno_runtime::deno_os::ExitCode;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::bridge::attribution::author;
use crate::bridge::host::{Fault, Host};

/// Start of the error message that `process.exit` throws.
pub const EXIT_MESSAGE: &str = "process.exit(";

/// Implements `process.exit()`. An extension must not end the program, and dropping the isolate
/// would end all other extensions in it. The exception unwinds the running code, promises settle as
/// usual, and the isolate stays intact.
#[op2(nofast)]
pub(super) fn op_exit(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
) -> Result<(), JsErrorBox> {
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

/// Refuses another call that would end the process.
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
    report_refusal(scope, state, what.clone());
    JsErrorBox::generic(what)
}

/// Reports a refused call to the host. `what` is a sentence.
pub(crate) fn report_refusal(scope: &mut v8::PinScope<'_, '_>, state: &OpState, what: String) {
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
pub(super) fn op_process_abort(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
) -> Result<(), JsErrorBox> {
    if owns_process(state) {
        std::process::abort();
    }
    Err(refuse(scope, state, "process.abort()"))
}

/// Refuses deno_core's own way to end the process.
#[op2(nofast)]
pub(super) fn op_panic(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[string] message: &str,
) -> Result<(), JsErrorBox> {
    Err(refuse(scope, state, &format!("op_panic({message:?})")))
}

/// Signals that a process ignores by default.
const HARMLESS_SIGNALS: [Signal; 4] = [
    Signal::SIGCHLD,
    Signal::SIGCONT,
    Signal::SIGURG,
    Signal::SIGWINCH,
];

/// Returns true if a signal to `pid` reaches this process, or the program if this is its host
/// process.
fn targets_program(pid: i32) -> bool {
    let group = nix::unistd::getpgrp().as_raw();
    let program = IS_HOST_PROCESS.load(Ordering::Relaxed) && pid == nix::unistd::getppid().as_raw();
    program || pid == nix::unistd::getpid().as_raw() || [0, -1, -group].contains(&pid)
}

/// Whether this is a host process, whose parent is the program.
pub static IS_HOST_PROCESS: AtomicBool = AtomicBool::new(false);

/// Implements `process.kill()`. Returns an error number, or 0.
#[op2(nofast)]
#[smi]
pub(super) fn op_node_process_kill(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    #[smi] pid: i32,
    #[smi] signal: i32,
) -> Result<i32, JsErrorBox> {
    let known = Signal::try_from(signal).ok();
    let harmless = signal == 0 || known.is_some_and(|signal| HARMLESS_SIGNALS.contains(&signal));
    if targets_program(pid) && !harmless && !owns_process(state) {
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

/// Listens to the signals that end pi. From the first listener to any signal on, Deno listens to
/// those as well, and ends the process at once if there is no other listener, even after the first
/// one is removed.
#[op2(fast)]
pub(crate) fn op_listen_to_exit_signals(state: &OpState) {
    static LISTENED: Once = Once::new();
    if owns_process(state) || IS_HOST_PROCESS.load(Ordering::Relaxed) {
        return;
    }
    LISTENED.call_once(|| {
        for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
            // An error means that there is no listener for this signal.
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

/// Implements `Deno.kill()`, which throws.
#[op2]
pub(super) fn op_kill(
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
    if targets_program(pid) && !HARMLESS_SIGNALS.contains(&signal) && !owns_process(state) {
        return Err(refuse(scope, state, &format!("Deno.kill({pid}, {signal})")));
    }
    kill(Pid::from_raw(pid), signal).map_err(|error| JsErrorBox::from_err(io::Error::from(error)))
}

/// Implements `process.umask()` and returns the previous mask. The mask applies to the whole
/// process, and one that takes rights from the owner would apply to session files, too.
#[op2]
pub(super) fn op_fs_umask(
    scope: &mut v8::PinScope<'_, '_>,
    state: &mut OpState,
    mask: Option<u32>,
) -> Result<u32, JsErrorBox> {
    let mask = mask.map(Mode::from_bits_truncate);
    if let Some(mask) = mask
        && mask.intersects(Mode::S_IRWXU)
        && !owns_process(state)
    {
        let call = format!("process.umask(0o{:03o})", mask.bits());
        let why = "the program could not read its own files any more";
        return Err(refuse_because(scope, state, &call, why));
    }
    // The mask can be read only by setting it.
    let before = umask(mask.unwrap_or(Mode::empty()));
    if mask.is_none() {
        umask(before);
    }
    Ok(before.bits())
}

/// Leaves shell commands alone. deno_node takes a command that starts with this program for the
/// `deno` command and translates its arguments, unless this op fails.
#[op2(nofast)]
pub(super) fn op_node_translate_cli_args() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::generic("this program is not deno"))
}
