//! The watch notices changes of files and reloads (setting `extensionWatch`).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use model_server::ModelServer;
use serde_json::{Value, json};

use crate::support::{Home, Rpc, pause, until_exists, watches};

/// Starts a home in which files are watched.
async fn watched(files: &[(&str, &str)]) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    for (name, source) in files {
        home.extension(name, source);
    }
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    (server, home, rpc)
}

/// An extension that says `value`, an expression, when it starts.
fn says(value: &str) -> String {
    format!(
        "export default (pi) => pi.on('session_start', (_, ctx) => ctx.ui.notify('says ' + ({value})));"
    )
}

/// Replaces a file by rename: on a busy machine the watch would see a truncated one, and reload for it.
fn write(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

async fn fails(rpc: &mut Rpc) {
    rpc.wait("that it does not load", |line| {
        let message = line["message"].as_str().unwrap_or_default();
        ["Last good version kept: ", "Failed: ", "stay: "]
            .iter()
            .any(|part| message.contains(part))
    })
    .await;
}

fn reloads(rpc: &Rpc) -> usize {
    let is_told = |line: &&Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("Reloaded")
    };
    rpc.lines().iter().filter(is_told).count()
}

/// The watch did not know what the code of a failed reload imports.
#[tokio::test]
async fn a_failed_reload_is_repeated_when_its_import_is_there() {
    let (_server, home, mut rpc) = watched(&[("f/index.ts", &says("1"))]).await;
    rpc.notified("says 1").await;
    let source = format!("import {{ value }} from './lib/new'; {}", says("value"));
    home.extension("f/index.ts", &source);
    fails(&mut rpc).await;
    home.extension("f/lib/new.ts", "export const value = 2;");
    rpc.notified("says 2").await;
    rpc.notified("Reloaded: new.ts").await;
}

#[tokio::test]
async fn an_installed_package_repeats_a_failed_reload() {
    let source = format!("import {{ value }} from 'pkg'; {}", says("value"));
    let (_server, home, mut rpc) = watched(&[("a/index.ts", &source)]).await;
    rpc.event("extension_error").await;
    let install = |value: u32| {
        let package = format!(
            r#"{{"name": "pkg", "version": "{value}.0.0", "type": "module", "main": "main.js"}}"#
        );
        home.extension("a/node_modules/pkg/package.json", &package);
        pause(20)
    };
    // The main file of the package comes later than its package.json.
    install(1).await;
    fails(&mut rpc).await;
    home.extension("a/node_modules/pkg/main.js", "export const value = 1;");
    rpc.notified("says 1").await;
    // Another version.
    home.extension("a/node_modules/pkg/main.js", "export const value = 2;");
    install(2).await;
    rpc.notified("says 2").await;
    // A file of the package alone, which an installation writes after package.json.
    home.extension("a/node_modules/pkg/main.js", "export const value = 3;");
    rpc.notified("says 3").await;
}

/// The digest of a file was taken after the load, so that a save in between was missed for good.
#[tokio::test]
async fn a_save_while_pi_starts_is_loaded() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    let slow = format!(
        "import {{ existsSync, writeFileSync }} from 'node:fs'; writeFileSync('loading', '');
        while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 5)); {}",
        says("1")
    );
    home.extension("a.ts", &slow);
    let mut rpc = home.rpc(&[]);
    until_exists(&home.cwd().join("loading")).await;
    home.extension("a.ts", &says("2"));
    home.file("go", "");
    rpc.notified("says 1").await;
    rpc.notified("says 2").await;
}

/// `extensions` leads to a store, as with nix, home-manager or stow.
#[tokio::test]
async fn a_link_that_leads_elsewhere_is_noticed() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    let store = home.cwd().join("store");
    for number in ["1", "2"] {
        let source = format!("import {{ value }} from './lib'; {}", says("value"));
        write(store.join(number).join("a.ts"), &source);
        write(
            store.join(number).join("lib.ts"),
            &format!("export const value = {number};"),
        );
        write(
            store.join(number).join("package.json"),
            r#"{"pi": {"extensions": ["a.ts"]}}"#,
        );
    }
    let link = home.agent_dir().join("extensions");
    let _ = fs::remove_dir_all(&link);
    symlink(store.join("1"), &link).unwrap();
    let mut rpc = home.rpc(&[]);
    rpc.notified("says 1").await;
    fs::remove_file(&link).unwrap();
    symlink(store.join("2"), &link).unwrap();
    rpc.notified("says 2").await;
    // A link within the folder that leads nowhere is filled.
    let target = home.cwd().join("later.ts");
    symlink(&target, store.join("2/late.ts")).unwrap();
    write(
        store.join("2/package.json"),
        r#"{"pi": {"extensions": ["a.ts", "late.ts"]}}"#,
    );
    pause(100).await;
    write(&target, &says("'late'"));
    rpc.notified("says late").await;
}

#[tokio::test]
async fn lists_that_name_extensions_are_watched() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let package = home.cwd().join("pkg");
    write(package.join("a.ts"), &says("'a'"));
    write(package.join("b.ts"), &says("'b'"));
    let list = |entries: &str| {
        write(
            package.join("package.json"),
            &format!(r#"{{"name": "pkg", "pi": {{"extensions": [{entries}]}}}}"#),
        );
    };
    list(r#""a.ts""#);
    let settings = |more: Value| {
        let mut all = json!({ "extensionWatch": true });
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        home.settings(all);
    };
    settings(json!({}));
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    // Nothing was loaded so far, and the folder `extensions` is not there.
    settings(json!({ "packages": [package] }));
    rpc.notified("says a").await;
    list(r#""a.ts", "b.ts""#);
    rpc.notified("says b").await;
    rpc.notified("Reloaded: b.ts").await;
    // An entry less.
    list(r#""b.ts""#);
    rpc.notified("says b").await;
    rpc.notified("Gone: a.ts").await;
    let own = home.file("elsewhere/c.ts", &says("'c'"));
    settings(json!({ "extensions": [own] }));
    rpc.notified("says c").await;
    settings(json!({}));
    rpc.notified("Reloaded: settings.json. Gone: c.ts").await;
    home.extension("d.ts", &says("'d'"));
    rpc.notified("says d").await;
    rpc.notified("Reloaded: d.ts").await;
    // Other settings cause no reload, and are no reason of the next one.
    let before = reloads(&rpc);
    settings(json!({ "hideThinkingBlock": true }));
    home.extension("d.ts", &says("'e'"));
    rpc.notified("says e").await;
    rpc.notified("Reloaded: d.ts").await;
    assert_eq!(reloads(&rpc), before + 1);
}

#[tokio::test]
async fn a_nearer_file_and_the_module_type_are_noticed() {
    let source = format!("import {{ value }} from './lib'; {}", says("value"));
    let (_server, home, mut rpc) = watched(&[
        ("x/index.js", &source),
        ("x/lib.ts", "export const value = 'ts';"),
        ("y/index.js", "module.exports = (pi) => pi.on('session_start', (_, ctx) => ctx.ui.notify('type ' + typeof require));"),
    ])
    .await;
    rpc.notified("says ts").await;
    home.extension("x/lib.js", "export const value = 'js';");
    rpc.notified("says js").await;
    rpc.notified("Reloaded: lib.js").await;
    home.extension("y/package.json", r#"{"type": "module"}"#);
    rpc.wait("the reload", |line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("y/package.json")
    })
    .await;
}

#[tokio::test]
async fn a_read_file_is_watched_on_request() {
    let source = "import { readFileSync } from 'node:fs';
        const file = new URL('./prompt.md', import.meta.url);
        export default (pi) => {
            pi.watch(file);
            const text = readFileSync(file, 'utf8');
            pi.on('session_start', (_, ctx) => ctx.ui.notify('says ' + text));
        };";
    let (_server, home, mut rpc) = watched(&[("p/index.ts", source), ("p/prompt.md", "one")]).await;
    rpc.notified("says one").await;
    home.extension("p/prompt.md", "two");
    rpc.notified("says two").await;
    rpc.notified("Reloaded: prompt.md").await;
}

/// An editor empties a file before it writes: a reload in between took that for settings without
/// `extensionWatch`, and the watch ended for good.
#[tokio::test]
async fn a_reload_while_the_settings_are_empty_keeps_the_watch() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let c = home.file("elsewhere/c.ts", &says("'c'"));
    let d = home.file("elsewhere/d.ts", &says("'d'"));
    let settings = |extensions: Value| {
        home.settings(json!({ "extensionWatch": true, "extensions": extensions }));
    };
    settings(json!([c]));
    let mut rpc = home.rpc(&[]);
    rpc.notified("says c").await;
    fs::write(home.agent_dir().join("settings.json"), "").unwrap();
    rpc.ok(json!({"type": "reload"})).await;
    rpc.notified("says c").await;
    settings(json!([c, d]));
    rpc.notified("says d").await;
}

/// Each save began to count anew, so that reloads followed each other for ever. A unit test has the
/// delays.
#[tokio::test]
async fn reloads_for_a_file_that_the_extension_writes_become_rarer() {
    let source = "import state from './lib/state.json';
        import { writeFileSync } from 'node:fs';
        export default (pi) => pi.on('session_start', (_, ctx) => {
            const file = new URL('./lib/state.json', import.meta.url);
            setTimeout(() => writeFileSync(file, JSON.stringify({ n: state.n + 1 })), 50);
            ctx.ui.notify('started ' + state.n);
        });";
    let (_server, home, mut rpc) =
        watched(&[("a.ts", source), ("lib/state.json", r#"{"n": 1}"#)]).await;
    rpc.wait("the explanation", |line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains(
            "of the last reloads, as if an extension wrote it when it starts: state.json.",
        )
    })
    .await;
    assert!(reloads(&rpc) >= 4);
    // Other files are loaded at once.
    home.extension("b.ts", &says("'b'"));
    rpc.notified("says b").await;
}

#[tokio::test]
async fn a_save_waits_for_a_running_command() {
    let slow = "export default (pi) => pi.registerCommand('slow', { handler: async (args, ctx) => {
            await new Promise((resolve) => setTimeout(resolve, Number(args)));
            ctx.ui.notify('result of the command');
            pi.sendMessage({ customType: 'x', content: 'kept', display: false });
        } });";
    let (_server, home, mut rpc) = watched(&[("slow.ts", slow), ("b.ts", &says("1"))]).await;
    rpc.notified("says 1").await;
    rpc.send(r#"{"type":"prompt","message":"/slow 3000"}"#)
        .await;
    pause(100).await;
    home.extension("b.ts", &says("2"));
    let status = rpc.ui("setStatus").await;
    let text = status["statusText"].as_str().unwrap();
    assert!(
        text.starts_with("b.ts changed: the reload waits for a command of slow.ts"),
        "{text}"
    );
    let wait = rpc.event("extension_wait_start").await;
    assert_eq!(wait["event"], "command");
    assert!(
        wait["extensionPath"].as_str().unwrap().ends_with("slow.ts"),
        "{wait}"
    );
    rpc.notified("result of the command").await;
    let wait = rpc.event("extension_wait_end").await;
    assert_eq!(wait["outcome"], "settled");
    rpc.notified("says 2").await;
    let errors = rpc.lines();
    assert!(!errors.iter().any(|line| line["type"] == "extension_error"));
    // The user does not have to wait.
    rpc.send(r#"{"type":"prompt","message":"/slow 60000"}"#)
        .await;
    pause(100).await;
    home.extension("b.ts", &says("3"));
    rpc.ok(json!({"type": "reload"})).await;
    rpc.notified("says 3").await;
    pause(300).await;
    let threes = rpc.lines();
    let threes = threes.iter().filter(|line| line["message"] == "says 3");
    assert_eq!(threes.count(), 1);
}

/// Both loaded the same files.
#[tokio::test]
async fn a_save_and_a_reload_are_one_load() {
    let idle = "export default () => {};";
    let (_server, home, mut rpc) = watched(&[("a.ts", &says("0")), ("b.ts", idle)]).await;
    rpc.notified("says 0").await;
    let folder = home.agent_dir().join("extensions");
    watches(rpc.process_id(), &folder, true).await;
    for (number, delay) in [(1, 0), (2, 50), (3, 140), (4, 160)] {
        let before = rpc.lines().len();
        home.extension("a.ts", &says(&number.to_string()));
        pause(delay).await;
        rpc.ok(json!({"type": "reload"})).await;
        rpc.notified(&format!("says {number}")).await;
        let loaded = rpc.lines().len();
        // The watch may have been first. Afterwards it has nothing to load but the next save.
        home.extension("b.ts", &format!("{idle} // {number}"));
        rpc.notified("Reloaded: b.ts").await;
        let lines = rpc.lines();
        let is_report = |line: &&Value| line["message"] == "Reloaded: a.ts";
        assert!(!lines[loaded..].iter().any(|line| is_report(&line)));
        assert!(lines[before..].iter().filter(is_report).count() <= 1);
    }
}

#[tokio::test]
async fn twenty_files_of_a_checkout_are_counted() {
    let names: Vec<String> = (b'a'..=b't')
        .map(|name| format!("{}.ts", char::from(name)))
        .collect();
    let source = "export default () => {};";
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), source)).collect();
    let (_server, home, mut rpc) = watched(&files).await;
    for name in &names {
        home.extension(name, "export default () => {}; // new");
    }
    rpc.notified("Reloaded 20 extensions: a.ts, b.ts and 18 more")
        .await;
    home.extension("todo/index.ts", source);
    rpc.notified("Reloaded: todo/index.ts").await;
}

/// The limit of the system is lowered in a user namespace.
#[tokio::test]
async fn a_limit_of_watches_is_said_once_and_polling_goes_on() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    home.extension("a.ts", &says("1"));
    let mut command = home.command("unshare");
    let script = "echo 1 > /proc/sys/user/max_inotify_watches || exit 9; exec \"$@\"";
    command.args(["-Ur", "sh", "-c", script, "sh"]);
    let probe = std::process::Command::new("unshare")
        .args([
            "-Ur",
            "sh",
            "-c",
            "echo 1 > /proc/sys/user/max_inotify_watches",
        ])
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("skipped: user namespaces are not allowed here");
        return;
    }
    command.args([env!("CARGO_BIN_EXE_pi"), "--mode", "rpc"]);
    let mut rpc = Rpc::start(command);
    let is_limit = |line: &Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("sysctl fs.inotify.max_user_watches=")
    };
    rpc.wait("the limit", is_limit).await;
    for number in 2..4 {
        home.extension("a.ts", &says(&number.to_string()));
        rpc.notified(&format!("says {number}")).await;
        home.extension(&format!("new{number}/index.ts"), "export default () => {};");
        rpc.notified(&format!("Reloaded: new{number}/index.ts"))
            .await;
    }
    let lines = rpc.lines();
    assert_eq!(lines.iter().filter(|line| is_limit(line)).count(), 1);
}

/// Clients kept showing a question that nothing waited for any more.
#[tokio::test]
async fn an_open_question_ends_with_an_event_at_a_reload() {
    let source =
        "export default (pi) => pi.registerCommand('ask', { handler: async (args, ctx) => {
            await ctx.ui.input('Say', '', args ? { timeout: Number(args) } : undefined);
            ctx.ui.notify('over');
        } });";
    let (_server, _home, mut rpc) = watched(&[("ask.ts", source)]).await;
    rpc.send(r#"{"type":"prompt","message":"/ask"}"#).await;
    let question = rpc.ui("input").await;
    rpc.send(r#"{"type":"reload"}"#).await;
    let end = rpc.event("extension_ui_end").await;
    assert_eq!(end["id"], question["id"]);
    // So does one of which the time is over, and an answered one does not.
    rpc.send(r#"{"type":"prompt","message":"/ask 100"}"#).await;
    let question = rpc.ui("input").await;
    let end = rpc.event("extension_ui_end").await;
    assert_eq!(end["id"], question["id"]);
    rpc.notified("over").await;
    rpc.send(r#"{"type":"prompt","message":"/ask"}"#).await;
    let question = rpc.ui("input").await;
    rpc.reply(&question, json!({"value": "yes"})).await;
    rpc.notified("over").await;
    let lines = rpc.lines();
    let ends = lines
        .iter()
        .filter(|line| line["type"] == "extension_ui_end");
    assert_eq!(ends.count(), 2);
}

#[tokio::test]
async fn a_file_that_is_no_extension_is_reported_once() {
    let (_server, home, mut rpc) = watched(&[
        ("a.ts", &says("1")),
        ("helper.ts", "export const value = 1;"),
        ("types.d.ts", "export type A = string;"),
    ])
    .await;
    let error = rpc.event("extension_error").await;
    let text = error["error"].as_str().unwrap();
    assert!(
        text.contains("does not export a valid factory function"),
        "{text}"
    );
    home.extension("a.ts", &says("2"));
    rpc.notified("Reloaded: a.ts").await;
    rpc.ok(json!({"type": "reload"})).await;
    let lines = rpc.lines();
    let errors = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    assert_eq!(errors.count(), 1);
    // A change that makes it none in another way is reported.
    home.extension("helper.ts", "export const other = 1;");
    rpc.event("extension_error").await;
}
