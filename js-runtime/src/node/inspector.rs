//! Lets a debugger (Chrome's DevTools, an editor) inspect the isolates of the process. V8 provides
//! the protocol, deno_runtime the server, of which a process has one.

use std::net::{SocketAddr, TcpListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use deno_core::JsRuntime;
use deno_runtime::deno_inspector_server::{
    InspectPublishUid, InspectorServerUrl, create_inspector_server,
};
use js_runtime_ext::{Console, Host};
use serde::{Deserialize, Serialize};

/// Settings of the inspector in a host process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Inspect {
    pub address: SocketAddr,
    /// Whether the first module waits for a debugger.
    pub wait: bool,
}

static INSPECTED: OnceLock<Inspected> = OnceLock::new();

struct Inspected {
    /// Whether the next module waits for a debugger, and stops at its first statement.
    wait: AtomicBool,
    /// Address for host processes; `None` if the isolates run in this process.
    process_address: Option<SocketAddr>,
}

/// Makes isolates that start from now on inspectable; their consoles show the address. Nothing in
/// them has a time limit then. With `wait` the first module that is loaded waits for a debugger.
pub fn start_inspector(address: SocketAddr, wait: bool) -> Result<(), String> {
    create_server(address)?;
    INSPECTED.get_or_init(|| Inspected {
        wait: AtomicBool::new(wait),
        process_address: None,
    });
    Ok(())
}

fn create_server(address: SocketAddr) -> Result<(), String> {
    let publish = InspectPublishUid {
        console: true,
        http: true,
    };
    // The server lives as long as the process, because a global holds it.
    create_inspector_server(address, "pi", publish)
        .map(drop)
        .map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, error: &dyn std::error::Error) -> String {
    format!("the debugger cannot listen on {address}: {error}")
}

/// Like [`start_inspector`], for isolates with a process of their own: each process listens itself.
pub fn inspect_processes(address: SocketAddr, wait: bool) -> Result<(), String> {
    // Reports an unusable address now instead of when the first extension loads.
    TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
    INSPECTED.get_or_init(|| Inspected {
        wait: AtomicBool::new(wait),
        process_address: Some(address),
    });
    Ok(())
}

/// Returns the settings for the next host process.
pub(crate) fn for_next_process() -> Option<Inspect> {
    let inspected = INSPECTED.get()?;
    Some(Inspect {
        address: inspected.process_address?,
        wait: inspected.wait.swap(false, Ordering::Relaxed),
    })
}

/// Starts the inspector in a host process. The previous process may still have the port; then this
/// one listens on another, which it announces as well.
pub(crate) fn start_in_host_process(inspect: Inspect) -> Result<(), String> {
    let Inspect { address, wait } = inspect;
    start_inspector(address, wait)
        .or_else(|_| start_inspector(SocketAddr::new(address.ip(), 0), wait))
}

pub fn is_inspected() -> bool {
    INSPECTED.get().is_some()
}

/// Prints the address of an isolate that has just started to its console.
pub(crate) fn announce(runtime: &mut JsRuntime, host: &dyn Host) {
    let state = runtime.op_state();
    if let Some(url) = state.borrow().try_borrow::<InspectorServerUrl>() {
        let line = format!("Debugger listening on {}", url.0);
        host.console(Console::Err, &line);
    }
}

/// Method of the host that is called with `true` while the isolate waits for a debugger, and then
/// with `false`.
const WAITS_METHOD: &str = "debugger.waits";

/// Waits for a debugger if that was requested. Must be called before the first module is evaluated.
pub(crate) fn wait_if_requested(runtime: &JsRuntime, host: &dyn Host) {
    let requested = |inspected: &Inspected| inspected.wait.swap(false, Ordering::Relaxed);
    if INSPECTED.get().is_some_and(requested) {
        // A host that does not know the method refuses.
        let _ = host.call_sync(WAITS_METHOD, "true");
        runtime
            .inspector()
            .wait_for_session_and_break_on_next_statement();
        let _ = host.call_sync(WAITS_METHOD, "false");
    }
}

/// Returns the name of an isolate's thread, which debuggers show.
pub(crate) fn thread_name(label: &str) -> String {
    match is_inspected() && !label.is_empty() {
        // A thread name must not contain a zero byte.
        true => label.replace('\0', ""),
        false => "js".to_owned(),
    }
}
