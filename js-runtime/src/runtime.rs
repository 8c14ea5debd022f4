//! The handle through which any thread of the program uses one isolate, wherever the isolate runs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use js_runtime_ext::{Host, Stop};
use pi_base::active_clock;

use crate::attribution::heap_snapshot::RetainedHeap;
use crate::attribution::imports::Imports;
use crate::attribution::sources::Sources;
use crate::backend::process::ProcessBackend;
use crate::backend::thread::ThreadBackend;
use crate::commands::LoadPhase;
use crate::error::{CallError, LoadError, StartError};
use crate::limits::memory::Memory;
use crate::options::RuntimeOptions;

/// Maximum time that [`Runtime::wait_ended`] waits for the thread or process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// One isolate on one thread, of this process or of one of its own. Dropping the handle ends both
/// without waiting for them.
pub struct Runtime(Backend);

enum Backend {
    Thread(ThreadBackend),
    Process(ProcessBackend),
}

impl Runtime {
    /// Starts an isolate. Takes about 15 ms, with a process of its own about 40.
    pub fn start(options: RuntimeOptions, host: Arc<dyn Host>) -> Result<Self, StartError> {
        Ok(Self(match options.process.clone() {
            None => Backend::Thread(ThreadBackend::start(options, host)?),
            Some(process) => Backend::Process(ProcessBackend::start(&process, &options, host)?),
        }))
    }

    /// Reads, resolves, compiles and links the module at `path` with all that it imports. No code of
    /// it runs before [`Self::load`], which uses the result. `limit` is as for [`Self::load`].
    pub async fn prepare(&self, id: u32, path: &Path, limit: Duration) -> Result<(), LoadError> {
        self.load_phase(LoadPhase::Prepare, id, path, limit).await
    }

    /// Evaluates the module at `path` and passes its namespace to the function `activate` of the
    /// bridge, whose promise is awaited. `limit` applies to the whole load and, instead of the spin
    /// limit, to each of its time slices.
    pub async fn load(&self, id: u32, path: &Path, limit: Duration) -> Result<(), LoadError> {
        self.load_phase(LoadPhase::Run, id, path, limit).await
    }

    async fn load_phase(
        &self,
        phase: LoadPhase,
        id: u32,
        path: &Path,
        limit: Duration,
    ) -> Result<(), LoadError> {
        let result = async {
            match &self.0 {
                Backend::Thread(thread) => thread.load(phase, id, path.to_path_buf(), limit).await,
                Backend::Process(process) => process.load(phase, id, path, limit).await,
            }
        };
        let result = active_clock::timeout(limit, result).await;
        self.imports().end_load(id);
        match result {
            Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(thrown))) => Err(LoadError::Failed {
                message: thrown.sentence(),
                stack: thrown.stack,
            }),
            Some(Err(None)) => Err(LoadError::Gone),
            Some(Err(Some(_))) => Err(LoadError::Stopped(self.wait_until_reported().await)),
            // The load spins. The next load would have to wait for it and would be blamed.
            None if self.stop_if_busy(limit / 2).await => {
                Err(LoadError::Stopped(self.wait_until_reported().await))
            }
            None => Err(LoadError::TimedOut(limit)),
        }
    }

    /// Calls a function of the bridge with one JSON text. The result is JSON text, or `None` for
    /// `undefined`. Several calls may be pending at once. Dropping the future abandons the call:
    /// JavaScript may continue, and its result is lost.
    pub async fn call(&self, function: &str, args: String) -> Result<Option<String>, CallError> {
        let result = match &self.0 {
            Backend::Thread(thread) => thread.call(function.to_string(), args).await,
            Backend::Process(process) => process.call(function, args).await,
        };
        match result {
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

    /// Returns the reason of the stop, if the isolate was stopped.
    pub fn stopped(&self) -> Option<Stop> {
        match &self.0 {
            Backend::Thread(thread) => thread.stopped(),
            Backend::Process(process) => process.stopped(),
        }
    }

    /// Waits until the isolate has been stopped and the host knows the offender.
    pub async fn wait_until_reported(&self) -> Stop {
        match &self.0 {
            Backend::Thread(thread) => thread.wait_until_reported().await,
            Backend::Process(process) => process.wait_until_reported().await,
        }
    }

    /// Returns the files of which the code was loaded. They stay known when the isolate is gone.
    pub fn imports(&self) -> &Imports {
        match &self.0 {
            Backend::Thread(thread) => thread.imports(),
            Backend::Process(process) => process.imports(),
        }
    }

    /// Returns the sources that each extension was loaded from. `None` if the isolate had a process
    /// of its own that is gone.
    pub async fn sources(&self) -> Option<HashMap<u32, Sources>> {
        match &self.0 {
            Backend::Thread(thread) => Some(thread.imports().sources()),
            Backend::Process(process) => process.sources().await,
        }
    }

    /// Returns how long the current time slice has lasted, if JavaScript runs.
    pub async fn busy_for(&self) -> Option<Duration> {
        match &self.0 {
            Backend::Thread(thread) => thread.busy_for(),
            Backend::Process(process) => process.busy_for().await,
        }
    }

    /// Closes what the extensions hold: timers, servers, connections, files, databases, workers and
    /// child processes. The isolate goes on.
    pub async fn release(&self) {
        // Without an answer the isolate is gone, and with it what it held.
        let _ = match &self.0 {
            Backend::Thread(thread) => thread.release().await,
            Backend::Process(process) => process.release().await,
        };
    }

    /// Stops the isolate if its current time slice has lasted `at_least` so long, or if its process
    /// does not answer the question. Returns true if the isolate is stopped.
    pub async fn stop_if_busy(&self, at_least: Duration) -> bool {
        match &self.0 {
            Backend::Thread(thread) => {
                let busy = thread.busy_for().is_some_and(|busy| busy >= at_least);
                if busy {
                    thread.stop(Stop::Deadline);
                }
                // The isolate may have been stopped just before.
                thread.stopped().is_some()
            }
            Backend::Process(process) => process.stop_if_busy(at_least).await,
        }
    }

    /// Stops the isolate, whatever it does. [`js_runtime_ext::Fault::Stopped`] follows.
    pub fn stop(&self, reason: Stop) {
        match &self.0 {
            Backend::Thread(thread) => thread.stop(reason),
            Backend::Process(process) => process.stop(reason),
        }
    }

    /// Returns the memory statistics of the isolate. `None` if the isolate is gone, or does not
    /// free its thread within `limit`.
    pub async fn memory(&self, limit: Duration) -> Option<Memory> {
        let memory = async {
            match &self.0 {
                Backend::Thread(thread) => thread.memory().await,
                Backend::Process(process) => process.memory().await,
            }
        };
        tokio::time::timeout(limit, memory).await.ok()?
    }

    /// Returns how much of V8's heap each extension alone keeps alive, or an error. Expensive: no
    /// JavaScript runs meanwhile. `None` as for [`Self::memory`].
    pub async fn retained_heap(&self, limit: Duration) -> Option<Result<RetainedHeap, String>> {
        let memory = async {
            match &self.0 {
                Backend::Thread(thread) => thread.retained_heap().await,
                Backend::Process(process) => process.retained_heap().await,
            }
        };
        tokio::time::timeout(limit, memory).await.ok()?
    }

    /// Returns the bytes of V8's heap in use after a garbage collection. Expensive.
    pub async fn heap_used(&self) -> Result<usize, CallError> {
        let used = match &self.0 {
            Backend::Thread(thread) => thread.heap_used().await,
            Backend::Process(process) => process.heap_used().await,
        };
        used.ok_or_else(|| match self.stopped() {
            Some(stop) => CallError::Stopped(stop),
            None => CallError::Gone,
        })
    }

    /// Returns the id of the isolate's process, if it has one of its own.
    pub fn process_id(&self) -> Option<u32> {
        match &self.0 {
            Backend::Thread(_) => None,
            Backend::Process(process) => Some(process.process_id()),
        }
    }

    /// Ends the isolate and waits as [`Self::wait_ended`] does. Pending work of JavaScript is
    /// dropped, including timers and sockets.
    pub async fn shutdown(mut self) {
        match &mut self.0 {
            Backend::Thread(thread) => thread.end(),
            Backend::Process(process) => process.end(),
        }
        self.wait_ended().await;
    }

    /// Waits until the thread or process of a stopped isolate has ended and its output has arrived,
    /// at most one second. Native code cannot be interrupted.
    pub async fn wait_ended(&self) {
        let ended = async {
            match &self.0 {
                Backend::Thread(thread) => thread.wait_ended().await,
                Backend::Process(process) => process.wait_ended().await,
            }
        };
        _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await;
    }
}
