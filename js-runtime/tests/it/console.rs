//! Output of JavaScript never reaches the standard streams of the program.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use js_runtime::Console;
use serde_json::{Value, json};

use crate::support::{Folder, Js, handlers, soon};

#[tokio::test]
async fn output_reaches_the_host_by_line() {
    let folder = Folder::new(&[(
        "a.ts",
        &format!(
            "import fs from 'node:fs';\nimport {{ spawnSync, spawn, execSync }} from 'node:child_process';\n{}",
            handlers(&[(
                "get",
                r#"async () => {
    console.log("log %d", 1, { a: 1 });
    console.error("error");
    process.stdout.write("half ");
    process.stdout.write("line\nnext\n");
    process.stderr.write("direct\n");
    fs.writeSync(1, "writeSync\n");
    fs.writeFileSync(1, "writeFileSync\n");
    spawnSync("echo", ["sync child"], { stdio: "inherit" });
    execSync("echo shell child >&2", { stdio: "inherit" });
    await new Promise((done) => spawn("echo", ["child"], { stdio: "inherit" }).on("close", done));
    process.stdout.write("end\n");
    console.error("end");
    return [process.stdout.isTTY ?? false, process.stdin.isTTY ?? false];
  }"#,
            )]),
        ),
    )]);
    let js = Js::start();
    assert_eq!(js.get(&folder.path("a.ts")).await, json!([false, false]));
    let ends = |host: &crate::support::TestHost| {
        host.lines()
            .iter()
            .filter(|(_, line)| line == "end")
            .count()
            == 2
    };
    soon(js.until(ends)).await;
    let of = |console| {
        let lines = js.host.lines().into_iter();
        let lines = lines.filter(|(of, _)| *of == console).map(|(_, line)| line);
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        of(Console::Out),
        [
            "log 1 { a: 1 }",
            "half line",
            "next",
            "writeSync",
            "writeFileSync",
            "sync child",
            "child",
            "end"
        ]
    );
    assert_eq!(of(Console::Err), ["error", "direct", "shell child", "end"]);
}

/// Moving streams changes the process, so the test starts itself in a process of its own, with some
/// input.
#[tokio::test]
async fn taken_streams_are_unreachable() {
    const INNER: &str = "JS_RUNTIME_TEST_INNER";
    if std::env::var_os(INNER).is_some() {
        let streams = js_runtime::take_standard_streams().unwrap();
        return inside(streams).await;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            "console::taken_streams_are_unreachable",
        ])
        .env(INNER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"{\"for\":\"the mode\"}")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    // The harness has printed before; what it prints later goes to stderr.
    assert!(printed.ends_with("{\"from\":\"the mode\"}\n"), "{printed}");
    assert!(!printed.contains("escaped"), "{printed}");
    assert!(output.status.success());
}

async fn inside(mut streams: js_runtime::StandardStreams) {
    let folder = Folder::new(&[(
        "a.ts",
        &format!(
            "import fs from 'node:fs';\nimport {{ spawnSync, spawn }} from 'node:child_process';\n{}",
            handlers(&[(
                "get",
                r#"async () => {
    const chunks: unknown[] = [];
    for await (const chunk of process.stdin) chunks.push(String(chunk));
    const sync = spawnSync("cat", { stdio: ["inherit", "pipe", "pipe"] });
    const child = spawn("cat", { stdio: ["inherit", "pipe", "pipe"] });
    let out = "";
    child.stdout.on("data", (data) => out += data);
    await new Promise((done) => child.on("close", done));
    fs.appendFileSync("/dev/stdout", "escaped\n");
    return [chunks, fs.readFileSync(0, "utf8"), String(sync.stdout), out];
  }"#,
            )]),
        ),
    )]);
    let js = Js::start();
    let answer = soon(js.get(&folder.path("a.ts"))).await;
    assert_eq!(answer, json!([[], "", "", ""]));
    let mut input = String::new();
    streams.input.read_to_string(&mut input).unwrap();
    assert_eq!(input, "{\"for\":\"the mode\"}");
    streams
        .output
        .write_all(b"{\"from\":\"the mode\"}\n")
        .unwrap();
}

#[tokio::test]
async fn shell_command_of_this_program_is_unchanged() {
    let folder = Folder::new(&[(
        "a.ts",
        &format!(
            "import {{ execSync, execFileSync }} from 'node:child_process';\n{}",
            handlers(&[(
                "get",
                r#"() => [
    execSync(`"${process.execPath}" --list --exact nothing | head -1; echo end`, { encoding: "utf8" }),
    execFileSync(process.execPath, ["--list", "--exact", "nothing"], { encoding: "utf8" }).trim(),
  ]"#,
            )]),
        ),
    )]);
    let js = Js::start();
    let answer = soon(js.get(&folder.path("a.ts"))).await;
    let [shell, direct] = answer.as_array().unwrap().as_slice() else {
        panic!("{answer}");
    };
    assert_eq!(direct, "0 tests, 0 benchmarks");
    assert!(shell.as_str().unwrap().ends_with("end\n"), "{shell}");
    assert!(!shell.as_str().unwrap().contains("error"), "{shell}");
}

#[tokio::test]
async fn last_output_arrives_before_the_end() {
    let folder = Folder::new(&[(
        "a.ts",
        &handlers(&[("get", "() => { console.log('last words'); }")]),
    )]);
    let js = Js::start();
    js.load(1, &folder.path("a.ts")).await.unwrap();
    js.dispatch("get", Value::Null).await.unwrap();
    let Js { host, runtime } = js;
    runtime.shutdown().await;
    assert_eq!(host.lines(), [(Console::Out, "last words".to_string())]);
}
