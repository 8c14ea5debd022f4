//! `copyToClipboard`: through a program of the desktop, or the terminal that pi was
//! started in.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use js_runtime::HostError;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::host::{Answer, parse};

/// `wl-copy` stays to serve what was copied, in the background.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// Programs that may be there, with the variable without which they are of no use.
const PROGRAMS: [(&str, &[&str], Option<&str>); 6] = [
    ("pbcopy", &[], None),
    ("clip.exe", &[], None),
    ("termux-clipboard-set", &[], Some("TERMUX_VERSION")),
    ("wl-copy", &[], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard"], Some("DISPLAY")),
    ("xsel", &["--clipboard", "--input"], Some("DISPLAY")),
];

pub async fn copy(method: &str, args: &str) -> Answer {
    let Text { text } = parse(method, args)?;
    // Works over ssh, too; whether the terminal listens cannot be found out.
    let told = tell_terminal(&text);
    for (program, arguments, needs) in PROGRAMS {
        let usable = needs.is_none_or(|name| std::env::var_os(name).is_some());
        if usable
            && matches!(
                tokio::time::timeout(LIMIT, feed(program, arguments, &text)).await,
                Ok(true)
            )
        {
            return Ok(Value::Null);
        }
    }
    if told {
        return Ok(Value::Null);
    }
    Err(HostError::new(
        "copyToClipboard: there is no clipboard. Install wl-copy (Wayland), xclip or xsel (X11)",
    ))
}

/// `false` if it is not there or failed.
async fn feed(program: &str, arguments: &[&str], text: &str) -> bool {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    if let Some(mut stdin) = child.stdin.take()
        && stdin.write_all(text.as_bytes()).await.is_err()
    {
        return false;
    }
    child.wait().await.is_ok_and(|status| status.success())
}

/// OSC 52. Not through stdout, which belongs to the mode.
fn tell_terminal(text: &str) -> bool {
    let terminal = std::fs::OpenOptions::new().write(true).open("/dev/tty");
    let sequence = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
    terminal.is_ok_and(|mut terminal| terminal.write_all(sequence.as_bytes()).is_ok())
}
