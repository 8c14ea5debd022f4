//! The standard streams of JavaScript. Output (`console.*`, `process.stdout`, `fs.writeSync(1, …)`,
//! child processes that inherit) goes through pipes to the host line by line, and cannot reach the
//! program's own streams. Input is empty.

use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use deno_runtime::deno_io::{Stdio, StdioPipe};
use js_runtime_ext::{Console, Host};

/// Maximum length of a line, so that a stream without line ends costs no memory.
const MAX_OUTPUT_LINE_BYTES: u64 = 64 * 1024;

/// Time in which the last lines may arrive after the isolate is gone, on a busy machine. A child
/// process in the background may keep a pipe open forever.
const LAST_LINES_TIMEOUT: Duration = Duration::from_millis(500);

/// Handle of the threads that read the pipes.
pub(crate) struct Readers {
    ended: mpsc::Receiver<()>,
}

pub(crate) fn redirect(host: &Arc<dyn Host>) -> io::Result<(Stdio, Readers)> {
    let (end, ended) = mpsc::channel();
    let stdio = Stdio {
        stdin: StdioPipe::file(File::open("/dev/null")?),
        stdout: pipe(Console::Out, host, end.clone())?,
        stderr: pipe(Console::Err, host, end)?,
    };
    Ok((stdio, Readers { ended }))
}

impl Readers {
    /// Waits until all output has arrived. Must be called after the isolate has closed its ends.
    pub fn finish(self) {
        let deadline = Instant::now() + LAST_LINES_TIMEOUT;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            // An error means that both threads have ended, or that time is up.
            if self.ended.recv_timeout(left).is_err() {
                return;
            }
        }
    }
}

fn pipe(console: Console, host: &Arc<dyn Host>, end: mpsc::Sender<()>) -> io::Result<StdioPipe> {
    let writer = forwarding_pipe(console, host, end)?;
    Ok(StdioPipe::file(File::from(OwnedFd::from(writer))))
}

/// Returns the write end of a pipe whose lines go to the host.
pub(crate) fn line_reader(
    console: Console,
    host: &Arc<dyn Host>,
) -> io::Result<(PipeWriter, Readers)> {
    let (end, ended) = mpsc::channel();
    Ok((forwarding_pipe(console, host, end)?, Readers { ended }))
}

fn forwarding_pipe(
    console: Console,
    host: &Arc<dyn Host>,
    end: mpsc::Sender<()>,
) -> io::Result<PipeWriter> {
    let (reader, writer) = io::pipe()?;
    let host = host.clone();
    std::thread::Builder::new()
        .name("js-console".into())
        .spawn(move || {
            forward(reader, |line| host.console(console, line));
            // The receiver is gone if the runtime ended long ago.
            _ = end.send(());
        })?;
    Ok(writer)
}

fn forward(reader: PipeReader, mut line_written: impl FnMut(&str)) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader)
            .take(MAX_OUTPUT_LINE_BYTES)
            .read_until(b'\n', &mut line)
        {
            Ok(0) => return,
            Ok(_) => {
                while matches!(line.last(), Some(b'\n' | b'\r')) {
                    line.pop();
                }
                line_written(&String::from_utf8_lossy(&line));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn long_lines_are_cut() {
        let (reader, mut writer) = io::pipe().unwrap();
        let long = "x".repeat(MAX_OUTPUT_LINE_BYTES as usize + 1);
        let text = format!("one\r\n\ntwo\n{long}\nlast");
        let writing = std::thread::spawn(move || writer.write_all(text.as_bytes()).unwrap());
        let mut lines = Vec::new();
        forward(reader, |line| lines.push(line.to_string()));
        writing.join().unwrap();
        let piece = "x".repeat(MAX_OUTPUT_LINE_BYTES as usize);
        assert_eq!(lines, ["one", "", "two", &piece, "x", "last"]);
    }
}
