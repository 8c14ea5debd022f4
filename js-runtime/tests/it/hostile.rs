//! Extensions that behave badly cost themselves, never the program.

use std::time::Duration;

use js_runtime::{CallError, Fault, LoadError, Stop};
use serde_json::{Value, json};

use crate::support::{Folder, Js, TestHost, handlers, options, soon};

fn impatient() -> Js {
    let mut options = options();
    options.spin_limit = Duration::from_millis(500);
    Js::with(options)
}

async fn stopped_by(handler: &str) {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[
            ("spin", handler),
            ("wait", "() => new Promise(() => {})"),
            ("get", "() => 1"),
        ]),
    )]);
    let js = impatient();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    let waiting = js.dispatch("wait", Value::Null);
    let spinning = js.dispatch("spin", Value::Null);
    let (waiting, spinning) = soon(async { tokio::join!(waiting, spinning) }).await;
    assert_eq!(spinning, Err(CallError::Stopped(Stop::Deadline)));
    assert_eq!(waiting, Err(CallError::Stopped(Stop::Deadline)));
    soon(js.until_stopped(Stop::Deadline)).await;
    assert_eq!(js.host.faults(), [Fault::Stopped(Stop::Deadline)]);
    let after = soon(js.dispatch("get", Value::Null)).await;
    assert_eq!(after, Err(CallError::Stopped(Stop::Deadline)));
    js.runtime.shutdown().await;
}

#[tokio::test]
async fn an_endless_loop_is_stopped() {
    stopped_by("() => { for (;;); }").await;
}

#[tokio::test]
async fn an_endless_loop_that_catches_everything_is_stopped() {
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
async fn a_load_may_run_longer_than_a_call_but_not_for_ever() {
    let folder = Folder::new(&[
        (
            "slow.ts",
            "const end = Date.now() + 900;\nwhile (Date.now() < end);\nexport default () => {};",
        ),
        ("endless.ts", "for (;;);\nexport default () => {};"),
    ]);
    let js = impatient();
    js.load(1, &folder.path("slow.ts")).await.unwrap();
    let limit = Duration::from_millis(700);
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
        let mut options = options();
        options.max_heap = 64 << 20;
        let js = Js::with(options);
        js.load(1, &folder.path("a.ts")).await.unwrap();
        let answer = soon(js.dispatch("hog", Value::Null)).await;
        assert_eq!(answer, Err(CallError::Stopped(Stop::OutOfMemory)), "{hog}");
        soon(js.until_stopped(Stop::OutOfMemory)).await;
    }
}

#[tokio::test]
async fn a_call_that_never_settles_can_be_abandoned() {
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
    soon(js.until(|_| js.runtime.busy_for().is_none())).await;
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
            .is_none_or(|busy| busy < Duration::from_millis(20))
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        js.runtime.stop(Stop::Asked);
        js.runtime.stop(Stop::OutOfMemory);
    };
    let (answers, ()) = soon(async { tokio::join!(calls, stop) }).await;
    let stopped = || Err(CallError::Stopped(Stop::Asked));
    assert_eq!(answers, (stopped(), stopped()));
    soon(js.until_stopped(Stop::Asked)).await;
    assert_eq!(js.host.faults(), [Fault::Stopped(Stop::Asked)]);
}

#[tokio::test]
async fn native_code_that_blocks_does_not_block_the_answer() {
    let folder = Folder::new(&[(
        "a.ts",
        &format!(
            "import {{ execSync }} from 'node:child_process';\n{}",
            handlers(&[("sleep", "() => { execSync('sleep 5'); }")])
        ),
    )]);
    let js = impatient();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    let started = std::time::Instant::now();
    let answer = soon(js.dispatch("sleep", Value::Null)).await;
    assert_eq!(answer, Err(CallError::Stopped(Stop::Deadline)));
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "it waited for the command"
    );
    assert_eq!(js.host.faults(), [Fault::Stopped(Stop::Deadline)]);
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
            ("get", "() => 1"),
        ]),
    )]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    for (event, wanted) in [
        ("exit", "process.exit(3)"),
        ("later", "process.exit(4)"),
        ("abort", "process.abort()"),
    ] {
        match js.dispatch(event, Value::Null).await {
            Err(CallError::Thrown { message, stack }) => {
                assert!(message.contains(wanted), "{message}");
                assert!(stack.contains("a.ts:"), "{stack}");
            }
            other => panic!("{event}: {other:?}"),
        }
    }
    js.dispatch("timer", Value::Null).await.unwrap();
    soon(js.until(|host| host.faults().len() == 3)).await;
    assert_eq!(js.dispatch("get", Value::Null).await, Ok(json!(1)));
    let exits = [3, 4, 5].map(|code| Fault::Exit { code });
    assert_eq!(js.host.faults(), exits);
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
async fn uncaught_exceptions_and_rejections_are_reported_and_cost_nothing_else() {
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
        let Fault::Uncaught { message } = &js.host.faults()[count] else {
            panic!("{:?}", js.host.faults());
        };
        assert!(message.starts_with(wanted), "{message}");
        let place = format!("{}:{}:", folder.path("a.ts").display(), count + 2);
        assert!(message.contains(&place), "{message}");
    }
    assert_eq!(js.host.faults().len(), 3);
}

#[tokio::test]
async fn dropping_the_runtime_ends_what_runs_without_a_fault() {
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
    // Nothing of the runtime is left that holds the host.
    assert_eq!(std::sync::Arc::strong_count(&host), 1);
}

#[tokio::test]
async fn workers_end_with_the_isolate_that_made_them() {
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
    let mut options = options();
    options.max_heap = 64 << 20;
    let js = Js::with(options);
    js.load(1, &folder.path("a.ts")).await.unwrap();
    js.dispatch("start", Value::Null).await.unwrap();
    let beats = |host: &TestHost| {
        let lines = host.lines();
        lines.iter().filter(|(_, line)| line == "beat").count()
    };
    soon(js.until(|host| beats(host) > 2)).await;
    // One that eats memory ends alone.
    soon(js.until(|host| !host.faults().is_empty())).await;
    match &js.host.faults()[..] {
        [Fault::Uncaught { message }] => assert!(message.contains("/greedy.ts was stopped")),
        others => panic!("{others:?}"),
    }
    assert_eq!(js.dispatch("get", Value::Null).await, Ok(json!(1)));
    let Js { host, runtime } = js;
    runtime.shutdown().await;
    // Their threads notice it a moment later.
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
