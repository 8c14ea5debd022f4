//! Helpers that the tests share.

mod browser;
mod home;
mod reference;
pub mod registry;
mod rpc;
mod terminal;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use model_server::ModelServer;
use serde_json::{Value, json};

pub use browser::Browser;
pub use home::{Finished, Home, copy, finish, read_jsonl};
pub use reference::{
    Reference, cache_dir, locked, newest_client, newest_json_parser, npm, python_with,
    type_packages,
};
pub use rpc::{Rpc, pause};
pub use terminal::Terminal;

/// Time limit for things that are bound to happen, on a slow machine that has other things to do as
/// well.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Arguments that choose the built-in demo model, which needs no key and no network.
pub const DEMO: [&str; 4] = ["--provider", "demo", "--model", "demo"];

/// [`DEMO`] without a session file.
pub const DEMO_NO_SESSION: [&str; 5] = ["--provider", "demo", "--model", "demo", "--no-session"];

/// The values of the setting `extensionHost`.
pub const EXTENSION_HOSTS: [&str; 2] = ["thread", "process"];

/// A picture of one pixel: a PNG in base64.
pub const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A model server, an empty home, and a client of pi.
pub async fn idle() -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let rpc = home.rpc(&[]);
    (server, home, rpc)
}

/// A model server, a home with one extension in it, and a client of pi.
pub async fn with_extension(source: &str) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", source);
    let rpc = home.rpc(&[]);
    (server, home, rpc)
}

/// The text blocks of a message or of a tool's result, joined.
pub fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => blocks(content, "text"),
    }
}

/// The joined contents of the blocks of one type.
pub fn blocks(content: &Value, kind: &str) -> String {
    let blocks = content.as_array().into_iter().flatten();
    blocks
        .filter(|block| block["type"] == kind)
        .filter_map(|block| block[kind].as_str())
        .collect()
}

/// A command without members.
pub fn command(kind: &str) -> Value {
    json!({"type": kind})
}

/// A command that sends a prompt.
pub fn prompt(message: &str) -> Value {
    json!({"type": "prompt", "message": message})
}

pub fn message_end(role: &str) -> impl Fn(&Value) -> bool {
    move |event| event["type"] == "message_end" && event["message"]["role"] == role
}

/// The object without some of its members.
pub fn without(value: &Value, members: &[&str]) -> Value {
    let mut value = value.clone();
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| !members.contains(&name.as_str()));
    }
    value
}

/// Waits until a process uses no CPU time for half a second.
#[cfg(target_os = "linux")]
pub async fn quiet(pid: u32) {
    let time = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.to_owned();
        let fields: Vec<&str> = fields.split(' ').collect();
        [11, 12].map(|at| fields[at].parse::<u64>().unwrap())
    };
    let mut before = time();
    let mut quiet = 0;
    while quiet < 5 {
        pause(100).await;
        let now = time();
        quiet = match now == before {
            true => quiet + 1,
            false => 0,
        };
        before = now;
    }
}

/// Whether a process runs. A zombie does not: in a container there may be no parent that reaps it.
pub fn is_running(process: u64) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

/// Waits until a process has ended.
pub async fn until_ended(process: u64, what: &str) {
    let deadline = Instant::now() + TIMEOUT;
    while is_running(process) {
        assert!(Instant::now() < deadline, "{what}: {process} still runs");
        pause(10).await;
    }
}

/// Waits until a file exists. Its content may be incomplete, unless it is renamed into place.
pub async fn until_exists(path: &Path) {
    let deadline = Instant::now() + TIMEOUT;
    while !path.exists() {
        assert!(Instant::now() < deadline, "no {}", path.display());
        pause(10).await;
    }
}

/// Runs a slash command and returns the JSON that its handler passes to `ctx.ui.notify`.
pub async fn command_result(rpc: &mut Rpc, command: &str) -> Value {
    rpc.ok(prompt(&format!("/{command}"))).await;
    let line = rpc
        .wait("the result", |line| {
            line["method"] == "notify" || line["type"] == "extension_error"
        })
        .await;
    let text = line["message"].as_str().unwrap_or_else(|| panic!("{line}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Waits until a process watches a folder (inotify), or until it does not any more. A folder that
/// was replaced by another one of the same name is not watched.
pub async fn watches(process: u32, folder: &Path, expected: bool) {
    let inode = format!(" ino:{:x} ", fs::metadata(folder).unwrap().ino());
    let is_watched = || {
        let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo")).unwrap();
        let infos = descriptors.filter_map(|info| fs::read_to_string(info.ok()?.path()).ok());
        infos
            .flat_map(|info| info.lines().map(str::to_owned).collect::<Vec<_>>())
            .any(|line| line.starts_with("inotify ") && line.contains(&inode))
    };
    let deadline = Instant::now() + TIMEOUT;
    while is_watched() != expected {
        let folder = folder.display();
        assert!(
            Instant::now() < deadline,
            "{folder}: watched is not {expected}"
        );
        pause(10).await;
    }
    // The files are read after the folder is watched.
    pause(100).await;
}
