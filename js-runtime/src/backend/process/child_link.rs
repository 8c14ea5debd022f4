//! The child's end of the connection: all threads of the host process send, the JavaScript thread
//! receives.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read as _, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;

use futures::task::AtomicWaker;
use js_runtime_ext::HostError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use tokio::sync::oneshot;

use super::wire::{self, Frame, Incoming, Kind, Read};
use super::{HostErrorFrame, LoadRequest, ThrownFrame};
use crate::commands::Command;
use crate::limits::watchdog::{Pause, Watchdog};
use crate::reply::{CallResult, RemoteReply, Reply};

type HostResult = Result<String, HostError>;

/// Shared by the threads of the process. Only the JavaScript thread receives.
pub(crate) struct ChildLink {
    stream: UnixStream,
    /// Held while a frame is written.
    writing: Mutex<()>,
    received: Mutex<Received>,
    /// Calls that are pending here. The sender of an abandoned call is dropped.
    callers: Mutex<HashMap<u64, oneshot::Sender<()>>>,
    /// Whether the program has ended the runtime, or is gone.
    closed: AtomicBool,
    ids: AtomicU64,
    event_loop: AtomicWaker,
    /// Watchdog of the isolate.
    watchdog: OnceLock<Watchdog>,
    thread: OnceLock<ThreadId>,
}

#[derive(Default)]
struct Received {
    incoming: Incoming,
    /// Commands that arrived while the thread waited for something else.
    commands: VecDeque<Command>,
    /// Pending calls that JavaScript has made of the host.
    calls: HashMap<u64, oneshot::Sender<HostResult>>,
    /// Id and result of the synchronous call for which JavaScript waits.
    awaited: Option<(u64, Option<HostResult>)>,
}

/// Locks a mutex. No code panics while it holds one of the locks; the data is consistent in any
/// case.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ChildLink {
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            writing: Mutex::default(),
            received: Mutex::default(),
            callers: Mutex::default(),
            closed: AtomicBool::new(false),
            ids: AtomicU64::new(1),
            event_loop: AtomicWaker::new(),
            watchdog: OnceLock::new(),
            thread: OnceLock::new(),
        })
    }

    /// Sets the watchdog. Must be called before the first command arrives.
    pub fn set_watchdog(&self, watchdog: Watchdog) {
        self.watchdog.get_or_init(|| watchdog);
    }

    /// Records the JavaScript thread. Must be called on it.
    pub fn bind_thread(&self) {
        self.thread.get_or_init(|| std::thread::current().id());
    }

    /// Excludes time of the program from the time slice. Applies to the JavaScript thread only.
    fn pause(&self) -> Option<Pause<'_>> {
        let current = std::thread::current().id();
        let watchdog = self.watchdog.get()?;
        (self.thread.get() == Some(&current)).then(|| watchdog.pause())
    }

    pub fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    pub fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a frame to the program, and ignores that the program is gone.
    pub fn send(&self, kind: Kind, id: u64, head: &str, body: &[u8]) {
        let _paused = self.pause();
        let _writing = locked(&self.writing);
        if let Ok((first, rest)) = wire::parts(kind, id, head, body)
            && self.write(&first).is_ok()
        {
            _ = self.write(rest);
        }
    }

    /// Writes all bytes. The program always reads, so this does not block for long.
    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.stream).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::POLLOUT)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait(&self, what: PollFlags) -> io::Result<()> {
        let mut descriptors = [PollFd::new(self.stream.as_fd(), what)];
        match poll(&mut descriptors, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub fn send_result(&self, id: u64, result: CallResult) {
        locked(&self.callers).remove(&id);
        match result {
            Ok(Some(value)) => self.send(Kind::Value, id, "", value.as_bytes()),
            Ok(None) => self.send(Kind::Nothing, id, "", b""),
            Err(thrown) => {
                let thrown = wire::json(&ThrownFrame::from(thrown));
                self.send(Kind::Thrown, id, &thrown, b"");
            }
        }
    }

    pub fn send_value(&self, id: u64, value: &impl Serialize) {
        self.send(Kind::Value, id, "", wire::json(value).as_bytes());
    }

    /// Receives the first frame, before other threads use the link.
    pub fn receive_one(&self) -> io::Result<Frame> {
        loop {
            let mut received = locked(&self.received);
            if let Some(frame) = received.incoming.take()? {
                return Ok(frame);
            }
            match received
                .incoming
                .fill(|buffer| (&self.stream).read(buffer))?
            {
                Read::Some => {}
                Read::Nothing => self.wait(PollFlags::POLLIN)?,
                Read::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Receives all frames that have arrived. Returns true if there were any.
    pub fn receive(self: &Arc<Self>) -> bool {
        let mut received = locked(&self.received);
        self.receive_into(&mut received).unwrap_or_else(|_| {
            // The program is gone, or other code reads from the descriptor.
            self.closed.store(true, Ordering::Relaxed);
            true
        })
    }

    fn receive_into(self: &Arc<Self>, received: &mut Received) -> io::Result<bool> {
        match received
            .incoming
            .fill(|buffer| (&self.stream).read(buffer))?
        {
            Read::Nothing => return Ok(false),
            Read::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            Read::Some => {}
        }
        while let Some(frame) = received.incoming.take()? {
            self.dispatch(received, frame)?;
        }
        Ok(true)
    }

    fn dispatch(self: &Arc<Self>, received: &mut Received, frame: Frame) -> io::Result<()> {
        let id = frame.id;
        let command = match frame.kind {
            Kind::Load => {
                let load: LoadRequest = frame.head()?;
                Command::Load {
                    phase: load.phase,
                    id: load.extension,
                    limit: load.limit,
                    path: path(frame.body),
                    reply: self.new_reply(id),
                }
            }
            Kind::Call => Command::Call {
                function: frame.head.clone(),
                args: frame.text()?,
                reply: self.new_reply(id),
            },
            Kind::Release => Command::Release(self.new_reply(id)),
            Kind::Memory => {
                let link = self.clone();
                Command::Memory(Box::new(move |memory| link.send_value(id, &memory)))
            }
            Kind::RetainedHeap => {
                let link = self.clone();
                Command::RetainedHeap(Box::new(move |owners| link.send_value(id, &owners)))
            }
            Kind::HeapUsed => {
                let link = self.clone();
                Command::HeapUsed(Box::new(move |used| link.send_value(id, &used)))
            }
            Kind::Abandon => {
                // Dropping the sender wakes the event loop.
                locked(&self.callers).remove(&id);
                return Ok(());
            }
            Kind::HostResult => {
                let result = host_result(frame)?;
                match &mut received.awaited {
                    Some((awaited, slot)) if *awaited == id => *slot = Some(result),
                    _ => {
                        if let Some(call) = received.calls.remove(&id) {
                            // The call was dropped together with the code that made it.
                            _ = call.send(result);
                        }
                    }
                }
                return Ok(());
            }
            _ => return Err(wire::not_a_frame()),
        };
        received.commands.push_back(command);
        Ok(())
    }

    fn new_reply(self: &Arc<Self>, id: u64) -> Reply {
        let (caller, abandoned) = oneshot::channel();
        locked(&self.callers).insert(id, caller);
        let link = self.clone();
        Reply::Remote(RemoteReply {
            send: Box::new(move |result| link.send_result(id, result)),
            abandoned,
        })
    }

    pub fn next_command(&self) -> Option<Command> {
        locked(&self.received).commands.pop_front()
    }

    pub fn has_command(&self) -> bool {
        !locked(&self.received).commands.is_empty()
    }

    /// Closes the link: no further commands are processed.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.event_loop.wake();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub fn register_event_loop(&self, event_loop: &Waker) {
        self.event_loop.register(event_loop);
    }

    /// Calls the host and blocks until the result arrives. Must be called on the JavaScript thread.
    pub fn call_sync(self: &Arc<Self>, method: &str, args: &str) -> HostResult {
        let _paused = self.pause();
        let id = self.id();
        self.send(Kind::HostCallSync, id, method, args.as_bytes());
        let mut received = locked(&self.received);
        received.awaited = Some((id, None));
        let result = loop {
            if let Some((_, result @ Some(_))) = &mut received.awaited {
                break result.take();
            }
            let went_well = match self.receive_into(&mut received) {
                Ok(true) => Ok(()),
                Ok(false) => self.wait(PollFlags::POLLIN),
                Err(error) => Err(error),
            };
            if went_well.is_err() {
                break None;
            }
        };
        received.awaited = None;
        // Commands that arrived meanwhile do not wake the event loop by themselves.
        if !received.commands.is_empty() {
            self.event_loop.wake();
        }
        result.unwrap_or_else(|| {
            self.close();
            Err(HostError::new(format!("{method}: the program is gone")))
        })
    }

    /// Calls the host. The receiver resolves when the result arrives.
    pub fn call(&self, method: &str, args: &str) -> oneshot::Receiver<HostResult> {
        let id = self.id();
        let (call, result) = oneshot::channel();
        locked(&self.received).calls.insert(id, call);
        self.send(Kind::HostCall, id, method, args.as_bytes());
        result
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

fn host_result(frame: Frame) -> io::Result<HostResult> {
    if frame.head.is_empty() {
        return frame.text().map(Ok);
    }
    let refusal: HostErrorFrame = frame.head()?;
    let class = match refusal.class.as_str() {
        "TypeError" => "TypeError",
        "RangeError" => "RangeError",
        _ => "Error",
    };
    Ok(Err(HostError {
        class,
        message: refusal.message,
    }))
}
