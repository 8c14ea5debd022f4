//! The program's end of the connection: the handle through which it talks to an isolate
//! in a process of its own.

use pi_base::active_clock;
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
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use js_runtime_ext::{Author, Console, Fault, Host, Stop};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, oneshot, watch};

use super::outgoing::Outgoing;
use super::serving::{self, Serving};
use super::wire::{self, Kind};
use super::{Load, NAME, Start, child, last_words};
use crate::error::StartError;
use crate::heap_owners::HeapOwners;
use crate::imports::Imports;
use crate::inspector;
use crate::memory::Memory;
use crate::options::{HostProcess, RuntimeOptions};
use crate::reply::Answer;
use crate::runtime::{Unanswered, linger, unless_stopped};
use crate::stdio;
use pi_base::process_tree::{self, Termination};

/// How long a process may take to be there, on a machine that has other things to do.
const BEGINNING: Duration = Duration::from_secs(60);

/// How long a process may take to say whether JavaScript spins.
pub(super) const UNANSWERED: Duration = Duration::from_secs(5);

/// How long a process whose isolate has been stopped may take to end.
const ENDING: Duration = Duration::from_secs(2);

/// How long before what it has started is asked to end, too: native code may wait for that,
/// and hears nothing meanwhile.
const STUCK: Duration = Duration::from_millis(100);

/// How long the host is given to be told of a stop.
const TOLD: Duration = Duration::from_secs(1);

pub(crate) struct Parent {
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

pub(super) struct Shared {
    pub outgoing: Outgoing,
    control: Mutex<UnixStream>,
    /// Calls by their ids; `None` when nobody answers any more.
    pending: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
    stop: watch::Sender<Option<Stop>>,
    /// The host knows of the stop.
    told: watch::Sender<bool>,
    /// Somebody tells it.
    telling: AtomicBool,
    pub imports: Imports,
    ids: AtomicU64,
    process: AtomicU32,
    end: Mutex<End>,
    /// The end is near.
    pub ending: Notify,
}

#[derive(Default)]
struct End {
    /// When it was asked for.
    begun: Option<Instant>,
    /// Until what the process has left behind is seen off: the program waits for that.
    ending: Option<Termination>,
    /// It is not there any more, and its number may be another's.
    gone: bool,
    /// Nobody wants the isolate any more, or to hear of it.
    released: bool,
}

impl Parent {
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
        // What is written past JavaScript's own streams: V8's last words, and addons.
        let (errors, readers) = stdio::reader(Console::Err, &host).map_err(StartError::Stdio)?;
        let mut command = Command::new(&how.program);
        command
            .arg0(NAME)
            .args(&how.args)
            .stdin(OwnedFd::from(their_data))
            .stdout(OwnedFd::from(their_control))
            .stderr(errors);
        let shared = Arc::new(Shared {
            outgoing: Outgoing::new(data.try_clone().map_err(StartError::Process)?),
            control: Mutex::new(control),
            pending: Mutex::new(Some(HashMap::new())),
            stop: watch::Sender::new(None),
            told: watch::Sender::new(false),
            telling: AtomicBool::new(false),
            imports: Imports::default(),
            ids: AtomicU64::new(child::FIRST + 1),
            process: AtomicU32::new(0),
            end: Mutex::default(),
            ending: Notify::new(),
        });
        let start = wire::json(&Start::of(options, inspector::elsewhere()));
        shared
            .outgoing
            .push(Kind::Start, child::FIRST, &start, b"")
            .map_err(StartError::Process)?;
        let (ready, started) = mpsc::channel();
        let serving = Serving {
            shared: shared.clone(),
            host,
            data,
            readers,
            ready,
            patience: options.spin_limit.checked_add(UNANSWERED),
            standing: options.spin_limit,
            tasks: tokio::runtime::Handle::try_current().ok(),
        };
        // It starts the process, too: a process ends with the thread that started it.
        let thread = std::thread::Builder::new()
            .name("js-process".into())
            .spawn(move || serving::serve(serving, command))
            .map_err(StartError::Thread)?;
        let parent = Self {
            shared,
            serving: thread,
        };
        match started.recv_timeout(BEGINNING) {
            Ok(Ok(())) => Ok(parent),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                parent.shared.give_up();
                let seconds = BEGINNING.as_secs();
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
        extension: u32,
        path: &Path,
        limit: Duration,
    ) -> Result<Answer, Unanswered> {
        let load = wire::json(&Load { extension, limit });
        let path = path.as_os_str().as_bytes();
        self.ask(Kind::Load, &load, path).await
    }

    pub async fn call(&self, function: &str, args: String) -> Result<Answer, Unanswered> {
        self.ask(Kind::Call, function, args.as_bytes()).await
    }

    async fn ask(&self, kind: Kind, head: &str, body: &[u8]) -> Result<Answer, Unanswered> {
        let answered = async {
            let (asked, mut answer) = self.shared.expect()?;
            let sent = self.shared.outgoing.send(kind, asked.id, head, body).await;
            sent.ok()?;
            match linger(&mut answer) {
                Some(answer) => answer,
                None => answer.await.ok(),
            }
        };
        unless_stopped(answered, self.wait_until_told(), || self.stopped()).await
    }

    async fn value<T: DeserializeOwned>(&self, kind: Kind) -> Option<T> {
        let answer = self.ask(kind, "", b"").await.ok()?.ok()??;
        serde_json::from_str(&answer).ok()
    }

    pub async fn memory(&self) -> Option<Memory> {
        self.value(Kind::Memory).await
    }

    pub async fn heap_owners(&self) -> Option<Result<HeapOwners, String>> {
        self.value(Kind::HeapOwners).await
    }

    pub async fn heap_used(&self) -> Option<usize> {
        self.value(Kind::HeapUsed).await
    }

    /// Asks past the JavaScript thread. `None` if the process is gone, or is killed
    /// because it does not answer.
    async fn ask_aside<T: DeserializeOwned>(&self, kind: Kind, head: &str) -> Option<T> {
        let (asked, answer) = self.shared.expect()?;
        self.shared.command(kind, asked.id, head);
        let Some(answer) = active_clock::timeout(UNANSWERED, answer).await else {
            self.shared.give_up();
            return None;
        };
        let answer = answer.ok()?.ok()??;
        serde_json::from_str(&answer).ok()
    }

    pub async fn busy_for(&self) -> Option<Duration> {
        self.ask_aside(Kind::Busy, "").await?
    }

    pub async fn stop_if_busy(&self, at_least: Duration) -> bool {
        let busy = self
            .ask_aside(Kind::StopIfBusy, &wire::json(&at_least))
            .await;
        match busy {
            Some(Some(stop)) => {
                self.shared.note_stop(stop);
                true
            }
            Some(None) => false,
            // It is gone; who it was that killed it is known soon.
            None => true,
        }
    }

    pub fn stopped(&self) -> Option<Stop> {
        self.shared.stopped()
    }

    pub fn stop(&self, reason: Stop) {
        self.shared.note_stop(reason);
        self.shared.command(Kind::Stop, 0, &wire::json(&reason));
    }

    /// When the isolate has been stopped and the host knows of it.
    pub async fn wait_until_told(&self) -> Stop {
        let mut stop = self.shared.stop.subscribe();
        // Copied out: the guard must not be held while anything is awaited.
        let reason = stop.wait_for(Option::is_some).await.map(|reason| *reason);
        let mut told = self.shared.told.subscribe();
        let _ = tokio::time::timeout(TOLD, told.wait_for(|told| *told)).await;
        match reason {
            Ok(reason) => reason.unwrap_or(Stop::Asked),
            // The sender lives in `self`.
            Err(_) => std::future::pending().await,
        }
    }

    pub fn imports(&self) -> &Imports {
        &self.shared.imports
    }

    pub fn process_id(&self) -> u32 {
        self.shared.process.load(Ordering::Relaxed)
    }

    pub fn has_ended(&self) -> bool {
        self.serving.is_finished()
    }

    pub fn end(&mut self) {
        self.shared.end().released = true;
        self.shared.command(Kind::End, 0, "");
        self.shared.end_soon();
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    /// A place for an answer. `None` if there will be none.
    fn expect(self: &Arc<Self>) -> Option<(Asked, oneshot::Receiver<Answer>)> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.pending().as_mut()?.insert(id, sender);
        let shared = self.clone();
        Some((Asked { id, shared }, receiver))
    }

    fn pending(&self) -> MutexGuard<'_, Option<HashMap<u64, oneshot::Sender<Answer>>>> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn answered(&self, id: u64, answer: Answer) {
        let place = self.pending().as_mut().and_then(|all| all.remove(&id));
        if let Some(place) = place {
            // A caller that has gone away abandoned the call.
            _ = place.send(answer);
        }
    }

    pub fn is_waited_for(&self) -> bool {
        self.pending().as_ref().is_some_and(|all| !all.is_empty())
    }

    /// Nobody answers any more.
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

    /// Says something that is heard whatever JavaScript does.
    pub fn command(&self, kind: Kind, id: u64, head: &str) {
        let written =
            wire::frame(kind, id, head, b"").and_then(|frame| (&*self.control()).write_all(&frame));
        if written.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            // It has not heard what was said before.
            self.give_up();
        }
    }

    /// What a process that has ended said of that.
    pub fn last_words(&self) -> Option<(i32, Option<Author>)> {
        last_words::heard(&self.control())
    }

    pub fn stopped(&self) -> Option<Stop> {
        *self.stop.borrow()
    }

    /// The isolate is stopped; the first reason counts.
    pub fn note_stop(&self, reason: Stop) {
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(reason);
            first
        });
        self.end_soon();
    }

    /// Once; nobody wants to hear of an isolate that was let go.
    pub fn tell(&self, host: &dyn Host, stop: Stop, author: Option<Author>, stack: String) {
        if self.telling.swap(true, Ordering::Relaxed) {
            return;
        }
        if !self.is_released() {
            host.fault(Fault::Stopped {
                stop,
                author,
                stack,
            });
        }
        self.told.send_replace(true);
    }

    /// The process has a moment to end by itself.
    fn end_soon(&self) {
        let mut end = self.end();
        end.begun.get_or_insert_with(Instant::now);
        if !end.gone {
            end.ending.get_or_insert_with(Termination::start);
        }
        drop(end);
        self.ending.notify_one();
    }

    /// When the process is killed if it is still there.
    pub fn ends_at(&self) -> Option<Instant> {
        self.end().begun.map(|begun| begun + ENDING)
    }

    /// When [`Self::ask_children_to_end`] is due.
    pub fn is_stuck_at(&self) -> Option<Instant> {
        self.end().begun.map(|begun| begun + STUCK)
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

    /// It does not answer any more.
    pub fn give_up(&self) {
        self.note_stop(Stop::Unresponsive);
        self.kill();
    }

    /// Ends the process. Whoever serves it ends what it leaves behind.
    pub fn kill(&self) {
        let end = self.end();
        let process = self.process.load(Ordering::Relaxed);
        if let Ok(process @ 1..) = i32::try_from(process)
            && !end.gone
        {
            // It may have ended by itself.
            _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }

    /// The process has been waited for, and what it has left behind is asked to end.
    pub fn bury(&self) {
        let mut end = self.end();
        end.gone = true;
        process_tree::remove_host_process(self.process.load(Ordering::Relaxed).cast_signed());
        end.ending = None;
    }
}

/// A call that is under way.
struct Asked {
    id: u64,
    shared: Arc<Shared>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let place = self
            .shared
            .pending()
            .as_mut()
            .and_then(|all| all.remove(&self.id));
        if place.is_some() {
            // Without a body it is not too long for a frame.
            _ = self.shared.outgoing.push(Kind::Abandon, self.id, "", b"");
        }
    }
}
