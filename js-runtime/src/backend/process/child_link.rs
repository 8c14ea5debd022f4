//! The far side's end of the connection: what the threads of the process say to the
//! program, and what they hear.

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
use super::{Exception, Load, Refusal};
use crate::commands::Command;
use crate::control::{Control, Pause};
use crate::reply::{Answer, Remote, Reply};

type HostAnswer = Result<String, HostError>;

/// Shared by the threads of the process; only the JavaScript thread hears.
pub(crate) struct Link {
    stream: UnixStream,
    /// Held while a frame is written.
    writing: Mutex<()>,
    heard: Mutex<Heard>,
    /// Of calls that are under way here; an abandoned one is dropped.
    callers: Mutex<HashMap<u64, oneshot::Sender<()>>>,
    /// The program does not want the isolate any more, or is gone.
    closed: AtomicBool,
    ids: AtomicU64,
    event_loop: AtomicWaker,
    /// Of the isolate, and its thread.
    control: OnceLock<Control>,
    thread: OnceLock<ThreadId>,
}

#[derive(Default)]
struct Heard {
    incoming: Incoming,
    /// Commands that came while something else was looked for.
    commands: VecDeque<Command>,
    /// JavaScript's own calls of the host.
    asked: HashMap<u64, oneshot::Sender<HostAnswer>>,
    /// The answer for which JavaScript stands still.
    awaited: Option<(u64, Option<HostAnswer>)>,
}

/// Nothing panics while it holds one of the locks; the data is whole in any case.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            writing: Mutex::default(),
            heard: Mutex::default(),
            callers: Mutex::default(),
            closed: AtomicBool::new(false),
            ids: AtomicU64::new(1),
            event_loop: AtomicWaker::new(),
            control: OnceLock::new(),
            thread: OnceLock::new(),
        })
    }

    /// Before the first command comes.
    pub fn watch(&self, control: Control) {
        self.control.get_or_init(|| control);
    }

    /// On the JavaScript thread.
    pub fn here(&self) {
        self.thread.get_or_init(|| std::thread::current().id());
    }

    /// What the program takes its time for, or cannot do while it is stopped.
    fn pause(&self) -> Option<Pause<'_>> {
        let here = std::thread::current().id();
        let control = self.control.get()?;
        (self.thread.get() == Some(&here)).then(|| control.pause())
    }

    pub fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    pub fn id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Says something to the program. If that is gone, nobody wants to hear it.
    pub fn say(&self, kind: Kind, id: u64, head: &str, body: &[u8]) {
        let _paused = self.pause();
        let _writing = locked(&self.writing);
        if let Ok((first, rest)) = wire::parts(kind, id, head, body)
            && self.write(&first).is_ok()
        {
            _ = self.write(rest);
        }
    }

    /// The program always reads, so this takes no longer than it does.
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

    pub fn answer(&self, id: u64, answer: Answer) {
        locked(&self.callers).remove(&id);
        match answer {
            Ok(Some(value)) => self.say(Kind::Value, id, "", value.as_bytes()),
            Ok(None) => self.say(Kind::Nothing, id, "", b""),
            Err(thrown) => {
                let thrown = wire::json(&Exception::from(thrown));
                self.say(Kind::Thrown, id, &thrown, b"");
            }
        }
    }

    pub fn answer_with(&self, id: u64, value: &impl Serialize) {
        self.say(Kind::Value, id, "", wire::json(value).as_bytes());
    }

    /// For the first frame, before anybody else hears.
    pub fn hear_one(&self) -> io::Result<Frame> {
        loop {
            let mut heard = locked(&self.heard);
            if let Some(frame) = heard.incoming.take()? {
                return Ok(frame);
            }
            match heard.incoming.fill(|buffer| (&self.stream).read(buffer))? {
                Read::Some => {}
                Read::Nothing => self.wait(PollFlags::POLLIN)?,
                Read::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Takes in what has come. Tells whether there was anything.
    pub fn hear(self: &Arc<Self>) -> bool {
        let mut heard = locked(&self.heard);
        self.hear_into(&mut heard).unwrap_or_else(|_| {
            // Nobody is there, or somebody else reads from the same descriptor.
            self.closed.store(true, Ordering::Relaxed);
            true
        })
    }

    fn hear_into(self: &Arc<Self>, heard: &mut Heard) -> io::Result<bool> {
        match heard.incoming.fill(|buffer| (&self.stream).read(buffer))? {
            Read::Nothing => return Ok(false),
            Read::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            Read::Some => {}
        }
        while let Some(frame) = heard.incoming.take()? {
            self.sort(heard, frame)?;
        }
        Ok(true)
    }

    fn sort(self: &Arc<Self>, heard: &mut Heard, frame: Frame) -> io::Result<()> {
        let id = frame.id;
        let command = match frame.kind {
            Kind::Load => {
                let load: Load = frame.head()?;
                Command::Load {
                    id: load.extension,
                    limit: load.limit,
                    path: path(frame.body),
                    reply: self.reply(id),
                }
            }
            Kind::Call => Command::Call {
                function: frame.head.clone(),
                args: frame.text()?,
                reply: self.reply(id),
            },
            Kind::Memory => {
                let link = self.clone();
                Command::Memory(Box::new(move |memory| link.answer_with(id, &memory)))
            }
            Kind::HeapOwners => {
                let link = self.clone();
                Command::HeapOwners(Box::new(move |owners| link.answer_with(id, &owners)))
            }
            Kind::HeapUsed => {
                let link = self.clone();
                Command::HeapUsed(Box::new(move |used| link.answer_with(id, &used)))
            }
            Kind::Abandon => {
                // The event loop is woken by its end.
                locked(&self.callers).remove(&id);
                return Ok(());
            }
            Kind::HostAnswer => {
                let answer = host_answer(frame)?;
                match &mut heard.awaited {
                    Some((awaited, place)) if *awaited == id => *place = Some(answer),
                    _ => {
                        if let Some(asked) = heard.asked.remove(&id) {
                            // The call went with what asked for it.
                            _ = asked.send(answer);
                        }
                    }
                }
                return Ok(());
            }
            _ => return Err(wire::broken()),
        };
        heard.commands.push_back(command);
        Ok(())
    }

    fn reply(self: &Arc<Self>, id: u64) -> Reply {
        let (caller, abandoned) = oneshot::channel();
        locked(&self.callers).insert(id, caller);
        Reply::There(Remote {
            id,
            link: self.clone(),
            abandoned,
        })
    }

    pub fn next_command(&self) -> Option<Command> {
        locked(&self.heard).commands.pop_front()
    }

    pub fn has_command(&self) -> bool {
        !locked(&self.heard).commands.is_empty()
    }

    /// Nothing more is to be done.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.event_loop.wake();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub fn wakes(&self, event_loop: &Waker) {
        self.event_loop.register(event_loop);
    }

    /// Calls the host and stands still until it answers. On the JavaScript thread.
    pub fn ask_and_wait(self: &Arc<Self>, method: &str, args: &str) -> HostAnswer {
        let _paused = self.pause();
        let id = self.id();
        self.say(Kind::HostCallSync, id, method, args.as_bytes());
        let mut heard = locked(&self.heard);
        heard.awaited = Some((id, None));
        let answer = loop {
            if let Some((_, answer @ Some(_))) = &mut heard.awaited {
                break answer.take();
            }
            let went_well = match self.hear_into(&mut heard) {
                Ok(true) => Ok(()),
                Ok(false) => self.wait(PollFlags::POLLIN),
                Err(error) => Err(error),
            };
            if went_well.is_err() {
                break None;
            }
        };
        heard.awaited = None;
        // What came meanwhile does not wake the event loop by itself.
        if !heard.commands.is_empty() {
            self.event_loop.wake();
        }
        answer.unwrap_or_else(|| {
            self.close();
            Err(HostError::new(format!("{method}: the program is gone")))
        })
    }

    /// Calls the host; the answer comes when there is one.
    pub fn ask(&self, method: &str, args: &str) -> oneshot::Receiver<HostAnswer> {
        let id = self.id();
        let (asked, answer) = oneshot::channel();
        locked(&self.heard).asked.insert(id, asked);
        self.say(Kind::HostCall, id, method, args.as_bytes());
        answer
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

fn host_answer(frame: Frame) -> io::Result<HostAnswer> {
    if frame.head.is_empty() {
        return frame.text().map(Ok);
    }
    let refusal: Refusal = frame.head()?;
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
