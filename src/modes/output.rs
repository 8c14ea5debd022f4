//! Lines of JSON on stdout, which belongs to the mode. Written by a thread of
//! its own; who is faster than the reader waits.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};

use super::wire::{Agreed, Wire};
use crate::agent::event::Event;
use crate::app::EventSink;

/// Lines that may wait for the reader.
const CAPACITY: usize = 256;

/// Bytes of answers that may wait for the reader until no more commands are taken. A
/// client may send thousands before it reads the first answer.
const UNREAD: usize = 32 * 1024 * 1024;

/// What the reader is given for the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Output {
    lines: mpsc::Sender<Line>,
    /// Bytes of texts that nobody has read yet.
    unread: Arc<watch::Sender<usize>>,
}

enum Line {
    Event(Arc<Event>),
    Text(String),
    /// A text that depends on what was written before it.
    Asked(Box<dyn FnOnce(&mut Wire) -> String + Send>),
    Flushed(oneshot::Sender<()>),
}

impl Output {
    /// Lines go to `file`. The second end is done when it cannot be written any
    /// more.
    pub fn start(file: File, agreed: Agreed) -> io::Result<(Self, oneshot::Receiver<io::Error>)> {
        let (lines, waiting) = mpsc::channel(CAPACITY);
        let (broken, closed) = oneshot::channel();
        let unread = Arc::new(watch::Sender::new(0));
        let read = Arc::clone(&unread);
        std::thread::Builder::new()
            .name("stdout".into())
            .spawn(move || {
                if let Err(error) = write_all(file, waiting, Wire::new(agreed), &read) {
                    // Nobody may be listening any more.
                    let _ = broken.send(error);
                }
            })?;
        Ok((Self { lines, unread }, closed))
    }

    pub async fn line(&self, value: &impl Serialize) {
        if let Some(text) = text(value) {
            self.unread.send_modify(|bytes| *bytes += text.len());
            self.push(Line::Text(text)).await;
        }
    }

    /// A line that depends on what was written before it. `work` is done by the thread
    /// that writes, so it should be short.
    pub async fn ask<T: Serialize>(&self, work: impl FnOnce(&mut Wire) -> T + Send + 'static) {
        let work = move |wire: &mut Wire| text(&work(wire)).unwrap_or_default();
        self.push(Line::Asked(Box::new(work))).await;
    }

    /// Returns when the reader has not too much to read yet.
    pub async fn room(&self) {
        let mut unread = self.unread.subscribe();
        // An error means that there is no writer any more; the mode was told.
        let _ = unread.wait_for(|bytes| *bytes < UNREAD).await;
    }

    /// Returns when everything before has reached the pipe, or when the reader has
    /// let it wait for too long.
    pub async fn flush(&self) {
        let flushed = async {
            let (done, flushed) = oneshot::channel();
            self.push(Line::Flushed(done)).await;
            // An error means that there is no reader.
            let _ = flushed.await;
        };
        let _ = tokio::time::timeout(LAST_LINES, flushed).await;
    }

    async fn push(&self, line: Line) {
        // An error means that there is no reader; the mode was told.
        let _ = self.lines.send(line).await;
    }
}

#[async_trait]
impl EventSink for Output {
    async fn send(&self, event: Arc<Event>) {
        self.push(Line::Event(event)).await;
    }
}

fn text(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value)
        .inspect_err(|error| tracing::error!("a line cannot be written as JSON: {error}"))
        .ok()
}

fn write_all(
    file: File,
    mut lines: mpsc::Receiver<Line>,
    mut wire: Wire,
    unread: &watch::Sender<usize>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, file);
    while let Some(line) = lines.blocking_recv() {
        match line {
            Line::Event(event) => wire.event(&event, &mut out)?,
            Line::Text(text) => {
                out.write_all(text.as_bytes())?;
                out.write_all(b"\n")?;
                unread.send_modify(|bytes| *bytes -= text.len());
            }
            Line::Asked(work) => {
                out.write_all(work(&mut wire).as_bytes())?;
                out.write_all(b"\n")?;
            }
            Line::Flushed(done) => {
                out.flush()?;
                // Nobody may be waiting any more.
                let _ = done.send(());
            }
        }
        // A reader sees a line as soon as no other is waiting.
        if lines.is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}
