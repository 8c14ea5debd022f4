//! Lets Chrome's DevTools, or an editor, look into every isolate of the process:
//! the protocol is V8's, the server deno_runtime's, which is one per process.

use std::net::{SocketAddr, TcpListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deno_core::JsRuntime;
use deno_runtime::deno_inspector_server::{
    InspectPublishUid, InspectorServerUrl, create_inspector_server,
};
use js_runtime_ext::{Console, Host};
use serde_json::{Value, json};

use crate::options::RuntimeOptions;
use crate::process::Inspect;

static INSPECTED: OnceLock<Inspected> = OnceLock::new();

struct Inspected {
    /// The first module waits for a debugger, and stops at its first statement.
    waits: AtomicBool,
    /// Where processes of isolates listen. `None` where the isolates are here.
    elsewhere: Option<SocketAddr>,
}

/// Isolates that start from now on can be looked into; where goes to their console.
/// Nothing in them has a time limit then. With `wait` the first module that is
/// loaded waits for a debugger.
pub fn start_inspector(address: SocketAddr, wait: bool) -> Result<(), String> {
    serve(address)?;
    INSPECTED.get_or_init(|| Inspected {
        waits: AtomicBool::new(wait),
        elsewhere: None,
    });
    Ok(())
}

fn serve(address: SocketAddr) -> Result<(), String> {
    let publish = InspectPublishUid {
        console: true,
        http: true,
    };
    // The server lives as long as the process: the global keeps it.
    create_inspector_server(address, "pi", publish)
        .map(drop)
        .map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, error: &dyn std::error::Error) -> String {
    format!("the debugger cannot listen on {address}: {error}")
}

/// [`start_inspector`] for isolates that have a process of their own: each listens
/// itself.
pub fn inspect_processes(address: SocketAddr, wait: bool) -> Result<(), String> {
    // Heard of now, and not when the first extension loads.
    TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))?;
    INSPECTED.get_or_init(|| Inspected {
        waits: AtomicBool::new(wait),
        elsewhere: Some(address),
    });
    Ok(())
}

/// How a debugger gets into the next process.
pub(crate) fn elsewhere() -> Option<Inspect> {
    let inspected = INSPECTED.get()?;
    Some(Inspect {
        address: inspected.elsewhere?,
        wait: inspected.waits.swap(false, Ordering::Relaxed),
    })
}

/// In the process of an isolate. The one before may still have the port; then it is
/// another one, which is announced like the first.
pub(crate) fn start_here(inspect: Inspect) -> Result<(), String> {
    let Inspect { address, wait } = inspect;
    start_inspector(address, wait)
        .or_else(|_| start_inspector(SocketAddr::new(address.ip(), 0), wait))
}

pub fn is_inspected() -> bool {
    INSPECTED.get().is_some()
}

/// Says where an isolate that has just started can be looked into.
pub(crate) fn announce(runtime: &mut JsRuntime, host: &dyn Host) {
    let state = runtime.op_state();
    if let Some(url) = state.borrow().try_borrow::<InspectorServerUrl>() {
        let line = format!("Debugger listening on {}", url.0);
        host.console(Console::Err, &line);
    }
}

/// What the host is told, `true` and then `false`: that the isolate stands still until a
/// debugger comes, and that one has.
const WAITS: &str = "debugger.waits";

/// Before the first module is evaluated.
pub(crate) fn wait_if_asked(runtime: &JsRuntime, host: &dyn Host) {
    let asked = |inspected: &Inspected| inspected.waits.swap(false, Ordering::Relaxed);
    if INSPECTED.get().is_some_and(asked) {
        // A host that does not want to know refuses.
        let _ = host.call_sync(WAITS, "true");
        runtime
            .inspector()
            .wait_for_session_and_break_on_next_statement();
        let _ = host.call_sync(WAITS, "false");
    }
}

/// What the thread of an isolate is called. Debuggers show that name.
pub(crate) fn thread_name(options: &RuntimeOptions) -> String {
    match is_inspected() && !options.label.is_empty() {
        // Names end at a zero byte.
        true => options.label.replace('\0', ""),
        false => "js".to_owned(),
    }
}

/// For debuggers, which know a source by what the code says of it: the code with its
/// map, which has the source in it.
pub(crate) fn with_map(code: String, map: Option<Vec<u8>>, source: &str) -> String {
    let map = map.and_then(|map| serde_json::from_slice::<Value>(&map).ok());
    let Some(mut map) = map else {
        return code;
    };
    map["sourcesContent"] = json!([source]);
    let map = STANDARD.encode(map.to_string());
    format!("{code}\n//# sourceMappingURL=data:application/json;base64,{map}\n")
}
