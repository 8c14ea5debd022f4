//! Lines of JSON on stdout, which belongs to the mode. Written by a thread of
//! its own; who is faster than the reader waits.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::wire::{Agreed, Wire};
use crate::agent::event::Event;
use crate::app::EventSink;

/// Events that may wait for the reader, or whoever tells of them waits. Answers never
/// wait: they have their order from that.
const CAPACITY: usize = 256;

/// Bytes of answers that may wait for the reader until no more commands are taken. A
/// client may send thousands before it reads the first answer.
const UNREAD: usize = 32 * 1024 * 1024;
/// What an answer counts that is not written yet.
const ASKED: usize = 1024;

/// How long the reader may take nothing of the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);
/// The same once somebody has asked for the end: whoever does may not wait for long before
/// he kills.
const HURRIED: Duration = Duration::from_secs(1);
/// For all of the last lines, however slowly they are read.
const SLOWEST: Duration = Duration::from_secs(15);
/// How often it is looked whether the reader has taken anything.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of one write: whoever takes that many is reading.
const PIECE: usize = 16 * 1024;

#[derive(Clone)]
pub struct Output {
    lines: mpsc::UnboundedSender<Line>,
    /// Room for events.
    events: Arc<Semaphore>,
    /// Bytes of answers that nobody has read yet.
    unread: Arc<watch::Sender<usize>>,
    /// What the thread that writes is about.
    progress: Arc<Progress>,
    /// Nobody reads, and nobody waits for that any more.
    given_up: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct Progress {
    /// Bytes that went into the pipe.
    written: AtomicU64,
    /// There is something that is not in the pipe yet.
    busy: AtomicBool,
}

enum Line {
    Event(Arc<Event>, OwnedSemaphorePermit),
    Text(String),
    /// A text that depends on what was written before it.
    Asked(Box<dyn FnOnce(&mut Wire) -> String + Send>),
    /// Answered with what is agreed with the reader when everything before is in the pipe.
    Flushed(oneshot::Sender<Agreed>),
}

impl Output {
    /// Lines go to `stdout`. The second end is done when it cannot be written any
    /// more, and before [`Self::flush`] is.
    pub fn start(
        stdout: impl Write + Send + 'static,
        agreed: Agreed,
    ) -> io::Result<(Self, oneshot::Receiver<io::Error>)> {
        let (lines, mut waiting) = lines();
        let (broken, closed) = oneshot::channel();
        let unread = Arc::new(watch::Sender::new(0));
        let progress = Arc::new(Progress::default());
        let read = Arc::clone(&unread);
        let pieces = Pieces {
            stdout,
            progress: Arc::clone(&progress),
        };
        std::thread::Builder::new()
            .name("stdout".into())
            .spawn(move || {
                let mut flushing = None;
                let wire = Wire::new(agreed);
                let written = write_all(pieces, &mut waiting, wire, &read, &mut flushing);
                if let Err(error) = written {
                    // Nobody may be listening any more.
                    let _ = broken.send(error);
                }
                // Who waits for a flush hears of its end when the reason is known.
                drop((flushing, waiting));
            })?;
        let output = Self {
            lines,
            events: Arc::new(Semaphore::new(CAPACITY)),
            unread,
            progress,
            given_up: Arc::new(watch::Sender::new(false)),
        };
        Ok((output, closed))
    }

    pub fn line(&self, value: &impl Serialize) {
        if let Some(text) = text(value) {
            self.unread.send_modify(|bytes| *bytes += text.len());
            self.push(Line::Text(text));
        }
    }

    /// A line that depends on what was written before it. `work` is done by the thread
    /// that writes, so it should be short.
    pub fn ask<T: Serialize>(&self, work: impl FnOnce(&mut Wire) -> T + Send + 'static) {
        let work = move |wire: &mut Wire| text(&work(wire)).unwrap_or_default();
        self.unread.send_modify(|bytes| *bytes += ASKED);
        self.push(Line::Asked(Box::new(work)));
    }

    /// Returns when the reader has not too much to read yet.
    pub async fn room(&self) {
        let mut unread = self.unread.subscribe();
        // An error means that there is no writer any more; the mode was told.
        let _ = unread.wait_for(|bytes| *bytes < UNREAD).await;
    }

    /// The end has been asked for. A reader that reads gets everything; for one that does
    /// not the agent does not stand still any more, and what he has not taken is lost.
    pub fn hurry(&self) {
        let output = self.clone();
        tokio::spawn(async move {
            output.stalled(HURRIED).await;
            output.given_up.send_replace(true);
        });
    }

    /// Returns when everything before has reached the pipe, or when the reader has
    /// let it wait for too long.
    pub async fn flush(&self) {
        tokio::select! {
            _ = self.flushed() => {}
            () = self.given_up() => {}
            () = self.stalled(LAST_LINES) => {}
            () = tokio::time::sleep(SLOWEST) => {}
        }
    }

    /// Returns when everything before has reached the pipe, however long that takes, with what
    /// is agreed with the reader by then; `None` if there is no reader.
    pub async fn flushed(&self) -> Option<Agreed> {
        let (done, flushed) = oneshot::channel();
        self.push(Line::Flushed(done));
        flushed.await.ok()
    }

    /// Returns when there was something to read for so long, and nothing of it was taken.
    async fn stalled(&self, limit: Duration) {
        let mut seen = None;
        let mut since = Instant::now();
        while since.elapsed() < limit {
            tokio::time::sleep(LOOK).await;
            let busy = self.progress.busy.load(Ordering::Relaxed);
            let now = busy.then(|| self.progress.written.load(Ordering::Relaxed));
            if now.is_none() || now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    async fn given_up(&self) {
        // The sender lives as long as this.
        let _ = self
            .given_up
            .subscribe()
            .wait_for(|given_up| *given_up)
            .await;
    }

    fn push(&self, line: Line) {
        // An error means that there is no reader; the mode was told.
        let _ = self.lines.send(line);
    }
}

#[async_trait]
impl EventSink for Output {
    async fn send(&self, event: Arc<Event>) {
        let room = tokio::select! {
            biased;
            room = Arc::clone(&self.events).acquire_owned() => room,
            () = self.given_up() => return,
        };
        // It is never closed.
        if let Ok(room) = room {
            self.push(Line::Event(event, room));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "events have a limit of their own, and answers one in bytes: see room"
)]
fn lines() -> (mpsc::UnboundedSender<Line>, mpsc::UnboundedReceiver<Line>) {
    mpsc::unbounded_channel()
}

fn text(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value)
        .inspect_err(|error| tracing::error!("a line cannot be written as JSON: {error}"))
        .ok()
}

/// Counts what the reader takes, and gives it to him in pieces: a write returns only when
/// all of it is in the pipe.
struct Pieces<W> {
    stdout: W,
    progress: Arc<Progress>,
}

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stdout.write(&bytes[..bytes.len().min(PIECE)])?;
        let progress = &self.progress.written;
        progress.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

fn write_all(
    stdout: Pieces<impl Write>,
    lines: &mut mpsc::UnboundedReceiver<Line>,
    mut wire: Wire,
    unread: &watch::Sender<usize>,
    flushing: &mut Option<oneshot::Sender<Agreed>>,
) -> io::Result<()> {
    let progress = Arc::clone(&stdout.progress);
    let mut out = BufWriter::with_capacity(64 * 1024, stdout);
    while let Some(line) = lines.blocking_recv() {
        progress.busy.store(true, Ordering::Relaxed);
        match line {
            Line::Event(event, _room) => wire.event(&event, &mut out)?,
            Line::Text(text) => {
                out.write_all(text.as_bytes())?;
                out.write_all(b"\n")?;
                unread.send_modify(|bytes| *bytes -= text.len());
            }
            Line::Asked(work) => {
                out.write_all(work(&mut wire).as_bytes())?;
                out.write_all(b"\n")?;
                unread.send_modify(|bytes| *bytes -= ASKED);
            }
            Line::Flushed(done) => {
                *flushing = Some(done);
                out.flush()?;
                if let Some(done) = flushing.take() {
                    // Nobody may be waiting any more.
                    let _ = done.send(wire.agreed());
                }
            }
        }
        // A reader sees a line as soon as no other is waiting.
        if lines.is_empty() {
            out.flush()?;
            progress.busy.store(false, Ordering::Relaxed);
        }
    }
    out.flush()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    /// More than a pipe holds, and more events than may wait.
    async fn too_much(output: &Output) {
        let event = Arc::new(Event::QueueUpdate {
            steering: vec!["x".repeat(1000)],
            follow_up: Vec::new(),
        });
        for _ in 0..CAPACITY * 2 {
            output.send(Arc::clone(&event)).await;
        }
    }

    fn start() -> (Output, File) {
        let (reader, writer) = io::pipe().unwrap();
        let reader: std::os::fd::OwnedFd = reader.into();
        let (output, _closed) = Output::start(writer, Agreed::default()).unwrap();
        (output, reader.into())
    }

    /// Without the end of patience it would wait for ever.
    #[tokio::test]
    async fn who_does_not_read_keeps_nobody_from_ending() {
        let (output, _unread) = start();
        output.hurry();
        too_much(&output).await;
        output.flush().await;
        assert!(*output.given_up.borrow());
    }

    #[tokio::test]
    async fn silence_is_not_taken_for_a_reader_that_is_gone() {
        let (output, mut reader) = start();
        output.line(&"first");
        let mut first = [0; 8];
        reader.read_exact(&mut first).unwrap();
        output.hurry();
        tokio::time::sleep(HURRIED + LOOK * 2).await;
        output.line(&"last");
        let mut last = [0; 7];
        reader.read_exact(&mut last).unwrap();
        assert_eq!(&last, b"\"last\"\n");
        assert!(!*output.given_up.borrow());
    }

    /// A full disk ended now and then with success: the reason was told after the flush.
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread")]
    async fn who_has_flushed_knows_why_it_failed() {
        for _ in 0..200 {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let (output, mut closed) = Output::start(full, Agreed::default()).unwrap();
            output.line(&"last");
            output.flush().await;
            let error = closed.try_recv().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }
}
