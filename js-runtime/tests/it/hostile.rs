//! Extensions that misbehave harm themselves, never the program.

use std::time::Duration;

use js_runtime::{Author, CallError, Fault, LoadError, RuntimeOptions, Stop};
use serde_json::{Value, json};

use crate::support::{Folder, Js, TestHost, handlers, options, soon};

fn with_short_limits() -> Js {
    let mut options = options();
    // On a busy machine an innocent handler takes more than half a second.
    options.spin_limit = Duration::from_secs(2);
    Js::with(options)
}

/// Options with a heap of this size, in bytes, and the time to fill it on a busy machine.
fn small_heap(bytes: usize) -> RuntimeOptions {
    RuntimeOptions {
        max_heap: bytes,
        spin_limit: Duration::from_secs(50),
        ..options()
    }
}

/// Returns extension 1 in this handler.
fn handler_of_1(what: &str) -> Option<Author> {
    Some(Author {
        id: 1,
        what: what.into(),
    })
}

/// Returns the frames of the stopped code.
async fn stopped_by(handler: &str) -> String {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[
            ("spin", handler),
            ("wait", "() => new Promise(() => {})"),
            ("get", "() => 1"),
        ]),
    )]);
    let js = with_short_limits();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    let waiting = js.dispatch("wait", Value::Null);
    let spinning = js.dispatch("spin", Value::Null);
    let (waiting, spinning) = soon(async { tokio::join!(waiting, spinning) }).await;
    assert_eq!(spinning, Err(CallError::Stopped(Stop::Deadline)));
    assert_eq!(waiting, Err(CallError::Stopped(Stop::Deadline)));
    soon(js.until_stopped(Stop::Deadline)).await;
    let (stop, stack) = js.host.stopped();
    assert_eq!(stop, (Stop::Deadline, handler_of_1("spin")));
    let after = soon(js.dispatch("get", Value::Null)).await;
    assert_eq!(after, Err(CallError::Stopped(Stop::Deadline)));
    js.runtime.shutdown().await;
    let folder = folder.path("").display().to_string();
    stack.replace(&folder, "")
}

#[tokio::test]
async fn an_endless_loop_is_stopped() {
    let stack = stopped_by("() => { for (;;); }").await;
    assert_eq!(stack, "    at a.ts:2:25");
}

#[tokio::test]
async fn stopped_loop_has_a_source_position() {
    let source = "interface Nothing {\n  of: this;\n}\n\nexport function wait(until: number): void {\n  \
                  while (Date.now() < until);\n}\n";
    let caller = "import { wait } from \"./wait\";\ntype No = never;\n\n\
                  export default (pi: any) => {\n  pi.on(\"spin\", async () => {\n    \
                  await null;\n    [1].forEach(() => wait(Infinity));\n  });\n};\n";
    let folder = Folder::new(&[("a.ts", caller), ("wait.ts", source)]);
    let js = with_short_limits();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    _ = soon(js.dispatch("spin", Value::Null)).await;
    soon(js.until_stopped(Stop::Deadline)).await;
    let (stop, stack) = js.host.stopped();
    assert_eq!(stop, (Stop::Deadline, handler_of_1("spin")));
    let places = stack.replace(&folder.path("").display().to_string(), "");
    let places: Vec<&str> = places.lines().map(str::trim_start).collect();
    let [inner, .., outer] = &places[..] else {
        panic!("{stack}")
    };
    // The clock decides which of the loop's two statements is found.
    assert!(inner.starts_with("at wait (wait.ts:6:"), "{stack}");
    assert_eq!(*outer, "at a.ts:7:9", "{stack}");
    assert!(places.contains(&"at a.ts:7:23"), "{stack}");
}

#[tokio::test]
async fn endless_loop_that_catches_everything_is_stopped() {
    stopped_by(
        "() => { for (;;) { try { for (;;) JSON.parse('{'); } catch {} finally { continue; } } }",
    )
    .await;
}

#[tokio::test]
async fn endless_microtasks_are_stopped() {
    stopped_by("async () => { for (;;) await null; }").await;
}

#[tokio::test]
async fn an_endless_loop_in_a_timer_is_stopped() {
    stopped_by("() => new Promise(() => setTimeout(() => { for (;;); }, 1))").await;
}

#[tokio::test]
async fn load_has_a_longer_limit_than_a_call() {
    let folder = Folder::new(&[
        (
            "slow.ts",
            "const end = Date.now() + 3000;\nwhile (Date.now() < end);\nexport default () => {};",
        ),
        ("endless.ts", "for (;;);\nexport default () => {};"),
    ]);
    let js = with_short_limits();
    js.load(1, &folder.path("slow.ts")).await.unwrap();
    let limit = Duration::from_secs(2);
    let loaded = soon(js.runtime.load(2, &folder.path("endless.ts"), limit)).await;
    assert_eq!(loaded, Err(LoadError::Stopped(Stop::Deadline)));
}

#[tokio::test]
async fn memory_hogs_are_stopped() {
    for hog in [
        "() => { const all: any[] = []; for (;;) all.push(new Array(1000).fill(0)); }",
        "() => { let text = 'x'; const all: any[] = []; for (;;) { all.push(text + all.length); } }",
        "async () => { const all: any[] = []; for (;;) { await null; all.push({ a: [1, 2, 3] }); } }",
    ] {
        let folder = Folder::new(&[("a.ts", &handlers(&[("hog", hog)]))]);
        let js = Js::with(small_heap(64 << 20));
        js.load(1, &folder.path("a.ts")).await.unwrap();
        let answer = soon(js.dispatch("hog", Value::Null)).await;
        assert_eq!(answer, Err(CallError::Stopped(Stop::OutOfMemory)), "{hog}");
        soon(js.until_stopped(Stop::OutOfMemory)).await;
    }
}

#[tokio::test]
async fn oversized_array_buffers_are_refused() {
    for bomb in [
        "for (;;) all.push(new ArrayBuffer(16 << 20));",
        "for (;;) all.push(Buffer.alloc(16 << 20));",
        "for (;;) all.push(Buffer.allocUnsafe(3 << 20));",
        "for (;;) all.push(new SharedArrayBuffer(16 << 20));",
        "for (;;) all.push(new Uint8Array(100));",
        "new Float64Array(2 ** 31);",
    ] {
        let bomb = format!("() => {{ const all: any[] = []; {bomb} }}");
        let churn = "() => { for (let i = 0; i < 100; i++) new ArrayBuffer(16 << 20); return 1; }";
        let folder = Folder::new(&[("a.ts", &handlers(&[("bomb", &bomb), ("churn", churn)]))]);
        let js = Js::with(small_heap(128 << 20));
        js.load(1, &folder.path("a.ts")).await.unwrap();
        let answer = soon(js.dispatch("bomb", Value::Null)).await;
        match answer {
            Err(CallError::Thrown { message, .. }) => {
                assert!(message.contains("RangeError"), "{bomb}: {message}");
                assert_eq!(js.dispatch("churn", Value::Null).await, Ok(json!(1)));
            }
            // The objects themselves fill the heap.
            Err(CallError::Stopped(Stop::OutOfMemory)) if bomb.contains("100") => {}
            other => panic!("{bomb}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn native_memory_is_counted() {
    let folder = Folder::new(&[
        ("big", &"x".repeat(8 << 20)),
        (
            "a.ts",
            &handlers(&[(
                "read",
                "async () => { const { readFileSync } = await import('node:fs'); \
                     const all: any[] = []; \
                     for (;;) all.push(readFileSync(new URL('./big', import.meta.url))); }",
            )]),
        ),
    ]);
    let js = Js::with(small_heap(64 << 20));
    js.load(1, &folder.path("a.ts")).await.unwrap();
    let answer = soon(js.dispatch("read", Value::Null)).await;
    assert_eq!(answer, Err(CallError::Stopped(Stop::OutOfMemory)));
    soon(js.until_stopped(Stop::OutOfMemory)).await;
}

#[tokio::test]
async fn unsettled_call_can_be_abandoned() {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[("wait", "() => pi.exec('x')"), ("get", "() => 1")]),
    )]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    let waiting = js.dispatch("wait", Value::Null);
    let waited = tokio::time::timeout(Duration::from_millis(50), waiting).await;
    assert!(waited.is_err());
    assert_eq!(js.dispatch("get", Value::Null).await, Ok(json!(1)));
    let given_back = async {
        while js.runtime.busy_for().await.is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    soon(given_back).await;
    assert_eq!(js.host.faults(), []);
}

#[tokio::test]
async fn stopping_on_request_answers_everything() {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[
            ("wait", "() => new Promise(() => {})"),
            ("spin", "() => { for (;;); }"),
        ]),
    )]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    let calls = async {
        tokio::join!(
            js.dispatch("wait", Value::Null),
            js.dispatch("spin", Value::Null)
        )
    };
    let stop = async {
        while js
            .runtime
            .busy_for()
            .await
            .is_none_or(|busy| busy < Duration::from_millis(20))
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        js.runtime.stop(Stop::Requested);
        js.runtime.stop(Stop::OutOfMemory);
    };
    let (answers, ()) = soon(async { tokio::join!(calls, stop) }).await;
    let stopped = || Err(CallError::Stopped(Stop::Requested));
    assert_eq!(answers, (stopped(), stopped()));
    soon(js.until_stopped(Stop::Requested)).await;
    let (stop, stack) = js.host.stopped();
    assert_eq!((stop, stack.as_str()), ((Stop::Requested, None), ""));
}

#[tokio::test]
async fn blocking_native_code_does_not_block_the_result() {
    let folder = Folder::new(&[(
        "a.ts",
        &format!(
            "import {{ execSync }} from 'node:child_process';\n{}",
            handlers(&[("sleep", "() => { execSync('sleep 60'); }")])
        ),
    )]);
    let js = with_short_limits();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    let started = std::time::Instant::now();
    let answer = soon(js.dispatch("sleep", Value::Null)).await;
    assert_eq!(answer, Err(CallError::Stopped(Stop::Deadline)));
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "it waited for the command"
    );
    soon(js.until_stopped(Stop::Deadline)).await;
    // Native code cannot be attributed; on a slow machine it has not started yet.
    let faults = js.host.faults();
    let stopped = |fault: &Fault| {
        matches!(
            fault,
            Fault::Stopped {
                stop: Stop::Deadline,
                ..
            }
        )
    };
    assert!(faults.len() == 1 && stopped(&faults[0]), "{faults:?}");
}

/// Such a stop aborted the whole program.
#[tokio::test]
async fn stop_during_first_load_ends_only_the_isolate() {
    // Runs in a process of its own: threads that are parked in the panic hook keep the hook, and
    // the harness sets another at its end.
    if std::env::var_os("ALONE").is_none() {
        let this = std::env::current_exe().unwrap();
        let test = "hostile::stop_during_first_load_ends_only_the_isolate";
        let mut alone = tokio::process::Command::new(this);
        alone
            .args(["--exact", test, "--nocapture"])
            .env("ALONE", "1");
        let output = soon(alone.output()).await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !errors.contains("panicked"),
            "{errors}"
        );
        return;
    }
    let source = "await new Promise((resolve) => setTimeout(resolve)); \
                  await import('node:http'); export default () => {};";
    let folder = Folder::new(&[("a.ts", source)]);
    for round in 0..60 {
        let js = Js::start();
        let path = folder.path("a.ts");
        let stop = async {
            tokio::time::sleep(Duration::from_micros(round * 250)).await;
            js.runtime.stop(Stop::Requested);
        };
        _ = soon(async { tokio::join!(js.load(1, &path), stop) }).await;
        soon(js.until_stopped(Stop::Requested)).await;
    }
    std::process::exit(0);
}

/// The extension that was called last was blamed.
#[tokio::test]
async fn spinning_extension_is_known_everywhere() {
    let spin = "for (;;);";
    let late = "new Promise((resolve) => setTimeout(resolve, 50))";
    for body in [
        format!("setTimeout(() => {{ {spin} }}, 50);"),
        format!("setInterval(() => {{ {spin} }}, 50);"),
        format!("setTimeout(() => setImmediate(() => {{ {spin} }}), 50);"),
        format!("setTimeout(() => process.nextTick(() => {{ {spin} }}), 50);"),
        format!("setTimeout(() => queueMicrotask(() => {{ {spin} }}), 50);"),
        format!("{late}.then(() => {{ {spin} }});"),
        format!("(async () => {{ await {late}; {spin} }})();"),
        format!("(async () => {{ await {late}; for (;;) await null; }})();"),
        format!("new AsyncLocalStorage().run(7, async () => {{ await {late}; {spin} }});"),
        format!("fs.promises.readFile('/dev/null').then(() => {late}).then(() => {{ {spin} }});"),
        format!("child_process.exec('sleep 0.1', () => {{ {spin} }});"),
        format!(
            "http.get('http://127.0.0.1:1/').on('error', () => {late}.then(() => {{ {spin} }}));"
        ),
        format!("fs.readFile('/dev/null', () => setTimeout(() => {{ {spin} }}, 50));"),
    ] {
        let imports = "import fs from 'node:fs'; import http from 'node:http';\n\
                       import child_process from 'node:child_process';\n\
                       import { AsyncLocalStorage } from 'node:async_hooks';\n";
        let spinning = handlers(&[("start", &format!("() => {{ {body} }}"))]);
        let folder = Folder::new(&[
            ("a.ts", &format!("{imports}{spinning}")),
            ("b.ts", &handlers(&[("get", "() => 1")])),
        ]);
        let js = with_short_limits();
        js.load(1, &folder.path("a.ts")).await.unwrap();
        js.load(2, &folder.path("b.ts")).await.unwrap();
        for (event, result) in [("start", Value::Null), ("get", json!(1))] {
            let answer = js.dispatch(event, Value::Null).await;
            // On a slow machine the extension spins before the answer.
            let stopped = Err(CallError::Stopped(Stop::Deadline));
            assert!(answer == Ok(result) || answer == stopped, "{answer:?}");
        }
        soon(js.until_stopped(Stop::Deadline)).await;
        let (stop, stack) = js.host.stopped();
        assert_eq!(stop, (Stop::Deadline, handler_of_1("start")), "{body}");
        assert!(stack.contains("a.ts:5:"), "{body}: {stack}");
    }
}

#[tokio::test]
async fn spinning_extension_is_known_while_loading() {
    for source in [
        "for (;;);",
        "await new Promise((resolve) => setTimeout(resolve, 50));\nfor (;;);",
        "export default async () => { await null; for (;;); };",
    ] {
        let folder = Folder::new(&[("a.ts", source)]);
        let js = with_short_limits();
        let limit = Duration::from_secs(3);
        let loaded = soon(js.runtime.load(1, &folder.path("a.ts"), limit)).await;
        assert_eq!(loaded, Err(LoadError::Stopped(Stop::Deadline)));
        soon(js.until_stopped(Stop::Deadline)).await;
        let (stop, stack) = js.host.stopped();
        assert_eq!(stop, (Stop::Deadline, handler_of_1("load")), "{source}");
        assert!(stack.contains("a.ts:"), "{source}: {stack}");
    }
}

#[tokio::test]
async fn process_exit_ends_neither_the_program_nor_the_isolate() {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[
            ("exit", "() => { process.exit(3); }"),
            (
                "later",
                "async () => { await new Promise((r) => setTimeout(r, 1)); process.exitCode = 4; process.exit(); }",
            ),
            ("timer", "() => { setTimeout(() => process.exit(5), 1); }"),
            ("abort", "() => { process.abort(); }"),
            ("kill", "() => { process.kill(process.pid); }"),
            ("group", "() => { process.kill(0, 'SIGINT'); }"),
            (
                "deno",
                "() => { const hidden = (0, eval)('__denoNamespace'); hidden.kill(hidden.pid, 'SIGKILL'); }",
            ),
            (
                "winch",
                "() => { process.kill(process.pid, 'SIGWINCH'); process.kill(process.pid, 0); }",
            ),
            ("get", "() => 1"),
        ]),
    )]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    for (event, wanted) in [
        ("exit", "process.exit(3)"),
        ("later", "process.exit(4)"),
        ("abort", "process.abort()"),
        ("kill", ", SIGTERM)"),
        ("group", "process.kill(0, SIGINT)"),
        ("deno", ", SIGKILL)"),
    ] {
        match js.dispatch(event, Value::Null).await {
            Err(CallError::Thrown { message, stack, .. }) => {
                assert!(message.contains(wanted), "{message}");
                assert!(stack.contains("a.ts:"), "{stack}");
            }
            other => panic!("{event}: {other:?}"),
        }
    }
    js.dispatch("winch", Value::Null).await.unwrap();
    js.dispatch("timer", Value::Null).await.unwrap();
    soon(js.until(|host| host.faults().len() == 7)).await;
    assert_eq!(js.dispatch("get", Value::Null).await, Ok(json!(1)));
    let blamed: Vec<(Option<i32>, Option<Author>)> = js
        .host
        .faults()
        .into_iter()
        .map(|fault| match fault {
            Fault::Exit { code, author } => (Some(code), author),
            Fault::Refused { author, .. } => (None, author),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (Some(3), "exit"),
        (Some(4), "later"),
        (None, "abort"),
        (None, "kill"),
        (None, "group"),
        (None, "deno"),
        (Some(5), "timer"),
    ];
    assert_eq!(
        blamed,
        expected.map(|(code, what)| (code, handler_of_1(what)))
    );
}

#[tokio::test]
async fn process_exit_while_loading_fails_the_load() {
    let folder = Folder::new(&[("a.ts", "process.exit(7);\nexport default () => {};")]);
    let js = Js::start();
    let error = js.load(1, &folder.path("a.ts")).await.unwrap_err();
    assert!(error.to_string().contains("process.exit(7)"), "{error}");
    assert!(error.to_string().contains("a.ts:1:9"), "{error}");
}

#[tokio::test]
async fn uncaught_exceptions_are_only_reported() {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[
            (
                "timer",
                "() => { setTimeout(() => { throw new Error('from a timer'); }, 1); }",
            ),
            (
                "reject",
                "() => { Promise.reject(new TypeError('nobody listens')); }",
            ),
            (
                "tick",
                "() => { process.nextTick(() => { throw new Error('from a tick'); }); }",
            ),
            ("get", "() => new Promise((r) => setTimeout(() => r(1), 5))"),
        ]),
    )]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    for (count, (event, wanted)) in [
        ("timer", "Error: from a timer"),
        ("reject", "TypeError: nobody listens"),
        ("tick", "Error: from a tick"),
    ]
    .into_iter()
    .enumerate()
    {
        js.dispatch(event, Value::Null).await.unwrap();
        soon(js.until(|host| host.faults().len() > count)).await;
        assert_eq!(js.dispatch("get", Value::Null).await, Ok(json!(1)));
        let Fault::Uncaught {
            report: message, ..
        } = &js.host.faults()[count]
        else {
            panic!("{:?}", js.host.faults());
        };
        assert!(message.starts_with(wanted), "{message}");
        let place = format!("{}:{}:", folder.path("a.ts").display(), count + 2);
        assert!(message.contains(&place), "{message}");
    }
    assert_eq!(js.host.faults().len(), 3);
}

#[tokio::test]
async fn dropped_runtime_ends_code_without_a_fault() {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[
            (
                "beat",
                "() => { setInterval(() => console.log('beat'), 5); }",
            ),
            ("spin", "() => { for (;;); }"),
        ]),
    )]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    js.dispatch("beat", Value::Null).await.unwrap();
    soon(js.until(|host| host.lines().len() > 2)).await;
    let spin =
        tokio::time::timeout(Duration::from_millis(50), js.dispatch("spin", Value::Null)).await;
    assert!(spin.is_err());
    let Js { host, runtime } = js;
    runtime.shutdown().await;
    let lines = host.lines().len();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(host.lines().len(), lines);
    assert_eq!(host.faults(), []);
    // The watchdog and the readers of the output have threads of their own, which end after that of
    // the isolate. Then no part of the runtime holds the host any more.
    soon(async {
        while std::sync::Arc::strong_count(&host) > 1 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn workers_end_with_their_isolate() {
    let folder = Folder::new(&[
        (
            "a.ts",
            &handlers(&[
                (
                    "start",
                    "() => { for (const name of ['beat', 'spin', 'greedy']) \
                     new Worker(new URL(`./${name}.ts`, import.meta.url), { type: 'module' }) \
                     .onerror = (event) => { event.preventDefault(); console.log(event.message); }; }",
                ),
                ("get", "() => 1"),
            ]),
        ),
        ("beat.ts", "setInterval(() => console.log('beat'), 2);"),
        ("spin.ts", "for (;;) {}"),
        (
            "greedy.ts",
            "const all: unknown[] = []; for (;;) all.push(new Array(1000).fill(0));",
        ),
    ]);
    let js = Js::with(small_heap(64 << 20));
    js.load(1, &folder.path("a.ts")).await.unwrap();
    js.dispatch("start", Value::Null).await.unwrap();
    let beats = |host: &TestHost| {
        let lines = host.lines();
        lines.iter().filter(|(_, line)| line == "beat").count()
    };
    soon(js.until(|host| beats(host) > 2)).await;
    // A worker that uses too much memory ends alone.
    soon(js.until(|host| !host.faults().is_empty())).await;
    match &js.host.faults()[..] {
        [
            Fault::Uncaught {
                report: message, ..
            },
        ] => assert!(message.contains("/greedy.ts was stopped")),
        others => panic!("{others:?}"),
    }
    assert_eq!(js.dispatch("get", Value::Null).await, Ok(json!(1)));
    let Js { host, runtime } = js;
    runtime.shutdown().await;
    // Their threads notice the stop a moment later.
    soon(async {
        loop {
            let before = beats(&host);
            tokio::time::sleep(Duration::from_millis(50)).await;
            if beats(&host) == before && std::sync::Arc::strong_count(&host) == 1 {
                return;
            }
        }
    })
    .await;
}
