//! The thread of the program that starts the process of an isolate, does what that asks
//! of the host, hands out its answers, and sees it end.

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
use js_runtime_ext::{Death, Fault, Host, HostError, Stop, caught, caught_later};
use tokio::io::Interest;
use tokio::runtime::Handle;
use tokio::time::MissedTickBehavior;

use super::parent::Shared;
use super::standing::Standing;
use super::wire::{self, Frame, Incoming, Kind, Read};
use super::{Exception, Refusal, child};
use crate::error::{StartError, Thrown};
use crate::stdio::Readers;
use pi_base::process_tree::{self, KillNow};

/// How often it is asked whether the process is still there, while an answer of its is
/// waited for.
const LOOK: Duration = Duration::from_secs(5);

/// How long a process that has closed its connection may take to be gone.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// Nobody has this id.
const NOBODY: u64 = u64::MAX;

pub(super) struct Serving {
    pub shared: Arc<Shared>,
    pub host: Arc<dyn Host>,
    pub data: UnixStream,
    pub readers: Readers,
    /// Is told when the isolate is there.
    pub ready: mpsc::Sender<Result<(), StartError>>,
    /// How long the process may stay silent when it is asked for a sign of life.
    pub patience: Option<Duration>,
    /// How long a call of the host may take for which JavaScript stands still.
    pub standing: Duration,
    /// Of the program.
    pub tasks: Option<Handle>,
}

/// From the start of the process to its end.
pub(super) fn serve(serving: Serving, mut command: Command) {
    let Serving {
        shared,
        host,
        data,
        readers,
        ready,
        patience,
        standing,
        tasks,
    } = serving;
    let kill_now = process_tree::kill_now();
    let spawned = command.spawn();
    // It has the process's ends of the connections.
    drop(command);
    let mut process = match spawned {
        Ok(process) => process,
        Err(error) => {
            _ = ready.send(Err(StartError::Process(error)));
            return shared.close();
        }
    };
    shared.note_process(process.id());
    let mut service = Service {
        shared: shared.clone(),
        host: host.clone(),
        incoming: Incoming::default(),
        calls: FuturesUnordered::new(),
        heard: Instant::now(),
        asked: None,
        patience,
        standing: Standing::new(shared.clone(), host.clone(), standing, tasks),
        ready: Some(ready.clone()),
        started: false,
        said_bye: false,
    };
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    if let Ok(tokio) = &tokio {
        // Whatever ends it, the process is done for.
        _ = tokio.block_on(service.live(data, kill_now.clone()));
    }
    let Service {
        started, said_bye, ..
    } = service;
    let death = see_off(&shared, &mut process, kill_now);
    if let Ok(tokio) = tokio {
        tokio.shutdown_background();
    }
    if started {
        mourn(&shared, &*host, said_bye, death);
    }
    // Nobody hears it but a starter who waits still.
    _ = ready.send(Err(StartError::Bootstrap(format!("its process {death}"))));
    shared.close();
    readers.finish();
}

/// Waits for the process, and takes what it has left behind along.
fn see_off(shared: &Shared, process: &mut Child, kill_now: KillNow) -> Death {
    let deadline = Instant::now() + LAST_BREATH;
    let mut hung_up = false;
    while !has_ended(process) {
        if Instant::now() >= deadline && !hung_up {
            hung_up = true;
            shared.kill();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // Before it is buried: its number is that of its session, and may be another's then.
    process_tree::terminate_session(process.id().cast_signed(), kill_now);
    let status = process.wait();
    shared.bury();
    match status {
        Ok(status) if !hung_up => death(status),
        _ => Death::HungUp,
    }
}

/// Without burying it.
#[cfg(target_os = "linux")]
fn has_ended(process: &mut Child) -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    use nix::unistd::Pid;

    let id = Id::Pid(Pid::from_raw(process.id().cast_signed()));
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    // An error means that somebody else has buried it.
    !matches!(waitid(id, flags), Ok(WaitStatus::StillAlive))
}

#[cfg(not(target_os = "linux"))]
fn has_ended(process: &mut Child) -> bool {
    !matches!(process.try_wait(), Ok(None))
}

fn death(status: ExitStatus) -> Death {
    match (status.signal(), status.code()) {
        (Some(signal), _) => Death::Signal(signal),
        (None, code) => Death::Exit(code.unwrap_or_default()),
    }
}

/// Tells the host, if it does not know yet.
fn mourn(shared: &Shared, host: &dyn Host, said_bye: bool, death: Death) {
    let surprising = !said_bye && !shared.is_released();
    let mut author = None;
    if shared.stopped().is_none() && surprising {
        let mut death = death;
        if let Some((signal, whose)) = shared.last_words() {
            (death, author) = (Death::Signal(signal), whose);
        }
        shared.note_stop(Stop::Died(death));
    }
    if let Some(stop) = shared.stopped() {
        shared.tell(host, stop, author, String::new());
    }
}

struct Service {
    shared: Arc<Shared>,
    host: Arc<dyn Host>,
    incoming: Incoming,
    /// What JavaScript waits for, with its ids.
    calls: FuturesUnordered<BoxFuture<'static, (u64, HostAnswer)>>,
    /// When the process was last heard of.
    heard: Instant,
    /// How often it was looked for a sign of life since one was asked for. No clock: what
    /// the process has said while this one was stopped is read before the next look.
    asked: Option<u32>,
    patience: Option<Duration>,
    standing: Arc<Standing>,
    ready: Option<mpsc::Sender<Result<(), StartError>>>,
    /// The isolate is there, or was.
    started: bool,
    said_bye: bool,
}

type HostAnswer = Result<String, HostError>;

impl Service {
    /// Until the connection ends.
    async fn live(&mut self, data: UnixStream, mut kill_now: KillNow) -> io::Result<()> {
        let stream = tokio::net::UnixStream::from_std(data)?;
        let shared = self.shared.clone();
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asked_children = false;
        loop {
            while let Some(frame) = self.incoming.take()? {
                self.obey(frame).await?;
            }
            let end = shared.ends_at();
            let stuck = shared.is_stuck_at();
            tokio::select! {
                biased;
                Some((id, answer)) = self.calls.next(), if !self.calls.is_empty() => {
                    self.answer(id, answer);
                }
                ready = stream.readable() => {
                    ready?;
                    if self.incoming.fill(|buffer| stream.try_read(buffer))? == Read::End {
                        return Ok(());
                    }
                    self.heard = Instant::now();
                    self.asked = None;
                }
                ready = stream.writable(), if shared.outgoing.is_blocked() => {
                    ready?;
                    // What cannot be written is found out by reading.
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
                _ = look.tick() => self.look(),
            }
        }
    }

    async fn obey(&mut self, frame: Frame) -> io::Result<()> {
        let id = frame.id;
        match frame.kind {
            Kind::Value | Kind::Nothing | Kind::Thrown if id == child::FIRST => {
                let started = match frame.kind {
                    Kind::Thrown => {
                        let exception: Exception = frame.head()?;
                        Err(StartError::Bootstrap(exception.message))
                    }
                    _ => Ok(()),
                };
                self.started = started.is_ok();
                if let Some(ready) = self.ready.take() {
                    // Nobody waits any more: it took too long.
                    _ = ready.send(started);
                }
            }
            Kind::Value => self.shared.answered(id, Ok(Some(frame.text()?))),
            Kind::Nothing => self.shared.answered(id, Ok(None)),
            Kind::Thrown => {
                let exception: Exception = frame.head()?;
                self.shared.answered(id, Err(Thrown::from(exception)));
            }
            Kind::HostCallSync | Kind::HostTell => {
                let (kind, method) = (frame.kind, frame.head.clone());
                let args = frame.text()?;
                let call = || caught(&method, || self.host.call_sync(&method, &args));
                let answer = self.standing.during(call);
                if kind == Kind::HostCallSync {
                    self.answer(id, answer);
                }
            }
            Kind::HostCall => {
                let (host, method) = (self.host.clone(), frame.head.clone());
                let args = frame.text()?;
                let name = method.clone();
                self.calls.push(Box::pin(async move {
                    let work = async move { host.call(method, args).await };
                    (id, caught_later(&name, work).await)
                }));
                // It begins before anything else is heard, as on the JavaScript thread.
                self.begin().await;
            }
            Kind::Console => {
                let console = frame.head()?;
                self.host.console(console, &frame.text()?);
            }
            Kind::Fault => self.fault(frame.head()?),
            Kind::Held => self.host.held(frame.head()?),
            Kind::Imported => {
                let extension = u32::try_from(id).map_err(|_| wire::broken())?;
                self.shared.imports.note(extension, frame.path());
            }
            Kind::Packaged => self.shared.imports.note_packaged(&frame.path()),
            Kind::Bye => self.said_bye = true,
            _ => return Err(wire::broken()),
        }
        Ok(())
    }

    /// Lets what is new go as far as it comes, and hands out what is ready.
    async fn begin(&mut self) {
        let ready = futures::future::poll_fn(|cx| {
            let mut ready = Vec::new();
            while let Poll::Ready(Some(done)) = self.calls.poll_next_unpin(cx) {
                ready.push(done);
            }
            Poll::Ready(ready)
        });
        for (id, answer) in ready.await {
            self.answer(id, answer);
        }
    }

    fn answer(&self, id: u64, answer: HostAnswer) {
        let (head, body) = match answer {
            Ok(text) => (String::new(), text),
            Err(HostError { class, message }) => {
                let class = class.to_owned();
                (wire::json(&Refusal { class, message }), String::new())
            }
        };
        let outgoing = &self.shared.outgoing;
        let answered = outgoing.push(Kind::HostAnswer, id, &head, body.as_bytes());
        if let Err(error) = answered {
            // Whoever waits for it must not wait for ever.
            let class = "RangeError".to_owned();
            let message = error.to_string();
            let head = wire::json(&Refusal { class, message });
            // This one is short.
            _ = outgoing.push(Kind::HostAnswer, id, &head, b"");
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
        // The reason that counts may be another, which was given here.
        let stop = self.shared.stopped().unwrap_or(stop);
        self.calls.clear();
        self.shared.tell(&*self.host, stop, author, stack);
    }

    /// While answers are waited for: is the process still there at all?
    fn look(&mut self) {
        let Some(patience) = self.patience else {
            return;
        };
        if !self.shared.is_waited_for() {
            self.asked = None;
            return;
        }
        match &mut self.asked {
            Some(looks) => {
                *looks += 1;
                if LOOK.saturating_mul(*looks) > patience {
                    self.shared.give_up();
                }
            }
            None if self.heard.elapsed() >= LOOK => {
                self.asked = Some(0);
                self.shared.command(Kind::Busy, NOBODY, "");
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
