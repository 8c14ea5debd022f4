//! Lines of stdin, on a thread of its own: a terminal or a pipe can then block
//! it for as long as it likes.

use std::fs::File;
use std::io::{BufRead, BufReader};

use tokio::sync::mpsc;

/// Only `\n` ends a line; one `\r` before it is not part of the line. A last line
/// without its end counts. Returns at once.
pub fn read_stdin(input: File, lines: mpsc::Sender<Vec<u8>>) {
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || read(BufReader::new(input), &lines))
        .expect("a process that could start can start a thread");
}

fn read(mut input: impl BufRead, lines: &mpsc::Sender<Vec<u8>>) {
    loop {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("stdin: {error}");
                return;
            }
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        if line.ends_with(b"\r") {
            line.pop();
        }
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(input: &str) -> Vec<String> {
        let (sender, mut lines) = mpsc::channel(16);
        read(input.as_bytes(), &sender);
        drop(sender);
        let mut found = Vec::new();
        while let Some(line) = lines.blocking_recv() {
            found.push(String::from_utf8(line).unwrap());
        }
        found
    }

    #[test]
    fn only_newlines_separate() {
        assert_eq!(
            lines_of("a\r\n\u{2028}b\rc\n\nlast"),
            ["a", "\u{2028}b\rc", "", "last"]
        );
    }
}
