//! Runs the isolate on a thread of this process.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use js_runtime_ext::{Fault, Host, Stop};
use tokio::sync::{mpsc, oneshot, watch};

use crate::attribution::heap_snapshot::RetainedHeap;
use crate::attribution::imports::Imports;
use crate::commands::{Command, CommandSource, LoadPhase};
use crate::error::StartError;
use crate::event_loop::EventLoop;
use crate::isolate::{self, Isolate};
use crate::js_thread;
use crate::limits::memory::Memory;
use crate::limits::watchdog::Watchdog;
use crate::node::inspector;
use crate::options::RuntimeOptions;
use crate::reply::{CallResult, Reply, Unanswered, spin_for_reply, unless_stopped};

/// Number of commands that may wait for the JavaScript thread before their senders do.
const COMMAND_QUEUE_SIZE: usize = 256;

/// One isolate on one thread. Dropping it ends both without waiting for them.
pub(crate) struct ThreadBackend {
    /// `None` after the shutdown.
    commands: Option<mpsc::Sender<Command>>,
    watchdog: Watchdog,
    imports: Imports,
    /// Closed when the thread has ended.
    ended: watch::Receiver<()>,
}

impl ThreadBackend {
    pub fn start(options: RuntimeOptions, host: Arc<dyn Host>) -> Result<Self, StartError> {
        let (commands, receiver) = mpsc::channel(COMMAND_QUEUE_SIZE);
        let (ready, started) = std::sync::mpsc::channel();
        let name = inspector::thread_name(&options.label);
        let (running, ended) = watch::channel(());
        js_thread::spawn(name, move || {
            let _running = running;
            let panic_host = host.clone();
            let thread = AssertUnwindSafe(|| run(options, host, ready, |_| receiver));
            // A panic of deno_runtime ends the extensions, not the program. Unfinished work is
            // dropped, and calls return `Gone`.
            if std::panic::catch_unwind(thread).is_err() {
                panic_host.fault(Fault::from_runtime(
                    "The JavaScript runtime has crashed (the reason is on standard error); \
                         its extensions are gone until they are reloaded",
                ));
            }
        })
        .map_err(StartError::Thread)?;
        let (watchdog, imports) = started
            .recv()
            .map_err(|_| StartError::Bootstrap("its thread panicked".into()))??;
        Ok(Self {
            commands: Some(commands),
            watchdog,
            imports,
            ended,
        })
    }

    pub async fn load(
        &self,
        phase: LoadPhase,
        id: u32,
        path: PathBuf,
        limit: Duration,
    ) -> Result<CallResult, Unanswered> {
        self.send(|reply| Command::Load {
            phase,
            id,
            path,
            limit,
            reply,
        })
        .await
    }

    pub async fn call(&self, function: String, args: String) -> Result<CallResult, Unanswered> {
        self.send(|reply| Command::Call {
            function,
            args,
            reply,
        })
        .await
    }

    pub async fn release(&self) -> Result<CallResult, Unanswered> {
        self.send(Command::Release).await
    }

    async fn send(&self, command: impl FnOnce(Reply) -> Command) -> Result<CallResult, Unanswered> {
        let (reply, mut result) = oneshot::channel();
        let replied = async {
            let commands = self.commands.as_ref()?;
            commands.send(command(Reply::Local(reply))).await.ok()?;
            match spin_for_reply(&mut result) {
                Some(result) => result,
                None => result.await.ok(),
            }
        };
        unless_stopped(replied, self.watchdog.wait_until_reported(), || {
            self.stopped()
        })
        .await
    }

    pub fn stopped(&self) -> Option<Stop> {
        self.watchdog.stopped()
    }

    pub fn imports(&self) -> &Imports {
        &self.imports
    }

    pub fn busy_for(&self) -> Option<Duration> {
        self.watchdog.busy_for()
    }

    pub fn stop(&self, reason: Stop) {
        self.watchdog.stop(reason);
    }

    pub async fn wait_until_reported(&self) -> Stop {
        self.watchdog.wait_until_reported().await
    }

    pub async fn memory(&self) -> Option<Memory> {
        self.request_value(Command::Memory).await
    }

    pub async fn retained_heap(&self) -> Option<Result<RetainedHeap, String>> {
        self.request_value(Command::RetainedHeap).await
    }

    pub async fn heap_used(&self) -> Option<usize> {
        self.request_value(Command::HeapUsed).await
    }

    /// Sends a command for a value. Returns `None` if the isolate is gone.
    async fn request_value<T: Send + 'static>(
        &self,
        command: impl FnOnce(Box<dyn FnOnce(T) + Send>) -> Command,
    ) -> Option<T> {
        let (reply, result) = oneshot::channel();
        let commands = self.commands.as_ref()?;
        // The receiver may be gone.
        let reply = move |value| _ = reply.send(value);
        commands.send(command(Box::new(reply))).await.ok()?;
        result.await.ok()
    }

    pub async fn wait_ended(&self) {
        // The only error: the thread has dropped the sender.
        _ = self.ended.clone().changed().await;
    }

    pub fn end(&mut self) {
        if self.commands.take().is_some() {
            self.watchdog.release();
        }
    }
}

/// Main function of the thread. `commands` is called on its tokio runtime.
pub(crate) fn run<C: CommandSource>(
    options: RuntimeOptions,
    host: Arc<dyn Host>,
    ready: std::sync::mpsc::Sender<Result<(Watchdog, Imports), StartError>>,
    commands: impl FnOnce(&mut Isolate) -> C,
) {
    // MainWorker must be made inside a current-thread runtime.
    let tokio = deno_runtime::tokio_util::create_basic_runtime();
    tokio.block_on(async move {
        match isolate::create(&options, &host) {
            Ok((mut isolate, watchdog)) => {
                // If the starter is gone, so is the sender of commands, and the loop ends at once.
                _ = ready.send(Ok((watchdog.clone(), isolate.loader.imports.clone())));
                let commands = commands(&mut isolate);
                EventLoop::new(isolate, watchdog.clone(), host, options.spin_limit)
                    .run(commands)
                    .await;
                // The host process may end next.
                if watchdog.stopped().is_some() && !watchdog.released() {
                    watchdog.wait_until_reported().await;
                }
            }
            Err(error) => _ = ready.send(Err(error)),
        }
    });
    // Pending native work (a DNS lookup) must not block the thread.
    tokio.shutdown_background();
}

impl Drop for ThreadBackend {
    fn drop(&mut self) {
        self.end();
    }
}
