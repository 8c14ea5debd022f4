//! The host process of an isolate: starts the isolate's thread, then handles frames of the control
//! channel until the program closes it.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use js_runtime_ext::{IS_HOST_PROCESS, Stop, program, set_program};

use super::child_inbox::ChildInbox;
use super::host_proxy::HostProxy;
use super::wire::{self, Frame, Incoming, Kind, Read};
use super::{ChildLink, InputFrame, PROCESS_NAME, StartRequest, ThrownFrame, crash_report};
use crate::attribution::imports::{Imports, Recorded};
use crate::backend::thread::run;
use crate::error::Thrown;
use crate::isolate::Isolate;
use crate::js_thread;
use crate::limits::watchdog::Watchdog;
use crate::node::inspector;
use crate::standard_streams;

/// Id of the start request and of its response.
pub(super) const START_ID: u64 = 0;

/// If this process was started for an isolate, runs it and returns the exit code at its end. Must
/// be called before anything else.
pub fn run_if_host_process() -> Option<u8> {
    let name = std::env::args_os().next()?;
    if name != PROCESS_NAME {
        // Reads the path before another file may replace the program. An error is reported to the
        // first caller that needs the path.
        let _ = program();
        return None;
    }
    Some(match serve() {
        Ok(()) => 0,
        Err(error) => {
            print_error(&format!(
                "{PROCESS_NAME} is what pi starts for its extensions: {error}"
            ));
            2
        }
    })
}

/// Prints to standard error, which the program reads.
fn print_error(text: &str) {
    use std::io::Write as _;
    _ = writeln!(io::stderr(), "{text}");
}

fn serve() -> io::Result<()> {
    // A session of its own shields the process from signals of the terminal, and allows the program
    // to end all its descendants. A process group would not do: the terminal stops processes of
    // other groups that use it, and a child that asks for a password would stop the whole program.
    // In a session there is no terminal, and the child gets an error at once.
    nix::unistd::setsid()?;
    IS_HOST_PROCESS.store(true, Ordering::Relaxed);
    let (input, output) = standard_streams::take_files()?;
    let link = Arc::new(ChildLink::new(socket(input)?)?);
    let mut control = ControlChannel {
        stream: socket(output)?,
        incoming: Incoming::default(),
    };
    exit_with_parent();
    let start = link.receive_one()?;
    if start.kind != Kind::Start {
        return Err(wire::not_a_frame());
    }
    let mut start: StartRequest = start.head()?;
    if let Some(program) = start.program.take() {
        set_program(program.into());
    }
    if let Some(inspect) = start.inspect
        && let Err(error) = inspector::start_in_host_process(inspect)
    {
        send_start_error(&link, error);
        return Ok(());
    }
    let crash_stream = control.stream.try_clone()?;
    let Some((isolate, imports)) = start_isolate(&link, start, crash_stream)? else {
        return Ok(());
    };
    link.send(Kind::Nothing, START_ID, "", b"");
    while let Some(frame) = control.next()? {
        handle_control(&frame, &link, &isolate, &imports)?;
    }
    // The program is gone.
    exit_now(0)
}

/// Exits at once: V8 must not be shut down while its thread runs.
fn exit_now(code: i32) -> ! {
    // SAFETY: the call ends the process and does nothing else.
    unsafe { nix::libc::_exit(code) }
}

fn socket(file: File) -> io::Result<UnixStream> {
    let stream = UnixStream::from(OwnedFd::from(file));
    // The call fails if the file is no socket.
    stream.local_addr()?;
    Ok(stream)
}

/// Kills this process when the program ends. The control channel is closed then, too, but a stopped
/// process does not notice that.
#[cfg(target_os = "linux")]
fn exit_with_parent() {
    // The thread of the program that started this process lives as long as the runtime. If the call
    // fails, the channel has to do.
    _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    _ = nix::sys::prctl::set_name(c"pi-extensions");
}

#[cfg(not(target_os = "linux"))]
fn exit_with_parent() {}

fn send_start_error(link: &ChildLink, message: String) {
    let thrown = wire::json(&ThrownFrame::from(Thrown::new(message)));
    link.send(Kind::Thrown, START_ID, &thrown, b"");
}

/// Starts the thread of the isolate. Returns `None` if that failed; the program has been told then.
fn start_isolate(
    link: &Arc<ChildLink>,
    start: StartRequest,
    crash_stream: UnixStream,
) -> io::Result<Option<(Watchdog, Imports)>> {
    let (ready, started) = mpsc::channel();
    let thread_link = link.clone();
    let options = start.options();
    let host = Arc::new(HostProxy {
        link: link.clone(),
        one_way: options.one_way.clone(),
    });
    let name = inspector::thread_name(&options.label);
    let thread = js_thread::spawn(name, move || {
        let link = thread_link.clone();
        let inbox = move |isolate: &mut Isolate| {
            crash_report::install(&mut isolate.worker.js_runtime, crash_stream);
            ChildInbox::new(link).expect("tokio takes a socket")
        };
        let isolate_thread = std::panic::AssertUnwindSafe(|| run(options, host, ready, inbox));
        // The panic hook has printed the message.
        let code = match std::panic::catch_unwind(isolate_thread) {
            Ok(()) => 0,
            Err(_) => 101,
        };
        if code == 0 {
            thread_link.send(Kind::Bye, 0, "", b"");
        }
        exit_now(code)
    });
    if let Err(error) = thread {
        send_start_error(link, format!("its thread does not start: {error}"));
        return Ok(None);
    }
    match started.recv() {
        Ok(Ok((watchdog, imports))) => {
            forward_imports(link, &imports);
            link.set_watchdog(watchdog.clone());
            Ok(Some((watchdog, imports)))
        }
        Ok(Err(error)) => {
            send_start_error(link, error.to_string());
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

fn forward_imports(link: &Arc<ChildLink>, imports: &Imports) {
    let link = link.clone();
    imports.observe(Box::new(move |recorded| {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        match recorded {
            Recorded::File { extension, path } => {
                link.send(Kind::Imported, extension.into(), "", &bytes(path));
            }
            Recorded::Packaged(path) => link.send(Kind::Packaged, 0, "", &bytes(path)),
            Recorded::Input {
                extension,
                input,
                answer,
            } => {
                let head = wire::json(&InputFrame {
                    extension,
                    kind: input.kind,
                    answer,
                });
                link.send(Kind::LoadInput, 0, &head, &bytes(&input.path));
            }
        }
    }));
}

/// The channel that is read while JavaScript runs.
struct ControlChannel {
    stream: UnixStream,
    incoming: Incoming,
}

impl ControlChannel {
    fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.incoming.take()? {
                return Ok(Some(frame));
            }
            let mut stream = &self.stream;
            if self.incoming.fill(|buffer| stream.read(buffer))? == Read::End {
                return Ok(None);
            }
        }
    }
}

fn handle_control(
    frame: &Frame,
    link: &ChildLink,
    isolate: &Watchdog,
    imports: &Imports,
) -> io::Result<()> {
    match frame.kind {
        Kind::Stop => isolate.stop(frame.head()?),
        Kind::StopIfBusy => {
            let least: Duration = frame.head()?;
            let busy = isolate.busy_for().is_some_and(|busy| busy >= least);
            if busy {
                isolate.stop(Stop::Deadline);
            }
            // The isolate may have been stopped just before.
            link.send_value(frame.id, &isolate.stopped());
        }
        Kind::Busy => link.send_value(frame.id, &isolate.busy_for()),
        Kind::Sources => link.send_value(frame.id, &imports.sources()),
        Kind::End => {
            isolate.release();
            link.close();
        }
        _ => return Err(wire::not_a_frame()),
    }
    Ok(())
}
