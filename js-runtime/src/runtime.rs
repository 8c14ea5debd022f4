//! The handle through which the rest of the program, from any thread, talks to one
//! isolate, wherever that lives.

use pi_base::active_clock;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use js_runtime_ext::{Host, Stop};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::error::{CallError, LoadError, StartError};
use crate::heap_owners::HeapOwners;
use crate::imports::Imports;
use crate::local::Local;
use crate::memory::Memory;
use crate::options::RuntimeOptions;
use crate::process::Parent;
use crate::reply::Answer;

/// How long a stopped thread may take to answer its calls itself. It is longer only
/// when native code (`execSync`) holds the thread, which nothing can end.
const GRACE: Duration = Duration::from_millis(50);

/// How long a caller looks for the answer before its task sleeps. Most handlers
/// take a few microseconds; being woken takes 25 and more, on either side.
const LINGER: Duration = Duration::from_micros(40);

/// How long [`Runtime::ended`] waits for the thread or process.
const FAREWELL: Duration = Duration::from_secs(1);

/// One isolate on one thread, of this process or of one of its own. Dropping it ends
/// both, without waiting for them.
pub struct Runtime(Place);

enum Place {
    Thread(Local),
    Process(Parent),
}

/// Why the isolate was stopped, if it was, or else it is gone.
pub(crate) type Unanswered = Option<Stop>;

impl Runtime {
    /// Takes about 15 ms, with a process of its own about 40; nothing of V8 exists
    /// before (call [`crate::init`] first).
    pub fn start(options: RuntimeOptions, host: Arc<dyn Host>) -> Result<Self, StartError> {
        Ok(Self(match options.process.clone() {
            None => Place::Thread(Local::start(options, host)?),
            Some(process) => Place::Process(Parent::start(&process, &options, host)?),
        }))
    }

    /// Evaluates the module at `path` and hands its namespace to the function
    /// `activate` of the bridge, whose promise is awaited. `limit` holds for the
    /// whole and, instead of the spin limit, for each stretch of JavaScript.
    pub async fn load(&self, id: u32, path: &Path, limit: Duration) -> Result<(), LoadError> {
        let answered = async {
            match &self.0 {
                Place::Thread(local) => local.load(id, path.to_path_buf(), limit).await,
                Place::Process(parent) => parent.load(id, path, limit).await,
            }
        };
        let answered = active_clock::timeout(limit, answered).await;
        self.imports().end(id);
        match answered {
            Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(thrown))) => Err(LoadError::Failed {
                message: thrown.sentence(),
                stack: thrown.stack,
            }),
            Some(Err(None)) => Err(LoadError::Gone),
            Some(Err(Some(_))) => Err(LoadError::Stopped(self.wait_until_told().await)),
            // It spins. The next one would have to wait for it, and would be taken
            // for the one that does.
            None if self.stop_if_busy(limit / 2).await => {
                Err(LoadError::Stopped(self.wait_until_told().await))
            }
            None => Err(LoadError::TimedOut(limit)),
        }
    }

    /// Calls a function of the bridge with one JSON text; the answer is JSON text,
    /// or nothing for `undefined`. Several calls may be under way at once. Dropping
    /// the future abandons the call: JavaScript may go on, nobody learns of it.
    pub async fn call(&self, function: &str, args: String) -> Result<Option<String>, CallError> {
        let answered = match &self.0 {
            Place::Thread(local) => local.call(function.to_string(), args).await,
            Place::Process(parent) => parent.call(function, args).await,
        };
        match answered {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(thrown)) => Err(CallError::Thrown {
                message: thrown.message,
                plain: thrown.plain,
                stack: thrown.stack,
            }),
            Err(Some(stop)) => Err(CallError::Stopped(stop)),
            Err(None) => Err(CallError::Gone),
        }
    }

    /// Why it was ended, if it was.
    pub fn stopped(&self) -> Option<Stop> {
        match &self.0 {
            Place::Thread(local) => local.stopped(),
            Place::Process(parent) => parent.stopped(),
        }
    }

    /// When the isolate has been stopped and the host knows who is to blame.
    pub async fn wait_until_told(&self) -> Stop {
        match &self.0 {
            Place::Thread(local) => local.wait_until_told().await,
            Place::Process(parent) => parent.wait_until_told().await,
        }
    }

    /// Where the code came from; also when the isolate is gone.
    pub fn imports(&self) -> &Imports {
        match &self.0 {
            Place::Thread(local) => local.imports(),
            Place::Process(parent) => parent.imports(),
        }
    }

    /// How long JavaScript has now been running without giving the thread back.
    pub async fn busy_for(&self) -> Option<Duration> {
        match &self.0 {
            Place::Thread(local) => local.busy_for(),
            Place::Process(parent) => parent.busy_for().await,
        }
    }

    /// Stops the isolate if JavaScript has not given the thread back for so long, or if
    /// its process does not even say whether it has. Tells whether it was stopped.
    pub async fn stop_if_busy(&self, at_least: Duration) -> bool {
        match &self.0 {
            Place::Thread(local) => {
                let busy = local.busy_for().is_some_and(|busy| busy >= at_least);
                if busy {
                    local.stop(Stop::Deadline);
                }
                // It may have been stopped a moment before.
                local.stopped().is_some()
            }
            Place::Process(parent) => parent.stop_if_busy(at_least).await,
        }
    }

    /// Ends the isolate for good, whatever it does. [`js_runtime_ext::Fault::Stopped`]
    /// follows.
    pub fn stop(&self, reason: Stop) {
        match &self.0 {
            Place::Thread(local) => local.stop(reason),
            Place::Process(parent) => parent.stop(reason),
        }
    }

    /// `None` if the isolate is gone, or does not give its thread back within `limit`.
    pub async fn memory(&self, limit: Duration) -> Option<Memory> {
        let asked = async {
            match &self.0 {
                Place::Thread(local) => local.memory().await,
                Place::Process(parent) => parent.memory().await,
            }
        };
        tokio::time::timeout(limit, asked).await.ok()?
    }

    /// What each extension alone keeps alive in V8's heap, or why that is not known. Expensive:
    /// no JavaScript runs meanwhile. `None` as for [`Self::memory`].
    pub async fn heap_owners(&self, limit: Duration) -> Option<Result<HeapOwners, String>> {
        let asked = async {
            match &self.0 {
                Place::Thread(local) => local.heap_owners().await,
                Place::Process(parent) => parent.heap_owners().await,
            }
        };
        tokio::time::timeout(limit, asked).await.ok()?
    }

    /// Bytes of V8 heap in use after a garbage collection. Expensive.
    pub async fn heap_used(&self) -> Result<usize, CallError> {
        let used = match &self.0 {
            Place::Thread(local) => local.heap_used().await,
            Place::Process(parent) => parent.heap_used().await,
        };
        used.ok_or_else(|| match self.stopped() {
            Some(stop) => CallError::Stopped(stop),
            None => CallError::Gone,
        })
    }

    /// The process of the isolate, if it has one of its own.
    pub fn process_id(&self) -> Option<u32> {
        match &self.0 {
            Place::Thread(_) => None,
            Place::Process(parent) => Some(parent.process_id()),
        }
    }

    /// Ends the isolate and waits as [`Self::ended`] does. What JavaScript still had to
    /// do is dropped, timers, sockets and all.
    pub async fn shutdown(mut self) {
        match &mut self.0 {
            Place::Thread(local) => local.end(),
            Place::Process(parent) => parent.end(),
        }
        self.ended().await;
    }

    /// Waits until the thread or process of a stopped isolate has ended and what it
    /// printed has arrived; at most a second: native code cannot be interrupted.
    pub async fn ended(&self) {
        let has_ended = || match &self.0 {
            Place::Thread(local) => local.has_ended(),
            Place::Process(parent) => parent.has_ended(),
        };
        let deadline = Instant::now() + FAREWELL;
        while !has_ended() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The answer, unless the isolate is stopped before. `None` means that nobody is there
/// any more who could answer.
pub(crate) async fn unless_stopped(
    answered: impl Future<Output = Option<Answer>>,
    told: impl Future<Output = Stop>,
    stopped: impl Fn() -> Option<Stop>,
) -> Result<Answer, Unanswered> {
    let grace = async {
        let stop = told.await;
        tokio::time::sleep(GRACE).await;
        stop
    };
    tokio::select! {
        biased;
        answer = answered => answer.ok_or_else(stopped),
        stop = grace => Err(Some(stop)),
    }
}

/// The answer, if it comes at once; nothing in it says that none will come. Who has
/// been told so once must not ask again.
pub(crate) fn linger<T>(answer: &mut oneshot::Receiver<T>) -> Option<Option<T>> {
    let start = Instant::now();
    while start.elapsed() < LINGER {
        match answer.try_recv() {
            Ok(answer) => return Some(Some(answer)),
            Err(TryRecvError::Closed) => return Some(None),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    None
}
