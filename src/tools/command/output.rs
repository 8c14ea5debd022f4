//! Keeps the output of a command: its end in memory, and all of it in a file once it exceeds the
//! output limit. Memory is bounded for any amount of output.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use pi_base::secrets::StreamRedactor;

use crate::text::truncate::{self, Limits, MAX_BYTES, MAX_LINES, Truncation};

/// Minimum number of bytes kept in memory; the maximum is twice as many and one piece.
const TAIL_BYTES: usize = 2 * MAX_BYTES;

#[derive(Default)]
pub(crate) struct CommandOutput {
    tail: Vec<u8>,
    total_bytes: usize,
    newlines: usize,
    /// Bytes since the last newline.
    open_line_bytes: usize,
    /// Bytes of the last complete line that was not empty.
    ended_line_bytes: usize,
    log: Log,
    redactor: StreamRedactor,
}

#[derive(Default)]
enum Log {
    #[default]
    NotNeeded,
    Open(File, PathBuf),
    Closed(PathBuf),
    /// The file could not be written; the command continues.
    Failed(io::Error),
}

impl CommandOutput {
    /// Adds output, with known secrets replaced, also those that arrive in pieces.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        let bytes = self.redactor.push(bytes);
        self.push_redacted(&bytes).await;
    }

    async fn push_redacted(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.open_line_bytes += piece.len();
            if piece.ends_with(b"\n") {
                self.newlines += 1;
                if self.open_line_bytes > 1 {
                    self.ended_line_bytes = self.open_line_bytes - 1;
                }
                self.open_line_bytes = 0;
            }
        }
        if matches!(self.log, Log::NotNeeded)
            && (self.total_bytes > MAX_BYTES || self.newlines >= MAX_LINES)
        {
            self.open_log().await;
        }
        if let Log::Open(file, _) = &mut self.log
            && let Err(error) = file.write_all(bytes).await
        {
            self.log = Log::Failed(error);
        }
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
    }

    /// Creates the file. `tail` holds all of the output at this time.
    async fn open_log(&mut self) {
        self.log = match create_log().await {
            Ok((mut file, path)) => match file.write_all(&self.tail).await {
                Ok(()) => Log::Open(file, path),
                Err(error) => Log::Failed(error),
            },
            Err(error) => Log::Failed(error),
        };
    }

    /// Returns the end of the output, with counts of the whole.
    pub(crate) fn shown(&self) -> Truncation {
        let text = self.text();
        let mut record = truncate::tail(&text, Limits::default());
        let mut newlines = self.newlines;
        let dropped = self.total_bytes - self.tail.len();
        if record.truncated && record.content.bytes().all(|byte| byte == b'\n') {
            // The output ends with a line that is too long and its newline. Without the newline
            // the end of the line is shown instead of an empty line.
            let line = text.trim_end_matches('\n');
            record = truncate::tail(line, Limits::default());
            newlines -= text.len() - line.len();
        }
        if dropped > 0 {
            record.total_lines = newlines + 1;
            record.total_bytes += dropped;
        }
        record
    }

    /// Closes the log, and returns the end of the output. The log then has the whole output.
    pub(crate) async fn finish(&mut self) -> Truncation {
        let rest = self.redactor.finish();
        self.push_redacted(&rest).await;
        let record = self.shown();
        if record.truncated && matches!(self.log, Log::NotNeeded) {
            self.open_log().await;
        }
        self.log = match std::mem::take(&mut self.log) {
            Log::Open(mut file, path) => match file.flush().await {
                Ok(()) => Log::Closed(path),
                Err(error) => Log::Failed(error),
            },
            other => other,
        };
        record
    }

    pub(crate) fn log_path(&self) -> Option<&Path> {
        match &self.log {
            Log::Open(_, path) | Log::Closed(path) => Some(path),
            Log::NotNeeded | Log::Failed(_) => None,
        }
    }

    /// Returns the path of the log for the notice, or the reason why there is none.
    pub(crate) fn log_location(&self) -> String {
        match &self.log {
            Log::Open(_, path) | Log::Closed(path) => path.display().to_string(),
            Log::NotNeeded => "not saved".to_owned(),
            Log::Failed(error) => format!("not saved ({error})"),
        }
    }

    /// Returns the length of the last line that is not empty.
    pub(crate) fn last_line_bytes(&self) -> usize {
        match self.open_line_bytes {
            0 => self.ended_line_bytes,
            open => open,
        }
    }

    fn text(&self) -> std::borrow::Cow<'_, str> {
        let start = if self.total_bytes > self.tail.len() {
            // The first character may be cut.
            self.tail
                .iter()
                .take(3)
                .take_while(|byte| **byte & 0xc0 == 0x80)
                .count()
        } else {
            0
        };
        String::from_utf8_lossy(&self.tail[start..])
    }
}

/// Creates the log. Only the user can read it, because commands print secrets.
async fn create_log() -> io::Result<(File, PathBuf)> {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let path = std::env::temp_dir().join(format!("pi-bash-{}.log", &id[..16]));
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    Ok((options.open(&path).await?, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::truncate::TruncatedBy;

    #[tokio::test]
    async fn little_output_needs_no_file() {
        let mut output = CommandOutput::default();
        output.push(b"a\nb\n").await;
        let record = output.finish().await;
        assert_eq!(
            (record.content.as_str(), record.truncated),
            ("a\nb\n", false)
        );
        assert_eq!(output.log_path(), None);
    }

    #[tokio::test]
    async fn many_lines_are_saved_and_counted() {
        let mut output = CommandOutput::default();
        let mut all = String::new();
        for line in 0..100_000 {
            let line = format!("line {line}\n");
            output.push(line.as_bytes()).await;
            all.push_str(&line);
            assert!(output.tail.len() <= 2 * TAIL_BYTES);
        }
        let record = output.finish().await;
        let path = output.log_path().unwrap().to_owned();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), all);
        std::fs::remove_file(path).unwrap();
        assert_eq!(
            (record.total_lines, record.total_bytes, record.output_lines),
            (100_001, all.len(), 2000)
        );
        assert_eq!(record.truncated_by, Some(TruncatedBy::Lines));
        assert!(all.ends_with(&record.content));
    }

    #[tokio::test]
    async fn one_endless_line_is_cut_between_characters() {
        let mut output = CommandOutput::default();
        let piece = "é".repeat(30_001);
        for _ in 0..20 {
            output.push(piece.as_bytes()).await;
        }
        let record = output.finish().await;
        std::fs::remove_file(output.log_path().unwrap()).unwrap();
        assert_eq!(record.content, "é".repeat(MAX_BYTES / 2));
        assert!(record.last_line_partial);
        assert_eq!(output.last_line_bytes(), 20 * 60_002);
        assert_eq!((record.total_lines, record.total_bytes), (1, 20 * 60_002));
    }

    /// The original returns `(no output)` here.
    #[tokio::test]
    async fn one_long_line_with_its_newline_is_shown() {
        let mut output = CommandOutput::default();
        output.push("x".repeat(60_000).as_bytes()).await;
        output.push(b"\n").await;
        let record = output.finish().await;
        std::fs::remove_file(output.log_path().unwrap()).unwrap();
        assert_eq!(record.content, "x".repeat(MAX_BYTES));
        assert_eq!((record.total_lines, record.last_line_partial), (1, true));
        assert_eq!(output.last_line_bytes(), 60_000);
    }
}
