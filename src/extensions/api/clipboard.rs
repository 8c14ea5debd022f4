//! `copyToClipboard`: uses a program of the desktop, or the terminal that pi runs in.

use std::io::{self, Write};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use js_runtime::HostError;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::bridge::{BridgeResult, parse};

/// Time limit per program. `wl-copy` serves the copied text from the background afterwards.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// Programs to try, with arguments and the variable that they need.
const PROGRAMS: [(&str, &[&str], Option<&str>); 6] = [
    ("pbcopy", &[], None),
    ("clip.exe", &[], None),
    ("termux-clipboard-set", &[], Some("TERMUX_VERSION")),
    ("wl-copy", &[], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard"], Some("DISPLAY")),
    ("xsel", &["--clipboard", "--input"], Some("DISPLAY")),
];

pub async fn copy(method: &str, args: &str) -> BridgeResult {
    let Text { text } = parse(method, args)?;
    // Works over ssh, too. Terminals do not report whether they support it.
    let written = write_to_terminal(&text);
    let mut failures = Vec::new();
    for (program, arguments, needs) in PROGRAMS {
        if needs.is_some_and(|name| std::env::var_os(name).is_none()) {
            continue;
        }
        let copied = tokio::time::timeout(PROGRAM_TIMEOUT, feed(program, arguments, &text)).await;
        match copied.unwrap_or_else(|_| {
            Err(format!(
                "did not end within {} s",
                PROGRAM_TIMEOUT.as_secs()
            ))
        }) {
            Ok(()) => return Ok(Value::Null),
            // Programs of other systems are not missed.
            Err(why) if needs.is_some() || why != NOT_INSTALLED => {
                failures.push(format!("{program}: {why}"));
            }
            Err(_) => {}
        }
    }
    let Err(why) = written else {
        return Ok(Value::Null);
    };
    if failures.is_empty() {
        failures.push("no desktop (neither WAYLAND_DISPLAY nor DISPLAY is set)".to_owned());
    }
    failures.push(format!("no terminal (/dev/tty: {why})"));
    Err(HostError::new(format!(
        "copyToClipboard: nothing took the text: {}",
        failures.join("; ")
    )))
}

const NOT_INSTALLED: &str = "not installed";

/// Writes the text to a program's stdin. The error says why the program failed.
async fn feed(program: &str, arguments: &[&str], text: &str) -> Result<(), String> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NOT_INSTALLED.to_owned(),
        _ => error.to_string(),
    })?;
    let written = match child.stdin.take() {
        Some(mut stdin) => stdin.write_all(text.as_bytes()).await,
        None => Ok(()),
    };
    let status = child.wait().await.map_err(|error| error.to_string())?;
    match status.success() {
        true => written.map_err(|error| error.to_string()),
        // The exit status says more than the failed write.
        false => Err(status.to_string()),
    }
}

/// Sends OSC 52 to the terminal directly, because stdout belongs to the mode.
fn write_to_terminal(text: &str) -> io::Result<()> {
    let mut terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty")?;
    let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
    terminal.write_all(sequence.as_bytes())
}
