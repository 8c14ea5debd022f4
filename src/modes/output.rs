//! Writes lines of JSON to stdout on a thread of its own. Senders of events wait when the
//! reader is slower than they are.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::wire::{Capabilities, EventWriter};
use pi_agent::event::Event;
use pi_app::EventSink;

/// Maximum number of events that wait for the reader; then the sender of an event waits.
/// Responses never wait, so that they keep their order.
const EVENT_CAPACITY: usize = 256;

/// Bytes of unwritten responses at which no more commands are read. A client may send
/// thousands of commands before it reads the first response.
const MAX_UNREAD_BYTES: usize = 32 * 1024 * 1024;
/// Bytes that a computed line counts until it is written.
const COMPUTED_LINE_BYTES: usize = 1024;

/// How long `flush` waits while the reader takes nothing.
const FLUSH_STALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the reader may take nothing after shutdown was requested. A client that
/// requests it may kill the process soon.
const SHUTDOWN_STALL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum duration of `flush`, however slowly the reader reads.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the progress of the reader is polled.
const STALL_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct Output {
    lines: mpsc::UnboundedSender<Line>,
    /// Permits for events that wait for the reader.
    events: Arc<Semaphore>,
    /// Bytes of responses that are not written yet.
    unread: Arc<watch::Sender<usize>>,
    /// Progress of the writer thread.
    progress: Arc<Progress>,
    /// True once senders stop waiting for a reader that does not read.
    abandoned: Arc<watch::Sender<bool>>,
}

struct Progress {
    /// Bytes written to the pipe.
    written: Arc<AtomicU64>,
    /// True while lines wait to be written.
    pending: AtomicBool,
}

enum Line {
    Event(Arc<Event>, OwnedSemaphorePermit),
    Text(String),
    /// A line computed by the writer thread from what was written before it.
    Computed(Box<dyn FnOnce(&mut EventWriter) -> String + Send>),
    /// Sends the client's capabilities once everything before it is in the pipe.
    Flush(oneshot::Sender<Capabilities>),
}

impl Output {
    /// Starts the thread that writes to `stdout`. The receiver gets the error when stdout
    /// cannot be written any more, before [`Self::flush`] returns.
    pub fn start(
        stdout: js_runtime::Output,
        capabilities: Capabilities,
    ) -> io::Result<(Self, oneshot::Receiver<io::Error>)> {
        let (lines, mut waiting) = lines();
        let (broken, closed) = oneshot::channel();
        let unread = Arc::new(watch::Sender::new(0));
        let progress = Arc::new(Progress {
            written: stdout.written(),
            pending: AtomicBool::default(),
        });
        let read = Arc::clone(&unread);
        let writer_progress = Arc::clone(&progress);
        std::thread::Builder::new()
            .name("stdout".into())
            .spawn(move || {
                let mut flushing = None;
                let events = EventWriter::new(capabilities);
                let written = write_all(
                    stdout,
                    &writer_progress,
                    &mut waiting,
                    events,
                    &read,
                    &mut flushing,
                );
                if let Err(error) = written {
                    // The receiver may be dropped.
                    let _ = broken.send(error);
                }
                // A flush ends after the error was sent.
                drop((flushing, waiting));
            })?;
        let output = Self {
            lines,
            events: Arc::new(Semaphore::new(EVENT_CAPACITY)),
            unread,
            progress,
            abandoned: Arc::new(watch::Sender::new(false)),
        };
        Ok((output, closed))
    }

    pub fn line(&self, value: &impl Serialize) {
        if let Some(text) = text(value) {
            self.unread.send_modify(|bytes| *bytes += text.len());
            self.push(Line::Text(text));
        }
    }

    /// Writes a line that is computed from what was written before it. `work` runs on the
    /// writer thread, so it should be short.
    pub fn computed_line<T: Serialize>(
        &self,
        work: impl FnOnce(&mut EventWriter) -> T + Send + 'static,
    ) {
        let work = move |events: &mut EventWriter| text(&work(events)).unwrap_or_default();
        self.unread
            .send_modify(|bytes| *bytes += COMPUTED_LINE_BYTES);
        self.push(Line::Computed(Box::new(work)));
    }

    /// Waits until the bytes of unwritten responses are below the limit.
    pub async fn wait_for_response_capacity(&self) {
        let mut unread = self.unread.subscribe();
        // An error means that the writer has ended, which the mode learns from `start`.
        let _ = unread.wait_for(|bytes| *bytes < MAX_UNREAD_BYTES).await;
    }

    /// Limits how long senders wait, for use after shutdown was requested. A client that reads
    /// gets every line; lines that a stalled client has not read are lost.
    pub fn abandon_stalled_reader(&self) {
        let output = self.clone();
        tokio::spawn(async move {
            output.wait_stalled(SHUTDOWN_STALL_TIMEOUT).await;
            output.abandoned.send_replace(true);
        });
    }

    /// Waits until all earlier lines are in the pipe, or until the reader stalls for too long.
    pub async fn flush(&self) {
        tokio::select! {
            _ = self.flush_unlimited() => {}
            () = self.abandoned() => {}
            () = self.wait_stalled(FLUSH_STALL_TIMEOUT) => {}
            () = tokio::time::sleep(FLUSH_TIMEOUT) => {}
        }
    }

    /// Waits without limit until all earlier lines are in the pipe, and returns the client's
    /// capabilities; `None` if there is no reader.
    pub async fn flush_unlimited(&self) -> Option<Capabilities> {
        let (done, flushed) = oneshot::channel();
        self.push(Line::Flush(done));
        flushed.await.ok()
    }

    /// Waits until lines were waiting for `limit` and the reader took none of them.
    async fn wait_stalled(&self, limit: Duration) {
        let mut seen = None;
        let mut since = Instant::now();
        while since.elapsed() < limit {
            tokio::time::sleep(STALL_POLL_INTERVAL).await;
            let pending = self.progress.pending.load(Ordering::Relaxed);
            let now = pending.then(|| self.progress.written.load(Ordering::Relaxed));
            if now.is_none() || now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    async fn abandoned(&self) {
        // An error is impossible: the sender lives as long as `self`.
        let _ = self
            .abandoned
            .subscribe()
            .wait_for(|abandoned| *abandoned)
            .await;
    }

    fn push(&self, line: Line) {
        // An error means that the writer has ended, which the mode learns from `start`.
        let _ = self.lines.send(line);
    }
}

#[async_trait]
impl EventSink for Output {
    async fn send(&self, event: Arc<Event>) {
        let permit = tokio::select! {
            biased;
            permit = Arc::clone(&self.events).acquire_owned() => permit,
            () = self.abandoned() => return,
        };
        // The semaphore is never closed.
        if let Ok(permit) = permit {
            self.push(Line::Event(event, permit));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "events are limited by permits and responses by bytes: see wait_for_response_capacity"
)]
fn lines() -> (mpsc::UnboundedSender<Line>, mpsc::UnboundedReceiver<Line>) {
    mpsc::unbounded_channel()
}

fn text(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value)
        .inspect_err(|error| tracing::error!("a line cannot be written as JSON: {error}"))
        .ok()
}

fn write_all(
    stdout: js_runtime::Output,
    progress: &Progress,
    lines: &mut mpsc::UnboundedReceiver<Line>,
    mut events: EventWriter,
    unread: &watch::Sender<usize>,
    flushing: &mut Option<oneshot::Sender<Capabilities>>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, stdout);
    while let Some(line) = lines.blocking_recv() {
        progress.pending.store(true, Ordering::Relaxed);
        match line {
            Line::Event(event, _permit) => events.write_event(&event, &mut out)?,
            Line::Text(text) => {
                out.write_all(text.as_bytes())?;
                out.write_all(b"\n")?;
                unread.send_modify(|bytes| *bytes -= text.len());
            }
            Line::Computed(work) => {
                out.write_all(work(&mut events).as_bytes())?;
                out.write_all(b"\n")?;
                unread.send_modify(|bytes| *bytes -= COMPUTED_LINE_BYTES);
            }
            Line::Flush(done) => {
                *flushing = Some(done);
                out.flush()?;
                if let Some(done) = flushing.take() {
                    // The receiver may be dropped.
                    let _ = done.send(events.capabilities());
                }
            }
        }
        // Flush as soon as no other line is waiting.
        if lines.is_empty() {
            out.flush()?;
            progress.pending.store(false, Ordering::Relaxed);
        }
    }
    out.flush()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;

    /// Sends more events than may wait, and more bytes than a pipe holds.
    async fn too_much(output: &Output) {
        let event = Arc::new(Event::QueueUpdate {
            steering: vec!["x".repeat(1000)],
            follow_up: Vec::new(),
        });
        for _ in 0..EVENT_CAPACITY * 2 {
            output.send(Arc::clone(&event)).await;
        }
    }

    fn start_on(stdout: File) -> (Output, oneshot::Receiver<io::Error>) {
        let stdout = js_runtime::Output::new(stdout).unwrap();
        Output::start(stdout, Capabilities::default()).unwrap()
    }

    fn start() -> (Output, File) {
        let (reader, writer) = io::pipe().unwrap();
        let (output, _closed) = start_on(OwnedFd::from(writer).into());
        (output, OwnedFd::from(reader).into())
    }

    /// Without the limit after shutdown was requested this waits for ever.
    #[tokio::test]
    async fn a_stalled_reader_does_not_delay_the_end() {
        let (output, _unread) = start();
        output.abandon_stalled_reader();
        too_much(&output).await;
        output.flush().await;
        assert!(*output.abandoned.borrow());
    }

    #[tokio::test]
    async fn an_idle_writer_does_not_count_as_a_stalled_reader() {
        let (output, mut reader) = start();
        output.line(&"first");
        let mut first = [0; 8];
        reader.read_exact(&mut first).unwrap();
        output.abandon_stalled_reader();
        tokio::time::sleep(SHUTDOWN_STALL_TIMEOUT + STALL_POLL_INTERVAL * 2).await;
        output.line(&"last");
        let mut last = [0; 7];
        reader.read_exact(&mut last).unwrap();
        assert_eq!(&last, b"\"last\"\n");
        assert!(!*output.abandoned.borrow());
    }

    /// The error was once sent after the flush, so that a full disk ended with success.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn the_error_is_known_when_flush_returns() {
        for _ in 0..200 {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let (output, mut closed) = start_on(full);
            output.line(&"last");
            output.flush().await;
            let error = closed.try_recv().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }
}
