//! Lines of JSON on stdout, which belongs to the mode. Written by a thread of
//! its own; who is faster than the reader waits.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::agent::event::Event;
use crate::app::EventSink;

/// Lines that may wait for the reader.
const CAPACITY: usize = 256;

/// What the reader is given for the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Output {
    lines: mpsc::Sender<Line>,
}

enum Line {
    Event(Arc<Event>),
    Text(String),
    Flushed(oneshot::Sender<()>),
}

impl Output {
    /// Lines go to `file`. The second end is done when it cannot be written any
    /// more.
    pub fn start(file: File) -> io::Result<(Self, oneshot::Receiver<io::Error>)> {
        let (lines, waiting) = mpsc::channel(CAPACITY);
        let (broken, closed) = oneshot::channel();
        std::thread::Builder::new()
            .name("stdout".into())
            .spawn(move || {
                if let Err(error) = write_all(file, waiting) {
                    // Nobody may be listening any more.
                    let _ = broken.send(error);
                }
            })?;
        Ok((Self { lines }, closed))
    }

    pub async fn line(&self, value: &impl Serialize) {
        match serde_json::to_string(value) {
            Ok(text) => self.push(Line::Text(text)).await,
            Err(error) => tracing::error!("a line cannot be written as JSON: {error}"),
        }
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

fn write_all(file: File, mut lines: mpsc::Receiver<Line>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, file);
    while let Some(line) = lines.blocking_recv() {
        match line {
            Line::Event(event) => {
                serde_json::to_writer(&mut out, &*event)?;
                out.write_all(b"\n")?;
            }
            Line::Text(text) => {
                out.write_all(text.as_bytes())?;
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
