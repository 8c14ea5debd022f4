//! The handle through which the rest of the program, from any thread, talks to one
//! JavaScript thread.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use js_runtime_ext::{Fault, Host, Stop};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use crate::control::Control;
use crate::error::{CallError, LoadError, StartError, Thrown};
use crate::event_loop::{Command, EventLoop, Reply};
use crate::imports::Imports;
use crate::memory::Memory;
use crate::options::RuntimeOptions;
use crate::worker;

/// Requests that may wait for the JavaScript thread before their senders do.
const QUEUE: usize = 256;

/// swc and V8 need a lot in debug builds.
pub(crate) const STACK: usize = if cfg!(debug_assertions) { 16 } else { 8 } << 20;

/// How long a stopped thread may take to answer its calls itself. It is longer only
/// when native code (`execSync`) holds the thread, which nothing can end.
const GRACE: Duration = Duration::from_millis(50);

/// How long a caller looks for the answer before its task sleeps. Most handlers
/// take a few microseconds; being woken takes 25 and more, on either side.
const LINGER: Duration = Duration::from_micros(40);

/// How long [`Runtime::ended`] waits for the thread.
const FAREWELL: Duration = Duration::from_secs(1);

/// One isolate on one thread. Dropping it ends both, without waiting for them.
pub struct Runtime {
    /// `None` once it is shut down.
    commands: Option<mpsc::Sender<Command>>,
    control: Control,
    imports: Imports,
    thread: JoinHandle<()>,
}

impl Runtime {
    /// Takes about 15 ms; nothing of V8 exists before (call [`crate::init`] first).
    pub fn start(options: RuntimeOptions, host: Arc<dyn Host>) -> Result<Self, StartError> {
        let (commands, receiver) = mpsc::channel(QUEUE);
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("js".into())
            .stack_size(STACK)
            .spawn(move || {
                let witness = host.clone();
                let thread = AssertUnwindSafe(|| run(options, host, ready, receiver));
                // A panic of deno_runtime costs the extensions, not the program. What
                // it left half done is dropped; calls answer `Gone`.
                if std::panic::catch_unwind(thread).is_err() {
                    witness.fault(Fault::Uncaught {
                        message: "The JavaScript runtime has crashed (the reason is on standard \
                                  error); its extensions are gone until they are reloaded"
                            .into(),
                    });
                }
            })
            .map_err(StartError::Thread)?;
        let (control, imports) = started
            .recv()
            .map_err(|_| StartError::Bootstrap("its thread panicked".into()))??;
        Ok(Self {
            commands: Some(commands),
            control,
            imports,
            thread,
        })
    }

    /// Evaluates the module at `path` and hands its namespace to the function
    /// `activate` of the bridge, whose promise is awaited. `limit` holds for the
    /// whole and, instead of the spin limit, for each stretch of JavaScript.
    pub async fn load(&self, id: u32, path: &Path, limit: Duration) -> Result<(), LoadError> {
        let path = path.to_path_buf();
        let answered = self.ask(|reply| Command::Load {
            id,
            path,
            limit,
            reply,
        });
        let answered = tokio::time::timeout(limit, answered).await;
        self.imports.end(id);
        match answered {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(thrown))) => Err(LoadError::Failed {
                message: thrown.sentence(),
                stack: thrown.stack,
            }),
            Ok(Err(None)) => Err(LoadError::Gone),
            Ok(Err(Some(_))) => Err(LoadError::Stopped(self.control.wait_until_told().await)),
            // It spins. The next one would have to wait for it, and would be taken
            // for the one that does.
            Err(_) if self.busy_for().is_some_and(|busy| busy >= limit / 2) => {
                self.stop(Stop::Deadline);
                Err(LoadError::Stopped(self.control.wait_until_told().await))
            }
            Err(_) => Err(LoadError::TimedOut(limit)),
        }
    }

    /// Calls a function of the bridge with one JSON text; the answer is JSON text,
    /// or nothing for `undefined`. Several calls may be under way at once. Dropping
    /// the future abandons the call: JavaScript may go on, nobody learns of it.
    pub async fn call(&self, function: &str, args: String) -> Result<Option<String>, CallError> {
        let function = function.to_string();
        let answered = self.ask(|reply| Command::Call {
            function,
            args,
            reply,
        });
        match answered.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(thrown)) => Err(CallError::Thrown {
                message: thrown.message,
                stack: thrown.stack,
            }),
            Err(Some(stop)) => Err(CallError::Stopped(stop)),
            Err(None) => Err(CallError::Gone),
        }
    }

    /// The error is why the isolate was stopped, if it was, or else that it is gone.
    async fn ask(
        &self,
        command: impl FnOnce(Reply) -> Command,
    ) -> Result<Result<Option<String>, Thrown>, Option<Stop>> {
        let (reply, mut answer) = oneshot::channel();
        let answered = async {
            let commands = self.commands.as_ref()?;
            commands.send(command(reply)).await.ok()?;
            match linger(&mut answer) {
                Some(answer) => answer,
                None => answer.await.ok(),
            }
        };
        let stopped = async {
            let stop = self.control.wait_until_told().await;
            tokio::time::sleep(GRACE).await;
            stop
        };
        tokio::select! {
            biased;
            answer = answered => answer.ok_or_else(|| self.control.stopped()),
            stop = stopped => Err(Some(stop)),
        }
    }

    /// Why it was ended, if it was.
    pub fn stopped(&self) -> Option<Stop> {
        self.control.stopped()
    }

    /// Where the code came from; also when the isolate is gone.
    pub fn imports(&self) -> &Imports {
        &self.imports
    }

    /// How long JavaScript has now been running without giving the thread back.
    pub fn busy_for(&self) -> Option<Duration> {
        self.control.busy_for()
    }

    /// Ends the isolate for good, whatever it does. [`js_runtime_ext::Fault::Stopped`]
    /// follows.
    pub fn stop(&self, reason: Stop) {
        self.control.stop(reason);
    }

    /// `None` if the isolate is gone, or does not give its thread back within `limit`.
    pub async fn memory(&self, limit: Duration) -> Option<Memory> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            let commands = self.commands.as_ref()?;
            commands.send(Command::Memory(reply)).await.ok()?;
            answer.await.ok()
        };
        tokio::time::timeout(limit, asked).await.ok()?
    }

    /// Bytes of V8 heap in use after a garbage collection. Expensive.
    pub async fn heap_used(&self) -> Result<usize, CallError> {
        let gone = || match self.control.stopped() {
            Some(stop) => CallError::Stopped(stop),
            None => CallError::Gone,
        };
        let (reply, answer) = oneshot::channel();
        let commands = self.commands.as_ref().ok_or_else(gone)?;
        let sent = commands.send(Command::HeapUsed(reply)).await;
        sent.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }

    /// Ends the thread and waits for it as [`Self::ended`] does. What JavaScript still
    /// had to do is dropped, timers, sockets and all.
    pub async fn shutdown(mut self) {
        self.end();
        self.ended().await;
    }

    /// Waits until the thread of a stopped isolate has ended and what it printed has
    /// arrived; at most a second: native code cannot be interrupted.
    pub async fn ended(&self) {
        let deadline = Instant::now() + FAREWELL;
        while !self.thread.is_finished() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn end(&mut self) {
        if self.commands.take().is_some() {
            self.control.release();
        }
    }
}

/// The answer, if it comes at once; nothing in it says that none will come. Who has
/// been told so once must not ask again.
fn linger<T>(answer: &mut oneshot::Receiver<T>) -> Option<Option<T>> {
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

/// What the thread does from its beginning to its end.
fn run(
    options: RuntimeOptions,
    host: Arc<dyn Host>,
    ready: std::sync::mpsc::Sender<Result<(Control, Imports), StartError>>,
    commands: mpsc::Receiver<Command>,
) {
    // MainWorker must be made inside of a current-thread runtime.
    let tokio = deno_runtime::tokio_util::create_basic_runtime();
    tokio.block_on(async move {
        match worker::create(&options, &host) {
            Ok((isolate, control)) => {
                // If the starter is gone, so is the sender of commands, and the loop
                // ends at once.
                _ = ready.send(Ok((control.clone(), isolate.loader.imports.clone())));
                EventLoop::new(isolate, control, host, options.spin_limit)
                    .run(commands)
                    .await;
            }
            Err(error) => _ = ready.send(Err(error)),
        }
    });
    // Native work that is still under way (a DNS lookup) must not hold the thread.
    tokio.shutdown_background();
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.end();
    }
}
