//! The program's end of the connection: the handle of an isolate in a host process.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use js_runtime_ext::{Author, Console, Fault, Host, Stop};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pi_base::active_clock;
use pi_base::process_tree::{self, Termination};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, oneshot, watch};

use super::supervisor::{self, SupervisorArgs};
use super::wire::{self, Kind};
use super::writer::FrameWriter;
use super::{LoadRequest, PROCESS_NAME, StartRequest, child, crash_report};
use crate::attribution::heap_snapshot::RetainedHeap;
use crate::attribution::imports::Imports;
use crate::attribution::sources::Sources;
use crate::commands::LoadPhase;
use crate::error::StartError;
use crate::limits::memory::Memory;
use crate::node::inspector;
use crate::node::stdio;
use crate::options::{HostProcess, RuntimeOptions};
use crate::reply::{CallResult, Unanswered, spin_for_reply, unless_stopped};

/// Maximum time until the process has started, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time until the process answers whether JavaScript spins.
pub(super) const UNRESPONSIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time until a process whose isolate was stopped has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time after which its children are asked to end, too: native code may wait for one of them and
/// notices nothing else meanwhile.
const CHILDREN_GRACE: Duration = Duration::from_millis(100);

/// Maximum time until the offender of a stop is known and the host has processed the stop.
const REPORT_TIMEOUT: Duration = Duration::from_secs(4);

pub(crate) struct ProcessBackend {
    shared: Arc<Shared>,
    /// Closed when the supervisor has ended.
    ended: watch::Receiver<()>,
}

pub(super) struct Shared {
    pub outgoing: FrameWriter,
    control: Mutex<UnixStream>,
    /// Pending calls by their ids; `None` when there can be no more results.
    pending: Mutex<Option<HashMap<u64, oneshot::Sender<CallResult>>>>,
    stop: watch::Sender<Option<Stop>>,
    /// Whether the host knows of the stop.
    reported: watch::Sender<bool>,
    /// Whether a thread has begun to report the stop.
    reporting: AtomicBool,
    pub imports: Imports,
    ids: AtomicU64,
    process: AtomicU32,
    end: Mutex<End>,
    /// Notified when the process is about to end.
    pub ending: Notify,
}

#[derive(Default)]
struct End {
    /// Time at which the end was requested.
    begun_at: Option<Instant>,
    /// Held until the descendants of the process were asked to end. The program waits for that when
    /// it exits.
    ending: Option<Termination>,
    /// Whether the process was reaped. Its id may be reused then.
    gone: bool,
    /// Whether the owner of the runtime is gone and needs no report.
    released: bool,
}

impl ProcessBackend {
    pub fn start(
        how: &HostProcess,
        options: &RuntimeOptions,
        host: Arc<dyn Host>,
    ) -> Result<Self, StartError> {
        let (data, their_data) = UnixStream::pair().map_err(StartError::Process)?;
        let (control, their_control) = UnixStream::pair().map_err(StartError::Process)?;
        let prepared = [&data, &control].map(|stream| stream.set_nonblocking(true));
        prepared
            .into_iter()
            .collect::<io::Result<()>>()
            .map_err(StartError::Process)?;
        // Standard error also carries messages past JavaScript's own streams: of V8 and of addons.
        let (errors, readers) =
            stdio::line_reader(Console::Err, &host).map_err(StartError::Stdio)?;
        let mut command = Command::new(&how.program);
        command
            .arg0(PROCESS_NAME)
            .args(&how.args)
            .stdin(OwnedFd::from(their_data))
            .stdout(OwnedFd::from(their_control))
            .stderr(errors);
        let shared = Arc::new(Shared {
            outgoing: FrameWriter::new(data.try_clone().map_err(StartError::Process)?),
            control: Mutex::new(control),
            pending: Mutex::new(Some(HashMap::new())),
            stop: watch::Sender::new(None),
            reported: watch::Sender::new(false),
            reporting: AtomicBool::new(false),
            imports: Imports::default(),
            ids: AtomicU64::new(child::START_ID + 1),
            process: AtomicU32::new(0),
            end: Mutex::default(),
            ending: Notify::new(),
        });
        let start = wire::json(&StartRequest::from_options(
            options,
            inspector::for_next_process(),
        ));
        shared
            .outgoing
            .push(Kind::Start, child::START_ID, &start, b"")
            .map_err(StartError::Process)?;
        let (ready, started) = mpsc::channel();
        let args = SupervisorArgs {
            shared: shared.clone(),
            host,
            data,
            readers,
            ready,
            silence_limit: options.spin_limit.checked_add(UNRESPONSIVE_TIMEOUT),
            sync_call_limit: options.spin_limit,
            tasks: tokio::runtime::Handle::try_current().ok(),
        };
        let (running, ended) = watch::channel(());
        // The supervisor thread starts the process, because the process is killed when the thread
        // that started it ends.
        std::thread::Builder::new()
            .name("js-process".into())
            .spawn(move || {
                let _running = running;
                supervisor::run(args, command);
            })
            .map_err(StartError::Thread)?;
        let backend = Self { shared, ended };
        match started.recv_timeout(START_TIMEOUT) {
            Ok(Ok(())) => Ok(backend),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                backend.shared.kill_unresponsive();
                let seconds = START_TIMEOUT.as_secs();
                Err(StartError::Bootstrap(format!(
                    "its process was not there after {seconds} s"
                )))
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(StartError::Bootstrap("its process is gone".into()))
            }
        }
    }

    pub async fn load(
        &self,
        phase: LoadPhase,
        extension: u32,
        path: &Path,
        limit: Duration,
    ) -> Result<CallResult, Unanswered> {
        let load = wire::json(&LoadRequest {
            phase,
            extension,
            limit,
        });
        let path = path.as_os_str().as_bytes();
        self.request(Kind::Load, &load, path).await
    }

    pub async fn call(&self, function: &str, args: String) -> Result<CallResult, Unanswered> {
        self.request(Kind::Call, function, args.as_bytes()).await
    }

    pub async fn release(&self) -> Result<CallResult, Unanswered> {
        self.request(Kind::Release, "", b"").await
    }

    async fn request(&self, kind: Kind, head: &str, body: &[u8]) -> Result<CallResult, Unanswered> {
        let replied = async {
            let (reply, mut result) = self.shared.register()?;
            let sent = self.shared.outgoing.send(kind, reply.id, head, body).await;
            sent.ok()?;
            match spin_for_reply(&mut result) {
                Some(result) => result,
                None => result.await.ok(),
            }
        };
        unless_stopped(replied, self.wait_until_reported(), || self.stopped()).await
    }

    async fn request_value<T: DeserializeOwned>(&self, kind: Kind) -> Option<T> {
        let result = self.request(kind, "", b"").await.ok()?.ok()??;
        serde_json::from_str(&result).ok()
    }

    pub async fn memory(&self) -> Option<Memory> {
        self.request_value(Kind::Memory).await
    }

    pub async fn retained_heap(&self) -> Option<Result<RetainedHeap, String>> {
        self.request_value(Kind::RetainedHeap).await
    }

    pub async fn heap_used(&self) -> Option<usize> {
        self.request_value(Kind::HeapUsed).await
    }

    /// Sends a request over the control channel. Returns `None` if the process is gone, or is
    /// killed because it does not answer.
    async fn request_control<T: DeserializeOwned>(&self, kind: Kind, head: &str) -> Option<T> {
        let (reply, result) = self.shared.register()?;
        self.shared.command(kind, reply.id, head);
        let Some(result) = active_clock::timeout(UNRESPONSIVE_TIMEOUT, result).await else {
            self.shared.kill_unresponsive();
            return None;
        };
        let result = result.ok()?.ok()??;
        serde_json::from_str(&result).ok()
    }

    pub async fn busy_for(&self) -> Option<Duration> {
        self.request_control(Kind::Busy, "").await?
    }

    pub async fn stop_if_busy(&self, at_least: Duration) -> bool {
        let busy = self
            .request_control(Kind::StopIfBusy, &wire::json(&at_least))
            .await;
        match busy {
            Some(Some(stop)) => {
                self.shared.note_stop(stop);
                true
            }
            Some(None) => false,
            // The process is gone; the reason is known soon.
            None => true,
        }
    }

    /// Returns the sources of all extensions; `None` if the process is gone.
    pub async fn sources(&self) -> Option<HashMap<u32, Sources>> {
        self.request_control(Kind::Sources, "").await
    }

    pub fn stopped(&self) -> Option<Stop> {
        self.shared.stopped()
    }

    pub fn stop(&self, reason: Stop) {
        self.shared.note_stop(reason);
        self.shared.command(Kind::Stop, 0, &wire::json(&reason));
    }

    /// Resolves when the isolate has been stopped and the host knows of it.
    pub async fn wait_until_reported(&self) -> Stop {
        let mut stop = self.shared.stop.subscribe();
        // The value is copied, because the guard must not be held across an await.
        let reason = stop.wait_for(Option::is_some).await.map(|reason| *reason);
        let mut reported = self.shared.reported.subscribe();
        let _ = tokio::time::timeout(REPORT_TIMEOUT, reported.wait_for(|reported| *reported)).await;
        match reason {
            Ok(reason) => reason.unwrap_or(Stop::Requested),
            // The sender is a part of `self`.
            Err(_) => std::future::pending().await,
        }
    }

    pub fn imports(&self) -> &Imports {
        &self.shared.imports
    }

    pub fn process_id(&self) -> u32 {
        self.shared.process.load(Ordering::Relaxed)
    }

    pub async fn wait_ended(&self) {
        // The only error: the supervisor has dropped the sender.
        _ = self.ended.clone().changed().await;
    }

    pub fn end(&mut self) {
        self.shared.end().released = true;
        self.shared.command(Kind::End, 0, "");
        self.shared.begin_exit();
    }
}

impl Drop for ProcessBackend {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// Registers a pending reply. Returns `None` if there will be no result.
    fn register(self: &Arc<Self>) -> Option<(PendingReply, oneshot::Receiver<CallResult>)> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.pending().as_mut()?.insert(id, sender);
        let shared = self.clone();
        Some((PendingReply { id, shared }, receiver))
    }

    fn pending(&self) -> MutexGuard<'_, Option<HashMap<u64, oneshot::Sender<CallResult>>>> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn deliver(&self, id: u64, result: CallResult) {
        let sender = self.pending().as_mut().and_then(|all| all.remove(&id));
        if let Some(sender) = sender {
            // A caller that has dropped its future has abandoned the call.
            _ = sender.send(result);
        }
    }

    pub fn has_pending(&self) -> bool {
        self.pending().as_ref().is_some_and(|all| !all.is_empty())
    }

    /// Drops all pending replies: there will be no results.
    pub fn close(&self) {
        *self.pending() = None;
        self.outgoing.close();
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self) -> MutexGuard<'_, UnixStream> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a frame over the control channel, which is read while JavaScript runs.
    pub fn command(&self, kind: Kind, id: u64, head: &str) {
        let written =
            wire::frame(kind, id, head, b"").and_then(|frame| (&*self.control()).write_all(&frame));
        if written.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            // The process has not read the earlier frames.
            self.kill_unresponsive();
        }
    }

    /// Returns the crash report of a process that has ended.
    pub fn crash_report(&self) -> Option<(i32, Option<Author>)> {
        crash_report::read(&self.control())
    }

    pub fn stopped(&self) -> Option<Stop> {
        *self.stop.borrow()
    }

    /// Records that the isolate is stopped; the first reason counts.
    pub fn note_stop(&self, reason: Stop) {
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(reason);
            first
        });
        self.begin_exit();
    }

    /// Reports the stop to the host, once, unless the owner is gone.
    pub fn report_stop(&self, host: &dyn Host, stop: Stop, author: Option<Author>, stack: String) {
        if self.reporting.swap(true, Ordering::Relaxed) {
            return;
        }
        if !self.is_released() {
            host.fault(Fault::Stopped {
                stop,
                author,
                stack,
            });
        }
        self.reported.send_replace(true);
    }

    /// Starts the time in which the process may end by itself.
    fn begin_exit(&self) {
        let mut end = self.end();
        end.begun_at.get_or_insert_with(Instant::now);
        if !end.gone {
            end.ending.get_or_insert_with(Termination::start);
        }
        drop(end);
        self.ending.notify_one();
    }

    /// Returns the time at which the process is killed.
    pub fn ends_at(&self) -> Option<Instant> {
        self.end().begun_at.map(|begun_at| begun_at + EXIT_TIMEOUT)
    }

    /// Returns the time at which [`Self::ask_children_to_end`] is due.
    pub fn children_end_at(&self) -> Option<Instant> {
        self.end()
            .begun_at
            .map(|begun_at| begun_at + CHILDREN_GRACE)
    }

    pub fn ask_children_to_end(&self) {
        process_tree::signal_session_members(self.process.load(Ordering::Relaxed).cast_signed());
    }

    pub fn note_process(&self, id: u32) {
        self.process.store(id, Ordering::Relaxed);
        process_tree::add_host_process(id.cast_signed());
    }

    pub fn is_released(&self) -> bool {
        self.end().released
    }

    /// Kills a process that no longer answers.
    pub fn kill_unresponsive(&self) {
        self.note_stop(Stop::Unresponsive);
        self.kill();
    }

    /// Kills the process. The supervisor ends its descendants.
    pub fn kill(&self) {
        let end = self.end();
        let process = self.process.load(Ordering::Relaxed);
        if let Ok(process @ 1..) = i32::try_from(process)
            && !end.gone
        {
            // The process may have ended by itself.
            _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }

    /// Records that the process was reaped and its descendants were asked to end.
    pub fn note_reaped(&self) {
        let mut end = self.end();
        end.gone = true;
        process_tree::remove_host_process(self.process.load(Ordering::Relaxed).cast_signed());
        end.ending = None;
    }
}

/// A pending request. Dropping it abandons the call.
struct PendingReply {
    id: u64,
    shared: Arc<Shared>,
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let sender = self
            .shared
            .pending()
            .as_mut()
            .and_then(|all| all.remove(&self.id));
        if sender.is_some() {
            // A frame without a body is never too long.
            _ = self.shared.outgoing.push(Kind::Abandon, self.id, "", b"");
        }
    }
}
