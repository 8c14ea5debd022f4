//! What the JavaScript thread does all day: takes requests, drives the event loop,
//! hands out answers.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use deno_core::error::CoreError;
use deno_core::{ModuleId, PollEventLoopOptions, v8};
use js_runtime_ext::{Author, EXIT_MESSAGE, Fault, Host, Stop, Uncaught, Watch as _};

use crate::calls::{self, Outcome, Pending};
use crate::commands::{Command, Commands};
use crate::control::Control;
use crate::descriptors::Descriptors;
use crate::error::Thrown;
use crate::essentials;
use crate::heap_owners;
use crate::inspector;
use crate::memory::{self, Memory};
use crate::preload::{preload, preload_coming, preload_known};
use crate::reply::Reply;
use crate::witness;
use crate::worker::Isolate;

/// Something that JavaScript has not answered yet.
struct Waiting {
    state: State,
    reply: Reply,
    /// How long JavaScript may run at a stretch while this goes on, if longer than
    /// usual.
    limit: Option<Duration>,
}

enum State {
    /// The module of an extension, with its top-level `await`s.
    Evaluating {
        id: u32,
        module: ModuleId,
        evaluated: Pin<Box<dyn Future<Output = Result<(), CoreError>>>>,
    },
    Value(Pending),
}

pub(crate) struct EventLoop {
    // Before the isolate: it holds handles.
    waiting: Vec<Waiting>,
    isolate: Isolate,
    control: Control,
    host: Arc<dyn Host>,
    spin_limit: Duration,
    /// What loads failed with since the event loop was polled.
    failed: Vec<String>,
    descriptors: Descriptors,
    /// Whether the cache was looked after, which waits until something is loaded.
    swept: bool,
    /// After a load, until code caches are made of what ran.
    rest: Option<Pin<Box<tokio::time::Sleep>>>,
}

/// How long the thread looks for another command before it sleeps: handlers of one
/// event are called one after the other. Longer makes the slowest calls slower on
/// two cores.
const LINGER: Duration = Duration::from_micros(10);
/// After the last load, until what was loaded is taken to have started.
const REST: Duration = Duration::from_secs(2);
/// What was compiled at the very end may take this long to be written.
const SETTLING: Duration = Duration::from_millis(500);
/// Commands in a row before the rest of the loop is looked at.
const ROUNDS: usize = 64;

fn more_comes(commands: &mut impl Commands) -> bool {
    let start = Instant::now();
    while commands.is_empty() && start.elapsed() < LINGER {
        std::hint::spin_loop();
    }
    !commands.is_empty()
}

impl EventLoop {
    pub fn new(
        isolate: Isolate,
        control: Control,
        host: Arc<dyn Host>,
        spin_limit: Duration,
    ) -> Self {
        Self {
            waiting: Vec::new(),
            isolate,
            control,
            host,
            spin_limit,
            failed: Vec::new(),
            descriptors: Descriptors::default(),
            swept: false,
            rest: None,
        }
    }

    /// Until nobody can send commands any more, or the isolate is stopped.
    pub async fn run(mut self, mut commands: impl Commands) {
        // Also when something panics.
        let _retires = Retires(self.control.clone());
        let imports = &self.isolate.loader.imports;
        witness::swear_in(&mut self.isolate.worker.js_runtime, &self.control, imports);
        let steps = poll_fn(|cx| {
            for _ in 0..ROUNDS {
                self.control.wakes(cx.waker());
                self.control.enter(self.limit());
                let result = self.poll(cx, &mut commands);
                self.control.leave();
                memory::look_now_and_then(self.isolate.worker.js_runtime.v8_isolate());
                if result.is_ready() || !more_comes(&mut commands) {
                    return result;
                }
            }
            // Timers and sockets have their turn.
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        // Tokio's budget would make a queue that is not empty look as if it were.
        tokio::task::unconstrained(steps).await;
        // Callers see the reason in `Control`; whoever is still in the queue is
        // told the same way.
        self.waiting.clear();
        drop(commands);
        self.control.end_children();
        let Isolate {
            functions,
            mut worker,
            workers,
            loader,
            readers,
        } = self.isolate;
        drop(functions);
        witness::dismiss();
        memory::unwatch_external();
        // Dropping runs finalizers of native objects, which may call into V8.
        worker.js_runtime.v8_isolate().cancel_terminate_execution();
        drop(worker);
        workers.end();
        loader.settle_cache(SETTLING);
        drop(loader);
        readers.finish();
    }

    fn limit(&self) -> Duration {
        let limits = self.waiting.iter().filter_map(|waiting| waiting.limit);
        limits.fold(self.spin_limit, Duration::max)
    }

    fn poll(&mut self, cx: &mut Context<'_>, commands: &mut impl Commands) -> Poll<()> {
        loop {
            // Stopped while it slept.
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
            preload_coming(&mut self.isolate.worker, &self.isolate.loader);
            let polled = self
                .isolate
                .worker
                .js_runtime
                .poll_event_loop(cx, PollEventLoopOptions::default());
            if self.has_ended() {
                return Poll::Ready(());
            }
            if !self.is_whole() {
                return Poll::Ready(());
            }
            let uncaught = match polled {
                // That is how what ran at that moment was ended.
                Poll::Ready(Err(_)) if self.control.released() => return Poll::Ready(()),
                Poll::Ready(Err(error)) => Some(Thrown::from(&error)),
                _ => None,
            };
            // deno_core says so in every poll from now on.
            let stalled = uncaught
                .as_ref()
                .filter(|thrown| thrown.message.contains(STALLED));
            if let Some(stalled) = stalled {
                self.fail_stalled(stalled);
            } else if uncaught.is_some() {
                // There may be more to do after the tick that failed.
                cx.waker().wake_by_ref();
            }
            let progress = self.answer(cx);
            match uncaught {
                // What a module throws comes out of the event loop, too.
                Some(thrown) if stalled_or_told(&thrown, &self.failed) => {}
                Some(thrown) => self.report(&thrown, None),
                None => {}
            }
            self.tell_uncaught();
            self.tell_absent();
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

    /// One module at a time: somebody may want the thread.
    fn warm_up(&mut self, cx: &mut Context<'_>) {
        let rests = (self.rest.as_mut()).is_some_and(|rest| rest.as_mut().poll(cx).is_ready());
        if !rests || !self.waiting.is_empty() {
            return;
        }
        let Isolate { worker, loader, .. } = &mut self.isolate;
        if loader.warm_up(&mut worker.js_runtime) {
            cx.waker().wake_by_ref();
        } else {
            self.rest = None;
        }
    }

    /// Whether what everything relies on is still there after code has run. If not, the
    /// isolate is stopped: whoever is called next would fail for another's mistake.
    fn is_whole(&mut self) -> bool {
        let state = self.isolate.worker.js_runtime.op_state();
        if (self.descriptors).are_gone(&mut state.borrow_mut(), &self.control) {
            return false;
        }
        let Some(ask) = self.isolate.functions.get("missingEssential") else {
            return true;
        };
        let runtime = &mut self.isolate.worker.js_runtime;
        let Some(missing) = essentials::missing(runtime, ask) else {
            return true;
        };
        let imports = &self.isolate.loader.imports;
        let author = missing.file.and_then(|file| imports.author_of(&file));
        // What for is not known: it may have been a callback.
        let author = author.map(|id| Author {
            id,
            what: String::new(),
        });
        self.control.confess(author, String::new());
        self.control.stop(Stop::Damaged(missing.damage));
        false
    }

    /// Whether the isolate was stopped. A termination that nobody asked for is one
    /// of ours, too: JavaScript cannot be resumed after it.
    fn has_ended(&mut self) -> bool {
        let isolate = self.isolate.worker.js_runtime.v8_isolate();
        if isolate.is_execution_terminating() && self.control.stopped().is_none() {
            self.control.stop(Stop::Asked);
        }
        if self.control.stopped().is_none() {
            return false;
        }
        // Unless it has been told already: nothing runs any more.
        self.control
            .confess(js_runtime_ext::last_timer(), String::new());
        true
    }

    /// An extension whose `await` at the top level nothing can settle any more.
    fn fail_stalled(&mut self, thrown: &Thrown) {
        let evaluating = |waiting: &Waiting| matches!(waiting.state, State::Evaluating { .. });
        while let Some(index) = self.waiting.iter().position(evaluating) {
            let waiting = self.waiting.swap_remove(index);
            waiting.reply.send(Err(thrown.clone()));
        }
    }

    /// What was thrown in callbacks.
    fn tell_uncaught(&mut self) {
        let state = self.isolate.worker.js_runtime.op_state();
        let uncaught = Uncaught::take(&mut state.borrow_mut());
        for (error, author) in uncaught {
            let thrown = Thrown::from(&error);
            // What a module throws, for one.
            if !stalled_or_told(&thrown, &self.failed) {
                self.report(&thrown, author);
            }
        }
    }

    /// What modules import that is not there.
    fn tell_absent(&self) {
        for (message, frame) in self.isolate.loader.take_absent() {
            let stack = frame.unwrap_or_default();
            let author = self.isolate.loader.imports.author(&stack, None);
            self.host.fault(Fault::Slip {
                message,
                stack,
                author,
            });
        }
    }

    /// `marked` is whose code it was, if it said so.
    fn report(&self, thrown: &Thrown, marked: Option<Author>) {
        // The op has reported it already.
        if thrown.message.contains(EXIT_MESSAGE) {
            return;
        }
        let imports = &self.isolate.loader.imports;
        let author = imports.author(&thrown.stack, marked);
        self.host.fault(Fault::Uncaught {
            plain: thrown.plain.clone(),
            report: thrown.report(),
            // A module that cannot be loaded has no stack.
            author: author.or_else(|| imports.author(&thrown.message, None)),
        });
    }

    fn handle(&mut self, command: Command) {
        js_runtime_ext::forget_timer();
        self.control.begins(None);
        match command {
            Command::Load {
                id,
                path,
                limit,
                reply,
            } => {
                self.control.enter(limit.max(self.limit()));
                match self.begin_load(id, &path) {
                    Ok(state) => self.waiting.push(Waiting {
                        state,
                        reply,
                        limit: Some(limit),
                    }),
                    Err(thrown) => reply.send(Err(thrown)),
                }
            }
            Command::Call {
                function,
                args,
                mut reply,
            } => {
                // Its caller may have given up while it was in the queue.
                if reply.is_closed() {
                    return;
                }
                self.control.enter(self.limit());
                self.isolate.loader.end_load();
                let Some(function) = self.isolate.functions.get(&function) else {
                    let message = format!("the bridge has no function \"{function}\"");
                    return reply.send(Err(Thrown::new(message)));
                };
                let outcome = calls::call(&mut self.isolate.worker.js_runtime, function, |scope| {
                    calls::json_argument(scope, &args)
                });
                // What comes now is anybody's.
                self.control.begins(None);
                match outcome {
                    Outcome::Done(result) => {
                        if self.is_whole() {
                            reply.send(result);
                        }
                    }
                    Outcome::Pending(value) => self.waiting.push(Waiting {
                        state: State::Value(value),
                        reply,
                        limit: None,
                    }),
                    Outcome::Terminated => {
                        if !self.has_ended() {
                            reply.send(Err(Thrown::new(CUT_OFF)));
                        }
                    }
                }
            }
            Command::Memory(reply) => {
                let isolate = self.isolate.worker.js_runtime.v8_isolate();
                reply(Memory::of(&isolate.get_heap_statistics()));
            }
            Command::HeapOwners(reply) => {
                let imports = self.isolate.loader.imports.clone();
                let isolate = self.isolate.worker.js_runtime.v8_isolate();
                reply(heap_owners::owners(isolate, |script| imports.owner(script)));
            }
            Command::HeapUsed(reply) => {
                let isolate = self.isolate.worker.js_runtime.v8_isolate();
                isolate.low_memory_notification();
                reply(isolate.get_heap_statistics().used_heap_size());
            }
        }
    }

    /// Finds and compiles the whole graph, and starts to evaluate it.
    fn begin_load(&mut self, id: u32, path: &std::path::Path) -> Result<State, Thrown> {
        self.isolate.loader.imports.begin(id);
        let Isolate { worker, loader, .. } = &mut self.isolate;
        loader.begin_load(&mut worker.js_runtime);
        let url = loader.entry(id, path).map_err(Thrown::new)?;
        preload_known(worker, loader);
        let module = preload(worker, &url)?;
        inspector::wait_if_asked(&self.isolate.worker.js_runtime, &*self.host);
        let author = Author {
            id,
            what: "load".into(),
        };
        calls::mark(&mut self.isolate.worker.js_runtime, Some(&author));
        let evaluated = self.isolate.worker.js_runtime.mod_evaluate(module);
        calls::mark(&mut self.isolate.worker.js_runtime, None);
        Ok(State::Evaluating {
            id,
            module,
            evaluated: Box::pin(evaluated),
        })
    }

    /// Hands out what is ready. Tells whether there was anything.
    fn answer(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        let mut index = 0;
        while index < self.waiting.len() {
            let waiting = &mut self.waiting[index];
            if waiting.reply.poll_closed(cx).is_ready() {
                self.waiting.swap_remove(index);
                continue;
            }
            let next = match &mut waiting.state {
                State::Evaluating {
                    id,
                    module,
                    evaluated,
                } => match evaluated.as_mut().poll(cx) {
                    Poll::Pending => None,
                    Poll::Ready(Err(error)) => Some(Outcome::Done(Err(Thrown::from(&error)))),
                    Poll::Ready(Ok(())) => {
                        let (id, module) = (*id, *module);
                        Some(activate(&mut self.isolate, id, module))
                    }
                },
                State::Value(value) => match value.as_mut().poll(cx) {
                    Poll::Pending => None,
                    Poll::Ready(value) => Some(Outcome::Done(calls::settled(
                        &mut self.isolate.worker.js_runtime,
                        value,
                    ))),
                },
            };
            match next {
                None => index += 1,
                Some(Outcome::Pending(value)) => {
                    progress = true;
                    self.waiting[index].state = State::Value(value);
                }
                Some(Outcome::Done(result)) => {
                    progress = true;
                    if !self.is_whole() {
                        return true;
                    }
                    let done = self.waiting.swap_remove(index);
                    if let (Some(_), Err(thrown)) = (done.limit, &result) {
                        self.failed.push(thrown.message.clone());
                    }
                    done.reply.send(result);
                    // Loads are the only ones with a limit of their own.
                    if done.limit.is_some() {
                        self.rest = Some(Box::pin(tokio::time::sleep(REST)));
                    }
                    if done.limit.is_some() && !self.swept {
                        self.swept = true;
                        self.isolate.loader.sweep_cache_soon();
                    }
                }
                Some(Outcome::Terminated) => {
                    if self.has_ended() {
                        return true;
                    }
                    progress = true;
                    let waiting = self.waiting.swap_remove(index);
                    waiting.reply.send(Err(Thrown::new(CUT_OFF)));
                }
            }
        }
        progress
    }
}

/// Something ended what ran, but not the isolate.
const CUT_OFF: &str = "what ran was cut off by an exception that nobody caught";

/// How deno_core begins to say that a module awaits what never comes.
const STALLED: &str = "Top-level await promise never resolved";

fn stalled_or_told(thrown: &Thrown, failed: &[String]) -> bool {
    thrown.message.contains(STALLED) || failed.contains(&thrown.message)
}

struct Retires(Control);

impl Drop for Retires {
    fn drop(&mut self) {
        self.0.retire();
    }
}

/// Hands a module to the bridge.
fn activate(isolate: &mut Isolate, id: u32, module: ModuleId) -> Outcome {
    let runtime = &mut isolate.worker.js_runtime;
    let Some(function) = isolate.functions.get("activate") else {
        return Outcome::Done(Err(Thrown::new("the bridge has no function \"activate\"")));
    };
    let namespace = match runtime.get_module_namespace(module) {
        Ok(namespace) => namespace,
        Err(error) => return Outcome::Done(Err(Thrown::from(&error))),
    };
    calls::call(runtime, function, |scope| {
        let id: v8::Local<v8::Value> = v8::Integer::new_from_unsigned(scope, id).into();
        let namespace: v8::Local<v8::Value> = v8::Local::new(scope, namespace).into();
        Some(vec![
            v8::Global::new(scope, id),
            v8::Global::new(scope, namespace),
        ])
    })
}
