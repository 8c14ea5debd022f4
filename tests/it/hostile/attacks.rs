//! One attack per file in `attacks/`. After each attack the run continues, the attacker is named,
//! the other extensions work, and the next prompt is answered.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt};

/// The bystander is loaded after the attack, so that the last extension called is not the culprit.
const BYSTANDER: &str = include_str!("attacks/bystander.ts");

struct Attack {
    server: ModelServer,
    _home: Home,
    rpc: Rpc,
    name: &'static str,
}

impl Attack {
    async fn prepare(name: &'static str, source: &str, settings: Value) -> Self {
        Self::prepare_with(name, source, settings, |home| home.rpc(&[])).await
    }

    async fn prepare_with(
        name: &'static str,
        source: &str,
        settings: Value,
        start: impl FnOnce(&Home) -> Rpc,
    ) -> Self {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.settings(settings);
        home.extension(&format!("{name}.ts"), source);
        home.extension("zz-bystander.ts", BYSTANDER);
        let rpc = start(&home);
        Self {
            server,
            _home: home,
            rpc,
            name,
        }
    }

    /// Runs the attack and returns all lines until the agent is done.
    async fn strike(&mut self) -> Vec<Value> {
        self.server.push(Answer::text("Anyway."));
        self.rpc.run("attack").await
    }

    /// Waits for a report about the extension that contains these words.
    async fn is_named(&mut self, words: &str) -> Value {
        let file = format!("/{}.ts", self.name);
        let reported = |line: &Value| {
            let path = line["extensionPath"].as_str().unwrap_or_default();
            let text = line["error"].as_str().unwrap_or_default();
            line["type"] == "extension_error" && path.ends_with(&file) && text.contains(words)
        };
        // The report may have come before the run ended.
        let seen = self.rpc.lines().into_iter().find(reported);
        match seen {
            Some(seen) => seen,
            None => self.rpc.wait("the report", reported).await,
        }
    }

    /// Insists that the agent and the other extensions still work.
    async fn survived_by_all(mut self) {
        self.rpc.ok(prompt("/ping 1")).await;
        self.rpc.notified("pong 1").await;
        self.server.push(Answer::text("Still here."));
        assert_eq!(self.rpc.answer_to("are you there?").await, "Still here.");
        let blamed = self.rpc.lines().into_iter().find(|line| {
            let path = line["extensionPath"].as_str().unwrap_or_default();
            line["type"] == "extension_error" && path.ends_with("bystander.ts")
        });
        assert_eq!(blamed, None, "the bystander is blamed");
        assert_eq!(self.rpc.close().await.code(), Some(0));
    }
}

/// Short limits that no honest extension reaches on a slow machine.
fn settings() -> Value {
    json!({ "extensionTimeouts": { "spin": 3000 }, "extensionHeapMb": 128 })
}

/// Long limits for attacks that must not be stopped, however slow the machine is.
fn long_timeouts() -> Value {
    json!({ "extensionTimeouts": { "spin": 30_000 }, "extensionHeapMb": 128 })
}

/// The extension is quarantined during the attack.
async fn is_quarantined(name: &'static str, source: &str) {
    let mut attack = Attack::prepare(name, source, settings()).await;
    attack.strike().await;
    let error = attack.is_named("quarantined").await;
    assert_eq!(error["event"], "before_agent_start", "{error}");
    // Lines that arrive while the other extensions are reloaded wait for them.
    attack.survived_by_all().await;
}

/// The extension is quarantined after the attacked call has ended.
async fn is_quarantined_later(name: &'static str, source: &str) {
    let mut attack = Attack::prepare(name, source, settings()).await;
    attack.strike().await;
    attack.is_named("quarantined").await;
    attack.survived_by_all().await;
}

async fn runs_out_of_memory(name: &'static str, source: &str) {
    // The memory limit ends the attack, not the time limit.
    let settings = json!({ "extensionTimeouts": { "spin": 60_000 }, "extensionHeapMb": 128 });
    let mut attack = Attack::prepare(name, source, settings).await;
    attack.strike().await;
    attack
        .is_named("(it used up its memory) and quarantined")
        .await;
    attack.survived_by_all().await;
}

/// The attack fails and is reported.
async fn is_reported(name: &'static str, source: &str, words: &str) {
    let mut attack = Attack::prepare(name, source, long_timeouts()).await;
    attack.strike().await;
    attack.is_named(words).await;
    attack.survived_by_all().await;
}

/// The attack changes built-in objects: the report names the change, and the extension is
/// quarantined.
async fn does_damage(name: &'static str, source: &str, what: &str) {
    let mut attack = Attack::prepare(name, source, settings()).await;
    attack.strike().await;
    let reason = format!(
        "(it modified the built-in {what}, which pi and other extensions depend on) and quarantined"
    );
    let error = attack.is_named(&reason).await;
    assert_eq!(error["event"], "before_agent_start", "{error}");
    attack.survived_by_all().await;
}

macro_rules! attacks {
    ($($test:ident($file:literal) $check:ident($($words:literal)?);)*) => {$(
        #[tokio::test]
        async fn $test() {
            $check($file, include_str!(concat!("attacks/", $file, ".ts")) $(, $words)?).await;
        }
    )*};
}

attacks! {
    endless_loop("endless-loop") is_quarantined();
    endless_microtasks("endless-microtasks") is_quarantined();
    timer_storm("timer-storm") is_quarantined_later();
    loop_in_a_timer("loop-in-a-timer") is_quarantined();
    loop_in_a_listener("loop-in-a-listener") is_quarantined_later();
    regular_expression("regular-expression") is_quarantined();
    heap_bomb("heap-bomb") is_quarantined();
    array_buffer_bomb("array-buffer-bomb") is_reported("Array buffer allocation failed");
    stack_overflow("stack-overflow") is_reported("Maximum call stack size exceeded");
    deep_result("deep-result") is_reported("within each other in more than 1000 levels");
    huge_result("huge-result") is_reported("the limit is 64 MB");
    cyclic_result("cyclic-result") is_reported("circular");
    throwing_getters("throwing-getters") is_reported("from a getter");
    throws_strange_things("throws-strange-things") is_reported("");
    prototype_pollution("prototype-pollution") is_quarantined();
    promise_then("promise-then") does_damage("Promise.prototype.then");
    promise_species("promise-species") does_damage("Promise[Symbol.species]");
    global_promise("global-promise") does_damage("globalThis.Promise");
    function_call("function-call") does_damage("Function.prototype.call");
    object_then("object-then") does_damage("Object.prototype.then");
    object_to_json("object-to-json") does_damage("Object.prototype.toJSON");
    object_step("object-step") does_damage("Object.prototype.step");
    array_species("array-species") does_damage("Array[Symbol.species]");
    string_includes("string-includes") does_damage("String.prototype.includes");
    array_iterator("array-iterator") does_damage("Array.prototype[Symbol.iterator]");
    array_push("array-push") does_damage("Array.prototype.push");
    json_stringify("json-stringify") does_damage("JSON.stringify");
    reflect_apply("reflect-apply") does_damage("Reflect.apply");
    map_get("map-get") does_damage("Map.prototype.get");
    wasm_memory("wasm-memory") runs_out_of_memory();
    wasm_memory_too_large("wasm-memory-too-large") is_reported("could not allocate memory");
    wasm_grow("wasm-grow") runs_out_of_memory();
    uncaught_listener("uncaught-listener") is_quarantined_later();
    exec_sync("exec-sync") is_quarantined_later();
    blocked_file("blocked-file") is_quarantined();
    endless_file("endless-file") is_reported("Array buffer allocation failed");
    umask("umask") is_reported("process.umask(0o777)");
    process_exit("process-exit") is_reported("process.exit(1)");
    process_abort("process-abort") is_reported("process.abort()");
    process_kill("process-kill") is_reported("SIGKILL");
    write_to_stdout("write-to-stdout") is_reported("was loud");
    close_descriptors("close-descriptors") is_reported("");
    others_descriptors("others-descriptors") is_reported("it is the program's own");
    every_pipe("every-pipe") is_reported("wrote to every pipe");
    internals("internals") is_reported("Cannot read properties of undefined (reading 'core')");
    catches_everything("catches-everything") is_quarantined();
    waits_on_itself("waits-on-itself") is_quarantined();
}

/// The user is told at half of the limit and at the limit.
#[tokio::test]
async fn never_settles() {
    let settings = json!({ "extensionTimeouts": { "events": { "before_agent_start": 2000 } } });
    let source = include_str!("attacks/never-settles.ts");
    let mut attack = Attack::prepare("never-settles", source, settings).await;
    let happened = attack.strike().await;
    let waits: Vec<&Value> = happened
        .iter()
        .filter(|line| {
            line["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("extension_wait"))
        })
        .collect();
    let [start, end] = waits[..] else {
        panic!("{waits:?}")
    };
    assert_eq!(start["type"], "extension_wait_start");
    assert_eq!(end["type"], "extension_wait_end");
    assert_eq!(end["outcome"], "abandoned");
    for wait in [start, end] {
        let path = wait["extensionPath"].as_str().unwrap();
        assert!(path.ends_with("/never-settles.ts"), "{wait}");
        assert_eq!(wait["event"], "before_agent_start");
        assert_eq!(wait["limitMs"], 2000);
    }
    assert!(start["elapsedMs"].as_u64() >= Some(1000), "{start}");
    assert!(end["elapsedMs"].as_u64() >= Some(2000), "{end}");
    attack.is_named("timed out after 2 s").await;
    attack.survived_by_all().await;
}

#[tokio::test]
async fn never_settles_and_is_aborted() {
    let settings = json!({ "extensionTimeouts": { "handler": 20_000 } });
    let source = include_str!("attacks/never-settles.ts");
    let mut attack = Attack::prepare("never-settles", source, settings).await;
    attack.rpc.send(&prompt("attack").to_string()).await;
    attack.rpc.event("extension_wait_start").await;
    attack.rpc.ok(json!({"type": "abort"})).await;
    let end = attack.rpc.event("extension_wait_end").await;
    assert_eq!(end["outcome"], "cancelled", "{end}");
    attack.survived_by_all().await;
}

/// The creator of the worker gets the error, as in Node.
#[tokio::test]
async fn worker_out_of_memory() {
    let source = include_str!("attacks/worker-out-of-memory.ts");
    let mut attack = Attack::prepare("worker-out-of-memory", source, settings()).await;
    let happened = attack.strike().await;
    let notified = happened.iter().filter_map(|line| line["message"].as_str());
    let notified = notified.filter(|message| !message.starts_with("started"));
    let expected = ["error ERR_WORKER_OUT_OF_MEMORY", "exit 1"];
    assert!(notified.eq(expected), "{happened:#?}");
    let reported = attack.rpc.lines();
    let mut reported = reported
        .iter()
        .filter(|line| line["type"] == "extension_error");
    assert_eq!(reported.next(), None, "it has heard of it");
    attack.survived_by_all().await;
}

/// The rejections are reported, and so are all other errors.
#[tokio::test]
async fn rejections() {
    let source = include_str!("attacks/rejections.ts");
    let mut attack = Attack::prepare("rejections", source, settings()).await;
    attack.strike().await;
    attack.is_named("More reports like this").await;
    let again = |line: &Value| {
        line["error"]
            .as_str()
            .is_some_and(|error| error.contains("again"))
    };
    let shown = attack.rpc.lines().iter().filter(|line| again(line)).count();
    assert!(shown <= 10, "{shown}");
    attack.survived_by_all().await;
}

#[tokio::test]
async fn half_characters() {
    let source = include_str!("attacks/half-characters.ts");
    let mut attack = Attack::prepare("half-characters", source, settings()).await;
    let happened = attack.strike().await;
    let notified = |line: &Value| line["message"] == "half \u{fffd} \\ud800";
    assert!(happened.iter().any(notified), "{happened:#?}");
    let errors = |line: &Value| line["type"] == "extension_error";
    assert_eq!(attack.rpc.lines().into_iter().find(errors), None);
    attack.survived_by_all().await;
}

/// Code at the end of the stack cannot report: V8 ended the process.
#[tokio::test]
async fn events_in_a_circle() {
    let source = include_str!("attacks/events-in-a-circle.ts");
    let mut attack = Attack::prepare("events-in-a-circle", source, settings()).await;
    attack.strike().await;
    while !attack.rpc.stderr().contains("emit in a circle") {
        crate::support::pause(10).await;
    }
    let place = "/events-in-a-circle.ts:3:";
    assert!(
        attack.rpc.stderr().contains(place),
        "{}",
        attack.rpc.stderr()
    );
    attack.survived_by_all().await;
}

#[tokio::test]
async fn damage_in_a_timer() {
    let source = include_str!("attacks/damage-in-a-timer.ts");
    let mut attack = Attack::prepare("damage-in-a-timer", source, settings()).await;
    attack.strike().await;
    // The bystander was called last.
    let error = attack
        .is_named("it modified the built-in Promise.prototype.then")
        .await;
    assert_eq!(error["event"], "uncaught", "{error}");
    attack.survived_by_all().await;
}

/// The rest of the queue was lost for all extensions, and others were named.
#[tokio::test]
async fn damage_in_an_event_of_the_queue() {
    let source = include_str!("attacks/object-step-queued.ts");
    let mut attack = Attack::prepare("object-step-queued", source, settings()).await;
    attack.strike().await;
    let error = attack
        .is_named("it modified the built-in Object.prototype.step")
        .await;
    assert_eq!(error["event"], "agent_end", "{error}");
    attack.survived_by_all().await;
}

#[tokio::test]
async fn damage_at_load() {
    let source = include_str!("attacks/damage-at-load.ts");
    let mut attack = Attack::prepare("damage-at-load", source, settings()).await;
    let error = attack
        .is_named("it modified the built-in Promise.prototype.then")
        .await;
    assert_eq!(error["event"], "load", "{error}");
    attack.survived_by_all().await;
}

/// An exception in a callback ended whatever ran, with the results of other extensions.
#[tokio::test]
async fn throws_in_callbacks() {
    let source = include_str!("attacks/throws-in-callbacks.ts");
    let mut attack = Attack::prepare("throws-in-callbacks", source, settings()).await;
    attack.is_named("while loading").await;
    let happened = attack.strike().await;
    let went_on = happened.iter().find(|line| line["message"] == "went on");
    assert!(went_on.is_some(), "{happened:?}");
    for way in [
        "a microtask",
        "a listener",
        "reportError",
        "a timer",
        "a tick",
        "an observer",
        "nowhere",
    ] {
        attack.is_named(&format!("from {way}")).await;
    }
    attack.server.push(Answer::tool("thrower", json!({})));
    attack.strike().await;
    let request = attack.server.last_request().body.to_string();
    assert!(request.contains("changed all the same"), "{request}");
    attack.rpc.ok(prompt("/handled")).await;
    attack.rpc.notified("handled mine").await;
    let mine =
        |line: &Value| line["type"] == "extension_error" && line.to_string().contains("mine");
    assert_eq!(attack.rpc.lines().into_iter().find(mine), None);
    attack.survived_by_all().await;
}

/// The extension of a timer is known although no stack names it.
#[tokio::test]
async fn throws_in_timers() {
    let source = include_str!("attacks/throws-in-timers.ts");
    let mut attack = Attack::prepare("throws-in-timers", source, long_timeouts()).await;
    attack.strike().await;
    for way in [
        "a timeout",
        "an interval",
        "an immediate",
        "a microtask",
        "a tick",
        "a promise",
        "an emitter",
        "a target",
    ] {
        attack.is_named(&format!("from {way}")).await;
    }
    let error = attack.is_named("undefined").await;
    assert_eq!(error["event"], "uncaught", "{error}");
    attack.survived_by_all().await;
}

#[tokio::test]
async fn other_user() {
    let source = include_str!("attacks/other-user.ts");
    let mut attack = Attack::prepare("other-user", source, long_timeouts()).await;
    let happened = attack.strike().await;
    for call in [
        "setuid(4321)",
        "setgid(4321)",
        "seteuid(4321)",
        "setegid(4321)",
        "setgroups()",
        "initgroups()",
    ] {
        let words = format!("process.{call} was called: the user");
        attack.is_named(&words).await;
        let thrown = |line: &Value| {
            let message = line["message"].as_str().unwrap_or_default();
            line["type"] == "extension_ui_request" && message.starts_with(&words)
        };
        assert!(happened.iter().any(thrown), "{call}: {happened:#?}");
    }
    attack.survived_by_all().await;
}

/// The files are closed before the agent needs descriptors.
#[tokio::test]
async fn fd_exhaustion() {
    uses_up_descriptors("fd-exhaustion", include_str!("attacks/fd-exhaustion.ts")).await;
}

/// A closed file leaves a low number free: the lowest free number says nothing of how many are left.
#[tokio::test]
async fn fd_exhaustion_with_gaps() {
    uses_up_descriptors(
        "fd-exhaustion-with-gaps",
        include_str!("attacks/fd-exhaustion-with-gaps.ts"),
    )
    .await;
}

async fn uses_up_descriptors(name: &'static str, source: &str) {
    let start = |home: &Home| {
        let mut command = home.command("sh");
        let few = "ulimit -n 200 && exec \"$0\" --mode rpc";
        command.args(["-c", few, env!("CARGO_BIN_EXE_pi")]);
        Rpc::start(command)
    };
    let mut attack = Attack::prepare_with(name, source, long_timeouts(), start).await;
    attack.strike().await;
    let error = attack
        .is_named("(it used up the files and connections")
        .await;
    assert!(
        error["error"].to_string().contains("quarantined"),
        "{error}"
    );
    attack
        .server
        .push(Answer::tool("bash", json!({"command": "echo $((6 * 7))"})));
    attack.server.push(Answer::text("It says 42."));
    attack.rpc.run("count").await;
    let request = attack.server.last_request().body.to_string();
    assert!(request.contains("42"), "{request}");
    let stored = |line: &Value| line["type"] == "extension_error" && line["event"] == "append";
    assert_eq!(attack.rpc.lines().into_iter().find(stored), None);
    attack.survived_by_all().await;
}

/// The extension that is being loaded at the time is not named.
#[tokio::test]
async fn timer_during_load() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": { "spin": 3000, "load": 3000 } }));
    home.extension(
        "timer-during-load.ts",
        include_str!("attacks/timer-during-load.ts"),
    );
    let slow = "await new Promise((resolve) => setTimeout(resolve, 200));";
    home.extension("zz-bystander.ts", &format!("{slow}\n{BYSTANDER}"));
    let attack = Attack {
        rpc: home.rpc(&[]),
        server,
        _home: home,
        name: "timer-during-load",
    };
    attack.survived_by_all().await;
}

/// Polyfills change the same objects with good intent.
#[tokio::test]
async fn polyfills() {
    let source = include_str!("attacks/polyfills.ts");
    let mut attack = Attack::prepare("polyfills", source, settings()).await;
    attack.strike().await;
    attack.rpc.ok(prompt("/shims")).await;
    attack.rpc.notified("shims true").await;
    let errors = |line: &Value| line["type"] == "extension_error";
    assert_eq!(attack.rpc.lines().into_iter().find(errors), None);
    attack.survived_by_all().await;
}

#[tokio::test]
async fn reload_in_reload() {
    let source = include_str!("attacks/reload-in-reload.ts");
    let mut attack = Attack::prepare("reload-in-reload", source, settings()).await;
    for _ in 0..8 {
        attack.server.push(Answer::text("Hello to you."));
    }
    attack.rpc.event("agent_end").await;
    attack.rpc.ok(prompt("/attack")).await;
    let error = attack.is_named("was stopped").await;
    assert_eq!(error["event"], "session_shutdown", "{error}");
    attack.rpc.ok(json!({"type": "abort"})).await;
    attack.rpc.ok(prompt("/ping 1")).await;
    attack.rpc.notified("pong 1").await;
    assert_eq!(attack.rpc.close().await.code(), Some(0));
}

/// The crash ends the process of the extensions, not the session. (`host_process` has more.)
#[tokio::test]
async fn native_crash() {
    let source = r#"
        import { createRequire } from "node:module";
        export default (pi) => pi.on("before_agent_start", (event) => {
            if (event.prompt === "attack") createRequire(import.meta.url)("./crash.node");
        });"#;
    let crash = "void *napi_register_module_v1(void *env, void *exports) {\n\
                 *(volatile int *)0 = 1; return exports; }";
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionHost": "thread" }));
    let addon = home
        .extension("native-crash.ts", source)
        .with_file_name("crash.node");
    let c = home.file("crash.c", crash);
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&addon, &c])
        .status();
    assert!(
        built.unwrap().success(),
        "scripts/setup asks for a C compiler"
    );

    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Noted."));
    assert_eq!(rpc.answer_to("remember the milk").await, "Noted.");
    rpc.send(&prompt("attack").to_string()).await;
    assert_eq!(rpc.end().await.code(), None, "it was killed by a signal");

    let mut rpc = home.rpc(&["-c"]);
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    let text = messages.to_string();
    assert!(
        text.contains("remember the milk") && text.contains("Noted."),
        "{text}"
    );
    server.push(Answer::text("Still here."));
    assert_eq!(rpc.answer_to("are you there?").await, "Still here.");
}
