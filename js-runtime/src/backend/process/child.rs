//! The process of an isolate, from its first to its last breath.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use js_runtime_ext::{IS_HOST_PROCESS, Stop, program, set_program};

use super::inbox::Inbox;
use super::proxy::Proxy;
use super::wire::{self, Frame, Incoming, Kind, Read};
use super::{Exception, Link, NAME, Start, last_words};
use crate::control::Control;
use crate::error::Thrown;
use crate::imports::Imports;
use crate::local::{STACK, run};
use crate::worker::Isolate;
use crate::{inspector, standard_streams};

/// The start and its answer.
pub(super) const FIRST: u64 = 0;

/// Is this process started for an isolate? Then this returns when it is over, with the
/// exit code. To be called before anything else is done.
pub fn serve_if_asked() -> Option<u8> {
    let name = std::env::args_os().next()?;
    if name != NAME {
        // Before anybody puts another file there; who asks for it later is told what is wrong.
        let _ = program();
        return None;
    }
    Some(match serve() {
        Ok(()) => 0,
        Err(error) => {
            complain(&format!(
                "{NAME} is what pi starts for its extensions: {error}"
            ));
            2
        }
    })
}

/// Standard error goes to the program.
fn complain(text: &str) {
    use std::io::Write as _;
    _ = writeln!(io::stderr(), "{text}");
}

fn serve() -> io::Result<()> {
    // Signals of the terminal are for the program; and what is left behind can be ended
    // with this. A group of its own would not do: the terminal stops those of another
    // group that touch it, and a child that asks for a password would stop all of us.
    // In a session of its own there is no terminal, which an error says at once.
    nix::unistd::setsid()?;
    IS_HOST_PROCESS.store(true, Ordering::Relaxed);
    let (input, output) = standard_streams::take_files()?;
    let link = Arc::new(Link::new(socket(input)?)?);
    let mut control = Channel {
        stream: socket(output)?,
        incoming: Incoming::default(),
    };
    die_with_the_program();
    let start = link.hear_one()?;
    if start.kind != Kind::Start {
        return Err(wire::broken());
    }
    let mut start: Start = start.head()?;
    if let Some(program) = start.program.take() {
        set_program(program.into());
    }
    crate::init();
    if let Some(inspect) = start.inspect
        && let Err(error) = inspector::start_here(inspect)
    {
        refuse(&link, error);
        return Ok(());
    }
    let words = control.stream.try_clone()?;
    let Some(isolate) = begin(&link, start, words)? else {
        return Ok(());
    };
    link.say(Kind::Nothing, FIRST, "", b"");
    while let Some(frame) = control.next()? {
        obey(&frame, &link, &isolate)?;
    }
    // The program is gone, and nobody wants anything any more.
    leave(0)
}

/// At once and for good: V8 must not be taken down while its thread runs.
fn leave(code: i32) -> ! {
    // SAFETY: ends the process, and nothing else.
    unsafe { nix::libc::_exit(code) }
}

fn socket(file: File) -> io::Result<UnixStream> {
    let stream = UnixStream::from(OwnedFd::from(file));
    // Fails for what is none.
    stream.local_addr()?;
    Ok(stream)
}

/// The end of the control channel says the same, but not to a process that is stopped.
#[cfg(target_os = "linux")]
fn die_with_the_program() {
    // The program's thread that started us lives as long as we are wanted. Where it
    // cannot be had, the channel is enough.
    _ = nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL);
    _ = nix::sys::prctl::set_name(c"pi-extensions");
}

#[cfg(not(target_os = "linux"))]
fn die_with_the_program() {}

fn refuse(link: &Link, message: String) {
    let thrown = wire::json(&Exception::from(Thrown::new(message)));
    link.say(Kind::Thrown, FIRST, &thrown, b"");
}

/// Starts the thread. `None` if that did not work, which the program has been told.
fn begin(link: &Arc<Link>, start: Start, words: UnixStream) -> io::Result<Option<Control>> {
    let (ready, started) = mpsc::channel();
    let theirs = link.clone();
    let options = start.options();
    let host = Arc::new(Proxy {
        link: link.clone(),
        one_way: options.one_way.clone(),
    });
    let thread = std::thread::Builder::new()
        .name(inspector::thread_name(&options))
        .stack_size(STACK)
        .spawn(move || {
            let link = theirs.clone();
            let inbox = move |isolate: &mut Isolate| {
                last_words::prepare(&mut isolate.worker.js_runtime, words);
                Inbox::new(link).expect("tokio takes a socket")
            };
            let live = std::panic::AssertUnwindSafe(|| run(options, host, ready, inbox));
            // What panicked has said so.
            let code = match std::panic::catch_unwind(live) {
                Ok(()) => 0,
                Err(_) => 101,
            };
            if code == 0 {
                theirs.say(Kind::Bye, 0, "", b"");
            }
            leave(code)
        });
    if let Err(error) = thread {
        refuse(link, format!("its thread does not start: {error}"));
        return Ok(None);
    }
    match started.recv() {
        Ok(Ok((control, imports))) => {
            tell_imports(link, &imports);
            link.watch(control.clone());
            Ok(Some(control))
        }
        Ok(Err(error)) => {
            refuse(link, error.to_string());
            Ok(None)
        }
        Err(_) => Ok(None),
    }
}

fn tell_imports(link: &Arc<Link>, imports: &Imports) {
    let link = link.clone();
    imports.tell(Box::new(move |extension, file| {
        let path = file.as_os_str().as_bytes();
        match extension {
            Some(extension) => link.say(Kind::Imported, extension.into(), "", path),
            None => link.say(Kind::Packaged, 0, "", path),
        }
    }));
}

/// What the program says past the JavaScript thread.
struct Channel {
    stream: UnixStream,
    incoming: Incoming,
}

impl Channel {
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

fn obey(frame: &Frame, link: &Link, isolate: &Control) -> io::Result<()> {
    match frame.kind {
        Kind::Stop => isolate.stop(frame.head()?),
        Kind::StopIfBusy => {
            let least: Duration = frame.head()?;
            let busy = isolate.busy_for().is_some_and(|busy| busy >= least);
            if busy {
                isolate.stop(Stop::Deadline);
            }
            // It may have been stopped a moment before.
            link.answer_with(frame.id, &isolate.stopped());
        }
        Kind::Busy => link.answer_with(frame.id, &isolate.busy_for()),
        Kind::End => {
            isolate.release();
            link.close();
        }
        _ => return Err(wire::broken()),
    }
    Ok(())
}
