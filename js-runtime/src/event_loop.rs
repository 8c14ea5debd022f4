//! The main loop of the JavaScript thread: takes commands, drives deno_core's event loop, and
//! answers calls.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use deno_core::error::CoreError;
use deno_core::{ModuleId, PollEventLoopOptions, v8};
use js_runtime_ext::{Author, EXIT_MESSAGE, Fault, Host, Stop, ThreadMonitor as _, Uncaught};

use crate::attribution::heap_snapshot;
use crate::attribution::interrupt;
use crate::attribution::intrinsics_guard;
use crate::bridge::{self, CallOutcome, Pending};
use crate::commands::{Command, CommandSource, LoadPhase};
use crate::error::Thrown;
use crate::isolate::Isolate;
use crate::limits::descriptors::DescriptorLimit;
use crate::limits::memory::{self, Memory};
use crate::limits::watchdog::Watchdog;
use crate::loader::preload::{preload, preload_builtins, preload_dynamic_imports};
use crate::node::inspector;
use crate::reply::{CallResult, Reply};

/// A command that JavaScript has not answered yet.
struct PendingCall {
    state: CallState,
    reply: Reply,
    /// Limit of one time slice while this call is pending, if longer than usual.
    limit: Option<Duration>,
}

enum CallState {
    /// The module of an extension is evaluated, with its top-level `await`s.
    Evaluating {
        id: u32,
        module: ModuleId,
        evaluated: Pin<Box<dyn Future<Output = Result<(), CoreError>>>>,
    },
    Value(Pending),
}

pub(crate) struct EventLoop {
    // Declared before the isolate, because it holds handles of it.
    pending: Vec<PendingCall>,
    /// Entry modules of extensions that are prepared and not evaluated.
    prepared: HashMap<u32, ModuleId>,
    isolate: Isolate,
    watchdog: Watchdog,
    host: Arc<dyn Host>,
    spin_limit: Duration,
    /// Messages of loads that failed since the last poll of the event loop.
    failed: Vec<String>,
    descriptor_limit: DescriptorLimit,
    /// Whether old cache entries were deleted. This waits until the first load has finished.
    cache_swept: bool,
    /// Time after a load until code caches are made of the functions that ran.
    warm_up_timer: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// Time for which the thread spins for another command before it sleeps, because the handlers of
/// one event are called one after the other. A longer time makes the slowest calls slower on two
/// cores.
const COMMAND_SPIN: Duration = Duration::from_micros(10);
/// Time after the last load until the loaded extensions are taken to have started.
const WARM_UP_DELAY: Duration = Duration::from_secs(2);
/// Time that the cache writer gets at the end to write what was compiled last.
const CACHE_WRITE_TIMEOUT: Duration = Duration::from_millis(500);
/// Commands in a row before the rest of the event loop gets a turn.
const MAX_COMMANDS_PER_TURN: usize = 64;

fn spin_for_command(commands: &mut impl CommandSource) -> bool {
    let start = Instant::now();
    while commands.is_empty() && start.elapsed() < COMMAND_SPIN {
        std::hint::spin_loop();
    }
    !commands.is_empty()
}

impl EventLoop {
    pub fn new(
        isolate: Isolate,
        watchdog: Watchdog,
        host: Arc<dyn Host>,
        spin_limit: Duration,
    ) -> Self {
        Self {
            pending: Vec::new(),
            prepared: HashMap::new(),
            isolate,
            watchdog,
            host,
            spin_limit,
            failed: Vec::new(),
            descriptor_limit: DescriptorLimit::new(),
            cache_swept: false,
            warm_up_timer: None,
        }
    }

    /// Runs until there can be no more commands, or the isolate is stopped.
    pub async fn run(mut self, mut commands: impl CommandSource) {
        // Retires the watchdog also after a panic.
        let _retire = RetireOnDrop(self.watchdog.clone());
        let imports = &self.isolate.loader.imports;
        interrupt::install(&mut self.isolate.worker.js_runtime, &self.watchdog, imports);
        let steps = poll_fn(|cx| {
            for _ in 0..MAX_COMMANDS_PER_TURN {
                self.watchdog.register_event_loop(cx.waker());
                self.watchdog.enter(self.limit());
                let result = self.poll(cx, &mut commands);
                self.watchdog.leave();
                memory::poll_external(self.isolate.worker.js_runtime.v8_isolate());
                if result.is_ready() || !spin_for_command(&mut commands) {
                    return result;
                }
            }
            // Lets timers and sockets have their turn.
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        // Tokio's budget would make a queue that is not empty look empty.
        tokio::task::unconstrained(steps).await;
        // Callers read the reason from the watchdog. Commands still in the queue are answered the
        // same way.
        self.pending.clear();
        drop(commands);
        self.watchdog.end_children();
        let Isolate {
            functions,
            mut worker,
            workers,
            loader,
            readers,
        } = self.isolate;
        drop(functions);
        interrupt::uninstall();
        memory::unlimit_external();
        // Dropping runs finalizers of native objects, which may call into V8.
        worker.js_runtime.v8_isolate().cancel_terminate_execution();
        drop(worker);
        workers.end();
        loader.flush_cache(CACHE_WRITE_TIMEOUT);
        drop(loader);
        readers.finish();
    }

    fn limit(&self) -> Duration {
        let limits = self.pending.iter().filter_map(|pending| pending.limit);
        limits.fold(self.spin_limit, Duration::max)
    }

    fn poll(&mut self, cx: &mut Context<'_>, commands: &mut impl CommandSource) -> Poll<()> {
        loop {
            // The isolate was stopped while the thread slept.
            if self.has_ended() {
                return Poll::Ready(());
            }
            while let Poll::Ready(command) = commands.poll_next(cx) {
                match command {
                    Some(command) => self.handle(command),
                    None => return Poll::Ready(()),
                }
                if self.has_ended() {
                    return Poll::Ready(());
                }
            }
            preload_dynamic_imports(&mut self.isolate.worker, &self.isolate.loader);
            let polled = self
                .isolate
                .worker
                .js_runtime
                .poll_event_loop(cx, PollEventLoopOptions::default());
            if self.has_ended() {
                return Poll::Ready(());
            }
            if !self.check_intact() {
                return Poll::Ready(());
            }
            let uncaught = match polled {
                // The termination that followed `release` ended the running code.
                Poll::Ready(Err(_)) if self.watchdog.released() => return Poll::Ready(()),
                Poll::Ready(Err(error)) => Some(Thrown::from(&error)),
                _ => None,
            };
            // deno_core reports a stalled module in every further poll.
            let stalled = uncaught
                .as_ref()
                .filter(|thrown| thrown.message.contains(STALLED));
            if let Some(stalled) = stalled {
                self.fail_stalled(stalled);
            } else if uncaught.is_some() {
                // There may be more to do after the tick that failed.
                cx.waker().wake_by_ref();
            }
            let progress = self.poll_calls(cx);
            match uncaught {
                // The event loop also returns exceptions that a module threw while it was loaded.
                Some(thrown) if is_stalled_or_reported(&thrown, &self.failed) => {}
                Some(thrown) => self.report(&thrown, None),
                None => {}
            }
            self.report_uncaught();
            self.report_missing_exports();
            self.failed.clear();
            if !progress {
                self.warm_up(cx);
                return Poll::Pending;
            }
            if self.has_ended() {
                return Poll::Ready(());
            }
        }
    }

    /// Makes the code cache of one module. The thread may be needed between two of them.
    fn warm_up(&mut self, cx: &mut Context<'_>) {
        let is_due = (self.warm_up_timer.as_mut())
            .is_some_and(|warm_up_timer| warm_up_timer.as_mut().poll(cx).is_ready());
        if !is_due || !self.pending.is_empty() {
            return;
        }
        let Isolate { worker, loader, .. } = &mut self.isolate;
        if loader.warm_up(&mut worker.js_runtime) {
            cx.waker().wake_by_ref();
        } else {
            self.warm_up_timer = None;
        }
    }

    /// Checks after code has run that the built-in objects which pi relies on still work, and that
    /// descriptors are left. Otherwise the isolate is stopped, because the next extension would
    /// fail for the mistake of another.
    fn check_intact(&mut self) -> bool {
        let state = self.isolate.worker.js_runtime.op_state();
        if (self.descriptor_limit).stop_if_exhausted(&mut state.borrow_mut(), &self.watchdog) {
            return false;
        }
        let Some(check) = self.isolate.functions.get("missingEssential") else {
            return true;
        };
        let runtime = &mut self.isolate.worker.js_runtime;
        let Some(tampering) = intrinsics_guard::find_tampering(runtime, check) else {
            return true;
        };
        let imports = &self.isolate.loader.imports;
        let author = tampering.file.and_then(|file| imports.extension_of(&file));
        // The activity is not known: the code may have been a callback.
        let author = author.map(|id| Author {
            id,
            what: String::new(),
        });
        self.watchdog.report_offender(author, String::new());
        self.watchdog.stop(Stop::Tampered(tampering.intrinsic));
        false
    }

    /// Returns true if the isolate was stopped. A termination from elsewhere counts as a stop, too:
    /// JavaScript cannot be resumed after it.
    fn has_ended(&mut self) -> bool {
        let isolate = self.isolate.worker.js_runtime.v8_isolate();
        if isolate.is_execution_terminating() && self.watchdog.stopped().is_none() {
            self.watchdog.stop(Stop::Requested);
        }
        if self.watchdog.stopped().is_none() {
            return false;
        }
        // Has no effect if an offender was reported before. No code runs any more.
        self.watchdog
            .report_offender(js_runtime_ext::last_timer(), String::new());
        true
    }

    /// Fails the loads of extensions whose top-level `await` can never settle.
    fn fail_stalled(&mut self, thrown: &Thrown) {
        let evaluating =
            |pending: &PendingCall| matches!(pending.state, CallState::Evaluating { .. });
        while let Some(index) = self.pending.iter().position(evaluating) {
            let pending = self.pending.swap_remove(index);
            self.isolate.loader.note_load_result(false);
            let message = NEVER_LOADED.to_owned();
            pending.reply.send(Err(Thrown {
                plain: message.clone(),
                message,
                ..thrown.clone()
            }));
        }
    }

    /// Reports exceptions that were thrown in callbacks.
    fn report_uncaught(&mut self) {
        let state = self.isolate.worker.js_runtime.op_state();
        let uncaught = Uncaught::take(&mut state.borrow_mut());
        for (error, author) in uncaught {
            let thrown = Thrown::from(&error);
            // Skips exceptions that a failed load has reported.
            if !is_stalled_or_reported(&thrown, &self.failed) {
                self.report(&thrown, author);
            }
        }
    }

    /// Reports imports of names that the imported module does not export.
    fn report_missing_exports(&self) {
        for (message, frame) in self.isolate.loader.take_missing_exports() {
            let stack = frame.unwrap_or_default();
            let author = self.isolate.loader.imports.author(&stack, None);
            self.host.fault(Fault::Diagnostic {
                message,
                stack,
                author,
            });
        }
    }

    /// Reports an uncaught exception. `marked` is the author by the mark of the bridge, if there
    /// was one.
    fn report(&self, thrown: &Thrown, marked: Option<Author>) {
        // The op has reported `process.exit` already.
        if thrown.message.contains(EXIT_MESSAGE) {
            return;
        }
        let imports = &self.isolate.loader.imports;
        let author = imports.author(&thrown.stack, marked);
        self.host.fault(Fault::Uncaught {
            plain: thrown.plain.clone(),
            report: thrown.full_report(),
            // A module that cannot be loaded has no stack.
            author: author.or_else(|| imports.author(&thrown.message, None)),
        });
    }

    fn handle(&mut self, command: Command) {
        js_runtime_ext::forget_timer();
        self.watchdog.begin_extension(None);
        match command {
            Command::Load {
                phase,
                id,
                path,
                limit,
                reply,
            } => {
                self.watchdog.enter(limit.max(self.limit()));
                if phase == LoadPhase::Prepare {
                    let prepared = self.prepare(id, &path);
                    self.isolate.loader.note_load_result(prepared.is_ok());
                    let prepared = prepared.map(|module| self.prepared.insert(id, module));
                    return reply.send(prepared.map(|_| None));
                }
                match self.begin_load(id, &path) {
                    Ok(state) => self.pending.push(PendingCall {
                        state,
                        reply,
                        limit: Some(limit),
                    }),
                    Err(thrown) => {
                        self.isolate.loader.note_load_result(false);
                        reply.send(Err(thrown));
                    }
                }
            }
            Command::Call {
                function,
                args,
                mut reply,
            } => {
                // The caller may have given up while the command was in the queue.
                if reply.is_closed() {
                    return;
                }
                self.watchdog.enter(self.limit());
                self.isolate.loader.end_load();
                let Some(function) = self.isolate.functions.get(&function) else {
                    let message = format!("the bridge has no function \"{function}\"");
                    return reply.send(Err(Thrown::new(message)));
                };
                let outcome =
                    bridge::call(&mut self.isolate.worker.js_runtime, function, |scope| {
                        bridge::json_argument(scope, &args)
                    });
                // The code that runs next may belong to any extension.
                self.watchdog.begin_extension(None);
                match outcome {
                    CallOutcome::Done(result) => {
                        if self.check_intact() {
                            reply.send(result);
                        }
                    }
                    CallOutcome::Pending(value) => self.pending.push(PendingCall {
                        state: CallState::Value(value),
                        reply,
                        limit: None,
                    }),
                    CallOutcome::Terminated => {
                        if !self.has_ended() {
                            reply.send(Err(Thrown::new(CUT_OFF)));
                        }
                    }
                }
            }
            Command::Release(reply) => {
                self.watchdog.enter(self.limit());
                reply.send(self.release());
            }
            Command::Memory(reply) => {
                let isolate = self.isolate.worker.js_runtime.v8_isolate();
                reply(Memory::from_statistics(&isolate.get_heap_statistics()));
            }
            Command::RetainedHeap(reply) => {
                // On a busy machine a snapshot takes longer than the limit of a slice.
                let _paused = self.watchdog.pause();
                let imports = self.isolate.loader.imports.clone();
                let isolate = self.isolate.worker.js_runtime.v8_isolate();
                reply(heap_snapshot::retained(isolate, |script| {
                    imports.owner(script)
                }));
            }
            Command::HeapUsed(reply) => {
                let _paused = self.watchdog.pause();
                let isolate = self.isolate.worker.js_runtime.v8_isolate();
                isolate.low_memory_notification();
                reply(isolate.get_heap_statistics().used_heap_size());
            }
        }
    }

    /// Closes what the extensions hold: workers and child processes here, the rest in JavaScript.
    fn release(&mut self) -> CallResult {
        self.isolate.workers.end();
        self.watchdog.release_children();
        let Some(function) = self.isolate.functions.get("release") else {
            return Err(Thrown::new("the bridge has no function \"release\""));
        };
        let runtime = &mut self.isolate.worker.js_runtime;
        match bridge::call(runtime, function, |_| Some(Vec::new())) {
            CallOutcome::Done(result) => result,
            CallOutcome::Pending(_) => Ok(None),
            CallOutcome::Terminated => Err(Thrown::new(CUT_OFF)),
        }
    }

    /// Finds and compiles the whole module graph.
    fn prepare(&mut self, id: u32, path: &std::path::Path) -> Result<ModuleId, Thrown> {
        self.isolate.loader.imports.begin_load(id);
        let Isolate { worker, loader, .. } = &mut self.isolate;
        loader.begin_load(&mut worker.js_runtime);
        let url = loader.entry(id, path).map_err(Thrown::new)?;
        preload_builtins(worker, loader);
        preload(worker, &url)
    }

    /// Starts to evaluate the module, and prepares it first if that was not done.
    fn begin_load(&mut self, id: u32, path: &std::path::Path) -> Result<CallState, Thrown> {
        let module = match self.prepared.remove(&id) {
            Some(module) => {
                // The files may have changed since the module was prepared.
                let Isolate { worker, loader, .. } = &mut self.isolate;
                loader.end_load();
                loader.begin_load(&mut worker.js_runtime);
                module
            }
            None => self.prepare(id, path)?,
        };
        self.isolate.loader.imports.begin_load(id);
        inspector::wait_if_requested(&self.isolate.worker.js_runtime, &*self.host);
        let author = Author {
            id,
            what: "load".into(),
        };
        bridge::set_author(&mut self.isolate.worker.js_runtime, Some(&author));
        let evaluated = self.isolate.worker.js_runtime.mod_evaluate(module);
        bridge::set_author(&mut self.isolate.worker.js_runtime, None);
        Ok(CallState::Evaluating {
            id,
            module,
            evaluated: Box::pin(evaluated),
        })
    }

    /// Answers the calls whose values are ready. Returns true if there was any progress.
    fn poll_calls(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        let mut index = 0;
        while index < self.pending.len() {
            let pending = &mut self.pending[index];
            if pending.reply.poll_closed(cx).is_ready() {
                if pending.limit.is_some() {
                    self.isolate.loader.note_load_result(false);
                }
                self.pending.swap_remove(index);
                continue;
            }
            let next = match &mut pending.state {
                CallState::Evaluating {
                    id,
                    module,
                    evaluated,
                } => match evaluated.as_mut().poll(cx) {
                    Poll::Pending => None,
                    Poll::Ready(Err(error)) => Some(CallOutcome::Done(Err(Thrown::from(&error)))),
                    Poll::Ready(Ok(())) => {
                        let (id, module) = (*id, *module);
                        Some(activate(&mut self.isolate, id, module))
                    }
                },
                CallState::Value(value) => match value.as_mut().poll(cx) {
                    Poll::Pending => None,
                    Poll::Ready(value) => Some(CallOutcome::Done(bridge::settled_text(
                        &mut self.isolate.worker.js_runtime,
                        value,
                    ))),
                },
            };
            match next {
                None => index += 1,
                Some(CallOutcome::Pending(value)) => {
                    progress = true;
                    self.pending[index].state = CallState::Value(value);
                }
                Some(CallOutcome::Done(result)) => {
                    progress = true;
                    if !self.check_intact() {
                        return true;
                    }
                    let done = self.pending.swap_remove(index);
                    if let (Some(_), Err(thrown)) = (done.limit, &result) {
                        self.failed.push(thrown.message.clone());
                    }
                    // Only loads have a limit of their own.
                    if done.limit.is_some() {
                        self.isolate.loader.note_load_result(result.is_ok());
                    }
                    done.reply.send(result);
                    if done.limit.is_some() {
                        self.warm_up_timer = Some(Box::pin(tokio::time::sleep(WARM_UP_DELAY)));
                    }
                    if done.limit.is_some() && !self.cache_swept {
                        self.cache_swept = true;
                        self.isolate.loader.sweep_cache_soon();
                    }
                }
                Some(CallOutcome::Terminated) => {
                    if self.has_ended() {
                        return true;
                    }
                    progress = true;
                    let pending = self.pending.swap_remove(index);
                    pending.reply.send(Err(Thrown::new(CUT_OFF)));
                }
            }
        }
        progress
    }
}

/// Message for calls that V8 terminated although the isolate goes on.
const CUT_OFF: &str = "stopped by an uncaught exception";

/// Start of the message of deno_core for a module that awaits a promise which nothing can settle.
const STALLED: &str = "Top-level await promise never resolved";

/// Message for such a module.
const NEVER_LOADED: &str = "The module never finishes loading: a top-level `await` waits for a \
                            promise that nothing will settle";

fn is_stalled_or_reported(thrown: &Thrown, failed: &[String]) -> bool {
    thrown.message.contains(STALLED) || failed.contains(&thrown.message)
}

struct RetireOnDrop(Watchdog);

impl Drop for RetireOnDrop {
    fn drop(&mut self) {
        self.0.retire();
    }
}

/// Passes the namespace of a loaded module to the bridge.
fn activate(isolate: &mut Isolate, id: u32, module: ModuleId) -> CallOutcome {
    let runtime = &mut isolate.worker.js_runtime;
    let Some(function) = isolate.functions.get("activate") else {
        return CallOutcome::Done(Err(Thrown::new("the bridge has no function \"activate\"")));
    };
    let namespace = match runtime.get_module_namespace(module) {
        Ok(namespace) => namespace,
        Err(error) => return CallOutcome::Done(Err(Thrown::from(&error))),
    };
    bridge::call(runtime, function, |scope| {
        let id: v8::Local<v8::Value> = v8::Integer::new_from_unsigned(scope, id).into();
        let namespace: v8::Local<v8::Value> = v8::Local::new(scope, namespace).into();
        Some(vec![
            v8::Global::new(scope, id),
            v8::Global::new(scope, namespace),
        ])
    })
}
