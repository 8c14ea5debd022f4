//! The isolate on a thread of this process.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use js_runtime_ext::{Fault, Host, Stop};
use tokio::sync::{mpsc, oneshot};

use crate::commands::{Command, Commands};
use crate::control::Control;
use crate::error::StartError;
use crate::event_loop::EventLoop;
use crate::heap_owners::HeapOwners;
use crate::imports::Imports;
use crate::inspector;
use crate::memory::Memory;
use crate::options::RuntimeOptions;
use crate::reply::{Answer, Reply};
use crate::runtime::{Unanswered, linger, unless_stopped};
use crate::worker::{self, Isolate};

/// Requests that may wait for the JavaScript thread before their senders do.
const QUEUE: usize = 256;

/// swc and V8 need a lot in debug builds.
pub(crate) const STACK: usize = if cfg!(debug_assertions) { 16 } else { 8 } << 20;

/// One isolate on one thread. Dropping it ends both, without waiting for them.
pub(crate) struct Local {
    /// `None` once it is shut down.
    commands: Option<mpsc::Sender<Command>>,
    control: Control,
    imports: Imports,
    thread: JoinHandle<()>,
}

impl Local {
    pub fn start(options: RuntimeOptions, host: Arc<dyn Host>) -> Result<Self, StartError> {
        let (commands, receiver) = mpsc::channel(QUEUE);
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(inspector::thread_name(&options))
            .stack_size(STACK)
            .spawn(move || {
                let witness = host.clone();
                let thread = AssertUnwindSafe(|| run(options, host, ready, |_| receiver));
                // A panic of deno_runtime costs the extensions, not the program. What
                // it left half done is dropped; calls answer `Gone`.
                if std::panic::catch_unwind(thread).is_err() {
                    witness.fault(Fault::of_the_runtime(
                        "The JavaScript runtime has crashed (the reason is on standard error); \
                         its extensions are gone until they are reloaded",
                    ));
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

    pub async fn load(
        &self,
        id: u32,
        path: PathBuf,
        limit: Duration,
    ) -> Result<Answer, Unanswered> {
        self.ask(|reply| Command::Load {
            id,
            path,
            limit,
            reply,
        })
        .await
    }

    pub async fn call(&self, function: String, args: String) -> Result<Answer, Unanswered> {
        self.ask(|reply| Command::Call {
            function,
            args,
            reply,
        })
        .await
    }

    async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<Answer, Unanswered> {
        let (reply, mut answer) = oneshot::channel();
        let answered = async {
            let commands = self.commands.as_ref()?;
            commands.send(command(Reply::Here(reply))).await.ok()?;
            match linger(&mut answer) {
                Some(answer) => answer,
                None => answer.await.ok(),
            }
        };
        unless_stopped(answered, self.control.wait_until_told(), || self.stopped()).await
    }

    pub fn stopped(&self) -> Option<Stop> {
        self.control.stopped()
    }

    pub fn imports(&self) -> &Imports {
        &self.imports
    }

    pub fn busy_for(&self) -> Option<Duration> {
        self.control.busy_for()
    }

    pub fn stop(&self, reason: Stop) {
        self.control.stop(reason);
    }

    pub async fn wait_until_told(&self) -> Stop {
        self.control.wait_until_told().await
    }

    pub async fn memory(&self) -> Option<Memory> {
        self.value(Command::Memory).await
    }

    pub async fn heap_owners(&self) -> Option<Result<HeapOwners, String>> {
        self.value(Command::HeapOwners).await
    }

    pub async fn heap_used(&self) -> Option<usize> {
        self.value(Command::HeapUsed).await
    }

    /// `None` if the isolate is gone.
    async fn value<T: Send + 'static>(
        &self,
        command: impl FnOnce(Box<dyn FnOnce(T) + Send>) -> Command,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let commands = self.commands.as_ref()?;
        // Nobody to answer to is fine.
        let reply = move |value| _ = reply.send(value);
        commands.send(command(Box::new(reply))).await.ok()?;
        answer.await.ok()
    }

    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    pub fn end(&mut self) {
        if self.commands.take().is_some() {
            self.control.release();
        }
    }
}

/// What the thread does from its beginning to its end.
/// `commands` is called on its tokio runtime.
pub(crate) fn run<C: Commands>(
    options: RuntimeOptions,
    host: Arc<dyn Host>,
    ready: std::sync::mpsc::Sender<Result<(Control, Imports), StartError>>,
    commands: impl FnOnce(&mut Isolate) -> C,
) {
    // MainWorker must be made inside of a current-thread runtime.
    let tokio = deno_runtime::tokio_util::create_basic_runtime();
    tokio.block_on(async move {
        match worker::create(&options, &host) {
            Ok((mut isolate, control)) => {
                // If the starter is gone, so is the sender of commands, and the loop
                // ends at once.
                _ = ready.send(Ok((control.clone(), isolate.loader.imports.clone())));
                let commands = commands(&mut isolate);
                EventLoop::new(isolate, control.clone(), host, options.spin_limit)
                    .run(commands)
                    .await;
                // The process of the isolate may end next.
                if control.stopped().is_some() && !control.released() {
                    control.wait_until_told().await;
                }
            }
            Err(error) => _ = ready.send(Err(error)),
        }
    });
    // Native work that is still under way (a DNS lookup) must not hold the thread.
    tokio.shutdown_background();
}

impl Drop for Local {
    fn drop(&mut self) {
        self.end();
    }
}
