//! Runs child processes for which JavaScript waits (`spawnSync` and similar), as libuv does. Deno's
//! own op writes all input before it reads, so that it deadlocks with a child that answers while it
//! reads. It also waits for other processes that hold the pipes, and puts a child with a time limit
//! into a process group of its own, where the terminal stops it.

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

/// Bytes of one read.
const READ_SIZE: usize = 64 * 1024;

/// Arguments as deno_process passes them (40_process.js).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpawnArgs {
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
pub(crate) struct SpawnOutcome {
    pid: u32,
    status: Status,
    stdout: Option<ToJsBuffer>,
    stderr: Option<ToJsBuffer>,
    killed_by_timeout: bool,
    killed_by_max_buffer: bool,
    /// Whether the child did not read all of its input.
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
            // The code of a signal is that of a shell.
            code: status.code().unwrap_or(signal.unwrap_or_default() + 128),
            signal: signal.and_then(|signal| Some(Signal::try_from(signal).ok()?.as_str())),
        }
    }
}

#[op2]
#[serde]
pub(crate) fn op_spawn_sync(
    state: &mut OpState,
    #[serde] args: SpawnArgs,
) -> Result<SpawnOutcome, JsErrorBox> {
    spawn_and_wait(state, args).map_err(JsErrorBox::from_err)
}

fn spawn_and_wait(state: &OpState, args: SpawnArgs) -> io::Result<SpawnOutcome> {
    let input = args.input.as_deref().unwrap_or_default();
    let mut child = match command(state, &args, false)?.spawn() {
        // A file without an interpreter line is a script of the shell.
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            command(state, &args, true)?.spawn()?
        }
        other => other?,
    };
    let mut exchange = Exchange::new(&mut child, &args, input)?;
    exchange.run(Pid::from_raw(child.id().cast_signed()))?;
    let Exchange {
        outputs,
        input_is_left,
        end,
        ..
    } = exchange;
    let status = child.wait()?;
    let [stdout, stderr] = outputs.map(|output| output.map(|output| output.read.into()));
    Ok(SpawnOutcome {
        pid: child.id(),
        status: status.into(),
        stdout,
        stderr,
        killed_by_timeout: end == Some(StopReason::TimedOut),
        killed_by_max_buffer: end == Some(StopReason::OutputLimit),
        input_is_left,
    })
}

fn command(state: &OpState, args: &SpawnArgs, via_shell: bool) -> io::Result<Command> {
    let mut command = match via_shell {
        true => Command::new("/bin/sh"),
        false => Command::new(&args.cmd),
    };
    match (&args.argv0, via_shell) {
        (_, true) => _ = command.arg(&args.cmd),
        (Some(first), false) => _ = command.arg0(first),
        (None, false) => {}
    }
    command.args(&args.args).env_clear().envs(
        args.env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    if let Some(folder) = args.cwd.as_ref().filter(|folder| !folder.is_empty()) {
        command.current_dir(folder);
    }
    if let Some(user) = args.uid {
        command.uid(user);
    }
    if let Some(group) = args.gid {
        command.gid(group);
    }
    let own = state.borrow::<ChildProcessStdio>();
    let input = match (args.stdin, &args.input) {
        (_, Some(_)) => Stdio::piped(),
        (Stream::Kind(Kind::Piped), None) => Stdio::null(),
        (stream, None) => stdio(stream, None)?,
    };
    command
        .stdin(input)
        .stdout(stdio(args.stdout, Some(&own.stdout))?)
        .stderr(stdio(args.stderr, Some(&own.stderr))?);
    pass_on(&mut command, &args.extra_stdio);
    Ok(command)
}

/// Returns a standard stream of the child. `own` is the file that the child inherits.
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
            // SAFETY: the descriptor is copied at once, or the copy fails.
            let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
            Stdio::from(borrowed.try_clone_to_owned()?)
        }
    })
}

/// Passes descriptors from 3 on.
fn pass_on(command: &mut Command, streams: &[Stream]) {
    let numbered = (3..).zip(streams);
    let passed: Vec<(RawFd, RawFd)> = numbered
        .filter_map(|(target, stream)| match stream {
            Stream::Descriptor(descriptor) => Some((*descriptor, target)),
            Stream::Kind(_) => None,
        })
        .collect();
    if passed.is_empty() {
        return;
    }
    let pass = move || {
        for (descriptor, target) in &passed {
            // SAFETY: the target is a descriptor of the child, which no other code uses.
            let placed = unsafe { dup2_raw(BorrowedFd::borrow_raw(*descriptor), *target)? };
            std::mem::forget(placed);
        }
        Ok(())
    };
    // SAFETY: the closure only calls `dup2`, which is allowed there.
    unsafe { command.pre_exec(pass) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StopReason {
    TimedOut,
    OutputLimit,
}

struct Output {
    pipe: Option<Box<dyn ReadPipe>>,
    read: Vec<u8>,
}

trait ReadPipe: Read + AsFd {}
impl<T: Read + AsFd> ReadPipe for T {}

/// Input, outputs and exit of the child while JavaScript waits.
struct Exchange<'a> {
    /// Pipe that ends with the child.
    exit_watch: Option<PipeReader>,
    input: Option<std::process::ChildStdin>,
    rest: &'a [u8],
    outputs: [Option<Output>; 2],
    deadline: Option<Instant>,
    signal: Signal,
    most: usize,
    end: Option<StopReason>,
    input_is_left: bool,
}

impl<'a> Exchange<'a> {
    fn new(child: &mut Child, args: &SpawnArgs, input: &'a [u8]) -> io::Result<Self> {
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
        let signal = match &args.kill_signal {
            Some(SignalName::Name(name)) => Signal::from_str(name).ok(),
            Some(SignalName::Number(number)) => Signal::try_from(*number).ok(),
            None => None,
        };
        let limit = args.timeout.filter(|limit| *limit > 0);
        Ok(Self {
            exit_watch: Some(exit_watch(child)?),
            input: stdin,
            rest: input,
            outputs: [
                child.stdout.take().map(output),
                child.stderr.take().map(output),
            ],
            deadline: limit
                .and_then(|limit| Instant::now().checked_add(Duration::from_millis(limit))),
            signal: signal.unwrap_or(Signal::SIGTERM),
            most: args.max_buffer.unwrap_or(usize::MAX),
            end: None,
            input_is_left: false,
        })
    }

    fn run(&mut self, child: Pid) -> io::Result<()> {
        while self.exit_watch.is_some()
            || self.input.is_some()
            || self.outputs.iter().flatten().any(|out| out.pipe.is_some())
        {
            let (input, outputs, over) = match self.ready()? {
                Some(ready) => ready,
                None => {
                    self.stop(child, StopReason::TimedOut);
                    continue;
                }
            };
            if over {
                self.exit_watch = None;
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
                self.stop(child, StopReason::OutputLimit);
            }
        }
        Ok(())
    }

    /// Waits until input, outputs or the exit are ready, and returns which. `None` after the
    /// deadline.
    fn ready(&self) -> io::Result<Option<(bool, Vec<bool>, bool)>> {
        let mut polled = Vec::new();
        if let Some(exit_watch) = &self.exit_watch {
            polled.push(PollFd::new(exit_watch.as_fd(), PollFlags::POLLIN));
        }
        if let Some(input) = &self.input {
            polled.push(PollFd::new(input.as_fd(), PollFlags::POLLOUT));
        }
        for output in self.outputs.iter().flatten() {
            if let Some(pipe) = &output.pipe {
                polled.push(PollFd::new(pipe.as_fd(), PollFlags::POLLIN));
            }
        }
        let left = self.deadline.filter(|_| self.end.is_none());
        let left = left.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Rounds the time up.
        let limit = left.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX)
        });
        match poll(&mut polled, limit) {
            Err(Errno::EINTR) => {}
            found => _ = found?,
        }
        let mut found = polled.iter().map(|entry| {
            let events = entry.revents();
            events.is_some_and(|events| !events.is_empty())
        });
        let over = self.exit_watch.is_some() && found.next() == Some(true);
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

    /// Stops the child as libuv does: sends the signal and closes the pipes. The caller still waits
    /// for its exit.
    fn stop(&mut self, child: Pid, why: StopReason) {
        self.end = Some(why);
        // The child was not reaped, so the id is not reused.
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
    /// Reads the available output once.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        let before = self.read.len();
        self.read.resize(before + READ_SIZE, 0);
        let read = pipe.read(&mut self.read[before..]);
        self.read.truncate(before + *read.as_ref().unwrap_or(&0));
        if read? == 0 {
            self.pipe = None;
        }
        Ok(())
    }
}

/// Returns a pipe that ends with the child.
fn exit_watch(child: &Child) -> io::Result<PipeReader> {
    let (end, writer) = io::pipe()?;
    let child: libc::id_t = child.id();
    let wait = move || {
        loop {
            // SAFETY: the structure is plain data, which the system writes.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            let flags = libc::WEXITED | libc::WNOWAIT;
            // SAFETY: the pointer refers to a valid structure.
            let waited = unsafe { libc::waitid(libc::P_PID, child, &raw mut info, flags) };
            if waited == 0 || Errno::last() != Errno::EINTR {
                break;
            }
        }
        drop(writer);
    };
    thread::Builder::new().name("child".into()).spawn(wait)?;
    Ok(end)
}
