//! Isolates in a process of their own: many calls at a time, large texts, and failures between the
//! two processes. All other tests run with both backends (CONTRIBUTING.md).

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use js_runtime::{Author, CallError, HostProcess, ProcessEnd, Runtime, RuntimeOptions, Stop};
use serde_json::{Value, json};

use crate::support::{Folder, Js, TestHost, handlers, options, process, soon};

fn apart() -> RuntimeOptions {
    RuntimeOptions {
        process: Some(process()),
        ..options()
    }
}

async fn loaded(list: &[(&str, &str)], options: RuntimeOptions) -> (Folder, Js) {
    let folder = Folder::new(&[("a.ts", &handlers(list))]);
    let js = Js::with(options);
    js.load(1, &folder.path("a.ts")).await.unwrap();
    (folder, js)
}

#[tokio::test]
async fn large_and_small_texts_go_both_ways() {
    let echo = "(event: any) => event.value";
    let (_folder, js) = loaded(&[("echo", echo)], apart()).await;
    let large = json!("\u{e4}\u{1f600}".repeat(1 << 20));
    let calls = (0..6).map(|number| {
        let value = match number % 2 {
            0 => large.clone(),
            _ => json!(number),
        };
        let js = &js;
        async move {
            let answer = js.dispatch("echo", value.clone()).await;
            assert!(answer == Ok(value), "{number}");
        }
    });
    soon(join_all(calls)).await;
}

/// More than the sockets can buffer on either side while no process reads.
#[tokio::test]
async fn thousands_of_concurrent_calls() {
    let list = [
        (
            "late",
            "async (event: any) => { await new Promise((resolve) => setTimeout(resolve, event.value % 7)); return event.value; }",
        ),
        (
            "model",
            "async (event: any) => { await pi.setModel({}); return pi.getSessionName() + event.value; }",
        ),
        (
            "block",
            "() => { const end = Date.now() + 500; while (Date.now() < end); }",
        ),
    ];
    let (_folder, js) = loaded(&list, apart()).await;
    let padding = "x".repeat(500);
    let js = &js;
    let blocked = js.dispatch("block", Value::Null);
    let late = join_all((0..3000).map(|number| js.dispatch("late", json!(number))));
    let asking = join_all((0..1000).map(|number| {
        let value = json!(format!("{padding}{number}"));
        js.dispatch("model", value)
    }));
    let (_, late, asking) = soon(async { tokio::join!(blocked, late, asking) }).await;
    for (number, answer) in late.into_iter().enumerate() {
        assert_eq!(answer, Ok(json!(number)));
    }
    for (number, answer) in asking.into_iter().enumerate() {
        assert_eq!(answer, Ok(json!(format!("a name{padding}{number}"))));
    }
}

#[tokio::test]
async fn abandoned_calls_leave_nothing_behind() {
    let list = [
        ("never", "(event: any) => new Promise(() => {})"),
        ("get", "() => 1"),
    ];
    let (_folder, js) = loaded(&list, apart()).await;
    for round in 0..200_u64 {
        let large = json!("x".repeat(1 << (round % 20)));
        let calls = join_all((0..3).map(|_| js.dispatch("never", large.clone())));
        let limit = Duration::from_micros(round * 37 % 3000);
        assert!(tokio::time::timeout(limit, calls).await.is_err());
    }
    assert_eq!(soon(js.dispatch("get", Value::Null)).await, Ok(json!(1)));
    js.runtime.shutdown().await;
    assert_eq!(js.host.faults(), []);
}

/// Processes run one after the other and concurrently, with pending calls in each.
#[tokio::test]
async fn many_processes_start_and_end() {
    let list = [("wait", "() => pi.exec('x')")];
    for _ in 0..3 {
        let started = join_all((0..3).map(|_| loaded(&list, apart()))).await;
        for (_folder, js) in started {
            let waiting = js.dispatch("wait", Value::Null);
            let waited = tokio::time::timeout(Duration::from_millis(20), waiting).await;
            assert!(waited.is_err());
            soon(js.runtime.shutdown()).await;
            assert_eq!(js.host.faults(), []);
        }
    }
}

#[tokio::test]
async fn crash_fails_all_calls_with_its_reason() {
    let list = [
        ("wait", "() => new Promise(() => {})"),
        (
            "die",
            "async () => { const { execSync } = await import('node:child_process'); \
             execSync(`kill -ABRT ${process.pid}`); for (;;); }",
        ),
    ];
    let (_folder, js) = loaded(&list, apart()).await;
    let calls = async {
        tokio::join!(
            js.dispatch("wait", Value::Null),
            js.dispatch("die", Value::Null)
        )
    };
    let stop = Stop::Exited(ProcessEnd::Signal(6));
    let died = || Err(CallError::Stopped(stop));
    assert_eq!(soon(calls).await, (died(), died()));
    soon(js.until_stopped(stop)).await;
    // The extension whose code runs when the signal arrives is named; the signal may be late.
    let ((reported, author), _) = js.host.stopped();
    assert_eq!(reported, stop);
    assert_eq!(author.as_ref().map_or(1, |author| author.id), 1);
    assert_eq!(soon(js.dispatch("wait", Value::Null)).await, died());
    assert_eq!(js.runtime.stopped(), Some(stop));
    let files = js.runtime.imports().files_of(1);
    assert_eq!(files.len(), 1, "still known: {files:?}");
}

/// The extension that was called last was blamed.
#[tokio::test]
async fn crash_in_a_timer_is_attributed_to_its_extension() {
    let crash = "export default (pi: any) => { pi.on('start', () => { \
        setTimeout(async () => { await null; require('./crash.node'); }, 50); }); };";
    let folder = Folder::new(&[
        ("a.ts", crash),
        ("b.ts", &handlers(&[("get", "() => 1")])),
        (
            "crash.c",
            "void *napi_register_module_v1(void *env, void *exports) {\n\
             *(volatile int *)0 = 1; return exports; }",
        ),
    ]);
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([folder.path("crash.node"), folder.path("crash.c")])
        .status();
    assert!(built.unwrap().success(), "there is a C compiler");
    let js = Js::with(apart());
    js.load(1, &folder.path("a.ts")).await.unwrap();
    js.load(2, &folder.path("b.ts")).await.unwrap();
    js.dispatch("start", Value::Null).await.unwrap();
    js.dispatch("get", Value::Null).await.unwrap();
    let stop = Stop::Exited(ProcessEnd::Signal(11));
    soon(js.until_stopped(stop)).await;
    let author = Some(Author {
        id: 1,
        what: "start".into(),
    });
    assert_eq!(js.host.stopped().0, (stop, author));
}

/// For example, a native addon closes descriptors that are not its own.
#[tokio::test]
async fn process_that_disconnects_is_killed() {
    let close = "async () => { const fs = await import('node:fs'); \
        for (let fd = 3; fd < 64; fd++) { try { fs.closeSync(fd); } catch {} } }";
    let (_folder, js) = loaded(&[("close", close)], apart()).await;
    let answer = soon(js.dispatch("close", Value::Null)).await;
    match answer {
        // The code cannot reach the connection.
        Ok(Value::Null) => {}
        Err(CallError::Stopped(Stop::Exited(_))) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn foreign_program_is_an_error() {
    for (program, expected) in [
        ("/nowhere/pi", "No such file or directory"),
        ("/bin/true", "its process ended with exit code 0"),
        ("/bin/false", "its process ended with exit code 1"),
    ] {
        let options = RuntimeOptions {
            process: Some(HostProcess {
                program: program.into(),
                args: Vec::new(),
            }),
            ..options()
        };
        let host = Arc::new(TestHost::default());
        let error = Runtime::start(options, host.clone()).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(host.faults(), []);
    }
}
