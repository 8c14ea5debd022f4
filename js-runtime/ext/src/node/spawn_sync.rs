//! Children that JavaScript waits for (`spawnSync` and its like). Deno's own operation writes
//! all of the input before it reads, so that a child which answers as it reads stood still for
//! ever; it waits for whoever else has the pipes, and puts a child with a time limit into a
//! group of its own, where the terminal stops it. Here it is as libuv does it.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use deno_core::{JsBuffer, OpState, ToJsBuffer, op2};
use deno_error::JsErrorBox;
use deno_runtime::deno_io::ChildProcessStdio;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, dup2_raw};
use serde::{Deserialize, Serialize};

/// Read at once.
const PIECE: usize = 64 * 1024;

/// As deno_process has it (40_process.js).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    cmd: String,
    args: Vec<String>,
    argv0: Option<String>,
    cwd: Option<String>,
    env: Vec<(String, String)>,
    uid: Option<u32>,
    gid: Option<u32>,
    stdin: Stream,
    stdout: Stream,
    stderr: Stream,
    extra_stdio: Vec<Stream>,
    input: Option<JsBuffer>,
    /// Milliseconds
    timeout: Option<u64>,
    kill_signal: Option<SignalName>,
    max_buffer: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Stream {
    Kind(Kind),
    Descriptor(RawFd),
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Inherit,
    Piped,
    Null,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SignalName {
    Name(String),
    Number(i32),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pid: u32,
    status: Status,
    stdout: Option<ToJsBuffer>,
    stderr: Option<ToJsBuffer>,
    killed_by_timeout: bool,
    killed_by_max_buffer: bool,
    /// The child did not read all that it was given.
    input_is_left: bool,
}

#[derive(Serialize)]
struct Status {
    success: bool,
    code: i32,
    signal: Option<&'static str>,
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        let signal = status.signal();
        Self {
            success: status.success(),
            // As a shell has it.
            code: status.code().unwrap_or(signal.unwrap_or_default() + 128),
            signal: signal.and_then(|signal| Some(Signal::try_from(signal).ok()?.as_str())),
        }
    }
}

#[op2]
#[serde]
pub(crate) fn op_spawn_sync(
    state: &mut OpState,
    #[serde] given: Given,
) -> Result<Outcome, JsErrorBox> {
    spawned(state, given).map_err(JsErrorBox::from_err)
}

fn spawned(state: &OpState, given: Given) -> io::Result<Outcome> {
    let input = given.input.as_deref().unwrap_or_default();
    let mut child = match command(state, &given, false)?.spawn() {
        // Without a first line it is a script of the shell.
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            command(state, &given, true)?.spawn()?
        }
        other => other?,
    };
    let mut exchange = Exchange::new(&mut child, &given, input)?;
    exchange.run(Pid::from_raw(child.id().cast_signed()))?;
    let Exchange {
        outputs,
        input_is_left,
        end,
        ..
    } = exchange;
    let status = child.wait()?;
    let [stdout, stderr] = outputs.map(|output| output.map(|output| output.read.into()));
    Ok(Outcome {
        pid: child.id(),
        status: status.into(),
        stdout,
        stderr,
        killed_by_timeout: end == Some(End::Late),
        killed_by_max_buffer: end == Some(End::TooMuch),
        input_is_left,
    })
}

fn command(state: &OpState, given: &Given, by_shell: bool) -> io::Result<Command> {
    let mut command = match by_shell {
        true => Command::new("/bin/sh"),
        false => Command::new(&given.cmd),
    };
    match (&given.argv0, by_shell) {
        (_, true) => _ = command.arg(&given.cmd),
        (Some(first), false) => _ = command.arg0(first),
        (None, false) => {}
    }
    command.args(&given.args).env_clear().envs(
        given
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    if let Some(folder) = given.cwd.as_ref().filter(|folder| !folder.is_empty()) {
        command.current_dir(folder);
    }
    if let Some(user) = given.uid {
        command.uid(user);
    }
    if let Some(group) = given.gid {
        command.gid(group);
    }
    let own = state.borrow::<ChildProcessStdio>();
    let input = match (given.stdin, &given.input) {
        (_, Some(_)) => Stdio::piped(),
        (Stream::Kind(Kind::Piped), None) => Stdio::null(),
        (stream, None) => stdio(stream, None)?,
    };
    command
        .stdin(input)
        .stdout(stdio(given.stdout, Some(&own.stdout))?)
        .stderr(stdio(given.stderr, Some(&own.stderr))?);
    pass_on(&mut command, &given.extra_stdio);
    Ok(command)
}

/// `own` is what the child inherits for this one.
fn stdio(stream: Stream, own: Option<&std::fs::File>) -> io::Result<Stdio> {
    Ok(match (stream, own) {
        (Stream::Kind(Kind::Piped), _) => Stdio::piped(),
        (Stream::Kind(Kind::Null), _) => Stdio::null(),
        (Stream::Kind(Kind::Inherit) | Stream::Descriptor(1 | 2), Some(own)) => {
            Stdio::from(own.try_clone()?)
        }
        (Stream::Kind(Kind::Inherit), None) => Stdio::inherit(),
        (Stream::Descriptor(descriptor), _) => {
            if descriptor < 0 {
                return Err(Errno::EBADF.into());
            }
            // SAFETY: a copy is made of it at once, or that fails.
            let given = unsafe { BorrowedFd::borrow_raw(descriptor) };
            Stdio::from(given.try_clone_to_owned()?)
        }
    })
}

/// Descriptors from 3 on.
fn pass_on(command: &mut Command, streams: &[Stream]) {
    let numbered = (3..).zip(streams);
    let passed: Vec<(RawFd, RawFd)> = numbered
        .filter_map(|(place, stream)| match stream {
            Stream::Descriptor(descriptor) => Some((*descriptor, place)),
            Stream::Kind(_) => None,
        })
        .collect();
    if passed.is_empty() {
        return;
    }
    let pass = move || {
        for (descriptor, place) in &passed {
            // SAFETY: it is the child's own place, of which nothing else knows.
            let placed = unsafe { dup2_raw(BorrowedFd::borrow_raw(*descriptor), *place)? };
            std::mem::forget(placed);
        }
        Ok(())
    };
    // SAFETY: only `dup2` is called, which may be called there.
    unsafe { command.pre_exec(pass) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Late,
    TooMuch,
}

struct Output {
    pipe: Option<Box<dyn ReadPipe>>,
    read: Vec<u8>,
}

trait ReadPipe: Read + AsFd {}
impl<T: Read + AsFd> ReadPipe for T {}

/// What goes on while JavaScript waits.
struct Exchange<'a> {
    /// At its end when the child is over.
    life: Option<PipeReader>,
    input: Option<std::process::ChildStdin>,
    rest: &'a [u8],
    outputs: [Option<Output>; 2],
    deadline: Option<Instant>,
    signal: Signal,
    most: usize,
    end: Option<End>,
    input_is_left: bool,
}

impl<'a> Exchange<'a> {
    fn new(child: &mut Child, given: &Given, input: &'a [u8]) -> io::Result<Self> {
        fn output(pipe: impl ReadPipe + 'static) -> Output {
            Output {
                pipe: Some(Box::new(pipe)),
                read: Vec::new(),
            }
        }
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            let flags = OFlag::from_bits_retain(fcntl(stdin, FcntlArg::F_GETFL)?);
            fcntl(stdin, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        }
        let signal = match &given.kill_signal {
            Some(SignalName::Name(name)) => Signal::from_str(name).ok(),
            Some(SignalName::Number(number)) => Signal::try_from(*number).ok(),
            None => None,
        };
        let limit = given.timeout.filter(|limit| *limit > 0);
        Ok(Self {
            life: Some(life(child)?),
            input: stdin,
            rest: input,
            outputs: [
                child.stdout.take().map(output),
                child.stderr.take().map(output),
            ],
            deadline: limit
                .and_then(|limit| Instant::now().checked_add(Duration::from_millis(limit))),
            signal: signal.unwrap_or(Signal::SIGTERM),
            most: given.max_buffer.unwrap_or(usize::MAX),
            end: None,
            input_is_left: false,
        })
    }

    fn run(&mut self, child: Pid) -> io::Result<()> {
        while self.life.is_some()
            || self.input.is_some()
            || self.outputs.iter().flatten().any(|out| out.pipe.is_some())
        {
            let (input, outputs, over) = match self.ready()? {
                Some(ready) => ready,
                None => {
                    self.stop(child, End::Late);
                    continue;
                }
            };
            if over {
                self.life = None;
            }
            if input {
                self.write();
            }
            for (output, is_ready) in self.outputs.iter_mut().flatten().zip(outputs) {
                if is_ready {
                    output.read()?;
                }
            }
            let is_too_much = |output: &Output| output.read.len() > self.most;
            if self.end.is_none() && self.outputs.iter().flatten().any(is_too_much) {
                self.stop(child, End::TooMuch);
            }
        }
        Ok(())
    }

    /// Which of input, outputs and life have something; `None` if it is too late.
    fn ready(&self) -> io::Result<Option<(bool, Vec<bool>, bool)>> {
        let mut wanted = Vec::new();
        if let Some(life) = &self.life {
            wanted.push(PollFd::new(life.as_fd(), PollFlags::POLLIN));
        }
        if let Some(input) = &self.input {
            wanted.push(PollFd::new(input.as_fd(), PollFlags::POLLOUT));
        }
        for output in self.outputs.iter().flatten() {
            if let Some(pipe) = &output.pipe {
                wanted.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
            }
        }
        let left = self.deadline.filter(|_| self.end.is_none());
        let left = left.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A moment more rather than less.
        let limit = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut wanted, limit) {
            Err(Errno::EINTR) => {}
            found => _ = found?,
        }
        let mut found = wanted.iter().map(|polled| {
            let events = polled.revents();
            events.is_some_and(|events| !events.is_empty())
        });
        let over = self.life.is_some() && found.next() == Some(true);
        let input = self.input.is_some() && found.next() == Some(true);
        let outputs: Vec<bool> = (self.outputs.iter().flatten())
            .map(|output| output.pipe.is_some() && found.next() == Some(true))
            .collect();
        let is_late = left.is_some_and(|left| left.is_zero());
        let is_any = over || input || outputs.contains(&true);
        Ok((is_any || !is_late).then_some((input, outputs, over)))
    }

    fn write(&mut self) {
        let Some(pipe) = &mut self.input else {
            return;
        };
        match pipe.write(self.rest) {
            Ok(written) => self.rest = &self.rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => {
                self.input_is_left = error.kind() == io::ErrorKind::BrokenPipe;
                self.rest = &[];
            }
        }
        if self.rest.is_empty() {
            self.input = None;
        }
    }

    /// As libuv does: the child is sent the signal, and nothing is read any more. It is
    /// waited for.
    fn stop(&mut self, child: Pid, why: End) {
        self.end = Some(why);
        // It is not forgotten before it is waited for, so this is no other one.
        if kill(child, self.signal).is_err() {
            _ = kill(child, Signal::SIGKILL);
        }
        self.input = None;
        for output in self.outputs.iter_mut().flatten() {
            output.pipe = None;
        }
    }
}

impl Output {
    /// What there is.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        let before = self.read.len();
        self.read.resize(before + PIECE, 0);
        let read = pipe.read(&mut self.read[before..]);
        self.read.truncate(before + *read.as_ref().unwrap_or(&0));
        if read? == 0 {
            self.pipe = None;
        }
        Ok(())
    }
}

/// A pipe that ends with the child.
fn life(child: &Child) -> io::Result<PipeReader> {
    let (end, held) = io::pipe()?;
    let child: libc::id_t = child.id();
    let wait = move || {
        loop {
            // SAFETY: it is plain data, which the system writes.
            let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
            let flags = libc::WEXITED | libc::WNOWAIT;
            // SAFETY: there is room for what it tells.
            let waited = unsafe { libc::waitid(libc::P_PID, child, &raw mut told, flags) };
            if waited == 0 || Errno::last() != Errno::EINTR {
                break;
            }
        }
        drop(held);
    };
    thread::Builder::new().name("child".into()).spawn(wait)?;
    Ok(end)
}
