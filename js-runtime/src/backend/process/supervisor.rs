//! The thread of the program that starts a host process, serves its calls of the host, delivers its
//! results, and reaps it.

use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use js_runtime_ext::{Fault, Host, HostError, ProcessEnd, Stop, catch_async_panic, catch_panic};
use pi_base::process_tree::{self, KillNow};
use tokio::io::Interest;
use tokio::runtime::Handle;
use tokio::time::MissedTickBehavior;

use super::parent::Shared;
use super::sync_call_watchdog::SyncCallWatchdog;
use super::wire::{self, Frame, Incoming, Kind, Read};
use super::{HostErrorFrame, InputFrame, ThrownFrame, child};
use crate::attribution::load_input::LoadInput;
use crate::error::{StartError, Thrown};
use crate::node::stdio::Readers;

/// Time between two checks that the process is alive, while a result is pending.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Time in which a process that has closed its connection may still exit.
const HANG_UP_GRACE: Duration = Duration::from_millis(500);

/// Id of a ping; no call has it.
const PING_ID: u64 = u64::MAX;

pub(super) struct SupervisorArgs {
    pub shared: Arc<Shared>,
    pub host: Arc<dyn Host>,
    pub data: UnixStream,
    pub readers: Readers,
    /// Receives the outcome of the start.
    pub ready: mpsc::Sender<Result<(), StartError>>,
    /// Maximum time without a frame after a ping.
    pub silence_limit: Option<Duration>,
    /// Maximum time of a synchronous call of the host.
    pub sync_call_limit: Duration,
    /// Tokio runtime of the program.
    pub tasks: Option<Handle>,
}

/// Runs the process from its start to its end.
pub(super) fn run(args: SupervisorArgs, mut command: Command) {
    let SupervisorArgs {
        shared,
        host,
        data,
        readers,
        ready,
        silence_limit,
        sync_call_limit,
        tasks,
    } = args;
    let kill_now = process_tree::kill_now();
    let spawned = command.spawn();
    // Dropping the command closes the process's ends of the connections.
    drop(command);
    let mut process = match spawned {
        Ok(process) => process,
        Err(error) => {
            _ = ready.send(Err(StartError::Process(error)));
            return shared.close();
        }
    };
    shared.note_process(process.id());
    let mut supervisor = Supervisor {
        shared: shared.clone(),
        host: host.clone(),
        incoming: Incoming::default(),
        calls: FuturesUnordered::new(),
        last_heard: Instant::now(),
        missed_pings: None,
        silence_limit,
        sync_calls: SyncCallWatchdog::new(shared.clone(), host.clone(), sync_call_limit, tasks),
        ready: Some(ready.clone()),
        started: false,
        said_bye: false,
    };
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    if let Ok(tokio) = &tokio {
        // After any error the process is of no use.
        _ = tokio.block_on(supervisor.event_loop(data, kill_now.clone()));
    }
    let Supervisor {
        started, said_bye, ..
    } = supervisor;
    let end = wait_exit(&shared, &mut process, kill_now);
    if let Ok(tokio) = tokio {
        tokio.shutdown_background();
    }
    if started {
        report_exit(&shared, &*host, said_bye, end);
    }
    // Only a caller that still waits for the start receives this.
    _ = ready.send(Err(StartError::Bootstrap(format!("its process {end}"))));
    shared.close();
    readers.finish();
}

/// Waits for the end of the process, and ends its descendants.
fn wait_exit(shared: &Shared, process: &mut Child, kill_now: KillNow) -> ProcessEnd {
    let deadline = Instant::now() + HANG_UP_GRACE;
    let mut hung_up = false;
    while !has_ended(process) {
        if Instant::now() >= deadline && !hung_up {
            hung_up = true;
            shared.kill();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // Must come before the process is reaped: afterwards the id of its session may be reused.
    process_tree::terminate_session(process.id().cast_signed(), kill_now);
    let status = process.wait();
    shared.note_reaped();
    match status {
        Ok(status) if !hung_up => process_end(status),
        _ => ProcessEnd::Disconnected,
    }
}

/// Returns true if the process has ended, without reaping it.
#[cfg(target_os = "linux")]
fn has_ended(process: &mut Child) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    use nix::unistd::Pid;

    let id = Id::Pid(Pid::from_raw(process.id().cast_signed()));
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    // An error means that other code has reaped it.
    !matches!(waitid(id, flags), Ok(WaitStatus::StillAlive))
}

#[cfg(not(target_os = "linux"))]
fn has_ended(process: &mut Child) -> bool {
    !matches!(process.try_wait(), Ok(None))
}

fn process_end(status: ExitStatus) -> ProcessEnd {
    match (status.signal(), status.code()) {
        (Some(signal), _) => ProcessEnd::Signal(signal),
        (None, code) => ProcessEnd::Exit(code.unwrap_or_default()),
    }
}

/// Reports the end of the process to the host, unless the host knows of the stop.
fn report_exit(shared: &Shared, host: &dyn Host, said_bye: bool, end: ProcessEnd) {
    let surprising = !said_bye && !shared.is_released();
    let mut author = None;
    if shared.stopped().is_none() && surprising {
        let mut end = end;
        if let Some((signal, crash_author)) = shared.crash_report() {
            (end, author) = (ProcessEnd::Signal(signal), crash_author);
        }
        shared.note_stop(Stop::Exited(end));
    }
    if let Some(stop) = shared.stopped() {
        shared.report_stop(host, stop, author, String::new());
    }
}

struct Supervisor {
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    incoming: Incoming,
    /// Calls of the host that JavaScript waits for, with their ids.
    calls: FuturesUnordered<BoxFuture<'static, (u64, HostResult)>>,
    /// Time of the last frame.
    last_heard: Instant,
    /// Number of checks without a frame since the last ping; `None` without a ping. A count instead
    /// of a clock, because frames that arrived while this process was suspended are read before the
    /// next check.
    missed_pings: Option<u32>,
    silence_limit: Option<Duration>,
    sync_calls: Arc<SyncCallWatchdog>,
    ready: Option<mpsc::Sender<Result<(), StartError>>>,
    /// Whether the isolate has started.
    started: bool,
    said_bye: bool,
}

type HostResult = Result<String, HostError>;

impl Supervisor {
    /// Processes frames until the connection ends.
    async fn event_loop(&mut self, data: UnixStream, mut kill_now: KillNow) -> io::Result<()> {
        let stream = tokio::net::UnixStream::from_std(data)?;
        let shared = self.shared.clone();
        let mut ping_timer = tokio::time::interval(PING_INTERVAL);
        ping_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked_children = false;
        loop {
            while let Some(frame) = self.incoming.take()? {
                self.handle_frame(frame).await?;
            }
            let end = shared.ends_at();
            let stuck = shared.children_end_at();
            tokio::select! {
                biased;
                Some((id, result)) = self.calls.next(), if !self.calls.is_empty() => {
                    self.send_host_result(id, result);
                }
                ready = stream.readable() => {
                    ready?;
                    if self.incoming.fill(|buffer| stream.try_read(buffer))? == Read::End {
                        return Ok(());
                    }
                    self.last_heard = Instant::now();
                    self.missed_pings = None;
                }
                ready = stream.writable(), if shared.outgoing.is_blocked() => {
                    ready?;
                    // A write error is noticed by reading.
                    _ = stream.try_io(Interest::WRITABLE, || shared.outgoing.flush());
                }
                () = shared.outgoing.blocked() => {}
                () = shared.ending.notified() => {}
                () = until(stuck), if !asked_children => {
                    asked_children = true;
                    shared.ask_children_to_end();
                }
                () = until(end) => {
                    shared.kill();
                    return Ok(());
                }
                Ok(()) = kill_now.changed(), if end.is_some() => {
                    shared.kill();
                    return Ok(());
                }
                _ = ping_timer.tick() => self.check_alive(),
            }
        }
    }

    async fn handle_frame(&mut self, frame: Frame) -> io::Result<()> {
        let id = frame.id;
        match frame.kind {
            Kind::Value | Kind::Nothing | Kind::Thrown if id == child::START_ID => {
                let started = match frame.kind {
                    Kind::Thrown => {
                        let exception: ThrownFrame = frame.head()?;
                        Err(StartError::Bootstrap(exception.message))
                    }
                    _ => Ok(()),
                };
                self.started = started.is_ok();
                if let Some(ready) = self.ready.take() {
                    // The caller is gone: the start took too long.
                    _ = ready.send(started);
                }
            }
            Kind::Value => self.shared.deliver(id, Ok(Some(frame.text()?))),
            Kind::Nothing => self.shared.deliver(id, Ok(None)),
            Kind::Thrown => {
                let exception: ThrownFrame = frame.head()?;
                self.shared.deliver(id, Err(Thrown::from(exception)));
            }
            Kind::HostCallSync | Kind::HostNotify => {
                let (kind, method) = (frame.kind, frame.head.clone());
                let args = frame.text()?;
                let call = || catch_panic(&method, || self.host.call_sync(&method, &args));
                let result = self.sync_calls.run(call);
                if kind == Kind::HostCallSync {
                    self.send_host_result(id, result);
                }
            }
            Kind::HostCall => {
                let (host, method) = (self.host.clone(), frame.head.clone());
                let args = frame.text()?;
                let name = method.clone();
                self.calls.push(Box::pin(async move {
                    let work = async move { host.call(method, args).await };
                    (id, catch_async_panic(&name, work).await)
                }));
                // The call starts before further frames are read, as on the JavaScript thread.
                self.start_calls().await;
            }
            Kind::Console => {
                let console = frame.head()?;
                self.host.console(console, &frame.text()?);
            }
            Kind::Fault => self.fault(frame.head()?),
            Kind::ThreadEvent => self.host.thread_event(frame.head()?),
            Kind::Imported => {
                let extension = u32::try_from(id).map_err(|_| wire::not_a_frame())?;
                self.shared.imports.note(extension, frame.path());
            }
            Kind::Packaged => self.shared.imports.note_packaged(&frame.path()),
            Kind::LoadInput => {
                let InputFrame {
                    extension,
                    kind,
                    answer,
                } = frame.head()?;
                let input = LoadInput::new(kind, frame.path());
                self.shared.imports.note_input(extension, input, answer);
            }
            Kind::Bye => self.said_bye = true,
            _ => return Err(wire::not_a_frame()),
        }
        Ok(())
    }

    /// Polls new calls once, and sends the results that are ready.
    async fn start_calls(&mut self) {
        let ready = futures::future::poll_fn(|cx| {
            let mut ready = Vec::new();
            while let Poll::Ready(Some(done)) = self.calls.poll_next_unpin(cx) {
                ready.push(done);
            }
            Poll::Ready(ready)
        });
        for (id, result) in ready.await {
            self.send_host_result(id, result);
        }
    }

    fn send_host_result(&self, id: u64, result: HostResult) {
        let (head, body) = match result {
            Ok(text) => (String::new(), text),
            Err(HostError { class, message }) => {
                let class = class.to_owned();
                (
                    wire::json(&HostErrorFrame { class, message }),
                    String::new(),
                )
            }
        };
        let outgoing = &self.shared.outgoing;
        let pushed = outgoing.push(Kind::HostResult, id, &head, body.as_bytes());
        if let Err(error) = pushed {
            // The caller must not wait forever.
            let class = "RangeError".to_owned();
            let message = error.to_string();
            let head = wire::json(&HostErrorFrame { class, message });
            // An error frame is short.
            _ = outgoing.push(Kind::HostResult, id, &head, b"");
        }
    }

    fn fault(&mut self, fault: Fault) {
        let Fault::Stopped {
            stop,
            author,
            stack,
        } = fault
        else {
            return self.host.fault(fault);
        };
        self.shared.note_stop(stop);
        // The first reason counts, which may be another one from the program.
        let stop = self.shared.stopped().unwrap_or(stop);
        self.calls.clear();
        self.shared.report_stop(&*self.host, stop, author, stack);
    }

    /// Checks that the process is alive while results are pending.
    fn check_alive(&mut self) {
        let Some(silence_limit) = self.silence_limit else {
            return;
        };
        if !self.shared.has_pending() {
            self.missed_pings = None;
            return;
        }
        match &mut self.missed_pings {
            Some(checks) => {
                *checks += 1;
                if PING_INTERVAL.saturating_mul(*checks) > silence_limit {
                    self.shared.kill_unresponsive();
                }
            }
            None if self.last_heard.elapsed() >= PING_INTERVAL => {
                self.missed_pings = Some(0);
                self.shared.command(Kind::Busy, PING_ID, "");
            }
            None => {}
        }
    }
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}
